#pragma once

#include <petscmat.h>

#include <string>
#include <vector>

#include "progress.h"

namespace compare {

enum class Problem { none, poisson7, poisson27, elasticity, convection };

// What the user asked for.
struct Options {
  std::string              mat; // file, or empty
  Problem                  problem = Problem::none;
  std::string              problem_name;
  PetscInt                 n = 32;
  std::vector<std::string> backends, formats; // empty: all that can run
  bool                     spmv_only = false;
  PetscReal                spmv_time = 0.2;   // seconds, at least, that the products of one candidate are timed
  std::string              json;              // file, or empty
  bool                     help_only = false; // -help and nothing to do
};

// Reads and checks the command line's options. Collective.
PetscErrorCode GetOptions(MPI_Comm comm, Options *options);

// Prints which options nothing has read, a misspelt -pc_type for example. Collective.
PetscErrorCode ReportUnusedOptions(MPI_Comm comm);

// "a, b, c"
std::string join(const std::vector<std::string> &words);

} // namespace compare
