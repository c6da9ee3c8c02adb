// ranks: 1 2 3 5
// Products with dense matrices, of one to many columns, on the host and on the device, against AIJ column by column.
#include "mat/matrices.h"

namespace {

class DenseProducts : public OnBackend {
protected:
  // Of B, and so of what is made of it.
  std::vector<MatType> dense_types() const {
    std::vector<MatType> types{MATDENSE};
    if (on_device()) types.push_back(MATDENSECUDA);
    return types;
  }
};

// A dense matrix with as many rows here as the matrix's columns (rows for `transposed`), all of one number but for those of `seed`.
void make_dense(Mat A, bool transposed, PetscInt columns, MatType type, PetscInt seed, Mat *B) {
  PetscInt m, n, M, N, start, end;

  OK(MatGetLocalSize(A, &m, &n));
  OK(MatGetSize(A, &M, &N));
  OK(MatCreateDense(PETSC_COMM_WORLD, transposed ? m : n, PETSC_DECIDE, transposed ? M : N, columns, nullptr, B));
  OK(MatGetOwnershipRange(*B, &start, &end));
  for (PetscInt i = start; i < end; i++)
    for (PetscInt k = 0; k < columns; k++) OK(MatSetValue(*B, i, k, random_number(seed, i * 1000 + k), INSERT_VALUES));
  assemble(*B);
  OK(MatConvert(*B, type, MAT_INPLACE_MATRIX, B));
}

// Each column of C against the product of AIJ with that column of B.
void expect_columns(Mat C, Mat aij, Mat B, bool transposed) {
  const Bound bound(aij);
  PetscInt    columns;

  OK(MatGetSize(C, nullptr, &columns));
  for (PetscInt k = 0; k < columns; k++) {
    Handle<Vec> x, y, z, limit;
    Vec         b, c;
    SCOPED_TRACE("column " + std::to_string(k));
    make_vector(aij, transposed, VECSTANDARD, 0, &x);
    make_vector(aij, !transposed, VECSTANDARD, 0, &y);
    make_vector(aij, !transposed, VECSTANDARD, 0, &z);
    make_vector(aij, !transposed, VECSTANDARD, 0, &limit);
    OK(MatDenseGetColumnVecRead(B, k, &b));
    OK(VecCopy(b, x));
    OK(MatDenseRestoreColumnVecRead(B, k, &b));
    OK(MatDenseGetColumnVecRead(C, k, &c));
    OK(VecCopy(c, y));
    OK(MatDenseRestoreColumnVecRead(C, k, &c));
    OK(transposed ? MatMultTranspose(aij, x, z) : MatMult(aij, x, z));
    bound(transposed, x, nullptr, limit);
    EXPECT_LE(excess(y, z, limit), 1.0);
  }
}

void multiply(Mat A, bool transposed, Mat B, MatReuse reuse, Mat *C) {
  if (transposed)
    OK(MatTransposeMatMult(A, B, reuse, PETSC_DEFAULT, C));
  else
    OK(MatMatMult(A, B, reuse, PETSC_DEFAULT, C));
}

TEST_P(DenseProducts, AgreeOnEveryShape) {
  for (const Case &c : all_cases())
    for (MatType type : dense_types())
      for (bool transposed : {false, true})
        for (PetscInt columns : {1, 5, 19}) {
          SCOPED_TRACE(c.name + ", " + type + (transposed ? ", transposed, " : ", ") + std::to_string(columns) + " columns");
          const Pair  m(c);
          Handle<Mat> B, C;
          make_dense(m.ours, transposed, columns, type, 7, &B);
          multiply(m.ours, transposed, B, MAT_INITIAL_MATRIX, &C);
          expect_columns(C, m.aij, B, transposed);
          EXPECT_TRUE(world_size() > 1 || type_of(object(C)) == type_of(object(B))) << type_of(object(C));
        }
}

// The same result matrix again, after values of either matrix changed.
TEST_P(DenseProducts, FollowChanges) {
  for (MatType type : dense_types())
    for (bool transposed : {false, true}) {
      const Pair  m(random_case());
      Handle<Mat> B, C;
      SCOPED_TRACE(std::string(type) + (transposed ? ", transposed" : ""));
      make_dense(m.ours, transposed, 7, type, 8, &B);
      multiply(m.ours, transposed, B, MAT_INITIAL_MATRIX, &C);
      for (PetscScalar factor : {-2.0, 0.25}) {
        for (Mat A : {Mat(m.ours), Mat(m.aij)}) OK(MatScale(A, factor));
        multiply(m.ours, transposed, B, MAT_REUSE_MATRIX, &C);
        expect_columns(C, m.aij, B, transposed);
        OK(MatScale(B, factor));
        multiply(m.ours, transposed, B, MAT_REUSE_MATRIX, &C);
        expect_columns(C, m.aij, B, transposed);
      }
    }
}

// Into a matrix of the caller's, whose columns lie further apart than they are long; B is a part of a larger one.
TEST_P(DenseProducts, IntoAMatrixOfTheCaller) {
  if (world_size() > 1) return; // the local arrays of parallel matrices are PETSc's own
  const Pair               m(tall_case());
  Handle<Mat>              all, C;
  Mat                      B;
  PetscInt                 rows, columns;
  const PetscInt           lda = 400;
  std::vector<PetscScalar> array(static_cast<size_t>(6 * lda), 5.0);

  OK(MatGetSize(m.ours, &rows, &columns));
  make_dense(m.ours, false, 9, MATDENSE, 9, &all);
  OK(MatDenseGetSubMatrix(all, PETSC_DECIDE, PETSC_DECIDE, 2, 8, &B));
  OK(MatCreateSeqDense(PETSC_COMM_SELF, rows, 6, array.data(), &C));
  OK(MatDenseSetLDA(C, lda));
  multiply(m.ours, false, B, MAT_REUSE_MATRIX, &C);
  expect_columns(C, m.aij, B, false);
  for (PetscInt k = 0; k < 6; k++)
    for (PetscInt i = rows; i < lda; i++) ASSERT_EQ(array[static_cast<size_t>(k * lda + i)], 5.0) << "written between columns";
  OK(MatDenseRestoreSubMatrix(all, &B));
}

INSTANTIATE_TEST_SUITE_P(Cpu, DenseProducts, testing::Values("host"), backend_name<testing::TestParamInfo<const char *>>);
INSTANTIATE_TEST_SUITE_P(Gpu, DenseProducts, testing::Values("cuda_core", "cusparse"),
                         backend_name<testing::TestParamInfo<const char *>>);

} // namespace
