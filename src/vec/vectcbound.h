#pragma once

#include <petsc/private/vecimpl.h>
#include <tcbound.h>

#include <string>

#include "../../kernels/vector.h"
#include "../log/log.h"
#include "../tcboundimpl.h"

// Operations as the log names them.
enum TCBoundVecOp {
  TCBOUND_VEC_SCALE,
  TCBOUND_VEC_AXPY,
  TCBOUND_VEC_AYPX,
  TCBOUND_VEC_AXPBY,
  TCBOUND_VEC_WAXPY,
  TCBOUND_VEC_AXPBYPCZ,
  TCBOUND_VEC_MAXPY,
  TCBOUND_VEC_MAXPBY,
  TCBOUND_VEC_POINTWISEMULT,
  TCBOUND_VEC_DOT,
  TCBOUND_VEC_TDOT,
  TCBOUND_VEC_MDOT,
  TCBOUND_VEC_MTDOT,
  TCBOUND_VEC_DOTNORM2,
  TCBOUND_VEC_NORM,
  TCBOUND_VEC_OPS
};

struct TCBoundVecSettings {
  std::string       backend = "auto";
  tcbound::MmaShape mma = tcbound::MmaShape::automatic;

  bool operator==(const TCBoundVecSettings &o) const { return backend == o.backend && mma == o.mma; }
};

// What a vector shares with its duplicates and subvectors, so that the many short-lived vectors of a solver share the log's rows.
struct Vec_TCBound {
  TCBoundVecSettings settings;
  std::string        label; // the options prefix or name of the vector that was made first

  const tcbound::ElementwiseKernel *scale[2] = {}; // on the host, on the device
  TCBoundLogRow                     rows[2][TCBOUND_VEC_OPS] = {};
};

// vectcbound.cxx
PETSC_INTERN PetscErrorCode VecTCBoundRegisterAll(void);
// Gives a VECSEQ, VECMPI or their CUDA kin our operations. It shares `like`'s settings if that is one of ours, else reads options.
PETSC_INTERN PetscErrorCode VecTCBoundAdopt(Vec v, Vec like);
PETSC_INTERN PetscErrorCode VecTCBoundGetState(Vec v, Vec_TCBound **t);
// The operations that a vector of that type has without us.
PETSC_INTERN const struct _VecOps *VecTCBoundBaseOps(Vec v);
// Whether operations of the vector work in device memory.
static inline bool VecTCBoundOnDevice(Vec v) { return v->ops->getarrayreadandmemtype != NULL; }

// settings.cxx
PETSC_INTERN PetscErrorCode TCBoundVecSettingsSetBackend(TCBoundVecSettings &settings, MPI_Comm comm, const char backend[]);
PETSC_INTERN PetscErrorCode TCBoundVecSettingsSetMMA(TCBoundVecSettings &settings, MPI_Comm comm, const char mma[]);
PETSC_INTERN PetscErrorCode TCBoundVecSettingsFromOptions(TCBoundVecSettings &settings, Vec v);
// Whether they ask for device memory; an error that says why if they ask for what this process does not have.
PETSC_INTERN PetscErrorCode TCBoundVecSettingsUseDevice(const TCBoundVecSettings &settings, PetscBool *device);
// Fills in the kernels that the settings stand for.
PETSC_INTERN PetscErrorCode TCBoundVecChooseKernels(Vec_TCBound *t);

// elementwise.cxx, reductions.cxx
PETSC_INTERN void           VecTCBoundSetElementwise(VecOps ops);
PETSC_INTERN void           VecTCBoundSetReductions(VecOps ops, bool parallel);
PETSC_INTERN PetscErrorCode VecScale_TCBound(Vec x, PetscScalar alpha);

// common.cxx: what both have around a kernel
struct TCBoundVecRun {
  Vec_TCBound       *t = NULL;
  tcbound::Executor *executor = NULL;
  TCBoundLogRow      row = NULL;
  bool               device = false;
};
// Whether n vectors work in the same memory as w does.
PETSC_INTERN bool VecTCBoundSameSide(Vec w, PetscInt n, const Vec v[]);
// Where operations of w run.
PETSC_INTERN PetscErrorCode VecTCBoundGetRun(Vec w, TCBoundVecRun *run);
// Finds the log's row of a kernel; none if no log is wanted. mma: the instruction that it runs on, or "".
PETSC_INTERN PetscErrorCode VecTCBoundGetLogRow(TCBoundVecRun *run, TCBoundVecOp op, const tcbound::Kernel &kernel,
                                                const char mma[]);
// Around the kernel, for both logs.
PETSC_INTERN PetscErrorCode VecTCBoundRunBegin(TCBoundVecRun *run);
PETSC_INTERN PetscErrorCode VecTCBoundRunEnd(TCBoundVecRun *run, const tcbound::Work &work);
