#pragma once

// Command lines of the benchmarks, in PETSc's manner.

#include <petscsys.h>

#include <algorithm>
#include <string>
#include <vector>

#include "results.h"

namespace tcbound::bench {

inline PetscErrorCode ReadFlag(const char name[], bool *value) {
  PetscBool given = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetBool(nullptr, nullptr, name, &given, nullptr));
  *value = given == PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

inline PetscErrorCode ReadText(const char name[], std::string *value) {
  char text[PETSC_MAX_PATH_LEN] = "";

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetString(nullptr, nullptr, name, text, sizeof(text), nullptr));
  *value = text;
  PetscFunctionReturn(PETSC_SUCCESS);
}

// a,b,c; without the option the list stays as it is.
inline PetscErrorCode ReadList(const char name[], std::vector<std::string> *values) {
  char     *words[256];
  PetscInt  count = 256;
  PetscBool given;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetStringArray(nullptr, nullptr, name, words, &count, &given));
  if (!given) PetscFunctionReturn(PETSC_SUCCESS);
  values->clear();
  for (PetscInt i = 0; i < count; i++) {
    values->push_back(words[i]);
    PetscCall(PetscFree(words[i]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

// A count of at least 1; without the option it stays as it is.
inline PetscErrorCode ReadCount(const char name[], int *value) {
  PetscInt  given = *value;
  PetscBool set;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetInt(nullptr, nullptr, name, &given, &set));
  PetscCheck(!set || (given >= 1 && given <= 1000000), PETSC_COMM_SELF, PETSC_ERR_USER_INPUT,
             "%s %" PetscInt_FMT " must lie between 1 and 1000000", name, given);
  *value = static_cast<int>(given);
  PetscFunctionReturn(PETSC_SUCCESS);
}

inline PetscErrorCode ReadProvenance(int argc, char *const *argv, Provenance *provenance) {
  PetscFunctionBeginUser;
  PetscCall(ReadText("-output", &provenance->output));
  PetscCall(ReadText("-git_sha", &provenance->git_sha));
  PetscCall(ReadFlag("-git_dirty", &provenance->git_dirty));
  provenance->argv.assign(argv, argv + argc);
  PetscFunctionReturn(PETSC_SUCCESS);
}

// After all options of ours are read: one that nothing has read, and that is none of PETSc's that are read later, is a slip
// that could cost minutes of a device.
inline PetscErrorCode RefuseUnread(const char ours[]) {
  PetscInt count;
  char   **names, **values;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsLeftGet(nullptr, &count, &names, &values));
  for (PetscInt i = 0; i < count; i++) {
    const std::string                         name = names[i];
    const std::initializer_list<const char *> later = {"log",    "view",    "gpu", "cuda",   "device",
                                                       "malloc", "options", "sf_", "tcbound"};
    const bool known = std::any_of(later.begin(), later.end(), [&](const char *word) { return name.find(word) != name.npos; });
    PetscCheck(known, PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "unknown option -%s; the options are %s", name.c_str(), ours);
  }
  PetscCall(PetscOptionsLeftRestore(nullptr, &count, &names, &values));
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace tcbound::bench
