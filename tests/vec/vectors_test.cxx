// ranks: 1 2 3
// Vectors of type tcbound do what PETSc's own do: every operation that is ours, on all ways to come by a vector.
#include <petscksp.h>

#include "mat/support.h"

namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();

// One backend a test.
class Vectors : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    const char *why_not = nullptr;
    (void)check_comm();
    if (on_device() && !has_device(&why_not)) GTEST_SKIP() << why_not;
    option("-vec_tcbound_backend", GetParam());
  }
  void TearDown() override {
    for (const std::string &name : options_) OK(PetscOptionsClearValue(nullptr, name.c_str()));
  }
  void option(const char *name, const char *value) {
    OK(PetscOptionsSetValue(nullptr, name, value));
    options_.push_back(name);
  }
  bool on_device() const { return std::string(GetParam()) != "host"; }

  // PETSc's type beneath ours.
  std::string base_type() const { return std::string(world_size() == 1 ? "seq" : "mpi") + (on_device() ? "cuda" : ""); }

  // Parts of `local` elements a rank, but none on rank 1.
  static PetscInt part(PetscInt local) { return world_rank() == 1 ? 0 : local; }

  void make(PetscInt local, std::uint64_t seed, Vec *v, VecType type = VECTCBOUND) const {
    OK(VecCreate(PETSC_COMM_WORLD, v));
    OK(VecSetSizes(*v, part(local), PETSC_DETERMINE));
    OK(VecSetType(*v, type));
    if (seed) randomize(*v, seed);
  }

  // A vector and its twin of PETSc's standard type with the same elements.
  struct Pair {
    Handle<Vec> ours, plain;
  };
  void make(PetscInt local, std::uint64_t seed, Pair &pair) const {
    make(local, seed, &pair.ours);
    make(local, seed, &pair.plain, VECSTANDARD);
    move_to_memory_of_type(pair.ours);
  }

  static bool is_ours(Vec v) {
    PetscBool is = PETSC_FALSE;
    OK(VecIsTCBound(v, &is));
    return is;
  }

  // Each element within `rounding` units of the larger one of it and `scale`.
  static void expect_near(Vec ours, Vec plain, const std::string &what, double rounding = 8, double scale = 1) {
    double worst = 0;
    on_host(ours, [&](PetscScalar *a, PetscInt n) {
      on_host(plain, [&](PetscScalar *b, PetscInt) {
        for (PetscInt i = 0; i < n; i++) {
          if (std::isnan(a[i]) && std::isnan(b[i])) continue;
          if (a[i] == b[i]) continue;
          const double off = std::fabs(a[i] - b[i]) / (PETSC_MACHINE_EPSILON * std::max(scale, std::fabs(b[i])));
          worst = std::max(worst, std::isnan(off) ? HUGE_VAL : off);
        }
      });
    });
    EXPECT_LE(everywhere_most(worst), rounding) << what;
    move_to_memory_of_type(ours);
  }

  static std::vector<double> elements(Vec v) {
    std::vector<double> all;
    on_host(v, [&](PetscScalar *a, PetscInt n) { all.assign(a, a + n); });
    move_to_memory_of_type(v);
    return all;
  }

  static void set(Vec v, PetscInt at, double value) {
    on_host(v, [&](PetscScalar *a, PetscInt n) {
      if (at < n) a[at] = value;
    });
    move_to_memory_of_type(v);
  }

  void expect_all_operations(PetscInt local);
  void expect_same_sums(Pair &x, Pair &y);

private:
  std::vector<std::string> options_;
};

