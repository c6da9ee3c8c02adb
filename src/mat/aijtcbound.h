#pragma once

#include <petscmat.h>
#include <tcbound.h>

#include <petsc/private/matimpl.h>

#include <memory>
#include <string>
#include <vector>

#include "../../kernels/arithmetic.h"
#include "../../kernels/kernel.h"
#include "../../kernels/mma_shape.h"
#include "../log/log.h"
#include "../model/selection.h"
#include "../tcboundimpl.h"

// What the user asked of a matrix; the blocks of a parallel matrix take their parent's.
struct TCBoundMatSettings {
  std::string op = "spmv"; // whose kernels: stencil of a stenciltcbound matrix
  std::string backend = "auto";
  std::string format = "auto";
  std::string mma = "auto";      // instruction of kernels on tensor cores
  std::string tune = "model";    // or measure
  PetscReal   tune_seconds = 10; // no kernel is tried by measuring after that
  PetscBool   reproducible = PETSC_TRUE;
  PetscBool   compare = PETSC_FALSE;      // -mat_tcbound_compare
  std::string value_precision = "fp64";   // of the values that products use; else the host CSR's are rounded for them
  std::string product_precision = "fp64"; // of products: values and x are rounded to it, sums are FP32
  PetscInt    steps = 0;                  // of a stencil that a pass fuses; 0: by the model
  bool        in_place = false;           // not asked for: products are z += A x as a rule, those of an off-diagonal block

  bool operator==(const TCBoundMatSettings &o) const {
    return op == o.op && backend == o.backend && format == o.format && mma == o.mma && tune == o.tune &&
           tune_seconds == o.tune_seconds && reproducible == o.reproducible && compare == o.compare &&
           value_precision == o.value_precision && product_precision == o.product_precision && steps == o.steps &&
           in_place == o.in_place;
  }
  bool operator!=(const TCBoundMatSettings &o) const { return !(*this == o); }

  // Whether products use other values than the matrix has.
  bool rounds() const { return value_precision != "fp64" || product_precision != "fp64"; }

  // Those of an AIJ copy of a matrix that is none.
  TCBoundMatSettings for_aij() const {
    TCBoundMatSettings settings = *this;
    settings.op = "spmv";
    settings.format = "auto";
    settings.steps = 0;
    return settings;
  }
};

enum TCBoundMatOp {
  TCBOUND_MULT,
  TCBOUND_MULT_ADD,
  TCBOUND_MULT_TRANSPOSE,
  TCBOUND_MULT_TRANSPOSE_ADD,
  TCBOUND_MULT_DENSE,
  TCBOUND_TRANSPOSE_MULT_DENSE,
  TCBOUND_MAT_OPS
};

// The CSR that a format was built from. Another matrix, pattern state, size or index array means another pattern; another
// object state or value array means new values. The matrix counts because MatHeaderReplace() hands a format, with its source,
// to a matrix whose states are counted otherwise.
struct TCBoundMatSource {
  Mat                matrix = NULL;
  PetscObjectState   pattern_state = 0, value_state = 0;
  PetscInt           nonzeros = -1;
  const PetscInt    *i = nullptr, *j = nullptr;
  const PetscScalar *a = nullptr;

  bool same_pattern(const TCBoundMatSource &o) const {
    return matrix == o.matrix && pattern_state == o.pattern_state && nonzeros == o.nonzeros && i == o.i && j == o.j;
  }
  bool same_values(const TCBoundMatSource &o) const { return value_state == o.value_state && a == o.a; }
};

struct TCBoundMatCompare; // compare.cxx

// In Mat::spptr of a seqaijtcbound matrix. The host CSR of MATSEQAIJ is the master copy; `format` follows it by its states.
struct Mat_SeqAIJTCBound {
  TCBoundMatSettings                 settings;
  std::string                        label;   // in the log; empty: the matrix's own name or prefix
  std::vector<double>                rounded; // values of rounded_from, where the settings round them
  TCBoundMatSource                   rounded_from;
  const tcbound::Kernel             *kernel = nullptr;
  tcbound::Executor                 *executor = nullptr;
  bool                               on_device = false; // the executor's memory is a device's
  std::unique_ptr<tcbound::Format>   format;
  TCBoundMatSource                   source;
  PetscBool                          bound = PETSC_FALSE; // to the CPU, when the kernel was chosen
  PetscInt                           nonempty_rows = 0;
  PetscInt                           builds = 0, refills = 0;
  PetscLogDouble                     setup_seconds = 0.0; // of the last build
  tcbound::Array<double>             staged[3];           // device copies of host vectors
  TCBoundLogRow                      rows[TCBOUND_MAT_OPS] = {};
  std::shared_ptr<TCBoundMatCompare> compare;         // NULL until the first product with -mat_tcbound_compare
  PetscCount                         coo_entries = 0; // of MatSetPreallocationCOO()
};

