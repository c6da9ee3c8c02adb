#pragma once
// DMDAs of many kinds and values for their matrices, for the tests of stenciltcbound.

#include <petscdmda.h>

#include "mat/support.h"

struct Grid {
  PetscInt       dim = 1, size[3] = {1, 1, 1}, dof = 1, width = 1;
  bool           star = true;
  DMBoundaryType boundary[3] = {DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE};

  std::string describe() const {
    std::string text = std::to_string(dim) + "D";
    for (PetscInt d = 0; d < dim; d++) text += " " + std::to_string(size[d]) + " " + DMBoundaryTypes[boundary[d]];
    return text + ", dof " + std::to_string(dof) + (star ? ", star " : ", box ") + std::to_string(width);
  }
};

// Without boundaries of any kind, and one component.
inline Grid grid_of(PetscInt dim, PetscInt n0, PetscInt n1, PetscInt n2, bool star = true, PetscInt width = 1) {
  Grid g;
  g.dim = dim;
  g.size[0] = n0;
  g.size[1] = n1;
  g.size[2] = n2;
  g.star = star;
  g.width = width;
  return g;
}

inline PetscErrorCode destroy(DM *o) { return DMDestroy(o); }

inline void make_da(const Grid &g, DM *da) {
  const DMDAStencilType type = g.star ? DMDA_STENCIL_STAR : DMDA_STENCIL_BOX;
  if (g.dim == 1)
    OK(DMDACreate1d(PETSC_COMM_WORLD, g.boundary[0], g.size[0], g.dof, g.width, nullptr, da));
  else if (g.dim == 2)
    OK(DMDACreate2d(PETSC_COMM_WORLD, g.boundary[0], g.boundary[1], type, g.size[0], g.size[1], PETSC_DECIDE, PETSC_DECIDE,
                    g.dof, g.width, nullptr, nullptr, da));
  else
    OK(DMDACreate3d(PETSC_COMM_WORLD, g.boundary[0], g.boundary[1], g.boundary[2], type, g.size[0], g.size[1], g.size[2],
                    PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, g.dof, g.width, nullptr, nullptr, nullptr, da));
  OK(DMSetUp(*da));
}

// Large enough for every split over the ranks that a DMDA takes; `small` periodic ones are as short as the stencil.
inline Grid random_grid(std::uint64_t seed) {
  Grid       g;
  const auto pick = [&](std::uint64_t place, PetscInt n) { return random_index(seed, place, n); };
  g.dim = 1 + pick(0, 3);
  g.width = 1 + pick(1, 3);
  g.star = g.dim == 1 || pick(2, 2);
  g.dof = pick(3, 3) ? 1 : 1 + pick(4, 3);
  for (PetscInt d = 0; d < g.dim; d++) {
    const DMBoundaryType types[3] = {DM_BOUNDARY_NONE, DM_BOUNDARY_GHOSTED, DM_BOUNDARY_PERIODIC};
    g.boundary[d] = types[pick(5 + static_cast<std::uint64_t>(d), 3)];
    const PetscInt least = world_size() == 1 ? g.width : g.width * world_size();
    g.size[d] = least + pick(8 + static_cast<std::uint64_t>(d), g.dim == 1 ? 40 : g.dim == 2 ? 12 : 5);
  }
  return g;
}

enum class Fill { constant, dirichlet, variable, some_zero, symmetric, replaced }; // replaced: symmetric, Dirichlet's rows

// The offsets of a grid's stencil.
inline std::vector<MatStencil> offsets_of(const Grid &g) {
  std::vector<MatStencil> all;
  const PetscInt          w[3] = {g.width, g.dim > 1 ? g.width : 0, g.dim > 2 ? g.width : 0};
  for (PetscInt k = -w[2]; k <= w[2]; k++)
    for (PetscInt j = -w[1]; j <= w[1]; j++)
      for (PetscInt i = -w[0]; i <= w[0]; i++)
        if (!g.star || (i != 0) + (j != 0) + (k != 0) <= 1) all.push_back({k, j, i, 0});
  return all;
}

