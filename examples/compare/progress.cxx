#include "progress.h"

#include <cstdarg>
#include <cstdio>

namespace compare {

PetscErrorCode Progress(MPI_Comm comm, const char format[], ...) {
  PetscMPIInt rank;
  va_list     arguments;
  char        program[256];

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  if (rank) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscGetProgramName(program, sizeof(program)));
  std::fprintf(stderr, "[%s] ", program);
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace compare
