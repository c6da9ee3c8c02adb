// ranks: 1 2 4 6
// Matrices of type stenciltcbound against AIJ from the same DMDA: all kinds of grids, products and what is stored.
#include "mat/stencil_grids.h"

namespace {

using StencilProducts = OnBackend;

constexpr Fill fills[] = {Fill::constant, Fill::dirichlet, Fill::variable, Fill::some_zero, Fill::symmetric, Fill::replaced};

TEST_P(StencilProducts, AgreeOnRandomGrids) {
  for (std::uint64_t seed = 1; seed <= 60; seed++) {
    const Grid g = random_grid(seed);
    const auto how = fills[random_index(seed, 90, 6)];
    SCOPED_TRACE(g.describe() + ", fill " + std::to_string(static_cast<int>(how)));
    StencilPair m(g, how, seed);
    EXPECT_EQ(type_of(object(m.ours)), MATSTENCILTCBOUND);
    EXPECT_TRUE(everywhere(same_rows(m.ours, m.aij)));
    for (VecType type : vec_types()) expect_same_products(m.ours, m.aij, type);
  }
}

// On a periodic grid as short as its stencil, several offsets lead to the same cell, and values for them meet.
TEST_P(StencilProducts, AgreeOnShortPeriodicGrids) {
  if (world_size() > 1) return;
  for (PetscInt n = 1; n <= 7; n++)
    for (PetscInt width = 1; width <= PetscMin(n, 3); width++)
      for (bool star : {false, true}) {
        Grid g;
        g.dim = 2;
        g.size[0] = n;
        g.size[1] = 5;
        g.width = width;
        g.star = star;
        g.boundary[0] = g.boundary[1] = DM_BOUNDARY_PERIODIC;
        SCOPED_TRACE(g.describe());
        for (Fill how : fills) {
          StencilPair m(g, how);
          EXPECT_TRUE(same_rows(m.ours, m.aij));
          expect_same_products(m.ours, m.aij);
        }
      }
}

// Grids that have kernels for coefficients that vary, large enough for some cells of every rank to need no layer.
TEST_P(StencilProducts, AgreeWithCoefficientsThatVary) {
  const DMBoundaryType none = DM_BOUNDARY_NONE, periodic = DM_BOUNDARY_PERIODIC;
  for (const bool star : {false, true})
    for (const PetscInt dim : {2, 3})
      for (const auto &[x, z] : {std::pair{none, none}, {periodic, none}, {none, periodic}, {periodic, periodic}}) {
        Grid g = dim == 3 ? grid_of(3, 37, 19, 17, star) : grid_of(2, 75, 41, 1, star);
        g.boundary[0] = x;
        g.boundary[dim - 1] = z;
        for (const Fill how : {Fill::variable, Fill::symmetric, Fill::replaced}) {
          SCOPED_TRACE(g.describe() + ", fill " + std::to_string(static_cast<int>(how)));
          StencilPair m(g, how);
          EXPECT_TRUE(everywhere(same_rows(m.ours, m.aij)));
          for (VecType type : vec_types()) expect_same_products(m.ours, m.aij, type);
          if (how == Fill::variable) continue; // one bit more
          for (Mat A : {static_cast<Mat>(m.ours), static_cast<Mat>(m.aij)}) {
            PetscInt    begin, end, row;
            PetscScalar value;
            OK(MatGetOwnershipRange(A, &begin, &end));
            row = (begin + end) / 2;
            OK(MatGetValues(A, 1, &row, 1, &row, &value));
            const PetscInt column = row + 1;
            if (column < end) {
              OK(MatGetValues(A, 1, &row, 1, &column, &value));
              OK(MatSetValue(A, row, column, std::nextafter(value, 7.0), INSERT_VALUES));
            }
            OK(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
            OK(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
          }
          EXPECT_TRUE(everywhere(same_rows(m.ours, m.aij)));
          expect_same_products(m.ours, m.aij);
        }
      }
}

TEST_P(StencilProducts, KeepNaNAndInfWhereTheyBelong) {
  Grid g;
  g.dim = 3;
  g.size[0] = 9;
  g.size[1] = 8;
  g.size[2] = 13;
  StencilPair       m(g, Fill::constant);
  const Bound       bound(m.aij);
  const PetscScalar inf = std::numeric_limits<double>::infinity();
  for (bool transpose : {false, true}) {
    Handle<Vec> x;
    PetscInt    begin;
    make_vector(m.ours, transpose, VECSTANDARD, 5, &x);
    OK(VecGetOwnershipRange(x, &begin, nullptr));
    on_host(x, [&](PetscScalar *array, PetscInt n) {
      for (PetscInt k = 0; k < n; k++) {
        if (begin + k == 3) array[k] = inf;
        if (begin + k == 300) array[k] = std::numeric_limits<double>::quiet_NaN();
      }
    });
    EXPECT_LE(product_excess(m.ours, m.aij, bound, transpose, false, false, false, x), 1.0) << transpose;
  }
}

TEST_P(StencilProducts, GiveTheDiagonal) {
  for (std::uint64_t seed = 50; seed < 60; seed++) {
    const Grid g = random_grid(seed);
    SCOPED_TRACE(g.describe());
    StencilPair m(g, seed % 2 ? Fill::variable : Fill::dirichlet, seed);
    for (VecType type : vec_types()) {
      Handle<Vec> ours, reference, limit;
      make_vector(m.ours, true, type, 0, &ours);
      make_vector(m.ours, true, VECSTANDARD, 0, &reference);
      make_vector(m.ours, true, VECSTANDARD, 1, &limit);
      OK(VecSet(limit, 0.0));
      OK(MatGetDiagonal(m.ours, ours));
      OK(MatGetDiagonal(m.aij, reference));
      EXPECT_EQ(excess(ours, reference, limit), 0.0);
    }
  }
}

// Products follow every change of the coefficients.
TEST_P(StencilProducts, FollowChangedValues) {
  Grid g;
  g.dim = 2;
  g.size[0] = 30;
  g.size[1] = 13;
  StencilPair m(g, Fill::constant);
  for (Fill how : fills) {
    expect_same_products(m.ours, m.aij);
    OK(MatZeroEntries(m.ours));
    OK(MatZeroEntries(m.aij));
    fill(m.da, g, m.ours, how, ADD_VALUES, 77);
    fill(m.da, g, m.aij, how, ADD_VALUES, 77);
    expect_same_products(m.ours, m.aij);
    fill(m.da, g, m.ours, how, ADD_VALUES, 78);
    fill(m.da, g, m.aij, how, ADD_VALUES, 78);
  }
}

// Transposed ones too, and where one rank alone has set any.
TEST_P(StencilProducts, FollowValuesSetOnOneRank) {
  StencilPair m(grid_of(2, 30, 13, 1), Fill::constant);
  for (const double value : {3.0, 4.0, 5.0}) {
    expect_same_products(m.ours, m.aij);
    for (Mat A : {static_cast<Mat>(m.ours), static_cast<Mat>(m.aij)}) {
      PetscInt row;
      OK(MatGetOwnershipRange(A, &row, nullptr));
      if (world_rank() == 0) OK(MatSetValue(A, row, row, value, INSERT_VALUES));
      OK(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
      OK(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    }
  }
  expect_same_products(m.ours, m.aij);
  OK(MatTCBoundSetFormat(m.ours, "auto")); // which is its only one
  expect_same_products(m.ours, m.aij);
}

INSTANTIATE_TEST_SUITE_P(Host, StencilProducts, testing::Values("host"), backend_name<testing::TestParamInfo<const char *>>);
INSTANTIATE_TEST_SUITE_P(Gpu, StencilProducts, testing::Values("cuda_core"),
                         backend_name<testing::TestParamInfo<const char *>>);

} // namespace
