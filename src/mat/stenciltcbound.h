#pragma once

#include <petscdmda.h>
#include <petscsf.h>

#include "../../kernels/stencil/grid/format.h"
#include "aijtcbound.h"
#include "stencil_sweeps.h"

// The grid of a DMDA as this rank sees it. Cells are numbered in the global grid; those of DMDA's ghosted array from its first one.
struct TCBoundStencilGrid {
  PetscInt              dim = 0, dof = 1, width = 0;
  bool                  star = false;
  PetscInt              size[3] = {1, 1, 1};        // of the global grid
  PetscInt              begin[3] = {0, 0, 0};       // the first owned cell
  PetscInt              ghost_begin[3] = {0, 0, 0}; // the first cell of the ghosted array, and its size
  PetscInt              ghost_size[3] = {1, 1, 1};
  bool                  periodic[3] = {false, false, false};
  std::vector<PetscInt> split[3]; // where the ranks' parts of each dimension begin; the end

  ISLocalToGlobalMapping ltog = NULL;
  const PetscInt        *cells = NULL; // the number among PETSc's global cells of each in the ghosted array; negative: none

  tcbound::grid::Extents           extents;
  std::vector<tcbound::grid::Slot> slots;     // all that the stencil may have, component fastest
  std::vector<int>                 points;    // which point (slot / dof) has an offset; -1: none
  std::vector<PetscInt>            distances; // of each point's cell in the ghosted array
};

// A value for a row of another rank.
struct TCBoundStencilEntry {
  PetscInt    row, column;
  PetscScalar value;
  InsertMode  mode;
};

// Rows of the log: products with vectors as those of aijtcbound, and sweeps by the same kernels.
constexpr int TCBOUND_STENCIL_RELAX = TCBOUND_MULT_TRANSPOSE_ADD + 1, TCBOUND_STENCIL_OPS = TCBOUND_STENCIL_RELAX + 1;

// In Mat::data of a stenciltcbound matrix.
struct Mat_StencilTCBound {
  TCBoundMatSettings settings;
  TCBoundStencilGrid grid;

  // The coefficients. While values are set: an array for each slot of `grid`; else `stencil`, and active[s] is where it has slot s.
  bool                             expanded = false;
  std::vector<std::vector<double>> arrays;
  tcbound::grid::Stencil           stencil;
  std::vector<int>                 active;
  std::vector<TCBoundStencilEntry> stash;
  std::vector<int>                 last_points; // of MatSetValuesLocal(), column by column
  PetscBool                        row_oriented = PETSC_TRUE, ignore_off_process = PETSC_FALSE;
  PetscBool ignore_zeros = PETSC_FALSE, ignore_outside = PETSC_FALSE; // MAT_IGNORE_ZERO_ENTRIES, MAT_NEW_NONZERO_LOCATIONS

  // For products.
  std::string                                label; // in the log; empty: the matrix's own name or prefix
  const tcbound::Kernel                     *kernel = nullptr;
  tcbound::Executor                         *executor = nullptr;
  std::unique_ptr<tcbound::grid::GridFormat> format;
  PetscBool                                  bound = PETSC_FALSE; // to the CPU, when the kernel was chosen
  PetscLogDouble                             setup_seconds = 0;
  tcbound::Array<double>                     staged[4];
  tcbound::Array<double>                     ghosts;      // the grid with its layers, of which only layers are filled
  PetscSF                                    halo = NULL; // from rows of the matrix to ghosts
  TCBoundLogRow                              rows[TCBOUND_STENCIL_OPS][3] = {};
  PetscErrorCode (*natural_view)(Mat, PetscViewer) = NULL; // DMDA's, which shows the grid's own order
  Mat              transpose = NULL;                       // made by the first transposed product, dropped with the format
  PetscObjectState transpose_state = 0;                    // of this matrix, when it was made

  // For several steps a pass.
  std::unique_ptr<TCBoundStencilSweeps> sweeps; // made when asked for, dropped with the format
  TCBoundStencilExchange                exchange;

  Mat                      block = NULL;   // AIJ copy of the diagonal block, likewise
  Mat                      colored = NULL; // AIJ matrix that colorings write into
  std::vector<PetscInt>    row_columns;    // of MatGetRow()
  std::vector<PetscScalar> row_values;
};

static inline Mat_StencilTCBound *StencilOf(Mat A) { return static_cast<Mat_StencilTCBound *>(A->data); }

