#pragma once

#include <petscvec.h>

#include "../tcboundimpl.h"

// How a product uses a vector.
enum TCBoundUse { TCBOUND_READ, TCBOUND_WRITE, TCBOUND_UPDATE };

// A vector's array in the executor's memory for the time of one product. A host vector given to a device kernel is staged
// through a device buffer of the matrix's own.
struct TCBoundLease {
  Vec          vec = NULL;
  TCBoundUse   use = TCBOUND_READ;
  PetscScalar *array = NULL; // as PETSc gave it
  double      *data = NULL;  // where the kernel works
  PetscMemType memtype = PETSC_MEMTYPE_HOST;
};

// staged: grows to hold the vector if it has to be staged.
PETSC_INTERN PetscErrorCode TCBoundLeaseBegin(tcbound::Executor &executor, tcbound::Array<double> *staged, Vec vec,
                                              TCBoundUse use, TCBoundLease *lease);
PETSC_INTERN PetscErrorCode TCBoundLeaseEnd(tcbound::Executor &executor, TCBoundLease *lease);
