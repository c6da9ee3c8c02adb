static char help[] =
  "End to end in PETSc: MatMult and, where the matrix is symmetric and positive definite, an iteration of CG with Jacobi for\n"
  "aijtcbound's backends (for the default one also with vectors of type tcbound) and, on cubes, for stenciltcbound, against\n"
  "PETSc's own GPU types.\n\n"
  "  -cases a,b,...   matrices of the suite (default poisson7-256, poisson27-160, poisson7-64), or all\n"
  "  -types a,b,...   only these, by the names that the output has, such as stenciltcbound,aijtcbound,petsc/sellcuda\n"
  "  -repeats N       timed batches (15)\n"
  "  -quick           small sizes, to test the benchmark itself\n"
  "  -output FILE     append results as JSON lines; -git_sha SHA and -git_dirty go into them\n\n";

#include <petsctime.h>
#include <tcbound.h>

#include <algorithm>
#include <cstdio>

#include "cases.h"
#include "cg.h"
#include "options.h"
#include "stencil_matrix.h"

namespace {

using tcbound::bench::Line;
using tcbound::bench::Synchronize;

struct Options {
  std::vector<std::string>   cases = {"poisson7-256", "poisson27-160", "poisson7-64"};
  std::vector<std::string>   types; // empty: all
  int                        repeats = 15;
  bool                       quick = false;
  tcbound::bench::Provenance provenance;
};

std::string BackendOf(const std::string &kernel) { return kernel.substr(kernel.rfind('/') + 1); }

std::string FormatOf(const std::string &kernel) {
  const std::size_t first = kernel.find('/') + 1;
  return kernel.substr(first, kernel.rfind('/') - first);
}

struct Type {
  std::string label;
  const char *mat_type;
  std::string kernel; // of aijtcbound; empty: the type's own choice
};

// PETSc's own types, what aijtcbound takes by itself, the matrix as a stencil's, and each of aijtcbound's device kernels; of these the
// chosen ones.
PetscErrorCode ListTypes(const tcbound::bench::MatrixCase &one, const std::vector<std::string> &chosen,
                         std::vector<Type> *types) {
  PetscInt           n;
  const char *const *names;

  PetscFunctionBeginUser;
  *types = {
    {"petsc/aijcusparse", MATAIJCUSPARSE, ""}, {"petsc/sellcuda", MATSEQSELLCUDA, ""}, {"aijtcbound", MATAIJTCBOUND, ""}};
  if (tcbound::bench::IsCube(one)) types->push_back({"stenciltcbound", MATSTENCILTCBOUND, ""});
  PetscCall(TCBoundGetKernels("spmv", &n, &names));
  for (PetscInt k = 0; k < n; k++) {
    const std::string name = names[k]; // spmv/format/backend
    if (BackendOf(name) != "host") types->push_back({"aijtcbound" + name.substr(name.find('/')), MATAIJTCBOUND, name});
  }
  if (chosen.empty()) PetscFunctionReturn(PETSC_SUCCESS);
  const auto among = [](const std::string &label) { return [&label](const Type &type) { return type.label == label; }; };
  for (const std::string &label : chosen) // stenciltcbound is there for cubes only
    PetscCheck(
      label == MATSTENCILTCBOUND || std::any_of(types->begin(), types->end(), among(label)), PETSC_COMM_SELF,
      PETSC_ERR_USER_INPUT,
      "-types %s: the nearest names are petsc/aijcusparse, petsc/sellcuda, aijtcbound, %s and aijtcbound/FORMAT/BACKEND",
      label.c_str(), MATSTENCILTCBOUND);
  types->erase(
    std::remove_if(types->begin(), types->end(),
                   [&](const Type &type) { return std::find(chosen.begin(), chosen.end(), type.label) == chosen.end(); }),
    types->end());
  PetscFunctionReturn(PETSC_SUCCESS);
}

// B is NULL where the type's kernel cannot run.
PetscErrorCode MakeMatrix(const tcbound::bench::Matrix &m, Mat A, const Type &type, Mat *B) {
  PetscBool   can_run;
  const char *why_not;

  PetscFunctionBeginUser;
  if (!strcmp(type.mat_type, MATSEQSELLCUDA)) {
    PetscCall(MatConvert(A, MATSELL, MAT_INITIAL_MATRIX, B));
    PetscCall(MatConvert(*B, MATSEQSELLCUDA, MAT_INPLACE_MATRIX, B));
  } else if (!strcmp(type.mat_type, MATSTENCILTCBOUND))
    PetscCall(tcbound::bench::MakeStencil(m, false, B));
  else
    PetscCall(MatConvert(A, type.mat_type, MAT_INITIAL_MATRIX, B));
  if (type.kernel.empty()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTCBoundCheckKernel(*B, type.kernel.c_str(), &can_run, &why_not));
  if (!can_run) {
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "left out: %s: %s\n", type.label.c_str(), why_not));
    PetscCall(MatDestroy(B));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatTCBoundSetBackend(*B, BackendOf(type.kernel).c_str()));
  PetscCall(MatTCBoundSetFormat(*B, FormatOf(type.kernel).c_str()));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Median over repeats of the time of one product within a batch that ends with a device sync.
