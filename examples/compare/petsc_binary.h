#pragma once

#include <string>

namespace compare {

// Walks through a PETSc binary file before MatLoad(), which does not check the column indices, and throws FileError where it
// is not a sparse matrix of this PETSc's index width, is truncated or contradicts itself.
void check_petsc_binary(const std::string &file);

} // namespace compare
