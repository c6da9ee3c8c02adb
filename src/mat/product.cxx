// Products of seqaijtcbound matrices: keeps the format in step with the CSR, brings vectors to the kernel, runs and logs it.
#include "aijtcbound.h"
#include "lease.h"

#include <petscdevice.h>

static const char *const EventNames[TCBOUND_MAT_OPS] = {"MatMult",      "MatMultAdd",    "MatMultTranspose",
                                                        "MatMultTrAdd", "MatMatMultNum", "MatTrnMatMultNum"};

// The states by which changes of the matrix are noticed. Every product asks, so fields are read directly.
static PetscErrorCode GetSource(Mat A, TCBoundMatSource *source) {
  PetscScalar *a;
  PetscMemType memtype;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &source->i, &source->j, &a, &memtype));
  PetscCheck(PetscMemTypeHost(memtype), PETSC_COMM_SELF, PETSC_ERR_PLIB, "MATSEQAIJ keeps its CSR on the host");
  source->matrix = A;
  source->pattern_state = A->nonzerostate;
  source->value_state = ((PetscObject)A)->state;
  source->nonzeros = source->i ? source->i[A->rmap->n] : 0;
  source->a = a;
  PetscCheck(a || !source->nonzeros, PETSC_COMM_SELF, PETSC_ERR_SUP,
             "The matrix holds a structure only (MAT_STRUCTURE_ONLY) and has no values to multiply with");
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The values that products use: the matrix's own, or rounded ones, which stay where they are until the matrix has others.
static PetscErrorCode GetValues(Mat A, const TCBoundMatSource &source, const PetscScalar **values) {
  Mat_SeqAIJTCBound *t = static_cast<Mat_SeqAIJTCBound *>(A->spptr);

  PetscFunctionBegin;
  *values = source.a;
  if (!t->settings.rounds()) PetscFunctionReturn(PETSC_SUCCESS);
  if (!source.same_pattern(t->rounded_from) || !source.same_values(t->rounded_from)) {
    t->rounded_from = TCBoundMatSource();
    PetscCall(TCBoundRoundValues(t->settings, source.a, source.nonzeros, &t->rounded));
    t->rounded_from = source;
  }
  *values = t->rounded.data();
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The CSR of the matrix as a Problem (borrowed) and the states that it was taken at.
PetscErrorCode MatSeqAIJTCBoundGetProblem(Mat A, tcbound::Problem *problem, TCBoundMatSource *source) {
  PetscFunctionBegin;
  PetscCall(GetSource(A, source));
  tcbound::CsrView &csr = problem->csr;
  csr.rows = A->rmap->n;
  csr.columns_count = A->cmap->n;
  csr.nonzeros = source->nonzeros;
  csr.row_offsets = {source->i, static_cast<int>(sizeof(PetscInt))};
  csr.columns = {source->j, static_cast<int>(sizeof(PetscInt))};
  PetscCall(GetValues(A, *source, &csr.values));
  csr.space = tcbound::MemorySpace::host;
  const TCBoundMatSettings &settings = static_cast<Mat_SeqAIJTCBound *>(A->spptr)->settings;
  problem->reproducible = settings.reproducible;
  problem->in_place = settings.in_place;
  problem->mma = tcbound::mma_shape_named(settings.mma);
  problem->arithmetic = tcbound::arithmetic_named(settings.product_precision);
  PetscFunctionReturn(PETSC_SUCCESS);
}

// False if there is no memory for it: the format is good for nothing then.
static bool Refill(tcbound::Executor &executor, tcbound::Format &format, const tcbound::CsrView &csr) {
  try {
    format.refill(executor, csr.values, csr.space);
  } catch (const tcbound::Error &error) {
    if (error.code() != tcbound::ErrorCode::out_of_memory) throw;
    return false;
  }
  return true;
}

/*
  Brings kernel and format up to date with the matrix: another pattern or place to run builds anew, other values refill.
  With nothing changed it costs a few comparisons.
*/
PetscErrorCode MatSeqAIJTCBoundUpdate(Mat A) {
  Mat_SeqAIJTCBound *t = static_cast<Mat_SeqAIJTCBound *>(A->spptr);
  TCBoundMatSource   now;
  PetscBool          bound = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(GetSource(A, &now));
#if PetscDefined(HAVE_DEVICE)
  bound = A->boundtocpu; // without devices it is always true, whatever was asked for
#endif
  const bool stays = t->format && bound == t->bound && now.same_pattern(t->source);
  if (t->format && t->on_device) PetscCall(TCBoundUsePetscStream(*t->executor));
  if (stays && now.same_values(t->source)) PetscFunctionReturn(PETSC_SUCCESS);

  tcbound::Problem problem;
  PetscCall(MatSeqAIJTCBoundGetProblem(A, &problem, &now));
  bool refilled = false;
  if (stays) {
    // Kept only if the refill succeeds; without memory for it another is chosen.
    std::unique_ptr<tcbound::Format> format = std::move(t->format);
    TCBoundCallCXX(refilled = Refill(*t->executor, *format, problem.csr));
    if (refilled) {
      t->format = std::move(format);
      t->refills++;
      t->source = now;
    } else {
      PetscCall(PetscInfo(A, "No memory for new values in %s: a format is chosen anew\n", t->kernel->name().c_str()));
    }
  }
  if (!refilled) {
    for (TCBoundLogRow &row : t->rows) row = NULL;
    t->source = now;
    t->bound = bound;
    PetscCall(MatSeqAIJTCBoundChooseFormat(A, problem));
  }
  if (t->on_device) { // a format on the host may borrow the values
    t->rounded = std::vector<double>();
    t->rounded_from = TCBoundMatSource();
    PetscCall(PetscLogCpuToGpu(static_cast<PetscLogDouble>(now.nonzeros) * sizeof(PetscScalar)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJTCBoundGetLogRow(Mat A, TCBoundMatOp op, const tcbound::Kernel &kernel, const tcbound::Format &format,
                                         TCBoundLogRow *kept, TCBoundLogRow *row) {
  Mat_SeqAIJTCBound *t = static_cast<Mat_SeqAIJTCBound *>(A->spptr);
  PetscBool          active;

  PetscFunctionBegin;
  *row = NULL;
  PetscCall(TCBoundLogActive(&active));
  if (!active) PetscFunctionReturn(PETSC_SUCCESS);
  if (!*kept) {
    const char *name = ((PetscObject)A)->name ? ((PetscObject)A)->name : ((PetscObject)A)->prefix;
    // Lossy arithmetic is part of the name: it is not the same kernel.
    std::string kernel_name = kernel.name();
    if (format.arithmetic() != tcbound::Arithmetic::fp64)
      kernel_name += std::string(":") + tcbound::facts_of(format.arithmetic()).name;
    PetscCall(TCBoundLogGetNamedRow(EventNames[op],
                                    !t->label.empty() ? t->label.c_str()
                                    : name            ? name
                                                      : "",
                                    kernel_name.c_str(), kernel.space(), kept));
    PetscCall(TCBoundLogSetMMA(*kept, format.mma().c_str()));
  }
  *row = *kept;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJTCBoundCount(Mat A, const tcbound::Kernel &kernel, tcbound::Format &format,
                                     const tcbound::Product &product, TCBoundLogRow row) {
  Mat_SeqAIJTCBound *t = static_cast<Mat_SeqAIJTCBound *>(A->spptr);

  PetscFunctionBegin;
  if (!TCBoundLogWantsCount(row)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TCBoundLogCountProduct(row, *t->executor, tcbound::work_of(format, product), product,
                                   product.transpose ? A->cmap->n : A->rmap->n,
                                   [&](const tcbound::Product &repeated) { kernel.apply(*t->executor, format, repeated); }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LogFlops(Mat_SeqAIJTCBound *t, bool accumulate) {
  // As MATSEQAIJ counts: a row of k entries takes k products and k - 1 sums, one more sum when it is added to a vector.
  const PetscLogDouble flops = 2.0 * t->source.nonzeros - (accumulate ? 0 : t->nonempty_rows);

  PetscFunctionBegin;
  if (t->on_device) {
    PetscCall(PetscLogGpuFlops(flops));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscLogFlops(flops));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// z = op(A) x + y; y is NULL for a plain product.
static PetscErrorCode Apply(Mat A, TCBoundMatOp op, Vec x, Vec y, Vec z) {
  Mat_SeqAIJTCBound *t = static_cast<Mat_SeqAIJTCBound *>(A->spptr);
  TCBoundLease       lx, ly, lz;
  TCBoundLogRow      row;
  tcbound::Product   product;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJTCBoundUpdate(A));
  if (y && y == z && t->source.nonzeros == 0) PetscFunctionReturn(PETSC_SUCCESS); // z stays as it is, wherever it lies
  product.transpose = op == TCBOUND_MULT_TRANSPOSE || op == TCBOUND_MULT_TRANSPOSE_ADD;
  TCBoundCallCXX(t->format->prepare(*t->executor, product.transpose));
  PetscCall(TCBoundLeaseBegin(*t->executor, &t->staged[0], x, TCBOUND_READ, &lx));
  if (y && y != z) PetscCall(TCBoundLeaseBegin(*t->executor, &t->staged[1], y, TCBOUND_READ, &ly));
  PetscCall(TCBoundLeaseBegin(*t->executor, &t->staged[2], z, y == z ? TCBOUND_UPDATE : TCBOUND_WRITE, &lz));
  product.beta = y ? 1.0 : 0.0;
  product.x = lx.data;
  product.y = y == z ? lz.data : ly.data;
  product.z = lz.data;

  if (t->settings.compare) PetscCall(MatSeqAIJTCBoundCompareBefore(A, op, product, y && y == z));
  PetscCall(MatSeqAIJTCBoundGetLogRow(A, op, *t->kernel, *t->format, &t->rows[op], &row));
  PetscCall(MatSeqAIJTCBoundCount(A, *t->kernel, *t->format, product, row));
  if (t->on_device) PetscCall(PetscLogGpuTimeBegin());
  if (t->on_device) PetscCall(TCBoundLogEnergyBegin(row));
  if (row) PetscCall(TCBoundLogBegin(row, *t->executor));
  TCBoundCallCXX(t->kernel->apply(*t->executor, *t->format, product));
  if (row) PetscCall(TCBoundLogEnd(row, *t->executor, tcbound::work_of(*t->format, product)));
  if (t->on_device) PetscCall(PetscLogGpuTimeEnd());
  if (t->on_device) PetscCall(TCBoundLogEnergyEnd(row));
  if (t->settings.compare) PetscCall(MatSeqAIJTCBoundCompareAfter(A, op, product));
  PetscCall(LogFlops(t, y != NULL));

  PetscCall(TCBoundLeaseEnd(*t->executor, &lz));
  if (ly.vec) PetscCall(TCBoundLeaseEnd(*t->executor, &ly));
  PetscCall(TCBoundLeaseEnd(*t->executor, &lx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMult_SeqAIJTCBound(Mat A, Vec x, Vec y) {
  PetscFunctionBegin;
  PetscCall(Apply(A, TCBOUND_MULT, x, NULL, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultAdd_SeqAIJTCBound(Mat A, Vec x, Vec y, Vec z) {
  PetscFunctionBegin;
  PetscCall(Apply(A, TCBOUND_MULT_ADD, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultTranspose_SeqAIJTCBound(Mat A, Vec x, Vec y) {
  PetscFunctionBegin;
  PetscCall(Apply(A, TCBOUND_MULT_TRANSPOSE, x, NULL, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultTransposeAdd_SeqAIJTCBound(Mat A, Vec x, Vec y, Vec z) {
  PetscFunctionBegin;
  PetscCall(Apply(A, TCBOUND_MULT_TRANSPOSE_ADD, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// On the device when the products run there and the vector lives there; MATSEQAIJ's otherwise.
PetscErrorCode MatGetDiagonal_SeqAIJTCBound(Mat A, Vec d) {
  Mat_SeqAIJTCBound *t = static_cast<Mat_SeqAIJTCBound *>(A->spptr);
  PetscBool          mat_bound, vec_bound, use_device, device_vec;
  PetscInt           n;
  TCBoundLease       lease;

  PetscFunctionBegin;
  PetscCall(MatBoundToCPU(A, &mat_bound));
  PetscCall(VecBoundToCPU(d, &vec_bound));
  PetscCall(TCBoundMatSettingsUseDevice(t->settings, &use_device));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)d, &device_vec, VECSEQCUDA, VECMPICUDA, ""));
  const bool rounded = t->settings.rounds();
  if (mat_bound || vec_bound || !use_device || !device_vec || rounded) {
    PetscCall((*MatSeqAIJTCBoundBaseOps()->getdiagonal)(A, d));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecGetLocalSize(d, &n));
  PetscCheck(n == A->rmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Nonconforming matrix and vector");
  PetscCall(MatSeqAIJTCBoundUpdate(A));
  PetscCall(TCBoundLeaseBegin(*t->executor, &t->staged[2], d, TCBOUND_WRITE, &lease));
  TCBoundCallCXX(t->format->diagonal(*t->executor, lease.data));
  PetscCall(TCBoundLeaseEnd(*t->executor, &lease));
  PetscFunctionReturn(PETSC_SUCCESS);
}
