#pragma once

#include <string>
#include <vector>

#include "candidate.h"
#include "reference.h"

namespace compare {

// What one candidate did. Times in seconds, the slowest rank's.
struct Result {
  Candidate                candidate;
  std::string              kernel, format, backend;           // that really ran; "mixed" where blocks or ranks differ
  PetscReal                matrix_bytes = 0, moved_bytes = 0; // of one product, all ranks
  PetscReal                setup_time = 0, product_time = 0;
  PetscReal                product_ratio = 0, transpose_ratio = 0; // largest error / bound
  bool                     solved = false;                         // there was a solve
  bool                     converged = false;
  std::string              reason; // why the solver stopped
  std::string              ksp, pc;
  PetscInt                 iterations = 0;
  PetscReal                iteration_time = 0, solver_setup_time = 0;
  PetscReal                residual = 0, error = 0; // |b - A x| / |b| by PETSc's AIJ, |x - solution| / |solution|
  std::vector<std::string> failures;                // each makes the exit status non-zero
  std::vector<std::string> warnings;
};

// Converts, measures and compares the products, and frees the candidate again unless `solve` needs it first. Collective.
PetscErrorCode RunCandidate(const Options &options, const Reference &reference, const Candidate &candidate, Result *result);

// Solves with the KSP and PC of the command line. Collective.
PetscErrorCode RunSolver(const Reference &reference, Mat C, Result *result);

// Waits for the device where the candidate uses it.
PetscErrorCode Synchronize(const Candidate &candidate);

// Compares the candidates' solves with the first one's, PETSc's aij, and completes failures and warnings.
void judge_solves(PetscReal rtol, std::vector<Result> &results);

// "text" by printf's rules.
std::string format_text(const char format[], ...) __attribute__((format(printf, 1, 2)));

} // namespace compare
