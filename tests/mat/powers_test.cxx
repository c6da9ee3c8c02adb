// ranks: 1 2 4 6
// Powers of a matrix times a vector against as many products of a plain AIJ matrix.
#include "mat/stencil_grids.h"

namespace {

using Powers = OnBackend;

// Makes products of vectors in [-1, 1] lie there too.
void shrink(StencilPair &m) {
  PetscReal norm;
  OK(MatNorm(m.aij, NORM_INFINITY, &norm));
  if (norm == 0.0) return; // on short periodic grids values meet, of which the last stays
  OK(MatScale(m.aij, 1.0 / norm));
  OK(MatScale(m.ours, 1.0 / norm));
}

double difference(Vec ours, Vec reference) {
  Handle<Vec> limit;
  OK(VecDuplicate(reference, &limit));
  OK(VecSet(limit, 1.0));
  return excess(ours, reference, limit);
}

void expect_same_power(Mat ours, Mat reference, PetscInt k, VecType type) {
  Handle<Vec> x, y, rx, ry, before;
  make_vector(ours, false, type, 3, &x);
  make_vector(ours, true, type, 0, &y);
  make_vector(reference, false, VECSTANDARD, 3, &rx);
  make_vector(reference, true, VECSTANDARD, 0, &ry);
  move_to_memory_of_type(x);
  for (PetscInt i = 0; i < k; i++) {
    OK(MatMult(reference, rx, ry));
    OK(VecCopy(ry, rx));
  }
  OK(MatTCBoundMultPowers(ours, k, x, y));
  EXPECT_LE(difference(y, rx), 1e-14 * (1.0 + static_cast<double>(k))) << "power " << k;
  make_vector(reference, false, VECSTANDARD, 3, &before);
  EXPECT_EQ(difference(x, before), 0.0) << "x has changed";
}

// What a matrix says of its powers once it has computed one.
std::string view_of_power(Mat A) {
  Handle<Vec> x, y;
  make_vector(A, false, VECSTANDARD, 3, &x);
  make_vector(A, true, VECSTANDARD, 0, &y);
  OK(MatTCBoundMultPowers(A, 2, x, y));
  return text_of([&](PetscViewer viewer) {
    OK(PetscViewerPushFormat(viewer, PETSC_VIEWER_ASCII_INFO));
    OK(MatView(A, viewer));
    OK(PetscViewerPopFormat(viewer));
  });
}

constexpr Fill fills[] = {Fill::constant, Fill::dirichlet, Fill::variable, Fill::some_zero};

TEST_P(Powers, AgreeWithProductsOnRandomGrids) {
  for (std::uint64_t seed = 1; seed <= 40; seed++) {
    Grid g = random_grid(seed);
    auto how = fills[random_index(seed, 90, 4)];
    if (seed % 2) { // which can be fused, but for some shapes
      g.dof = 1;
      for (DMBoundaryType &boundary : g.boundary) boundary = boundary == DM_BOUNDARY_PERIODIC ? DM_BOUNDARY_NONE : boundary;
      how = seed % 4 == 1 ? Fill::constant : Fill::some_zero;
    }
    SCOPED_TRACE(g.describe() + ", fill " + std::to_string(static_cast<int>(how)));
    StencilPair m(g, how, seed);
    shrink(m);
    for (VecType type : vec_types())
      for (PetscInt k : {0, 1, 2, 7}) expect_same_power(m.ours, m.aij, k, type);
  }
}

std::vector<Grid> fused_grids() {
  return {grid_of(1, 97, 1, 1, true, 1),   grid_of(1, 61, 1, 1, true, 3),    grid_of(2, 41, 37, 1, true, 1),
          grid_of(2, 43, 29, 1, false, 1), grid_of(2, 31, 34, 1, true, 2),   grid_of(2, 37, 33, 1, false, 3),
          grid_of(3, 17, 19, 23, true, 1), grid_of(3, 19, 13, 17, false, 1), grid_of(3, 23, 17, 19, true, 2)};
}

TEST_P(Powers, AreFusedWhereCoefficientsAreConstant) {
  for (const Grid &g : fused_grids())
    for (const char *steps : {"0", "1", "2"}) {
      SCOPED_TRACE(g.describe() + ", steps " + steps);
      option("-mat_tcbound_steps", steps);
      StencilPair m(g, Fill::constant, 7);
      shrink(m);
      const std::string info = view_of_power(m.ours);
      EXPECT_TRUE(contains(info, "powers by stencil/iterated/" + backend())) << info;
      for (VecType type : vec_types())
        for (PetscInt k : {1, 2, 3, 8, 19}) expect_same_power(m.ours, m.aij, k, type);
    }
}

// A ring of identity rows keeps its values.
TEST_P(Powers, AreFusedInsideOfARing) {
  for (const Grid &g : {grid_of(2, 41, 37, 1, true, 1), grid_of(3, 23, 21, 25, false, 1)}) {
    SCOPED_TRACE(g.describe());
    StencilPair m(g, Fill::dirichlet, 7); // 2 in the ring
    OK(MatScale(m.aij, 0.5));
    OK(MatScale(m.ours, 0.5));
    const std::string info = view_of_power(m.ours);
    EXPECT_TRUE(contains(info, "powers by stencil/iterated/" + backend())) << info;
    for (PetscInt k : {1, 2, 3, 5}) { // values grow by the norm of the rows
      Handle<Vec> x, y, rx, ry, limit;
      make_vector(m.ours, false, VECSTANDARD, 3, &x);
      make_vector(m.ours, true, VECSTANDARD, 0, &y);
      make_vector(m.aij, false, VECSTANDARD, 3, &rx);
      OK(VecDuplicate(rx, &ry));
      OK(VecDuplicate(rx, &limit));
      PetscReal norm;
      OK(MatNorm(m.aij, NORM_INFINITY, &norm));
      OK(VecSet(limit, 1e-14 * std::pow(std::max(norm, 1.0), static_cast<double>(k))));
      for (PetscInt i = 0; i < k; i++) {
        OK(MatMult(m.aij, rx, ry));
        OK(VecCopy(ry, rx));
      }
      OK(MatTCBoundMultPowers(m.ours, k, x, y));
      EXPECT_LE(excess(y, rx, limit), 1.0) << "power " << k;
    }
  }
}

TEST_P(Powers, SayWhyTheyAreNotFused) {
  const auto expect_reason = [](const Grid &g, Fill how, const std::string &reason) {
    SCOPED_TRACE(g.describe());
    StencilPair       m(g, how, 7);
    const std::string info = view_of_power(m.ours);
    EXPECT_TRUE(contains(info, "powers no: " + reason)) << info;
    shrink(m);
    expect_same_power(m.ours, m.aij, 4, VECSTANDARD);
  };
  Grid g = grid_of(2, 41, 37, 1, true, 1);
  expect_reason(g, Fill::variable, "coefficients vary");
  expect_reason(g, Fill::dirichlet, "rows around the grid are not the identity's"); // but twice
  g.boundary[1] = DM_BOUNDARY_PERIODIC;
  expect_reason(g, Fill::constant, "the grid is periodic");
  g = grid_of(2, 41, 37, 1, true, 1);
  g.dof = 2;
  expect_reason(g, Fill::constant, "cells have 2 components");
  g = grid_of(2, 41, 37, 1, true, 2); // the ring is one cell wide
  expect_reason(g, Fill::dirichlet, "rows differ, and not as a ring of 2 cells");
  expect_reason(grid_of(1, 47, 1, 1, true, 1), Fill::dirichlet, "rows at the ends of a grid of one dimension differ");
  if (world_size() > 1) {
    StencilPair m(grid_of(2, 41, 37, 1, true, 1), Fill::constant, 7);
    PetscInt    begin, end;
    OK(MatGetOwnershipRange(m.ours, &begin, &end)); // other values on the last rank, in all of its rows
    for (Mat A : {Mat(m.ours), Mat(m.aij)}) {
      for (PetscInt row = begin; row < end; row++)
        OK(MatSetValue(A, row, row, world_rank() == world_size() - 1 ? 5.0 : 6.0, INSERT_VALUES));
      OK(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
      OK(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    }
    const std::string info = view_of_power(m.ours);
    EXPECT_TRUE(contains(info, "ranks have different coefficients")) << info;
    shrink(m);
    expect_same_power(m.ours, m.aij, 4, VECSTANDARD);
  }
}

// Fused powers follow every change of the coefficients, also where one rank alone sets values.
TEST_P(Powers, FollowChangedValues) {
  StencilPair m(grid_of(2, 41, 37, 1, true, 1), Fill::constant, 7);
  shrink(m);
  expect_same_power(m.ours, m.aij, 3, VECSTANDARD);
  for (Mat A : {Mat(m.ours), Mat(m.aij)}) OK(MatScale(A, 0.75));
  expect_same_power(m.ours, m.aij, 3, VECSTANDARD);
  for (Mat A : {Mat(m.ours), Mat(m.aij)}) {
    if (world_rank() == 0) OK(MatSetValue(A, 0, 0, 0.125, INSERT_VALUES));
    OK(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    OK(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  }
  expect_same_power(m.ours, m.aij, 3, VECSTANDARD);
  for (Fill how : fills) {
    fill(m.da, m.g, m.ours, how, INSERT_VALUES, 9);
    fill(m.da, m.g, m.aij, how, INSERT_VALUES, 9);
    shrink(m);
    expect_same_power(m.ours, m.aij, 5, VECSTANDARD);
  }
}

TEST_P(Powers, OfOtherMatrices) {
  StencilPair m(grid_of(2, 21, 17, 1, false, 1), Fill::variable, 7);
  shrink(m);
  for (const char *type : {MATAIJ, MATAIJTCBOUND}) {
    Handle<Mat> A;
    OK(MatConvert(m.aij, type, MAT_INITIAL_MATRIX, &A));
    for (PetscInt k : {0, 1, 2, 5, 6}) expect_same_power(A, m.aij, k, VECSTANDARD);
  }
}

TEST_P(Powers, RefuseWhatTheyCannot) {
  StencilPair m(grid_of(2, 21, 17, 1, true, 1), Fill::constant, 7);
  Handle<Vec> x, y;
  make_vector(m.ours, false, VECSTANDARD, 3, &x);
  make_vector(m.ours, true, VECSTANDARD, 0, &y);
  EXPECT_TRUE(contains(message_of([&] { return MatTCBoundMultPowers(m.ours, -1, x, y); }), "must be 0 or more"));
  EXPECT_TRUE(contains(message_of([&] { return MatTCBoundMultPowers(m.ours, 2, x, x); }), "different vectors"));
  option("-mat_tcbound_steps", "77");
  StencilPair other(m.g, Fill::constant, 7);
  for (int again = 0; again < 2; again++) {
    const std::string text = message_of([&] { return MatTCBoundMultPowers(other.ours, 2, x, y); });
    EXPECT_TRUE(contains(text, "passes of 77 steps; there are passes of 1, 2")) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Host, Powers, testing::Values("host"), backend_name<testing::TestParamInfo<const char *>>);
INSTANTIATE_TEST_SUITE_P(Gpu, Powers, testing::Values("cuda_core"), backend_name<testing::TestParamInfo<const char *>>);

} // namespace
