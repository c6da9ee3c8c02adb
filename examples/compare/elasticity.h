#pragma once

#include <petscdm.h>
#include <petscmat.h>

namespace compare {

// Adds the stiffness of (n - 1)^3 trilinear hexahedra (unit edges, Young's modulus 1, Poisson's ratio 0.3) to a matrix of a
// DMDA with three unknowns a node; the nodes with i = 0 are held. Assembly is left to the caller. Collective.
PetscErrorCode FillElasticity(DM da, PetscInt n, Mat A);

} // namespace compare
