#pragma once
// Matrices of awkward shapes for the tests of src/mat. Every rank makes the same entries and inserts those of its own rows.

#include <petscmat.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support.h"

struct Entry {
  PetscInt    i, j;
  PetscScalar v;
};

struct Case {
  std::string        name;
  PetscInt           rows = 0, columns = 0;
  std::vector<Entry> entries;         // by rows, columns sorted, none twice
  int                empty_rank = -1; // has no rows and no columns where there are several ranks; -1: none
};

// The share of n that a rank holds: even, but for an empty rank.
inline PetscInt local_size(PetscInt n, int rank, int size, int empty_rank) {
  if (size == 1) return n;
  if (empty_rank >= 0) empty_rank %= size;
  if (rank == empty_rank) return 0;
  const PetscInt sharers = empty_rank < 0 ? size : size - 1;
  const PetscInt place = empty_rank >= 0 && rank > empty_rank ? rank - 1 : rank;
  return n / sharers + (place < n % sharers ? 1 : 0);
}

// Builds a case from the columns of each row, with random values that depend on the place only.
template <class Columns> Case make_case(const char *name, PetscInt rows, PetscInt columns, Columns columns_of) {
  Case c;

  c.name = name;
  c.rows = rows;
  c.columns = columns;
  for (PetscInt i = 0; i < rows; i++) {
    std::set<PetscInt> chosen;
    columns_of(i, chosen);
    for (PetscInt j : chosen) c.entries.push_back({i, j, random_number(1, i * columns + j)});
  }
  return c;
}

inline void add_random_columns(std::set<PetscInt> &chosen, PetscInt row, PetscInt columns, PetscInt most) {
  const PetscInt n = random_index(2, row, most + 1);

  for (PetscInt k = 0; k < n; k++) chosen.insert(random_index(3, row * 1000 + k, columns));
}

// Square, 1 to 12 entries in a row, some diagonal entries missing.
inline Case random_case(PetscInt n = 211) {
  return make_case("random", n, n, [n](PetscInt i, std::set<PetscInt> &chosen) {
    add_random_columns(chosen, i, n, 11);
    if (i % 5) chosen.insert(i);
  });
}

// Square with a full diagonal that dominates, for solves. Symmetric in pattern and, if asked, in values.
inline Case dominant_case(PetscInt n, bool symmetric) {
  Case                     c = make_case("dominant", n, n, [n](PetscInt i, std::set<PetscInt> &chosen) {
    for (PetscInt d : {PetscInt(1), PetscInt(9), n / 2})
      for (PetscInt j : {i - d, i + d})
        if (d > 0 && j >= 0 && j < n) chosen.insert(j);
    chosen.insert(i);
  });
  std::vector<PetscScalar> sums(n, 0.0);

  for (Entry &e : c.entries) {
    if (symmetric) e.v = random_number(4, std::min(e.i, e.j) * n + std::max(e.i, e.j));
    sums[e.i] += e.i == e.j ? 0.0 : PetscAbsScalar(e.v);
  }
  for (Entry &e : c.entries)
    if (e.i == e.j) e.v = sums[e.i] + 1.0 + 0.5 * (e.i % 3);
  return c;
}

// The 5-point Laplacian of a grid.
inline Case laplacian_case(PetscInt nx, PetscInt ny) {
  Case c = make_case("laplacian", nx * ny, nx * ny, [=](PetscInt i, std::set<PetscInt> &chosen) {
    const PetscInt x = i % nx, y = i / nx;
    chosen.insert(i);
    if (x > 0) chosen.insert(i - 1);
    if (x < nx - 1) chosen.insert(i + 1);
    if (y > 0) chosen.insert(i - nx);
    if (y < ny - 1) chosen.insert(i + nx);
  });
  for (Entry &e : c.entries) e.v = e.i == e.j ? 4.0 : -1.0;
  return c;
}

