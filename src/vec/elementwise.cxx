// Elementwise operations of our vectors: each one pass over the vectors that it needs.
#include "vectcbound.h"

#include <petscdevice.h>

#include <algorithm>
#include <array>
#include <vector>

// Kernels of operations that have one for each memory.
static const tcbound::ElementwiseKernel &CombineKernel(bool device) {
  static const auto *host = dynamic_cast<const tcbound::ElementwiseKernel *>(tcbound::find_kernel("combine/array/host"));
  static const auto *cuda = dynamic_cast<const tcbound::ElementwiseKernel *>(tcbound::find_kernel("combine/array/cuda_core"));
  return device ? *cuda : *host;
}

static const tcbound::ElementwiseKernel &MultiplyKernel(bool device) {
  static const auto *host = dynamic_cast<const tcbound::ElementwiseKernel *>(tcbound::find_kernel("multiply/array/host"));
  static const auto *cuda = dynamic_cast<const tcbound::ElementwiseKernel *>(tcbound::find_kernel("multiply/array/cuda_core"));
  return device ? *cuda : *host;
}

// For the hardware counters: repeats the call on a copy of w, whose values change each time.
static PetscErrorCode Count(TCBoundVecRun &run, const tcbound::ElementwiseKernel &kernel, const tcbound::Elementwise &call) {
  tcbound::Executor          &executor = *run.executor;
  tcbound::Elementwise        repeated = call;
  tcbound::Array<double>      w;
  std::vector<const double *> v;

  PetscFunctionBegin;
  TCBoundCallCXX(w = tcbound::Array<double>(executor, call.length); v.assign(call.v, call.v + call.terms));
  TCBoundCallCXX(executor.copy(w.data(), executor.space(), call.w, executor.space(), static_cast<std::size_t>(w.bytes())));
  std::replace(v.begin(), v.end(), static_cast<const double *>(call.w), static_cast<const double *>(w.data()));
  repeated.w = w.data();
  repeated.v = v.data();
  PetscCall(TCBoundLogCount(run.row, executor, kernel.work(call), [&] { kernel.run(executor, repeated); }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Runs the call on w and v, all on the same side; w is not read if `write` (it may be one of v all the same).
static PetscErrorCode Run(Vec w, TCBoundVecOp op, const tcbound::ElementwiseKernel &kernel, TCBoundVecRun &run,
                          tcbound::Elementwise &call, PetscInt n, const Vec v[], bool write) {
  std::array<const PetscScalar *, 8> few;
  std::vector<const PetscScalar *>   many;
  PetscScalar                       *array;
  std::string                        mma;
  bool                               in_place = false;

  PetscFunctionBegin;
  if (n > static_cast<PetscInt>(few.size())) TCBoundCallCXX(many.resize(static_cast<std::size_t>(n)));
  const PetscScalar **arrays = many.empty() ? few.data() : many.data();
  for (PetscInt i = 0; i < n; i++) {
    in_place = in_place || v[i] == w;
    if (v[i] != w) PetscCall(VecGetArrayReadAndMemType(v[i], &arrays[i], NULL));
  }
  if (write && !in_place)
    PetscCall(VecGetArrayWriteAndMemType(w, &array, NULL));
  else
    PetscCall(VecGetArrayAndMemType(w, &array, NULL));
  for (PetscInt i = 0; in_place && i < n; i++)
    if (v[i] == w) arrays[i] = array;
  call.length = w->map->n;
  call.w = array;
  call.v = arrays;
  call.terms = static_cast<int>(n);
  if (call.length > 0) {
    if (call.mma != tcbound::MmaShape::automatic || kernel.backend() == "tensor_core")
      TCBoundCallCXX(mma = kernel.mma(run.executor->device(), call.mma));
    PetscCall(VecTCBoundGetLogRow(&run, op, kernel, mma.c_str()));
    if (TCBoundLogWantsCount(run.row)) PetscCall(Count(run, kernel, call));
    PetscCall(VecTCBoundRunBegin(&run));
    TCBoundCallCXX(kernel.run(*run.executor, call));
    PetscCall(VecTCBoundRunEnd(&run, kernel.work(call)));
  }
  if (write && !in_place)
    PetscCall(VecRestoreArrayWriteAndMemType(w, &array));
  else
    PetscCall(VecRestoreArrayAndMemType(w, &array));
  for (PetscInt i = 0; i < n; i++)
    if (v[i] != w) PetscCall(VecRestoreArrayReadAndMemType(v[i], &arrays[i]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// w = scale w + sum of c[i] v[i].
static PetscErrorCode Combine(Vec w, TCBoundVecOp op, PetscScalar scale, PetscInt n, const PetscScalar c[], const Vec v[]) {
  TCBoundVecRun        run;
  tcbound::Elementwise call;

  PetscFunctionBegin;
  PetscCall(VecTCBoundGetRun(w, &run));
  call.scale = scale;
  call.coefficients = c;
  PetscCall(Run(w, op, CombineKernel(run.device), run, call, n, v, scale == 0.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// As PETSc has it: 1 leaves the vector as it is, 0 (of either sign) makes it +0 whatever it holds.
PetscErrorCode VecScale_TCBound(Vec x, PetscScalar alpha) {
  TCBoundVecRun        run;
  tcbound::Elementwise call;

  PetscFunctionBegin;
  if (alpha == (PetscScalar)1.0) PetscFunctionReturn(PETSC_SUCCESS);
  if (alpha == (PetscScalar)0.0) {
    PetscUseTypeMethod(x, set, 0.0);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecTCBoundGetRun(x, &run));
  call.coefficients = &alpha;
  call.mma = run.device ? run.t->settings.mma : tcbound::MmaShape::automatic;
  PetscCall(Run(x, TCBOUND_VEC_SCALE, *run.t->scale[run.device], run, call, 1, &x, false));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecAXPY_TCBound(Vec y, PetscScalar alpha, Vec x) {
  PetscFunctionBegin;
  if (VecTCBoundSameSide(y, 1, &x))
    PetscCall(Combine(y, TCBOUND_VEC_AXPY, 1.0, 1, &alpha, &x));
  else
    PetscCall((*VecTCBoundBaseOps(y)->axpy)(y, alpha, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecAYPX_TCBound(Vec y, PetscScalar beta, Vec x) {
  const PetscScalar one = 1.0;

  PetscFunctionBegin;
  if (VecTCBoundSameSide(y, 1, &x))
    PetscCall(Combine(y, TCBOUND_VEC_AYPX, beta, 1, &one, &x));
  else
    PetscCall((*VecTCBoundBaseOps(y)->aypx)(y, beta, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecAXPBY_TCBound(Vec y, PetscScalar alpha, PetscScalar beta, Vec x) {
  PetscFunctionBegin;
  if (alpha == (PetscScalar)0.0)
    PetscCall(VecScale_TCBound(y, beta));
  else if (VecTCBoundSameSide(y, 1, &x))
    PetscCall(Combine(y, TCBOUND_VEC_AXPBY, beta, 1, &alpha, &x));
  else
    PetscCall((*VecTCBoundBaseOps(y)->axpby)(y, alpha, beta, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecWAXPY_TCBound(Vec w, PetscScalar alpha, Vec x, Vec y) {
  const Vec         v[] = {y, x};
  const PetscScalar c[] = {1.0, alpha};

  PetscFunctionBegin;
  if (VecTCBoundSameSide(w, 2, v))
    PetscCall(Combine(w, TCBOUND_VEC_WAXPY, 0.0, alpha == (PetscScalar)0.0 ? 1 : 2, c, v));
  else
    PetscCall((*VecTCBoundBaseOps(w)->waxpy)(w, alpha, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Vectors whose factor is 0 are not read.
static PetscErrorCode VecAXPBYPCZ_TCBound(Vec z, PetscScalar alpha, PetscScalar beta, PetscScalar gamma, Vec x, Vec y) {
  const Vec         all[] = {x, y};
  const PetscScalar factors[] = {alpha, beta};
  Vec               v[2];
  PetscScalar       c[2];
  PetscInt          n = 0;

  PetscFunctionBegin;
  if (!VecTCBoundSameSide(z, 2, all)) {
    PetscCall((*VecTCBoundBaseOps(z)->axpbypcz)(z, alpha, beta, gamma, x, y));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int i = 0; i < 2; i++) {
    if (factors[i] == (PetscScalar)0.0) continue;
    v[n] = all[i];
    c[n++] = factors[i];
  }
  if (n)
    PetscCall(Combine(z, TCBOUND_VEC_AXPBYPCZ, gamma, n, c, v));
  else
    PetscCall(VecScale_TCBound(z, gamma));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecMAXPY_TCBound(Vec y, PetscInt n, const PetscScalar alpha[], Vec x[]) {
  PetscFunctionBegin;
  if (VecTCBoundSameSide(y, n, x))
    PetscCall(Combine(y, TCBOUND_VEC_MAXPY, 1.0, n, alpha, x));
  else
    PetscCall((*VecTCBoundBaseOps(y)->maxpy)(y, n, alpha, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// y is not read when beta is 0.
static PetscErrorCode VecMAXPBY_TCBound(Vec y, PetscInt n, const PetscScalar alpha[], PetscScalar beta, Vec x[]) {
  PetscFunctionBegin;
  if (VecTCBoundSameSide(y, n, x)) {
    PetscCall(Combine(y, TCBOUND_VEC_MAXPBY, beta, n, alpha, x));
  } else {
    PetscCall(VecScale_TCBound(y, beta));
    PetscCall((*VecTCBoundBaseOps(y)->maxpy)(y, n, alpha, x));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecPointwiseMult_TCBound(Vec w, Vec x, Vec y) {
  const Vec            v[] = {x, y};
  TCBoundVecRun        run;
  tcbound::Elementwise call;

  PetscFunctionBegin;
  if (!VecTCBoundSameSide(w, 2, v)) {
    PetscCall((*VecTCBoundBaseOps(w)->pointwisemult)(w, x, y));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecTCBoundGetRun(w, &run));
  PetscCall(Run(w, TCBOUND_VEC_POINTWISEMULT, MultiplyKernel(run.device), run, call, 2, v, true));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void VecTCBoundSetElementwise(VecOps ops) {
  ops->scale = VecScale_TCBound;
  ops->axpy = VecAXPY_TCBound;
  ops->aypx = VecAYPX_TCBound;
  ops->axpby = VecAXPBY_TCBound;
  ops->waxpy = VecWAXPY_TCBound;
  ops->axpbypcz = VecAXPBYPCZ_TCBound;
  ops->maxpy = VecMAXPY_TCBound;
  ops->maxpby = VecMAXPBY_TCBound;
  ops->pointwisemult = VecPointwiseMult_TCBound;
}
