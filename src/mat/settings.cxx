// Options of the matrix types and the choice of a kernel.
#include "aijtcbound.h"

#include <algorithm>
#include <vector>

#include "../model/names.h"

// Of the kernels of an operation; of stencil's only the format that a stenciltcbound matrix has.
static bool OfType(const TCBoundMatSettings &settings, const tcbound::Kernel &kernel) {
  return kernel.op() == settings.op && (settings.op != "stencil" || kernel.format() == settings.format);
}

static std::vector<std::string> Names(const TCBoundMatSettings &settings,
                                      const std::string &(tcbound::Kernel::*which)() const) {
  std::vector<std::string> names{"auto"};
  for (const tcbound::Kernel *kernel : tcbound::all_kernels()) {
    if (!OfType(settings, *kernel)) continue;
    const std::string &name = (kernel->*which)();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}
static std::vector<std::string> Backends(const TCBoundMatSettings &settings) {
  return Names(settings, &tcbound::Kernel::backend);
}
static std::vector<std::string> Formats(const TCBoundMatSettings &settings) {
  return Names(settings, &tcbound::Kernel::format);
}

static std::vector<std::string> Instructions() {
  std::vector<std::string> names{"auto"};
  for (const tcbound::MmaShapeFacts &shape : tcbound::mma_shapes) names.push_back(shape.name);
  return names;
}

static PetscErrorCode SetName(std::string &setting, MPI_Comm comm, const char option[], const char value[],
                              const std::vector<std::string> &valid) {
  PetscFunctionBegin;
  PetscCheck(std::find(valid.begin(), valid.end(), value) != valid.end(), comm, PETSC_ERR_ARG_OUTOFRANGE,
             "%s %s: there is no such choice; did you mean %s? Valid: %s", option, value,
             tcbound::nearest_name(value, valid).c_str(), tcbound::join_names(valid, ", ").c_str());
  setting = value;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundMatSettingsSetBackend(TCBoundMatSettings &settings, MPI_Comm comm, const char backend[]) {
  PetscFunctionBegin;
  PetscCall(SetName(settings.backend, comm, "-mat_tcbound_backend", backend, Backends(settings)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundMatSettingsSetFormat(TCBoundMatSettings &settings, MPI_Comm comm, const char format[]) {
  PetscFunctionBegin;
  PetscCall(SetName(settings.format, comm, "-mat_tcbound_format", format, Formats(settings)));
  if (settings.op == "stencil") settings.format = "grid"; // there is no other
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The options on how an AIJ matrix is stored and how that is chosen.
static PetscErrorCode FormatFromOptions(TCBoundMatSettings &settings, Mat A, PetscOptionItems PetscOptionsObject) {
  MPI_Comm  comm = PetscObjectComm((PetscObject)A);
  char      value[64];
  PetscBool set;

  PetscFunctionBegin;
  const std::string formats = "How the matrix is stored for products (" + tcbound::join_names(Formats(settings), "|") + ")";
  PetscCall(PetscOptionsString("-mat_tcbound_format", formats.c_str(), "MatTCBoundSetFormat", settings.format.c_str(), value,
                               sizeof(value), &set));
  if (set) PetscCall(TCBoundMatSettingsSetFormat(settings, comm, value));
  const std::string instructions = "Instruction of kernels on tensor cores (" + tcbound::join_names(Instructions(), "|") + ")";
  PetscCall(PetscOptionsString("-mat_tcbound_mma", instructions.c_str(), MATAIJTCBOUND, settings.mma.c_str(), value,
                               sizeof(value), &set));
  if (set) PetscCall(SetName(settings.mma, comm, "-mat_tcbound_mma", value, Instructions()));
  PetscCall(PetscOptionsString("-mat_tcbound_tune",
                               "How to choose among kernels: what they promise, or their time (model|measure)", MATAIJTCBOUND,
                               settings.tune.c_str(), value, sizeof(value), &set));
  if (set) PetscCall(SetName(settings.tune, comm, "-mat_tcbound_tune", value, {"model", "measure"}));
  PetscReal seconds = settings.tune_seconds;
  PetscCall(PetscOptionsReal("-mat_tcbound_tune_seconds", "Seconds after which measuring tries no further kernel",
                             MATAIJTCBOUND, seconds, &seconds, NULL));
  PetscCheck(seconds >= 0 && !PetscIsInfOrNanReal(seconds), comm, PETSC_ERR_ARG_OUTOFRANGE,
             "-mat_tcbound_tune_seconds %g: must be a finite number of seconds, 0 or more", (double)seconds);
  settings.tune_seconds = seconds;
  PetscCall(PetscOptionsString("-mat_tcbound_value_precision",
                               "Lossy: round the values that products with vectors use (fp64|fp32|bf16)", MATAIJTCBOUND,
                               settings.value_precision.c_str(), value, sizeof(value), &set));
  if (set) PetscCall(SetName(settings.value_precision, comm, "-mat_tcbound_value_precision", value, TCBoundValuePrecisions()));
  PetscCall(PetscOptionsString("-mat_tcbound_product_precision",
                               "Lossy: round values and x of products with vectors, and add up in FP32 (fp64|tf32|bf16)",
                               MATAIJTCBOUND, settings.product_precision.c_str(), value, sizeof(value), &set));
  if (set)
    PetscCall(SetName(settings.product_precision, comm, "-mat_tcbound_product_precision", value, TCBoundProductPrecisions()));
  PetscCheck(
    settings.value_precision == "fp64" || settings.product_precision == "fp64", comm, PETSC_ERR_ARG_INCOMP,
    "-mat_tcbound_value_precision %s and -mat_tcbound_product_precision %s: give one of them, the latter rounds values too",
    settings.value_precision.c_str(), settings.product_precision.c_str());
  PetscCall(PetscOptionsBool("-mat_tcbound_reproducible", "Only algorithms that give the same bits in every run", MATAIJTCBOUND,
                             settings.reproducible, &settings.reproducible, NULL));
  PetscCall(PetscOptionsBool("-mat_tcbound_compare", "Also run the other kernels on every product's input, for the log",
                             MATAIJTCBOUND, settings.compare, &settings.compare, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundMatSettingsFromOptions(TCBoundMatSettings &settings, Mat A) {
  MPI_Comm  comm = PetscObjectComm((PetscObject)A);
  char      value[64];
  PetscBool set;

  PetscFunctionBegin;
  PetscOptionsBegin(comm, ((PetscObject)A)->prefix,
                    settings.op == "spmv" ? "AIJTCBound matrix options" : "StencilTCBound matrix options", "Mat");
  const std::string backends = "Where products run (" + tcbound::join_names(Backends(settings), "|") + ")";
  PetscCall(PetscOptionsString("-mat_tcbound_backend", backends.c_str(), "MatTCBoundSetBackend", settings.backend.c_str(),
                               value, sizeof(value), &set));
  if (set) PetscCall(TCBoundMatSettingsSetBackend(settings, comm, value));
  if (settings.op == "spmv")
    PetscCall(FormatFromOptions(settings, A, PetscOptionsObject));
  else
    PetscCall(PetscOptionsBoundedInt("-mat_tcbound_steps", "Steps that a pass over memory fuses (0: by the model)",
                                     "MatTCBoundMultPowers", settings.steps, &settings.steps, NULL, 0));
  PetscOptionsEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static bool Allows(const TCBoundMatSettings &settings, const tcbound::Kernel &kernel) {
  return OfType(settings, kernel) && (settings.backend == "auto" || settings.backend == kernel.backend()) &&
         (settings.format == "auto" || settings.format == kernel.format());
}

PetscErrorCode TCBoundMatSettingsUseDevice(const TCBoundMatSettings &settings, PetscBool *use) {
  tcbound::Executor *executor;

  PetscFunctionBegin;
  *use = PETSC_FALSE;
  for (const tcbound::Kernel *kernel : tcbound::all_kernels()) {
    if (!Allows(settings, *kernel) || kernel->space() != tcbound::MemorySpace::cuda) continue;
    PetscCall(TCBoundGetCUDAExecutor(&executor, NULL));
    *use = executor ? PETSC_TRUE : PETSC_FALSE;
    break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

bool TCBoundMatSettingsNeedDevice(const TCBoundMatSettings &settings) {
  const auto &kernels = tcbound::all_kernels();
  const auto  runs = [&](tcbound::MemorySpace space) {
    return std::any_of(kernels.begin(), kernels.end(),
                        [&](const tcbound::Kernel *k) { return k->space() == space && Allows(settings, *k); });
  };
  return runs(tcbound::MemorySpace::cuda) && (settings.product_precision != "fp64" || !runs(tcbound::MemorySpace::host));
}

PetscErrorCode TCBoundMatSettingsRank(const TCBoundMatSettings &settings, PetscBool bound_to_cpu,
                                      const tcbound::Problem &problem, std::vector<tcbound::Candidate> *candidates) {
  tcbound::Executor *host, *cuda;
  const char        *why_not;
  std::string        reasons;

  PetscFunctionBegin;
  PetscCall(TCBoundGetHostExecutor(&host));
  PetscCall(TCBoundGetCUDAExecutor(&cuda, &why_not));
  // A matrix bound to the CPU runs on the host whatever the backend that it uses otherwise.
  TCBoundMatSettings now = settings;
  if (bound_to_cpu) now.backend = "host";
  candidates->clear();
  for (const tcbound::Kernel *k : tcbound::all_kernels()) {
    if (!Allows(now, *k)) continue;
    tcbound::Executor *e = k->space() == tcbound::MemorySpace::cuda ? cuda : host;
    const std::string  reason = e ? k->check(e->device(), problem) : std::string(why_not);
    if (reason.empty())
      candidates->push_back({k, e, tcbound::promised_work(*k, problem)});
    else
      reasons += "; " + k->name() + ": " + reason;
  }
  PetscCheck(!candidates->empty() || settings.product_precision == "fp64", PETSC_COMM_SELF, PETSC_ERR_SUP,
             "-mat_tcbound_product_precision %s cannot run here with -mat_tcbound_backend %s and -mat_tcbound_format %s%s%s",
             settings.product_precision.c_str(), now.backend.c_str(), settings.format.c_str(),
             reasons.empty() ? "; no such kernel exists" : reasons.c_str(),
             bound_to_cpu ? "; the matrix is bound to the CPU" : "");
  PetscCheck(
    !candidates->empty(), PETSC_COMM_SELF, PETSC_ERR_SUP,
    "-mat_tcbound_backend %s with -mat_tcbound_format %s cannot run here%s. -mat_tcbound_backend auto or host works everywhere",
    settings.backend.c_str(), settings.format.c_str(), reasons.empty() ? "; no such kernel exists" : reasons.c_str());
  tcbound::rank(*candidates);
  PetscFunctionReturn(PETSC_SUCCESS);
}