inline Case tall_case() {
  return make_case("tall", 307, 41, [](PetscInt i, std::set<PetscInt> &chosen) { add_random_columns(chosen, i, 41, 6); });
}

inline Case wide_case() {
  return make_case("wide", 41, 307, [](PetscInt i, std::set<PetscInt> &chosen) { add_random_columns(chosen, i, 307, 60); });
}

// The shapes that every product is tested on.
inline std::vector<Case> all_cases() {
  std::vector<Case> cases{random_case(), tall_case(), wide_case()};
  const auto        add = [&cases](Case c, int empty_rank = -1) {
    c.empty_rank = empty_rank;
    if (empty_rank >= 0) c.name += ", rank " + std::to_string(empty_rank) + " empty";
    cases.push_back(std::move(c));
  };

  add(random_case(), 0);
  add(random_case(), 1);
  add(tall_case(), 4);
  add(make_case("1 x 1", 1, 1, [](PetscInt, std::set<PetscInt> &chosen) { chosen.insert(0); }));
  add(make_case("0 x 0", 0, 0, [](PetscInt, std::set<PetscInt> &) {}));
  add(make_case("0 x 7", 0, 7, [](PetscInt, std::set<PetscInt> &) {}));
  add(make_case("7 x 0", 7, 0, [](PetscInt, std::set<PetscInt> &) {}));
  add(make_case("no entries", 23, 19, [](PetscInt, std::set<PetscInt> &) {}));
  add(
    make_case("two rows", 2, 300, [](PetscInt i, std::set<PetscInt> &chosen) { add_random_columns(chosen, i + 7, 300, 200); }));
  add(make_case("empty rows", 150, 150, [](PetscInt i, std::set<PetscInt> &chosen) {
    if (i % 3 == 1) add_random_columns(chosen, i, 150, 9);
  }));
  add(make_case("dense row and column", 230, 230, [](PetscInt i, std::set<PetscInt> &chosen) {
    if (i == 17)
      for (PetscInt j = 0; j < 230; j++) chosen.insert(j);
    chosen.insert({101, i});
  }));
  add(make_case("row lengths 1 to 300", 300, 310, [](PetscInt i, std::set<PetscInt> &chosen) {
    for (PetscInt k = 0; k <= (i * 37) % 300; k++) chosen.insert((i + k) % 310);
  }));
  Case zeros = random_case(90);
  zeros.name = "stored zeros";
  for (size_t k = 0; k < zeros.entries.size(); k += 2) zeros.entries[k].v = 0.0;
  add(zeros);
  return cases;
}

// A matrix of that layout and type, nothing inserted yet.
inline void create(const Case &c, MatType type, Mat *A) {
  OK(MatCreate(PETSC_COMM_WORLD, A));
  OK(MatSetSizes(*A, local_size(c.rows, world_rank(), world_size(), c.empty_rank),
                 local_size(c.columns, world_rank(), world_size(), c.empty_rank), c.rows, c.columns));
  OK(MatSetType(*A, type));
}

inline void assemble(Mat A) {
  OK(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  OK(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
}

// Sets or adds factor times the entries of this rank's rows and assembles.
inline void insert(const Case &c, Mat A, InsertMode mode = INSERT_VALUES, PetscScalar factor = 1.0) {
  PetscInt begin, end;

  OK(MatGetOwnershipRange(A, &begin, &end));
  for (const Entry &e : c.entries)
    if (e.i >= begin && e.i < end) OK(MatSetValue(A, e.i, e.j, factor * e.v, mode));
  assemble(A);
}

inline void build(const Case &c, MatType type, Mat *A) {
  create(c, type, A);
  OK(MatSetUp(*A));
  insert(c, *A);
}

// The same matrix as plain AIJ and as ours.
struct Pair {
  Handle<Mat> aij, ours;
  explicit Pair(const Case &c) {
    build(c, MATAIJ, &aij);
    build(c, MATAIJTCBOUND, &ours);
  }
};