// In Mat::spptr of an mpiaijtcbound matrix.
struct Mat_MPIAIJTCBound {
  TCBoundMatSettings settings;
  PetscCount         coo_entries = 0; // of MatSetPreallocationCOO()
};

// MATSEQAIJ's and MATMPIAIJ's own operations, which ours call or replace; recorded when the first matrix is made.
PETSC_INTERN const struct _MatOps *MatSeqAIJTCBoundBaseOps(void);
PETSC_INTERN const struct _MatOps *MatMPIAIJTCBoundBaseOps(void);

PETSC_INTERN PetscErrorCode MatTCBoundRegisterAll(void);
PETSC_INTERN PetscErrorCode MatIsSeqAIJTCBound(Mat A, PetscBool *is);
PETSC_INTERN PetscErrorCode MatIsMPIAIJTCBound(Mat A, PetscBool *is);

// settings.cxx
PETSC_INTERN PetscErrorCode TCBoundMatSettingsSetBackend(TCBoundMatSettings &settings, MPI_Comm comm, const char backend[]);
PETSC_INTERN PetscErrorCode TCBoundMatSettingsSetFormat(TCBoundMatSettings &settings, MPI_Comm comm, const char format[]);
PETSC_INTERN PetscErrorCode TCBoundMatSettingsFromOptions(TCBoundMatSettings &settings, Mat A);
// Whether products may run on a device under these settings (they do unless the matrix is bound to the CPU).
PETSC_INTERN PetscErrorCode TCBoundMatSettingsUseDevice(const TCBoundMatSettings &settings, PetscBool *use);
// Whether these settings leave no choice but a device, be there one or not.
PETSC_INTERN bool TCBoundMatSettingsNeedDevice(const TCBoundMatSettings &settings);
// The kernels that the settings allow and that pass check(), by falling promise; at least one, or an error that says why none.
PETSC_INTERN PetscErrorCode TCBoundMatSettingsRank(const TCBoundMatSettings &settings, PetscBool bound_to_cpu,
                                                   const tcbound::Problem          &problem,
                                                   std::vector<tcbound::Candidate> *candidates);

// seqaijtcbound.cxx, mpiaijtcbound.cxx
PETSC_INTERN PetscErrorCode MatCreate_SeqAIJTCBound(Mat A);
PETSC_INTERN PetscErrorCode MatCreate_MPIAIJTCBound(Mat A);
PETSC_INTERN PetscErrorCode MatConvert_SeqAIJ_SeqAIJTCBound(Mat A, MatType type, MatReuse reuse, Mat *newmat);
PETSC_INTERN PetscErrorCode MatConvert_SeqAIJTCBound_SeqAIJ(Mat A, MatType type, MatReuse reuse, Mat *newmat);
PETSC_INTERN PetscErrorCode MatConvert_MPIAIJ_MPIAIJTCBound(Mat A, MatType type, MatReuse reuse, Mat *newmat);
PETSC_INTERN PetscErrorCode MatConvert_MPIAIJTCBound_MPIAIJ(Mat A, MatType type, MatReuse reuse, Mat *newmat);
PETSC_INTERN PetscErrorCode MatSeqAIJTCBoundApplySettings(Mat A, const TCBoundMatSettings &settings);
PETSC_INTERN PetscErrorCode MatMPIAIJTCBoundApplySettings(Mat A, const TCBoundMatSettings &settings);
PETSC_INTERN PetscErrorCode MatMPIAIJTCBoundAdoptBlocks(Mat A);
PETSC_INTERN PetscErrorCode MatTCBoundUseDeviceVectors(Mat A, const TCBoundMatSettings &settings);
PETSC_INTERN PetscErrorCode MatCreateVecs_TCBound(Mat A, Vec *right, Vec *left);

// value_precision.cxx
PETSC_INTERN const std::vector<std::string> &TCBoundValuePrecisions();
PETSC_INTERN const std::vector<std::string> &TCBoundProductPrecisions();
PETSC_INTERN PetscErrorCode TCBoundRoundValues(const TCBoundMatSettings &settings, const PetscScalar values[], PetscInt n,
                                               std::vector<double> *rounded);

