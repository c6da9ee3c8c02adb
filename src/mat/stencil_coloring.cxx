// Jacobians by finite differences with coloring (MatFDColoring) for stenciltcbound. PETSc's code for AIJ makes them: it writes through
// pointers into an AIJ matrix of the same DMDA and ends with an assembly of the matrix that was asked for, which takes the values over.
// Where the matrix rather than the DMDA is to be colored (MatColoring), that matrix is shown.
#include "stenciltcbound.h"

#include <cstring>

// A quiet NaN that no arithmetic gives marks values that nobody has written since they were taken.
static constexpr std::uint64_t unwritten = 0x7ff8746362636f6c;

// The sequential matrices that make up an AIJ matrix on this rank.
static PetscErrorCode GetBlocks(Mat aij, Mat blocks[2]) {
  PetscBool parallel;

  PetscFunctionBegin;
  blocks[0] = aij;
  blocks[1] = NULL;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)aij, MATMPIAIJ, &parallel));
  if (parallel) PetscCall(MatMPIAIJGetSeqAIJ(aij, &blocks[0], &blocks[1], NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CountValues(Mat block, PetscInt *n) {
  const PetscInt *begin;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetCSRAndMemType(block, &begin, NULL, NULL, NULL));
  *n = begin[block->rmap->n];
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Whether values were written on this rank, of which a coloring writes all: the first tells.
static PetscErrorCode IsWritten(Mat aij, bool *written) {
  Mat blocks[2];

  PetscFunctionBegin;
  *written = false;
  PetscCall(GetBlocks(aij, blocks));
  for (Mat block : blocks) {
    const PetscScalar *values;
    PetscInt           n = 0;

    if (!block) continue;
    PetscCall(CountValues(block, &n));
    PetscCall(MatSeqAIJGetArrayRead(block, &values));
    *written = *written || (n > 0 && std::memcmp(values, &unwritten, sizeof(unwritten)) != 0);
    PetscCall(MatSeqAIJRestoreArrayRead(block, &values));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MarkUnwritten(Mat aij) {
  Mat blocks[2];

  PetscFunctionBegin;
  PetscCall(GetBlocks(aij, blocks));
  for (Mat block : blocks) {
    PetscScalar *values;
    PetscInt     n = 0;

    if (!block) continue;
    PetscCall(CountValues(block, &n));
    PetscCall(MatSeqAIJGetArrayWrite(block, &values));
    for (PetscInt i = 0; i < n; i++) std::memcpy(&values[i], &unwritten, sizeof(unwritten));
    PetscCall(MatSeqAIJRestoreArrayWrite(block, &values));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The AIJ matrix, of all entries that there may be, is made once: colorings keep pointers into it, and outlive one another.
static PetscErrorCode MakeColored(Mat A) {
  Mat_StencilTCBound *t = StencilOf(A);

  PetscFunctionBegin;
  if (t->colored) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &t->colored));
  PetscCall(MatSetLocalToGlobalMapping(t->colored, A->rmap->mapping, A->cmap->mapping)); // for IS_COLORING_LOCAL
  PetscCall(MarkUnwritten(t->colored));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatFDColoringCreate_StencilTCBound(Mat A, ISColoring coloring, MatFDColoring c) {
  Mat_StencilTCBound *t = StencilOf(A);

  PetscFunctionBegin;
  PetscCall(MakeColored(A));
  PetscCall(PetscObjectCompose((PetscObject)c, "tcbound_colored", (PetscObject)t->colored)); // it may outlive A
  A->ops->fdcoloringapply = t->colored->ops->fdcoloringapply; // asks A for nothing but its rows and an assembly
  PetscUseTypeMethod(t->colored, fdcoloringcreate, coloring, c);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatFDColoringSetUp_StencilTCBound(Mat A, ISColoring coloring, MatFDColoring c) {
  PetscFunctionBegin;
  PetscUseTypeMethod(StencilOf(A)->colored, fdcoloringsetup, coloring, c);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatStencilTCBoundTakeColored(Mat A) {
  const Mat aij = StencilOf(A)->colored;
  bool      written = false;

  PetscFunctionBegin;
  if (aij) PetscCall(IsWritten(aij, &written));
  if (!written) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatZeroEntries_StencilTCBound(A)); // for MAT_IGNORE_ZERO_ENTRIES
  PetscCall(MatStencilTCBoundSetRowsOf(aij, A));
  PetscCall(MarkUnwritten(aij));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Of all ranks. On one rank MatGetRowIJ() and MatGetColumnIJ() tell the structure instead.
static PetscErrorCode MatGetSeqNonzeroStructure_StencilTCBound(Mat A, Mat *structure) {
  PetscFunctionBegin;
  PetscCall(MakeColored(A));
  PetscCall(MatGetSeqNonzeroStructure(StencilOf(A)->colored, structure));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// From the colors of AIJ's nodes, where rows of a cell are alike, to those of rows.
static PetscErrorCode MatColoringPatch_StencilTCBound(Mat A, PetscInt colors, PetscInt n, ISColoringValue color[],
                                                      ISColoring *coloring) {
  Mat block = StencilOf(A)->block;

  PetscFunctionBegin;
  if (block) // whose structure MatGetRowIJ() has shown
    PetscCall(MatColoringPatch(block, colors, n, color, coloring));
  else
    PetscCall(ISColoringCreate(PetscObjectComm((PetscObject)A), colors, n, color, PETSC_OWN_POINTER, coloring));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void MatStencilTCBoundSetColoringOperations(Mat A) {
  A->ops->getseqnonzerostructure = MatGetSeqNonzeroStructure_StencilTCBound;
  A->ops->coloringpatch = MatColoringPatch_StencilTCBound;
  A->ops->fdcoloringcreate = MatFDColoringCreate_StencilTCBound;
  A->ops->fdcoloringsetup = MatFDColoringSetUp_StencilTCBound;
}