void Vectors::expect_all_operations(PetscInt local) {
  SCOPED_TRACE(std::to_string(local) + " elements on a rank");
  Pair x, y, z, w;
  make(local, 1, x);
  make(local, 2, y);
  make(local, 3, z);
  make(local, 4, w);
  const std::string n = " of " + std::to_string(local);
  for (const PetscScalar a : {0.0, 1.0, -1.0, 0.37, -2e5})
    for (const PetscScalar b : {0.0, 1.0, -1.3}) {
      const std::string what = std::to_string(a) + ", " + std::to_string(b) + n;
      const double      size = 1 + std::fabs(a) + std::fabs(b);
      const auto        each = [&](const std::string &name, auto run) {
        randomize(w.ours, 4);
        randomize(w.plain, 4);
        move_to_memory_of_type(w.ours);
        OK(run(w.ours, x.ours, y.ours));
        OK(run(w.plain, x.plain, y.plain));
        expect_near(w.ours, w.plain, name + " " + what, 4, size);
      };
      each("AXPBYPCZ", [&](Vec c, Vec p, Vec q) { return VecAXPBYPCZ(c, a, b, 0.5, p, q); });
      each("AXPBYPCZ, 1", [&](Vec c, Vec p, Vec q) { return VecAXPBYPCZ(c, a, b, 1.0, p, q); });
      each("AXPBYPCZ, 0", [&](Vec c, Vec p, Vec q) { return VecAXPBYPCZ(c, a, b, 0.0, p, q); });
      each("AXPBY", [&](Vec c, Vec p, Vec) { return VecAXPBY(c, a, b, p); });
      if (b != 0.0) continue;
      each("AXPY", [&](Vec c, Vec p, Vec) { return VecAXPY(c, a, p); });
      each("AYPX", [&](Vec c, Vec p, Vec) { return VecAYPX(c, a, p); });
      each("WAXPY", [&](Vec c, Vec p, Vec q) { return VecWAXPY(c, a, p, q); });
      each("WAXPY of one", [&](Vec c, Vec p, Vec) { return VecWAXPY(c, a, p, p); });
      each("Scale", [&](Vec c, Vec, Vec) { return VecScale(c, a); });
      each("AXPY of itself", [&](Vec c, Vec, Vec) { return VecAXPY(c, a, c); });
      each("PointwiseMult", [&](Vec c, Vec p, Vec q) { return VecPointwiseMult(c, p, q); });
      each("PointwiseMult in place", [&](Vec c, Vec p, Vec) { return VecPointwiseMult(c, c, p); });
      each("PointwiseMult in place, second", [&](Vec c, Vec p, Vec) { return VecPointwiseMult(c, p, c); });
      each("square", [&](Vec c, Vec, Vec) { return VecPointwiseMult(c, c, c); });
    }
  expect_same_sums(x, y);
}

void Vectors::expect_same_sums(Pair &x, Pair &y) {
  PetscScalar a = 0, b = 0;
  PetscReal   p[2], q[2];
  PetscInt    n;

  OK(VecGetSize(x.ours, &n));
  const double room = 1e-15 * (static_cast<double>(n) + 16); // elements lie in [-1, 1)
  for (const auto dot : {VecDot, VecTDot}) {
    OK(dot(x.ours, y.ours, &a));
    OK(dot(x.plain, y.plain, &b));
    EXPECT_NEAR(a, b, room);
    OK(dot(x.ours, x.ours, &a));
    OK(dot(x.plain, x.plain, &b));
    EXPECT_NEAR(a, b, room);
  }
  for (const NormType type : {NORM_1, NORM_2, NORM_FROBENIUS, NORM_INFINITY, NORM_1_AND_2}) {
    OK(VecNorm(x.ours, type, p));
    OK(VecNorm(x.plain, type, q));
    EXPECT_NEAR(p[0], q[0], room) << NormTypes[type];
    if (type == NORM_1_AND_2) {
      EXPECT_NEAR(p[1], q[1], room);
    }
  }
  OK(VecDotNorm2(x.ours, y.ours, &a, p));
  OK(VecDotNorm2(x.plain, y.plain, &b, q));
  EXPECT_NEAR(a, b, room);
  EXPECT_NEAR(p[0], q[0], room);
  // Split-phase ones ask for the local sums.
  OK(VecDotBegin(x.ours, y.ours, &a));
  OK(VecNormBegin(x.ours, NORM_2, p));
  OK(VecDotEnd(x.ours, y.ours, &a));
  OK(VecNormEnd(x.ours, NORM_2, p));
  OK(VecDot(x.plain, y.plain, &b));
  OK(VecNorm(x.plain, NORM_2, q));
  EXPECT_NEAR(a, b, room);
  EXPECT_NEAR(p[0], q[0], room);
}

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

