// ranks: 1 2 3 5
// Conversions, parts, transposes and products of matrices with other matrices.
#include "mat/matrices.h"

namespace {

class Convert : public OnBackend {
protected:
  VecType vec_type() const { return vec_types().back(); }
};

using Types = std::vector<std::string>;

// Types that AIJ converts to and from; of a rank count by their root names.
Types other_types(bool device, bool square_and_even) {
  Types types{MATAIJ, MATDENSE, MATAIJPERM, MATAIJSELL, MATAIJCRL};
  // PETSc 3.24.0 converts plain MATMPIAIJ to a wrong MATMPISELL.
  if (PETSC_VERSION_GE(3, 26, 0) || world_size() == 1) types.push_back(MATSELL);
  if (square_and_even) types.push_back(MATBAIJ);
  if (device) types.push_back(MATAIJCUSPARSE);
  return types;
}

// By how much of what rounding explains the products of two matrices of any types differ.
double action_difference(Mat A, Mat B) {
  Handle<Mat> plain;
  Handle<Vec> x, y, rx, z, limit;

  get_plain(B, &plain);
  const Bound bound(plain);
  OK(MatCreateVecs(A, &x, &y));
  randomize(x, 3);
  make_vector(plain, false, VECSTANDARD, 3, &rx);
  make_vector(plain, true, VECSTANDARD, 0, &z);
  make_vector(plain, true, VECSTANDARD, 0, &limit);
  OK(MatMult(A, x, y));
  OK(MatMult(plain, rx, z));
  bound(false, rx, nullptr, limit);
  return excess(y, z, limit);
}

TEST_P(Convert, FromAndToOtherTypes) {
  for (const Case &c : {dominant_case(60 * world_size(), true), tall_case(), wide_case()}) {
    Case even = c;
    even.empty_rank = -1;
    for (const std::string &type : other_types(on_device(), c.rows == c.columns)) {
      SCOPED_TRACE(c.name + " " + type);
      const Pair m(even);
      expect_same_products(m.ours, m.aij, vec_type()); // so that there is a format to be left behind
      Handle<Mat> there, back, again;

      OK(MatConvert(m.ours, type.c_str(), MAT_INITIAL_MATRIX, &there));
      EXPECT_LE(action_difference(there, m.aij), 1.0) << "to";
      OK(MatConvert(there, MATAIJTCBOUND, MAT_INITIAL_MATRIX, &back));
      EXPECT_EQ(type_of(object(back)), ours_name());
      Handle<Mat> plain;
      get_plain(back, &plain);
      EXPECT_LE(action_difference(plain, m.aij), 1.0) << "back";
      expect_same_products(back, plain, vec_type());

      // The values that a conversion into an existing matrix finds are replaced.
      OK(MatScale(m.ours, 3.0));
      OK(MatScale(m.aij, 3.0));
      OK(MatConvert(m.ours, type.c_str(), MAT_REUSE_MATRIX, &there));
      EXPECT_LE(action_difference(there, m.aij), 1.0) << "to, reused";
      OK(MatConvert(there, MATAIJTCBOUND, MAT_REUSE_MATRIX, &back));
      EXPECT_EQ(type_of(object(back)), ours_name());
      EXPECT_LE(action_difference(back, m.aij), 1.0) << "back, reused";

      OK(MatDuplicate(m.ours, MAT_COPY_VALUES, &again));
      OK(MatConvert(again, type.c_str(), MAT_INPLACE_MATRIX, &again));
      EXPECT_NE(type_of(object(again)), ours_name());
      EXPECT_LE(action_difference(again, m.aij), 1.0) << "to, in place";
      OK(MatConvert(again, MATAIJTCBOUND, MAT_INPLACE_MATRIX, &again));
      EXPECT_EQ(type_of(object(again)), ours_name());
      EXPECT_LE(action_difference(again, m.aij), 1.0) << "back, in place";
      OK(MatScale(again, 0.5));
      OK(MatScale(m.aij, 0.5));
      EXPECT_LE(action_difference(again, m.aij), 1.0) << "back, in place, then changed";
    }
  }
}

TEST_P(Convert, FromAndToSymmetricStorage) {
  const Pair  m(dominant_case(60, true));
  Handle<Mat> symmetric, back;

  OK(MatSetOption(m.ours, MAT_SYMMETRIC, PETSC_TRUE));
  OK(MatConvert(m.ours, MATSBAIJ, MAT_INITIAL_MATRIX, &symmetric));
  EXPECT_LE(action_difference(symmetric, m.aij), 1.0);
  OK(MatConvert(symmetric, MATAIJTCBOUND, MAT_INITIAL_MATRIX, &back));
  EXPECT_EQ(type_of(object(back)), ours_name());
  expect_same(back, m.aij, vec_type());
}

TEST_P(Convert, LeavesAPlainMatrixBehind) {
  const Pair  m(random_case());
  Handle<Vec> right;

  expect_same_products(m.ours, m.aij, vec_type());
  Mat A = m.ours;
  OK(MatConvert(A, MATAIJ, MAT_INPLACE_MATRIX, &A));
  EXPECT_EQ(type_of(object(A)), world_size() == 1 ? MATSEQAIJ : MATMPIAIJ);
  for (Mat block : blocks_of(A)) EXPECT_EQ(type_of(object(block)), MATSEQAIJ);
  OK(MatCreateVecs(A, &right, nullptr));
  EXPECT_EQ(type_of(object(right)), world_size() == 1 ? VECSEQ : VECMPI);
  expect_same(A, m.aij);
  EXPECT_TRUE(contains(message_of([&] { return MatTCBoundSetBackend(A, "host"); }), MATAIJTCBOUND));
  OK(MatZeroEntries(A)); // works as AIJ does
  OK(MatZeroEntries(m.aij));
  OK(MatShift(A, 1.0));
  OK(MatShift(m.aij, 1.0));
  expect_same(A, m.aij);
}

TEST_P(Convert, Transposes) {
  for (const Case &c : {random_case(), tall_case(), wide_case()}) {
    SCOPED_TRACE(c.name);
    const Pair  m(c);
    Handle<Mat> ours, aij;
    for (MatReuse reuse : {MAT_INITIAL_MATRIX, MAT_REUSE_MATRIX}) {
      OK(MatTranspose(m.ours, reuse, &ours));
      OK(MatTranspose(m.aij, reuse, &aij));
      EXPECT_EQ(type_of(object(ours)), ours_name());
      expect_same(ours, aij, vec_type());
      for (Mat A : {Mat(m.ours), Mat(m.aij)}) OK(MatScale(A, -2.0));
    }
    for (Mat A : {Mat(m.ours), Mat(m.aij)}) OK(MatTranspose(A, MAT_INPLACE_MATRIX, &A));
    EXPECT_EQ(type_of(object(m.ours)), ours_name());
    expect_same(m.ours, m.aij, vec_type());
    for (Mat A : {Mat(m.ours), Mat(m.aij)}) OK(MatScale(A, 0.5));
    expect_same(m.ours, m.aij, vec_type());
  }
}

// Every rank takes every third row, and every second column, of its own.
TEST_P(Convert, TakesSubmatrices) {
  for (const Case &c : {random_case(), tall_case()}) {
    SCOPED_TRACE(c.name);
    const Pair  m(c);
    Handle<IS>  rows, columns;
    Handle<Mat> ours, aij;
    PetscInt    begin, end;

    OK(MatGetOwnershipRange(m.ours, &begin, &end));
    OK(ISCreateStride(PETSC_COMM_WORLD, (end - begin + 2) / 3, begin, 3, &rows));
    OK(MatGetOwnershipRangeColumn(m.ours, &begin, &end));
    OK(ISCreateStride(PETSC_COMM_WORLD, (end - begin + 1) / 2, begin, 2, &columns));
    for (MatReuse reuse : {MAT_INITIAL_MATRIX, MAT_REUSE_MATRIX}) {
      OK(MatCreateSubMatrix(m.ours, rows, columns, reuse, &ours));
      OK(MatCreateSubMatrix(m.aij, rows, columns, reuse, &aij));
      EXPECT_EQ(type_of(object(ours)), ours_name());
      expect_same(ours, aij, vec_type());
      for (Mat A : {Mat(m.ours), Mat(m.aij)}) OK(MatScale(A, -2.0));
    }
    // Sequential ones, of rows of any rank.
    Handle<IS> any_rows, any_columns;
    Mat       *ours_list = nullptr, *aij_list = nullptr;
    OK(ISCreateStride(PETSC_COMM_SELF, 7, 2 * world_rank(), 5, &any_rows));
    OK(ISCreateStride(PETSC_COMM_SELF, c.columns, 0, 1, &any_columns));
    for (MatReuse reuse : {MAT_INITIAL_MATRIX, MAT_REUSE_MATRIX}) {
      const IS r = any_rows, s = any_columns;
      OK(MatCreateSubMatrices(m.ours, 1, &r, &s, reuse, &ours_list));
      OK(MatCreateSubMatrices(m.aij, 1, &r, &s, reuse, &aij_list));
      Handle<Vec> x, y, z;
      make_vector(aij_list[0], false, VECSTANDARD, 4, &x);
      make_vector(aij_list[0], true, VECSTANDARD, 0, &y);
      make_vector(aij_list[0], true, VECSTANDARD, 0, &z);
      OK(MatMult(ours_list[0], x, y));
      OK(MatMult(aij_list[0], x, z));
      OK(VecAXPY(y, -1.0, z));
      PetscReal norm;
      OK(VecNorm(y, NORM_INFINITY, &norm));
      EXPECT_LE(norm, 1e-13);
      for (Mat A : {Mat(m.ours), Mat(m.aij)}) OK(MatScale(A, 1.5));
    }
    OK(MatDestroyMatrices(1, &ours_list));
    OK(MatDestroyMatrices(1, &aij_list));
  }
}

TEST_P(Convert, Permutes) {
  const Pair            m(random_case());
  Handle<IS>            order;
  Handle<Mat>           ours, aij;
  PetscInt              begin, end;
  std::vector<PetscInt> reversed;

  OK(MatGetOwnershipRange(m.ours, &begin, &end));
  for (PetscInt i = end; i-- > begin;) reversed.push_back(i);
  OK(ISCreateGeneral(PETSC_COMM_WORLD, end - begin, reversed.data(), PETSC_COPY_VALUES, &order));
  OK(ISSetPermutation(order));
  OK(MatPermute(m.ours, order, order, &ours));
  OK(MatPermute(m.aij, order, order, &aij));
  EXPECT_EQ(type_of(object(ours)), world_size() == 1 ? MATSEQAIJTCBOUND : MATMPIAIJ); // PETSc makes a plain one there
  expect_same(ours, aij, vec_type());
}

// One product of matrices: what it makes of (ours, other) is what it makes of the same as AIJ; then with other values in the
// same result.
void expect_same_matrix_product(const char *name, MatProductType type, Mat A, Mat B, Mat rA, Mat rB, Mat scaled[],
                                Mat rscaled[], bool keeps_type) {
  Handle<Mat> C, rC;
  SCOPED_TRACE(name);

  for (int round = 0; round < 2; round++) {
    if (round == 0) {
      for (auto &[result, left, right] : {std::tuple<Mat *, Mat, Mat>{&C, A, B}, {&rC, rA, rB}}) {
        OK(MatProductCreate(left, right, nullptr, result));
        OK(MatProductSetType(*result, type));
        OK(MatProductSetFill(*result, 2.0));
        OK(MatProductSetFromOptions(*result));
        OK(MatProductSymbolic(*result));
        OK(MatProductNumeric(*result));
      }
      EXPECT_TRUE(!keeps_type || type_of(object(C)) == ours_name()) << type_of(object(C));
    } else {
      for (int k = 0; scaled[k]; k++) OK(MatScale(scaled[k], 3.0));
      for (int k = 0; rscaled[k]; k++) OK(MatScale(rscaled[k], 3.0));
      OK(MatProductNumeric(C));
      OK(MatProductNumeric(rC));
    }
    Handle<Mat> dense_C, dense_rC;
    PetscReal   norm, size;
    OK(MatConvert(C, MATDENSE, MAT_INITIAL_MATRIX, &dense_C));
    OK(MatConvert(rC, MATDENSE, MAT_INITIAL_MATRIX, &dense_rC));
    OK(MatNorm(dense_rC, NORM_FROBENIUS, &size));
    OK(MatAXPY(dense_C, -1.0, dense_rC, SAME_NONZERO_PATTERN));
    OK(MatNorm(dense_C, NORM_FROBENIUS, &norm));
    EXPECT_LE(norm, 1e-13 * (1.0 + size)) << "round " << round;
    EXPECT_GT(size, 0.0);
    if (keeps_type && type_of(object(C)) == ours_name()) {
      Handle<Mat> plain;
      get_plain(C, &plain);
      expect_same_products(C, plain);
    }
  }
}

TEST_P(Convert, MultipliesWithMatrices) {
  const Case c = random_case(90),
             t =
               make_case("tall", 90, 30, [](PetscInt i, std::set<PetscInt> &chosen) { add_random_columns(chosen, i, 30, 4); });
  const struct {
    const char    *name;
    MatProductType type;
    bool           tall_first, tall_second; // of the factors
  } products[] = {{"AB", MATPRODUCT_AB, false, true},
                  {"AtB", MATPRODUCT_AtB, true, false},
                  {"AtB of tall", MATPRODUCT_AtB, true, true},
                  {"PtAP", MATPRODUCT_PtAP, false, true}};
  for (const auto &p : products)
    for (const char *first : {"ours", "aij"})
      for (const char *second : {"ours", "aij"}) {
        if (std::string(first) + second == "aijaij") continue;
        const Pair        a(p.tall_first ? t : c), b(p.tall_second ? t : c);
        const std::string name = std::string(p.name) + " " + first + " " + second;
        Mat               A = std::string(first) == "ours" ? a.ours : a.aij;
        Mat               B = std::string(second) == "ours" ? b.ours : b.aij;
        Handle<Mat>       rA, rB;
        OK(MatDuplicate(a.aij, MAT_COPY_VALUES, &rA));
        OK(MatDuplicate(b.aij, MAT_COPY_VALUES, &rB));
        Mat scaled[] = {A, B, nullptr}, rscaled[] = {rA, rB, nullptr};
        expect_same_matrix_product(name.c_str(), p.type, A, B, rA, rB, scaled, rscaled, A == a.ours && B == b.ours);
      }
  if (world_size() > 1) return; // PETSc has the rest for sequential AIJ only
  for (MatProductType type : {MATPRODUCT_ABt, MATPRODUCT_RARt}) {
    const Pair a(c), b(type == MATPRODUCT_ABt ? c : make_case("wide", 30, 90, [](PetscInt i, std::set<PetscInt> &chosen) {
      add_random_columns(chosen, i, 90, 9);
    }));
    Mat        scaled[] = {a.ours, b.ours, nullptr}, rscaled[] = {a.aij, b.aij, nullptr};
    expect_same_matrix_product(MatProductTypes[type], type, a.ours, b.ours, a.aij, b.aij, scaled, rscaled, true);
  }
}

TEST_P(Convert, MultipliesThreeMatrices) {
  const Pair a(random_case(60)), b(random_case(60)),
    d(make_case("tall", 60, 20, [](PetscInt i, std::set<PetscInt> &chosen) { add_random_columns(chosen, i, 20, 5); }));
  Handle<Mat> ours, aij;

  for (MatReuse reuse : {MAT_INITIAL_MATRIX, MAT_REUSE_MATRIX}) {
    OK(MatMatMatMult(a.ours, b.ours, d.ours, reuse, 2.0, &ours));
    OK(MatMatMatMult(a.aij, b.aij, d.aij, reuse, 2.0, &aij));
    EXPECT_EQ(type_of(object(ours)), ours_name());
    expect_same(ours, aij, vec_type(), 1e-13);
    for (Mat A : {Mat(a.ours), Mat(a.aij)}) OK(MatScale(A, -0.5));
  }
}

TEST_P(Convert, MultipliesWithDenseMatrices) {
  const Case c = random_case(90), dense = make_case("dense", 90, 6, [](PetscInt, std::set<PetscInt> &chosen) {
                                    chosen.insert({0, 1, 2, 3, 4, 5});
                                  });
  for (MatProductType type : {MATPRODUCT_AB, MATPRODUCT_AtB}) {
    const Pair  a(c);
    Handle<Mat> D, rD;
    build(dense, MATDENSE, &D);
    build(dense, MATDENSE, &rD);
    Mat scaled[] = {a.ours, D, nullptr}, rscaled[] = {a.aij, rD, nullptr};
    expect_same_matrix_product(type == MATPRODUCT_AB ? "ours dense AB" : "ours dense AtB", type, a.ours, D, a.aij, rD, scaled,
                               rscaled, false);
  }
  if (world_size() > 1) return; // PETSc has dense times AIJ on one process only
  const Pair  a(c);
  Handle<Mat> D, rD;
  build(make_case("dense", 6, 90,
                  [](PetscInt, std::set<PetscInt> &chosen) {
                    for (PetscInt j = 0; j < 90; j++) chosen.insert(j);
                  }),
        MATDENSE, &D);
  OK(MatDuplicate(D, MAT_COPY_VALUES, &rD));
  Mat scaled[] = {a.ours, D, nullptr}, rscaled[] = {a.aij, rD, nullptr};
  expect_same_matrix_product("dense ours AB", MATPRODUCT_AB, D, a.ours, rD, a.aij, scaled, rscaled, false);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Convert, testing::Values("host"), backend_name<testing::TestParamInfo<const char *>>);
INSTANTIATE_TEST_SUITE_P(Gpu, Convert, testing::Values("cuda_core", "cusparse"),
                         backend_name<testing::TestParamInfo<const char *>>);

} // namespace
