#pragma once

// Matrices of the suite as coefficients of a grid.

#include <cmath>
#include <vector>

#include <petscdmda.h>
#include <tcbound.h>

#include "cases.h"

namespace tcbound::bench {

inline bool IsCube(const MatrixCase &one) { return one.name.rfind("poisson", 0) == 0; }

// A matrix of the suite, of a cube with 7 or 27 points, as a stenciltcbound one: its rows are numbered as a DMDA's on one rank.
inline PetscErrorCode MakeStencil(const Matrix &m, bool host, Mat *A) {
  const PetscInt        n = static_cast<PetscInt>(std::llround(std::cbrt(static_cast<double>(m.rows))));
  const bool            star = m.offsets[1] == 4; // of a corner's row
  std::vector<PetscInt> columns;
  DM                    da;

  PetscFunctionBeginUser;
  PetscCall(DMDACreate3d(PETSC_COMM_SELF, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE,
                         star ? DMDA_STENCIL_STAR : DMDA_STENCIL_BOX, n, n, n, 1, 1, 1, 1, 1, nullptr, nullptr, nullptr, &da));
  PetscCall(DMSetUp(da));
  PetscCall(DMSetMatType(da, MATSTENCILTCBOUND));
  PetscCall(DMCreateMatrix(da, A));
  if (host) PetscCall(MatTCBoundSetBackend(*A, "host"));
  for (PetscInt row = 0; row < static_cast<PetscInt>(m.rows); row++) {
    const auto begin = m.offsets[row], end = m.offsets[row + 1];
    columns.assign(m.columns.begin() + begin, m.columns.begin() + end);
    PetscCall(MatSetValuesLocal(*A, 1, &row, end - begin, columns.data(), m.values.data() + begin, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(DMDestroy(&da));
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace tcbound::bench
