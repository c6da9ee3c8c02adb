#include <petscdevice.h>
#include <petsctime.h>
#include <tcbound.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "result.h"

namespace compare {

namespace {

PetscErrorCode MaxOverRanks(MPI_Comm comm, PetscReal *value) {
  PetscFunctionBeginUser;
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, value, 1, MPIU_REAL, MPIU_MAX, comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The time of `repeats` products, the slowest rank's, device included.
PetscErrorCode TimeBatch(const Candidate &candidate, Mat C, Vec x, Vec y, PetscInt repeats, PetscReal *seconds) {
  const MPI_Comm comm = PetscObjectComm((PetscObject)C);
  PetscLogDouble begin, end;

  PetscFunctionBeginUser;
  PetscCall(Synchronize(candidate));
  PetscCallMPI(MPI_Barrier(comm));
  PetscCall(PetscTime(&begin));
  for (PetscInt i = 0; i < repeats; i++) PetscCall(MatMult(C, x, y));
  PetscCall(Synchronize(candidate));
  PetscCall(PetscTime(&end));
  *seconds = end - begin;
  PetscCall(MaxOverRanks(comm, seconds));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The median of at least five batches, each long enough for the clock and the launches not to matter.
PetscErrorCode TimeProduct(const Candidate &candidate, Mat C, Vec x, Vec y, PetscReal at_least, PetscReal *median) {
  PetscReal              seconds, total = 0;
  PetscInt               repeats = 1;
  std::vector<PetscReal> times;

  PetscFunctionBeginUser;
  PetscCall(TimeBatch(candidate, C, x, y, 1, &seconds)); // warm-up
  for (;;) {
    PetscCall(TimeBatch(candidate, C, x, y, repeats, &seconds));
    if (seconds > 0.002 || repeats > 1000000) break;
    repeats *= 2;
  }
  while (times.size() < 5 || (total < at_least && times.size() < 10000)) {
    PetscCall(TimeBatch(candidate, C, x, y, repeats, &seconds));
    times.push_back(seconds / repeats);
    total += seconds;
  }
  std::sort(times.begin(), times.end());
  *median = times[times.size() / 2];
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Bytes of a PETSc CSR: values, column indices, row pointers; a product reads x and writes y once more.
PetscErrorCode CountBytes(const Reference &r, Mat C, Result *result) {
  const PetscReal vectors = 8.0 * ((PetscReal)r.rows + (PetscReal)r.columns);
  MatTCBoundInfo  info;

  PetscFunctionBeginUser;
  if (!result->candidate.tcbound) {
    result->kernel = result->candidate.type;
    result->matrix_bytes = (PetscReal)r.nonzeros * (8 + sizeof(PetscInt)) + ((PetscReal)r.rows + 1) * sizeof(PetscInt);
    result->moved_bytes = result->matrix_bytes + vectors;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatTCBoundGetInfo(C, &info));
  result->kernel = info.kernel;
  result->format = info.format;
  result->backend = info.backend;
  result->matrix_bytes = info.stored_bytes;
  result->moved_bytes = info.moved_bytes;
  if (info.nonzeros != r.nonzeros)
    result->failures.push_back(
      format_text("holds %lld nonzeros, the matrix has %lld", (long long)info.nonzeros, (long long)r.nonzeros));
  const Candidate  &c = result->candidate;
  const std::string asked = "spmv/" + c.format + "/" + c.backend;
  if (c.format == "auto" || c.backend == "auto") {
    result->candidate.device = std::string(info.backend) != "host";
  } else if (asked != info.kernel) {
    result->failures.push_back("asked for " + asked + ", but " + info.kernel + " ran");
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MeasureProducts(const Options &o, const Reference &r, Mat C, Vec x, Vec y, Result *result) {
  bool ok;

  PetscFunctionBeginUser;
  PetscCall(CompareProduct(r.forward, C, false, &result->product_ratio, &ok));
  if (!ok)
    result->failures.push_back(
      format_text("the product is %.3g times its error bound from PETSc's aij", result->product_ratio));
  PetscCall(CompareProduct(r.transposed, C, true, &result->transpose_ratio, &ok));
  if (!ok)
    result->failures.push_back(
      format_text("the transposed product is %.3g times its error bound from PETSc's aij", result->transpose_ratio));
  PetscCall(TimeProduct(result->candidate, C, x, y, o.spmv_time, &result->product_time));
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

PetscErrorCode Synchronize(const Candidate &candidate) {
  PetscDeviceContext context;

  PetscFunctionBeginUser;
  if (!candidate.device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscDeviceContextGetCurrentContext(&context));
  PetscCall(PetscDeviceContextSynchronize(context));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode RunCandidate(const Options &o, const Reference &r, const Candidate &candidate, Result *result) {
  const MPI_Comm comm = PetscObjectComm((PetscObject)r.A);
  PetscLogDouble begin, end;
  Mat            C;
  Vec            x, y;

  PetscFunctionBeginUser;
  result->candidate = candidate;
  PetscCall(Progress(comm, "%s: converting and multiplying", candidate.name().c_str()));
  PetscCallMPI(MPI_Barrier(comm));
  PetscCall(PetscTime(&begin));
  PetscCall(CreateCandidate(r.A, candidate, &C));
  PetscCall(MatCreateVecs(C, &x, &y));
  PetscCall(VecCopy(r.forward.x, x));
  PetscCall(MatMult(C, x, y));
  PetscCall(Synchronize(candidate));
  PetscCall(PetscTime(&end));
  result->setup_time = end - begin;
  PetscCall(MaxOverRanks(comm, &result->setup_time));
  PetscCall(CountBytes(r, C, result));
  PetscCall(MeasureProducts(o, r, C, x, y, result));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  if (!o.spmv_only) PetscCall(RunSolver(r, C, result));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

std::string format_text(const char format[], ...) {
  char    text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return text;
}

} // namespace compare