TEST_P(Vectors, KeepTheirTypeAndBackend) {
  Handle<Vec> v, copy, other;
  const char *kernel;

  make(100, 6, &v);
  EXPECT_EQ(type_of(object(v)), base_type());
  EXPECT_TRUE(is_ours(v));
  OK(VecTCBoundGetBackend(v, &kernel));
  EXPECT_EQ(std::string(kernel), std::string("scale/array/") + GetParam());
  OK(VecDuplicate(v, &copy));
  EXPECT_TRUE(is_ours(copy));
  OK(VecCopy(v, copy));
  EXPECT_EQ(elements(copy), elements(v));
  OK(VecTCBoundGetBackend(copy, &kernel));
  EXPECT_EQ(std::string(kernel), std::string("scale/array/") + GetParam());

  // A duplicate's backend is its own from then on.
  const std::vector<double> before = elements(copy);
  OK(VecTCBoundSetBackend(copy, "host", "auto"));
  OK(VecTCBoundGetBackend(copy, &kernel));
  EXPECT_EQ(std::string(kernel), "scale/array/host");
  OK(VecScale(copy, 2.0));
  const std::vector<double> after = elements(copy);
  for (std::size_t i = 0; i < after.size(); i++) EXPECT_EQ(after[i], 2.0 * before[i]);
  OK(VecTCBoundGetBackend(v, &kernel));
  EXPECT_EQ(std::string(kernel), std::string("scale/array/") + GetParam());
  OK(VecTCBoundSetBackend(copy, GetParam(), "auto"));
  OK(VecTCBoundGetBackend(copy, &kernel));
  EXPECT_EQ(std::string(kernel), std::string("scale/array/") + GetParam());
  EXPECT_EQ(elements(copy), after);

  make(10, 0, &other, VECSTANDARD);
  EXPECT_FALSE(is_ours(other));
  EXPECT_TRUE(contains(message_of([&] { return VecTCBoundSetBackend(other, "host", "auto"); }), "type is not tcbound"));
}

TEST_P(Vectors, TakeTheirTypeFromOptions) {
  Handle<Vec> v;

  option("-test_vec_type", "tcbound");
  OK(PetscOptionsSetValue(nullptr, "-test_vec_tcbound_backend", GetParam()));
  OK(VecCreate(PETSC_COMM_WORLD, &v));
  OK(VecSetSizes(v, part(40), PETSC_DETERMINE));
  OK(VecSetOptionsPrefix(v, "test_"));
  OK(VecSetFromOptions(v));
  EXPECT_TRUE(is_ours(v));
  EXPECT_EQ(type_of(object(v)), base_type());
  randomize(v, 7);
  const std::vector<double> before = elements(v);
  OK(VecSetFromOptions(v)); // once more, and values stay
  EXPECT_TRUE(is_ours(v));
  EXPECT_EQ(elements(v), before);
  OK(PetscOptionsClearValue(nullptr, "-test_vec_tcbound_backend"));
}

