// Conversions to and from types other than the base type, and products with matrices of other types. PETSc finds both by
// the exact names of the types, so those of MATSEQAIJ and MATMPIAIJ are offered again for ours.
#include "aijtcbound.h"

PetscErrorCode MatTCBoundConversionTarget(Mat A, MatReuse reuse, Mat *newmat, Mat *target) {
  PetscFunctionBegin;
  *target = NULL;
  if (reuse == MAT_REUSE_MATRIX)
    PetscCall(MatCopy(A, *newmat, DIFFERENT_NONZERO_PATTERN));
  else if (reuse == MAT_INITIAL_MATRIX)
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, target));
  else
    *target = A;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCBoundCheckConvertible(Mat A) {
  PetscFunctionBegin;
  // During assembly without preallocation the ops table is a temporary one; set-up has then been done in another type.
  PetscCheck(!A->hash_active, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE,
             "Set the matrix type before MatSetUp() or after the assembly");
  PetscCheck(!A->spptr, PetscObjectComm((PetscObject)A), PETSC_ERR_PLIB, "The matrix already belongs to another derived type");
  PetscFunctionReturn(PETSC_SUCCESS);
}

// From one of our types to any type that MATSEQAIJ or MATMPIAIJ converts to.
static PetscErrorCode ConvertFromTCBound(Mat A, MatType type, MatReuse reuse, Mat *newmat) {
  Mat       base;
  PetscBool parallel, derived;

  PetscFunctionBegin;
  PetscCall(MatIsMPIAIJTCBound(A, &parallel));
  const MatType base_type = parallel ? MATMPIAIJ : MATSEQAIJ;
  // The type may be a root name: aijperm for seqaijperm.
  PetscCall(PetscStrbeginswith(type, "aij", &derived));
  if (!derived) PetscCall(PetscStrbeginswith(type, base_type, &derived));
  if (reuse == MAT_REUSE_MATRIX && derived) { // PETSc's conversions to most of these leave the old values there
    PetscCall(MatCopy(A, *newmat, DIFFERENT_NONZERO_PATTERN));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (reuse == MAT_INPLACE_MATRIX) {
    PetscCall(MatConvert(A, base_type, MAT_INPLACE_MATRIX, &A));
    PetscCall(MatConvert(A, type, MAT_INPLACE_MATRIX, &A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatConvert(A, base_type, MAT_INITIAL_MATRIX, &base));
  PetscCall(MatConvert(base, type, reuse, newmat));
  PetscCall(MatDestroy(&base));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// From a type derived from MATSEQAIJ or MATMPIAIJ to ours.
static PetscErrorCode ConvertToTCBound(Mat A, MatType type, MatReuse reuse, Mat *newmat) {
  Mat         base;
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &base));
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(MatCopy(base, *newmat, DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatDestroy(&base));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatConvert(base, type, MAT_INPLACE_MATRIX, &base));
  if (reuse == MAT_INPLACE_MATRIX)
    PetscCall(MatHeaderReplace(A, &base));
  else
    *newmat = base;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ComposeOne(Mat A, const char pattern[], const char other[], PetscErrorCodeFn *function) {
  char name[256];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(name, sizeof(name), pattern, other));
  PetscCall(PetscObjectComposeFunction_Private((PetscObject)A, name, function));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ComposeConversions(Mat A, PetscBool parallel, PetscBool compose) {
  static const char *const seq_from[] = {"seqdense",   "seqbaij",    "seqsbaij",  "seqsell",
                                         "seqaijperm", "seqaijsell", "seqaijcrl", "seqaijcusparse"};
  static const char *const mpi_from[] = {"mpidense",   "mpibaij",    "mpisbaij",  "mpisell",
                                         "mpiaijperm", "mpiaijsell", "mpiaijcrl", "mpiaijcusparse"};
  static const char *const seq_to[] = {"seqaijperm", "seqaijsell", "seqaijcrl", "seqaijcusparse", "seqmaij"};
  static const char *const mpi_to[] = {"mpiaijperm", "mpiaijsell", "mpiaijcrl", "mpiaijcusparse", "mpimaij"};
  PetscErrorCodeFn        *from = compose ? (PetscErrorCodeFn *)ConvertFromTCBound : NULL;
  PetscErrorCodeFn        *to = compose ? (PetscErrorCodeFn *)ConvertToTCBound : NULL;

  PetscFunctionBegin;
  for (const char *type : parallel ? mpi_from : seq_from)
    PetscCall(ComposeOne(A, parallel ? "MatConvert_mpiaijtcbound_%s_C" : "MatConvert_seqaijtcbound_%s_C", type, from));
  for (const char *type : parallel ? mpi_to : seq_to)
    PetscCall(ComposeOne(A, parallel ? "MatConvert_%s_mpiaijtcbound_C" : "MatConvert_%s_seqaijtcbound_C", type, to));
  if (parallel) {
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatConvert_mpiaij_mpiaijtcbound_C",
                                         compose ? MatConvert_MPIAIJ_MPIAIJTCBound : NULL));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatConvert_mpiaijtcbound_mpiaij_C",
                                         compose ? MatConvert_MPIAIJTCBound_MPIAIJ : NULL));
  } else {
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatConvert_seqaij_seqaijtcbound_C",
                                         compose ? MatConvert_SeqAIJ_SeqAIJTCBound : NULL));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatConvert_seqaijtcbound_seqaij_C",
                                         compose ? MatConvert_SeqAIJTCBound_SeqAIJ : NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char AnyType[] = "MatProductSetFromOptions_anytype_C";

