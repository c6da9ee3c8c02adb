#include "options.h"

#include <algorithm>
#include <cstdio>

namespace compare {

namespace {

const std::vector<std::string> problems = {"poisson7", "poisson27", "elasticity", "convection"};
const std::vector<std::string> our_options = {"-mat",     "-problem",   "-n",         "-backends",
                                              "-formats", "-spmv_only", "-spmv_time", "-json"};

std::size_t edit_distance(const std::string &a, const std::string &b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

// PETSc ignores an option that nobody reads, and others may read it later; one that looks like ours is an error now.
PetscErrorCode CheckSpelling(MPI_Comm comm) {
  PetscInt count;
  char   **names, **values;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsLeftGet(nullptr, &count, &names, &values));
  for (PetscInt i = 0; i < count; i++) {
    const std::string given = std::string("-") + names[i];
    for (const std::string &ours : our_options) {
      const bool near = ours.size() > 4 && given != ours && edit_distance(given, ours) <= (ours.size() > 6 ? 2 : 1);
      PetscCheck(!near, comm, PETSC_ERR_USER_INPUT, "unknown option %s; did you mean %s? compare's own options: %s",
                 given.c_str(), ours.c_str(), join(our_options).c_str());
    }
  }
  PetscCall(PetscOptionsLeftRestore(nullptr, &count, &names, &values));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CheckOptions(MPI_Comm comm, bool problem_given, bool n_given, Options *o) {
  const auto found = std::find(problems.begin(), problems.end(), o->problem_name);

  PetscFunctionBeginUser;
  PetscCheck(o->mat.empty() == problem_given, comm, PETSC_ERR_USER_INPUT, "give one of -mat FILE and -problem (%s)",
             join(problems).c_str());
  PetscCheck(!problem_given || found != problems.end(), comm, PETSC_ERR_USER_INPUT, "unknown -problem %s; valid: %s",
             o->problem_name.c_str(), join(problems).c_str());
  if (problem_given) o->problem = static_cast<Problem>(1 + (found - problems.begin()));
  PetscCheck(!n_given || problem_given, comm, PETSC_ERR_USER_INPUT, "-n goes with -problem, not with -mat");
  PetscCheck(o->n >= 1, comm, PETSC_ERR_USER_INPUT, "-n %" PetscInt_FMT " must be at least 1", o->n);
  PetscCheck(o->spmv_time > 0 && o->spmv_time < 3600, comm, PETSC_ERR_USER_INPUT, "-spmv_time %g must lie between 0 and 3600 s",
             (double)o->spmv_time);
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Better now than after minutes of work.
PetscErrorCode CheckWritable(MPI_Comm comm, const std::string &file) {
  PetscMPIInt rank;
  int         writable = 1;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  if (!rank) {
    std::FILE *stream = std::fopen(file.c_str(), "a");
    writable = stream != nullptr;
    if (stream) std::fclose(stream);
  }
  PetscCallMPI(MPI_Bcast(&writable, 1, MPI_INT, 0, comm));
  PetscCheck(writable, comm, PETSC_ERR_FILE_OPEN, "-json %s cannot be written", file.c_str());
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

PetscErrorCode GetOptions(MPI_Comm comm, Options *o) {
  char      mat[PETSC_MAX_PATH_LEN] = "", problem[256] = "", json[PETSC_MAX_PATH_LEN] = "";
  char     *backends[16], *formats[16];
  PetscInt  nbackends = 16, nformats = 16;
  PetscBool problem_given, n_given, spmv_only = PETSC_FALSE, help;

  PetscFunctionBeginUser;
  PetscOptionsBegin(comm, nullptr, "compare: the same matrix by every backend and format", nullptr);
  PetscCall(PetscOptionsString("-mat", "Matrix file: .mtx, .mtx.gz (Matrix Market), else PETSc binary", "", mat, mat,
                               sizeof(mat), nullptr));
  PetscCall(PetscOptionsString("-problem", "Instead: (poisson7|poisson27|elasticity|convection) on a cube", "", problem,
                               problem, sizeof(problem), &problem_given));
  PetscCall(PetscOptionsInt("-n", "Nodes along each edge of the cube", "", o->n, &o->n, &n_given));
  PetscCall(PetscOptionsStringArray("-backends", "Backends to run, a,b,... (default: all that can)", "", backends, &nbackends,
                                    nullptr));
  PetscCall(
    PetscOptionsStringArray("-formats", "Formats to run, a,b,... (default: all that can)", "", formats, &nformats, nullptr));
  PetscCall(
    PetscOptionsBool("-spmv_only", "Products only, no solve; rectangular matrices too", "", spmv_only, &spmv_only, nullptr));
  PetscCall(PetscOptionsReal("-spmv_time", "Seconds that each candidate's products are timed", "", o->spmv_time, &o->spmv_time,
                             nullptr));
  PetscCall(PetscOptionsString("-json", "File for the results as JSON", "", json, json, sizeof(json), nullptr));
  PetscOptionsEnd();
  o->mat = mat;
  o->problem_name = problem;
  o->json = json;
  o->spmv_only = spmv_only;
  for (PetscInt i = 0; i < nbackends; i++) {
    o->backends.push_back(backends[i]);
    PetscCall(PetscFree(backends[i]));
  }
  for (PetscInt i = 0; i < nformats; i++) {
    o->formats.push_back(formats[i]);
    PetscCall(PetscFree(formats[i]));
  }
  PetscCall(CheckSpelling(comm));
  PetscCall(PetscOptionsHasHelp(nullptr, &help));
  o->help_only = help && o->mat.empty() && !problem_given;
  if (o->help_only) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(CheckOptions(comm, problem_given, n_given, o));
  if (!o->json.empty()) PetscCall(CheckWritable(comm, o->json));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ReportUnusedOptions(MPI_Comm comm) {
  PetscInt    count;
  char      **names, **values;
  std::string unused;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsLeftGet(nullptr, &count, &names, &values));
  for (PetscInt i = 0; i < count; i++) {
    // Some are read only in PetscFinalize().
    if (std::string(names[i]).find("_view") == std::string::npos && std::string(names[i]).find("log") == std::string::npos)
      unused += std::string(" -") + names[i];
  }
  PetscCall(PetscOptionsLeftRestore(nullptr, &count, &names, &values));
  if (!unused.empty()) PetscCall(PetscPrintf(comm, "WARNING: options that nothing has read:%s\n", unused.c_str()));
  PetscFunctionReturn(PETSC_SUCCESS);
}

std::string join(const std::vector<std::string> &words) {
  std::string all;
  for (const std::string &word : words) all += (all.empty() ? "" : ", ") + word;
  return all;
}

} // namespace compare
