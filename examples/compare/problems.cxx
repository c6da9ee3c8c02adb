#include "problems.h"

#include <petscdmda.h>

#include "elasticity.h"

namespace compare {

namespace {

// How many ranks lie along each axis: as close to a cube as the number of ranks allows, with no rank left without nodes.
PetscErrorCode SplitRanks(MPI_Comm comm, PetscInt n, PetscInt split[3]) {
  PetscMPIInt size;
  PetscInt    best = PETSC_INT_MAX;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  for (PetscInt i = 1; i <= size; i++) {
    for (PetscInt j = 1; size % i == 0 && j <= size / i; j++) {
      const PetscInt k = size / i / j, surface = i * j + j * k + k * i;
      if (size / i % j || PetscMax(i, PetscMax(j, k)) > n || surface >= best) continue;
      best = surface;
      split[0] = i;
      split[1] = j;
      split[2] = k;
    }
  }
  PetscCheck(best < PETSC_INT_MAX, comm, PETSC_ERR_USER_INPUT,
             "-n %" PetscInt_FMT " is too small: %d ranks cannot share a grid of that many nodes along an edge", n, size);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CheckSize(MPI_Comm comm, const Options &o, PetscInt dof, PetscInt row_length) {
  PetscMPIInt  size;
  const double unknowns = (double)dof * o.n * o.n * o.n, entries = unknowns * row_length;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCheck(unknowns < PETSC_INT_MAX && entries / size < PETSC_INT_MAX, comm, PETSC_ERR_USER_INPUT,
             "-n %" PetscInt_FMT
             " gives %.3g unknowns and %.3g nonzeros on %d ranks: too many for this PETSc's %d-bit PetscInt",
             o.n, unknowns, entries, size, (int)(8 * sizeof(PetscInt)));
  PetscCheck(o.problem != Problem::elasticity || o.n >= 2, comm, PETSC_ERR_USER_INPUT,
             "-n %" PetscInt_FMT " must be at least 2 for -problem elasticity", o.n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The row of one node: its neighbours' columns and values. Outside the grid the solution is zero (Dirichlet).
struct Row {
  MatStencil  column[27];
  PetscScalar value[27];
  PetscInt    length = 0;
};

void add_neighbour(Row &row, const PetscInt node[3], const PetscInt shift[3], PetscInt n, PetscScalar value) {
  PetscInt at[3];
  for (int d = 0; d < 3; d++) {
    at[d] = node[d] + shift[d];
    if (at[d] < 0 || at[d] >= n) return;
  }
  MatStencil &column = row.column[row.length];
  column.i = at[0];
  column.j = at[1];
  column.k = at[2];
  column.c = 0;
  row.value[row.length++] = value;
}

// -Laplacian(u) + velocity . grad(u), times h^2. A swirl around the vertical axis, rising; upwind differences keep each row
// diagonally dominant.
void convection_row(Row &row, const PetscInt node[3], PetscInt n) {
  const PetscReal h = 1.0 / (n + 1), x = (node[0] + 1) * h - 0.5, y = (node[1] + 1) * h - 0.5;
  const PetscReal speed[3] = {-200.0 * y * h, 200.0 * x * h, 50.0 * h};
  PetscScalar     diagonal = 6.0;
  const PetscInt  here[3] = {0, 0, 0};
  for (int d = 0; d < 3; d++) {
    for (int side = -1; side <= 1; side += 2) {
      PetscInt        shift[3] = {0, 0, 0};
      const PetscReal inflow = PetscMax(-side * speed[d], 0.0);
      shift[d] = side;
      add_neighbour(row, node, shift, n, -1.0 - inflow);
    }
    diagonal += PetscAbsReal(speed[d]);
  }
  add_neighbour(row, node, here, n, diagonal);
}

void poisson_row(Row &row, const PetscInt node[3], PetscInt n, bool box) {
  for (PetscInt k = -1; k <= 1; k++) {
    for (PetscInt j = -1; j <= 1; j++) {
      for (PetscInt i = -1; i <= 1; i++) {
        const PetscInt shift[3] = {i, j, k}, distance = PetscAbsInt(i) + PetscAbsInt(j) + PetscAbsInt(k);
        if (box || distance <= 1) add_neighbour(row, node, shift, n, distance ? -1.0 : box ? 26.0 : 6.0);
      }
    }
  }
}

PetscErrorCode FillRows(DM da, const Options &o, Mat A) {
  PetscInt first[3], count[3];

  PetscFunctionBeginUser;
  PetscCall(DMDAGetCorners(da, &first[0], &first[1], &first[2], &count[0], &count[1], &count[2]));
  for (PetscInt k = first[2]; k < first[2] + count[2]; k++) {
    for (PetscInt j = first[1]; j < first[1] + count[1]; j++) {
      for (PetscInt i = first[0]; i < first[0] + count[0]; i++) {
        const PetscInt node[3] = {i, j, k};
        MatStencil     here = {};
        Row            row;
        here.i = i;
        here.j = j;
        here.k = k;
        if (o.problem == Problem::convection)
          convection_row(row, node, o.n);
        else
          poisson_row(row, node, o.n, o.problem == Problem::poisson27);
        PetscCall(MatSetValuesStencil(A, 1, &here, row.length, row.column, row.value, INSERT_VALUES));
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

// A matrix of a DMDA views and loads itself in the grid's ordering, and its copies inherit that. Here it is a matrix like any.
PetscErrorCode ForgetGrid(Mat A) {
  Mat plain;

  PetscFunctionBeginUser;
  PetscCall(MatSetDM(A, nullptr));
  PetscCall(MatCreate(PetscObjectComm((PetscObject)A), &plain));
  PetscCall(MatSetType(plain, MATAIJ));
  for (MatOperation operation : {MATOP_VIEW, MATOP_LOAD}) {
    PetscErrorCodeFn *function;
    PetscCall(MatGetOperation(plain, operation, &function));
    PetscCall(MatSetOperation(A, operation, function));
  }
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

PetscErrorCode AssembleProblem(MPI_Comm comm, const Options &o, Mat *A) {
  const bool           elastic = o.problem == Problem::elasticity, box = elastic || o.problem == Problem::poisson27;
  const PetscInt       dof = elastic ? 3 : 1;
  const DMBoundaryType none = DM_BOUNDARY_NONE;
  PetscInt             split[3] = {1, 1, 1};
  DM                   da;

  PetscFunctionBeginUser;
  PetscCall(Progress(comm, "assembling %s, n = %" PetscInt_FMT, o.problem_name.c_str(), o.n));
  PetscCall(CheckSize(comm, o, dof, dof * (box ? 27 : 7)));
  PetscCall(SplitRanks(comm, o.n, split));
  PetscCall(DMDACreate3d(comm, none, none, none, box ? DMDA_STENCIL_BOX : DMDA_STENCIL_STAR, o.n, o.n, o.n, split[0], split[1],
                         split[2], dof, 1, nullptr, nullptr, nullptr, &da));
  PetscCall(DMSetMatType(da, MATAIJ));
  PetscCall(DMSetMatrixPreallocateOnly(da, PETSC_TRUE));
  PetscCall(DMSetUp(da));
  PetscCall(DMCreateMatrix(da, A));
  // A DMDA that only preallocates leaves this on, and MatSetValues() then drops all but the first, sorted, insertion in a row.
  PetscCall(MatSetOption(*A, MAT_SORTED_FULL, PETSC_FALSE));
  if (elastic)
    PetscCall(FillElasticity(da, o.n, *A));
  else
    PetscCall(FillRows(da, o, *A));
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(ForgetGrid(*A));
  PetscCall(DMDestroy(&da));
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace compare
