static char help[] =
  "Holds one matrix in every format and multiplies it by every backend that this machine can run, solves a system with each,\n"
  "checks that all agree with PETSc's aij and prints one table.\n\n"
  "  compare -mat FILE [-spmv_only]          Matrix Market (.mtx, .mtx.gz) or PETSc binary\n"
  "  compare -problem NAME -n N              poisson7, poisson27, elasticity or convection on an N x N x N grid\n\n"
  "The solver is the command line's -ksp_type, -pc_type, ...; without them it is cg + jacobi for a symmetric matrix, gmres + "
  "jacobi\n"
  "for convection, and for a nonsymmetric file gmres + bjacobi, or gmres + jacobi where the diagonal has zeros; -ksp_rtol "
  "1e-8.\n"
  "The right-hand side belongs to a known random solution. The exit status is 0 only when all agree.\n\n";

#include <petscksp.h>
#include <tcbound.h>

#include "compare/load.h"
#include "compare/problems.h"
#include "compare/report.h"

using namespace compare;

static PetscErrorCode RunAll(MPI_Comm comm, const Options &options, bool *agree) {
  Mat                      A;
  Reference                reference;
  Scale                    scale;
  PetscReal                rtol = 1e-8;
  std::vector<Candidate>   candidates;
  std::vector<std::string> left_out;
  std::vector<Result>      results;

  PetscFunctionBeginUser;
  if (options.mat.empty())
    PetscCall(AssembleProblem(comm, options, &A));
  else
    PetscCall(LoadMatrix(comm, options.mat, &A));
  PetscCall(CreateReference(options, A, &reference));
  PetscCall(ListCandidates(A, options, &candidates, &left_out));
  for (const Candidate &candidate : candidates) {
    results.emplace_back();
    PetscCall(RunCandidate(options, reference, candidate, &results.back()));
  }
  PetscCall(PetscOptionsGetReal(nullptr, nullptr, "-ksp_rtol", &rtol, nullptr));
  judge_solves(rtol, results);
  PetscCall(MeasureScale(comm, results, &scale));
  PetscCall(PrintReport(comm, options, reference, scale, results, left_out));
  if (!options.json.empty()) PetscCall(WriteJson(comm, options, reference, scale, results, left_out));
  for (const Result &result : results) *agree = *agree && result.failures.empty();
  PetscCall(DestroyReference(&reference));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv) {
  Options options;
  bool    agree = true;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, nullptr, help));
  PetscCall(TCBoundInitialize());
  PetscCall(GetOptions(PETSC_COMM_WORLD, &options));
  if (!options.help_only) {
    PetscCall(RunAll(PETSC_COMM_WORLD, options, &agree));
    PetscCall(ReportUnusedOptions(PETSC_COMM_WORLD));
  }
  PetscCall(PetscFinalize());
  return agree ? 0 : 1;
}
