#pragma once

#include <petscmat.h>

#include "options.h"

namespace compare {

// Assembles one of the built-in problems on an n x n x n grid of nodes as a MATAIJ. Collective.
//   poisson7    7-point Laplacian, one unknown a node, symmetric positive definite
//   poisson27   26 on the diagonal and -1 to each of the 26 neighbours, symmetric positive definite
//   elasticity  linear elasticity, trilinear hexahedra, three unknowns a node, one face held: symmetric positive definite
//   convection  convection and diffusion, first-order upwind, in a swirling flow: nonsymmetric
PetscErrorCode AssembleProblem(MPI_Comm comm, const Options &options, Mat *A);

} // namespace compare
