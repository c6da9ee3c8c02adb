#pragma once

// Vectors of type tcbound beside PETSc's own with the same elements.

#include <petscksp.h>

#include "mat/support.h"

namespace {

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

inline void Vectors::expect_all_operations(PetscInt local) {
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

inline void Vectors::expect_same_sums(Pair &x, Pair &y) {
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

} // namespace
