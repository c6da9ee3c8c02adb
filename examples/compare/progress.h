#pragma once

#include <petscsys.h>

namespace compare {

// A line of progress on standard error from rank 0. Collective in that every rank may call it.
PetscErrorCode Progress(MPI_Comm comm, const char format[], ...) PETSC_ATTRIBUTE_FORMAT(2, 3);

} // namespace compare