TEST_P(Vectors, AreMadeFromOthersWithTheirValues) {
  Handle<Vec> v;

  make(33, 8, &v, VECSTANDARD);
  const std::vector<double> before = elements(v);
  OK(VecSetType(v, VECTCBOUND));
  EXPECT_TRUE(is_ours(v));
  EXPECT_EQ(elements(v), before);
  EXPECT_EQ(type_of(object(v)), base_type());
  OK(VecScale(v, -1.0));
  EXPECT_EQ(elements(v).size(), before.size());
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

TEST_P(Vectors, LendPartsOfThemselves) {
  Pair        x;
  Handle<IS>  odd_start, strided;
  PetscInt    begin, end;
  PetscScalar dot;

  make(1001, 13, x);
  OK(VecGetOwnershipRange(x.ours, &begin, &end));
  const PetscInt n = end - begin;
  OK(ISCreateStride(PETSC_COMM_WORLD, n > 3 ? n - 3 : 0, begin + (n > 3 ? 1 : 0), 1,
                    &odd_start)); // at an odd multiple of 8 bytes
  OK(ISCreateStride(PETSC_COMM_WORLD, n / 3, begin, 3, &strided));
  for (const IS is : {IS(odd_start), IS(strided)}) {
    Vec sub, plain_sub;
    OK(VecGetSubVector(x.ours, is, &sub));
    OK(VecGetSubVector(x.plain, is, &plain_sub));
    EXPECT_TRUE(is_ours(sub));
    OK(VecScale(sub, 1.5));
    OK(VecScale(plain_sub, 1.5));
    PetscScalar plain_dot;
    OK(VecDot(sub, sub, &dot));
    OK(VecDot(plain_sub, plain_sub, &plain_dot));
    EXPECT_NEAR(dot, plain_dot, 1e-12 * (1 + plain_dot));
    OK(VecRestoreSubVector(x.ours, is, &sub));
    OK(VecRestoreSubVector(x.plain, is, &plain_sub));
    expect_near(x.ours, x.plain, "after a subvector");
  }
  expect_all_operations(5); // and whole vectors are as before
}

TEST_P(Vectors, TakeArraysOfOthers) {
  Pair                x;
  std::vector<double> array(static_cast<std::size_t>(part(300)) + 1, 2.0);
  PetscReal           norm;

  make(300, 14, x);
  const std::vector<double> before = elements(x.ours);
  OK(VecPlaceArray(x.ours, array.data()));
  OK(VecScale(x.ours, 3.0));
  OK(VecNorm(x.ours, NORM_INFINITY, &norm));
  EXPECT_EQ(norm, 6.0);
  OK(VecResetArray(x.ours));
  EXPECT_EQ(elements(x.ours), before);
  for (std::size_t i = 0; i + 1 < array.size(); i++) ASSERT_EQ(array[i], 6.0) << "what was computed is in the array";
  OK(VecScale(x.ours, 2.0));
  OK(VecScale(x.plain, 2.0));
  expect_near(x.ours, x.plain, "after another's array", 0);
}

TEST_P(Vectors, MoveToTheHostAndBack) {
  Pair        x, y;
  Handle<Vec> copy;
  PetscBool   bound;
  const char *kernel;

  make(700, 15, x);
  make(700, 16, y);
  OK(VecBindToCPU(x.ours, PETSC_TRUE));
  EXPECT_TRUE(is_ours(x.ours));
  OK(VecTCBoundGetBackend(x.ours, &kernel));
  EXPECT_EQ(std::string(kernel), "scale/array/host");
  OK(VecScale(x.ours, 0.7));
  OK(VecScale(x.plain, 0.7));
  OK(VecAXPY(x.ours, 0.3, y.ours)); // one on either side
  OK(VecAXPY(x.plain, 0.3, y.plain));
  OK(VecAXPY(y.ours, -0.2, x.ours));
  OK(VecAXPY(y.plain, -0.2, x.plain));
  expect_same_sums(x, y);
  expect_same_sums(y, x);
  OK(VecDuplicate(x.ours, &copy));
  EXPECT_TRUE(is_ours(copy));
  OK(VecBoundToCPU(copy, &bound));
  OK(VecBindToCPU(x.ours, PETSC_FALSE));
  EXPECT_TRUE(is_ours(x.ours));
  OK(VecTCBoundGetBackend(x.ours, &kernel));
  EXPECT_EQ(std::string(kernel), std::string("scale/array/") + GetParam());
  OK(VecScale(x.ours, 0.7));
  OK(VecScale(x.plain, 0.7));
  expect_near(x.ours, x.plain, "back");
  expect_near(y.ours, y.plain, "the other");
  expect_same_sums(x, y);
}

TEST_P(Vectors, WorkWithPetscsTypes) {
  Pair        x, y;
  PetscScalar a, b;
  Vec         list[2];
  PetscScalar factors[2] = {0.5, -0.25}, many[2], plain_many[2];

  make(250, 17, x);
  make(250, 18, y);
  // Ours first, and ours second.
  OK(VecAXPY(x.ours, 0.5, y.plain));
  OK(VecAXPBYPCZ(x.ours, 0.5, 0.25, 0.75, y.plain, y.ours));
  OK(VecPointwiseMult(x.ours, x.ours, y.plain));
  OK(VecWAXPY(x.ours, 0.5, x.plain, y.plain));
  OK(VecAYPX(x.plain, 0.5, y.plain));
  expect_near(x.ours, x.plain, "WAXPY of two that are not ours");
  OK(VecAXPY(y.plain, 0.5, x.ours));
  OK(VecAXPY(y.ours, 0.5, x.plain));
  expect_near(y.ours, y.plain, "axpy to and from ours");
  OK(VecDot(x.ours, y.plain, &a));
  OK(VecDot(x.plain, y.plain, &b));
  EXPECT_NEAR(a, b, 1e-12);
  list[0] = y.plain;
  list[1] = y.ours;
  OK(VecMDot(x.ours, 2, list, many));
  OK(VecMDot(x.plain, 2, list, plain_many));
  EXPECT_NEAR(many[0], plain_many[0], 1e-12);
  EXPECT_NEAR(many[1], plain_many[1], 1e-12);
  OK(VecMAXPY(x.ours, 2, factors, list));
  OK(VecMAXPY(x.plain, 2, factors, list));
  expect_near(x.ours, x.plain, "MAXPY of both kinds");
}

TEST_P(Vectors, HaveGhosts) {
  Handle<Vec> v, copy;
  PetscInt    begin, end, n, ghosts[1];
  Vec         local;

  if (world_size() == 1) GTEST_SKIP() << "one rank has no ghosts";
  PetscInt mine = 20;
  begin = 20 * world_rank();
  end = begin + mine;
  ghosts[0] = end % (20 * world_size());
  OK(VecCreateGhost(PETSC_COMM_WORLD, mine, PETSC_DETERMINE, 1, ghosts, &v));
  if (on_device()) { // the local form is on the host
    EXPECT_TRUE(contains(message_of([&] { return VecTCBoundConvert(v); }), "a vector with ghost points lives on the host"));
    option("-vec_tcbound_backend", "auto");
  }
  OK(VecTCBoundConvert(v));
  EXPECT_TRUE(is_ours(v));
  const char *kernel;
  OK(VecTCBoundGetBackend(v, &kernel));
  EXPECT_EQ(std::string(kernel), "scale/array/host");
  randomize(v, 19);
  OK(VecDuplicate(v, &copy));
  EXPECT_TRUE(is_ours(copy));
  OK(VecCopy(v, copy));
  OK(VecScale(copy, 2.0));
  OK(VecGhostUpdateBegin(copy, INSERT_VALUES, SCATTER_FORWARD));
  OK(VecGhostUpdateEnd(copy, INSERT_VALUES, SCATTER_FORWARD));
  OK(VecGhostGetLocalForm(copy, &local));
  ASSERT_NE(local, nullptr);
  OK(VecGetLocalSize(local, &n));
  EXPECT_EQ(n, mine + 1);
  on_host(local, [&](PetscScalar *a, PetscInt) {
    for (PetscInt i = 0; i < mine; i++) EXPECT_EQ(a[i], 2.0 * random_number(19, begin + i));
    EXPECT_EQ(a[mine], 2.0 * random_number(19, ghosts[0]));
  });
  OK(VecGhostRestoreLocalForm(copy, &local));
}

TEST_P(Vectors, AreWrittenAndRead) {
  Handle<Vec>   v, back;
  TemporaryFile file;

  make(77, 20, &v);
  OK(VecScale(v, 0.5)); // so that the device has the current values
  {
    Handle<PetscViewer> viewer;
    OK(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file.path.c_str(), FILE_MODE_WRITE, &viewer));
    OK(VecView(v, viewer));
  }
  {
    Handle<PetscViewer> viewer;
    make(77, 0, &back);
    OK(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file.path.c_str(), FILE_MODE_READ, &viewer));
    OK(VecLoad(back, viewer));
  }
  EXPECT_TRUE(is_ours(back));
  EXPECT_EQ(elements(back), elements(v));
}

