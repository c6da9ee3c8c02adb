#pragma once
// What the tests of src/mat share: calls of PETSc, the backends under test, and the comparison of a matrix with a plain AIJ
// one. Every rank runs every test in step: a check that fails does not leave the test, an error of PETSc leaves it everywhere.

#include <petscksp.h>
#include <tcbound.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include "kernels/arithmetic.h"

inline int world_rank() {
  static const int rank = [] {
    int r = -1;
    return MPI_Comm_rank(PETSC_COMM_WORLD, &r) ? -1 : r;
  }();
  return rank;
}

inline int world_size() {
  static const int size = [] {
    int n = -1;
    return MPI_Comm_size(PETSC_COMM_WORLD, &n) ? -1 : n;
  }();
  return size;
}

// For the check below alone; made by the first test's SetUp() on all ranks.
inline MPI_Comm check_comm() {
  static const MPI_Comm comm = [] {
    MPI_Comm c = MPI_COMM_NULL;
    return MPI_Comm_dup(PETSC_COMM_WORLD, &c) ? MPI_COMM_NULL : c;
  }();
  return comm;
}

// An error that all ranks report ends this test; one that some ranks do not reach would leave those waiting, so it ends the
// program.
inline void check_petsc(PetscErrorCode code, const char *call, const char *file, int line) {
  if (!code) return;
  ADD_FAILURE_AT(file, line) << call << " gave error " << static_cast<int>(code);
  MPI_Request request;
  int         all_here = 0, bad = MPI_Ibarrier(check_comm(), &request);
  for (int tenths = 0; !bad && !all_here && tenths < 200; tenths++) {
    bad = MPI_Test(&request, &all_here, MPI_STATUS_IGNORE);
    if (!all_here) usleep(100000);
  }
  if (!all_here) {
    fprintf(stderr, "%s:%d: %s gave error %d, not on all ranks\n", file, line, call, static_cast<int>(code));
    (void)MPI_Abort(PETSC_COMM_WORLD, 3);
  }
  throw std::runtime_error(std::string(call) + " failed");
}
#define OK(...) check_petsc((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
#define MPI_OK(...) OK((__VA_ARGS__) == MPI_SUCCESS ? PETSC_SUCCESS : PETSC_ERR_MPI)

inline PetscErrorCode destroy(Mat *o) { return MatDestroy(o); }
inline PetscErrorCode destroy(Vec *o) { return VecDestroy(o); }
inline PetscErrorCode destroy(IS *o) { return ISDestroy(o); }
inline PetscErrorCode destroy(KSP *o) { return KSPDestroy(o); }
inline PetscErrorCode destroy(PetscViewer *o) { return PetscViewerDestroy(o); }
inline PetscErrorCode destroy(PetscRandom *o) { return PetscRandomDestroy(o); }

// A PETSc object that its scope destroys. &handle is where PETSc writes it.
template <class T> class Handle {
public:
  Handle() = default;
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  ~Handle() { EXPECT_EQ(destroy(&object_), PETSC_SUCCESS); }
     operator T() const { return object_; }
  T *operator&() { return &object_; }

private:
  T object_ = nullptr;
};

inline PetscObject object(Mat A) { return reinterpret_cast<PetscObject>(A); }
inline PetscObject object(Vec x) { return reinterpret_cast<PetscObject>(x); }

