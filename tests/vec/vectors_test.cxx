// ranks: 1 2 3
// Vectors of type tcbound do what PETSc's own do: every operation that is ours.
#include "fixture.h"

namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();

TEST_P(Vectors, DoWhatPetscsDo) {
  for (const PetscInt local : {0, 1, 2, 7, 128, 1000, 3001}) expect_all_operations(local);
}

TEST_P(Vectors, MultiplyWithAndAddManyAtOnce) {
  for (const PetscInt n : {1, 2, 3, 4, 7, 8, 9, 30, 70}) {
    Pair x;
    Vec *ours, *plain;
    make(501, 5, x);
    OK(VecDuplicateVecs(x.ours, n, &ours));
    OK(VecDuplicateVecs(x.plain, n, &plain));
    std::vector<PetscScalar> a(n), b(n), factors(n);
    for (PetscInt k = 0; k < n; k++) {
      EXPECT_TRUE(is_ours(ours[k]));
      randomize(ours[k], 100 + k);
      randomize(plain[k], 100 + k);
      move_to_memory_of_type(ours[k]);
      factors[k] = k % 5 == 3 ? 0.0 : 0.1 * (k + 1);
    }
    for (const auto dot : {VecMDot, VecMTDot}) {
      OK(dot(x.ours, n, ours, a.data()));
      OK(dot(x.plain, n, plain, b.data()));
      for (PetscInt k = 0; k < n; k++) EXPECT_NEAR(a[k], b[k], 3e-13) << k << " of " << n;
    }
    OK(VecMAXPY(x.ours, n, factors.data(), ours));
    OK(VecMAXPY(x.plain, n, factors.data(), plain));
    expect_near(x.ours, x.plain, "MAXPY of " + std::to_string(n), 8, 0.1 * n * n);
    for (const PetscScalar beta : {-0.5, 0.0}) {
      if (beta == 0.0) poison(x.ours); // must not be read
      OK(VecMAXPBY(x.ours, n, factors.data(), beta, ours));
      OK(VecMAXPBY(x.plain, n, factors.data(), beta, plain));
      expect_near(x.ours, x.plain, "MAXPBY of " + std::to_string(n), 16, 0.1 * n * n);
    }
    OK(VecDestroyVecs(n, &ours));
    OK(VecDestroyVecs(n, &plain));
  }
}

TEST_P(Vectors, ScaleSpecialNumbersAsPetscDoes) {
  for (const PetscScalar alpha : {0.0, -0.0, 1.0, nan_value, infinity, -infinity, 2.0, -1e-300}) {
    Handle<Vec> v, plain;
    make(600, 9, &v);
    make(600, 9, &plain, VECSTANDARD);
    for (const Vec one : {Vec(v), Vec(plain)}) {
      set(one, 1, nan_value);
      set(one, 2, infinity);
      set(one, 3, -0.0);
      set(one, 130, 0.0);
      set(one, 131, 5e-324);
      set(one, 500, -infinity);
      set(one, 501, 1e308);
    }
    OK(VecScale(v, alpha));
    OK(VecScale(plain, alpha));
    const std::vector<double> a = elements(v), b = elements(plain);
    bool                      same = true;
    for (std::size_t i = 0; i < a.size(); i++)
      same = same && (std::isnan(a[i]) ? std::isnan(b[i]) : a[i] == b[i] && std::signbit(a[i]) == std::signbit(b[i]));
    EXPECT_TRUE(everywhere(same)) << "factor " << alpha;
  }
}

TEST_P(Vectors, HaveNormsOfLargeAndSmallNumbers) {
  for (const double size : {1e-320, 1e-300, 1e-160, 1.0, 1e160, 1e300}) {
    Handle<Vec> v;
    PetscReal   norm[2];
    PetscInt    n;
    make(1000, 0, &v);
    OK(VecSet(v, size));
    OK(VecGetSize(v, &n));
    const double want = size * std::sqrt(static_cast<double>(n));
    if (world_size() > 1 && (size < 1e-150 || size > 1e150)) continue; // PETSc adds up squares over ranks
    OK(VecNorm(v, NORM_2, norm));
    EXPECT_NEAR(norm[0] / want, 1.0, size < 1e-310 ? 1e-3 : 1e-13) << size;
    OK(VecNorm(v, NORM_1_AND_2, norm));
    EXPECT_NEAR(norm[1] / want, 1.0, size < 1e-310 ? 1e-3 : 1e-13) << size;
    OK(VecNorm(v, NORM_INFINITY, norm));
    EXPECT_EQ(norm[0], size);
  }
  Handle<Vec> v;
  PetscReal   norm;
  make(1000, 10, &v);
  set(v, 700, infinity);
  for (const NormType type : {NORM_1, NORM_2, NORM_INFINITY}) {
    OK(VecNorm(v, type, &norm));
    EXPECT_EQ(norm, infinity) << NormTypes[type];
  }
  set(v, 3, nan_value);
  for (const NormType type : {NORM_1, NORM_2}) {
    OK(VecNorm(v, type, &norm));
    EXPECT_TRUE(std::isnan(norm)) << NormTypes[type];
  }
}

// PETSc remembers norms until the vector changes.
TEST_P(Vectors, ForgetNormsWhenTheyChange) {
  Pair      x, y;
  PetscReal a, b;
  PetscBool known;

  make(400, 11, x);
  make(400, 12, y);
  const auto check = [&](const char *what) {
    OK(VecNorm(x.ours, NORM_2, &a));
    OK(VecNorm(x.plain, NORM_2, &b));
    EXPECT_NEAR(a, b, 1e-12 * b) << what;
    OK(VecNormAvailable(x.ours, NORM_2, &known, &a));
    EXPECT_TRUE(known) << what;
  };
  check("at first");
  for (const Vec v : {Vec(x.ours), Vec(x.plain)}) OK(VecScale(v, -3.0));
  OK(VecNormAvailable(x.ours, NORM_2, &known, &a));
  EXPECT_TRUE(known) << "VecScale() scales the norms that are known";
  check("scaled");
  OK(VecAXPY(x.ours, 2.0, y.ours));
  OK(VecAXPY(x.plain, 2.0, y.plain));
  OK(VecNormAvailable(x.ours, NORM_2, &known, &a));
  EXPECT_FALSE(known);
  check("axpy");
  OK(VecPointwiseMult(x.ours, x.ours, y.ours));
  OK(VecPointwiseMult(x.plain, x.plain, y.plain));
  check("product");
  OK(VecAYPX(x.ours, 0.0, y.ours));
  OK(VecAYPX(x.plain, 0.0, y.plain));
  check("aypx with 0");
}

TEST_P(Vectors, GiveTheSameBitsInEveryRun) {
  Pair        x, y;
  PetscScalar first = 0, now;
  PetscReal   norm = 0, again;

  make(100003, 22, x);
  make(100003, 23, y);
  for (int run = 0; run < 100; run++) {
    OK(VecDot(x.ours, y.ours, run ? &now : &first));
    move_to_memory_of_type(x.ours); // counts as a change, so that the norm is computed anew
    OK(VecNorm(x.ours, NORM_2, run ? &again : &norm));
    if (run) {
      ASSERT_EQ(now, first);
      ASSERT_EQ(again, norm);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Vectors, testing::Values("host"), backend_name<testing::TestParamInfo<const char *>>);
INSTANTIATE_TEST_SUITE_P(Gpu, Vectors, testing::Values("cuda_core", "tensor_core"),
                         backend_name<testing::TestParamInfo<const char *>>);

} // namespace
