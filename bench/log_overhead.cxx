static char help[] =
  "What tcbound's part of -log_view costs: iterations of CG with Jacobi, and products, on poisson7 n^3 without any log, with\n"
  "PETSc's own and with both, in turns.\n\n"
  "  -n N             points in each direction (64)\n"
  "  -iterations N    of a solve, and products of a batch (1000)\n"
  "  -repeats N       timed solves of each kind (11)\n"
  "  -backend B       as -mat_tcbound_backend (auto)\n"
  "  -output FILE     append results as JSON lines; -git_sha SHA and -git_dirty go into them\n\n";

#include <petsctime.h>
#include <tcbound.h>

#include "cg.h"
#include "options.h"
#include "rules.h"

namespace {

using tcbound::bench::Line;
using tcbound::bench::median;
using tcbound::bench::Synchronize;

struct Options {
  int                        n = 64, iterations = 1000, repeats = 11;
  std::string                backend = "auto";
  tcbound::bench::Provenance provenance;
};

enum { LOG_NONE, LOG_PETSC, LOG_BOTH, LOGS };
const char *const log_names[LOGS] = {"no log", "PETSc's log", "PETSc's log and tcbound's"};

struct Timing {
  std::vector<double> microseconds[LOGS]; // of one iteration or product
};

PetscErrorCode SetLog(PetscLogHandler handler, int log, bool *running) {
  const bool run = log != LOG_NONE;

  PetscFunctionBeginUser;
  if (run != *running) PetscCall(run ? PetscLogHandlerStart(handler) : PetscLogHandlerStop(handler));
  *running = run;
  PetscCall(TCBoundSetLog(log == LOG_BOTH ? PETSC_TRUE : PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Each kind of log comes first, second and last equally often. The first round warms up.
template <class Run>
PetscErrorCode TimeInTurns(const Options &options, PetscLogHandler handler, const Run &run, Timing *timing) {
  PetscLogDouble start, end;
  bool           running = true;

  PetscFunctionBeginUser;
  for (int round = 0; round <= options.repeats; round++) {
    for (int turn = 0; turn < LOGS; turn++) {
      const int log = (round + turn) % LOGS;
      PetscCall(SetLog(handler, log, &running));
      PetscCall(Synchronize());
      PetscCall(PetscTime(&start));
      PetscCall(run());
      PetscCall(Synchronize());
      PetscCall(PetscTime(&end));
      if (round > 0) timing->microseconds[log].push_back(1e6 * (end - start) / options.iterations);
    }
  }
  PetscCall(SetLog(handler, LOG_BOTH, &running));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Median over the rounds of what a log adds to the log before it; the two ran one after the other.
double MedianOverhead(const Timing &timing, int log) {
  std::vector<double> overheads;
  for (std::size_t round = 0; round < timing.microseconds[log].size(); round++)
    overheads.push_back(timing.microseconds[log][round] / timing.microseconds[log - 1][round] - 1);
  return median(overheads);
}

// A kernel's lines are told apart by the log that ran.
PetscErrorCode Report(const Options &options, const Timing &timing, Line line) {
  const std::string kernel = line.kernel;

  PetscFunctionBeginUser;
  line.repeats = options.repeats;
  line.op += " with a log";
  for (int log = 0; log < LOGS; log++) {
    nlohmann::json extra = {{"log", log_names[log]}, {"iterations", options.iterations}};
    line.kernel = kernel + ", " + log_names[log];
    line.time_us = median(timing.microseconds[log]);
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-12s %-48s %-50s %9.3f us", line.name.c_str(), line.op.c_str(),
                          line.kernel.c_str(), line.time_us));
    if (log > 0) {
      const double overhead = MedianOverhead(timing, log);
      line.baseline = kernel + ", " + log_names[log - 1];
      line.baseline_time_us = median(timing.microseconds[log - 1]);
      extra["overhead"] = overhead;
      PetscCall(PetscPrintf(PETSC_COMM_SELF, " %+7.2f %% over %s", 100 * overhead, log_names[log - 1]));
    }
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n"));
    try {
      append(options.provenance, line, extra);
    } catch (const std::exception &e) {
      SETERRQ(PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s", e.what());
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

// With vectors of PETSc's own type, whose operations only PETSc's log has, or with tcbound's.
PetscErrorCode TimeSolves(const Options &options, Mat A, bool our_vectors, PetscLogHandler handler, Line line) {
  PetscInt rows;
  KSP      ksp;
  Vec      x, b;
  Timing   solves;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, &rows, NULL));
  PetscCall(MatCreateVecs(A, &x, &b));
  if (our_vectors) {
    for (Vec *v : {&x, &b}) {
      PetscCall(VecDestroy(v));
      PetscCall(VecCreate(PETSC_COMM_SELF, v));
      PetscCall(VecSetSizes(*v, rows, rows));
      PetscCall(VecSetType(*v, VECTCBOUND));
    }
  }
  PetscCall(VecSet(b, 1.0));
  PetscCall(tcbound::bench::MakeCG(A, options.iterations, &ksp));
  PetscCall(TimeInTurns(
    options, handler, [&] { return KSPSolve(ksp, b, x); }, &solves));
  tcbound::bench::AddCGWork(rows, &line);
  if (our_vectors) line.op += ", tcbound's vectors";
  PetscCall(Report(options, solves, line));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TimeProducts(const Options &options, Mat A, PetscLogHandler handler, Line line) {
  Vec    x, y;
  Timing products;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(TimeInTurns(
    options, handler,
    [&] {
      PetscFunctionBeginUser;
      for (int k = 0; k < options.iterations; k++) PetscCall(MatMult(A, x, y));
      PetscFunctionReturn(PETSC_SUCCESS);
    },
    &products));
  line.op = "MatMult";
  PetscCall(Report(options, products, line));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// What lines of this matrix have in common.
PetscErrorCode Describe(Mat A, Line *line) {
  MatTCBoundInfo info;
  PetscBool      has_device;

  PetscFunctionBeginUser;
  PetscCall(MatTCBoundGetInfo(A, &info));
  PetscCall(TCBoundHasDevice(&has_device, NULL));
  const bool on_device = has_device && strcmp(info.backend, "host");
  line->kernel = info.kernel;
  line->bytes = static_cast<std::int64_t>(info.moved_bytes);
  line->useful_flops = static_cast<std::int64_t>(info.useful_flops);
  line->device = "host";
  if (on_device) {
    const char *device;
    PetscCall(TCBoundGetDeviceName(&device));
    line->device = device;
  }
  PetscCall(TCBoundGetBandwidth(PETSC_COMM_SELF, on_device ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &line->roof));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Run(const Options &options) {
  Line line;
  line.name = "poisson7-" + std::to_string(options.n);
  const tcbound::bench::Matrix m = tcbound::bench::poisson(options.n, 7, false, line.name);
  std::vector<PetscInt>        i(m.offsets.begin(), m.offsets.end()), j(m.columns.begin(), m.columns.end());
  const PetscInt               rows = static_cast<PetscInt>(m.rows);
  Mat                          A;
  PetscLogHandler              handler;

  PetscFunctionBeginUser;
  PetscCall(PetscLogDefaultBegin());
  PetscCall(PetscLogGetDefaultHandler(&handler));
  PetscCall(PetscObjectReference((PetscObject)handler)); // PetscLogHandlerStop() lets go of it
  PetscCall(
    MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, rows, rows, i.data(), j.data(), const_cast<double *>(m.values.data()), &A));
  PetscCall(MatConvert(A, MATAIJTCBOUND, MAT_INPLACE_MATRIX, &A));
  PetscCall(MatTCBoundSetBackend(A, options.backend.c_str()));
  PetscCall(Describe(A, &line));
  PetscCall(TimeProducts(options, A, handler, line));
  for (const bool our_vectors : {false, true}) PetscCall(TimeSolves(options, A, our_vectors, handler, line));
  PetscCall(PetscLogHandlerDestroy(&handler));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

int main(int argc, char **argv) {
  Options options;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TCBoundInitialize());
  PetscCall(tcbound::bench::ReadCount("-n", &options.n));
  PetscCall(tcbound::bench::ReadCount("-iterations", &options.iterations));
  PetscCall(tcbound::bench::ReadCount("-repeats", &options.repeats));
  std::string backend;
  PetscCall(tcbound::bench::ReadText("-backend", &backend));
  if (!backend.empty()) options.backend = backend;
  PetscCall(tcbound::bench::ReadProvenance(argc, argv, &options.provenance));
  PetscCall(tcbound::bench::RefuseUnread("-n, -iterations, -repeats, -backend, -output, -git_sha, -git_dirty"));
  PetscCall(Run(options));
  PetscCall(PetscFinalize());
  return 0;
}
