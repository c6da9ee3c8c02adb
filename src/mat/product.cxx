// Products of seqaijtcbound matrices: keeps the format in step with the CSR, brings vectors to the kernel, runs and logs it.
#include "aijtcbound.h"

#include <petscdevice.h>

static const char *const EventNames[TCBOUND_MAT_OPS] = {"MatMult", "MatMultAdd", "MatMultTranspose", "MatMultTrAdd"};

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
  csr.values = source->a;
  csr.space = tcbound::MemorySpace::host;
  const TCBoundMatSettings &settings = static_cast<Mat_SeqAIJTCBound *>(A->spptr)->settings;
  problem->reproducible = settings.reproducible;
  problem->mma = tcbound::mma_shape_named(settings.mma);
  PetscFunctionReturn(PETSC_SUCCESS);
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
  if (stays) {
    // Kept only if the refill succeeds; else the next product builds anew.
    std::unique_ptr<tcbound::Format> format = std::move(t->format);
    TCBoundCallCXX(format->refill(*t->executor, problem.csr.values, problem.csr.space));
    t->format = std::move(format);
    t->refills++;
    t->source = now;
  } else {
    for (TCBoundLogRow &row : t->rows) row = NULL;
    t->source = now;
    t->bound = bound;
    PetscCall(MatSeqAIJTCBoundChooseFormat(A, problem));
  }
  if (t->on_device) PetscCall(PetscLogCpuToGpu(static_cast<PetscLogDouble>(now.nonzeros) * sizeof(PetscScalar)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// How a product uses a vector.
enum VecUse { VEC_READ, VEC_WRITE, VEC_UPDATE };

// A vector's array in the executor's memory for the time of one product. A host vector given to a device kernel is staged
// through the matrix's own device buffer.
struct VecLease {
  Vec          vec = NULL;
  VecUse       use = VEC_READ;
  PetscScalar *array = NULL; // as PETSc gave it
  double      *data = NULL;  // where the kernel works
  PetscMemType memtype = PETSC_MEMTYPE_HOST;
};

static PetscErrorCode LeaseBegin(Mat_SeqAIJTCBound *t, int slot, Vec vec, VecUse use, VecLease *lease) {
  PetscInt n;

  PetscFunctionBegin;
  lease->vec = vec;
  lease->use = use;
  if (!t->on_device) {
    if (use == VEC_READ)
      PetscCall(VecGetArrayRead(vec, const_cast<const PetscScalar **>(&lease->array)));
    else if (use == VEC_WRITE)
      PetscCall(VecGetArrayWrite(vec, &lease->array));
    else
      PetscCall(VecGetArray(vec, &lease->array));
    lease->data = lease->array;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (use == VEC_READ)
    PetscCall(VecGetArrayReadAndMemType(vec, const_cast<const PetscScalar **>(&lease->array), &lease->memtype));
  else if (use == VEC_WRITE)
    PetscCall(VecGetArrayWriteAndMemType(vec, &lease->array, &lease->memtype));
  else
    PetscCall(VecGetArrayAndMemType(vec, &lease->array, &lease->memtype));
  lease->data = lease->array;
  if (PetscMemTypeHost(lease->memtype)) {
    PetscCall(VecGetLocalSize(vec, &n));
    TCBoundCallCXX(if (t->staged[slot].size() < n) t->staged[slot] = tcbound::Array<double>(*t->executor, n));
    lease->data = t->staged[slot].data();
    if (use != VEC_WRITE && n) {
      TCBoundCallCXX(t->executor->copy(lease->data, tcbound::MemorySpace::cuda, lease->array, tcbound::MemorySpace::host,
                                       n * sizeof(double)));
      PetscCall(PetscLogCpuToGpu(static_cast<PetscLogDouble>(n) * sizeof(PetscScalar)));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LeaseEnd(Mat_SeqAIJTCBound *t, VecLease *lease) {
  PetscInt n;

  PetscFunctionBegin;
  if (!t->on_device) {
    if (lease->use == VEC_READ)
      PetscCall(VecRestoreArrayRead(lease->vec, const_cast<const PetscScalar **>(&lease->array)));
    else if (lease->use == VEC_WRITE)
      PetscCall(VecRestoreArrayWrite(lease->vec, &lease->array));
    else
      PetscCall(VecRestoreArray(lease->vec, &lease->array));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (PetscMemTypeHost(lease->memtype) && lease->use != VEC_READ) {
    PetscCall(VecGetLocalSize(lease->vec, &n));
    if (n)
      TCBoundCallCXX(t->executor->copy(lease->array, tcbound::MemorySpace::host, lease->data, tcbound::MemorySpace::cuda,
                                       n * sizeof(double)));
    if (n) PetscCall(PetscLogGpuToCpu(static_cast<PetscLogDouble>(n) * sizeof(PetscScalar)));
  }
  if (lease->use == VEC_READ)
    PetscCall(VecRestoreArrayReadAndMemType(lease->vec, const_cast<const PetscScalar **>(&lease->array)));
  else if (lease->use == VEC_WRITE)
    PetscCall(VecRestoreArrayWriteAndMemType(lease->vec, &lease->array));
  else
    PetscCall(VecRestoreArrayAndMemType(lease->vec, &lease->array));
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
    PetscCall(TCBoundLogGetRow(EventNames[op], !t->label.empty() ? t->label.c_str() : name ? name : "", kernel, kept));
    PetscCall(TCBoundLogSetMMA(*kept, format.mma().c_str()));
  }
  *row = *kept;
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
  VecLease           lx, ly, lz;
  TCBoundLogRow      row;
  tcbound::Product   product;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJTCBoundUpdate(A));
  product.transpose = op == TCBOUND_MULT_TRANSPOSE || op == TCBOUND_MULT_TRANSPOSE_ADD;
  TCBoundCallCXX(t->format->prepare(*t->executor, product.transpose));
  PetscCall(LeaseBegin(t, 0, x, VEC_READ, &lx));
  if (y && y != z) PetscCall(LeaseBegin(t, 1, y, VEC_READ, &ly));
  PetscCall(LeaseBegin(t, 2, z, y == z ? VEC_UPDATE : VEC_WRITE, &lz));
  product.beta = y ? 1.0 : 0.0;
  product.x = lx.data;
  product.y = y == z ? lz.data : ly.data;
  product.z = lz.data;

  if (t->settings.compare) PetscCall(MatSeqAIJTCBoundCompareBefore(A, op, product, y && y == z));
  PetscCall(MatSeqAIJTCBoundGetLogRow(A, op, *t->kernel, *t->format, &t->rows[op], &row));
  if (t->on_device) PetscCall(PetscLogGpuTimeBegin());
  if (t->on_device) PetscCall(TCBoundLogEnergyBegin(row));
  if (row) PetscCall(TCBoundLogBegin(row, *t->executor));
  TCBoundCallCXX(t->kernel->apply(*t->executor, *t->format, product));
  if (row) PetscCall(TCBoundLogEnd(row, *t->executor, t->format->work(product.transpose, y != NULL)));
  if (t->on_device) PetscCall(PetscLogGpuTimeEnd());
  if (t->on_device) PetscCall(TCBoundLogEnergyEnd(row));
  if (t->settings.compare) PetscCall(MatSeqAIJTCBoundCompareAfter(A, op, product));
  PetscCall(LogFlops(t, y != NULL));

  PetscCall(LeaseEnd(t, &lz));
  if (ly.vec) PetscCall(LeaseEnd(t, &ly));
  PetscCall(LeaseEnd(t, &lx));
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
  VecLease           lease;

  PetscFunctionBegin;
  PetscCall(MatBoundToCPU(A, &mat_bound));
  PetscCall(VecBoundToCPU(d, &vec_bound));
  PetscCall(TCBoundMatSettingsUseDevice(t->settings, &use_device));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)d, &device_vec, VECSEQCUDA, VECMPICUDA, ""));
  if (mat_bound || vec_bound || !use_device || !device_vec) {
    PetscCall((*MatSeqAIJTCBoundBaseOps()->getdiagonal)(A, d));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecGetLocalSize(d, &n));
  PetscCheck(n == A->rmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Nonconforming matrix and vector");
  PetscCall(MatSeqAIJTCBoundUpdate(A));
  PetscCall(LeaseBegin(t, 2, d, VEC_WRITE, &lease));
  TCBoundCallCXX(t->format->diagonal(*t->executor, lease.data));
  PetscCall(LeaseEnd(t, &lease));
  PetscFunctionReturn(PETSC_SUCCESS);
}