PetscErrorCode TimeMult(Mat A, Vec x, Vec y, int repeats, double *microseconds) {
  std::vector<double> times;
  PetscLogDouble      start, end;
  const int           batch = 20;

  PetscFunctionBeginUser;
  for (int w = 0; w < 5; w++) PetscCall(MatMult(A, x, y));
  for (int r = 0; r < repeats; r++) {
    PetscCall(Synchronize());
    PetscCall(PetscTime(&start));
    for (int b = 0; b < batch; b++) PetscCall(MatMult(A, x, y));
    PetscCall(Synchronize());
    PetscCall(PetscTime(&end));
    times.push_back(1e6 * (end - start) / batch);
  }
  *microseconds = tcbound::bench::median(times);
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The same for one CG iteration: 100 iterations, converged or not.
PetscErrorCode TimeCG(Mat A, Vec b, Vec x, int repeats, double *microseconds) {
  KSP                 ksp;
  std::vector<double> times;
  PetscLogDouble      start, end;
  const PetscInt      iterations = 100;

  PetscFunctionBeginUser;
  PetscCall(tcbound::bench::MakeCG(A, iterations, &ksp));
  PetscCall(KSPSolve(ksp, b, x));
  for (int r = 0; r < repeats; r++) {
    PetscCall(Synchronize());
    PetscCall(PetscTime(&start));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(Synchronize());
    PetscCall(PetscTime(&end));
    times.push_back(1e6 * (end - start) / iterations);
  }
  PetscCall(KSPDestroy(&ksp));
  *microseconds = tcbound::bench::median(times);
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Relative difference from the product of PETSc's host AIJ.
PetscErrorCode CheckMult(Mat A, Vec x, Vec y, Vec expected, PetscReal *error) {
  PetscReal norm;

  PetscFunctionBeginUser;
  PetscCall(VecSet(y, PETSC_MAX_REAL));
  PetscCall(MatMult(A, x, y));
  PetscCall(VecAXPY(y, -1.0, expected));
  PetscCall(VecNorm(y, NORM_INFINITY, error));
  PetscCall(VecNorm(expected, NORM_INFINITY, &norm));
  *error /= norm;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Report(const Options &options, std::vector<Line> &lines) {
  PetscFunctionBeginUser;
  for (const char *op : {"MatMult", "CG+Jacobi iteration"}) {
    const Line *baseline = nullptr; // the faster of PETSc's own
    for (const Line &l : lines)
      if (l.op == op && l.kernel.rfind("petsc/", 0) == 0 && (!baseline || l.time_us < baseline->time_us)) baseline = &l;
    for (Line &l : lines) {
      if (l.op != op) continue;
      if (baseline) {
        l.baseline = baseline->kernel;
        l.baseline_time_us = baseline->time_us;
      }
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-14s %-20s %-26s %9.2f us %8.1f GB/s %6.3f of the roof", l.name.c_str(), op,
                            l.kernel.c_str(), l.time_us, l.gbps(), l.roof_fraction()));
      if (baseline) PetscCall(PetscPrintf(PETSC_COMM_WORLD, ", %6.3f x %s", l.ratio(), l.baseline.c_str()));
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "\n"));
      try {
        append(options.provenance, l);
      } catch (const std::exception &e) {
        SETERRQ(PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s", e.what());
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode RunType(const tcbound::bench::MatrixCase &one, const tcbound::bench::Matrix &m, const Type &type, Mat A, Vec x,
                       Vec y, Vec expected, const Options &options, Line line, std::vector<Line> *lines) {
  PetscReal error;
  PetscInt  rows;
  Mat       B;

  PetscFunctionBeginUser;
  PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "%s: %s\n", line.name.c_str(), type.label.c_str()));
  PetscCall(MakeMatrix(m, A, type, &B));
  if (!B) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(CheckMult(B, x, y, expected, &error));
  PetscCheck(error < 1e-13, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s differs from aij by %g on %s", type.label.c_str(),
             (double)error, line.name.c_str());
  line.kernel = type.label;
  line.repeats = options.repeats;
  line.op = "MatMult";
  PetscCall(TimeMult(B, x, y, options.repeats, &line.time_us));
  lines->push_back(line);
  if (one.definite) {
    PetscCall(MatGetSize(B, &rows, nullptr));
    tcbound::bench::AddCGWork(rows, &line);
    line.repeats = std::min(options.repeats, 5);
    PetscCall(TimeCG(B, expected, y, line.repeats, &line.time_us));
    lines->push_back(line);
    if (type.label.find('/') == std::string::npos) { // ours, as they come
      Vec b, solution;

      PetscCall(VecDuplicate(expected, &b));
      PetscCall(VecCopy(expected, b));
      PetscCall(VecTCBoundConvert(b));
      PetscCall(VecDuplicate(b, &solution)); // the solver's vectors are its duplicates
      line.kernel = type.label + ", vectors tcbound";
      PetscCall(TimeCG(B, b, solution, line.repeats, &line.time_us));
      lines->push_back(line);
      PetscCall(VecDestroy(&b));
      PetscCall(VecDestroy(&solution));
    }
  }
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode RunCase(const tcbound::bench::MatrixCase &one, const Options &options, double roof, const char device[]) {
  const tcbound::bench::Matrix m = one.make(options.quick);
  std::vector<PetscInt>        i(m.offsets.begin(), m.offsets.end()), j(m.columns.begin(), m.columns.end());
  const PetscInt               rows = static_cast<PetscInt>(m.rows), columns = static_cast<PetscInt>(m.columns_count);
  Mat                          A;
  Vec                          x, y, expected, host_x, host_y;
  PetscRandom                  random;
  Line                         line;
  std::vector<Line>            lines;
  std::vector<Type>            types;

  PetscFunctionBeginUser;
  line.name = options.quick ? "quick-" + m.name : m.name;
  line.device = device;
  line.roof = roof;
  line.bytes = 12 * m.nonzeros() + 4 * (m.rows + 1) + 8 * (m.rows + m.columns_count);
  line.useful_flops = 2 * m.nonzeros();
  PetscCall(
    MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, rows, columns, i.data(), j.data(), const_cast<double *>(m.values.data()), &A));
  PetscCall(VecCreateSeqCUDA(PETSC_COMM_SELF, columns, &x));
  PetscCall(VecCreateSeqCUDA(PETSC_COMM_SELF, rows, &y));
  PetscCall(VecDuplicate(y, &expected));
  PetscCall(MatCreateVecs(A, &host_x, &host_y));
  PetscCall(PetscRandomCreate(PETSC_COMM_SELF, &random));
  PetscCall(VecSetRandom(host_x, random));
  PetscCall(PetscRandomDestroy(&random));
  PetscCall(VecCopy(host_x, x));
  PetscCall(MatMult(A, host_x, host_y));
  PetscCall(VecCopy(host_y, expected));
  PetscCall(ListTypes(one, options.types, &types));
  for (const Type &type : types) PetscCall(RunType(one, m, type, A, x, y, expected, options, line, &lines));
  PetscCall(Report(options, lines));
  for (Vec *v : {&x, &y, &expected, &host_x, &host_y}) PetscCall(VecDestroy(v));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Run(const Options &options) {
  PetscBool                               has;
  const char                             *why_not;
  PetscLogDouble                          roof;
  const char                             *device;
  std::vector<tcbound::bench::MatrixCase> cases;

  PetscFunctionBeginUser;
  try {
    const bool all = options.cases.size() == 1 && options.cases[0] == "all";
    cases = tcbound::bench::find_cases(all ? std::vector<std::string>() : options.cases);
  } catch (const std::exception &e) {
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "%s", e.what());
  }
  PetscCall(TCBoundHasDevice(&has, &why_not));
  PetscCheck(has, PETSC_COMM_SELF, PETSC_ERR_SUP, "This benchmark compares GPU types: %s", why_not);
  PetscCall(TCBoundGetDeviceName(&device));
  PetscCall(TCBoundGetBandwidth(PETSC_COMM_SELF, PETSC_MEMTYPE_CUDA, &roof));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s: y = q x at %.0f GB/s\n", device, 1e-9 * roof));
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
  PetscCall(tcbound::bench::ReadList("-types", &options.types));
  PetscCall(tcbound::bench::ReadCount("-repeats", &options.repeats));
  PetscCall(tcbound::bench::ReadFlag("-quick", &options.quick));
  PetscCall(tcbound::bench::ReadProvenance(argc, argv, &options.provenance));
  PetscCall(tcbound::bench::RefuseUnread("-cases, -types, -repeats, -quick, -output, -git_sha, -git_dirty"));
  PetscCall(Run(options));
  PetscCall(PetscFinalize());
  return 0;
}
