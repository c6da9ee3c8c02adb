// Vectors in an executor's memory for the time of one product.
#include "lease.h"

PetscErrorCode TCBoundLeaseBegin(tcbound::Executor &executor, tcbound::Array<double> *staged, Vec vec, TCBoundUse use,
                                 TCBoundLease *lease) {
  PetscInt n;

  PetscFunctionBegin;
  lease->vec = vec;
  lease->use = use;
  if (executor.space() == tcbound::MemorySpace::host) {
    if (use == TCBOUND_READ)
      PetscCall(VecGetArrayRead(vec, const_cast<const PetscScalar **>(&lease->array)));
    else if (use == TCBOUND_WRITE)
      PetscCall(VecGetArrayWrite(vec, &lease->array));
    else
      PetscCall(VecGetArray(vec, &lease->array));
    lease->data = lease->array;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (use == TCBOUND_READ)
    PetscCall(VecGetArrayReadAndMemType(vec, const_cast<const PetscScalar **>(&lease->array), &lease->memtype));
  else if (use == TCBOUND_WRITE)
    PetscCall(VecGetArrayWriteAndMemType(vec, &lease->array, &lease->memtype));
  else
    PetscCall(VecGetArrayAndMemType(vec, &lease->array, &lease->memtype));
  lease->data = lease->array;
  if (PetscMemTypeHost(lease->memtype)) {
    PetscCall(VecGetLocalSize(vec, &n));
    TCBoundCallCXX(if (staged->size() < n) *staged = tcbound::Array<double>(executor, n));
    lease->data = staged->data();
    if (use != TCBOUND_WRITE && n) {
      TCBoundCallCXX(
        executor.copy(lease->data, tcbound::MemorySpace::cuda, lease->array, tcbound::MemorySpace::host, n * sizeof(double)));
      PetscCall(PetscLogCpuToGpu(static_cast<PetscLogDouble>(n) * sizeof(PetscScalar)));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundLeaseEnd(tcbound::Executor &executor, TCBoundLease *lease) {
  PetscInt n;

  PetscFunctionBegin;
  if (executor.space() == tcbound::MemorySpace::host) {
    if (lease->use == TCBOUND_READ)
      PetscCall(VecRestoreArrayRead(lease->vec, const_cast<const PetscScalar **>(&lease->array)));
    else if (lease->use == TCBOUND_WRITE)
      PetscCall(VecRestoreArrayWrite(lease->vec, &lease->array));
    else
      PetscCall(VecRestoreArray(lease->vec, &lease->array));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (PetscMemTypeHost(lease->memtype) && lease->use != TCBOUND_READ) {
    PetscCall(VecGetLocalSize(lease->vec, &n));
    if (n)
      TCBoundCallCXX(
        executor.copy(lease->array, tcbound::MemorySpace::host, lease->data, tcbound::MemorySpace::cuda, n * sizeof(double)));
    if (n) PetscCall(PetscLogGpuToCpu(static_cast<PetscLogDouble>(n) * sizeof(PetscScalar)));
  }
  if (lease->use == TCBOUND_READ)
    PetscCall(VecRestoreArrayReadAndMemType(lease->vec, const_cast<const PetscScalar **>(&lease->array)));
  else if (lease->use == TCBOUND_WRITE)
    PetscCall(VecRestoreArrayWriteAndMemType(lease->vec, &lease->array));
  else
    PetscCall(VecRestoreArrayAndMemType(lease->vec, &lease->array));
  PetscFunctionReturn(PETSC_SUCCESS);
}