// Solvers take the same steps: CG (TDot, AXPY, AYPX), GMRES (MDot, MAXPY, Scale), BCGS (DotNorm2, AXPBYPCZ, WAXPY).
TEST_P(Vectors, CarrySolvers) {
  Handle<Mat>    A, plain;
  const PetscInt side = 23, n = side * side;

  option("-mat_tcbound_backend", on_device() ? "cuda_core" : "host");
  OK(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n, n, 5, nullptr, 4, nullptr, &plain));
  PetscInt begin, end;
  OK(MatGetOwnershipRange(plain, &begin, &end));
  for (PetscInt row = begin; row < end; row++) {
    const PetscInt x = row % side, y = row / side;
    OK(MatSetValue(plain, row, row, 4.1, INSERT_VALUES));
    if (x > 0) OK(MatSetValue(plain, row, row - 1, -1.0, INSERT_VALUES));
    if (x + 1 < side) OK(MatSetValue(plain, row, row + 1, -1.0, INSERT_VALUES));
    if (y > 0) OK(MatSetValue(plain, row, row - side, -1.0, INSERT_VALUES));
    if (y + 1 < side) OK(MatSetValue(plain, row, row + side, -1.0, INSERT_VALUES));
  }
  OK(MatAssemblyBegin(plain, MAT_FINAL_ASSEMBLY));
  OK(MatAssemblyEnd(plain, MAT_FINAL_ASSEMBLY));
  OK(MatConvert(plain, MATAIJTCBOUND, MAT_INITIAL_MATRIX, &A));
  for (const char *method : {KSPCG, KSPGMRES, KSPBCGS, KSPTFQMR, KSPMINRES, KSPPIPECG, KSPCHEBYSHEV}) {
    PetscInt  steps[2];
    PetscReal residual[2];
    for (const bool ours : {true, false}) {
      Handle<KSP> ksp;
      Handle<Vec> x, b;
      PC          pc;
      PetscInt    local;
      OK(MatGetLocalSize(plain, &local, nullptr));
      OK(VecCreate(PETSC_COMM_WORLD, &b));
      OK(VecSetSizes(b, local, PETSC_DETERMINE));
      OK(VecSetType(b, ours ? VECTCBOUND : VECSTANDARD));
      randomize(b, 21);
      OK(VecDuplicate(b, &x));
      OK(KSPCreate(PETSC_COMM_WORLD, &ksp));
      OK(KSPSetType(ksp, method));
      OK(KSPSetOperators(ksp, ours ? A : plain, ours ? A : plain));
      OK(KSPGetPC(ksp, &pc));
      OK(PCSetType(pc, PCJACOBI));
      OK(KSPSetTolerances(ksp, 1e-8, PETSC_CURRENT, PETSC_CURRENT, 500));
      OK(KSPSolve(ksp, b, x));
      OK(KSPGetIterationNumber(ksp, &steps[ours]));
      Handle<Vec> r, plain_x;
      OK(VecCreate(PETSC_COMM_WORLD, &r));
      OK(VecSetSizes(r, local, PETSC_DETERMINE));
      OK(VecSetType(r, VECSTANDARD));
      OK(VecDuplicate(r, &plain_x));
      const std::vector<double> solution = elements(x);
      on_host(plain_x, [&](PetscScalar *a, PetscInt) { std::copy(solution.begin(), solution.end(), a); });
      OK(MatMult(plain, plain_x, r));
      on_host(r, [&](PetscScalar *a, PetscInt m) {
        for (PetscInt i = 0; i < m; i++) a[i] -= random_number(21, begin + i);
      });
      OK(VecNorm(r, NORM_2, &residual[ours]));
    }
    EXPECT_NEAR(steps[0], steps[1], 1 + 0.1 * steps[0]) << method; // rounding sends some methods another way
    EXPECT_LE(residual[1], 2 * residual[0] + 1e-7) << method;
  }
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

