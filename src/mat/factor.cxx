// cuSPARSE's triangular solves (MATSOLVERCUSPARSE) for seqaijtcbound. PETSc's factorizations there want a SEQAIJCUSPARSE
// matrix, so the factor keeps such a copy of the matrix beside it and its operations are called with that copy.
#include "aijtcbound.h"

#if PetscDefined(HAVE_CUDA)

static const char ShadowName[] = "tcbound_cusparse_copy";

// PETSc's own operations of a factor, kept while ours stand in its ops table, and what its transposed solves need besides.
struct FactorOps {
  struct _MatOps base;
  PetscBool      symbolic_done = PETSC_FALSE;
  IS             row = NULL, col = NULL;                // of the symbolic step of an LU or ILU
  MatFactorInfo  symbolic_info = {}, numeric_info = {}; // of the last steps
  PetscInt       factorizations = 0;                    // numeric ones
  PetscInt       transposed_solves_of = 0;              // the one that PETSc set up transposed solves for; 0: none yet
  Mat            transposed = NULL;                     // a factor for transposed solves alone, of the last factorization
  Vec            device_b = NULL, device_x = NULL;      // stand for host vectors and permuted ones
  VecScatter     from_col_to_row = NULL; // of one of these to the other; NULL where the two orderings are the same
};

