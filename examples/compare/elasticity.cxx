#include "elasticity.h"

#include <petscdmda.h>

namespace compare {

namespace {

// Corner a of an element lies at (a & 1, a >> 1 & 1, a >> 2).
PetscInt corner(int a, int direction) { return (a >> direction) & 1; }

// Derivatives of the eight shape functions at a point of the unit cube.
void gradients(const PetscReal at[3], PetscReal g[8][3]) {
  for (int a = 0; a < 8; a++) {
    for (int d = 0; d < 3; d++) {
      g[a][d] = 1.0;
      for (int e = 0; e < 3; e++) {
        if (e == d)
          g[a][d] *= corner(a, e) ? 1.0 : -1.0;
        else
          g[a][d] *= corner(a, e) ? at[e] : 1.0 - at[e];
      }
    }
  }
}

// K[3a + c][3b + d] = integral of lambda g_a,c g_b,d + mu (g_a,d g_b,c + (c = d) g_a . g_b), by 2 x 2 x 2 Gauss points.
void stiffness(PetscScalar K[24 * 24]) {
  const PetscReal young = 1.0, ratio = 0.3;
  const PetscReal lambda = young * ratio / ((1 + ratio) * (1 - 2 * ratio)), mu = young / (2 * (1 + ratio));
  const PetscReal point[2] = {0.5 - 0.5 / PetscSqrtReal(3.0), 0.5 + 0.5 / PetscSqrtReal(3.0)}, weight = 0.125;
  for (int q = 0; q < 8; q++) {
    const PetscReal at[3] = {point[q & 1], point[q >> 1 & 1], point[q >> 2]};
    PetscReal       g[8][3];
    gradients(at, g);
    for (int a = 0; a < 8; a++) {
      for (int b = 0; b < 8; b++) {
        const PetscReal dot = g[a][0] * g[b][0] + g[a][1] * g[b][1] + g[a][2] * g[b][2];
        for (int c = 0; c < 3; c++) {
          for (int d = 0; d < 3; d++)
            K[(3 * a + c) * 24 + 3 * b + d] +=
              weight * (lambda * g[a][c] * g[b][d] + mu * (g[a][d] * g[b][c] + (c == d ? dot : 0.0)));
        }
      }
    }
  }
}

// Held nodes keep their diagonal entries and are uncoupled from all else, on both sides, so the matrix stays symmetric.
void hold_face(PetscScalar K[24 * 24]) {
  for (int r = 0; r < 24; r++) {
    for (int s = 0; s < 24; s++) {
      const bool held = !corner(r / 3, 0) || !corner(s / 3, 0);
      if (held && r != s) K[r * 24 + s] = 0.0;
    }
  }
}

} // namespace

PetscErrorCode FillElasticity(DM da, PetscInt n, Mat A) {
  PetscScalar inner[24 * 24] = {}, held[24 * 24] = {};
  PetscInt    first[3], count[3];

  PetscFunctionBeginUser;
  stiffness(inner);
  stiffness(held);
  hold_face(held);
  PetscCall(DMDAGetCorners(da, &first[0], &first[1], &first[2], &count[0], &count[1], &count[2]));
  // The rank that owns an element's first corner adds it.
  for (PetscInt k = first[2]; k < PetscMin(first[2] + count[2], n - 1); k++) {
    for (PetscInt j = first[1]; j < PetscMin(first[1] + count[1], n - 1); j++) {
      for (PetscInt i = first[0]; i < PetscMin(first[0] + count[0], n - 1); i++) {
        MatStencil nodes[8] = {};
        for (int a = 0; a < 8; a++) {
          nodes[a].i = i + corner(a, 0);
          nodes[a].j = j + corner(a, 1);
          nodes[a].k = k + corner(a, 2);
        }
        PetscCall(MatSetValuesBlockedStencil(A, 8, nodes, 8, nodes, i ? inner : held, ADD_VALUES));
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace compare
