static char help[] =
  "A smoother of multigrid: four damped Jacobi sweeps from a guess, as PETSc does them (Richardson's "
  "iterations with PCJACOBI) and by\n"
  "the preconditioner tcboundsweep, which fuses them where the matrix is a stencil's.\n\n"
  "  -cases a,b,...   of poisson7-256, poisson27-160, poisson7-256-variable, poisson27-160-variable, poisson7-64\n"
  "                   (default all but the last)\n"
  "  -sweeps N        so many instead of four\n"
  "  -repeats N       timed batches (15)\n"
  "  -host            on the host\n"
  "  -quick           small sizes, to test the benchmark itself\n"
  "  -output FILE     append results as JSON lines; -git_sha SHA and -git_dirty go into them\n\n";

#include <petsctime.h>

#include <algorithm>
#include <cmath>

#include "cases.h"
#include "cg.h"
#include "options.h"
#include "stencil_matrix.h"

namespace {

using tcbound::bench::Line;
using tcbound::bench::Synchronize;

struct Options {
  std::vector<std::string>   cases = {"poisson7-256", "poisson27-160", "poisson7-256-variable", "poisson27-160-variable"};
  int                        sweeps = 4, repeats = 15;
  bool                       host = false, quick = false;
  tcbound::bench::Provenance provenance;
};

constexpr double omega = 2.0 / 3.0;

// Richardson's iterations with Jacobi, or with as many sweeps of ours, without norms and tests of convergence.
PetscErrorCode MakeSmoother(Mat A, bool ours, int sweeps, KSP *ksp) {
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PETSC_COMM_SELF, ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, KSPRICHARDSON));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, ours ? PCTCBOUNDSWEEP : PCJACOBI));
  if (ours) {
    PetscCall(PCTCBoundSweepSetIterations(pc, 1));
    PetscCall(PCTCBoundSweepSetOmega(pc, omega));
  } else {
    PetscCall(KSPRichardsonSetScale(*ksp, omega));
  }
  PetscCall(KSPSetNormType(*ksp, KSP_NORM_NONE));
  PetscCall(KSPSetConvergenceTest(*ksp, KSPConvergedSkip, NULL, NULL));
  PetscCall(KSPSetTolerances(*ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, sweeps));
  PetscCall(KSPSetInitialGuessNonzero(*ksp, PETSC_TRUE));
  PetscCall(KSPSetUp(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Median over repeats of the time of one smoothing within a batch that ends with a device sync.
PetscErrorCode TimeSmoother(KSP ksp, Vec b, Vec x, int repeats, double *microseconds) {
  std::vector<double> times;
  PetscLogDouble      start, end;
  const int           batch = 5;

  PetscFunctionBeginUser;
  for (int r = 0; r < repeats; r++) {
    PetscCall(Synchronize());
    PetscCall(PetscTime(&start));
    for (int i = 0; i < batch; i++) PetscCall(KSPSolve(ksp, b, x));
    PetscCall(Synchronize());
    PetscCall(PetscTime(&end));
    times.push_back(1e6 * (end - start) / batch);
  }
  *microseconds = tcbound::bench::median(times);
  PetscFunctionReturn(PETSC_SUCCESS);
}

struct Contender {
  std::string label;
  bool        ours; // the preconditioner
  VecType     vectors;
};

// What the first contender has computed is what others must.
PetscErrorCode RunContender(const Contender &one, Mat A, const Options &options, Vec *expected, Line line,
                            std::vector<Line> *lines) {
  KSP         ksp;
  Vec         x, b, difference;
  PetscRandom random;
  PetscReal   norm, error = 0.0;
  PetscInt    rows;

  PetscFunctionBeginUser;
  PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "%s: %s\n", line.name.c_str(), one.label.c_str()));
  PetscCall(MatGetSize(A, &rows, nullptr));
  PetscCall(VecCreate(PETSC_COMM_SELF, &x));
  PetscCall(VecSetSizes(x, rows, rows));
  PetscCall(VecSetType(x, one.vectors));
  PetscCall(VecDuplicate(x, &b));
  PetscCall(PetscRandomCreate(PETSC_COMM_SELF, &random));
  PetscCall(VecSetRandom(x, random));
  PetscCall(VecSetRandom(b, random));
  PetscCall(PetscRandomDestroy(&random));
  PetscCall(MakeSmoother(A, one.ours, options.sweeps, &ksp));
  PetscCall(KSPSolve(ksp, b, x));
  if (!*expected) {
    PetscCall(VecDuplicate(x, expected));
    PetscCall(VecCopy(x, *expected));
  }
  PetscCall(VecDuplicate(*expected, &difference));
  PetscCall(VecCopy(x, difference));
  PetscCall(VecAXPY(difference, -1.0, *expected));
  PetscCall(VecNorm(difference, NORM_INFINITY, &error));
  PetscCall(VecNorm(*expected, NORM_INFINITY, &norm));
  PetscCheck(error <= 1e-13 * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "DISAGREE: %s differs from %s by %g on %s",
             one.label.c_str(), lines->empty() ? "itself" : lines->front().kernel.c_str(), (double)(error / norm),
             line.name.c_str());
  line.kernel = one.label;
  line.repeats = options.repeats;
  PetscCall(TimeSmoother(ksp, b, x, options.repeats, &line.time_us));
  lines->push_back(line);
  PetscCall(KSPDestroy(&ksp));
  for (Vec *v : {&x, &b, &difference}) PetscCall(VecDestroy(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Report(const Options &options, std::vector<Line> &lines) {
  PetscFunctionBeginUser;
  for (Line &l : lines) {
    l.baseline = lines.front().kernel;
    l.baseline_time_us = lines.front().time_us;
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-20s %-42s %11.2f us %9.1f GB/s %6.3f of the roof, %7.3f x %s\n", l.name.c_str(),
                          l.kernel.c_str(), l.time_us, l.gbps(), l.roof_fraction(), l.ratio(), l.baseline.c_str()));
    try {
      append(options.provenance, l, {{"sweeps", options.sweeps}});
    } catch (const std::exception &e) {
      SETERRQ(PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s", e.what());
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Bytes are those of the sweeps one by one: of a product with CSR, then of r = b - A x, r = D^-1 r and x = x + omega r, 3 vectors each.
Line LineOf(const tcbound::bench::Matrix &m, const Options &options, double roof, const char device[]) {
  Line line;

  line.name = options.quick ? "quick-" + m.name : m.name;
  line.op = "Jacobi sweeps";
  line.device = device;
  line.roof = roof;
  line.bytes = options.sweeps * (12 * m.nonzeros() + 4 * (m.rows + 1) + 16 * m.rows + 3 * 24 * m.rows);
  line.useful_flops = options.sweeps * (2 * m.nonzeros() + 4 * m.rows);
  return line;
}

PetscErrorCode RunCase(const tcbound::bench::MatrixCase &one, const Options &options, double roof, const char device[]) {
  const tcbound::bench::Matrix m = one.make(options.quick);
  const Line                   line = LineOf(m, options, roof, device);
  const PetscInt               rows = static_cast<PetscInt>(m.rows);
  const VecType                ours = VECTCBOUND, petscs = options.host ? VECSTANDARD : VECCUDA;
  std::vector<PetscInt>        i(m.offsets.begin(), m.offsets.end()), j(m.columns.begin(), m.columns.end());
  std::vector<Line>            lines;
  Mat                          A, B;
  Vec                          expected = nullptr;

  PetscFunctionBeginUser;
  PetscCall(
    MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, rows, rows, i.data(), j.data(), const_cast<double *>(m.values.data()), &A));
  if (options.host) {
    PetscCall(RunContender({"petsc/aij, jacobi", false, petscs}, A, options, &expected, line, &lines));
  } else {
    PetscCall(MatConvert(A, MATAIJCUSPARSE, MAT_INITIAL_MATRIX, &B));
    PetscCall(RunContender({"petsc/aijcusparse, jacobi", false, petscs}, B, options, &expected, line, &lines));
    PetscCall(MatDestroy(&B));
  }
  PetscCall(MatConvert(A, MATAIJTCBOUND, MAT_INITIAL_MATRIX, &B));
  if (options.host) PetscCall(MatTCBoundSetBackend(B, "host"));
  PetscCall(RunContender({"aijtcbound, jacobi", false, ours}, B, options, &expected, line, &lines));
  PetscCall(RunContender({"aijtcbound, tcboundsweep", true, ours}, B, options, &expected, line, &lines));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&A));
  PetscCall(tcbound::bench::MakeStencil(m, options.host, &B));
  PetscCall(RunContender({"stenciltcbound, jacobi", false, ours}, B, options, &expected, line, &lines));
  for (const char *steps : {"1", "2", "0"}) {
    const std::string label = std::string("stenciltcbound, tcboundsweep, ") + (*steps == '0' ? "auto" : steps) + " a pass";
    PetscCall(PetscOptionsSetValue(nullptr, "-mat_tcbound_steps", steps));
    PetscCall(MatSetFromOptions(B));
    PetscCall(RunContender({label, true, ours}, B, options, &expected, line, &lines));
  }
  PetscCall(MatDestroy(&B));
  PetscCall(Report(options, lines));
  PetscCall(VecDestroy(&expected));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Run(const Options &options) {
  PetscBool                               has;
  const char                             *why_not, *device = "host";
  PetscLogDouble                          roof;
  std::vector<tcbound::bench::MatrixCase> cases;
  std::vector<std::string>                known = Options().cases;

  PetscFunctionBeginUser;
  known.push_back("poisson7-64");
  for (const std::string &name : options.cases)
    PetscCheck(std::find(known.begin(), known.end(), name) != known.end(), PETSC_COMM_SELF, PETSC_ERR_USER_INPUT,
               "there is no case %s; -help lists them", name.c_str());
  cases = tcbound::bench::find_cases(options.cases);
  PetscCall(TCBoundHasDevice(&has, &why_not));
  PetscCheck(has || options.host, PETSC_COMM_SELF, PETSC_ERR_SUP, "No GPU: %s. -host runs on the host", why_not);
  if (!options.host) PetscCall(TCBoundGetDeviceName(&device));
  if (options.host) PetscCall(PetscOptionsSetValue(nullptr, "-vec_tcbound_backend", "host"));
  PetscCall(TCBoundGetBandwidth(PETSC_COMM_SELF, options.host ? PETSC_MEMTYPE_HOST : PETSC_MEMTYPE_CUDA, &roof));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s: y = q x at %.0f GB/s; %d sweeps\n", device, 1e-9 * roof, options.sweeps));
  for (const tcbound::bench::MatrixCase &one : cases) PetscCall(RunCase(one, options, roof, device));
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

int main(int argc, char **argv) {
  Options options;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TCBoundInitialize());
  PetscCall(tcbound::bench::ReadList("-cases", &options.cases));
  PetscCall(tcbound::bench::ReadCount("-sweeps", &options.sweeps));
  PetscCall(tcbound::bench::ReadCount("-repeats", &options.repeats));
  PetscCall(tcbound::bench::ReadFlag("-host", &options.host));
  PetscCall(tcbound::bench::ReadFlag("-quick", &options.quick));
  PetscCall(tcbound::bench::ReadProvenance(argc, argv, &options.provenance));
  PetscCall(tcbound::bench::RefuseUnread("-cases, -sweeps, -repeats, -host, -quick, -output, -git_sha, -git_dirty"));
  PetscCall(Run(options));
  PetscCall(PetscFinalize());
  return 0;
}
