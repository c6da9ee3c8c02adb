// Operations on stenciltcbound matrices other than products and setting values. What needs single coefficients gives every slot an
// array for the time of the operation.
#include "stenciltcbound.h"

#include <algorithm>
#include <cmath>

using tcbound::grid::Extents;

// Calls f(slot, row, column), both local and the column in the grid with its layers, for all entries whose cell exists.
template <class F> static void ForEachPlace(const TCBoundStencilGrid &grid, F &&f) {
  const Extents &e = grid.extents;

  ForEachNeighbour(grid, [&](std::int64_t cell, std::int64_t i, std::int64_t j, std::int64_t k, int s) {
    const tcbound::grid::Slot &slot = grid.slots[static_cast<std::size_t>(s)];
    const std::int64_t         column =
      TCBoundStencilGridLayered(e, i + slot.offset[0], j + slot.offset[1], k + slot.offset[2]) + slot.component;
    for (std::int64_t row = cell * e.dof; row < (cell + 1) * e.dof; row++)
      f(static_cast<std::size_t>(s), static_cast<std::size_t>(row), static_cast<std::size_t>(column));
  });
}

static PetscErrorCode MatScale_StencilTCBound(Mat A, PetscScalar alpha) {
  Mat_StencilTCBound *t = StencilOf(A);

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundCompress(A));
  PetscCall(MatStencilTCBoundDropFormat(A));
  for (double &value : t->stencil.constants) value *= alpha;
  for (double &value : t->stencil.patterns) value *= alpha;
  for (std::vector<double> &array : t->stencil.arrays)
    for (double &value : array) value *= alpha;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatShift_StencilTCBound(Mat A, PetscScalar shift) {
  Mat_StencilTCBound *t = StencilOf(A);
  const PetscInt      here[3] = {0, 0, 0}, dof = t->grid.dof;

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundExpand(A));
  for (PetscInt c = 0; c < dof; c++) {
    std::vector<double> &array = t->arrays[static_cast<std::size_t>(TCBoundStencilGridSlot(t->grid, here, c))];
    for (std::size_t row = static_cast<std::size_t>(c); row < array.size(); row += static_cast<std::size_t>(dof))
      array[row] += shift;
  }
  PetscCall(MatStencilTCBoundCompress(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDiagonalScale_StencilTCBound(Mat A, Vec left, Vec right) {
  Mat_StencilTCBound *t = StencilOf(A);
  const PetscScalar  *l = NULL, *r = NULL;
  std::vector<double> around;

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundExpand(A));
  if (left) PetscCall(VecGetArrayRead(left, &l));
  if (right) {
    TCBoundCallCXX(around.resize(static_cast<std::size_t>(t->grid.extents.ghosted_cells() * t->grid.extents.dof)));
    PetscCall(VecGetArrayRead(right, &r));
    PetscCall(MatStencilTCBoundGetLayers(A, r, around.data()));
    PetscCall(VecRestoreArrayRead(right, &r));
  }
  ForEachPlace(t->grid, [&](std::size_t s, std::size_t row, std::size_t column) {
    double &value = t->arrays[s][row];
    if (left) value *= l[row];
    if (right) value *= around[column];
  });
  if (left) PetscCall(VecRestoreArrayRead(left, &l));
  PetscCall(MatStencilTCBoundCompress(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckSameStencil(Mat X, Mat Y) {
  const TCBoundStencilGrid &x = StencilOf(X)->grid, &y = StencilOf(Y)->grid;
  bool                      same = x.dof == y.dof && x.width == y.width && x.star == y.star && x.slots.size() == y.slots.size();

  PetscFunctionBegin;
  for (int d = 0; d < 3; d++)
    same = same && x.size[d] == y.size[d] && x.begin[d] == y.begin[d] && x.extents.n[d] == y.extents.n[d] &&
           x.periodic[d] == y.periodic[d];
  PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP, "The matrices have different grids or stencils");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAXPY_StencilTCBound(Mat Y, PetscScalar a, Mat X, MatStructure) {
  Mat_StencilTCBound *x = StencilOf(X), *y = StencilOf(Y);

  PetscFunctionBegin;
  PetscCall(CheckSameStencil(X, Y));
  PetscCall(MatStencilTCBoundCompress(X));
  PetscCall(MatStencilTCBoundExpand(Y));
  TCBoundCallCXX({
    const std::vector<std::vector<double>> added = x->stencil.expand();
    for (std::size_t s = 0; s < x->active.size(); s++) {
      if (x->active[s] < 0) continue;
      const std::vector<double> &from = added[static_cast<std::size_t>(x->active[s])];
      for (std::size_t row = 0; row < from.size(); row++) y->arrays[s][row] += a * from[row];
    }
  });
  PetscCall(MatStencilTCBoundCompress(Y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatStencilTCBoundSetRowsOf(Mat A, Mat B) {
  PetscFunctionBegin;
  for (PetscInt row = A->rmap->rstart; row < A->rmap->rend; row++) {
    PetscInt           n;
    const PetscInt    *columns;
    const PetscScalar *values;

    PetscCall(MatGetRow(A, row, &n, &columns, &values));
    PetscCall(MatSetValues(B, 1, &row, n, columns, values, INSERT_VALUES));
    PetscCall(MatRestoreRow(A, row, &n, &columns, &values));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CopyRowsOf(Mat A, Mat B) {
  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundSetRowsOf(A, B));
  PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCopy_StencilTCBound(Mat A, Mat B, MatStructure) {
  Mat_StencilTCBound *a = StencilOf(A), *b;
  PetscBool           alike;

  PetscFunctionBegin;
  PetscCall(MatIsStencilTCBound(B, &alike));
  if (!alike) {
    PetscCall(MatZeroEntries(B));
    PetscCall(CopyRowsOf(A, B));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  b = StencilOf(B);
  PetscCall(CheckSameStencil(A, B));
  PetscCall(MatStencilTCBoundCompress(A));
  PetscCall(MatStencilTCBoundDropFormat(B));
  b->arrays.clear();
  b->expanded = false;
  TCBoundCallCXX(b->stencil = a->stencil; b->active = a->active);
  PetscCall(PetscObjectStateIncrease((PetscObject)B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDuplicate_StencilTCBound(Mat A, MatDuplicateOption option, Mat *B) {
  const Mat_StencilTCBound *a = StencilOf(A);

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundCreateLike(A, B));
  StencilOf(*B)->row_oriented = a->row_oriented;
  StencilOf(*B)->ignore_zeros = a->ignore_zeros;
  StencilOf(*B)->ignore_outside = a->ignore_outside;
  StencilOf(*B)->ignore_off_process = a->ignore_off_process;
  StencilOf(*B)->natural_view = a->natural_view;
  if (option == MAT_COPY_VALUES)
    PetscCall(MatCopy_StencilTCBound(A, *B, SAME_NONZERO_PATTERN));
  else
    PetscCall(MatZeroEntries(*B));
  (*B)->assembled = PETSC_TRUE; // as for AIJ
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Calls f(row, value) for all entries, without a change to the matrix.
template <class F> static PetscErrorCode LookAtEntries(Mat A, F &&f) {
  Mat_StencilTCBound              *t = StencilOf(A);
  std::vector<std::vector<double>> stored;

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundCompress(A));
  if (t->active.empty()) PetscFunctionReturn(PETSC_SUCCESS); // nothing has been set
  TCBoundCallCXX(stored = t->stencil.expand());
  ForEachPlace(t->grid, [&](std::size_t s, std::size_t row, std::size_t) {
    if (t->active[s] >= 0) f(row, stored[static_cast<std::size_t>(t->active[s])][row]);
  });
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The sum of |a_ij| along each local row; of columns, those of the transposed matrix.
static PetscErrorCode LargestRowSum(Mat A, PetscReal *largest) {
  std::vector<PetscReal> sums;

  PetscFunctionBegin;
  *largest = 0;
  TCBoundCallCXX(sums.resize(static_cast<std::size_t>(StencilOf(A)->grid.extents.rows()), 0.0));
  PetscCall(LookAtEntries(A, [&](std::size_t row, double value) { sums[row] += std::abs(value); }));
  for (PetscReal sum : sums) *largest = PetscMax(*largest, sum);
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, largest, 1, MPIU_REAL, MPIU_MAX, PetscObjectComm((PetscObject)A)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatNorm_StencilTCBound(Mat A, NormType type, PetscReal *norm) {
  Mat transpose = NULL;

  PetscFunctionBegin;
  PetscCheck(type == NORM_FROBENIUS || type == NORM_INFINITY || type == NORM_1, PetscObjectComm((PetscObject)A), PETSC_ERR_SUP,
             "No support for this norm: 1, infinity and Frobenius are there");
  if (type == NORM_INFINITY) {
    PetscCall(LargestRowSum(A, norm));
  } else if (type == NORM_1) {
    PetscCall(MatTranspose_StencilTCBound(A, MAT_INITIAL_MATRIX, &transpose));
    PetscCall(LargestRowSum(transpose, norm));
    PetscCall(MatDestroy(&transpose));
  } else {
    PetscReal sum = 0;
    PetscCall(LookAtEntries(A, [&](std::size_t, double value) { sum += value * value; }));
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPIU_REAL, MPIU_SUM, PetscObjectComm((PetscObject)A)));
    *norm = PetscSqrtReal(sum);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetOption_StencilTCBound(Mat A, MatOption option, PetscBool flag) {
  Mat_StencilTCBound *t = StencilOf(A);

  PetscFunctionBegin;
  switch (option) {
  case MAT_ROW_ORIENTED:
    t->row_oriented = flag;
    break;
  case MAT_IGNORE_OFF_PROC_ENTRIES:
    t->ignore_off_process = flag;
    break;
  case MAT_IGNORE_ZERO_ENTRIES:
    t->ignore_zeros = flag;
    break;
  case MAT_NEW_NONZERO_LOCATIONS:
    t->ignore_outside = flag ? PETSC_FALSE : PETSC_TRUE;
    break;
  default: // others say how AIJ is to store or assemble, or how it may do less checking
    break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The rows of this rank and its own columns as a sequential AIJ, for what needs a matrix (incomplete factorizations, orderings).
// Kept until coefficients change.
static PetscErrorCode MatGetDiagonalBlock_StencilTCBound(Mat A, Mat *block) {
  Mat_StencilTCBound      *t = StencilOf(A);
  const PetscInt           first = A->rmap->rstart, last = A->rmap->rend, most = static_cast<PetscInt>(t->grid.slots.size());
  std::vector<PetscInt>    columns;
  std::vector<PetscScalar> values;
  Mat                      made;

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundCompress(A));
  if (!t->block) {
    TCBoundCallCXX(columns.resize(static_cast<std::size_t>(most)); values.resize(static_cast<std::size_t>(most)));
    PetscCall(MatCreate(PETSC_COMM_SELF, &made));
    PetscCall(MatSetSizes(made, last - first, last - first, last - first, last - first));
    PetscCall(MatSetBlockSizes(made, t->grid.dof, t->grid.dof));
    PetscCall(MatSetType(made, MATSEQAIJTCBOUND));
    PetscCall(MatSeqAIJTCBoundApplySettings(made, t->settings.for_aij()));
    PetscCall(MatSeqAIJSetPreallocation(made, PetscMin(most, last - first), NULL));
    for (PetscInt row = first; row < last; row++) {
      PetscInt       n, kept = 0;
      const PetscInt local = row - first;
      PetscInt      *j;
      PetscScalar   *v;

      PetscCall(MatGetRow_StencilTCBound(A, row, &n, &j, &v));
      for (PetscInt k = 0; k < n; k++) {
        if (j[k] < first || j[k] >= last) continue;
        columns[static_cast<std::size_t>(kept)] = j[k] - first;
        values[static_cast<std::size_t>(kept++)] = v[k];
      }
      PetscCall(MatSetValues(made, 1, &local, kept, columns.data(), values.data(), INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(made, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(made, MAT_FINAL_ASSEMBLY));
    PetscCall(MatPropagateSymmetryOptions(A, made));
    t->block = made;
  }
  *block = t->block;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCreateSubMatrix_StencilTCBound(Mat A, IS rows, IS columns, MatReuse reuse, Mat *B) {
  Mat aij = NULL;

  PetscFunctionBegin;
  PetscCall(MatConvert(A, MATAIJTCBOUND, MAT_INITIAL_MATRIX, &aij));
  PetscCall(MatCreateSubMatrix(aij, rows, columns, reuse, B));
  PetscCall(MatDestroy(&aij));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCreateSubMatrices_StencilTCBound(Mat A, PetscInt n, const IS rows[], const IS columns[],
                                                          MatReuse reuse, Mat *B[]) {
  Mat aij = NULL;

  PetscFunctionBegin;
  PetscCall(MatConvert(A, MATAIJTCBOUND, MAT_INITIAL_MATRIX, &aij));
  PetscCall(MatCreateSubMatrices(aij, n, rows, columns, reuse, B));
  PetscCall(MatDestroy(&aij));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Orderings and colorings ask for the structure, by rows or by columns. On one rank only, where the diagonal block is the matrix.
using GetIJ = PetscErrorCode (*)(Mat, PetscInt, PetscBool, PetscBool, PetscInt *, const PetscInt *[], const PetscInt *[],
                                 PetscBool *);

template <GetIJ get>
static PetscErrorCode MatGetIJ_StencilTCBound(Mat A, PetscInt shift, PetscBool symmetric, PetscBool compressed, PetscInt *n,
                                              const PetscInt *i[], const PetscInt *j[], PetscBool *done) {
  Mat         block = NULL;
  PetscMPIInt size;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  if (size > 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetDiagonalBlock_StencilTCBound(A, &block));
  PetscCall((*get)(block, shift, symmetric, compressed, n, i, j, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <GetIJ restore>
static PetscErrorCode MatRestoreIJ_StencilTCBound(Mat A, PetscInt shift, PetscBool symmetric, PetscBool compressed, PetscInt *n,
                                                  const PetscInt *i[], const PetscInt *j[], PetscBool *done) {
  PetscFunctionBegin;
  PetscCall((*restore)(StencilOf(A)->block, shift, symmetric, compressed, n, i, j, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// That structure is of nodes if rows of a cell are alike, as AIJ's is: then orderings ask for this.
static PetscErrorCode MatInodeAdjustForInodes_StencilTCBound(Mat A, IS *rows, IS *columns) {
  Mat block = NULL;

  PetscFunctionBegin;
  PetscCall(MatGetDiagonalBlock_StencilTCBound(A, &block));
  PetscCall(MatInodeAdjustForInodes(block, rows, columns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// From any matrix with a DMDA and rows that can be read.
static PetscErrorCode MatConvertFrom_StencilTCBound(Mat A, MatType type, MatReuse reuse, Mat *B) {
  DM  dm;
  Mat result = NULL;

  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) {
    result = *B;
    PetscCall(MatZeroEntries(result));
  } else {
    PetscCall(MatGetDM(A, &dm));
    PetscCheck(dm, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONG,
               "A matrix becomes a %s one if its DMDA is known: call MatSetDM() first", type);
    PetscCall(MatCreate(PetscObjectComm((PetscObject)A), &result));
    PetscCall(MatSetSizes(result, A->rmap->n, A->cmap->n, A->rmap->N, A->cmap->N));
    PetscCall(MatSetOptionsPrefix(result, ((PetscObject)A)->prefix));
    PetscCall(MatSetType(result, type));
    PetscCall(MatSetDM(result, dm));
    PetscCall(MatSetUp(result));
  }
  PetscCall(CopyRowsOf(A, result));
  if (reuse == MAT_INPLACE_MATRIX)
    PetscCall(MatHeaderReplace(A, &result));
  else
    *B = result;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatStencilTCBoundSetOperations(Mat A) {
  PetscFunctionBegin;
  A->ops->setvalues = MatSetValues_StencilTCBound;
  A->ops->setvalueslocal = MatSetValuesLocal_StencilTCBound;
  A->ops->setvaluesblockedlocal = MatSetValuesBlockedLocal_StencilTCBound;
  A->ops->getvalues = MatGetValues_StencilTCBound;
  A->ops->getrow = MatGetRow_StencilTCBound;
  A->ops->restorerow = MatRestoreRow_StencilTCBound;
  A->ops->assemblybegin = MatAssemblyBegin_StencilTCBound;
  A->ops->assemblyend = MatAssemblyEnd_StencilTCBound;
  A->ops->zeroentries = MatZeroEntries_StencilTCBound;
  A->ops->zerorows = MatZeroRows_StencilTCBound;
  A->ops->zerorowscolumns = MatZeroRowsColumns_StencilTCBound;
  A->ops->mult = MatMult_StencilTCBound;
  A->ops->multadd = MatMultAdd_StencilTCBound;
  A->ops->multtranspose = MatMultTranspose_StencilTCBound;
  A->ops->multtransposeadd = MatMultTransposeAdd_StencilTCBound;
  A->ops->getdiagonal = MatGetDiagonal_StencilTCBound;
  A->ops->transpose = MatTranspose_StencilTCBound;
  A->ops->scale = MatScale_StencilTCBound;
  A->ops->shift = MatShift_StencilTCBound;
  A->ops->diagonalscale = MatDiagonalScale_StencilTCBound;
  A->ops->axpy = MatAXPY_StencilTCBound;
  A->ops->copy = MatCopy_StencilTCBound;
  A->ops->duplicate = MatDuplicate_StencilTCBound;
  A->ops->norm = MatNorm_StencilTCBound;
  A->ops->setoption = MatSetOption_StencilTCBound;
  A->ops->getdiagonalblock = MatGetDiagonalBlock_StencilTCBound;
  A->ops->createsubmatrix = MatCreateSubMatrix_StencilTCBound;
  A->ops->createsubmatrices = MatCreateSubMatrices_StencilTCBound;
  A->ops->getrowij = MatGetIJ_StencilTCBound<MatGetRowIJ>;
  A->ops->restorerowij = MatRestoreIJ_StencilTCBound<MatRestoreRowIJ>;
  A->ops->getcolumnij = MatGetIJ_StencilTCBound<MatGetColumnIJ>;
  A->ops->restorecolumnij = MatRestoreIJ_StencilTCBound<MatRestoreColumnIJ>;
  A->ops->convertfrom = MatConvertFrom_StencilTCBound;
  A->ops->view = MatView_StencilTCBound;
  A->ops->getinfo = MatGetInfo_StencilTCBound;
  MatStencilTCBoundSetColoringOperations(A);
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatInodeAdjustForInodes_C", MatInodeAdjustForInodes_StencilTCBound));
  PetscFunctionReturn(PETSC_SUCCESS);
}