// stencil_grid.cxx
PETSC_INTERN PetscErrorCode TCBoundStencilGridSetUp(TCBoundStencilGrid &grid, DM dm);
PETSC_INTERN PetscErrorCode TCBoundStencilGridDestroy(TCBoundStencilGrid &grid);
// The slot of component `component` at that distance, in either direction where the grid is periodic; -1 if the stencil has none.
PETSC_INTERN int TCBoundStencilGridSlot(const TCBoundStencilGrid &grid, const PetscInt offset[3], PetscInt component);
// Where PETSc's global cell `cell` lies in the global grid; `owner` has it.
PETSC_INTERN void TCBoundStencilGridLocate(const TCBoundStencilGrid &grid, PetscLayout rows, PetscMPIInt owner, PetscInt cell,
                                           PetscInt at[3]);
// PETSc's global number of a cell given from the first owned one; the cell must exist.
static inline PetscInt TCBoundStencilGridCell(const TCBoundStencilGrid &g, PetscInt i, PetscInt j, PetscInt k) {
  const PetscInt x = i + g.begin[0] - g.ghost_begin[0], y = j + g.begin[1] - g.ghost_begin[1],
                 z = k + g.begin[2] - g.ghost_begin[2];
  return g.cells[(z * g.ghost_size[1] + y) * g.ghost_size[0] + x];
}
// The first element of a cell in the grid with its layers.
static inline std::int64_t TCBoundStencilGridLayered(const tcbound::grid::Extents &e, std::int64_t i, std::int64_t j,
                                                     std::int64_t k) {
  return (((k + e.low[2]) * e.ghosted(1) + j + e.low[1]) * e.ghosted(0) + i + e.low[0]) * e.dof;
}
PETSC_INTERN PetscErrorCode TCBoundStencilGridMakeHalo(const TCBoundStencilGrid &grid, PetscLayout rows, PetscSF *halo);
// Deep layers; nothing to do if the exchange has that many.
PETSC_INTERN PetscErrorCode TCBoundStencilGridMakeExchange(const TCBoundStencilGrid &grid, PetscLayout rows, PetscInt layers,
                                                           TCBoundStencilExchange *exchange);

// stencil_values.cxx
PETSC_INTERN PetscErrorCode MatStencilTCBoundExpand(Mat A);
PETSC_INTERN PetscErrorCode MatStencilTCBoundCompress(Mat A);
PETSC_INTERN PetscErrorCode MatStencilTCBoundDropFormat(Mat A);
PETSC_INTERN PetscErrorCode MatSetValues_StencilTCBound(Mat, PetscInt, const PetscInt[], PetscInt, const PetscInt[],
                                                        const PetscScalar[], InsertMode);
PETSC_INTERN PetscErrorCode MatSetValuesLocal_StencilTCBound(Mat, PetscInt, const PetscInt[], PetscInt, const PetscInt[],
                                                             const PetscScalar[], InsertMode);
PETSC_INTERN PetscErrorCode MatSetValuesBlockedLocal_StencilTCBound(Mat, PetscInt, const PetscInt[], PetscInt, const PetscInt[],
                                                                    const PetscScalar[], InsertMode);
PETSC_INTERN PetscErrorCode MatGetValues_StencilTCBound(Mat, PetscInt, const PetscInt[], PetscInt, const PetscInt[],
                                                        PetscScalar[]);
PETSC_INTERN PetscErrorCode MatGetRow_StencilTCBound(Mat, PetscInt, PetscInt *, PetscInt **, PetscScalar **);
PETSC_INTERN PetscErrorCode MatRestoreRow_StencilTCBound(Mat, PetscInt, PetscInt *, PetscInt **, PetscScalar **);
PETSC_INTERN PetscErrorCode MatAssemblyBegin_StencilTCBound(Mat, MatAssemblyType);
PETSC_INTERN PetscErrorCode MatAssemblyEnd_StencilTCBound(Mat, MatAssemblyType);
PETSC_INTERN PetscErrorCode MatZeroEntries_StencilTCBound(Mat);
PETSC_INTERN PetscErrorCode MatZeroRows_StencilTCBound(Mat, PetscInt, const PetscInt[], PetscScalar, Vec, Vec);
PETSC_INTERN PetscErrorCode MatZeroRowsColumns_StencilTCBound(Mat, PetscInt, const PetscInt[], PetscScalar, Vec, Vec);

