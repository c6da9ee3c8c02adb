#include <petscksp.h>
#include <petsctime.h>

#include <algorithm>
#include <cmath>

#include "result.h"

namespace compare {

namespace {

struct Monitor {
  std::string    name;
  PetscLogDouble last;
};

// A line every ten seconds.
PetscErrorCode MonitorSolve(KSP ksp, PetscInt iteration, PetscReal norm, void *data) {
  Monitor       *monitor = static_cast<Monitor *>(data);
  PetscLogDouble now;

  PetscFunctionBeginUser;
  PetscCall(PetscTime(&now));
  if (now - monitor->last > 10) {
    monitor->last = now;
    PetscCall(Progress(PetscObjectComm((PetscObject)ksp), "%s: iteration %lld, residual norm %.3g", monitor->name.c_str(),
                       (long long)iteration, (double)norm));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CreateSolver(const Reference &r, Mat C, Monitor *monitor, KSP *ksp) {
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)C), ksp));
  PetscCall(KSPSetOperators(*ksp, C, C));
  PetscCall(KSPSetType(*ksp, r.ksp.c_str()));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, r.pc.c_str()));
  PetscCall(KSPSetTolerances(*ksp, 1e-8, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT));
  PetscCall(KSPMonitorSet(*ksp, MonitorSolve, monitor, nullptr));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// True residual by PETSc's aij, and the distance from the known solution.
PetscErrorCode CheckSolution(const Reference &r, Vec x, Result *result) {
  Vec       difference, host;
  PetscReal norm, scale;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(r.solution, &host));
  PetscCall(VecDuplicate(r.rhs, &difference));
  PetscCall(VecCopy(x, host));
  PetscCall(MatMult(r.A, host, difference));
  PetscCall(VecAXPY(difference, -1.0, r.rhs));
  PetscCall(VecNorm(difference, NORM_2, &norm));
  PetscCall(VecNorm(r.rhs, NORM_2, &scale));
  result->residual = scale > 0 ? norm / scale : norm;
  PetscCall(VecAXPY(host, -1.0, r.solution));
  PetscCall(VecNorm(host, NORM_2, &norm));
  PetscCall(VecNorm(r.solution, NORM_2, &scale));
  result->error = scale > 0 ? norm / scale : norm;
  PetscCall(VecDestroy(&host));
  PetscCall(VecDestroy(&difference));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Solves once, and again while that is too short to time; *seconds is the median of the slowest ranks' times.
PetscErrorCode TimeSolves(const Candidate &candidate, KSP ksp, Vec b, Vec x, PetscReal *seconds) {
  const MPI_Comm         comm = PetscObjectComm((PetscObject)ksp);
  std::vector<PetscReal> times;
  PetscReal              total = 0, time;
  PetscLogDouble         begin, end;

  PetscFunctionBeginUser;
  do {
    PetscCall(VecSet(x, 0.0));
    PetscCall(Synchronize(candidate));
    PetscCallMPI(MPI_Barrier(comm));
    PetscCall(PetscTime(&begin));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(Synchronize(candidate));
    PetscCall(PetscTime(&end));
    time = end - begin;
    PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &time, 1, MPIU_REAL, MPIU_MAX, comm));
    times.push_back(time);
    total += time;
  } while (total < 0.3 && times.size() < 15);
  std::sort(times.begin(), times.end());
  *seconds = times[times.size() / 2];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode DescribeSolver(KSP ksp, Result *result) {
  PC                 pc;
  KSPType            ksp_type;
  PCType             pc_type;
  KSPConvergedReason reason;
  const char        *text;

  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(KSPGetType(ksp, &ksp_type));
  PetscCall(PCGetType(pc, &pc_type));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(KSPGetConvergedReasonString(ksp, &text));
  PetscCall(KSPGetIterationNumber(ksp, &result->iterations));
  result->ksp = ksp_type ? ksp_type : "";
  result->pc = pc_type ? pc_type : "";
  result->converged = reason > 0;
  result->reason = text;
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

PetscErrorCode RunSolver(const Reference &r, Mat C, Result *result) {
  const MPI_Comm comm = PetscObjectComm((PetscObject)C);
  Monitor        monitor = {result->candidate.name(), 0};
  KSP            ksp;
  Vec            b, x;
  PetscLogDouble begin, end;
  PetscReal      seconds = 0;

  PetscFunctionBeginUser;
  PetscCall(Progress(comm, "%s: solving", result->candidate.name().c_str()));
  PetscCall(PetscTime(&monitor.last));
  PetscCall(CreateSolver(r, C, &monitor, &ksp));
  PetscCall(MatCreateVecs(C, &x, &b));
  PetscCall(VecCopy(r.rhs, b));
  PetscCall(PetscTime(&begin));
  PetscCall(KSPSetUp(ksp));
  PetscCall(KSPSetUpOnBlocks(ksp));
  PetscCall(Synchronize(result->candidate));
  PetscCall(PetscTime(&end));
  result->solver_setup_time = end - begin;
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &result->solver_setup_time, 1, MPIU_REAL, MPIU_MAX, comm));
  PetscCall(TimeSolves(result->candidate, ksp, b, x, &seconds));
  result->solved = true;
  PetscCall(DescribeSolver(ksp, result));
  result->iteration_time = result->iterations ? seconds / result->iterations : 0.0;
  PetscCall(CheckSolution(r, x, result));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void judge_solves(PetscReal rtol, std::vector<Result> &results) {
  for (Result &result : results) {
    const Result &base = results.front();
    if (!result.solved || &result == &base) continue;
    if (result.converged != base.converged)
      result.failures.push_back(
        format_text("the solver stopped with %s, PETSc's aij with %s", result.reason.c_str(), base.reason.c_str()));
    // A strong preconditioner gains orders of magnitude in an iteration, so one iteration's difference is allowed for.
    const PetscReal allowed = PetscMax(100 * base.residual, 10 * rtol);
    if (result.converged && base.converged && !(result.residual <= allowed))
      result.failures.push_back(
        format_text("the true residual is %.3g, PETSc's aij reaches %.3g", result.residual, base.residual));
    const PetscInt difference = PetscAbsInt(result.iterations - base.iterations);
    if (difference > 2 && difference > 0.1 * base.iterations)
      result.warnings.push_back(
        format_text("%lld iterations, PETSc's aij takes %lld", (long long)result.iterations, (long long)base.iterations));
  }
}

} // namespace compare
