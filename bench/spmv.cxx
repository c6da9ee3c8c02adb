static char help[] =
  "Times the SpMV kernels of the registry on the matrices of the suite against the best baseline of the same run: every "
  "cuSPARSE\n"
  "algorithm on a device, PETSc's aij on the host. Each product is checked first; the exit status is 0 only when all are "
  "right.\n\n"
  "  -cases a,b,...     matrices (default all; -list names them)   -mat FILE   a file instead: .mtx, .mtx.gz or PETSc binary\n"
  "  -kernels a,b,...   kernels by name (default all that can run)  -variants   also with other tuning choices\n"
  "  -mma               also kernels on tensor cores by every instruction (default: as they choose)\n"
  "  -lossy             also kernels in TF32 and BF16, with their errors: max of |error| / sum |a_ij x_j|\n"
  "  -host              host kernels on one thread                  -columns K  products with K columns at once (1)\n"
  "  -repeats N         timed rounds (30; on the host 7)            -batch N    products in a timed stretch (1; small: 20)\n"
  "  -quick             small sizes, to test the benchmark itself   -list       the names of cases and kernels\n"
  "  -output FILE       append results as JSON lines; -git_sha SHA and -git_dirty go into them\n\n";

#include <petscsys.h>

#include <cstdio>

#include "options.h"
#include "spmv/report.h"
#include "spmv/user_matrix.h"

namespace {

using namespace tcbound;
using namespace tcbound::bench;

struct Options {
  std::vector<std::string> cases;
  std::string              mat;
  bool                     host = false, quick = false, list = false;
  MeasureOptions           measure;
  Provenance               provenance;
};

PetscErrorCode ReadOptions(int argc, char **argv, Options *o) {
  PetscBool help_given;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsHasHelp(nullptr, &help_given));
  PetscCall(ReadList("-cases", &o->cases));
  PetscCall(ReadText("-mat", &o->mat));
  PetscCall(ReadList("-kernels", &o->measure.kernels));
  PetscCall(ReadFlag("-variants", &o->measure.variants));
  PetscCall(ReadFlag("-mma", &o->measure.mma));
  PetscCall(ReadFlag("-lossy", &o->measure.lossy));
  PetscCall(ReadFlag("-host", &o->host));
  PetscCall(ReadFlag("-quick", &o->quick));
  PetscCall(ReadFlag("-list", &o->list));
  PetscCall(ReadCount("-repeats", &o->measure.repeats));
  PetscCall(ReadCount("-batch", &o->measure.batch));
  PetscCall(ReadCount("-columns", &o->measure.columns));
  PetscCall(ReadProvenance(argc, argv, &o->provenance));
  PetscCall(
    RefuseUnread("-cases, -mat, -kernels, -variants, -mma, -lossy, -host, -quick, -list, -repeats, -batch, -columns, -output, "
                 "-git_sha, -git_dirty"));
  PetscCheck(o->mat.empty() || o->cases.empty(), PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "give one of -mat and -cases");
  o->list = o->list || help_given;
  PetscFunctionReturn(PETSC_SUCCESS);
}

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (const Kernel *kernel : all_kernels())
    if (kernel->op() == "spmv") names.push_back(kernel->name());
  return names;
}

void list_names() {
  std::printf("cases:\n");
  for (const MatrixCase &one : matrix_cases()) std::printf("  %s\n", one.name.c_str());
  std::printf("kernels:\n");
  for (const std::string &name : kernel_names()) std::printf("  %s\n", name.c_str());
}

void check_kernels(const std::vector<std::string> &asked) {
  const std::vector<std::string> names = kernel_names();
  for (const std::string &name : asked) {
    std::string valid;
    for (const std::string &known : names) valid += (valid.empty() ? "" : ", ") + known;
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw std::invalid_argument("there is no kernel " + name + "; the kernels are " + valid);
  }
}

std::unique_ptr<Executor> make_executor(bool host) {
  std::string why_not;
  if (host) return make_host_executor();
  if (cuda_device_count(&why_not) == 0) throw Error(ErrorCode::unsupported, why_not + " (-host times the host kernels)");
  return make_cuda_executor(0);
}

std::vector<MatrixCase> cases_of(const Options &o) {
  if (o.mat.empty()) return find_cases(o.cases);
  return {{o.mat, [&o](bool) { return load_user_matrix(o.mat); }, false, 1}};
}

// Cases one after the other: what a later one runs out of time for does not cost the results of those before it.
bool run(const Options &o) {
  check_kernels(o.measure.kernels);
  const std::vector<MatrixCase>   cases = cases_of(o);
  const std::unique_ptr<Executor> executor = make_executor(o.host);
  const double                    roof = executor->measure_bandwidth();
  std::vector<CaseResult>         results;
  Progress                        progress;
  std::printf("%s: y = q x at %.0f GB/s\n", executor->device().name.c_str(), 1e-9 * roof);
  for (const MatrixCase &one : cases) {
    progress.step(one.name + ": making the matrix");
    Matrix matrix = one.make(o.quick);
    if (o.quick) matrix.name = "quick-" + matrix.name; // never to be taken for the real one
    results.push_back(measure(one, matrix, *executor, o.measure, progress));
    report_case(results.back(), executor->device(), roof, o.provenance);
  }
  return report_summary(results);
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  bool    good = true;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, nullptr, help));
  PetscCall(ReadOptions(argc, argv, &options));
  if (options.list) {
    list_names();
  } else {
    try {
      good = run(options);
    } catch (const std::exception &error) {
      std::fprintf(stderr, "spmv: %s\n", error.what());
      good = false;
    }
  }
  PetscCall(PetscFinalize());
  return good ? 0 : 1;
}
