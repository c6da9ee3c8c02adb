// cuSPARSE's triangular solves (MATSOLVERCUSPARSE) for seqaijtcbound. PETSc's factorizations there want a SEQAIJCUSPARSE
// matrix, so the factor keeps such a copy of the matrix beside it and its operations are called with that copy.
#include "aijtcbound.h"

#if PetscDefined(HAVE_CUDA)

static const char ShadowName[] = "tcbound_cusparse_copy";

// PETSc's own operations of a factor, kept while ours stand in its ops table.
struct FactorOps {
  struct _MatOps base;
};

static PetscErrorCode FactorOpsDestroy(PetscCtxRt ctx) {
  PetscFunctionBegin;
  delete *static_cast<FactorOps **>(ctx);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetFactorOps(Mat F, FactorOps **ops) {
  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)F, "tcbound_factor_ops", ops));
  PetscCheck(*ops, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The factor was not made by tcbound");
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The SEQAIJCUSPARSE copy of A that belongs to factor F, with A's present pattern and values.
static PetscErrorCode GetShadow(Mat F, Mat A, Mat *S) {
  PetscFunctionBegin;
  PetscCall(MatConvert(A, MATSEQAIJCUSPARSE, MAT_INITIAL_MATRIX, S));
  PetscCall(PetscObjectCompose((PetscObject)F, ShadowName, (PetscObject)*S)); // replaces the one before
  PetscCall(MatDestroy(S));
  PetscCall(PetscObjectQuery((PetscObject)F, ShadowName, (PetscObject *)S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LUFactorNumeric(Mat F, Mat A, const MatFactorInfo *info) {
  FactorOps *ops;
  Mat        S;

  PetscFunctionBegin;
  PetscCall(GetFactorOps(F, &ops));
  PetscCall(GetShadow(F, A, &S));
  PetscCall((*ops->base.lufactornumeric)(F, S, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CholeskyFactorNumeric(Mat F, Mat A, const MatFactorInfo *info) {
  FactorOps *ops;
  Mat        S;

  PetscFunctionBegin;
  PetscCall(GetFactorOps(F, &ops));
  PetscCall(GetShadow(F, A, &S));
  PetscCall((*ops->base.choleskyfactornumeric)(F, S, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// After a symbolic step: puts our numeric step before PETSc's.
static void WrapNumeric(Mat F, FactorOps *ops) {
  if (F->ops->lufactornumeric && F->ops->lufactornumeric != LUFactorNumeric) {
    ops->base.lufactornumeric = F->ops->lufactornumeric;
    F->ops->lufactornumeric = LUFactorNumeric;
  }
  if (F->ops->choleskyfactornumeric && F->ops->choleskyfactornumeric != CholeskyFactorNumeric) {
    ops->base.choleskyfactornumeric = F->ops->choleskyfactornumeric;
    F->ops->choleskyfactornumeric = CholeskyFactorNumeric;
  }
}

static PetscErrorCode LUSymbolic(Mat F, Mat A, IS row, IS col, const MatFactorInfo *info) {
  FactorOps *ops;
  Mat        S;

  PetscFunctionBegin;
  PetscCall(GetFactorOps(F, &ops));
  PetscCall(GetShadow(F, A, &S));
  PetscCall(F->factortype == MAT_FACTOR_ILU ? (*ops->base.ilufactorsymbolic)(F, S, row, col, info)
                                            : (*ops->base.lufactorsymbolic)(F, S, row, col, info));
  WrapNumeric(F, ops);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CholeskySymbolic(Mat F, Mat A, IS perm, const MatFactorInfo *info) {
  FactorOps *ops;
  Mat        S;

  PetscFunctionBegin;
  PetscCall(GetFactorOps(F, &ops));
  PetscCall(GetShadow(F, A, &S));
  PetscCall(F->factortype == MAT_FACTOR_ICC ? (*ops->base.iccfactorsymbolic)(F, S, perm, info)
                                            : (*ops->base.choleskyfactorsymbolic)(F, S, perm, info));
  WrapNumeric(F, ops);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetFactor_seqaijtcbound_cusparse(Mat A, MatFactorType ftype, Mat *F) {
  Mat        S;
  FactorOps *ops = NULL;
  PetscBool  bound, use;

  PetscFunctionBegin;
  *F = NULL;
  PetscCall(MatBoundToCPU(A, &bound));
  PetscCall(TCBoundMatSettingsUseDevice(static_cast<Mat_SeqAIJTCBound *>(A->spptr)->settings, &use));
  if (bound || !use) PetscFunctionReturn(PETSC_SUCCESS); // not offered: PETSc goes on to its host factorization
  PetscCall(MatConvert(A, MATSEQAIJCUSPARSE, MAT_INITIAL_MATRIX, &S));
  PetscCall(MatGetFactor(S, MATSOLVERCUSPARSE, ftype, F));
  PetscCall(MatDestroy(&S));
  TCBoundCallCXX(ops = new FactorOps{(*F)->ops[0]});
  PetscCall(PetscObjectContainerCompose((PetscObject)*F, "tcbound_factor_ops", ops, FactorOpsDestroy));
  if (ftype == MAT_FACTOR_LU)
    (*F)->ops->lufactorsymbolic = LUSymbolic;
  else if (ftype == MAT_FACTOR_ILU)
    (*F)->ops->ilufactorsymbolic = LUSymbolic;
  else if (ftype == MAT_FACTOR_CHOLESKY)
    (*F)->ops->choleskyfactorsymbolic = CholeskySymbolic;
  else
    (*F)->ops->iccfactorsymbolic = CholeskySymbolic;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCBoundRegisterFactors(void) {
  PetscFunctionBegin;
  for (MatFactorType ftype : {MAT_FACTOR_LU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ILU, MAT_FACTOR_ICC})
    PetscCall(MatSolverTypeRegister(MATSOLVERCUSPARSE, MATSEQAIJTCBOUND, ftype, MatGetFactor_seqaijtcbound_cusparse));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#else

PetscErrorCode MatTCBoundRegisterFactors(void) { return PETSC_SUCCESS; }

#endif
