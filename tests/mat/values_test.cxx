// ranks: 1 2 3 5
// After every operation that changes values or pattern, nothing of the old matrix is left in products, diagonal or rows.
#include <dlfcn.h>

#include "mat/matrices.h"

namespace {

class Values : public OnBackend {};

struct Change {
  const char              *name;
  std::function<void(Mat)> apply;
};

// The rows of this rank that global row numbers name.
std::vector<PetscInt> own(Mat A, std::initializer_list<PetscInt> rows) {
  PetscInt              begin, end;
  std::vector<PetscInt> mine;

  OK(MatGetOwnershipRange(A, &begin, &end));
  for (PetscInt row : rows)
    if (row >= begin && row < end) mine.push_back(row);
  return mine;
}

// Another matrix of A's type and layout.
void build_like(Mat A, const Case &c, Mat *B) {
  MatType  type;
  PetscInt rows, columns;

  OK(MatGetType(A, &type));
  OK(MatGetLocalSize(A, &rows, &columns));
  OK(MatCreate(PETSC_COMM_WORLD, B));
  OK(MatSetSizes(*B, rows, columns, PETSC_DETERMINE, PETSC_DETERMINE));
  OK(MatSetType(*B, type));
  OK(MatSetUp(*B));
  insert(c, *B);
}

// Part of A's entries, with other values.
Case subset_of(Case c) {
  std::vector<Entry> kept;
  for (size_t k = 0; k < c.entries.size(); k++)
    if (k % 3) kept.push_back({c.entries[k].i, c.entries[k].j, random_number(40, k)});
  c.entries = kept;
  return c;
}

// Entries at other places; some columns belong to other ranks and were not in the off-diagonal block before.
Case elsewhere(const Case &c) {
  return make_case("elsewhere", c.rows, c.columns, [&c](PetscInt i, std::set<PetscInt> &chosen) {
    if (i % 4 == 0) chosen.insert({(i * 7 + 3) % c.columns, (i * 29 + 11) % c.columns});
  });
}

void scale_diagonally(Mat A, bool left, bool right) {
  Handle<Vec> l, r;

  OK(MatCreateVecs(A, &r, &l));
  randomize(l, 50);
  randomize(r, 51);
  move_to_memory_of_type(l);
  move_to_memory_of_type(r);
  OK(MatDiagonalScale(A, left ? Vec(l) : nullptr, right ? Vec(r) : nullptr));
}

void add(Mat Y, const Case &c, MatStructure structure) {
  Handle<Mat> X;

  build_like(Y, c, &X);
  OK(MatAXPY(Y, -0.75, X, structure));
}

void copy(const Case &c, Mat B, MatStructure structure) {
  Handle<Mat> A;

  build_like(B, c, &A);
  OK(MatCopy(A, B, structure));
}

Case with_other_values(Case c) {
  for (size_t k = 0; k < c.entries.size(); k++) c.entries[k].v = random_number(41, k);
  return c;
}

std::vector<Change> changes_of_values(const Case &c) {
  return {
    {"MatScale", [](Mat A) { OK(MatScale(A, -2.5)); }},
    {"MatDiagonalScale", [](Mat A) { scale_diagonally(A, true, true); }},
    {"MatDiagonalScale left", [](Mat A) { scale_diagonally(A, true, false); }},
    {"MatDiagonalScale right", [](Mat A) { scale_diagonally(A, false, true); }},
    {"MatAXPY same", [c](Mat A) { add(A, with_other_values(c), SAME_NONZERO_PATTERN); }},
    {"MatAXPY subset", [c](Mat A) { add(A, subset_of(c), SUBSET_NONZERO_PATTERN); }},
    {"MatCopy same", [c](Mat A) { copy(with_other_values(c), A, SAME_NONZERO_PATTERN); }},
    {"MatSetValues insert", [c](Mat A) { insert(subset_of(c), A, INSERT_VALUES); }},
    {"MatSetValues add", [c](Mat A) { insert(subset_of(c), A, ADD_VALUES); }},
    {"array", [](Mat A) { change_values(A, [](PetscScalar v) { return 1.0 - 3.0 * v; }); }},
    {"MatSetRandom",
     [](Mat A) {
       Handle<PetscRandom> random;
       OK(PetscRandomCreate(PETSC_COMM_WORLD, &random));
       OK(PetscRandomSetFromOptions(random));
       OK(MatSetRandom(A, random));
     }},
    {"MatConjugate", [](Mat A) { OK(MatConjugate(A)); }},
    {"MatRealPart", [](Mat A) { OK(MatRealPart(A)); }},
    {"MatZeroEntries", [](Mat A) { OK(MatZeroEntries(A)); }},
    {"MatSetValues add to zeros", [c](Mat A) { insert(c, A, ADD_VALUES); }},
    {"MatImaginaryPart", [](Mat A) { OK(MatImaginaryPart(A)); }},
  };
}

std::vector<Change> changes_of_pattern(const Case &c) {
  return {
    {"MatShift", [](Mat A) { OK(MatShift(A, 3.25)); }},
    {"MatAXPY different", [c](Mat A) { add(A, elsewhere(c), DIFFERENT_NONZERO_PATTERN); }},
    {"MatAXPY unknown", [c](Mat A) { add(A, elsewhere(c), UNKNOWN_NONZERO_PATTERN); }},
    {"new nonzeros",
     [c](Mat A) {
       OK(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
       insert(elsewhere(c), A, ADD_VALUES);
     }},
    {"MatFilter", [](Mat A) { OK(MatFilter(A, 0.4, PETSC_TRUE, PETSC_TRUE)); }},
    {"MatZeroRows",
     [](Mat A) {
       const std::vector<PetscInt> rows = own(A, {0, 1, 50, 77, 78});
       OK(MatZeroRows(A, static_cast<PetscInt>(rows.size()), rows.data(), 2.0, nullptr, nullptr));
     }},
    {"MatZeroRows keeping the pattern",
     [](Mat A) {
       const std::vector<PetscInt> rows = own(A, {2, 60, 80});
       OK(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
       OK(MatZeroRows(A, static_cast<PetscInt>(rows.size()), rows.data(), 0.0, nullptr, nullptr));
     }},
    {"MatZeroRowsColumns",
     [](Mat A) {
       const std::vector<PetscInt> rows = own(A, {3, 30, 66});
       Handle<Vec>                 x, b;
       OK(MatCreateVecs(A, &x, &b));
       randomize(x, 60);
       randomize(b, 61);
       OK(MatZeroRowsColumns(A, static_cast<PetscInt>(rows.size()), rows.data(), 5.0, x, b));
       PetscReal norm; // of the right-hand side that it made
       OK(VecNorm(b, NORM_2, &norm));
       OK(MatScale(A, 1.0 + 1e-3 * norm));
     }},
    {"MatEliminateZeros", [](Mat A) { OK(MatEliminateZeros(A, PETSC_TRUE)); }},
    {"MatCopy different", [c](Mat A) { copy(elsewhere(c), A, DIFFERENT_NONZERO_PATTERN); }},
  };
}

// A change as the first that a matrix sees after a product.
TEST_P(Values, AreNewAfterOneChange) {
  Case gap = dominant_case(97, false);
  gap.empty_rank = 1;
  for (const Case &c : {dominant_case(97, false), gap}) {
    std::vector<Change> changes = changes_of_values(c);
    for (const Change &change : changes_of_pattern(c)) changes.push_back(change);
    for (const Change &change : changes) {
      SCOPED_TRACE(std::string(change.name) + (c.empty_rank < 0 ? "" : ", one rank empty"));
      const Pair m(c);
      for (VecType type : vec_types()) {
        expect_same_products(m.ours, m.aij, type);
        for (Mat A : {Mat(m.ours), Mat(m.aij)}) change.apply(A);
        expect_same(m.ours, m.aij, type, 1e-15);
      }
    }
  }
}

// All changes one after another on one matrix.
TEST_P(Values, AreNewAfterManyChanges) {
  const Case c = dominant_case(97, false);
  const Pair m(c);

  for (int round = 0; round < 2; round++) {
    for (const Change &change : changes_of_values(c)) {
      SCOPED_TRACE(change.name);
      for (Mat A : {Mat(m.ours), Mat(m.aij)}) change.apply(A);
      for (VecType type : vec_types()) expect_same(m.ours, m.aij, type, 1e-13);
    }
    for (Mat A : {Mat(m.ours), Mat(m.aij)}) copy(c, A, SAME_NONZERO_PATTERN);
  }
  for (const Change &change : changes_of_pattern(c)) {
    SCOPED_TRACE(change.name);
    for (Mat A : {Mat(m.ours), Mat(m.aij)}) change.apply(A);
    for (VecType type : vec_types()) expect_same(m.ours, m.aij, type, 1e-13);
  }
}

// Changes that work on any shape.
TEST_P(Values, AreNewOnRectangularMatrices) {
  for (const Case &c : {tall_case(), wide_case()})
    for (const Change &change : changes_of_values(c)) {
      SCOPED_TRACE(c.name + ", " + change.name);
      const Pair m(c);
      expect_same_products(m.ours, m.aij, vec_types().back());
      for (Mat A : {Mat(m.ours), Mat(m.aij)}) change.apply(A);
      expect_same(m.ours, m.aij, vec_types().back(), 1e-15);
    }
}

TEST_P(Values, AreNewAfterShiftOfAMissingDiagonal) {
  const Pair m(random_case());

  expect_same(m.ours, m.aij, vec_types().back());
  for (Mat A : {Mat(m.ours), Mat(m.aij)}) OK(MatShift(A, -1.5));
  expect_same(m.ours, m.aij, vec_types().back());
}

// The same arrays, as many entries, other places.
TEST_P(Values, AreNewAfterMatResetPreallocation) {
  const PetscInt n = 120;
  Case           c[2];
  Handle<Mat>    ours, aij;

  for (PetscInt k = 0; k < 2; k++)
    c[k] = make_case("steps", n, n, [=](PetscInt i, std::set<PetscInt> &chosen) {
      chosen.insert({i, (i + 1 + k) % n, (i + 5 + 2 * k) % n});
    });
  create(c[0], MATAIJTCBOUND, &ours);
  create(c[0], MATAIJ, &aij);
  for (Mat A : {Mat(ours), Mat(aij)}) {
    OK(MatSeqAIJSetPreallocation(A, 4, nullptr)); // one more than is used, or PETSc keeps the pattern
    OK(MatMPIAIJSetPreallocation(A, 4, nullptr, 4, nullptr));
    insert(c[0], A);
  }
  for (int k : {0, 1, 0, 1}) {
    for (Mat A : {Mat(ours), Mat(aij)}) {
      OK(MatResetPreallocation(A));
      insert(c[k], A);
    }
    for (VecType type : vec_types()) expect_same(ours, aij, type);
  }
}

TEST_P(Values, OfADuplicateMadeBeforeTheAssembly) {
  const Case  c = random_case();
  Handle<Mat> original, ours, aij;

  build(c, MATAIJ, &aij);
  create(c, MATAIJTCBOUND, &original);
  OK(MatSetUp(original));
  OK(MatDuplicate(original, MAT_DO_NOT_COPY_VALUES, &ours));
  EXPECT_EQ(type_of(object(ours)), ours_name());
  for (Mat A : {Mat(ours), Mat(original)}) {
    OK(MatSetUp(A));
    insert(c, A);
    expect_same(A, aij, vec_types().back());
  }
}

TEST_P(Values, AreTheStoredOnesAfterRetrieve) {
  const Case c = dominant_case(97, false);
  const Pair m(c);

  for (Mat A : {Mat(m.ours), Mat(m.aij)}) {
    OK(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
    OK(MatStoreValues(A));
    OK(MatScale(A, 4.0));
  }
  expect_same(m.ours, m.aij, vec_types().back());
  for (Mat A : {Mat(m.ours), Mat(m.aij)}) OK(MatRetrieveValues(A));
  expect_same(m.ours, m.aij, vec_types().back());
  const Pair fresh(c);
  expect_same(m.ours, fresh.aij, vec_types().back());
}

// A sum with a plain AIJ matrix of any pattern.
// MatHeaderReplace() hands the format of one matrix to another, whose object state may by chance be the one that the format
// remembers; for some number of changes before and after its product it is.
TEST_P(Values, AreNewAfterMatHeaderReplace) {
  for (int earlier = 0; earlier < 6; earlier++) {
    const Pair  m(random_case());
    Handle<Vec> x, z;
    Mat         other;

    OK(MatCreateVecs(m.ours, &x, &z));
    OK(VecSet(x, 1.0));
    OK(MatDuplicate(m.ours, MAT_COPY_VALUES, &other));
    OK(MatMult(m.ours, x, z));
    for (int change = 0; change < earlier; change++) OK(MatScale(m.ours, 1.0 + change));
    OK(MatMult(other, x, z));
    OK(MatScale(other, 3.0));
    OK(MatScale(m.aij, 3.0));
    OK(MatHeaderReplace(m.ours, &other));
    expect_same(m.ours, m.aij, vec_types().back());
  }
}

TEST_P(Values, AddAPlainMatrix) {
  const Case c = dominant_case(97, false);
  for (MatStructure structure : {SAME_NONZERO_PATTERN, SUBSET_NONZERO_PATTERN, DIFFERENT_NONZERO_PATTERN}) {
    SCOPED_TRACE(MatStructures[structure]);
    const Pair m(c), other(structure == SAME_NONZERO_PATTERN     ? with_other_values(c)
                           : structure == SUBSET_NONZERO_PATTERN ? subset_of(c)
                                                                 : elsewhere(c));
    expect_same_products(m.ours, m.aij, vec_types().back());
    OK(MatAXPY(m.ours, 2.0, other.aij, structure));
    Handle<Mat> sum;
    OK(MatDuplicate(m.aij, MAT_COPY_VALUES, &sum));
    OK(MatAXPY(sum, 2.0, other.aij, structure));
    expect_same(m.ours, sum, vec_types().back());
    OK(MatAXPY(m.aij, 2.0, other.ours, structure)); // and the other way round
    expect_same(m.ours, m.aij, vec_types().back());
  }
}

TEST_P(Values, AreTheDuplicatesOwn) {
  for (const Case &c : {random_case(), tall_case()})
    for (MatDuplicateOption option : {MAT_COPY_VALUES, MAT_DO_NOT_COPY_VALUES, MAT_SHARE_NONZERO_PATTERN}) {
      SCOPED_TRACE(c.name + " " + std::to_string(option));
      const Pair     m(c);
      Handle<Mat>    copy_of_ours, copy_of_aij;
      MatTCBoundInfo info;

      for (int built = 0; built < 2; built++) {
        OK(MatDestroy(&copy_of_ours));
        OK(MatDestroy(&copy_of_aij));
        OK(MatDuplicate(m.ours, option, &copy_of_ours));
        OK(MatDuplicate(m.aij, option, &copy_of_aij));
        EXPECT_EQ(type_of(object(copy_of_ours)), ours_name());
        expect_same(copy_of_ours, copy_of_aij, vec_types().back());
        OK(MatTCBoundGetInfo(copy_of_ours, &info));
        EXPECT_EQ(info.backend, backend());
        insert(with_other_values(c), copy_of_ours);
        expect_same(m.ours, m.aij, vec_types().back()); // unchanged
        insert(with_other_values(c), copy_of_aij);
        expect_same(copy_of_ours, copy_of_aij, vec_types().back());
      }
    }
}

// The settings of one matrix go with its duplicate, not with the options.
TEST_P(Values, OfADuplicateRunWhereTheOriginalsDo) {
  const Pair     m(random_case());
  Handle<Mat>    copy_of_ours;
  MatTCBoundInfo info;

  OK(MatTCBoundSetBackend(m.ours, "host"));
  OK(MatDuplicate(m.ours, MAT_COPY_VALUES, &copy_of_ours));
  OK(MatTCBoundGetInfo(copy_of_ours, &info));
  EXPECT_STREQ(info.backend, "host");
}

// Rectangular, on one process: MATMPIAIJ has no diagonal of a rectangular matrix.
TEST_P(Values, OfTheDiagonalOfARectangularMatrix) {
  for (const Case &c : {tall_case(), wide_case(), make_case("0 x 3", 0, 3, [](PetscInt, std::set<PetscInt> &) {})})
    for (VecType type : vec_types()) {
      Handle<Mat> aij, ours;
      Handle<Vec> d, reference, limit;

      OK(MatCreateSeqAIJ(PETSC_COMM_SELF, c.rows, c.columns, 70, nullptr, &aij));
      for (const Entry &e : c.entries) OK(MatSetValue(aij, e.i, e.j, e.v, INSERT_VALUES));
      assemble(aij);
      OK(MatConvert(aij, MATSEQAIJTCBOUND, MAT_INITIAL_MATRIX, &ours));
      make_vector(ours, true, type, 0, &d);
      make_vector(aij, true, VECSTANDARD, 0, &reference);
      make_vector(aij, true, VECSTANDARD, 0, &limit);
      OK(VecSet(limit, 0.0));
      OK(MatGetDiagonal(ours, d));
      OK(MatGetDiagonal(aij, reference));
      on_host(d, [&](PetscScalar *mine, PetscInt n) {
        on_host(reference, [&](PetscScalar *r, PetscInt) {
          for (PetscInt i = 0; i < n; i++) EXPECT_EQ(mine[i], r[i]) << c.name << " " << type << " row " << i;
        });
      });
    }
}

// Bytes in use: of this process, and of the device where one is used.
struct Usage {
  PetscLogDouble process = 0.0, petsc = 0.0;
  double         device = 0.0;
  explicit Usage(bool on_device) {
    OK(PetscMemoryGetCurrentUsage(&process));
    OK(PetscMallocGetCurrentUsage(&petsc));
    using MemGetInfo = int (*)(size_t *, size_t *);
    const auto get = reinterpret_cast<MemGetInfo>(dlsym(RTLD_DEFAULT, "cudaMemGetInfo"));
    size_t     free = 0, total = 0;
    if (on_device && get && !get(&free, &total)) device = static_cast<double>(total - free);
  }
};

void expect_no_growth(const Usage &before, bool on_device) {
  const Usage  now(on_device);
  const double mib = 1024.0 * 1024.0;

#ifndef __SANITIZE_ADDRESS__ // which keeps what was freed for a while
  EXPECT_LE(now.process - before.process, 24.0 * mib) << "of the process";
#endif
  EXPECT_LE(now.petsc - before.petsc, 0.5 * mib) << "of PETSc's allocations";
  EXPECT_LE(now.device - before.device, 64.0 * mib) << "of the device";
}

// 60,000 entries a rank: a leak of the values would be 480 MB after 1,000 changes, one of the pattern 140 MB after 200.
Case large_case() {
  const PetscInt n = 2000 * world_size();
  return make_case("large", n, n, [n](PetscInt i, std::set<PetscInt> &chosen) {
    for (PetscInt k = 0; k < 30; k++) chosen.insert((i + k * k) % n);
  });
}

TEST_P(Values, ChangeAThousandTimesWithoutGrowth) {
  const Pair  m(large_case());
  Handle<Vec> x, z;

  OK(MatCreateVecs(m.ours, &x, &z));
  OK(VecSet(x, 1.0));
  Usage before(on_device());
  for (int change = 0; change < 1100; change++) {
    if (change == 100) before = Usage(on_device());
    const PetscScalar factor = change % 2 ? 2.0 : 0.5;
    if (change % 3 == 0)
      change_values(m.ours, [=](PetscScalar v) { return factor * v; });
    else
      OK(MatScale(m.ours, factor));
    OK(MatMult(m.ours, x, z));
    if (change % 10 == 0) OK(MatMultTranspose(m.ours, x, z));
    if (change == 1099) expect_no_growth(before, on_device());
  }
  expect_same(m.ours, m.aij, vec_types().back()); // as many halves as doubles
}

TEST_P(Values, ChangePatternTwoHundredTimesWithoutGrowth) {
  const Case               c = large_case();
  Handle<Mat>              ours, aij;
  Handle<Vec>              x, z;
  std::vector<PetscInt>    rows, columns;
  std::vector<PetscScalar> values;
  PetscInt                 begin, end;

  create(c, MATAIJTCBOUND, &ours);
  create(c, MATAIJ, &aij);
  OK(MatSetUp(ours));
  OK(MatCreateVecs(ours, &x, &z));
  OK(VecSet(x, 1.0));
  OK(VecGetOwnershipRange(x, &begin, &end));
  const auto set = [&](Mat A, int change) {
    rows.clear();
    columns.clear();
    values.clear();
    for (const Entry &e : c.entries)
      if (e.i >= begin && e.i < end && (e.i + e.j + change) % 7) {
        rows.push_back(e.i);
        columns.push_back((e.j + change) % c.columns);
        values.push_back(e.v);
      }
    OK(MatSetPreallocationCOO(A, static_cast<PetscCount>(rows.size()), rows.data(), columns.data()));
    OK(MatSetValuesCOO(A, values.data(), INSERT_VALUES));
  };
  Usage before(on_device());
  for (int change = 0; change < 220; change++) {
    if (change == 20) before = Usage(on_device());
    set(ours, change);
    OK(MatMult(ours, x, z));
    OK(MatMultTranspose(ours, x, z));
  }
  expect_no_growth(before, on_device());
  set(aij, 219);
  expect_same(ours, aij, vec_types().back());
}

INSTANTIATE_TEST_SUITE_P(Cpu, Values, testing::Values("host"), backend_name<testing::TestParamInfo<const char *>>);
INSTANTIATE_TEST_SUITE_P(Gpu, Values, testing::Values("cuda_core", "cusparse"),
                         backend_name<testing::TestParamInfo<const char *>>);

} // namespace