// stencil_product.cxx
PETSC_INTERN PetscErrorCode MatStencilTCBoundUpdate(Mat A);
// `values`, one for each row, as the grid with its layers; all in host memory.
PETSC_INTERN PetscErrorCode MatStencilTCBoundGetLayers(Mat A, const PetscScalar values[], PetscScalar ghosts[]);
PETSC_INTERN PetscErrorCode MatMult_StencilTCBound(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultAdd_StencilTCBound(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultTranspose_StencilTCBound(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultTransposeAdd_StencilTCBound(Mat, Vec, Vec, Vec);
// z = x + factor D^-1 (b - A x) in one pass over memory, with any coefficients and on any grid; as many such sweeps as there may be at
// once. inverse: the diagonal of D^-1, or NULL where the factor has been divided by it. x: NULL for several sweeps from 0. z is another
// vector than x and b.
PETSC_INTERN PetscErrorCode MatStencilTCBoundSweep(Mat A, PetscInt sweeps, const PetscReal factors[], Vec inverse, Vec b, Vec x,
                                                   Vec z);
// Of diagonals that vary.
PETSC_INTERN PetscErrorCode MatStencilTCBoundMostSweeps(Mat A, PetscInt *sweeps);
PETSC_INTERN PetscErrorCode MatGetDiagonal_StencilTCBound(Mat, Vec);
PETSC_INTERN PetscErrorCode MatTranspose_StencilTCBound(Mat, MatReuse, Mat *);
// The transposed matrix that transposed products run on, up to date; it belongs to A.
PETSC_INTERN PetscErrorCode MatStencilTCBoundGetTranspose(Mat A, Mat *transpose);

// stencil_operations.cxx
PETSC_INTERN PetscErrorCode MatStencilTCBoundSetOperations(Mat A);
// Inserts A's rows of this rank into B, matrices of any type. B is to be assembled then.
PETSC_INTERN PetscErrorCode MatStencilTCBoundSetRowsOf(Mat A, Mat B);

// powers.cxx
PETSC_INTERN PetscErrorCode MatTCBoundRegisterPowers(void);

// stencil_factor.cxx
PETSC_INTERN PetscErrorCode MatStencilTCBoundRegisterFactors(void);

// stencil_coloring.cxx
PETSC_INTERN void MatStencilTCBoundSetColoringOperations(Mat A);
// What a coloring has computed since the last call becomes the matrix's values, those of this rank's rows. For assembly to begin with.
PETSC_INTERN PetscErrorCode MatStencilTCBoundTakeColored(Mat A);

// stencil_info.cxx
PETSC_INTERN PetscErrorCode MatView_StencilTCBound(Mat, PetscViewer);
PETSC_INTERN PetscErrorCode MatGetInfo_StencilTCBound(Mat, MatInfoType, MatInfo *);
PETSC_INTERN PetscErrorCode MatStencilTCBoundAddInfo(Mat A, MatTCBoundInfo *info, PetscLogDouble sums[4],
                                                     PetscLogDouble *seconds);

// stenciltcbound.cxx
PETSC_INTERN PetscErrorCode MatIsStencilTCBound(Mat A, PetscBool *is);
PETSC_INTERN PetscErrorCode MatCreate_StencilTCBound(Mat A);
PETSC_INTERN PetscErrorCode MatStencilTCBoundApplySettings(Mat A, const TCBoundMatSettings &settings);
// A matrix like A without values, set up.
PETSC_INTERN PetscErrorCode MatStencilTCBoundCreateLike(Mat A, Mat *B);

// Calls f(cell, i, j, k, slot of grid) for all entries whose neighbour exists; one call for all components of the row's cell.
template <class F> void ForEachNeighbour(const TCBoundStencilGrid &grid, F &&f) {
  const tcbound::grid::Extents &e = grid.extents;
  tcbound::grid::Stencil        shape;

  shape.extents = e;
  for (std::size_t s = 0; s < grid.slots.size(); s++) {
    std::int64_t cell = 0;
    for (std::int64_t k = 0; k < e.n[2]; k++)
      for (std::int64_t j = 0; j < e.n[1]; j++)
        for (std::int64_t i = 0; i < e.n[0]; i++, cell++)
          if (shape.exists(grid.slots[s], i, j, k)) f(cell, i, j, k, static_cast<int>(s));
  }
}
