// Products of seqaijtcbound matrices with dense ones (MatMatMult(), MatTransposeMatMult()): all columns in one call of the kernel.
#include "aijtcbound.h"

#include <petscdevice.h>

// A dense matrix's array in the executor's memory for the time of one product. A host array given to a device kernel is staged.
struct DenseLease {
  Mat                    matrix = NULL;
  bool                   write = false;
  PetscInt               rows = 0, columns = 0, lda = 0;
  PetscScalar           *array = NULL; // as PETSc gave it
  PetscMemType           memtype = PETSC_MEMTYPE_HOST;
  tcbound::Array<double> staged; // column after column
  double                *data = NULL;
  std::int64_t           distance = 0; // between columns of data
};

static PetscErrorCode CopyColumns(tcbound::Executor &executor, const DenseLease &lease, bool to_device) {
  PetscFunctionBegin;
  for (PetscInt k = 0; lease.rows > 0 && k < lease.columns; k++) {
    double           *device = lease.data + k * lease.distance, *host = lease.array + static_cast<std::int64_t>(k) * lease.lda;
    const std::size_t bytes = static_cast<std::size_t>(lease.rows) * sizeof(double);
    if (to_device)
      TCBoundCallCXX(executor.copy(device, tcbound::MemorySpace::cuda, host, tcbound::MemorySpace::host, bytes));
    else
      TCBoundCallCXX(executor.copy(host, tcbound::MemorySpace::host, device, tcbound::MemorySpace::cuda, bytes));
  }
  // Without devices PETSc's logging is nothing, not even a use of its argument.
  if (to_device)
    PetscCall(PetscLogCpuToGpu(static_cast<PetscLogDouble>(lease.rows) * lease.columns * sizeof(PetscScalar)));
  else
    PetscCall(PetscLogGpuToCpu(static_cast<PetscLogDouble>(lease.rows) * lease.columns * sizeof(PetscScalar)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LeaseBegin(Mat_SeqAIJTCBound *t, Mat matrix, bool write, DenseLease *lease) {
  PetscFunctionBegin;
  lease->matrix = matrix;
  lease->write = write;
  PetscCall(MatGetLocalSize(matrix, &lease->rows, &lease->columns));
  PetscCall(MatDenseGetLDA(matrix, &lease->lda));
  if (t->on_device && write)
    PetscCall(MatDenseGetArrayWriteAndMemType(matrix, &lease->array, &lease->memtype));
  else if (t->on_device)
    PetscCall(MatDenseGetArrayReadAndMemType(matrix, const_cast<const PetscScalar **>(&lease->array), &lease->memtype));
  else if (write)
    PetscCall(MatDenseGetArrayWrite(matrix, &lease->array));
  else
    PetscCall(MatDenseGetArrayRead(matrix, const_cast<const PetscScalar **>(&lease->array)));
  lease->data = lease->array;
  lease->distance = lease->lda;
  if (t->on_device && PetscMemTypeHost(lease->memtype)) {
    const std::int64_t size = static_cast<std::int64_t>(lease->rows) * lease->columns;
    TCBoundCallCXX(lease->staged = tcbound::Array<double>(*t->executor, size));
    lease->data = lease->staged.data();
    lease->distance = lease->rows;
    if (!write) PetscCall(CopyColumns(*t->executor, *lease, true));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LeaseEnd(Mat_SeqAIJTCBound *t, DenseLease *lease) {
  PetscFunctionBegin;
  if (lease->write && t->on_device && PetscMemTypeHost(lease->memtype)) PetscCall(CopyColumns(*t->executor, *lease, false));
  if (t->on_device && lease->write)
    PetscCall(MatDenseRestoreArrayWriteAndMemType(lease->matrix, &lease->array));
  else if (t->on_device)
    PetscCall(MatDenseRestoreArrayReadAndMemType(lease->matrix, const_cast<const PetscScalar **>(&lease->array)));
  else if (lease->write)
    PetscCall(MatDenseRestoreArrayWrite(lease->matrix, &lease->array));
  else
    PetscCall(MatDenseRestoreArrayRead(lease->matrix, const_cast<const PetscScalar **>(&lease->array)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Numeric(Mat C) {
  Mat                A = C->product->A, B = C->product->B;
  const bool         transpose = C->product->type == MATPRODUCT_AtB;
  const TCBoundMatOp op = transpose ? TCBOUND_TRANSPOSE_MULT_DENSE : TCBOUND_MULT_DENSE;
  Mat_SeqAIJTCBound *t = static_cast<Mat_SeqAIJTCBound *>(A->spptr);
  DenseLease         x, z;
  TCBoundLogRow      row;
  tcbound::Product   product;
  tcbound::Columns   columns;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJTCBoundUpdate(A));
  TCBoundCallCXX(t->format->prepare(*t->executor, transpose));
  PetscCall(LeaseBegin(t, B, false, &x));
  PetscCall(LeaseBegin(t, C, true, &z));
  product.transpose = transpose;
  product.x = x.data;
  product.z = z.data;
  columns = {x.columns, x.distance, 0, z.distance};

  const tcbound::Work work = t->format->work_of_columns(transpose, false, columns.count);
  const auto          run = [&] { t->kernel->apply_columns(*t->executor, *t->format, product, columns); };
  PetscCall(MatSeqAIJTCBoundGetLogRow(A, op, *t->kernel, *t->format, &t->rows[op], &row));
  if (TCBoundLogWantsCount(row)) PetscCall(TCBoundLogCount(row, *t->executor, work, run)); // may be repeated: z is only written
  if (t->on_device) PetscCall(PetscLogGpuTimeBegin());
  if (row) PetscCall(TCBoundLogBegin(row, *t->executor));
  TCBoundCallCXX(run());
  if (row) PetscCall(TCBoundLogEnd(row, *t->executor, work));
  if (t->on_device) PetscCall(PetscLogGpuTimeEnd());
  const PetscLogDouble flops = 2.0 * t->source.nonzeros * x.columns;
  PetscCall(t->on_device ? PetscLogGpuFlops(flops) : PetscLogFlops(flops));

  PetscCall(LeaseEnd(t, &z));
  PetscCall(LeaseEnd(t, &x));
  PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// C becomes a matrix of B's type, unless the caller gave a dense one.
static PetscErrorCode Symbolic(Mat C) {
  Mat            A = C->product->A, B = C->product->B;
  const PetscInt rows = C->product->type == MATPRODUCT_AtB ? A->cmap->n : A->rmap->n;
  PetscBool      dense;

  PetscFunctionBegin;
  PetscCall(MatSetSizes(C, rows, B->cmap->n, rows, B->cmap->n));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)C, &dense, MATSEQDENSE, MATSEQDENSECUDA, ""));
  if (!dense) {
    PetscCall(MatSetType(C, ((PetscObject)B)->type_name));
    PetscCall(MatSetVecType(C, B->defaultvectype));
  }
  PetscCall(MatSetUp(C));
  C->ops->productnumeric = Numeric;
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Takes the product if it is one of a seqaijtcbound matrix or its transpose with a dense one.
PetscErrorCode MatTCBoundDenseProductSetFromOptions(Mat C) {
  Mat_Product *product = C->product;
  PetscBool    ours, dense;

  PetscFunctionBegin;
  if (product->type != MATPRODUCT_AB && product->type != MATPRODUCT_AtB) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatIsSeqAIJTCBound(product->A, &ours));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)product->B, &dense, MATSEQDENSE, MATSEQDENSECUDA, ""));
  // Off-diagonal blocks are multiplied by PETSc, which knows no rounded values.
  if (ours && dense && !static_cast<Mat_SeqAIJTCBound *>(product->A->spptr)->settings.rounds())
    C->ops->productsymbolic = Symbolic;
  PetscFunctionReturn(PETSC_SUCCESS);
}
