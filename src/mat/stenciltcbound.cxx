// The type stenciltcbound: a matrix of a DMDA that keeps coefficients only.
#include "stenciltcbound.h"

PetscErrorCode MatIsStencilTCBound(Mat A, PetscBool *is) {
  return PetscObjectTypeCompare((PetscObject)A, MATSTENCILTCBOUND, is);
}

static PetscErrorCode MatSetUp_StencilTCBound(Mat A) {
  Mat_StencilTCBound *t = StencilOf(A);
  MPI_Comm            comm = PetscObjectComm((PetscObject)A);
  DM                  dm;
  PetscBool           is_da = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatGetDM(A, &dm));
  if (dm) PetscCall(PetscObjectTypeCompare((PetscObject)dm, DMDA, &is_da));
  PetscCheck(is_da, comm, PETSC_ERR_ARG_WRONGSTATE,
             "A %s matrix needs a DMDA: make it with DMCreateMatrix(), -dm_mat_type %s, or call MatSetDM() before MatSetUp()",
             MATSTENCILTCBOUND, MATSTENCILTCBOUND);
  TCBoundCallCXX(t->grid = TCBoundStencilGrid());
  PetscCall(TCBoundStencilGridSetUp(t->grid, dm));
  PetscCheck(A->rmap->n == t->grid.extents.rows() && A->cmap->n == A->rmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ,
             "The matrix has %" PetscInt_FMT " local rows, the DMDA %" PetscInt64_FMT, A->rmap->n,
             static_cast<PetscInt64>(t->grid.extents.rows()));
  if (A->rmap->bs < 0 || A->rmap->bs == 1) PetscCall(MatSetBlockSizes(A, t->grid.dof, t->grid.dof));
  PetscCall(PetscLayoutSetUp(A->rmap));
  PetscCall(PetscLayoutSetUp(A->cmap));
  if (!A->rmap->mapping) PetscCall(MatSetLocalToGlobalMapping(A, t->grid.ltog, t->grid.ltog));
  if (!A->stencil.dim) { // what MatSetValuesStencil() goes by
    const PetscInt *n = t->grid.ghost_size, *first = t->grid.ghost_begin;
    PetscCall(MatSetStencil(A, t->grid.dim, n, first, t->grid.dof));
  }
  A->preallocated = PETSC_TRUE;
  PetscCall(MatZeroEntries_StencilTCBound(A));
  A->assembled = PETSC_TRUE; // as DMCreateMatrix() leaves an AIJ one, with zeros
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetFromOptions_StencilTCBound(Mat A, PetscOptionItems) {
  Mat_StencilTCBound *t = StencilOf(A);
  TCBoundMatSettings  settings = t->settings;

  PetscFunctionBegin;
  PetscCall(TCBoundMatSettingsFromOptions(settings, A));
  PetscCall(MatStencilTCBoundApplySettings(A, settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatStencilTCBoundApplySettings(Mat A, const TCBoundMatSettings &settings) {
  Mat_StencilTCBound *t = StencilOf(A);

  PetscFunctionBegin;
  if (t->settings != settings) {
    TCBoundCallCXX(t->settings = settings);
    PetscCall(MatStencilTCBoundDropFormat(A));
    PetscCall(MatTCBoundUseDeviceVectors(A, settings));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDestroy_StencilTCBound(Mat A) {
  Mat_StencilTCBound *t = StencilOf(A);

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundDropFormat(A));
  PetscCall(MatDestroy(&t->colored));
  PetscCall(PetscSFDestroy(&t->halo));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatInodeAdjustForInodes_C", NULL));
  PetscCall(TCBoundStencilExchangeDestroy(t->exchange));
  PetscCall(TCBoundStencilGridDestroy(t->grid));
  delete t;
  A->data = NULL;
  PetscCall(PetscObjectChangeTypeName((PetscObject)A, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatStencilTCBoundCreateLike(Mat A, Mat *B) {
  DM dm;

  PetscFunctionBegin;
  PetscCall(MatGetDM(A, &dm));
  PetscCall(MatCreate(PetscObjectComm((PetscObject)A), B));
  PetscCall(MatSetSizes(*B, A->rmap->n, A->cmap->n, A->rmap->N, A->cmap->N));
  PetscCall(MatSetType(*B, MATSTENCILTCBOUND));
  PetscCall(MatStencilTCBoundApplySettings(*B, StencilOf(A)->settings));
  PetscCall(MatSetDM(*B, dm));
  PetscCall(MatSetUp(*B));
#if PetscDefined(HAVE_DEVICE)
  (*B)->boundtocpu = A->boundtocpu;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   MATSTENCILTCBOUND - "stenciltcbound" - A matrix of a `DMDA` that keeps coefficients only: no indices, and constant coefficients
   once.

   Options Database Keys:
+  -dm_mat_type stenciltcbound                  - `DMCreateMatrix()` of a `DMDA` makes this type
.  -mat_tcbound_backend (auto|host|cuda_core)   - where products run; auto takes a device if there is one
-  -mat_tcbound_steps (0|1|2|...)               - steps that a pass over memory fuses, of `MatTCBoundMultPowers()` and `PCTCBOUNDSWEEP`
                                                  (0: by the model)

   Level: beginner

   Notes:
   The application fills it as it fills any matrix of a `DMDA`: by `MatSetValuesStencil()`, `MatSetValuesLocal()`,
   `MatSetValuesBlockedLocal()` or `MatSetValues()`, for rows of this or other ranks. An entry outside of the DMDA's stencil is an
   error, unless `MAT_NEW_NONZERO_LOCATIONS` is `PETSC_FALSE`.

   While values are set, each point of the stencil has an array of 8 bytes a row. `MatAssemblyEnd()` finds points that are 0 in all
   rows (they cost nothing), points that are the same bits in all rows (kept once), and few kinds of rows that differ from all
   others, as boundary conditions make them (kept once a kind). Products move 16 bytes a row and 8 for each point that varies.

   On several ranks, or on a periodic grid, neighbours' values travel while rows that do not need them are computed.

   Transposed products run on the transposed matrix, which the first of them makes. Incomplete factorizations and others that need
   a matrix (`MatGetDiagonalBlock()`, `MatCreateSubMatrix()`, `MatConvert()`) get an AIJ copy; `PCJACOBI` and `KSPCHEBYSHEV` need none.

   With constant coefficients, the same on all ranks, one component and no periodic dimension, `MatTCBoundMultPowers()` and the
   preconditioner `PCTCBOUNDSWEEP` do several steps in each pass over memory.

   Jacobians by finite differences with coloring (`MatFDColoringCreate()`) keep an AIJ matrix besides.

   A point that is 0 in all rows may or may not carry a NaN or infinity from x to y.

   Grids of one to three dimensions, star and box stencils of any width, boundaries none, ghosted and periodic.

.seealso: `MATAIJTCBOUND`, `DMSetMatType()`, `DMDACreate3d()`, `MatSetValuesStencil()`, `MatTCBoundMultPowers()`, `PCTCBOUNDSWEEP`
M*/
PetscErrorCode MatCreate_StencilTCBound(Mat A) {
  Mat_StencilTCBound *t = NULL;

  PetscFunctionBegin;
  TCBoundCallCXX(t = new Mat_StencilTCBound);
  A->data = t;
  t->settings.op = "stencil";
  t->settings.format = "grid";
  PetscCall(MatStencilTCBoundSetOperations(A));
  A->ops->setup = MatSetUp_StencilTCBound;
  A->ops->setfromoptions = MatSetFromOptions_StencilTCBound;
  A->ops->destroy = MatDestroy_StencilTCBound;
  PetscCall(PetscObjectChangeTypeName((PetscObject)A, MATSTENCILTCBOUND));
  PetscCall(TCBoundMatSettingsFromOptions(t->settings, A));
  PetscCall(MatTCBoundUseDeviceVectors(A, t->settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}
