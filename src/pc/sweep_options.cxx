// What can be set of a tcboundsweep preconditioner, and what it says of itself.
#include "tcboundsweep.h"

#include <petscviewer.h>

#include <cmath>

const char *const PCTCBoundSweepTypes[] = {"jacobi", "chebyshev", "PCTCBoundSweepType", "PC_TCBOUNDSWEEP_", NULL};

// A setting that differs makes the next application set the preconditioner up again.
#define SweepSet(pc, member, value) \
  do { \
    if (SweepOf(pc)->member != (value)) pc->setupcalled = PETSC_FALSE; \
    SweepOf(pc)->member = (value); \
  } while (0)

static PetscErrorCode SetType(PC pc, PCTCBoundSweepType type) {
  PetscFunctionBegin;
  PetscCheck(type == PC_TCBOUNDSWEEP_JACOBI || type == PC_TCBOUNDSWEEP_CHEBYSHEV, PetscObjectComm((PetscObject)pc),
             PETSC_ERR_ARG_OUTOFRANGE, "There are no sweeps of type %d", static_cast<int>(type));
  SweepSet(pc, type, type);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetIterations(PC pc, PetscInt its) {
  PetscFunctionBegin;
  PetscCheck(its >= 1, PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_OUTOFRANGE,
             "The number of sweeps %" PetscInt_FMT " must be at least 1", its);
  SweepSet(pc, its, its);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetOmega(PC pc, PetscReal omega) {
  PetscFunctionBegin;
  PetscCheck(omega > 0 && std::isfinite(omega), PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_OUTOFRANGE,
             "The damping factor omega %g must be positive and finite", (double)omega);
  SweepSet(pc, omega, omega);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetEigenvalues(PC pc, PetscReal emin, PetscReal emax) {
  PetscFunctionBegin;
  PetscCheck(emin >= 0 && emax >= 0 && std::isfinite(emin) && std::isfinite(emax), PetscObjectComm((PetscObject)pc),
             PETSC_ERR_ARG_OUTOFRANGE, "The eigenvalues emin %g and emax %g must be positive and finite, or 0: of the estimate",
             (double)emin, (double)emax);
  PetscCheck(emax == 0 || emin < emax, PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_OUTOFRANGE,
             "The least eigenvalue emin %g must be less than emax %g", (double)emin, (double)emax);
  SweepSet(pc, emin, emin);
  SweepSet(pc, emax, emax);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetEstimateFactors(PC pc, PetscReal low, PetscReal high) {
  PetscFunctionBegin;
  PetscCheck(low > 0 && low < high && std::isfinite(high), PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_OUTOFRANGE,
             "The factors %g and %g of the estimated eigenvalue must be positive and rise", (double)low, (double)high);
  SweepSet(pc, factor_low, low);
  SweepSet(pc, factor_high, high);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCTCBoundSweepCompose(PC pc, PetscBool compose) {
  PetscObject o = (PetscObject)pc;

  PetscFunctionBegin;
  PetscCall(PetscObjectComposeFunction(o, "PCTCBoundSweepSetType_C", compose ? SetType : NULL));
  PetscCall(PetscObjectComposeFunction(o, "PCTCBoundSweepSetIterations_C", compose ? SetIterations : NULL));
  PetscCall(PetscObjectComposeFunction(o, "PCTCBoundSweepSetOmega_C", compose ? SetOmega : NULL));
  PetscCall(PetscObjectComposeFunction(o, "PCTCBoundSweepSetEigenvalues_C", compose ? SetEigenvalues : NULL));
  PetscCall(PetscObjectComposeFunction(o, "PCTCBoundSweepSetEstimateFactors_C", compose ? SetEstimateFactors : NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  PCTCBoundSweepSetType - What damps the sweeps of a `PCTCBOUNDSWEEP`

  Logically Collective

  Input Parameters:
+ pc   - the preconditioner
- type - `PC_TCBOUNDSWEEP_JACOBI` or `PC_TCBOUNDSWEEP_CHEBYSHEV`

  Options Database Key:
. -pc_tcboundsweep_type (jacobi|chebyshev) - the same

  Level: intermediate

.seealso: `PCTCBOUNDSWEEP`, `PCTCBoundSweepSetOmega()`, `PCTCBoundSweepSetEigenvalues()`
@*/
PetscErrorCode PCTCBoundSweepSetType(PC pc, PCTCBoundSweepType type) {
  PetscFunctionBegin;
  PetscValidHeaderSpecific(pc, PC_CLASSID, 1);
  PetscTryMethod(pc, "PCTCBoundSweepSetType_C", (PC, PCTCBoundSweepType), (pc, type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  PCTCBoundSweepSetIterations - How many sweeps an application of a `PCTCBOUNDSWEEP` does

  Logically Collective

  Input Parameters:
+ pc  - the preconditioner
- its - the number of sweeps, 2 if not set

  Options Database Key:
. -pc_tcboundsweep_its <2> - the same

  Level: intermediate

.seealso: `PCTCBOUNDSWEEP`, `PCTCBoundSweepSetType()`
@*/
PetscErrorCode PCTCBoundSweepSetIterations(PC pc, PetscInt its) {
  PetscFunctionBegin;
  PetscValidHeaderSpecific(pc, PC_CLASSID, 1);
  PetscTryMethod(pc, "PCTCBoundSweepSetIterations_C", (PC, PetscInt), (pc, its));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  PCTCBoundSweepSetOmega - The damping factor of the sweeps of type jacobi of a `PCTCBOUNDSWEEP`

  Logically Collective

  Input Parameters:
+ pc    - the preconditioner
- omega - the factor, 2/3 if not set

  Options Database Key:
. -pc_tcboundsweep_omega <2/3> - the same

  Level: intermediate

.seealso: `PCTCBOUNDSWEEP`, `PCTCBoundSweepSetType()`
@*/
PetscErrorCode PCTCBoundSweepSetOmega(PC pc, PetscReal omega) {
  PetscFunctionBegin;
  PetscValidHeaderSpecific(pc, PC_CLASSID, 1);
  PetscTryMethod(pc, "PCTCBoundSweepSetOmega_C", (PC, PetscReal), (pc, omega));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  PCTCBoundSweepSetEigenvalues - The interval of Chebyshev's polynomial of a `PCTCBOUNDSWEEP`

  Logically Collective

  Input Parameters:
+ pc   - the preconditioner
. emin - the least eigenvalue of $D^{-1} A$ to damp; 0: a multiple of `emax` or of the estimate
- emax - the largest eigenvalue; 0: a multiple of the estimate

  Options Database Keys:
+ -pc_tcboundsweep_emin <0> - the first
- -pc_tcboundsweep_emax <0> - the second

  Level: intermediate

.seealso: `PCTCBOUNDSWEEP`, `PCTCBoundSweepSetEstimateFactors()`, `KSPChebyshevSetEigenvalues()`
@*/
PetscErrorCode PCTCBoundSweepSetEigenvalues(PC pc, PetscReal emin, PetscReal emax) {
  PetscFunctionBegin;
  PetscValidHeaderSpecific(pc, PC_CLASSID, 1);
  PetscTryMethod(pc, "PCTCBoundSweepSetEigenvalues_C", (PC, PetscReal, PetscReal), (pc, emin, emax));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  PCTCBoundSweepSetEstimateFactors - The interval of Chebyshev's polynomial of a `PCTCBOUNDSWEEP`, as multiples of the estimated
  largest eigenvalue

  Logically Collective

  Input Parameters:
+ pc   - the preconditioner
. low  - of the least eigenvalue to damp, 0.1 if not set
- high - of the largest, 1.1 if not set

  Options Database Key:
. -pc_tcboundsweep_esteig <0.1,1.1> - the same

  Level: intermediate

.seealso: `PCTCBOUNDSWEEP`, `PCTCBoundSweepSetEigenvalues()`, `KSPChebyshevEstEigSet()`
@*/
PetscErrorCode PCTCBoundSweepSetEstimateFactors(PC pc, PetscReal low, PetscReal high) {
  PetscFunctionBegin;
  PetscValidHeaderSpecific(pc, PC_CLASSID, 1);
  PetscTryMethod(pc, "PCTCBoundSweepSetEstimateFactors_C", (PC, PetscReal, PetscReal), (pc, low, high));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCSetFromOptions_TCBoundSweep(PC pc, PetscOptionItems PetscOptionsObject) {
  PC_TCBoundSweep   *s = SweepOf(pc);
  PCTCBoundSweepType type = s->type;
  PetscInt           its = s->its, count = 2;
  PetscReal          omega = s->omega, emin = s->emin, emax = s->emax, factors[2] = {s->factor_low, s->factor_high};
  PetscBool          set, set_emax;

  PetscFunctionBegin;
  PetscOptionsHeadBegin(PetscOptionsObject, "TCBoundSweep options");
  PetscCall(PetscOptionsEnum("-pc_tcboundsweep_type", "What damps the sweeps", "PCTCBoundSweepSetType", PCTCBoundSweepTypes,
                             (PetscEnum)type, (PetscEnum *)&type, &set));
  if (set) PetscCall(SetType(pc, type));
  PetscCall(
    PetscOptionsInt("-pc_tcboundsweep_its", "Sweeps in one application", "PCTCBoundSweepSetIterations", its, &its, &set));
  if (set) PetscCall(SetIterations(pc, its));
  PetscCall(
    PetscOptionsReal("-pc_tcboundsweep_omega", "Damping factor of jacobi", "PCTCBoundSweepSetOmega", omega, &omega, &set));
  if (set) PetscCall(SetOmega(pc, omega));
  PetscCall(PetscOptionsReal("-pc_tcboundsweep_emin", "Least eigenvalue that chebyshev damps (0: of the estimate)",
                             "PCTCBoundSweepSetEigenvalues", emin, &emin, &set));
  PetscCall(PetscOptionsReal("-pc_tcboundsweep_emax", "Largest eigenvalue of D^-1 A for chebyshev (0: of the estimate)",
                             "PCTCBoundSweepSetEigenvalues", emax, &emax, &set_emax));
  if (set || set_emax) PetscCall(SetEigenvalues(pc, emin, emax));
  PetscCall(PetscOptionsRealArray("-pc_tcboundsweep_esteig", "The same as multiples of the estimated largest eigenvalue",
                                  "PCTCBoundSweepSetEstimateFactors", factors, &count, &set));
  if (set) {
    PetscCheck(count == 2, PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_INCOMP,
               "-pc_tcboundsweep_esteig takes two numbers, not %" PetscInt_FMT, count);
    PetscCall(SetEstimateFactors(pc, factors[0], factors[1]));
  }
  PetscOptionsHeadEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ViewFusion(PC pc, PetscViewer viewer) {
  TCBoundStencilSweeps *sweeps;
  const char           *why_not;
  PetscInt              most = 1;

  PetscFunctionBegin;
  PetscCall(PCTCBoundSweepIsFused(pc, pc->pmat, &sweeps, &why_not));
  if (why_not && sweeps) PetscCall(PCTCBoundSweepGetMost(pc, pc->pmat, &most));
  if (most > 1) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "  fused: %s, up to %" PetscInt_FMT " sweeps a pass over memory\n",
                                     StencilOf(pc->pmat)->kernel->name().c_str(), most));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (why_not) {
    if (sweeps)
      PetscCall(PetscViewerASCIIPrintf(viewer, "  not fused, a pass over memory for each sweep by %s: %s\n",
                                       StencilOf(pc->pmat)->kernel->name().c_str(), why_not));
    else
      PetscCall(PetscViewerASCIIPrintf(viewer, "  not fused, a product and vector operations for each sweep: %s\n", why_not));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscViewerASCIIPrintf(viewer, "  fused: %s, up to %d sweeps a pass over memory\n", sweeps->sweeper->name().c_str(),
                                   sweeps->relaxation_depth));
  if (sweeps->exchanges)
    PetscCall(PetscViewerASCIIPrintf(viewer, "  up to %" PetscInt_FMT " sweeps for each exchange of values among ranks\n",
                                     sweeps->steps));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCView_TCBoundSweep(PC pc, PetscViewer viewer) {
  PC_TCBoundSweep *s = SweepOf(pc);
  PetscBool        ascii;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (!ascii) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerASCIIPrintf(viewer, "  %" PetscInt_FMT " sweeps of type %s\n", s->its, PCTCBoundSweepTypes[s->type]));
  if (s->type == PC_TCBOUNDSWEEP_JACOBI)
    PetscCall(PetscViewerASCIIPrintf(viewer, "  damping factor omega = %g\n", (double)s->omega));
  if (!pc->setupcalled) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "  not set up\n"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (s->type == PC_TCBOUNDSWEEP_CHEBYSHEV) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "  eigenvalues of D^-1 A from %g to %g", (double)s->low, (double)s->high));
    PetscCall(PetscViewerASCIIUseTabs(viewer, PETSC_FALSE));
    if (s->estimate > 0) PetscCall(PetscViewerASCIIPrintf(viewer, ", the largest estimated as %g", (double)s->estimate));
    PetscCall(PetscViewerASCIIPrintf(viewer, "; factors"));
    for (PetscReal factor : s->factors) PetscCall(PetscViewerASCIIPrintf(viewer, " %g", (double)factor));
    PetscCall(PetscViewerASCIIPrintf(viewer, "\n"));
    PetscCall(PetscViewerASCIIUseTabs(viewer, PETSC_TRUE));
  }
  PetscCall(ViewFusion(pc, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}
