#pragma once

#include <petscsys.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// A reader of Matrix Market files, plain or gzipped, for one process. Header and numbers are parsed by the library
// fast_matrix_market; every line is checked here, since the library drops what follows the last number of a line in silence.

namespace compare {

enum class Symmetry { general, symmetric, skew };

// The entries as the file lists them, counted from 0: one triangle of a symmetric file, duplicates not yet summed.
struct MatrixMarket {
  PetscInt              rows = 0, columns = 0;
  Symmetry              symmetry = Symmetry::general;
  std::vector<PetscInt> row, column;
  std::vector<double>   value;
  std::int64_t          rounded_integers = 0; // integers beyond 2^53 that a double cannot hold exactly
};

// Rows in order, columns ascending in each row, both triangles, duplicates summed.
struct Csr {
  PetscInt                  rows = 0, columns = 0;
  std::vector<std::int64_t> offset; // rows + 1
  std::vector<PetscInt>     column;
  std::vector<double>       value;
  std::int64_t              duplicates = 0; // entries that were added to another one
};

// What is wrong with a file and on which line (0: the file as a whole).
struct FileError {
  PetscErrorCode code;
  std::int64_t   line;
  std::string    message;
};

using ReadProgress = std::function<void(std::int64_t done, std::int64_t total)>;

// Throws FileError.
MatrixMarket read_matrix_market(const std::string &file, const ReadProgress &progress = {});

// Takes the entries away from `m` to need less memory.
Csr to_csr(MatrixMarket &&m);

} // namespace compare
