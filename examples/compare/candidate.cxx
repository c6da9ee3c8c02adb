#include "candidate.h"

#include <tcbound.h>

#include <algorithm>

namespace compare {

namespace {

struct Kernel {
  std::string name, format, backend; // spmv/format/backend
  bool        can_run = false;
  std::string why_not;
};

bool contains(const std::vector<std::string> &list, const std::string &word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

PetscErrorCode GetKernels(std::vector<Kernel> *kernels) {
  PetscInt           count;
  const char *const *names;

  PetscFunctionBeginUser;
  PetscCall(TCBoundGetKernels("spmv", &count, &names));
  for (PetscInt i = 0; i < count; i++) {
    Kernel            kernel;
    const std::string name = names[i];
    const std::size_t first = name.find('/'), second = name.rfind('/');
    PetscCheck(first != second && first != std::string::npos, PETSC_COMM_SELF, PETSC_ERR_PLIB, "kernel name %s", names[i]);
    kernel.name = name;
    kernel.format = name.substr(first + 1, second - first - 1);
    kernel.backend = name.substr(second + 1);
    kernels->push_back(kernel);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Each asked-for word must be one of the kernels'.
PetscErrorCode CheckNames(MPI_Comm comm, const char option[], const std::vector<std::string> &asked,
                          const std::vector<Kernel> &kernels, std::string Kernel::*part) {
  std::vector<std::string> valid = {"auto"};

  PetscFunctionBeginUser;
  for (const Kernel &kernel : kernels) {
    if (!contains(valid, kernel.*part)) valid.push_back(kernel.*part);
  }
  for (const std::string &word : asked)
    PetscCheck(contains(valid, word), comm, PETSC_ERR_USER_INPUT, "unknown name %s in %s; valid: %s", word.c_str(), option,
               join(valid).c_str());
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Of each asked-for word something must be able to run, or the user gets the reasons.
PetscErrorCode CheckRunnable(MPI_Comm comm, const char option[], const std::vector<std::string> &asked,
                             const std::vector<Kernel> &kernels, std::string Kernel::*part) {
  PetscFunctionBeginUser;
  for (const std::string &word : asked) {
    bool        any = word == "auto";
    std::string reasons;
    for (const Kernel &kernel : kernels) {
      if (kernel.*part != word) continue;
      any = any || kernel.can_run;
      if (!kernel.can_run) reasons += (reasons.empty() ? "" : "; ") + kernel.name + ": " + kernel.why_not;
    }
    PetscCheck(any, comm, PETSC_ERR_USER_INPUT, "%s %s cannot run here: %s", option, word.c_str(),
               reasons.empty() ? "no kernel has the formats and backends that were asked for" : reasons.c_str());
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CheckKernels(Mat A, std::vector<Kernel> *kernels) {
  Mat T;

  PetscFunctionBeginUser;
  if (kernels->empty()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatConvert(A, MATAIJTCBOUND, MAT_INITIAL_MATRIX, &T));
  for (Kernel &kernel : *kernels) {
    PetscBool   can_run;
    const char *why_not = nullptr;
    PetscCall(MatTCBoundCheckKernel(T, kernel.name.c_str(), &can_run, &why_not));
    kernel.can_run = can_run;
    if (!can_run) kernel.why_not = why_not ? why_not : "no reason given";
  }
  PetscCall(MatDestroy(&T));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EveryRankHasDevice(MPI_Comm comm, PetscBool *has) {
  PetscFunctionBeginUser;
  PetscCall(TCBoundHasDevice(has, nullptr));
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, has, 1, MPI_C_BOOL, MPI_LAND, comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

PetscErrorCode ListCandidates(Mat A, const Options &o, std::vector<Candidate> *candidates, std::vector<std::string> *left_out) {
  const MPI_Comm      comm = PetscObjectComm((PetscObject)A);
  const bool          any_backend = o.backends.empty(), any_format = o.formats.empty();
  std::vector<Kernel> all, asked;
  PetscBool           device;

  PetscFunctionBeginUser;
  PetscCall(EveryRankHasDevice(comm, &device));
  candidates->push_back({MATAIJ, "csr", "petsc", false, false});
  if (device) candidates->push_back({MATAIJCUSPARSE, "csr", "cusparse", false, true});
  PetscCall(GetKernels(&all));
  PetscCall(CheckNames(comm, "-backends", o.backends, all, &Kernel::backend));
  PetscCall(CheckNames(comm, "-formats", o.formats, all, &Kernel::format));
  for (const Kernel &kernel : all) {
    if ((any_backend || contains(o.backends, kernel.backend)) && (any_format || contains(o.formats, kernel.format)))
      asked.push_back(kernel);
  }
  PetscCall(CheckKernels(A, &asked));
  PetscCall(CheckRunnable(comm, "-backends", o.backends, asked, &Kernel::backend));
  if (!contains(o.backends, "auto")) PetscCall(CheckRunnable(comm, "-formats", o.formats, asked, &Kernel::format));
  for (const Kernel &kernel : asked) {
    if (kernel.can_run)
      candidates->push_back({MATAIJTCBOUND, kernel.format, kernel.backend, true, kernel.backend != "host"});
    else
      left_out->push_back(kernel.name + ": " + kernel.why_not);
  }
  // auto is not a kernel: it stands for whatever the library chooses.
  const std::vector<std::string> automatic = {"auto"};
  for (const std::string &backend : any_backend ? automatic : o.backends) {
    for (const std::string &format : any_format ? automatic : o.formats) {
      if ((backend == "auto" && !any_backend) || (format == "auto" && !any_format))
        candidates->push_back({MATAIJTCBOUND, format, backend, true, device && backend != "host"});
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CreateCandidate(Mat A, const Candidate &candidate, Mat *C) {
  PetscFunctionBeginUser;
  PetscCall(MatConvert(A, candidate.type.c_str(), MAT_INITIAL_MATRIX, C));
  if (candidate.tcbound) {
    PetscCall(MatTCBoundSetFormat(*C, candidate.format.c_str()));
    PetscCall(MatTCBoundSetBackend(*C, candidate.backend.c_str()));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace compare