class VectorErrors : public testing::Test {
protected:
  void SetUp() override { (void)check_comm(); }

  static std::string make(const char *backend, const char *mma) {
    Vec v;
    OK(PetscOptionsSetValue(nullptr, "-vec_tcbound_backend", backend));
    OK(PetscOptionsSetValue(nullptr, "-vec_tcbound_mma", mma));
    OK(VecCreate(PETSC_COMM_WORLD, &v));
    OK(VecSetSizes(v, 3, PETSC_DETERMINE));
    const std::string text = message_of([&] { return VecSetType(v, VECTCBOUND); });
    OK(VecDestroy(&v));
    OK(PetscOptionsClearValue(nullptr, "-vec_tcbound_backend"));
    OK(PetscOptionsClearValue(nullptr, "-vec_tcbound_mma"));
    return text;
  }
};

TEST_F(VectorErrors, NameWhatIsValid) {
  EXPECT_TRUE(contains(make("tensor_cores", "auto"), "-vec_tcbound_backend tensor_cores: there is no such choice; did you mean "
                                                     "tensor_core? Valid: auto, host, cuda_core, tensor_core"));
  EXPECT_TRUE(contains(make("auto", "m16n8k7"), "Valid: auto, m8n8k4, m16n8k4, m16n8k8, m16n8k16"));
  EXPECT_TRUE(contains(make("host", "m8n8k4"), "-vec_tcbound_mma m8n8k4 chooses the instruction of -vec_tcbound_backend "
                                               "tensor_core, and the backend is host"));
}

TEST_F(VectorErrors, SayWhatIsMissing) {
  const char *why_not = nullptr;
  if (has_device(&why_not)) GTEST_SKIP() << "there is a device";
  for (const char *backend : {"cuda_core", "tensor_core"}) {
    const std::string text = make(backend, "auto");
    EXPECT_TRUE(contains(text, std::string("-vec_tcbound_backend ") + backend + " cannot run here: " + why_not)) << text;
    EXPECT_TRUE(contains(text, "-vec_tcbound_backend auto or host works everywhere")) << text;
  }
  EXPECT_EQ(make("auto", "auto"), "");
}

} // namespace
