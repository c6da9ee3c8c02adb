// Powers of a matrix times a vector.
#include "stenciltcbound.h"

#include <petsc/private/vecimpl.h>

static PetscLogEvent MAT_TCBoundMultPowers;

PetscErrorCode MatTCBoundRegisterPowers(void) {
  PetscFunctionBegin;
  PetscCall(PetscLogEventRegister("MatMultPowers", MAT_CLASSID, &MAT_TCBoundMultPowers));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// As many products.
static PetscErrorCode MultiplyOneByOne(Mat A, PetscInt k, Vec x, Vec y) {
  Vec other = NULL, from = x;

  PetscFunctionBegin;
  if (k == 0) PetscCall(VecCopy(x, y));
  if (k > 1) PetscCall(VecDuplicate(y, &other));
  for (PetscInt left = k; left > 0; left--) { // the last one writes to y
    const Vec to = left % 2 ? y : other;
    PetscCall(MatMult(A, from, to));
    from = to;
  }
  PetscCall(VecDestroy(&other));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatTCBoundMultPowers - Computes $y = A^k x$

  Collective

  Input Parameters:
+ A - a square matrix of any type
. k - the power, 0 or more
- x - the vector

  Output Parameter:
. y - $A^k x$; it may not be `x`

  Options Database Key:
. -mat_tcbound_steps (0|1|2|...) - of a `MATSTENCILTCBOUND`: products that a pass over memory fuses (0: by the model)

  Level: intermediate

  Note:
  A `MATSTENCILTCBOUND` of one component and constant coefficients, on a grid that is not periodic, does several products in each pass
  over memory, and on several ranks between two exchanges of values; so too if, in two and three dimensions, there is a ring of identity
  rows around the grid, as wide as the stencil's radius. The host takes stencils of up to 49 points, CUDA cores those within 5, 9, 25 or
  49 points or a star of radius 2 or 3 in two dimensions, 7, 13, 17, 19 or 27 in three. Other matrices do `k` products. `-info` says which it is, and why.

.seealso: `MATSTENCILTCBOUND`, `PCTCBOUNDSWEEP`, `MatMult()`
@*/
PetscErrorCode MatTCBoundMultPowers(Mat A, PetscInt k, Vec x, Vec y) {
  TCBoundStencilSweeps *sweeps;
  PetscBool             stencil;
  const char           *why_not = k == 0 ? "it is a copy" : "it is no " MATSTENCILTCBOUND " matrix";

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscValidType(A, 1);
  PetscValidLogicalCollectiveInt(A, k, 2);
  PetscValidHeaderSpecific(x, VEC_CLASSID, 3);
  PetscValidHeaderSpecific(y, VEC_CLASSID, 4);
  PetscCheck(A->assembled, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE, "Not for unassembled matrix");
  PetscCheck(k >= 0 && k <= PETSC_MPI_INT_MAX, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_OUTOFRANGE,
             "The power %" PetscInt_FMT " must be 0 or more, and not more than %d", k, PETSC_MPI_INT_MAX);
  PetscCheck(x != y, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_IDN, "x and y must be different vectors");
  PetscCheck(A->rmap->n == A->cmap->n && A->rmap->N == A->cmap->N, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ,
             "Powers are of square matrices, not of one of %" PetscInt_FMT " by %" PetscInt_FMT " (%" PetscInt_FMT
             " by %" PetscInt_FMT " here)",
             A->rmap->N, A->cmap->N, A->rmap->n, A->cmap->n);
  PetscCheck(x->map->n == A->cmap->n && y->map->n == A->rmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ,
             "The matrix has %" PetscInt_FMT " local rows, x %" PetscInt_FMT " and y %" PetscInt_FMT, A->rmap->n, x->map->n,
             y->map->n);
  PetscCall(MatIsStencilTCBound(A, &stencil));
  if (k > 0 && stencil) {
    PetscCall(MatStencilTCBoundGetSweeps(A, &sweeps));
    why_not = sweeps->why_not.empty() ? NULL : sweeps->why_not.c_str();
  }
  if (why_not) PetscCall(PetscInfo(A, "Power %" PetscInt_FMT " by single products: %s\n", k, why_not));
  PetscCall(PetscLogEventBegin(MAT_TCBoundMultPowers, A, x, y, 0));
  PetscCall((why_not ? MultiplyOneByOne : MatStencilTCBoundPowers)(A, k, x, y));
  PetscCall(PetscLogEventEnd(MAT_TCBoundMultPowers, A, x, y, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}
