#pragma once

// The matrices of the suite by name.

#include <functional>
#include <string>
#include <vector>

#include "matrix.h"

namespace tcbound::bench {

struct MatrixCase {
  std::string                       name;
  std::function<Matrix(bool quick)> make;              // quick: of a few thousand rows, for tests of the benchmark itself
  bool                              definite;          // symmetric and positive definite, and CG takes its time with it
  int                               block;             // rows and columns that come in dense blocks of this size; 1: none
  bool                              on_demand = false; // not one of the suite: run only when it is named
};

const std::vector<MatrixCase> &matrix_cases();

// The cases of a list of names, or the suite; throws std::invalid_argument that names the valid ones.
std::vector<MatrixCase> find_cases(const std::vector<std::string> &names);

} // namespace tcbound::bench
