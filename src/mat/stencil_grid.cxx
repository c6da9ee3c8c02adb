// What a stenciltcbound matrix knows of its DMDA: the cells of this rank, the stencil's points, and the way of neighbours' values.
#include "stenciltcbound.h"

#include <algorithm>

using tcbound::grid::Slot;

// The offset of smallest size that leads to the same cell; of two equal ones the positive.
static PetscInt Fold(const TCBoundStencilGrid &grid, int d, PetscInt offset) {
  if (!grid.periodic[d]) return offset;
  const PetscInt n = grid.size[d], folded = ((offset % n) + n) % n;
  return 2 * folded > n ? folded - n : folded;
}

static int PointAt(const TCBoundStencilGrid &grid, const PetscInt offset[3]) {
  const PetscInt w = grid.width, across = 2 * w + 1;

  for (int d = 0; d < 3; d++)
    if (PetscAbsInt(offset[d]) > w) return -1;
  return grid.points[((offset[2] + w) * across + offset[1] + w) * across + offset[0] + w];
}

int TCBoundStencilGridSlot(const TCBoundStencilGrid &grid, const PetscInt offset[3], PetscInt component) {
  PetscInt folded[3];

  for (int d = 0; d < 3; d++) folded[d] = Fold(grid, d, offset[d]);
  const int point = PointAt(grid, folded);
  return point < 0 ? -1 : static_cast<int>(point * grid.dof + component);
}

void TCBoundStencilGridLocate(const TCBoundStencilGrid &grid, PetscLayout rows, PetscMPIInt owner, PetscInt cell,
                              PetscInt at[3]) {
  const PetscInt parts[2] = {static_cast<PetscInt>(grid.split[0].size()) - 1, static_cast<PetscInt>(grid.split[1].size()) - 1};
  const PetscInt part[3] = {owner % parts[0], owner / parts[0] % parts[1], owner / parts[0] / parts[1]};
  PetscInt       n[2], rest = cell - rows->range[owner] / grid.dof;

  for (int d = 0; d < 2; d++) n[d] = grid.split[d][part[d] + 1] - grid.split[d][part[d]];
  at[0] = grid.split[0][part[0]] + rest % n[0];
  at[1] = grid.split[1][part[1]] + rest / n[0] % n[1];
  at[2] = grid.split[2][part[2]] + rest / n[0] / n[1];
}

static void MakeSlots(TCBoundStencilGrid &grid) {
  const PetscInt w = grid.width, across = 2 * w + 1;
  PetscInt       reach[3], o[3];

  for (int d = 0; d < 3; d++) reach[d] = d < grid.dim ? w : 0;
  grid.points.assign(across * across * across, -1);
  grid.slots.clear();
  for (o[2] = -reach[2]; o[2] <= reach[2]; o[2]++)
    for (o[1] = -reach[1]; o[1] <= reach[1]; o[1]++)
      for (o[0] = -reach[0]; o[0] <= reach[0]; o[0]++) {
        if (grid.star && (o[0] != 0) + (o[1] != 0) + (o[2] != 0) > 1) continue;
        // On a periodic grid as short as the stencil, several offsets lead to one cell: it has one point.
        if (Fold(grid, 0, o[0]) != o[0] || Fold(grid, 1, o[1]) != o[1] || Fold(grid, 2, o[2]) != o[2]) continue;
        grid.points[((o[2] + w) * across + o[1] + w) * across + o[0] + w] = static_cast<int>(grid.slots.size() / grid.dof);
        grid.distances.push_back((o[2] * grid.ghost_size[1] + o[1]) * grid.ghost_size[0] + o[0]);
        for (PetscInt c = 0; c < grid.dof; c++)
          grid.slots.push_back({{static_cast<int>(o[0]), static_cast<int>(o[1]), static_cast<int>(o[2])}, static_cast<int>(c)});
      }
}