// Numbers in [-1, 1) and indices below n that depend on seed and place only, so that all ranks agree on them.
inline std::uint64_t random_bits(std::uint64_t seed, std::uint64_t place) {
  std::uint64_t z = seed * 0xd1342543de82ef95u + (place + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
inline PetscScalar random_number(std::uint64_t seed, std::uint64_t place) {
  return static_cast<double>(random_bits(seed, place) >> 11) * 0x1p-52 - 1.0;
}
inline PetscInt random_index(std::uint64_t seed, std::uint64_t place, PetscInt n) {
  return static_cast<PetscInt>(random_bits(seed, place) % static_cast<std::uint64_t>(n));
}

// The largest over all ranks.
inline double everywhere_most(double mine) {
  double most = 0.0;
  MPI_OK(MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, PETSC_COMM_WORLD));
  return most;
}
inline bool everywhere(bool mine) { return everywhere_most(mine ? 0.0 : 1.0) == 0.0; }

inline std::string type_of(PetscObject o) {
  const char *type;
  OK(PetscObjectGetType(o, &type));
  return type ? type : "";
}

// What the name of one of our types must be on this number of ranks.
inline std::string ours_name() { return world_size() == 1 ? MATSEQAIJTCBOUND : MATMPIAIJTCBOUND; }

inline bool has_device(const char **why_not = nullptr) {
  PetscBool has = PETSC_FALSE;
  OK(TCBoundHasDevice(&has, why_not));
  return has;
}

// One backend a test. Options that a test sets are cleared after it.
class OnBackend : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    const char *why_not = nullptr;
    (void)check_comm();
    if (on_device() && !has_device(&why_not)) GTEST_SKIP() << why_not;
    option("-mat_tcbound_backend", GetParam());
  }
  void TearDown() override {
    for (const std::string &name : options_) OK(PetscOptionsClearValue(nullptr, name.c_str()));
  }
  void option(const char *name, const char *value) {
    OK(PetscOptionsSetValue(nullptr, name, value));
    options_.push_back(name);
  }
  std::string backend() const { return GetParam(); }
  bool        on_device() const { return backend() != "host"; }
  // Types of vectors that products must take.
  std::vector<VecType> vec_types() const {
    std::vector<VecType> types{VECSTANDARD};
    if (on_device()) types.push_back(VECCUDA);
    return types;
  }

private:
  std::vector<std::string> options_;
};

// Runs calls that must fail and gives all that PETSc's error handler was told on this rank; "" if they did not fail.
template <class F> std::string message_of(F calls, PetscErrorCode *code = nullptr) {
  std::string text;
  const auto  collect = [](MPI_Comm, int, const char *, const char *, PetscErrorCode error, PetscErrorType, const char *message,
                          void *to) -> PetscErrorCode {
    if (message) *static_cast<std::string *>(to) += std::string(message) + "\n";
    return error;
  };

  OK(PetscPushErrorHandler(collect, &text));
  const PetscErrorCode error = calls();
  OK(PetscPopErrorHandler());
  if (code) *code = error;
  if (!error) return "";
  return text.empty() ? "error without a message" : text;
}

inline bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

// A file name that all ranks agree on; the file is removed with its scope.
class TemporaryFile {
public:
  TemporaryFile() {
    int id = static_cast<int>(getpid());
    MPI_OK(MPI_Bcast(&id, 1, MPI_INT, 0, PETSC_COMM_WORLD));
    path = testing::TempDir() + "tcbound-mat-test-" + std::to_string(id);
  }
  ~TemporaryFile() {
    EXPECT_EQ(MPI_Barrier(PETSC_COMM_WORLD), MPI_SUCCESS);
    if (world_rank() == 0)
      for (const char *end : {"", ".info"}) std::remove((path + end).c_str());
  }
  std::string path;
};

// What f(viewer) writes to an ASCII viewer; the same text on all ranks.
template <class F> std::string text_of(F f) {
  const TemporaryFile file;
  std::string         text;
  {
    Handle<PetscViewer> viewer;
    OK(PetscViewerASCIIOpen(PETSC_COMM_WORLD, file.path.c_str(), &viewer));
    f(viewer);
  }
  MPI_OK(MPI_Barrier(PETSC_COMM_WORLD));
  FILE *from = fopen(file.path.c_str(), "r");
  for (int c; from && (c = fgetc(from)) != EOF;) text += static_cast<char>(c);
  if (from) fclose(from);
  return text;
}

template <class Info> std::string backend_name(const Info &info) { return info.param; }

// Calls f(array, n) on this rank's part of a vector in host memory.
template <class F> void on_host(Vec x, F f) {
  PetscScalar *array;
  PetscInt     n;

  OK(VecGetLocalSize(x, &n));
  OK(VecGetArray(x, &array));
  f(array, n);
  OK(VecRestoreArray(x, &array));
}

