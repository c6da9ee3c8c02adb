#pragma once

#include <petsc/private/pcimpl.h>
#include <tcbound.h>

#include <string>
#include <vector>

#include "../mat/stenciltcbound.h"

// In PC::data of a PCTCBOUNDSWEEP.
struct PC_TCBoundSweep {
  PCTCBoundSweepType type = PC_TCBOUNDSWEEP_JACOBI;
  PetscInt           its = 2;
  PetscReal          omega = 2.0 / 3.0;
  PetscReal          emin = 0, emax = 0; // as given; 0: of the estimate
  PetscReal          factor_low = 0.1, factor_high = 1.1;

  // Of the matrix as it was at the last set-up.
  PetscObjectId          id = 0;
  PetscObjectState       state = 0;
  PetscReal              estimate = 0;      // of the largest eigenvalue of D^-1 A; 0: none was needed
  PetscReal              low = 0, high = 0; // the interval that chebyshev works on
  std::vector<PetscReal> factors;           // one a sweep
  bool                   constant = false;  // all diagonal entries are the same, `diagonal`
  PetscReal              diagonal = 0;
  Vec                    inverse = NULL; // of the diagonal
  Vec                    work = NULL, scaled = NULL;
};

static inline PC_TCBoundSweep *SweepOf(PC pc) { return static_cast<PC_TCBoundSweep *>(pc->data); }

// tcboundsweep.cxx
PETSC_INTERN PetscErrorCode PCTCBoundRegisterAll(void);

// sweep_options.cxx: options, setting functions and what the preconditioner says of itself
PETSC_INTERN PetscErrorCode PCSetFromOptions_TCBoundSweep(PC pc, PetscOptionItems items);
PETSC_INTERN PetscErrorCode PCTCBoundSweepCompose(PC pc, PetscBool compose);
PETSC_INTERN PetscErrorCode PCView_TCBoundSweep(PC pc, PetscViewer viewer);

// sweep_factors.cxx: factors of sweeps from the settings and the matrix, once the inverse of the diagonal is known
PETSC_INTERN PetscErrorCode PCTCBoundSweepFindFactors(PC pc);

// Whether sweeps with the preconditioner's matrix, or its transpose A, are fused; if not, *why_not is a clause that says why, valid until
// the matrix changes, else NULL. Where *sweeps is there all the same, a sweep with its update is one pass over memory.
PETSC_INTERN PetscErrorCode PCTCBoundSweepIsFused(PC pc, Mat A, TCBoundStencilSweeps **sweeps, const char **why_not);
// How many sweeps are one pass there.
PETSC_INTERN PetscErrorCode PCTCBoundSweepGetMost(PC pc, Mat A, PetscInt *most);