static PetscErrorCode ReadSplit(TCBoundStencilGrid &grid, DM dm, const PetscInt ranks[3]) {
  const PetscInt *lengths[3];

  PetscFunctionBegin;
  PetscCall(DMDAGetOwnershipRanges(dm, &lengths[0], &lengths[1], &lengths[2]));
  for (int d = 0; d < 3; d++) {
    grid.split[d].assign(1, 0);
    for (PetscInt r = 0; r < (d < grid.dim ? ranks[d] : 1); r++)
      grid.split[d].push_back(grid.split[d].back() + (d < grid.dim ? lengths[d][r] : 1));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundStencilGridSetUp(TCBoundStencilGrid &grid, DM dm) {
  MPI_Comm        comm = PetscObjectComm((PetscObject)dm);
  DMBoundaryType  boundary[3];
  DMDAStencilType type;
  PetscInt        ranks[3], owned[3];

  PetscFunctionBegin;
  PetscCall(DMDAGetInfo(dm, &grid.dim, &grid.size[0], &grid.size[1], &grid.size[2], &ranks[0], &ranks[1], &ranks[2], &grid.dof,
                        &grid.width, &boundary[0], &boundary[1], &boundary[2], &type));
  PetscCall(DMDAGetCorners(dm, &grid.begin[0], &grid.begin[1], &grid.begin[2], &owned[0], &owned[1], &owned[2]));
  PetscCall(DMDAGetGhostCorners(dm, &grid.ghost_begin[0], &grid.ghost_begin[1], &grid.ghost_begin[2], &grid.ghost_size[0],
                                &grid.ghost_size[1], &grid.ghost_size[2]));
  grid.star = type == DMDA_STENCIL_STAR;
  grid.extents.dof = static_cast<int>(grid.dof);
  for (int d = 0; d < 3; d++) {
    grid.extents.n[d] = owned[d];
    if (d >= grid.dim) continue;
    PetscCheck(boundary[d] == DM_BOUNDARY_NONE || boundary[d] == DM_BOUNDARY_GHOSTED || boundary[d] == DM_BOUNDARY_PERIODIC,
               comm, PETSC_ERR_SUP, "Type %s takes boundaries of type none, ghosted and periodic; dimension %d is %s",
               MATSTENCILTCBOUND, d, DMBoundaryTypes[boundary[d]]);
    grid.periodic[d] = boundary[d] == DM_BOUNDARY_PERIODIC;
    const PetscInt low = grid.begin[d], high = grid.size[d] - grid.begin[d] - owned[d]; // cells of the grid on either side
    grid.extents.low[d] = static_cast<int>(grid.periodic[d] ? grid.width : PetscMin(low, grid.width));
    grid.extents.high[d] = static_cast<int>(grid.periodic[d] ? grid.width : PetscMin(high, grid.width));
  }
  PetscCall(ReadSplit(grid, dm, ranks));
  MakeSlots(grid);
  PetscCall(DMGetLocalToGlobalMapping(dm, &grid.ltog));
  PetscCall(PetscObjectReference((PetscObject)grid.ltog));
  PetscCall(ISLocalToGlobalMappingGetBlockIndices(grid.ltog, &grid.cells));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundStencilGridDestroy(TCBoundStencilGrid &grid) {
  PetscFunctionBegin;
  if (grid.ltog) PetscCall(ISLocalToGlobalMappingRestoreBlockIndices(grid.ltog, &grid.cells));
  PetscCall(ISLocalToGlobalMappingDestroy(&grid.ltog));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Leaves are the elements of the layers, without corners where the stencil is a star.
PetscErrorCode TCBoundStencilGridMakeHalo(const TCBoundStencilGrid &grid, PetscLayout rows, PetscSF *halo) {
  const tcbound::grid::Extents &e = grid.extents;
  std::vector<PetscInt>         leaves, roots;

  PetscFunctionBegin;
  for (std::int64_t k = -e.low[2]; k < e.n[2] + e.high[2]; k++)
    for (std::int64_t j = -e.low[1]; j < e.n[1] + e.high[1]; j++)
      for (std::int64_t i = -e.low[0]; i < e.n[0] + e.high[0]; i++) {
        const int outside = (i < 0 || i >= e.n[0]) + (j < 0 || j >= e.n[1]) + (k < 0 || k >= e.n[2]);
        if (outside == 0) {
          i = e.n[0] - 1; // the owned part of a line
          continue;
        }
        if (outside > 1 && grid.star) continue;
        const PetscInt cell =
          TCBoundStencilGridCell(grid, static_cast<PetscInt>(i), static_cast<PetscInt>(j), static_cast<PetscInt>(k));
        const std::int64_t leaf = ((k + e.low[2]) * e.ghosted(1) + j + e.low[1]) * e.ghosted(0) + i + e.low[0];
        for (PetscInt c = 0; c < grid.dof; c++) {
          leaves.push_back(static_cast<PetscInt>(leaf * grid.dof + c));
          roots.push_back(cell * grid.dof + c);
        }
      }
  PetscCall(PetscSFCreate(rows->comm, halo));
  PetscCall(
    PetscSFSetGraphLayout(*halo, rows, static_cast<PetscInt>(leaves.size()), leaves.data(), PETSC_COPY_VALUES, roots.data()));
  PetscCall(PetscSFSetUp(*halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// PETSc's global number of any cell of the global grid: that of its rank's first cell and, of its rank's, those before it.
static PetscInt NumberOf(const TCBoundStencilGrid &grid, PetscLayout rows, const PetscInt part[3], const PetscInt at[3]) {
  const PetscInt parts[2] = {static_cast<PetscInt>(grid.split[0].size()) - 1, static_cast<PetscInt>(grid.split[1].size()) - 1};
  PetscInt       in[3], n[2];

  for (int d = 0; d < 3; d++) {
    in[d] = at[d] - grid.split[d][part[d]];
    if (d < 2) n[d] = grid.split[d][part[d] + 1] - grid.split[d][part[d]];
  }
  return rows->range[(part[2] * parts[1] + part[1]) * parts[0] + part[0]] / grid.dof + (in[2] * n[1] + in[1]) * n[0] + in[0];
}

PetscErrorCode TCBoundStencilGridMakeExchange(const TCBoundStencilGrid &grid, PetscLayout rows, PetscInt layers,
                                              TCBoundStencilExchange *exchange) {
  std::vector<PetscInt>    roots;
  std::vector<PetscSFNode> own;
  PetscInt                 begin[3], size[3], at[3], part[3];

  PetscFunctionBegin;
  if (exchange->gather && exchange->layers == layers) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TCBoundStencilExchangeDestroy(*exchange));
  exchange->layers = layers;
  for (int d = 0; d < 3; d++) {
    const PetscInt n = static_cast<PetscInt>(grid.extents.n[d]), end = grid.begin[d] + n;
    begin[d] = exchange->begin[d] = PetscMax(0, grid.begin[d] - layers);
    size[d] = exchange->size[d] = PetscMin(grid.size[d], end + layers) - begin[d];
  }
  const auto move = [&](int d, PetscInt i) { // to the i-th cell of the exchange, by rising i
    at[d] = begin[d] + i;
    if (i == 0) part[d] = 0;
    while (at[d] >= grid.split[d][static_cast<std::size_t>(part[d]) + 1]) part[d]++;
  };
  for (PetscInt k = 0; k < size[2]; k++) {
    move(2, k);
    for (PetscInt j = 0; j < size[1]; j++) {
      move(1, j);
      for (PetscInt i = 0; i < size[0]; i++) {
        move(0, i);
        bool owned = true;
        for (int d = 0; d < 3; d++) owned = owned && at[d] >= grid.begin[d] && at[d] < grid.begin[d] + grid.extents.n[d];
        if (owned) own.push_back({0, static_cast<PetscInt>(roots.size())});
        roots.push_back(NumberOf(grid, rows, part, at));
      }
    }
  }
  const PetscInt cells = static_cast<PetscInt>(roots.size());
  PetscCall(PetscSFCreate(rows->comm, &exchange->gather));
  PetscCall(PetscSFSetGraphLayout(exchange->gather, rows, cells, NULL, PETSC_COPY_VALUES, roots.data()));
  PetscCall(PetscSFSetUp(exchange->gather));
  PetscCall(PetscSFCreate(PETSC_COMM_SELF, &exchange->extract));
  PetscCall(PetscSFSetGraph(exchange->extract, cells, static_cast<PetscInt>(own.size()), NULL, PETSC_COPY_VALUES, own.data(),
                            PETSC_COPY_VALUES));
  PetscCall(PetscSFSetUp(exchange->extract));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundStencilExchangeDestroy(TCBoundStencilExchange &exchange) {
  PetscFunctionBegin;
  PetscCall(PetscSFDestroy(&exchange.gather));
  PetscCall(PetscSFDestroy(&exchange.extract));
  PetscFunctionReturn(PETSC_SUCCESS);
}