static PetscErrorCode FactorOpsDestroy(PetscCtxRt ctx) {
  PetscFunctionBegin;
  FactorOps *ops = *static_cast<FactorOps **>(ctx);

  PetscCall(ISDestroy(&ops->row));
  PetscCall(ISDestroy(&ops->col));
  PetscCall(MatDestroy(&ops->transposed));
  PetscCall(VecDestroy(&ops->device_b));
  PetscCall(VecDestroy(&ops->device_x));
  PetscCall(VecScatterDestroy(&ops->from_col_to_row));
  delete ops;
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

static PetscErrorCode IsDeviceVec(Vec v, PetscBool *is) {
  PetscBool bound;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)v, is, VECSEQCUDA, VECMPICUDA, ""));
  PetscCall(VecBoundToCPU(v, &bound));
  if (bound) *is = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetDeviceVectors(Mat F, FactorOps *ops) {
  PetscFunctionBegin;
  if (ops->device_b) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecCreateSeqCUDA(PETSC_COMM_SELF, F->rmap->n, &ops->device_b));
  PetscCall(VecDuplicate(ops->device_b, &ops->device_x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// PETSc's cuSPARSE solves take device vectors only (given others, 3.26 computes on memory that is not theirs), but a matrix
// of ours works with host vectors too: those go through device vectors.
static PetscErrorCode SolveOnDevice(Mat F, FactorOps *ops, PetscErrorCode (*solve)(Mat, Vec, Vec), Vec b, Vec x) {
  PetscBool b_device, x_device;

  PetscFunctionBegin;
  PetscCall(IsDeviceVec(b, &b_device));
  PetscCall(IsDeviceVec(x, &x_device));
  if (b_device && x_device) {
    PetscCall((*solve)(F, b, x));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(GetDeviceVectors(F, ops));
  PetscCall(VecCopy(b, ops->device_b));
  PetscCall((*solve)(F, ops->device_b, ops->device_x));
  PetscCall(VecCopy(ops->device_x, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(Mat F, Vec b, Vec x) {
  FactorOps *ops;

  PetscFunctionBegin;
  PetscCall(GetFactorOps(F, &ops));
  PetscCall(SolveOnDevice(F, ops, ops->base.solve, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The factor whose transposed solve knows the last factorization's values. PETSc (seen in 3.26.1, in each of its three LU and ILU
  paths) does cuSPARSE's analysis for transposed solves at the first one, which copies the values, and never again: where CUDA
  has cusparseSpSV_updateMatrix(), a new factorization updates the copies of the plain solves only. So a factor that has solved
  transposed with earlier values is joined by one made from the same matrix, orderings and settings, once a factorization and
  only when a transposed solve asks for it. (Cholesky and ICC do update both of their triangular solves.)
*/
static PetscErrorCode GetTransposedFactor(Mat F, FactorOps *ops, Mat *T) {
  Mat S;

  PetscFunctionBegin;
  if (!ops->transposed_solves_of) ops->transposed_solves_of = ops->factorizations;
  *T = F;
  if (ops->transposed_solves_of == ops->factorizations) PetscFunctionReturn(PETSC_SUCCESS);
  if (!ops->transposed) {
    PetscCall(PetscObjectQuery((PetscObject)F, ShadowName, (PetscObject *)&S));
    PetscCall(MatGetFactor(S, MATSOLVERCUSPARSE, F->factortype, &ops->transposed));
    if (F->factortype == MAT_FACTOR_ILU)
      PetscCall(MatILUFactorSymbolic(ops->transposed, S, ops->row, ops->col, &ops->symbolic_info));
    else
      PetscCall(MatLUFactorSymbolic(ops->transposed, S, ops->row, ops->col, &ops->symbolic_info));
    PetscCall(MatLUFactorNumeric(ops->transposed, S, &ops->numeric_info));
  }
  *T = ops->transposed;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  PETSc (seen in 3.26.1) orders b by the rows and x by the columns in a transposed solve too, where it is the other way round:
  with R and C the row and the column ordering, R A C' = L U, it takes b[R] for b[C] and gives x[C] for x[R]. That is the same
  where R = C. Elsewhere a copy of b with entry C[i] at place R[i] takes the place of b, and x is moved likewise.
*/
static PetscErrorCode SolveTranspose(Mat F, Vec b, Vec x) {
  FactorOps *ops;
  Mat        T;

  PetscFunctionBegin;
  PetscCall(GetFactorOps(F, &ops));
  PetscCall(GetTransposedFactor(F, ops, &T));
  if (!ops->from_col_to_row) {
    PetscCall(SolveOnDevice(T, ops, ops->base.solvetranspose, b, x));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecCopy(b, ops->device_x));
  PetscCall(VecScatterBegin(ops->from_col_to_row, ops->device_x, ops->device_b, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecScatterEnd(ops->from_col_to_row, ops->device_x, ops->device_b, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall((*ops->base.solvetranspose)(T, ops->device_b, ops->device_x));
  PetscCall(VecScatterBegin(ops->from_col_to_row, ops->device_x, ops->device_b, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecScatterEnd(ops->from_col_to_row, ops->device_x, ops->device_b, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecCopy(ops->device_b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// After a numeric step, which sets the solves anew: puts ours before them.
static PetscErrorCode WrapSolves(Mat F, FactorOps *ops, PetscErrorCode (*solve_transpose)(Mat, Vec, Vec)) {
  PetscFunctionBegin;
  ops->factorizations++;
  PetscCall(MatDestroy(&ops->transposed));
  if (F->ops->solve && F->ops->solve != Solve) {
    ops->base.solve = F->ops->solve;
    F->ops->solve = Solve;
  }
  if (F->ops->solvetranspose && F->ops->solvetranspose != solve_transpose) {
    ops->base.solvetranspose = F->ops->solvetranspose;
    F->ops->solvetranspose = solve_transpose;
  }
  // PETSc's factorizations on the host leave these two, which solve there; without, MatSolveAdd() adds to the solves above.
  F->ops->solveadd = NULL;
  F->ops->solvetransposeadd = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LUFactorNumeric(Mat F, Mat A, const MatFactorInfo *info) {
  FactorOps *ops;
  Mat        S;

  PetscFunctionBegin;
  PetscCall(GetFactorOps(F, &ops));
  PetscCall(GetShadow(F, A, &S));
  PetscCall((*ops->base.lufactornumeric)(F, S, info));
  ops->numeric_info = *info;
  PetscCall(WrapSolves(F, ops, SolveTranspose));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CholeskyFactorNumeric(Mat F, Mat A, const MatFactorInfo *info) {
  FactorOps *ops;
  Mat        S;

  PetscFunctionBegin;
  PetscCall(GetFactorOps(F, &ops));
  PetscCall(GetShadow(F, A, &S));
  PetscCall((*ops->base.choleskyfactornumeric)(F, S, info));
  PetscCall(WrapSolves(F, ops, Solve)); // a symmetric factor's transposed solve is the plain one
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

// PETSc's cuSPARSE factor (seen in 3.26.1) frees its arrays at a second symbolic step, and uses them after. Its PCs make new
// factors instead.
static PetscErrorCode CheckFirstSymbolic(FactorOps *ops) {
  PetscFunctionBegin;
  PetscCheck(!ops->symbolic_done, PETSC_COMM_SELF, PETSC_ERR_SUP,
             "PETSc's cuSPARSE factors take one symbolic factorization; MatGetFactor() gives another one");
  ops->symbolic_done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Keeps what a second factor for transposed solves is made with.
static PetscErrorCode KeepOrderings(Mat F, FactorOps *ops, IS row, IS col, const MatFactorInfo *info) {
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(PetscObjectReference((PetscObject)row));
  PetscCall(PetscObjectReference((PetscObject)col));
  ops->row = row;
  ops->col = col;
  ops->symbolic_info = *info;
  PetscCall(ISEqualUnsorted(row, col, &same)); // ISEqual() would sort them first
  if (same) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GetDeviceVectors(F, ops));
  PetscCall(VecScatterCreate(ops->device_x, col, ops->device_b, row, &ops->from_col_to_row));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LUSymbolic(Mat F, Mat A, IS row, IS col, const MatFactorInfo *info) {
  FactorOps *ops;
  Mat        S;

  PetscFunctionBegin;
  PetscCall(GetFactorOps(F, &ops));
  PetscCall(CheckFirstSymbolic(ops));
  PetscCall(GetShadow(F, A, &S));
  PetscCall(F->factortype == MAT_FACTOR_ILU ? (*ops->base.ilufactorsymbolic)(F, S, row, col, info)
                                            : (*ops->base.lufactorsymbolic)(F, S, row, col, info));
  PetscCall(KeepOrderings(F, ops, row, col, info));
  WrapNumeric(F, ops);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CholeskySymbolic(Mat F, Mat A, IS perm, const MatFactorInfo *info) {
  FactorOps *ops;
  Mat        S;

  PetscFunctionBegin;
  PetscCall(GetFactorOps(F, &ops));
  PetscCall(CheckFirstSymbolic(ops));
  PetscCall(GetShadow(F, A, &S));
  PetscCall(F->factortype == MAT_FACTOR_ICC ? (*ops->base.iccfactorsymbolic)(F, S, perm, info)
                                            : (*ops->base.choleskyfactorsymbolic)(F, S, perm, info));
  WrapNumeric(F, ops);
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Whether a factor of A belongs on the device, and if not, why.
static PetscErrorCode UseDevice(Mat A, PetscBool *use, std::string *why_not) {
  const TCBoundMatSettings &settings = static_cast<Mat_SeqAIJTCBound *>(A->spptr)->settings;
  tcbound::Executor        *executor;
  const char               *no_device;

  PetscFunctionBegin;
  PetscCall(TCBoundMatSettingsUseDevice(settings, use));
  if (*use) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TCBoundGetCUDAExecutor(&executor, &no_device));
  *why_not = executor ? "the products of this matrix run on the host (-mat_tcbound_backend " + settings.backend +
                          ", -mat_tcbound_format " + settings.format + ")"
                      : no_device;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetCUSPARSEFactor(Mat A, MatFactorType ftype, Mat *F) {
  Mat        S;
  FactorOps *ops = NULL;

  PetscFunctionBegin;
  // PCs ask for the factor before the matrix is assembled, so an empty matrix of the same sizes stands for it here.
  PetscCall(MatCreate(PetscObjectComm((PetscObject)A), &S));
  PetscCall(MatSetSizes(S, A->rmap->n, A->cmap->n, A->rmap->N, A->cmap->N));
  PetscCall(MatSetBlockSizesFromMats(S, A, A));
  PetscCall(MatSetType(S, MATSEQAIJCUSPARSE));
  PetscCall(MatSeqAIJSetPreallocation(S, 0, NULL));
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

// For a caller that names no solver: cuSPARSE's factor on a device, PETSc's on the host.
static PetscErrorCode MatGetFactor_seqaijtcbound_unnamed(Mat A, MatFactorType ftype, Mat *F) {
  PetscBool   bound, use;
  std::string why_not;

  PetscFunctionBegin;
  *F = NULL;
  PetscCall(MatBoundToCPU(A, &bound));
  PetscCall(UseDevice(A, &use, &why_not));
  PetscCall(use && !bound ? GetCUSPARSEFactor(A, ftype, F) : MatGetFactor(A, MATSOLVERPETSC, ftype, F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// For a caller that names cusparse, be it by an option of a PC. Where that cannot be had it is an error, as for MATAIJ. Only a
// matrix that could use the device and has been bound to the CPU gets PETSc's factor: MatBindToCPU() and -dm_bind_below ask for
// the host, and MATSEQAIJCUSPARSE obeys them so too.
static PetscErrorCode MatGetFactor_seqaijtcbound_cusparse(Mat A, MatFactorType ftype, Mat *F) {
  PetscBool   bound, use;
  std::string why_not;

  PetscFunctionBegin;
  *F = NULL;
  PetscCall(MatBoundToCPU(A, &bound));
  PetscCall(UseDevice(A, &use, &why_not));
  PetscCheck(
    use, PETSC_COMM_SELF, PETSC_ERR_MISSING_FACTOR,
    "cuSPARSE's %s factorization (-%spc_factor_mat_solver_type cusparse) cannot run here: %s. The solver type petsc can",
    MatFactorTypes[ftype], A->factorprefix ? A->factorprefix : "", why_not.c_str());
  PetscCall(bound ? MatGetFactor(A, MATSOLVERPETSC, ftype, F) : GetCUSPARSEFactor(A, ftype, F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  PETSc does not tell these functions whether the caller named the solver. But it looks an unnamed one up by the matrix's whole
  type first, and a named one by the first registered type that the matrix's type begins with. So the function for the named
  one is registered first, under the beginning of our type's name.
*/
PetscErrorCode MatTCBoundRegisterFactors(void) {
  static const char begins_our_type[] = "seqaijtcb";

  PetscFunctionBegin;
  for (MatFactorType ftype : {MAT_FACTOR_LU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ILU, MAT_FACTOR_ICC})
    PetscCall(MatSolverTypeRegister(MATSOLVERCUSPARSE, begins_our_type, ftype, MatGetFactor_seqaijtcbound_cusparse));
  for (MatFactorType ftype : {MAT_FACTOR_LU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ILU, MAT_FACTOR_ICC})
    PetscCall(MatSolverTypeRegister(MATSOLVERCUSPARSE, MATSEQAIJTCBOUND, ftype, MatGetFactor_seqaijtcbound_unnamed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#else

PetscErrorCode MatTCBoundRegisterFactors(void) { return PETSC_SUCCESS; }

#endif
