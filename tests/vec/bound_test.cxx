// ranks: 1 2 3
// Vectors that are bound to the CPU from the start, in a program of their own: no vector of type tcbound before them was on a device.
#include "fixture.h"

namespace {

struct BoundVectors : Vectors {
  using Vectors::elements, Vectors::is_ours, Vectors::part;
};

void expect_vectors_of_a_bound_matrix() {
  const PetscInt n = BoundVectors::part(30);
  Handle<Mat>    A;
  Handle<Vec>    x, y, copy;
  PetscInt       begin;
  double         norms[2];
  PetscScalar    sum;
  PetscBool      is;

  OK(MatCreateConstantDiagonal(PETSC_COMM_WORLD, n, n, PETSC_DETERMINE, PETSC_DETERMINE, 2.0, &A));
  OK(MatConvert(A, MATAIJTCBOUND, MAT_INPLACE_MATRIX, &A));
  OK(MatBindToCPU(A, PETSC_TRUE));
  OK(MatSetBindingPropagates(A, PETSC_TRUE));
  OK(MatCreateVecs(A, &x, &y));
  for (Vec v : {static_cast<Vec>(x), static_cast<Vec>(y)}) EXPECT_TRUE(BoundVectors::is_ours(v));
  OK(VecGetOwnershipRange(x, &begin, nullptr));
  on_host(x, [&](PetscScalar *a, PetscInt length) {
    for (PetscInt i = 0; i < length; i++) a[i] = 1.0 / static_cast<double>(begin + i + 1);
  });
  const std::vector<double> before = BoundVectors::elements(x);
  OK(VecDuplicate(x, &copy));
  OK(VecSetFromOptions(copy));
  EXPECT_TRUE(BoundVectors::is_ours(copy));
  OK(VecBoundToCPU(copy, &is));
  EXPECT_TRUE(is || !has_device());
  OK(MatMult(A, x, y));
  OK(VecCopy(x, copy));
  OK(VecAXPY(copy, -0.5, y));
  OK(VecNorm(copy, NORM_2, &norms[0]));
  EXPECT_EQ(norms[0], 0.0);

  for (PetscBool bind : {PETSC_FALSE, PETSC_TRUE, PETSC_FALSE}) {
    OK(MatBindToCPU(A, bind));
    for (Vec v : {static_cast<Vec>(x), static_cast<Vec>(y), static_cast<Vec>(copy)}) {
      OK(VecBindToCPU(v, bind));
      OK(VecSetFromOptions(v));
      EXPECT_TRUE(BoundVectors::is_ours(v));
    }
    EXPECT_EQ(BoundVectors::elements(x), before);
    OK(MatMult(A, x, y));
    OK(VecCopy(x, copy));
    OK(VecAXPBY(copy, -1.0, 2.0, y));
    OK(VecNorm(copy, NORM_2, &norms[0]));
    EXPECT_EQ(norms[0], 0.0);
    OK(VecDot(x, y, &sum));
    OK(VecNorm(x, NORM_2, &norms[1]));
    EXPECT_NEAR(sum, 2.0 * norms[1] * norms[1], 1e-14 * sum);
  }
}

TEST(BoundVectors, OfAMatrix) { expect_vectors_of_a_bound_matrix(); }

TEST(GpuBoundVectors, OfAMatrix) {
  const char *why_not = nullptr;
  if (!has_device(&why_not)) GTEST_SKIP() << why_not;
  expect_vectors_of_a_bound_matrix();
}

} // namespace