static PetscErrorCode BaseTypeName(Mat A, const char **name) {
  PetscBool seq, mpi;

  PetscFunctionBegin;
  PetscCall(MatIsSeqAIJTCBound(A, &seq));
  PetscCall(MatIsMPIAIJTCBound(A, &mpi));
  *name = seq ? MATSEQAIJ : mpi ? MATMPIAIJ : ((PetscObject)A)->type_name;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Products of our types with others (dense, MAIJ, transposed, ...): PETSc keeps them by the exact names of the types in one of
  the matrices, and asks for "anytype" when it finds none. This looks again with the names of the base types.
*/
static PetscErrorCode MatProductSetFromOptions_TCBound(Mat P) {
  Mat_Product *product = P->product;
  Mat          mats[] = {product->A, product->B, product->C};
  char         name[256] = "MatProductSetFromOptions";
  const char  *type = NULL;
  PetscErrorCode (*f)(Mat) = NULL;

  PetscFunctionBegin;
  PetscCall(MatTCBoundDenseProductSetFromOptions(P));
  if (P->ops->productsymbolic) PetscFunctionReturn(PETSC_SUCCESS);
  for (Mat M : mats) {
    if (!M) continue;
    PetscCall(BaseTypeName(M, &type));
    PetscCall(PetscStrlcat(name, "_", sizeof(name)));
    PetscCall(PetscStrlcat(name, type, sizeof(name)));
  }
  PetscCall(PetscStrlcat(name, "_C", sizeof(name)));
  for (Mat M : mats)
    if (M && !f) PetscCall(PetscObjectQueryFunction((PetscObject)M, name, &f));
  if (f) PetscCall((*f)(P));
  // What the other matrices know to do with any type, which ours hides.
  for (Mat M : mats) {
    if (!M || P->ops->productsymbolic) continue;
    PetscCall(PetscObjectQueryFunction((PetscObject)M, AnyType, &f));
    if (f && f != MatProductSetFromOptions_TCBound) PetscCall((*f)(P));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode (*base_retrieve[2])(Mat); // MATSEQAIJ's, MATMPIAIJ's

// The base function overwrites the values, and in PETSc 3.24.0 nothing then counts the matrix's state up.
static PetscErrorCode MatRetrieveValues_TCBound(Mat A) {
  PetscBool parallel;

  PetscFunctionBegin;
  PetscCall(MatIsMPIAIJTCBound(A, &parallel));
  PetscCall((*base_retrieve[parallel])(A));
  PetscCall(PetscObjectStateIncrease((PetscObject)A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ComposeRetrieve(Mat A, PetscBool parallel, PetscBool compose) {
  PetscObject obj = (PetscObject)A;

  PetscFunctionBegin;
  if (!base_retrieve[parallel]) PetscCall(PetscObjectQueryFunction(obj, "MatRetrieveValues_C", &base_retrieve[parallel]));
  PetscCall(
    PetscObjectComposeFunction(obj, "MatRetrieveValues_C", compose ? MatRetrieveValues_TCBound : base_retrieve[parallel]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCBoundCompose(Mat A, PetscBool parallel, PetscBool compose) {
  PetscFunctionBegin;
  // MatHeaderMerge() frees what is composed before it calls the type's destroy; to compose anew would leak.
  if (!compose && !((PetscObject)A)->qlist) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(ComposeConversions(A, parallel, compose));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, AnyType, compose ? MatProductSetFromOptions_TCBound : NULL));
  PetscCall(MatTCBoundComposeCOO(A, parallel, compose));
  PetscCall(ComposeRetrieve(A, parallel, compose));
  PetscFunctionReturn(PETSC_SUCCESS);
}
