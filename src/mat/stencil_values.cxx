// Setting and reading the entries of a stenciltcbound matrix, and its assembly.
#include "stencil_owners.h"

#include <algorithm>

using tcbound::grid::Stencil;

// A row or column: its cell, given from the first owned one, and its component.
struct Place {
  PetscInt at[3] = {0, 0, 0};
  PetscInt component = 0;
};

PetscErrorCode MatStencilTCBoundDropFormat(Mat A) {
  Mat_StencilTCBound *t = StencilOf(A);

  PetscFunctionBegin;
  t->format.reset();
  t->sweeps.reset();
  for (auto &parts : t->rows)
    for (TCBoundLogRow &row : parts) row = NULL;
  PetscCall(MatDestroy(&t->transpose));
  PetscCall(MatDestroy(&t->block));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Gives every slot an array, so that any coefficient can be changed.
PetscErrorCode MatStencilTCBoundExpand(Mat A) {
  Mat_StencilTCBound *t = StencilOf(A);

  PetscFunctionBegin;
  if (t->expanded) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatStencilTCBoundDropFormat(A));
  TCBoundCallCXX({
    std::vector<std::vector<double>> stored = t->stencil.expand();
    t->arrays.resize(t->grid.slots.size());
    for (std::size_t s = 0; s < t->grid.slots.size(); s++)
      if (t->active.empty() || t->active[s] < 0)
        t->arrays[s].assign(static_cast<std::size_t>(t->grid.extents.rows()), 0.0);
      else
        t->arrays[s] = std::move(stored[static_cast<std::size_t>(t->active[s])]);
    t->stencil = Stencil();
  });
  t->expanded = true;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatStencilTCBoundCompress(Mat A) {
  Mat_StencilTCBound *t = StencilOf(A);

  PetscFunctionBegin;
  if (!t->expanded) PetscFunctionReturn(PETSC_SUCCESS);
  TCBoundCallCXX(t->stencil = tcbound::grid::compress(t->grid.extents, t->grid.slots, std::move(t->arrays)));
  t->arrays.clear();
  t->expanded = false;
  TCBoundCallCXX(t->active.assign(t->grid.slots.size(), -1));
  std::size_t next = 0; // both lists are in the same order
  for (std::size_t s = 0; s < t->grid.slots.size() && next < t->stencil.slots.size(); s++) {
    const tcbound::grid::Slot &a = t->grid.slots[s], &b = t->stencil.slots[next];
    if (std::equal(a.offset, a.offset + 3, b.offset) && a.component == b.component) t->active[s] = static_cast<int>(next++);
  }
  PetscCall(PetscInfo(A, "Stencil of %s\n", t->stencil.describe().c_str()));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static std::int64_t CellOf(const TCBoundStencilGrid &g, const Place &place) {
  return (place.at[2] * g.extents.n[1] + place.at[1]) * g.extents.n[0] + place.at[0];
}

static bool IsOwned(const TCBoundStencilGrid &g, const Place &place) {
  for (int d = 0; d < 3; d++)
    if (place.at[d] < 0 || place.at[d] >= g.extents.n[d]) return false;
  return true;
}

static Place PlaceOfCell(const TCBoundStencilGrid &g, PetscInt cell, PetscInt component) {
  Place place;

  place.component = component;
  place.at[0] = static_cast<PetscInt>(cell % g.extents.n[0]);
  place.at[1] = static_cast<PetscInt>(cell / g.extents.n[0] % g.extents.n[1]);
  place.at[2] = static_cast<PetscInt>(cell / g.extents.n[0] / g.extents.n[1]);
  return place;
}

static Place PlaceOfLocal(const TCBoundStencilGrid &g, PetscInt index) {
  const PetscInt cell = index / g.dof;
  Place          place;

  place.component = index % g.dof;
  place.at[0] = cell % g.ghost_size[0] + g.ghost_begin[0] - g.begin[0];
  place.at[1] = cell / g.ghost_size[0] % g.ghost_size[1] + g.ghost_begin[1] - g.begin[1];
  place.at[2] = cell / g.ghost_size[0] / g.ghost_size[1] + g.ghost_begin[2] - g.begin[2];
  return place;
}

static PetscErrorCode PlaceOfGlobal(Mat A, PetscInt index, Place *place) {
  const TCBoundStencilGrid &g = StencilOf(A)->grid;
  PetscMPIInt               owner;

  PetscFunctionBegin;
  PetscCheck(index < A->rmap->N, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "Index %" PetscInt_FMT " is not below the size %" PetscInt_FMT " of the matrix", index, A->rmap->N);
  PetscCall(PetscLayoutFindOwner(A->rmap, index, &owner));
  TCBoundStencilGridLocate(g, A->rmap, owner, index / g.dof, place->at);
  for (int d = 0; d < 3; d++) place->at[d] -= g.begin[d];
  place->component = index % g.dof;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int SlotOf(const TCBoundStencilGrid &g, const Place &row, const Place &column) {
  const PetscInt offset[3] = {column.at[0] - row.at[0], column.at[1] - row.at[1], column.at[2] - row.at[2]};

  return TCBoundStencilGridSlot(g, offset, column.component);
}

// An error if an entry that is to be set has no slot, unless that was asked for.
static PetscErrorCode CheckSlot(Mat A, const Place &row, const Place &column, int slot, PetscScalar value) {
  const Mat_StencilTCBound *t = StencilOf(A);
  const TCBoundStencilGrid &g = t->grid;

  PetscFunctionBegin;
  PetscCheck(slot >= 0 || t->ignore_outside || (value == 0.0 && t->ignore_zeros), PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "In the row of component %" PetscInt_FMT " of cell (%" PetscInt_FMT ", %" PetscInt_FMT ", %" PetscInt_FMT
             ") there is no entry for the cell at offset (%" PetscInt_FMT ", %" PetscInt_FMT ", %" PetscInt_FMT
             "): the DMDA has a %s stencil of width %" PetscInt_FMT " in %" PetscInt_FMT
             "D. Make it with DMDA_STENCIL_BOX or wider, or use another matrix type, such as %s",
             row.component, row.at[0] + g.begin[0], row.at[1] + g.begin[1], row.at[2] + g.begin[2], column.at[0] - row.at[0],
             column.at[1] - row.at[1], column.at[2] - row.at[2], g.star ? "star" : "box", g.width, g.dim, MATAIJTCBOUND);
  PetscFunctionReturn(PETSC_SUCCESS);
}

// An entry of an owned row, given from the first one; without a slot it is dropped.
static void SetEntry(Mat_StencilTCBound *t, int slot, std::int64_t row, PetscScalar value, InsertMode mode) {
  if (slot < 0 || (value == 0.0 && t->ignore_zeros && mode == ADD_VALUES)) return;
  double &to = t->arrays[static_cast<std::size_t>(slot)][static_cast<std::size_t>(row)];
  if (mode == ADD_VALUES)
    to += value;
  else
    to = value;
}

static PetscErrorCode StashEntry(Mat A, PetscInt row, PetscInt column, PetscScalar value, InsertMode mode) {
  Mat_StencilTCBound *t = StencilOf(A);

  PetscFunctionBegin;
  PetscCheck(!A->nooffprocentries, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG,
             "Row %" PetscInt_FMT " belongs to another rank, though MAT_NO_OFF_PROC_ENTRIES is set", row);
  if (!t->ignore_off_process) TCBoundCallCXX(t->stash.push_back({row, column, value, mode}));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetPlacedEntry(Mat A, const Place &row, const Place &column, PetscScalar value, InsertMode mode) {
  Mat_StencilTCBound *t = StencilOf(A);
  const int           slot = SlotOf(t->grid, row, column);

  PetscFunctionBegin;
  if (slot < 0) PetscCall(CheckSlot(A, row, column, slot, value));
  SetEntry(t, slot, CellOf(t->grid, row) * t->grid.dof + row.component, value, mode);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSetValues_StencilTCBound(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt columns[],
                                           const PetscScalar values[], InsertMode mode) {
  Mat_StencilTCBound *t = StencilOf(A);
  std::vector<Place>  places;

  PetscFunctionBegin;
  TCBoundCallCXX(places.resize(static_cast<std::size_t>(n)));
  PetscCall(MatStencilTCBoundExpand(A));
  for (PetscInt c = 0; c < n; c++)
    if (columns[c] >= 0) PetscCall(PlaceOfGlobal(A, columns[c], &places[static_cast<std::size_t>(c)]));
  for (PetscInt r = 0; r < m; r++) {
    Place row;

    if (rows[r] < 0) continue;
    PetscCall(PlaceOfGlobal(A, rows[r], &row));
    const bool owned = IsOwned(t->grid, row);
    for (PetscInt c = 0; c < n; c++) {
      const PetscScalar value = !values ? 0.0 : t->row_oriented ? values[r * n + c] : values[c * m + r];
      if (columns[c] < 0) continue;
      if (owned)
        PetscCall(SetPlacedEntry(A, row, places[static_cast<std::size_t>(c)], value, mode));
      else
        PetscCall(StashEntry(A, rows[r], columns[c], value, mode));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The slot of an entry of an owned row, all in the ghosted array's numbers. Applications give the columns of one row after the other in
  the same order, so the point that the last row's column had is tried first: its distance must be the same, and the row must have
  it (else the distance leads to a cell of another line).
*/
static int SlotOfLocal(const TCBoundStencilGrid &g, const Place &row, PetscInt row_cell, PetscInt index, int *last_point) {
  const PetscInt cell = g.dof == 1 ? index : index / g.dof, component = g.dof == 1 ? 0 : index % g.dof;

  if (*last_point >= 0 && cell - row_cell == g.distances[static_cast<std::size_t>(*last_point)]) {
    const int *offset = g.slots[static_cast<std::size_t>(*last_point * g.dof)].offset;
    bool       there = true;
    for (int d = 0; d < 3; d++) {
      const PetscInt at = row.at[d] + offset[d] + g.begin[d] - g.ghost_begin[d];
      there = there && at >= 0 && at < g.ghost_size[d];
    }
    if (there) return static_cast<int>(*last_point * g.dof + component);
  }
  const int slot = SlotOf(g, row, PlaceOfLocal(g, index));
  *last_point = slot < 0 ? -1 : static_cast<int>(slot / g.dof);
  return slot;
}

PetscErrorCode MatSetValuesLocal_StencilTCBound(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt columns[],
                                                const PetscScalar values[], InsertMode mode) {
  Mat_StencilTCBound       *t = StencilOf(A);
  const TCBoundStencilGrid &g = t->grid;

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundExpand(A));
  if (t->last_points.size() < static_cast<std::size_t>(n))
    TCBoundCallCXX(t->last_points.resize(static_cast<std::size_t>(n), -1));
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt row_cell = rows[r] < 0 ? -1 : rows[r] / g.dof;
    if (row_cell < 0 || g.cells[row_cell] < 0) continue; // no cell of the grid, as beyond a boundary
    const PetscInt global = g.cells[row_cell] * g.dof + rows[r] % g.dof;
    const bool     owned = global >= A->rmap->rstart && global < A->rmap->rend;
    const Place    given = PlaceOfLocal(g, rows[r]); // perhaps in a layer: offsets are the same there

    for (PetscInt c = 0; c < n; c++) {
      const PetscScalar value = !values ? 0.0 : t->row_oriented ? values[r * n + c] : values[c * m + r];
      if (columns[c] < 0 || g.cells[columns[c] / g.dof] < 0) continue;
      if (!owned) {
        PetscCall(StashEntry(A, global, g.cells[columns[c] / g.dof] * g.dof + columns[c] % g.dof, value, mode));
        continue;
      }
      const int slot = SlotOfLocal(g, given, row_cell, columns[c], &t->last_points[static_cast<std::size_t>(c)]);
      if (slot < 0) PetscCall(CheckSlot(A, given, PlaceOfLocal(g, columns[c]), slot, value));
      SetEntry(t, slot, global - A->rmap->rstart, value, mode);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSetValuesBlockedLocal_StencilTCBound(Mat A, PetscInt m, const PetscInt rows[], PetscInt n,
                                                       const PetscInt columns[], const PetscScalar values[], InsertMode mode) {
  const PetscInt        dof = StencilOf(A)->grid.dof;
  std::vector<PetscInt> all_rows, all_columns;

  PetscFunctionBegin;
  TCBoundCallCXX({
    for (PetscInt r = 0; r < m; r++)
      for (PetscInt c = 0; c < dof; c++) all_rows.push_back(rows[r] < 0 ? -1 : rows[r] * dof + c);
    for (PetscInt r = 0; r < n; r++)
      for (PetscInt c = 0; c < dof; c++) all_columns.push_back(columns[r] < 0 ? -1 : columns[r] * dof + c);
  });
  PetscCall(MatSetValuesLocal_StencilTCBound(A, m * dof, all_rows.data(), n * dof, all_columns.data(), values, mode));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The coefficient of a slot of the grid in an owned row.
static PetscScalar Coefficient(const Mat_StencilTCBound *t, int slot, std::int64_t cell, PetscInt component) {
  const auto s = static_cast<std::size_t>(slot);

  if (t->expanded) return t->arrays[s][static_cast<std::size_t>(cell * t->grid.dof + component)];
  if (t->active.empty() || t->active[s] < 0) return 0.0;
  return t->stencil.coefficient(t->active[s], cell, static_cast<int>(component));
}

PetscErrorCode MatGetValues_StencilTCBound(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt columns[],
                                           PetscScalar values[]) {
  Mat_StencilTCBound *t = StencilOf(A);
  Place               row, column;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < m; r++) {
    if (rows[r] < 0) continue;
    PetscCall(PlaceOfGlobal(A, rows[r], &row));
    PetscCheck(IsOwned(t->grid, row), PETSC_COMM_SELF, PETSC_ERR_SUP, "Only local values can be read; row %" PetscInt_FMT,
               rows[r]);
    for (PetscInt c = 0; c < n; c++) {
      if (columns[c] < 0) continue;
      PetscCall(PlaceOfGlobal(A, columns[c], &column));
      const int slot = SlotOf(t->grid, row, column);
      values[t->row_oriented ? r * n + c : c * m + r] =
        slot < 0 ? 0.0 : Coefficient(t, slot, CellOf(t->grid, row), row.component);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

// All points of the stencil that the row's cell has, zeros as well, by ascending column: what DMCreateMatrix() preallocates for AIJ.
PetscErrorCode MatGetRow_StencilTCBound(Mat A, PetscInt row, PetscInt *n, PetscInt **columns, PetscScalar **values) {
  Mat_StencilTCBound                           *t = StencilOf(A);
  const TCBoundStencilGrid                     &g = t->grid;
  std::vector<std::pair<PetscInt, PetscScalar>> entries;
  Stencil                                       shape;

  PetscFunctionBegin;
  PetscCheck(row >= A->rmap->rstart && row < A->rmap->rend, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "Only local rows can be read; row %" PetscInt_FMT, row);
  const PetscInt local = row - A->rmap->rstart;
  const Place    at = PlaceOfCell(g, local / g.dof, local % g.dof);
  shape.extents = g.extents;
  for (std::size_t s = 0; s < g.slots.size(); s++) {
    const tcbound::grid::Slot &slot = g.slots[s];
    if (!shape.exists(slot, at.at[0], at.at[1], at.at[2])) continue;
    const PetscInt cell =
      TCBoundStencilGridCell(g, at.at[0] + slot.offset[0], at.at[1] + slot.offset[1], at.at[2] + slot.offset[2]);
    entries.emplace_back(cell * g.dof + slot.component, Coefficient(t, static_cast<int>(s), local / g.dof, at.component));
  }
  std::sort(entries.begin(), entries.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  t->row_columns.clear();
  t->row_values.clear();
  for (const auto &[column, value] : entries) {
    t->row_columns.push_back(column);
    t->row_values.push_back(value);
  }
  if (n) *n = static_cast<PetscInt>(entries.size());
  if (columns) *columns = t->row_columns.data();
  if (values) *values = t->row_values.data();
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatRestoreRow_StencilTCBound(Mat, PetscInt, PetscInt *, PetscInt **, PetscScalar **) {
  PetscFunctionBegin;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAssemblyBegin_StencilTCBound(Mat A, MatAssemblyType) {
  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundTakeColored(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TakeStash(Mat A) {
  Mat_StencilTCBound              *t = StencilOf(A);
  std::vector<PetscMPIInt>         owners;
  std::vector<TCBoundStencilEntry> received;

  PetscFunctionBegin;
  for (const TCBoundStencilEntry &entry : t->stash) {
    PetscMPIInt owner;
    PetscCall(PetscLayoutFindOwner(A->rmap, entry.row, &owner));
    TCBoundCallCXX(owners.push_back(owner));
  }
  PetscCall(SendToOwners(A, t->stash, owners, &received));
  t->stash.clear();
  if (!received.empty()) PetscCall(MatStencilTCBoundExpand(A));
  for (const TCBoundStencilEntry &entry : received) {
    Place row, column;

    PetscCheck(A->insertmode == NOT_SET_VALUES || A->insertmode == entry.mode, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE,
               "Some ranks have added values, others inserted");
    PetscCall(PlaceOfGlobal(A, entry.row, &row));
    PetscCall(PlaceOfGlobal(A, entry.column, &column));
    PetscCall(SetPlacedEntry(A, row, column, entry.value, entry.mode));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAssemblyEnd_StencilTCBound(Mat A, MatAssemblyType type) {
  Mat_StencilTCBound *t = StencilOf(A);

  PetscFunctionBegin;
  if (!A->nooffprocentries) PetscCall(TakeStash(A));
  if (type == MAT_FLUSH_ASSEMBLY) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatStencilTCBoundCompress(A));
  // DMCreateMatrix() puts its own view here on several ranks, which leaves out what we have to say.
  if (A->ops->view != MatView_StencilTCBound) {
    t->natural_view = A->ops->view;
    A->ops->view = MatView_StencilTCBound;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatZeroEntries_StencilTCBound(Mat A) {
  Mat_StencilTCBound *t = StencilOf(A);

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundDropFormat(A));
  if (t->expanded) {
    for (std::vector<double> &array : t->arrays) std::fill(array.begin(), array.end(), 0.0);
  } else {
    t->stencil = Stencil();
    t->stencil.extents = t->grid.extents;
    t->active.assign(t->grid.slots.size(), -1);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
