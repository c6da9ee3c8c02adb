// PETSc's own factorizations for stenciltcbound on one rank: they factor the AIJ copy of the matrix. The coarse grid of a PCMG has them
// by default, and so has a solver that names no preconditioner.
#include "stenciltcbound.h"

static const char OpsName[] = "tcbound_stencil_factor_ops";

// The operations of PETSc's factor, whose place ours take.
struct StencilFactorOps {
  struct _MatOps base;
};

// PETSc 3.24 passes a void **, later ones a void * that is one.
template <class Context> static PetscErrorCode OpsDestroy(Context ctx) {
  PetscFunctionBegin;
  delete *static_cast<StencilFactorOps **>(static_cast<void *>(ctx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetOps(Mat F, StencilFactorOps **ops) {
  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)F, OpsName, ops));
  PetscCheck(*ops, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The factor was not made by tcbound");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LUNumeric(Mat F, Mat A, const MatFactorInfo *info) {
  StencilFactorOps *ops;
  Mat               block;

  PetscFunctionBegin;
  PetscCall(GetOps(F, &ops));
  PetscCall(MatGetDiagonalBlock(A, &block));
  PetscCall((*ops->base.lufactornumeric)(F, block, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CholeskyNumeric(Mat F, Mat A, const MatFactorInfo *info) {
  StencilFactorOps *ops;
  Mat               block;

  PetscFunctionBegin;
  PetscCall(GetOps(F, &ops));
  PetscCall(MatGetDiagonalBlock(A, &block));
  PetscCall((*ops->base.choleskyfactornumeric)(F, block, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LUSymbolic(Mat F, Mat A, IS row, IS column, const MatFactorInfo *info) {
  StencilFactorOps *ops;
  Mat               block;

  PetscFunctionBegin;
  PetscCall(GetOps(F, &ops));
  PetscCall(MatGetDiagonalBlock(A, &block));
  PetscCall(F->factortype == MAT_FACTOR_ILU ? (*ops->base.ilufactorsymbolic)(F, block, row, column, info)
                                            : (*ops->base.lufactorsymbolic)(F, block, row, column, info));
  ops->base.lufactornumeric = F->ops->lufactornumeric;
  F->ops->lufactornumeric = LUNumeric;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CholeskySymbolic(Mat F, Mat A, IS permutation, const MatFactorInfo *info) {
  StencilFactorOps *ops;
  Mat               block;

  PetscFunctionBegin;
  PetscCall(GetOps(F, &ops));
  PetscCall(MatGetDiagonalBlock(A, &block));
  PetscCall(F->factortype == MAT_FACTOR_ICC ? (*ops->base.iccfactorsymbolic)(F, block, permutation, info)
                                            : (*ops->base.choleskyfactorsymbolic)(F, block, permutation, info));
  ops->base.choleskyfactornumeric = F->ops->choleskyfactornumeric;
  F->ops->choleskyfactornumeric = CholeskyNumeric;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetFactor_stenciltcbound_petsc(Mat A, MatFactorType type, Mat *F) {
  PetscMPIInt       size;
  Mat               empty;
  StencilFactorOps *ops = NULL;

  PetscFunctionBegin;
  *F = NULL;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  if (size > 1) PetscFunctionReturn(PETSC_SUCCESS); // PETSc has none for AIJ either
  // PCs may ask before the matrix is assembled, so an empty one stands for it.
  PetscCall(MatCreate(PetscObjectComm((PetscObject)A), &empty));
  PetscCall(MatSetSizes(empty, A->rmap->n, A->cmap->n, A->rmap->N, A->cmap->N));
  PetscCall(MatSetBlockSizesFromMats(empty, A, A));
  PetscCall(MatSetType(empty, MATSEQAIJ));
  PetscCall(MatSeqAIJSetPreallocation(empty, 0, NULL));
  PetscCall(MatGetFactor(empty, MATSOLVERPETSC, type, F));
  PetscCall(MatDestroy(&empty));
  TCBoundCallCXX(ops = new StencilFactorOps{(*F)->ops[0]});
  PetscCall(PetscObjectContainerCompose((PetscObject)*F, OpsName, ops, OpsDestroy));
  if (type == MAT_FACTOR_LU || type == MAT_FACTOR_ILU)
    (*F)->ops->lufactorsymbolic = (*F)->ops->ilufactorsymbolic = LUSymbolic;
  else
    (*F)->ops->choleskyfactorsymbolic = (*F)->ops->iccfactorsymbolic = CholeskySymbolic;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatStencilTCBoundRegisterFactors(void) {
  PetscFunctionBegin;
  for (MatFactorType type : {MAT_FACTOR_LU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ILU, MAT_FACTOR_ICC})
    PetscCall(MatSolverTypeRegister(MATSOLVERPETSC, MATSTENCILTCBOUND, type, MatGetFactor_stenciltcbound_petsc));
  PetscFunctionReturn(PETSC_SUCCESS);
}
