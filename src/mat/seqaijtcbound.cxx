// The type seqaijtcbound: a MATSEQAIJ whose products run on tcbound's kernels.
#include "aijtcbound.h"
#include "stenciltcbound.h"

#include "../vec/vectcbound.h"

static struct _MatOps base_ops;
static PetscBool      base_ops_known = PETSC_FALSE;

const struct _MatOps *MatSeqAIJTCBoundBaseOps(void) { return &base_ops; }

PetscErrorCode MatIsSeqAIJTCBound(Mat A, PetscBool *is) { return PetscObjectTypeCompare((PetscObject)A, MATSEQAIJTCBOUND, is); }

// MatCreateVecs() gives device vectors where products run on a device.
PetscErrorCode MatTCBoundUseDeviceVectors(Mat A, const TCBoundMatSettings &settings) {
  PetscBool use;

  PetscFunctionBegin;
  PetscCall(TCBoundMatSettingsUseDevice(settings, &use));
#if PetscDefined(HAVE_DEVICE)
  // Not bound to the CPU if a device is asked for and missing: the first product says so.
  A->boundtocpu = use || TCBoundMatSettingsNeedDevice(settings) ? PETSC_FALSE : PETSC_TRUE;
#endif
  PetscCall(MatSetVecType(A, use ? VECCUDA : VECSTANDARD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Vectors of the matrix's vector type; those of PETSc's standard and CUDA types get our operations, in the memory that they are in.
PetscErrorCode MatCreateVecs_TCBound(Mat A, Vec *right, Vec *left) {
  PetscBool known;

  PetscFunctionBegin;
  A->ops->getvecs = NULL; // for PETSc to make them
  const PetscErrorCode ierr = MatCreateVecs(A, right, left);
  A->ops->getvecs = MatCreateVecs_TCBound;
  PetscCall(ierr);
  for (Vec *v : {right, left}) {
    if (!v) continue;
    PetscCall(PetscObjectTypeCompareAny((PetscObject)*v, &known, VECSEQ, VECMPI, VECSEQCUDA, VECMPICUDA, ""));
    if (known) PetscCall(VecTCBoundAdopt(*v, NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJTCBoundApplySettings(Mat A, const TCBoundMatSettings &settings) {
  Mat_SeqAIJTCBound *t = static_cast<Mat_SeqAIJTCBound *>(A->spptr);

  PetscFunctionBegin;
  if (t->settings != settings) {
    TCBoundCallCXX(t->settings = settings; t->format.reset(); t->compare.reset(); t->kernel = nullptr;
                   t->rounded_from = TCBoundMatSource());
    PetscCall(MatTCBoundUseDeviceVectors(A, settings));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetFromOptions_SeqAIJTCBound(Mat A, PetscOptionItems items) {
  Mat_SeqAIJTCBound *t = static_cast<Mat_SeqAIJTCBound *>(A->spptr);
  TCBoundMatSettings settings = t->settings;

  PetscFunctionBegin;
  if (base_ops.setfromoptions) PetscCall((*base_ops.setfromoptions)(A, items));
  PetscCall(TCBoundMatSettingsFromOptions(settings, A));
  PetscCall(MatSeqAIJTCBoundApplySettings(A, settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDuplicate_SeqAIJTCBound(Mat A, MatDuplicateOption option, Mat *B) {
  PetscFunctionBegin;
  PetscCall((*base_ops.duplicate)(A, option, B)); // gives B this type
  PetscCall(MatSeqAIJTCBoundApplySettings(*B, static_cast<Mat_SeqAIJTCBound *>(A->spptr)->settings));
#if PetscDefined(HAVE_DEVICE)
  (*B)->boundtocpu = A->boundtocpu;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Takes off all that Convert_SeqAIJ_SeqAIJTCBound put on, but for the ops table and the type's name.
static PetscErrorCode Strip(Mat A) {
  PetscFunctionBegin;
  delete static_cast<Mat_SeqAIJTCBound *>(A->spptr);
  A->spptr = NULL;
  PetscCall(MatTCBoundCompose(A, PETSC_FALSE, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDestroy_SeqAIJTCBound(Mat A) {
  PetscFunctionBegin;
  PetscCall(Strip(A));
  PetscCall((*base_ops.destroy)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void SetOps(MatOps ops, const struct _MatOps *from) {
  const bool ours = !from;

  ops->mult = ours ? MatMult_SeqAIJTCBound : from->mult;
  ops->multadd = ours ? MatMultAdd_SeqAIJTCBound : from->multadd;
  ops->multtranspose = ours ? MatMultTranspose_SeqAIJTCBound : from->multtranspose;
  ops->multtransposeadd = ours ? MatMultTransposeAdd_SeqAIJTCBound : from->multtransposeadd;
  ops->getdiagonal = ours ? MatGetDiagonal_SeqAIJTCBound : from->getdiagonal;
  ops->duplicate = ours ? MatDuplicate_SeqAIJTCBound : from->duplicate;
  ops->destroy = ours ? MatDestroy_SeqAIJTCBound : from->destroy;
  ops->setfromoptions = ours ? MatSetFromOptions_SeqAIJTCBound : from->setfromoptions;
  ops->view = ours ? MatView_SeqAIJTCBound : from->view;
  ops->getvecs = ours ? MatCreateVecs_TCBound : from->getvecs;
}

PetscErrorCode MatConvert_SeqAIJTCBound_SeqAIJ(Mat A, MatType, MatReuse reuse, Mat *newmat) {
  Mat B;

  PetscFunctionBegin;
  PetscCall(MatTCBoundConversionTarget(A, reuse, newmat, &B));
  if (!B) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Strip(B));
  SetOps(B->ops, &base_ops);
#if PetscDefined(HAVE_DEVICE)
  B->boundtocpu = PETSC_TRUE;
#endif
  PetscCall(MatSetVecType(B, VECSTANDARD));
  PetscCall(PetscObjectChangeTypeName((PetscObject)B, MATSEQAIJ));
  *newmat = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatConvert_SeqAIJ_SeqAIJTCBound(Mat A, MatType, MatReuse reuse, Mat *newmat) {
  Mat       B;
  PetscBool already;

  PetscFunctionBegin;
  PetscCall(MatTCBoundConversionTarget(A, reuse, newmat, &B));
  if (!B) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatIsSeqAIJTCBound(B, &already)); // under -mat_seqaij_type seqaijtcbound
  if (!already) {
    PetscCall(MatTCBoundCheckConvertible(B));
    if (!base_ops_known) {
      base_ops = B->ops[0];
      base_ops_known = PETSC_TRUE;
    }
    Mat_SeqAIJTCBound *t = NULL;
    TCBoundCallCXX(t = new Mat_SeqAIJTCBound);
    B->spptr = t;
    SetOps(B->ops, NULL);
    PetscCall(PetscObjectChangeTypeName((PetscObject)B, MATSEQAIJTCBOUND));
    PetscCall(MatTCBoundCompose(B, PETSC_FALSE, PETSC_TRUE));
    PetscCall(TCBoundMatSettingsFromOptions(t->settings, B));
    PetscCall(MatTCBoundUseDeviceVectors(B, t->settings));
  }
  *newmat = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   MATSEQAIJTCBOUND - "seqaijtcbound" - A `MATSEQAIJ` whose products run on tcbound's kernels: on the host, on a GPU's CUDA
   cores, or by cuSPARSE.

   Options Database Keys:
+  -mat_type aijtcbound                                  - this type on one rank, `MATMPIAIJTCBOUND` on several
.  -mat_tcbound_backend (auto|host|cuda_core|cusparse|tensor_core) - where products run; auto takes a device if there is one
.  -mat_tcbound_format (auto|csr|compact|diagonals|sell|tiles|fragments) - how the matrix is stored for products
.  -mat_tcbound_mma (auto|m8n8k4|m16n8k4|m16n8k8|m16n8k16) - the FP64 matrix instruction of kernels on tensor cores
.  -mat_tcbound_tune (model|measure)                     - choose among kernels by the bytes they move, or by timing them
.  -mat_tcbound_tune_seconds s                           - seconds after which measuring tries no further kernel (10)
.  -mat_tcbound_reproducible (true|false)                - the same bits in every run (default); without, cusparse takes the
                                                           faster of its algorithms
.  -mat_tcbound_value_precision (fp64|fp32|bf16)         - lossy: round the values that products use
.  -mat_tcbound_product_precision (fp64|tf32|bf16)       - lossy: round values and x of products and add up in FP32, on a GPU
-  -mat_tcbound_compare (true|false)                     - also run every other kernel that can on the input of each product

   Level: beginner

   Notes:
   The host CSR arrays of `MATSEQAIJ` stay the master copy, so whatever works on `MATSEQAIJ` works on this type. The copy that
   products use follows them: changed values refresh values, a changed pattern builds the copy anew at the next product.

   With `-mat_tcbound_compare` the log has a row for each of those kernels too, timed on the application's own data; their results
   are dropped. They run before or after the kernel whose result is used, in turns, in scratch memory: a copy of the matrix in
   each format and a vector each. Their results are compared at the first, second, fourth, eighth, ... product of each kind, on
   the host; a difference beyond rounding is an error. The time counts in PETSc's events; the table's end says how much it is.

   With `-mat_tcbound_value_precision` of fp32 or bf16 products with vectors use values rounded to the nearest number of
   that type and still add up in double precision: the operator of a smoother or preconditioner, not of the equations to solve. A
   value then moves 4 or 2 bytes in place of 8 in formats sell, diagonals and tiles, which auto takes where that is the least; the
   other formats store what differs in 8. In row i, y is off by at most u sum_j |a_ij| |x_j| more than otherwise, with u = 2^-24 (fp32)
   or 2^-8 (bf16), and by 2^-150 or 2^-134 sum_j |x_j| where values are below 2^-126. A value too large for the type, which ends at
   about 3.4e38, is an error. The matrix's own values stay as they are for all else: products with matrices, `MatGetValues()`,
   `MatGetDiagonal()`, factorizations, conversions.

   With `-mat_tcbound_product_precision` of tf32 or bf16 products with vectors round the values and x to the nearest numbers of that type
   (x to FP32 first) and add their products up in FP32, up to 96 at a time, and beyond that in double precision; y is added in double
   precision. It is for preconditioners. Only format fragments has such kernels, on tensor cores (`-mat_tcbound_backend tensor_core`)
   and on CUDA cores, which auto takes; where no device can run them, and with any other format or backend, it is an error. In row i,
   of n entries, y is off by at most (2 u + u^2 + (2 min(n, 96) + 8) 2^-23) sum_j |a_ij| |x_j| more than otherwise, with u = 2^-11
   (tf32) or 2^-8 (bf16); numbers and sums below 2^-126 may besides count as zero. A value too large for the type is an error; x and sums
   beyond 3.4e38 are infinite. What else is said above of rounded values holds here too, and the two options exclude each other.

   A choice that cannot run is an error; nothing falls back to another kernel. `MatView()` with `-mat_view ::ascii_info` names
   the kernel that ran, and `-log_view` ends with what each kernel moved and reached.

.seealso: `MATAIJTCBOUND`, `MATMPIAIJTCBOUND`, `MatTCBoundSetBackend()`, `MatTCBoundGetInfo()`, `TCBoundInitialize()`
M*/
PetscErrorCode MatCreate_SeqAIJTCBound(Mat A) {
  PetscFunctionBegin;
  PetscCall(MatSetType(A, MATSEQAIJ));
  PetscCall(MatConvert_SeqAIJ_SeqAIJTCBound(A, MATSEQAIJTCBOUND, MAT_INPLACE_MATRIX, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCBoundRegisterAll(void) {
  PetscFunctionBegin;
  PetscCall(MatRegisterRootName(MATAIJTCBOUND, MATSEQAIJTCBOUND, MATMPIAIJTCBOUND));
  PetscCall(MatRegister(MATSEQAIJTCBOUND, MatCreate_SeqAIJTCBound));
  PetscCall(MatRegister(MATMPIAIJTCBOUND, MatCreate_MPIAIJTCBound));
  PetscCall(MatRegister(MATSTENCILTCBOUND, MatCreate_StencilTCBound));
  PetscCall(MatSeqAIJRegister(MATSEQAIJTCBOUND, MatConvert_SeqAIJ_SeqAIJTCBound));
  PetscCall(MatTCBoundRegisterFactors());
  PetscCall(MatStencilTCBoundRegisterFactors());
  PetscCall(MatTCBoundRegisterPowers());
  PetscFunctionReturn(PETSC_SUCCESS);
}