// Sets (or adds) every entry of the owned rows as an application does. Where the grid ends, entries lie outside: they are given all the
// same when it is ghosted, as PETSc drops them.
inline void fill(DM da, const Grid &g, Mat A, Fill how, InsertMode mode, std::uint64_t seed) {
  PetscInt                      x, y, z, m, n, p;
  const std::vector<MatStencil> offsets = offsets_of(g);

  OK(DMDAGetCorners(da, &x, &y, &z, &m, &n, &p));
  for (PetscInt k = z; k < z + p; k++)
    for (PetscInt j = y; j < y + n; j++)
      for (PetscInt i = x; i < x + m; i++)
        for (PetscInt c = 0; c < g.dof; c++) {
          const PetscInt           at[3] = {i, j, k};
          std::vector<MatStencil>  columns;
          std::vector<PetscScalar> values;
          MatStencil               row = {k, j, i, c};
          bool                     boundary = false;
          for (PetscInt d = 0; d < g.dim; d++)
            boundary = boundary || (g.boundary[d] != DM_BOUNDARY_PERIODIC && (at[d] == 0 || at[d] == g.size[d] - 1));
          for (std::size_t o = 0; o < offsets.size(); o++)
            for (PetscInt b = 0; b < g.dof; b++) {
              const PetscInt to[3] = {i + offsets[o].i, j + offsets[o].j, k + offsets[o].k};
              bool           inside = true;
              for (PetscInt d = 0; d < g.dim; d++)
                inside = inside && (g.boundary[d] != DM_BOUNDARY_NONE || (to[d] >= 0 && to[d] < g.size[d]));
              if (!inside) continue;
              const auto slot = o * static_cast<std::size_t>(g.dof * g.dof) + static_cast<std::size_t>(b * g.dof + c);
              double     value = random_number(seed, slot);
              if (how == Fill::variable)
                value = random_number(seed, slot + 1000 * static_cast<std::uint64_t>(((k * g.size[1]) + j) * g.size[0] + i));
              if (how == Fill::symmetric || how == Fill::replaced) {
                std::uint64_t rows[2] = {0, 0}; // numbers of this row and the other one
                for (PetscInt d = g.dim - 1; d >= 0; d--) {
                  rows[0] = rows[0] * 1000 + static_cast<std::uint64_t>(at[d]);
                  rows[1] = rows[1] * 1000 + static_cast<std::uint64_t>((to[d] + g.size[d]) % g.size[d]);
                }
                rows[0] = rows[0] * 10 + static_cast<std::uint64_t>(c);
                rows[1] = rows[1] * 10 + static_cast<std::uint64_t>(b);
                value = random_number(seed, std::min(rows[0], rows[1]) + 999983 * std::max(rows[0], rows[1]));
              }
              if (how == Fill::some_zero && slot % 3) value = 0.0;
              if ((how == Fill::dirichlet || how == Fill::replaced) && boundary)
                value = !offsets[o].i && !offsets[o].j && !offsets[o].k && b == c ? 2.0 : 0.0;
              columns.push_back({to[2], to[1], to[0], b});
              values.push_back(value);
            }
          OK(MatSetValuesStencil(A, 1, &row, static_cast<PetscInt>(columns.size()), columns.data(), values.data(), mode));
        }
  OK(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  OK(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
}

inline void make_matrix(DM da, MatType type, Mat *A) {
  OK(DMSetMatType(da, type));
  OK(DMCreateMatrix(da, A));
}

// A stenciltcbound matrix and the AIJ one with the same entries.
struct StencilPair {
  StencilPair(const Grid &grid, Fill how, std::uint64_t seed = 1) : g(grid) {
    make_da(g, &da);
    make_matrix(da, MATAIJ, &aij);
    make_matrix(da, MATSTENCILTCBOUND, &ours);
    fill(da, g, aij, how, INSERT_VALUES, seed);
    fill(da, g, ours, how, INSERT_VALUES, seed);
  }
  Grid        g;
  Handle<DM>  da;
  Handle<Mat> aij, ours;
};
