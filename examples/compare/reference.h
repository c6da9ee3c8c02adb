#pragma once

#include <petscmat.h>

#include "options.h"

namespace compare {

// One product by PETSc's AIJ on the host, and how far another order of summation may be from it.
struct Product {
  Vec x = nullptr, y = nullptr;
  Vec bound = nullptr; // of |y' - y|, row by row: 2 (row length + 2) eps |A| |x|
};

// What every candidate is measured against.
struct Reference {
  Mat         A = nullptr; // MATAIJ
  PetscInt    rows = 0, columns = 0;
  PetscInt64  nonzeros = 0;
  Product     forward, transposed;
  Vec         solution = nullptr, rhs = nullptr; // rhs = A solution; only when there are solves
  std::string ksp, pc;                           // the default types for this matrix
};

// Takes A over. Collective.
PetscErrorCode CreateReference(const Options &options, Mat A, Reference *reference);
PetscErrorCode DestroyReference(Reference *reference);

// Multiplies C with the reference's x and compares: *ratio is the largest |difference| / bound (infinite where one is not a
// number and the other is), *ok whether no row exceeds its bound. Collective.
PetscErrorCode CompareProduct(const Product &product, Mat C, bool transpose, PetscReal *ratio, bool *ok);

} // namespace compare
