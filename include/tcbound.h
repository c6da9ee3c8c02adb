#pragma once

#include <petscpc.h>

// tcbound: PETSc matrices that move as few bytes as they can and report where each of their kernels stands on the roofline.
// Real double scalars; PetscInt of either width.

#define MATAIJTCBOUND "aijtcbound"         // seqaijtcbound on one rank, mpiaijtcbound on several
#define MATSEQAIJTCBOUND "seqaijtcbound"   // a MATSEQAIJ whose products run on tcbound's kernels
#define MATMPIAIJTCBOUND "mpiaijtcbound"   // a MATMPIAIJ whose two blocks are MATSEQAIJTCBOUND
#define MATSTENCILTCBOUND "stenciltcbound" // the matrix of a DMDA by its stencil's coefficients, without indices

#define VECTCBOUND "tcbound"       // seqtcbound on one rank, mpitcbound on several
#define VECSEQTCBOUND "seqtcbound" // a VECSEQCUDA, or a VECSEQ without a device, whose operations run on tcbound's kernels
#define VECMPITCBOUND "mpitcbound" // the same of VECMPICUDA and VECMPI

#define PCTCBOUNDSWEEP \
  "tcboundsweep" // damped Jacobi sweeps or Chebyshev smoothing, several in one pass where the matrix allows

// What a matrix really runs and what that costs, summed over its ranks.
typedef struct {
  char           kernel[64]; // resolved name, such as spmv/csr/cuda_core; "mixed" where blocks or ranks differ
  char           format[32];
  char           backend[32];
  PetscInt64     rows, columns, nonzeros; // global
  PetscLogDouble stored_bytes;            // matrix bytes that one product reads
  PetscLogDouble moved_bytes;             // bytes of one product y = A x, vectors included
  PetscLogDouble useful_flops;            // of one product
  PetscLogDouble setup_seconds;           // time to build the format, the slowest rank's
} MatTCBoundInfo;

// Registers the types and the log for an application that links libtcbound. Call after PetscInitialize(); with
// -dll_append libtcbound.so it is not needed. More calls do nothing.
PETSC_EXTERN PetscErrorCode TCBoundInitialize(void);

// Builds the matrix's format now if its first product has not done so, and tells what it is. Collective.
PETSC_EXTERN PetscErrorCode MatTCBoundGetInfo(Mat A, MatTCBoundInfo *info);

// The backend for the products that follow: auto, host, cuda_core, cusparse, tensor_core (as
// -mat_tcbound_backend). Logically collective.
PETSC_EXTERN PetscErrorCode MatTCBoundSetBackend(Mat A, const char backend[]);

// The format for the products that follow: auto, csr, compact, fragments (as -mat_tcbound_format). Logically collective.
PETSC_EXTERN PetscErrorCode MatTCBoundSetFormat(Mat A, const char format[]);

// Where a vector's operations run: backend auto, host, cuda_core or tensor_core (as -vec_tcbound_backend), and the matrix instruction of
// tensor_core, auto, m8n8k4, m16n8k4, m16n8k8 or m16n8k16 (as -vec_tcbound_mma). Logically collective.
PETSC_EXTERN PetscErrorCode VecTCBoundSetBackend(Vec v, const char backend[], const char mma[]);

// The kernel that VecScale() runs on, such as scale/array/cuda_core. Not collective.
PETSC_EXTERN PetscErrorCode VecTCBoundGetBackend(Vec v, const char *kernel[]);

// Whether a vector's operations are tcbound's (VecGetType() gives the name of PETSc's type beneath). Not collective.
PETSC_EXTERN PetscErrorCode VecIsTCBound(Vec v, PetscBool *is);

// Gives a vector of PETSc's standard or CUDA type tcbound's operations in place; it keeps its values and ghost points. Collective.
PETSC_EXTERN PetscErrorCode VecTCBoundConvert(Vec v);

// Names of all kernels of an operation ("spmv") that this build lists, in a fixed order. Not collective.
PETSC_EXTERN PetscErrorCode TCBoundGetKernels(const char op[], PetscInt *n, const char *const *names[]);

// Whether a kernel can run this matrix on every rank; if not, *why_not holds a reason (valid until the next call on this
// process), else NULL. Collective.
PETSC_EXTERN PetscErrorCode MatTCBoundCheckKernel(Mat A, const char kernel[], PetscBool *can_run, const char *why_not[]);

// Sum over the communicator's ranks of the measured bandwidth ceiling of the memory that `memtype` names, in bytes per second
// (y = q x on arrays several times the last-level cache). Ranks of a host measure at the same time and so share its memory;
// ranks that share a device take turns and it counts once. Collective; measured at the first call and kept.
PETSC_EXTERN PetscErrorCode TCBoundGetBandwidth(MPI_Comm comm, PetscMemType memtype, PetscLogDouble *bytes_per_second);

// Switches tcbound's part of -log_view off and on again, for calls that it is not to have. Logically collective.
PETSC_EXTERN PetscErrorCode TCBoundSetLog(PetscBool log);

// Whether this process can use a CUDA device with tcbound; if not, *why_not (may be NULL) says what is missing. Not collective.
PETSC_EXTERN PetscErrorCode TCBoundHasDevice(PetscBool *has, const char *why_not[]);

// The name of this process's device as its driver spells it. Not collective.
PETSC_EXTERN PetscErrorCode TCBoundGetDeviceName(const char *name[]);

// y = A^k x, k >= 0, for any square matrix; a MATSTENCILTCBOUND of constant coefficients does several products a pass over memory.
// y may not be x. Collective.
PETSC_EXTERN PetscErrorCode MatTCBoundMultPowers(Mat A, PetscInt k, Vec x, Vec y);

// Of a preconditioner PCTCBOUNDSWEEP, as its options of these names; logically collective, and ignored by other types.
typedef enum { PC_TCBOUNDSWEEP_JACOBI, PC_TCBOUNDSWEEP_CHEBYSHEV } PCTCBoundSweepType;
PETSC_EXTERN const char *const PCTCBoundSweepTypes[];
PETSC_EXTERN PetscErrorCode    PCTCBoundSweepSetType(PC pc, PCTCBoundSweepType type);
PETSC_EXTERN PetscErrorCode    PCTCBoundSweepSetIterations(PC pc, PetscInt its);
PETSC_EXTERN PetscErrorCode    PCTCBoundSweepSetOmega(PC pc, PetscReal omega);
// The interval of Chebyshev's polynomial among the eigenvalues of D^-1 A, D the diagonal; 0: as a multiple (by
// PCTCBoundSweepSetEstimateFactors(); 0.1 and 1.1 as they come) of the estimated largest one.
PETSC_EXTERN PetscErrorCode PCTCBoundSweepSetEigenvalues(PC pc, PetscReal emin, PetscReal emax);
PETSC_EXTERN PetscErrorCode PCTCBoundSweepSetEstimateFactors(PC pc, PetscReal low, PetscReal high);
