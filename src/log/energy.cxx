// Joules of a call, where PETSc logs energy: NVML's meter or power times time (PETSc 3.26, configured with NVML).
#include "logimpl.h"

#if PETSC_VERSION_GE(3, 26, 0) && PetscDefined(USE_LOG) && PetscDefined(HAVE_DEVICE)
#include <petsc/private/logimpl.h>
#define TCBOUND_HAVE_ENERGY_LOG 1
#endif

PetscErrorCode TCBoundLogEnergyBegin([[maybe_unused]] TCBoundLogRow row) {
  PetscFunctionBegin;
#if defined(TCBOUND_HAVE_ENERGY_LOG)
  PetscCall(PetscLogGpuEnergyMeterBegin());
  if (row && (PetscLogGpuEnergyFlag || PetscLogGpuEnergyMeterFlag)) row->joules_before = petsc_genergy + petsc_genergy_meter;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundLogEnergyEnd([[maybe_unused]] TCBoundLogRow row) {
  PetscFunctionBegin;
#if defined(TCBOUND_HAVE_ENERGY_LOG)
  PetscCall(PetscLogGpuEnergyMeterEnd());
  if (row && (PetscLogGpuEnergyFlag || PetscLogGpuEnergyMeterFlag)) {
    row->joules += petsc_genergy + petsc_genergy_meter - row->joules_before;
    row->joules_calls++;
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
