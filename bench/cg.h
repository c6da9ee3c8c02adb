#pragma once

// The solver that benchmarks time: CG with Jacobi as PETSc runs it.

#include <petscdevice.h>
#include <petscksp.h>
#include <tcbound.h>

#include <algorithm>
#include <vector>

#include "results.h"

namespace tcbound::bench {

inline double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

// Waits for the device, if there is one.
inline PetscErrorCode Synchronize(void) {
  PetscDeviceContext context;
  PetscBool          has;

  PetscFunctionBeginUser;
  PetscCall(TCBoundHasDevice(&has, NULL));
  if (!has) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscDeviceContextGetCurrentContext(&context));
  PetscCall(PetscDeviceContextSynchronize(context));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// So many iterations, converged or not.
inline PetscErrorCode MakeCG(Mat A, PetscInt iterations, KSP *ksp) {
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), ksp));
  PetscCall(KSPSetType(*ksp, KSPCG));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetConvergenceTest(*ksp, KSPConvergedSkip, NULL, NULL));
  PetscCall(KSPSetTolerances(*ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, iterations));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Makes the line of a product one of an iteration. PETSc's unfused CG: dot 2 (2 vectors read), norm 1, axpy 2 (2 read, 1
// written), aypx 1 (the same), pointwise product 1.
inline void AddCGWork(std::int64_t rows, Line *line) {
  line->op = "CG+Jacobi iteration";
  line->bytes += 8 * rows * (2 * 2 + 1 + 2 * 3 + 3 + 3);
  line->useful_flops += rows * (2 * 2 + 2 + 2 * 2 + 2 + 1);
}

} // namespace tcbound::bench
