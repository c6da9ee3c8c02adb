// MatZeroRows() and MatZeroRowsColumns() of a stenciltcbound matrix.
#include "stencil_owners.h"

using tcbound::grid::Extents;

// The owned ones, counted from the first owned row, of rows that any rank may name.
static PetscErrorCode OwnedRows(Mat A, PetscInt n, const PetscInt rows[], std::vector<PetscInt> *owned) {
  std::vector<PetscInt>    all;
  std::vector<PetscMPIInt> owners;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < n; r++) {
    PetscMPIInt owner;
    if (rows[r] < 0) continue;
    PetscCheck(rows[r] < A->rmap->N, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
               "Row %" PetscInt_FMT " is not below %" PetscInt_FMT, rows[r], A->rmap->N);
    PetscCall(PetscLayoutFindOwner(A->rmap, rows[r], &owner));
    TCBoundCallCXX(all.push_back(rows[r]); owners.push_back(owner));
  }
  PetscCall(SendToOwners(A, all, owners, owned));
  for (PetscInt &row : *owned) row -= A->rmap->rstart;
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Makes rows those of a diagonal matrix, and b what x gives there.
static PetscErrorCode ReplaceRows(Mat A, const std::vector<PetscInt> &rows, PetscScalar diagonal, Vec x, Vec b) {
  Mat_StencilTCBound *t = StencilOf(A);
  const PetscInt      here[3] = {0, 0, 0}, dof = t->grid.dof;

  PetscFunctionBegin;
  for (PetscInt row : rows) {
    for (std::vector<double> &array : t->arrays) array[static_cast<std::size_t>(row)] = 0.0;
    t->arrays[static_cast<std::size_t>(TCBoundStencilGridSlot(t->grid, here, row % dof))][static_cast<std::size_t>(row)] =
      diagonal;
  }
  if (x && b) {
    const PetscScalar *from;
    PetscScalar       *to;

    PetscCall(VecGetArrayRead(x, &from));
    PetscCall(VecGetArray(b, &to));
    for (PetscInt row : rows) to[row] = diagonal * from[row];
    PetscCall(VecRestoreArray(b, &to));
    PetscCall(VecRestoreArrayRead(x, &from));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatZeroRows_StencilTCBound(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diagonal, Vec x, Vec b) {
  std::vector<PetscInt> owned;

  PetscFunctionBegin;
  PetscCall(OwnedRows(A, n, rows, &owned));
  PetscCall(MatStencilTCBoundExpand(A));
  PetscCall(ReplaceRows(A, owned, diagonal, x, b));
  PetscCall(MatStencilTCBoundCompress(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatZeroRowsColumns_StencilTCBound(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diagonal, Vec x, Vec b) {
  Mat_StencilTCBound   *t = StencilOf(A);
  const Extents        &e = t->grid.extents;
  const auto            layered = static_cast<std::size_t>(e.ghosted_cells() * e.dof), own = static_cast<std::size_t>(e.rows());
  std::vector<PetscInt> owned;
  std::vector<double>   marks, marks_around, x_around;
  const PetscScalar    *from = NULL;
  PetscScalar          *to = NULL;

  PetscFunctionBegin;
  PetscCall(OwnedRows(A, n, rows, &owned));
  PetscCall(MatStencilTCBoundExpand(A));
  TCBoundCallCXX(marks.resize(own, 0.0); marks_around.resize(layered); x_around.resize(layered));
  for (PetscInt row : owned) marks[static_cast<std::size_t>(row)] = 1.0;
  PetscCall(MatStencilTCBoundGetLayers(A, marks.data(), marks_around.data()));
  const bool shift = x && b;
  if (shift) {
    PetscCall(VecGetArrayRead(x, &from));
    PetscCall(MatStencilTCBoundGetLayers(A, from, x_around.data()));
    PetscCall(VecRestoreArrayRead(x, &from));
    PetscCall(VecGetArray(b, &to));
  }
  ForEachNeighbour(t->grid, [&](std::int64_t cell, std::int64_t i, std::int64_t j, std::int64_t k, int s) {
    const tcbound::grid::Slot &slot = t->grid.slots[static_cast<std::size_t>(s)];
    const auto                 at = static_cast<std::size_t>(
      TCBoundStencilGridLayered(e, i + slot.offset[0], j + slot.offset[1], k + slot.offset[2]) + slot.component);
    if (marks_around[at] == 0.0) return;
    for (std::int64_t row = cell * e.dof; row < (cell + 1) * e.dof; row++) {
      double &entry = t->arrays[static_cast<std::size_t>(s)][static_cast<std::size_t>(row)];
      if (shift) to[row] -= entry * x_around[at];
      entry = 0.0;
    }
  });
  if (shift) PetscCall(VecRestoreArray(b, &to));
  PetscCall(ReplaceRows(A, owned, diagonal, x, b));
  PetscCall(MatStencilTCBoundCompress(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
