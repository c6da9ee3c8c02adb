#pragma once

#include <petscmat.h>

#include <string>

namespace compare {

// Reads FILE into an assembled MATAIJ over the communicator: Matrix Market where the name ends in .mtx or .mtx.gz, else PETSc
// binary. Rank 0 reads and checks; what is wrong with the file is the same error on every rank, printed once. Collective.
PetscErrorCode LoadMatrix(MPI_Comm comm, const std::string &file, Mat *A);

} // namespace compare
