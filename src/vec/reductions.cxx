// Dot products and norms of our vectors: one kernel each, whose result the host waits for without a call of the CUDA runtime.
#include "vectcbound.h"

#include <petscdevice.h>

#include <array>
#include <cmath>
#include <vector>

static const tcbound::ReductionKernel &ReduceKernel(bool device) {
  static const auto *host = dynamic_cast<const tcbound::ReductionKernel *>(tcbound::find_kernel("reduce/array/host"));
  static const auto *cuda = dynamic_cast<const tcbound::ReductionKernel *>(tcbound::find_kernel("reduce/array/cuda_core"));
  return device ? *cuda : *host;
}

// Kept for the life of the process, as the executors are. A reduction ends before its caller goes on, so that one is enough.
static PetscErrorCode GetSpace(const TCBoundVecRun &run, tcbound::ReductionSpace **space) {
  static std::unique_ptr<tcbound::ReductionSpace> *spaces = new std::unique_ptr<tcbound::ReductionSpace>[2];

  PetscFunctionBegin;
  if (!spaces[run.device]) TCBoundCallCXX(spaces[run.device] = ReduceKernel(run.device).make_space(*run.executor));
  *space = spaces[run.device].get();
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Of this process's part of x and, where the sum needs them, y[0], ..., y[n - 1], all on the same side.
static PetscErrorCode Reduce(Vec x, TCBoundVecOp op, tcbound::Sum sum, PetscInt n, const Vec y[], double factor,
                             PetscScalar results[]) {
  std::array<const PetscScalar *, 8> few;
  std::vector<const PetscScalar *>   many;
  const PetscScalar                 *array;
  TCBoundVecRun                      run;
  tcbound::Reduction                 call;
  tcbound::ReductionSpace           *space;

  PetscFunctionBegin;
  call.sum = sum;
  call.terms = static_cast<int>(n);
  call.length = x->map->n;
  call.factor = factor;
  if (call.length == 0) {
    PetscCall(PetscArrayzero(results, call.results()));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (n > static_cast<PetscInt>(few.size())) TCBoundCallCXX(many.resize(static_cast<std::size_t>(n)));
  const PetscScalar **arrays = many.empty() ? few.data() : many.data();
  PetscCall(VecTCBoundGetRun(x, &run));
  const tcbound::ReductionKernel &kernel = ReduceKernel(run.device);
  PetscCall(GetSpace(run, &space));
  PetscCall(VecGetArrayReadAndMemType(x, &array, NULL));
  for (PetscInt i = 0; i < n; i++) PetscCall(VecGetArrayReadAndMemType(y[i], &arrays[i], NULL));
  call.x = array;
  call.y = arrays;
  PetscCall(VecTCBoundGetLogRow(&run, op, kernel, ""));
  if (TCBoundLogWantsCount(run.row))
    PetscCall(TCBoundLogCount(run.row, *run.executor, kernel.work(call), [&] { kernel.start(*run.executor, *space, call); }));
  PetscCall(VecTCBoundRunBegin(&run));
  TCBoundCallCXX(kernel.start(*run.executor, *space, call));
  if (run.device) PetscCall(VecTCBoundRunEnd(&run, kernel.work(call))); // the log's mark stands behind the kernel already
  TCBoundCallCXX(kernel.finish(*run.executor, *space, call, results));
  if (!run.device) PetscCall(VecTCBoundRunEnd(&run, kernel.work(call)));
  if (run.device) PetscCall(PetscLogGpuToCpuScalar(static_cast<PetscLogDouble>(call.results()) * sizeof(PetscScalar)));
  for (PetscInt i = 0; i < n; i++) PetscCall(VecRestoreArrayReadAndMemType(y[i], &arrays[i]));
  PetscCall(VecRestoreArrayReadAndMemType(x, &array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SumOverRanks(Vec x, PetscMPIInt n, PetscScalar z[]) {
  PetscFunctionBegin;
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, z, n, MPIU_SCALAR, MPIU_SUM, PetscObjectComm((PetscObject)x)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecDot_SeqTCBound(Vec x, Vec y, PetscScalar *z) {
  PetscFunctionBegin;
  if (VecTCBoundSameSide(x, 1, &y))
    PetscCall(Reduce(x, TCBOUND_VEC_DOT, tcbound::Sum::dots, 1, &y, 1.0, z));
  else
    PetscCall((*VecTCBoundBaseOps(x)->dot_local)(x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecTDot_SeqTCBound(Vec x, Vec y, PetscScalar *z) {
  PetscFunctionBegin;
  if (VecTCBoundSameSide(x, 1, &y))
    PetscCall(Reduce(x, TCBOUND_VEC_TDOT, tcbound::Sum::dots, 1, &y, 1.0, z));
  else
    PetscCall((*VecTCBoundBaseOps(x)->tdot_local)(x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecMDot_SeqTCBound(Vec x, PetscInt n, const Vec y[], PetscScalar z[]) {
  PetscFunctionBegin;
  if (VecTCBoundSameSide(x, n, y))
    PetscCall(Reduce(x, TCBOUND_VEC_MDOT, tcbound::Sum::dots, n, y, 1.0, z));
  else // one by one, since PETSc's does not tell sides apart
    for (PetscInt i = 0; i < n; i++) PetscCall(VecDot_SeqTCBound(x, y[i], &z[i]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Scalars are real, so that this is the same product.
static PetscErrorCode VecMTDot_SeqTCBound(Vec x, PetscInt n, const Vec y[], PetscScalar z[]) {
  PetscFunctionBegin;
  if (VecTCBoundSameSide(x, n, y))
    PetscCall(Reduce(x, TCBOUND_VEC_MTDOT, tcbound::Sum::dots, n, y, 1.0, z));
  else
    for (PetscInt i = 0; i < n; i++) PetscCall(VecTDot_SeqTCBound(x, y[i], &z[i]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecDotNorm2_SeqTCBound(Vec s, Vec t, PetscScalar *dot, PetscScalar *squares) {
  PetscScalar z[2];

  PetscFunctionBegin;
  if (VecTCBoundSameSide(s, 1, &t)) {
    PetscCall(Reduce(s, TCBOUND_VEC_DOTNORM2, tcbound::Sum::dot_and_squares, 1, &t, 1.0, z));
  } else {
    PetscCall((*VecTCBoundBaseOps(s)->dot_local)(s, t, &z[0]));
    PetscCall((*t->ops->dot_local)(t, t, &z[1]));
  }
  *dot = z[0];
  *squares = z[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The root of a sum of squares; where they overflowed or lost digits to underflow, they are added up again of elements that a power
// of two has brought near 1.
static PetscErrorCode Norm2(Vec x, PetscScalar squares, PetscReal *norm) {
  PetscScalar largest, scaled;

  PetscFunctionBegin;
  *norm = std::sqrt(squares);
  if ((squares >= 1e-280 && squares <= PETSC_MAX_REAL) || x->map->n == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Reduce(x, TCBOUND_VEC_NORM, tcbound::Sum::maximum, 0, NULL, 1.0, &largest));
  *norm = largest;
  if (largest == 0.0 || PetscIsInfOrNanReal(largest)) PetscFunctionReturn(PETSC_SUCCESS);
  const int exponent = std::min(std::max(std::ilogb(largest), -1000), 1000);
  PetscCall(Reduce(x, TCBOUND_VEC_NORM, tcbound::Sum::squares, 0, NULL, std::ldexp(1.0, -exponent), &scaled));
  *norm = std::ldexp(std::sqrt(scaled), exponent);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecNorm_SeqTCBound(Vec x, NormType type, PetscReal *z) {
  PetscScalar sums[2];

  PetscFunctionBegin;
  switch (type) {
  case NORM_1:
    PetscCall(Reduce(x, TCBOUND_VEC_NORM, tcbound::Sum::magnitudes, 0, NULL, 1.0, z));
    break;
  case NORM_INFINITY:
    PetscCall(Reduce(x, TCBOUND_VEC_NORM, tcbound::Sum::maximum, 0, NULL, 1.0, z));
    break;
  case NORM_2:
  case NORM_FROBENIUS:
    PetscCall(Reduce(x, TCBOUND_VEC_NORM, tcbound::Sum::squares, 0, NULL, 1.0, sums));
    PetscCall(Norm2(x, sums[0], z));
    break;
  case NORM_1_AND_2:
    PetscCall(Reduce(x, TCBOUND_VEC_NORM, tcbound::Sum::both, 0, NULL, 1.0, sums));
    z[0] = sums[0];
    PetscCall(Norm2(x, sums[1], z + 1));
    break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecDot_MPITCBound(Vec x, Vec y, PetscScalar *z) {
  PetscFunctionBegin;
  PetscCall(VecDot_SeqTCBound(x, y, z));
  PetscCall(SumOverRanks(x, 1, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecTDot_MPITCBound(Vec x, Vec y, PetscScalar *z) {
  PetscFunctionBegin;
  PetscCall(VecTDot_SeqTCBound(x, y, z));
  PetscCall(SumOverRanks(x, 1, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecMDot_MPITCBound(Vec x, PetscInt n, const Vec y[], PetscScalar z[]) {
  PetscFunctionBegin;
  PetscCall(VecMDot_SeqTCBound(x, n, y, z));
  PetscCall(SumOverRanks(x, static_cast<PetscMPIInt>(n), z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecMTDot_MPITCBound(Vec x, PetscInt n, const Vec y[], PetscScalar z[]) {
  PetscFunctionBegin;
  PetscCall(VecMTDot_SeqTCBound(x, n, y, z));
  PetscCall(SumOverRanks(x, static_cast<PetscMPIInt>(n), z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecDotNorm2_MPITCBound(Vec s, Vec t, PetscScalar *dot, PetscScalar *squares) {
  PetscScalar z[2];

  PetscFunctionBegin;
  PetscCall(VecDotNorm2_SeqTCBound(s, t, &z[0], &z[1]));
  PetscCall(SumOverRanks(s, 2, z));
  *dot = z[0];
  *squares = z[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

// As PETSc's own types: 2-norms are squared, added up and their root taken.
static PetscErrorCode VecNorm_MPITCBound(Vec x, NormType type, PetscReal *z) {
  const PetscMPIInt n = type == NORM_1_AND_2 ? 2 : 1;
  PetscReal        *two = type == NORM_1_AND_2 ? z + 1 : type == NORM_2 || type == NORM_FROBENIUS ? z : NULL;

  PetscFunctionBegin;
  PetscCall(VecNorm_SeqTCBound(x, type, z));
  if (two) *two *= *two;
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, z, n, MPIU_REAL, type == NORM_INFINITY ? MPIU_MAX : MPIU_SUM,
                              PetscObjectComm((PetscObject)x)));
  if (two) *two = PetscSqrtReal(*two);
  PetscFunctionReturn(PETSC_SUCCESS);
}

void VecTCBoundSetReductions(VecOps ops, bool parallel) {
  ops->dot_local = VecDot_SeqTCBound;
  ops->tdot_local = VecTDot_SeqTCBound;
  ops->mdot_local = VecMDot_SeqTCBound;
  ops->mtdot_local = VecMTDot_SeqTCBound;
  ops->norm_local = VecNorm_SeqTCBound;
  ops->dot = parallel ? VecDot_MPITCBound : VecDot_SeqTCBound;
  ops->tdot = parallel ? VecTDot_MPITCBound : VecTDot_SeqTCBound;
  ops->mdot = parallel ? VecMDot_MPITCBound : VecMDot_SeqTCBound;
  ops->mtdot = parallel ? VecMTDot_MPITCBound : VecMTDot_SeqTCBound;
  ops->dotnorm2 = parallel ? VecDotNorm2_MPITCBound : VecDotNorm2_SeqTCBound;
  ops->norm = parallel ? VecNorm_MPITCBound : VecNorm_SeqTCBound;
}
