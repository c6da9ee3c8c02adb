#pragma once

#include <petscsys.h>

#include <new>

#include "../kernels/error.h"
#include "../kernels/executor.h"

// Shared by the rooms of src/: the executors of this process and the way from C++ exceptions to PETSc errors.

// The process's executors, made at first use and kept until the process ends. The CUDA one works on the device that PETSc
// chose for this rank; without a usable device *executor is NULL and *why_not says why (both may be NULL pointers).
PETSC_INTERN PetscErrorCode TCBoundGetHostExecutor(tcbound::Executor **executor);
PETSC_INTERN PetscErrorCode TCBoundGetCUDAExecutor(tcbound::Executor **executor, const char **why_not);

// What the executor does next goes to the stream of PETSc's current device context.
PETSC_INTERN PetscErrorCode TCBoundUsePetscStream(tcbound::Executor &executor);

// The PETSc error code for a kernels/ error.
PETSC_INTERN PetscErrorCode TCBoundErrorCode(const tcbound::Error &error);

// Runs C++ code that may throw tcbound::Error or std::bad_alloc and turns that into a PETSc error.
#define TCBoundCallCXX(...) \
  do { \
    try { \
      __VA_ARGS__; \
    } catch (const tcbound::Error &tcbound_error) { \
      SETERRQ(PETSC_COMM_SELF, TCBoundErrorCode(tcbound_error), "%s", tcbound_error.what()); \
    } catch (const std::bad_alloc &) { \
      SETERRQ(PETSC_COMM_SELF, PETSC_ERR_MEM, "out of host memory"); \
    } \
  } while (0)
