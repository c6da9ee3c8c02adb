// Factors of sweeps: a constant, or the inverse roots of Chebyshev's polynomial on an interval of eigenvalues.
#include "tcboundsweep.h"

#include <petscksp.h>

#include <algorithm>
#include <cmath>
#include <limits>

// The largest eigenvalue of D^-1 A from few iterations, as KSPCHEBYSHEV estimates it: from below, closely.
static PetscErrorCode EstimateLargest(PC pc, PetscReal *largest) {
  const PetscInt         iterations = 10;
  KSP                    ksp;
  PC                     jacobi;
  Vec                    x, b;
  PetscRandom            random;
  PetscBool              known, spd;
  PetscInt               n;
  KSPConvergedReason     reason;
  std::vector<PetscReal> real(iterations + 1), imaginary(iterations + 1);

  PetscFunctionBegin;
  PetscCall(MatIsSPDKnown(pc->pmat, &known, &spd));
  PetscCall(VecDuplicate(SweepOf(pc)->inverse, &x));
  PetscCall(VecDuplicate(x, &b));
  PetscCall(PetscRandomCreate(PetscObjectComm((PetscObject)pc), &random));
  PetscCall(PetscRandomSetInterval(random, -1.0, 1.0));
  PetscCall(VecSetRandom(b, random));
  PetscCall(PetscRandomDestroy(&random));
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)pc), &ksp));
  PetscCall(KSPSetNestLevel(ksp, pc->kspnestlevel + 1));
  PetscCall(KSPSetErrorIfNotConverged(ksp, PETSC_FALSE));
  PetscCall(KSPSetOperators(ksp, pc->pmat, pc->pmat));
  PetscCall(KSPSetType(ksp, known && spd ? KSPCG : KSPGMRES));
  PetscCall(KSPGetPC(ksp, &jacobi));
  PetscCall(PCSetType(jacobi, PCJACOBI));
  PetscCall(KSPSetComputeEigenvalues(ksp, PETSC_TRUE));
  PetscCall(KSPSetTolerances(ksp, 1e-12, PETSC_CURRENT, PETSC_CURRENT, iterations));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPComputeEigenvalues(ksp, iterations + 1, real.data(), imaginary.data(), &n));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  if (n > 0)
    *largest = *std::max_element(real.begin(), real.begin() + n);
  else // nothing to find because b was 0, or not found
    *largest = reason > 0 ? 1.0 : std::numeric_limits<PetscReal>::quiet_NaN();
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FindInterval(PC pc) {
  PC_TCBoundSweep *s = SweepOf(pc);

  PetscFunctionBegin;
  s->estimate = 0;
  if (s->emax == 0) {
    PetscCall(EstimateLargest(pc, &s->estimate));
    PetscCheck(
      s->estimate > 0 && std::isfinite(s->estimate), PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_WRONGSTATE,
      "The largest eigenvalue of the matrix over its diagonal is estimated as %g, which gives Chebyshev's polynomial no "
      "interval; give one by -pc_tcboundsweep_emin and -pc_tcboundsweep_emax",
      (double)s->estimate);
  }
  s->high = s->emax > 0 ? s->emax : s->factor_high * s->estimate;
  s->low = s->emin > 0 ? s->emin : s->factor_low / s->factor_high * s->high;
  PetscCheck(s->low < s->high, PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_OUTOFRANGE,
             "Chebyshev's interval is empty: from %g to %g", (double)s->low, (double)s->high);
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Leja's order: each point is the one farthest, in the product of distances, from those before it, so that the polynomials of the first
// few roots stay small on the interval. The largest comes first.
static void OrderByLeja(std::vector<PetscReal> *points) {
  std::vector<PetscReal> logs(points->size(), 0.0); // of the products

  for (std::size_t k = 0; k < points->size(); k++) {
    std::size_t next = k;
    for (std::size_t i = k; i < points->size(); i++)
      if (k == 0 ? (*points)[i] > (*points)[next] : logs[i] > logs[next]) next = i;
    std::swap((*points)[k], (*points)[next]);
    std::swap(logs[k], logs[next]);
    for (std::size_t i = k + 1; i < points->size(); i++) logs[i] += std::log(std::abs((*points)[i] - (*points)[k]));
  }
}

PetscErrorCode PCTCBoundSweepFindFactors(PC pc) {
  PC_TCBoundSweep *s = SweepOf(pc);
  const auto       n = static_cast<std::size_t>(s->its);

  PetscFunctionBegin;
  if (s->type == PC_TCBOUNDSWEEP_JACOBI) {
    TCBoundCallCXX(s->factors.assign(n, s->omega));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(FindInterval(pc));
  TCBoundCallCXX(s->factors.resize(n));
  const PetscReal centre = 0.5 * (s->low + s->high), half = 0.5 * (s->high - s->low);
  for (std::size_t k = 0; k < n; k++)
    s->factors[k] =
      centre + half * std::cos(PETSC_PI * (2.0 * static_cast<PetscReal>(k) + 1.0) / (2.0 * static_cast<PetscReal>(n)));
  TCBoundCallCXX(OrderByLeja(&s->factors));
  for (PetscReal &factor : s->factors) factor = 1.0 / factor;
  PetscFunctionReturn(PETSC_SUCCESS);
}
