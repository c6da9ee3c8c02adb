#pragma once

#include <petscmat.h>

#include <string>
#include <vector>

#include "options.h"

namespace compare {

// One way to hold and multiply the matrix.
struct Candidate {
  std::string type;            // MatType to convert to
  std::string format, backend; // as MatTCBoundSetFormat and MatTCBoundSetBackend take them; PETSc's own types: for show
  bool        tcbound = false; // MATAIJTCBOUND
  bool        device = false;  // its products run on the device

  std::string name() const { return tcbound ? type + " " + format + "/" + backend : type; }
};

// PETSc's types first (aij, and aijcusparse where every rank can use a device), then aijtcbound with every kernel that can run
// this matrix and was asked for; `left_out` says which kernels cannot and why. Asking for a backend or format that does not
// exist, or of which nothing can run, is an error. Collective.
PetscErrorCode ListCandidates(Mat A, const Options &options, std::vector<Candidate> *candidates,
                              std::vector<std::string> *left_out);

// The matrix as this candidate holds it. Collective.
PetscErrorCode CreateCandidate(Mat A, const Candidate &candidate, Mat *C);

} // namespace compare
