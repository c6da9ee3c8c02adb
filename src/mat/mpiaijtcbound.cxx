// The type mpiaijtcbound: a MATMPIAIJ whose diagonal and off-diagonal blocks are seqaijtcbound.
#include "aijtcbound.h"

static struct _MatOps base_ops;
static PetscBool      base_ops_known = PETSC_FALSE;

const struct _MatOps *MatMPIAIJTCBoundBaseOps(void) { return &base_ops; }

PetscErrorCode MatIsMPIAIJTCBound(Mat A, PetscBool *is) { return PetscObjectTypeCompare((PetscObject)A, MATMPIAIJTCBOUND, is); }

static PetscErrorCode AdoptBlock(Mat parent, Mat block, bool off_diagonal) {
  const char        *name = ((PetscObject)parent)->name ? ((PetscObject)parent)->name : ((PetscObject)parent)->prefix;
  const char        *what = off_diagonal ? "offdiag" : "diag";
  TCBoundMatSettings settings;

  PetscFunctionBegin;
  TCBoundCallCXX(settings = static_cast<Mat_MPIAIJTCBound *>(parent->spptr)->settings);
  settings.in_place = off_diagonal;               // it adds to what the diagonal block's product wrote
  PetscCall(MatSetType(block, MATSEQAIJTCBOUND)); // keeps the values of a MATSEQAIJ
  PetscCall(MatSeqAIJTCBoundApplySettings(block, settings));
#if PetscDefined(HAVE_DEVICE)
  block->boundtocpu = parent->boundtocpu;
#endif
  TCBoundCallCXX(static_cast<Mat_SeqAIJTCBound *>(block->spptr)->label =
                   std::string(name ? name : "") + (name ? " " : "") + what);
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Gives the blocks our type and the parent's settings and binding. Assembly and several of PETSc's own functions make new
// blocks of type MATSEQAIJ, so this follows each of them.
PetscErrorCode MatMPIAIJTCBoundAdoptBlocks(Mat A) {
  Mat diagonal, off_diagonal;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &diagonal, &off_diagonal, NULL));
  if (diagonal) PetscCall(AdoptBlock(A, diagonal, false));
  if (off_diagonal) PetscCall(AdoptBlock(A, off_diagonal, true));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMPIAIJTCBoundApplySettings(Mat A, const TCBoundMatSettings &settings) {
  Mat_MPIAIJTCBound *t = static_cast<Mat_MPIAIJTCBound *>(A->spptr);

  PetscFunctionBegin;
  if (t->settings != settings) {
    TCBoundCallCXX(t->settings = settings);
    PetscCall(MatTCBoundUseDeviceVectors(A, settings));
    if (A->assembled) PetscCall(MatMPIAIJTCBoundAdoptBlocks(A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetFromOptions_MPIAIJTCBound(Mat A, PetscOptionItems items) {
  TCBoundMatSettings settings = static_cast<Mat_MPIAIJTCBound *>(A->spptr)->settings;

  PetscFunctionBegin;
  if (base_ops.setfromoptions) PetscCall((*base_ops.setfromoptions)(A, items));
  PetscCall(TCBoundMatSettingsFromOptions(settings, A));
  PetscCall(MatMPIAIJTCBoundApplySettings(A, settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAssemblyEnd_MPIAIJTCBound(Mat A, MatAssemblyType mode) {
  Mat     off_diagonal;
  VecType type;

  PetscFunctionBegin;
  // The vector that receives the halo is made here, of the off-diagonal block's vector type. (A matrix converted after its
  // assembly keeps a host one, whose entries a device product copies over.)
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &off_diagonal, NULL));
  PetscCall(MatGetVecType(A, &type));
  if (off_diagonal) PetscCall(MatSetVecType(off_diagonal, type));
  PetscCall((*base_ops.assemblyend)(A, mode));
  if (mode == MAT_FINAL_ASSEMBLY) PetscCall(MatMPIAIJTCBoundAdoptBlocks(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Products are MATMPIAIJ's, which call the blocks' operations. This makes sure first that the blocks are ours and up to date:
// what is wrong with them should show before the exchange of the halo is under way.
static PetscErrorCode UpdateBlocks(Mat A) {
  Mat diagonal, off_diagonal;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &diagonal, &off_diagonal, NULL));
  if (diagonal->ops->mult != MatMult_SeqAIJTCBound || off_diagonal->ops->mult != MatMult_SeqAIJTCBound)
    PetscCall(MatMPIAIJTCBoundAdoptBlocks(A));
  PetscCall(MatSeqAIJTCBoundUpdate(diagonal));
  PetscCall(MatSeqAIJTCBoundUpdate(off_diagonal));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMult_MPIAIJTCBound(Mat A, Vec x, Vec y) {
  PetscFunctionBegin;
  PetscCall(UpdateBlocks(A));
  PetscCall((*base_ops.mult)(A, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultAdd_MPIAIJTCBound(Mat A, Vec x, Vec y, Vec z) {
  PetscFunctionBegin;
  PetscCall(UpdateBlocks(A));
  PetscCall((*base_ops.multadd)(A, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultTranspose_MPIAIJTCBound(Mat A, Vec x, Vec y) {
  PetscFunctionBegin;
  PetscCall(UpdateBlocks(A));
  PetscCall((*base_ops.multtranspose)(A, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultTransposeAdd_MPIAIJTCBound(Mat A, Vec x, Vec y, Vec z) {
  PetscFunctionBegin;
  PetscCall(UpdateBlocks(A));
  PetscCall((*base_ops.multtransposeadd)(A, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// MATMPIAIJ's 1-norm sums columns into vectors of the matrix's own type, without bringing their zeros to the host (seen in
// PETSc 3.26: on device vectors the sums start from whatever the host memory holds). It gets host vectors here.
static PetscErrorCode MatNorm_MPIAIJTCBound(Mat A, NormType type, PetscReal *norm) {
  Mat     off_diagonal;
  VecType own;
  char   *saved;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &off_diagonal, NULL));
  PetscCall(MatGetVecType(A, &own));
  PetscCall(PetscStrallocpy(own, &saved));
  PetscCall(MatSetVecType(A, VECSTANDARD));
  PetscCall(MatSetVecType(off_diagonal, VECSTANDARD));
  PetscCall((*base_ops.norm)(A, type, norm));
  PetscCall(MatSetVecType(off_diagonal, saved));
  PetscCall(MatSetVecType(A, saved));
  PetscCall(PetscFree(saved));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDuplicate_MPIAIJTCBound(Mat A, MatDuplicateOption option, Mat *B) {
  PetscFunctionBegin;
  PetscCall((*base_ops.duplicate)(A, option, B));
  PetscCall(MatMPIAIJTCBoundApplySettings(*B, static_cast<Mat_MPIAIJTCBound *>(A->spptr)->settings));
#if PetscDefined(HAVE_DEVICE)
  (*B)->boundtocpu = A->boundtocpu;
#endif
  if ((*B)->assembled) PetscCall(MatMPIAIJTCBoundAdoptBlocks(*B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Strip(Mat A) {
  PetscFunctionBegin;
  delete static_cast<Mat_MPIAIJTCBound *>(A->spptr);
  A->spptr = NULL;
  PetscCall(MatTCBoundCompose(A, PETSC_TRUE, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDestroy_MPIAIJTCBound(Mat A) {
  PetscFunctionBegin;
  PetscCall(Strip(A));
  PetscCall((*base_ops.destroy)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void SetOps(MatOps ops, const struct _MatOps *from) {
  const bool ours = !from;

  ops->mult = ours ? MatMult_MPIAIJTCBound : from->mult;
  ops->multadd = ours ? MatMultAdd_MPIAIJTCBound : from->multadd;
  ops->multtranspose = ours ? MatMultTranspose_MPIAIJTCBound : from->multtranspose;
  ops->multtransposeadd = ours ? MatMultTransposeAdd_MPIAIJTCBound : from->multtransposeadd;
  ops->assemblyend = ours ? MatAssemblyEnd_MPIAIJTCBound : from->assemblyend;
  ops->norm = ours ? MatNorm_MPIAIJTCBound : from->norm;
  ops->duplicate = ours ? MatDuplicate_MPIAIJTCBound : from->duplicate;
  ops->destroy = ours ? MatDestroy_MPIAIJTCBound : from->destroy;
  ops->setfromoptions = ours ? MatSetFromOptions_MPIAIJTCBound : from->setfromoptions;
  ops->view = ours ? MatView_MPIAIJTCBound : from->view;
  ops->getvecs = ours ? MatCreateVecs_TCBound : from->getvecs;
}

PetscErrorCode MatConvert_MPIAIJTCBound_MPIAIJ(Mat A, MatType, MatReuse reuse, Mat *newmat) {
  Mat B, diagonal, off_diagonal;

  PetscFunctionBegin;
  PetscCall(MatTCBoundConversionTarget(A, reuse, newmat, &B));
  if (!B) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(B, &diagonal, &off_diagonal, NULL));
  if (diagonal) PetscCall(MatConvert(diagonal, MATSEQAIJ, MAT_INPLACE_MATRIX, &diagonal));
  if (off_diagonal) PetscCall(MatConvert(off_diagonal, MATSEQAIJ, MAT_INPLACE_MATRIX, &off_diagonal));
  PetscCall(Strip(B));
  SetOps(B->ops, &base_ops);
#if PetscDefined(HAVE_DEVICE)
  B->boundtocpu = PETSC_TRUE;
#endif
  PetscCall(MatSetVecType(B, VECSTANDARD));
  PetscCall(PetscObjectChangeTypeName((PetscObject)B, MATMPIAIJ));
  *newmat = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatConvert_MPIAIJ_MPIAIJTCBound(Mat A, MatType, MatReuse reuse, Mat *newmat) {
  Mat       B;
  PetscBool already;

  PetscFunctionBegin;
  PetscCall(MatTCBoundConversionTarget(A, reuse, newmat, &B));
  if (!B) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatIsMPIAIJTCBound(B, &already));
  if (!already) {
    PetscCall(MatTCBoundCheckConvertible(B));
    if (!base_ops_known) {
      base_ops = B->ops[0];
      base_ops_known = PETSC_TRUE;
    }
    Mat_MPIAIJTCBound *t = NULL;
    TCBoundCallCXX(t = new Mat_MPIAIJTCBound);
    B->spptr = t;
    SetOps(B->ops, NULL);
    PetscCall(PetscObjectChangeTypeName((PetscObject)B, MATMPIAIJTCBOUND));
    PetscCall(MatTCBoundCompose(B, PETSC_TRUE, PETSC_TRUE));
    PetscCall(TCBoundMatSettingsFromOptions(t->settings, B));
    PetscCall(MatTCBoundUseDeviceVectors(B, t->settings));
    if (B->assembled) PetscCall(MatMPIAIJTCBoundAdoptBlocks(B));
  }
  *newmat = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   MATMPIAIJTCBOUND - "mpiaijtcbound" - A `MATMPIAIJ` whose diagonal and off-diagonal blocks are `MATSEQAIJTCBOUND`.

   Options Database Keys:
+  -mat_type aijtcbound                                  - this type on several ranks, `MATSEQAIJTCBOUND` on one
.  -mat_tcbound_backend (auto|host|cuda_core|cusparse|tensor_core) - where products run; auto takes a device if there is one
.  -mat_tcbound_format (auto|csr|compact|diagonals|sell|tiles|fragments) - how the blocks are stored for products
.  -mat_tcbound_mma (auto|m8n8k4|m16n8k4|m16n8k8|m16n8k16) - the FP64 matrix instruction of kernels on tensor cores
.  -mat_tcbound_tune (model|measure)                     - choose among kernels by the bytes they move, or by timing them
.  -mat_tcbound_tune_seconds s                           - seconds after which measuring tries no further kernel (10)
.  -mat_tcbound_reproducible (true|false)                - the same bits in every run (default); without, cusparse takes the
                                                           faster of its algorithms
.  -mat_tcbound_value_precision (fp64|fp32|bf16)         - lossy: round the values that products use
.  -mat_tcbound_product_precision (fp64|tf32|bf16)       - lossy: round values and x of products and add up in FP32, on a GPU
-  -mat_tcbound_compare (true|false)                     - also run every other kernel that can on the input of each product

   Level: beginner

.seealso: `MATAIJTCBOUND`, `MATSEQAIJTCBOUND`, `MatTCBoundSetBackend()`, `MatTCBoundGetInfo()`
M*/
PetscErrorCode MatCreate_MPIAIJTCBound(Mat A) {
  PetscFunctionBegin;
  PetscCall(MatSetType(A, MATMPIAIJ));
  A->hash_active = PETSC_FALSE; // MatSetType() leaves it set where it throws away a MATMPIAIJ in mid-assembly
  PetscCall(MatConvert_MPIAIJ_MPIAIJTCBound(A, MATMPIAIJTCBOUND, MAT_INPLACE_MATRIX, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   MATAIJTCBOUND - "aijtcbound" - `MATSEQAIJTCBOUND` on one rank, `MATMPIAIJTCBOUND` on several.

   Level: beginner

.seealso: `MATSEQAIJTCBOUND`, `MATMPIAIJTCBOUND`
M*/