// Makes the device copy, if the vector has one, the current one.
inline void move_to_memory_of_type(Vec x) {
  PetscScalar *array;
  PetscMemType type;

  OK(VecGetArrayAndMemType(x, &array, &type));
  OK(VecRestoreArrayAndMemType(x, &array));
}

inline void randomize(Vec x, std::uint64_t seed) {
  PetscInt begin;

  OK(VecGetOwnershipRange(x, &begin, nullptr));
  on_host(x, [&](PetscScalar *array, PetscInt n) {
    for (PetscInt k = 0; k < n; k++) array[k] = random_number(seed, begin + k);
  });
}

// So that whatever a product does not write shows.
inline void poison(Vec x) {
  on_host(x, [](PetscScalar *array, PetscInt n) {
    for (PetscInt k = 0; k < n; k++) array[k] = std::numeric_limits<double>::quiet_NaN();
  });
  move_to_memory_of_type(x);
}

// A vector like the matrix's columns (left = false) or rows, random or poisoned.
inline void make_vector(Mat A, bool left, VecType type, std::uint64_t seed, Vec *x) {
  PetscInt rows, columns;

  OK(MatGetLocalSize(A, &rows, &columns));
  OK(VecCreate(PetscObjectComm(object(A)), x));
  OK(VecSetSizes(*x, left ? rows : columns, PETSC_DETERMINE));
  OK(VecSetType(*x, type));
  if (seed)
    randomize(*x, seed);
  else
    poison(*x);
}

// The sequential matrices of this rank that make up a matrix of AIJ or of our type.
inline std::vector<Mat> blocks_of(Mat A) {
  PetscBool parallel;
  Mat       diagonal, off_diagonal;

  OK(PetscObjectBaseTypeCompare(object(A), MATMPIAIJ, &parallel));
  if (!parallel) return {A};
  OK(MatMPIAIJGetSeqAIJ(A, &diagonal, &off_diagonal, nullptr));
  return {diagonal, off_diagonal};
}

