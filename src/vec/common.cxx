// What operations of our vectors have in common: where they run, and how they are logged.
#include "vectcbound.h"

#include <petscdevice.h>

static const char *const EventNames[TCBOUND_VEC_OPS] = {"VecScale",    "VecAXPY",  "VecAYPX",   "VecAXPBY",         "VecWAXPY",
                                                        "VecAXPBYPCZ", "VecMAXPY", "VecMAXPBY", "VecPointwiseMult", "VecDot",
                                                        "VecTDot",     "VecMDot",  "VecMTDot",  "VecDotNorm2",      "VecNorm"};

// Operands on both sides (one is bound to the CPU, say) are left to PETSc, which copies them.
bool VecTCBoundSameSide(Vec w, PetscInt n, const Vec v[]) {
  const bool device = VecTCBoundOnDevice(w);

  for (PetscInt i = 0; i < n; i++)
    if (VecTCBoundOnDevice(v[i]) != device) return false;
  return true;
}

PetscErrorCode VecTCBoundGetRun(Vec w, TCBoundVecRun *run) {
  PetscFunctionBegin;
  run->device = VecTCBoundOnDevice(w);
  PetscCall(VecTCBoundGetState(w, &run->t));
  if (run->device) {
    PetscCall(TCBoundGetCUDAExecutor(&run->executor, NULL));
    PetscCall(TCBoundUsePetscStream(*run->executor));
  } else {
    PetscCall(TCBoundGetHostExecutor(&run->executor));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecTCBoundGetLogRow(TCBoundVecRun *run, TCBoundVecOp op, const tcbound::Kernel &kernel, const char mma[]) {
  PetscBool active;

  PetscFunctionBegin;
  PetscCall(TCBoundLogActive(&active));
  if (!active) PetscFunctionReturn(PETSC_SUCCESS);
  TCBoundLogRow &kept = run->t->rows[run->device][op];
  if (!kept) {
    PetscCall(TCBoundLogGetRow(EventNames[op], run->t->label.c_str(), kernel, &kept));
    PetscCall(TCBoundLogSetMMA(kept, mma));
  }
  run->row = kept;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecTCBoundRunBegin(TCBoundVecRun *run) {
  PetscFunctionBegin;
  if (run->device) PetscCall(PetscLogGpuTimeBegin());
  if (!run->row) PetscFunctionReturn(PETSC_SUCCESS);
  if (run->device) PetscCall(TCBoundLogEnergyBegin(run->row));
  PetscCall(TCBoundLogBegin(run->row, *run->executor));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecTCBoundRunEnd(TCBoundVecRun *run, const tcbound::Work &work) {
  const PetscLogDouble flops = static_cast<PetscLogDouble>(work.useful_flops);

  PetscFunctionBegin;
  if (run->row) PetscCall(TCBoundLogEnd(run->row, *run->executor, work));
  if (run->device) {
    PetscCall(PetscLogGpuTimeEnd());
    PetscCall(TCBoundLogEnergyEnd(run->row));
    PetscCall(PetscLogGpuFlops(flops));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscLogFlops(flops));
  PetscFunctionReturn(PETSC_SUCCESS);
}