// choose.cxx
PETSC_INTERN PetscErrorCode MatSeqAIJTCBoundChooseFormat(Mat A, const tcbound::Problem &problem);

// product.cxx
PETSC_INTERN PetscErrorCode MatSeqAIJTCBoundGetProblem(Mat A, tcbound::Problem *problem, TCBoundMatSource *source);
PETSC_INTERN PetscErrorCode MatSeqAIJTCBoundUpdate(Mat A);
PETSC_INTERN PetscErrorCode MatMult_SeqAIJTCBound(Mat A, Vec x, Vec y);
PETSC_INTERN PetscErrorCode MatMultAdd_SeqAIJTCBound(Mat A, Vec x, Vec y, Vec z);
PETSC_INTERN PetscErrorCode MatMultTranspose_SeqAIJTCBound(Mat A, Vec x, Vec y);
PETSC_INTERN PetscErrorCode MatMultTransposeAdd_SeqAIJTCBound(Mat A, Vec x, Vec y, Vec z);
PETSC_INTERN PetscErrorCode MatGetDiagonal_SeqAIJTCBound(Mat A, Vec d);

// dense_product.cxx: takes the product if it is one of a seqaijtcbound matrix or its transpose with a dense one.
PETSC_INTERN PetscErrorCode MatTCBoundDenseProductSetFromOptions(Mat C);

// The row of one of the matrix's kernels in the log, kept in *kept; *row is NULL when no log is wanted.
PETSC_INTERN PetscErrorCode MatSeqAIJTCBoundGetLogRow(Mat A, TCBoundMatOp op, const tcbound::Kernel &kernel,
                                                      const tcbound::Format &format, TCBoundLogRow *kept, TCBoundLogRow *row);

// With -tcbound_counters, before the first call of that row: repeats the product on the same input into scratch memory.
PETSC_INTERN PetscErrorCode MatSeqAIJTCBoundCount(Mat A, const tcbound::Kernel &kernel, tcbound::Format &format,
                                                  const tcbound::Product &product, TCBoundLogRow row);

// compare.cxx: around the matrix's own product, runs the other kernels on the same input (-mat_tcbound_compare). in_place: the
// product overwrites the vector that it adds to.
PETSC_INTERN PetscErrorCode MatSeqAIJTCBoundCompareBefore(Mat A, TCBoundMatOp op, const tcbound::Product &product,
                                                          bool in_place);
PETSC_INTERN PetscErrorCode MatSeqAIJTCBoundCompareAfter(Mat A, TCBoundMatOp op, const tcbound::Product &product);
// The kernels to choose from are tcbound::all_kernels() and, for tests, those of this list.
PETSC_INTERN std::vector<const tcbound::Kernel *> tcbound_mat_compare_more;

// Whether two results of z = op(A) x + y may differ by rounding alone: by 2 (n + 2) eps (sum |a_ij x_j| + |y_i|) in a row of n
// entries, in lossy arithmetic by that and 2 lossy_sum_error(n) sum |a_ij x_j|, for both kernels round values and x in the same way. If not, *row is the one that is furthest off; else -1. y may be NULL. All on the host.
PETSC_INTERN PetscErrorCode TCBoundCompareResults(const tcbound::Problem &problem, const tcbound::Product &product,
                                                  const double z[], const double other[], PetscInt *row, double *allowed);

// convert.cxx, coo.cxx, factor.cxx: conversions, and what a type offers beyond its ops table
// The matrix that a conversion changes: A itself or a copy of it. NULL if only values were asked for, which then are in *newmat.
PETSC_INTERN PetscErrorCode MatTCBoundConversionTarget(Mat A, MatReuse reuse, Mat *newmat, Mat *target);
PETSC_INTERN PetscErrorCode MatTCBoundCheckConvertible(Mat A);
// Composes all functions that PETSc finds by name, or takes ours off again.
PETSC_INTERN PetscErrorCode MatTCBoundCompose(Mat A, PetscBool parallel, PetscBool compose);
PETSC_INTERN PetscErrorCode MatTCBoundComposeCOO(Mat A, PetscBool parallel, PetscBool compose);
PETSC_INTERN PetscErrorCode MatTCBoundRegisterFactors(void);

// info.cxx
PETSC_INTERN PetscErrorCode MatView_SeqAIJTCBound(Mat A, PetscViewer viewer);
PETSC_INTERN PetscErrorCode MatView_MPIAIJTCBound(Mat A, PetscViewer viewer);