// Replaces every stored value by f(value), through the arrays.
template <class F> void change_values(Mat A, F f) {
  for (Mat block : blocks_of(A)) {
    MatInfo      info;
    PetscScalar *array;

    OK(MatGetInfo(block, MAT_LOCAL, &info));
    OK(MatSeqAIJGetArray(block, &array));
    for (PetscInt k = 0; k < static_cast<PetscInt>(info.nz_used); k++) array[k] = f(array[k]);
    OK(MatSeqAIJRestoreArray(block, &array));
  }
  OK(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  OK(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
}

// By how much of its limit each entry of ours differs from the reference; at most 1 where all is well. NaN and Inf must be
// at the same places.
inline double excess(Vec ours, Vec reference, Vec limit) {
  const PetscScalar *o, *r, *l;
  PetscInt           n, m;
  double             most = 0.0;

  OK(VecGetLocalSize(ours, &n));
  OK(VecGetLocalSize(reference, &m));
  if (!everywhere(n == m)) return HUGE_VAL;
  OK(VecGetArrayRead(ours, &o));
  OK(VecGetArrayRead(reference, &r));
  OK(VecGetArrayRead(limit, &l));
  for (PetscInt k = 0; k < n; k++) {
    if (std::isnan(r[k]) && std::isnan(o[k])) continue;
    if (o[k] == r[k]) continue;
    if (!std::isfinite(r[k]) || !std::isfinite(o[k])) {
      most = HUGE_VAL;
      continue;
    }
    const double difference = std::fabs(o[k] - r[k]);
    most = std::max(most, l[k] > 0.0 ? difference / l[k] : HUGE_VAL);
  }
  OK(VecRestoreArrayRead(ours, &o));
  OK(VecRestoreArrayRead(reference, &r));
  OK(VecRestoreArrayRead(limit, &l));
  return everywhere_most(most);
}

inline void get_plain(Mat A, Mat *plain) { OK(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, plain)); }

// What rounding allows: 4 eps (entries of the row + 3) (|A| |x| + |y|) in each row, and in lossy arithmetic lossy_error() |A| |x|.
class Bound {
public:
  explicit Bound(Mat reference, tcbound::Arithmetic arithmetic = tcbound::Arithmetic::fp64) : arithmetic_(arithmetic) {
    OK(MatDuplicate(reference, MAT_COPY_VALUES, &absolute_));
    change_values(absolute_, [](PetscScalar v) { return PetscAbsScalar(v); });
    OK(MatDuplicate(reference, MAT_COPY_VALUES, &count_));
    change_values(count_, [](PetscScalar) { return 1.0; });
  }
  // y may be null.
  void operator()(bool transpose, Vec x, Vec y, Vec limit) const {
    Handle<Vec> magnitude, ones, length;
    const auto  multiply = transpose ? MatMultTranspose : MatMult;

    OK(VecDuplicate(x, &magnitude));
    OK(VecDuplicate(x, &ones));
    OK(VecDuplicate(limit, &length));
    OK(VecCopy(x, magnitude));
    OK(VecAbs(magnitude));
    OK(VecSet(ones, 1.0));
    OK(multiply(absolute_, magnitude, limit));
    OK(multiply(count_, ones, length));
    std::vector<double> entries;
    on_host(length, [&](PetscScalar *n, PetscInt size) { entries.assign(n, n + size); });
    on_host(limit, [&](PetscScalar *l, PetscInt size) {
      const PetscScalar *added = nullptr;
      if (y) OK(VecGetArrayRead(y, &added));
      for (PetscInt k = 0; k < size; k++) {
        const auto   in_row = static_cast<std::int64_t>(entries[k]), chain = 2 * tcbound::summed_in_fp32; // of two blocks
        const double lossy = arithmetic_ == tcbound::Arithmetic::fp64 ? 0.0 : tcbound::lossy_error(arithmetic_, in_row, chain);
        l[k] = 4.0 * PETSC_MACHINE_EPSILON * (entries[k] + 3.0) * (l[k] + (y ? PetscAbsScalar(added[k]) : 0.0)) + lossy * l[k];
      }
      if (y) OK(VecRestoreArrayRead(y, &added));
    });
  }

private:
  tcbound::Arithmetic arithmetic_;
  Handle<Mat>         absolute_, count_;
};

// Compares one product of both matrices. Vectors of the reference are standard ones with the same entries.
inline double product_excess(Mat ours, Mat reference, const Bound &bound, bool transpose, bool add, bool in_place,
                             bool hermitian, Vec x) {
  Handle<Vec> rx, ry, rz, z, y, limit;
  VecType     type;

  OK(VecGetType(x, &type));
  make_vector(reference, transpose, VECSTANDARD, 1, &rx);
  on_host(
    x, [&](PetscScalar *from, PetscInt n) { on_host(rx, [&](PetscScalar *to, PetscInt) { std::copy(from, from + n, to); }); });
  move_to_memory_of_type(x);
  make_vector(reference, !transpose, VECSTANDARD, 12, &ry);
  make_vector(reference, !transpose, VECSTANDARD, 0, &rz);
  make_vector(reference, !transpose, VECSTANDARD, 1, &limit);
  make_vector(ours, !transpose, type, 12, &y);
  make_vector(ours, !transpose, type, 0, &z);
  const Vec out = in_place ? y : z;
  if (!add) {
    OK((hermitian ? MatMultHermitianTranspose : transpose ? MatMultTranspose : MatMult)(reference, rx, rz));
    OK((hermitian ? MatMultHermitianTranspose : transpose ? MatMultTranspose : MatMult)(ours, x, out));
  } else {
    const auto multiply = hermitian ? MatMultHermitianTransposeAdd : transpose ? MatMultTransposeAdd : MatMultAdd;
    OK(multiply(reference, rx, ry, rz));
    OK(multiply(ours, x, y, out));
  }
  bound(transpose, rx, add ? Vec(ry) : nullptr, limit);
  return excess(out, rz, limit);
}

// All products of ours agree with those of a plain AIJ matrix, on vectors of a type.
inline void expect_same_products(Mat ours, Mat reference, VecType type = VECSTANDARD,
                                 tcbound::Arithmetic arithmetic = tcbound::Arithmetic::fp64) {
  const Bound bound(reference, arithmetic);

  for (bool transpose : {false, true}) {
    Handle<Vec> x;
    make_vector(ours, transpose, type, transpose ? 11 : 10, &x);
    for (bool hermitian : {false, true}) {
      if (hermitian && !transpose) continue;
      const std::string name = hermitian ? "A^H x" : transpose ? "A^T x" : "A x";
      EXPECT_LE(product_excess(ours, reference, bound, transpose, false, false, hermitian, x), 1.0) << name << ", " << type;
      EXPECT_LE(product_excess(ours, reference, bound, transpose, true, false, hermitian, x), 1.0) << name << " + y, " << type;
      EXPECT_LE(product_excess(ours, reference, bound, transpose, true, true, hermitian, x), 1.0)
        << "y += " << name << ", " << type;
    }
  }
}

// The stored entries of this rank's rows are the same, bit for bit or up to a relative tolerance.
inline bool same_rows(Mat ours, Mat reference, double tolerance = 0.0) {
  PetscInt begin, end;
  bool     same = true;

  OK(MatGetOwnershipRange(ours, &begin, &end));
  for (PetscInt row = begin; row < end; row++) {
    PetscInt           n, m;
    const PetscInt    *jn, *jm;
    const PetscScalar *vn, *vm;

    OK(MatGetRow(reference, row, &m, &jm, &vm));
    std::vector<PetscInt>    columns(jm, jm + m);
    std::vector<PetscScalar> values(vm, vm + m);
    OK(MatRestoreRow(reference, row, &m, &jm, &vm));
    OK(MatGetRow(ours, row, &n, &jn, &vn));
    same = same && n == static_cast<PetscInt>(columns.size());
    for (PetscInt k = 0; same && k < n; k++)
      same = jn[k] == columns[k] && std::fabs(vn[k] - values[k]) <= tolerance * (1.0 + std::fabs(values[k]));
    OK(MatRestoreRow(ours, row, &n, &jn, &vn));
  }
  return everywhere(same);
}

// Ours holds what the plain AIJ matrix holds, seen by entries, diagonal, norm and products alike. tolerance: of the values.
inline void expect_same(Mat ours, Mat reference, VecType type = VECSTANDARD, double tolerance = 0.0) {
  PetscInt rows, columns;

  EXPECT_TRUE(same_rows(ours, reference, tolerance)) << "entries";
  OK(MatGetSize(ours, &rows, &columns));
  if (rows == columns) {
    Handle<Vec> d, rd, limit;
    make_vector(ours, true, type, 0, &d);
    make_vector(reference, true, VECSTANDARD, 0, &rd);
    make_vector(reference, true, VECSTANDARD, 1, &limit);
    OK(MatGetDiagonal(ours, d));
    OK(MatGetDiagonal(reference, rd));
    on_host(limit, [&](PetscScalar *l, PetscInt n) { std::fill(l, l + n, tolerance); });
    EXPECT_LE(excess(d, rd, limit), 1.0) << "diagonal, " << type;
  }
  for (NormType norm : {NORM_1, NORM_INFINITY, NORM_FROBENIUS}) {
    PetscReal o, r;
    OK(MatNorm(ours, norm, &o));
    OK(MatNorm(reference, norm, &r));
    EXPECT_NEAR(o, r, (tolerance + 1e-14) * (1.0 + r)) << NormTypes[norm];
  }
  if (tolerance == 0.0) {
    expect_same_products(ours, reference, type);
    return;
  }
  // The values differ by rounding already: products of ours against the plain copy of ours.
  Handle<Mat> plain;
  get_plain(ours, &plain);
  expect_same_products(ours, plain, type);
}
