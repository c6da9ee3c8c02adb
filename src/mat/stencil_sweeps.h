#pragma once

#include <petscmat.h>
#include <petscsf.h>

#include <string>

#include "../../kernels/stencil/iterated/iterated.h"
#include "../log/log.h"

// Several steps of a stenciltcbound matrix in one pass over memory: powers and damped Jacobi sweeps of constant coefficients.

// This rank's cells with as many layers of other ranks' cells as steps between two exchanges need. Layers end where the grid ends;
// what lies beyond is 0 in every step, as it is for the kernels. On sides where the grid goes on, wrong values move inwards by the
// stencil's radius a step, and never reach this rank's own cells.
struct TCBoundStencilExchange {
  PetscInt layers = 0;
  PetscInt begin[3] = {0, 0, 0}, size[3] = {1, 1, 1}; // in the global grid
  PetscSF  gather = NULL;                             // from rows of the matrix to all of these cells
  PetscSF  extract = NULL;                            // from these cells to this rank's own
};

struct TCBoundStencilSweeps {
  // What this was made for.
  PetscObjectState   state = 0;
  tcbound::Executor *executor = nullptr;

  std::string                              why_not;          // empty: powers are fused, as a clause
  std::string                              why_not_relaxing; // empty: relaxations are
  const tcbound::stencil::Sweeper         *sweeper = nullptr;
  std::unique_ptr<tcbound::stencil::Sweep> sweep;
  double                                   diagonal = 0.0;
  bool                                     ring = false; // around the grid, rows of a multiple of the identity
  double                                   ring_diagonal = 1.0;
  PetscInt                                 radius = 0;
  int                                      relaxation_depth = 0; // of the deepest pass that relaxes
  bool                                     exchanges = false;    // there are other ranks
  PetscInt                                 steps = 0;            // between exchanges
  tcbound::Array<double>                   in, out, b;           // with exchanges; else in is scratch
  TCBoundLogRow                            rows[2] = {};         // of powers and of relaxations

  // By what, or why not.
  std::string describe(const std::string &reason) const { return reason.empty() ? "by " + sweeper->name() : "no: " + reason; }
};

PETSC_INTERN PetscErrorCode TCBoundStencilExchangeDestroy(TCBoundStencilExchange &exchange);

// Finds out, when values or the place of products have changed, whether several steps can be fused. Collective, and all ranks get
// the same answer.
PETSC_INTERN PetscErrorCode MatStencilTCBoundGetSweeps(Mat A, TCBoundStencilSweeps **sweeps);
// y = A^steps x; only if the sweeps' why_not is empty.
PETSC_INTERN PetscErrorCode MatStencilTCBoundPowers(Mat A, PetscInt steps, Vec x, Vec y);
// Steps x = x + factor D^-1 (b - A x) with the diagonal D, one for each factor; from x, or from 0 and then x is not read. Only if
// why_not_relaxing is empty.
PETSC_INTERN PetscErrorCode MatStencilTCBoundRelax(Mat A, PetscInt steps, const PetscReal factors[], bool from_zero, Vec b,
                                                   Vec x);
