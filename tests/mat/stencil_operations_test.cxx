// ranks: 1 2 4 6
// Operations on stenciltcbound matrices against the same on AIJ, ways of setting values, conversions, errors.
#include <cstring>

#include "mat/stencil_grids.h"

namespace {

using StencilOperations = OnBackend;

Grid grid_3d(PetscInt dof = 1, bool star = true, PetscInt width = 1) {
  Grid g;
  g.dim = 3;
  g.size[0] = 7;
  g.size[1] = 6 * width;
  g.size[2] = 6 * width;
  g.dof = dof;
  g.star = star;
  g.width = width;
  g.boundary[1] = DM_BOUNDARY_PERIODIC;
  return g;
}

Grid grid_2d(PetscInt dof = 1) {
  Grid g;
  g.dim = 2;
  g.size[0] = 19;
  g.size[1] = 17;
  g.dof = dof;
  g.star = false;
  return g;
}

constexpr double rounding = 1e-14; // of values near 1 after one or two operations

// Runs f on both matrices, and expects the same entries and products.
template <class F> void expect_same_after(const Grid &g, F f, double tolerance = 0.0) {
  for (Fill how : {Fill::constant, Fill::dirichlet, Fill::variable, Fill::some_zero, Fill::symmetric, Fill::replaced}) {
    SCOPED_TRACE(g.describe() + ", fill " + std::to_string(static_cast<int>(how)));
    StencilPair m(g, how);
    OK(MatSetOption(m.ours, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
    OK(MatSetOption(m.aij, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE)); // the stencil keeps its points
    f(m.ours, m);
    f(m.aij, m);
    EXPECT_TRUE(everywhere(same_rows(m.ours, m.aij, tolerance)));
    expect_same_products(m.ours, m.aij);
  }
}

// Called with the vector of ours, then with that of the reference.
void expect_same_norms(Vec b, bool second) {
  static PetscReal first;
  PetscReal        norm;
  OK(VecNorm(b, NORM_2, &norm));
  if (second) {
    EXPECT_NEAR(norm, first, 1e-12 * norm);
  }
  first = norm;
}

template <class F> void expect_same_after(F f, double tolerance = 0.0) {
  for (const Grid &g : {grid_3d(), grid_3d(2), grid_2d(), grid_2d(3)}) expect_same_after(g, f, tolerance);
}

TEST_P(StencilOperations, Scale) {
  expect_same_after([](Mat A, const StencilPair &) { OK(MatScale(A, -2.5)); });
}

TEST_P(StencilOperations, Shift) {
  expect_same_after([](Mat A, const StencilPair &) { OK(MatShift(A, 3.25)); });
}

TEST_P(StencilOperations, DiagonalScale) {
  expect_same_after(
    [](Mat A, const StencilPair &) {
      Handle<Vec> l, r;
      OK(MatCreateVecs(A, &r, &l));
      randomize(l, 3);
      randomize(r, 4);
      OK(MatDiagonalScale(A, l, nullptr));
      OK(MatDiagonalScale(A, nullptr, r));
      OK(MatDiagonalScale(A, l, r));
    },
    rounding);
}

TEST_P(StencilOperations, ZeroRows) {
  expect_same_after([](Mat A, const StencilPair &m) {
    Handle<Vec>           x, b;
    PetscInt              n;
    std::vector<PetscInt> rows;
    OK(MatCreateVecs(A, &x, &b));
    randomize(x, 3);
    randomize(b, 4);
    OK(MatGetSize(A, &n, nullptr));
    if (world_rank() == 0) // mostly rows of other ranks
      for (PetscInt row = 1; row < n; row += 11) rows.push_back(row);
    OK(MatZeroRows(A, static_cast<PetscInt>(rows.size()), rows.data(), 2.0, x, b));
    expect_same_norms(b, A == Mat(m.aij));
  });
}

TEST_P(StencilOperations, ZeroRowsStencilAndLocal) {
  expect_same_after([](Mat A, const StencilPair &m) {
    PetscInt x, y, z, gx, gy, gz;
    OK(DMDAGetCorners(m.da, &x, &y, &z, nullptr, nullptr, nullptr));
    OK(DMDAGetGhostCorners(m.da, &gx, &gy, &gz, nullptr, nullptr, nullptr));
    const MatStencil row = {z, y, x, m.g.dof - 1};
    OK(MatZeroRowsStencil(A, 1, &row, 1.5, nullptr, nullptr));
    const PetscInt local = 0; // of a ghost, on ranks that have one there
    OK(MatZeroRowsLocal(A, 1, &local, -1.0, nullptr, nullptr));
  });
}

TEST_P(StencilOperations, ZeroRowsColumns) {
  expect_same_after(
    [](Mat A, const StencilPair &m) {
      Handle<Vec>           x, b;
      PetscInt              begin, end;
      std::vector<PetscInt> rows;
      OK(MatCreateVecs(A, &x, &b));
      randomize(x, 3);
      randomize(b, 4);
      OK(MatGetOwnershipRange(A, &begin, &end));
      for (PetscInt row = begin; row < end; row += 5) rows.push_back(row);
      OK(MatZeroRowsColumns(A, static_cast<PetscInt>(rows.size()), rows.data(), 2.0, x, b));
      expect_same_norms(b, A == Mat(m.aij));
    },
    0.0);
}

TEST_P(StencilOperations, AXPY) {
  for (const Grid &g : {grid_3d(), grid_2d(2)})
    for (Fill how : {Fill::constant, Fill::variable, Fill::dirichlet}) {
      StencilPair m(g, how, 1), other(g, Fill::some_zero, 2);
      OK(MatAXPY(m.ours, 0.5, other.ours, SAME_NONZERO_PATTERN));
      OK(MatAXPY(m.aij, 0.5, other.aij, SAME_NONZERO_PATTERN));
      EXPECT_TRUE(everywhere(same_rows(m.ours, m.aij, rounding)));
    }
}

TEST_P(StencilOperations, DuplicateAndCopy) {
  for (Fill how : {Fill::constant, Fill::variable, Fill::dirichlet}) {
    StencilPair m(grid_3d(), how);
    Handle<Mat> copy, empty;
    OK(MatDuplicate(m.ours, MAT_COPY_VALUES, &copy));
    OK(MatDuplicate(m.ours, MAT_DO_NOT_COPY_VALUES, &empty));
    OK(MatScale(m.ours, 7.0));
    EXPECT_TRUE(everywhere(same_rows(copy, m.aij)));
    expect_same_products(copy, m.aij);
    PetscReal norm;
    OK(MatNorm(empty, NORM_FROBENIUS, &norm));
    EXPECT_EQ(norm, 0.0);
    OK(MatCopy(copy, empty, SAME_NONZERO_PATTERN));
    EXPECT_TRUE(everywhere(same_rows(empty, m.aij)));
    Handle<Mat> plain; // of another type
    OK(MatDuplicate(m.aij, MAT_COPY_VALUES, &plain));
    OK(MatScale(plain, 3.0));
    OK(MatCopy(copy, plain, SAME_NONZERO_PATTERN));
    EXPECT_TRUE(everywhere(same_rows(plain, m.aij)));
    OK(MatScale(copy, 2.0));
    OK(MatCopy(plain, copy, SAME_NONZERO_PATTERN));
    EXPECT_TRUE(everywhere(same_rows(copy, m.aij)));
    fill(m.da, m.g, empty, how, INSERT_VALUES, 5); // a copy can be filled like the first
    fill(m.da, m.g, m.aij, how, INSERT_VALUES, 5);
    expect_same_products(empty, m.aij);
  }
}

TEST_P(StencilOperations, Norms) {
  for (const Grid &g : {grid_3d(), grid_2d(3)})
    for (Fill how : {Fill::constant, Fill::variable, Fill::dirichlet}) {
      StencilPair m(g, how);
      for (NormType type : {NORM_1, NORM_INFINITY, NORM_FROBENIUS}) {
        PetscReal ours, reference;
        OK(MatNorm(m.ours, type, &ours));
        OK(MatNorm(m.aij, type, &reference));
        EXPECT_NEAR(ours, reference, 1e-12 * reference);
      }
    }
}

// A norm changes nothing, so that the next product is made as the last one was.
TEST_P(StencilOperations, NormsKeepWhatProductsNeed) {
  StencilPair    m(grid_2d(), Fill::variable);
  MatTCBoundInfo before, after;
  PetscReal      norm;
  expect_same_products(m.ours, m.aij);
  OK(MatTCBoundGetInfo(m.ours, &before));
  for (NormType type : {NORM_1, NORM_INFINITY, NORM_FROBENIUS}) OK(MatNorm(m.ours, type, &norm));
  OK(MatTCBoundGetInfo(m.ours, &after));
  EXPECT_GT(before.stored_bytes, 0);
  EXPECT_EQ(after.stored_bytes, before.stored_bytes);
  EXPECT_EQ(after.setup_seconds, before.setup_seconds);
}

TEST_P(StencilOperations, Transpose) {
  for (const Grid &g : {grid_3d(), grid_3d(2, false), grid_2d(3)})
    for (Fill how : {Fill::constant, Fill::variable, Fill::dirichlet}) {
      StencilPair m(g, how);
      Handle<Mat> ours, reference;
      OK(MatTranspose(m.ours, MAT_INITIAL_MATRIX, &ours));
      OK(MatTranspose(m.aij, MAT_INITIAL_MATRIX, &reference));
      EXPECT_TRUE(everywhere(same_rows(ours, reference)));
      OK(MatTranspose(ours, MAT_INPLACE_MATRIX, &ours));
      EXPECT_TRUE(everywhere(same_rows(ours, m.aij)));
    }
}

TEST_P(StencilOperations, ConvertBothWays) {
  for (const Grid &g : {grid_3d(), grid_2d(2)})
    for (Fill how : {Fill::constant, Fill::variable}) {
      StencilPair m(g, how);
      for (const char *type : {MATAIJ, MATAIJTCBOUND}) {
        Handle<Mat> there, back;
        OK(MatConvert(m.ours, type, MAT_INITIAL_MATRIX, &there));
        EXPECT_TRUE(everywhere(same_rows(there, m.aij)));
        OK(MatSetDM(there, m.da));
        OK(MatConvert(there, MATSTENCILTCBOUND, MAT_INITIAL_MATRIX, &back));
        EXPECT_EQ(type_of(object(back)), MATSTENCILTCBOUND);
        EXPECT_TRUE(everywhere(same_rows(back, m.aij)));
        expect_same_products(back, m.aij);
        OK(MatConvert(there, MATSTENCILTCBOUND, MAT_INPLACE_MATRIX, &there));
        EXPECT_TRUE(everywhere(same_rows(there, m.aij)));
      }
      Handle<Mat> without;
      OK(MatConvert(m.ours, MATAIJ, MAT_INITIAL_MATRIX, &without));
      Handle<Mat> none;
      EXPECT_TRUE(contains(message_of([&] { return MatConvert(without, MATSTENCILTCBOUND, MAT_INITIAL_MATRIX, &none); }),
                           "call MatSetDM() first"));
    }
}

// Finite elements: every rank adds to rows of its neighbours.
TEST_P(StencilOperations, TakeValuesForOtherRanks) {
  for (const Grid &g : {grid_2d(), grid_2d(2)}) {
    StencilPair m(g, Fill::constant);
    for (Mat A : {Mat(m.ours), Mat(m.aij)}) {
      PetscInt                 n, e;
      const PetscInt          *elements;
      std::vector<PetscScalar> values(16 * static_cast<std::size_t>(g.dof * g.dof));
      OK(DMDASetElementType(m.da, DMDA_ELEMENT_Q1));
      OK(DMDAGetElements(m.da, &n, &e, &elements));
      OK(MatZeroEntries(A));
      for (PetscInt i = 0; i < n; i++) {
        for (std::size_t k = 0; k < values.size(); k++)
          values[k] = random_number(3, static_cast<std::uint64_t>(i) * values.size() + k);
        OK(MatSetValuesBlockedLocal(A, e, elements + i * e, e, elements + i * e, values.data(), ADD_VALUES));
      }
      OK(MatAssemblyBegin(A, MAT_FLUSH_ASSEMBLY));
      OK(MatAssemblyEnd(A, MAT_FLUSH_ASSEMBLY));
      PetscInt begin;
      OK(MatGetOwnershipRange(A, &begin, nullptr));
      OK(MatSetValue(A, 0, 0, 4.0, ADD_VALUES)); // by global numbers, on all ranks
      OK(MatSetValue(A, begin, begin, 5.0, ADD_VALUES));
      OK(DMDARestoreElements(m.da, &n, &e, &elements));
      OK(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
      OK(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    }
    EXPECT_TRUE(everywhere(same_rows(m.ours, m.aij, rounding)));
  }
}

TEST_P(StencilOperations, TakeColumnOrientedValues) {
  Grid        g = grid_2d();
  StencilPair m(g, Fill::constant);
  for (Mat A : {Mat(m.ours), Mat(m.aij)}) {
    PetscInt          begin;
    const PetscScalar values[4] = {1.0, 2.0, 3.0, 4.0};
    OK(MatGetOwnershipRange(A, &begin, nullptr));
    const PetscInt rows[2] = {begin, begin + 1}, skipped[2] = {begin, -1};
    OK(MatSetOption(A, MAT_ROW_ORIENTED, PETSC_FALSE));
    OK(MatSetValues(A, 2, rows, 2, rows, values, INSERT_VALUES));
    OK(MatSetValues(A, 2, skipped, 2, skipped, values, INSERT_VALUES));
    OK(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    OK(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    OK(MatSetOption(A, MAT_ROW_ORIENTED, PETSC_TRUE));
  }
  EXPECT_TRUE(everywhere(same_rows(m.ours, m.aij)));
}

TEST_P(StencilOperations, DuplicatesKeepTheirOptions) {
  StencilPair       m(grid_2d(), Fill::constant);
  PetscInt          begin;
  const PetscScalar values[4] = {1.0, 2.0, 3.0, 4.0};
  for (const auto &[option, flag] :
       {std::pair(MAT_ROW_ORIENTED, PETSC_FALSE), std::pair(MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE)})
    for (Mat A : {Mat(m.ours), Mat(m.aij)}) OK(MatSetOption(A, option, flag));
  Handle<Mat> ours, aij;
  OK(MatDuplicate(m.ours, MAT_COPY_VALUES, &ours));
  OK(MatDuplicate(m.aij, MAT_COPY_VALUES, &aij));
  OK(MatSetOption(aij, MAT_ROW_ORIENTED, PETSC_FALSE)); // whatever AIJ does
  for (Mat A : {Mat(ours), Mat(aij)}) {
    OK(MatGetOwnershipRange(A, &begin, nullptr));
    const PetscInt rows[2] = {begin, begin + 1};
    OK(MatSetValues(A, 2, rows, 2, rows, values, INSERT_VALUES));
    OK(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    OK(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  }
  EXPECT_TRUE(everywhere(same_rows(ours, aij)));
  const PetscInt row = begin, outside = begin + 4;                     // four cells further on the line
  OK(MatSetValues(ours, 1, &row, 1, &outside, values, INSERT_VALUES)); // ignored, as by the original
  OK(MatAssemblyBegin(ours, MAT_FINAL_ASSEMBLY));
  OK(MatAssemblyEnd(ours, MAT_FINAL_ASSEMBLY));
  EXPECT_TRUE(everywhere(same_rows(ours, aij)));
}

TEST_P(StencilOperations, ReadValues) {
  StencilPair m(grid_3d(2), Fill::variable);
  PetscInt    begin, end, n;
  OK(MatGetOwnershipRange(m.ours, &begin, &end));
  OK(MatGetSize(m.ours, &n, nullptr));
  std::vector<PetscInt> columns;
  for (PetscInt c = 0; c < n; c += 3) columns.push_back(c);
  std::vector<PetscScalar> ours(columns.size()), reference(columns.size());
  bool                     same = true;
  for (PetscInt row = begin; row < end; row += 7) {
    OK(MatGetValues(m.ours, 1, &row, static_cast<PetscInt>(columns.size()), columns.data(), ours.data()));
    OK(MatGetValues(m.aij, 1, &row, static_cast<PetscInt>(columns.size()), columns.data(), reference.data()));
    same = same && ours == reference;
  }
  EXPECT_TRUE(everywhere(same));
}

TEST_P(StencilOperations, AnEntryOutsideOfTheStencilIsAnError) {
  Grid g = grid_2d();
  g.star = true;
  StencilPair m(g, Fill::constant);
  PetscInt    x, y;
  OK(DMDAGetCorners(m.da, &x, &y, nullptr, nullptr, nullptr, nullptr));
  MatStencil        row = {}, column = {};
  const PetscScalar one = 1.0;
  row.i = x;
  row.j = y;
  column.i = x + 1;
  column.j = y + 1;
  const std::string text = message_of([&] { return MatSetValuesStencil(m.ours, 1, &row, 1, &column, &one, INSERT_VALUES); });
  EXPECT_TRUE(contains(text, "offset (1, 1, 0)")) << text;
  EXPECT_TRUE(contains(text, "cell (" + std::to_string(x) + ", " + std::to_string(y) + ", 0)")) << text;
  EXPECT_TRUE(contains(text, "star stencil of width 1 in 2D")) << text;
  OK(MatAssemblyBegin(m.ours, MAT_FINAL_ASSEMBLY));
  OK(MatAssemblyEnd(m.ours, MAT_FINAL_ASSEMBLY));
  OK(MatSetOption(m.ours, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  OK(MatSetValuesStencil(m.ours, 1, &row, 1, &column, &one, INSERT_VALUES));
  OK(MatAssemblyBegin(m.ours, MAT_FINAL_ASSEMBLY));
  OK(MatAssemblyEnd(m.ours, MAT_FINAL_ASSEMBLY));
  EXPECT_TRUE(everywhere(same_rows(m.ours, m.aij)));
}

TEST_P(StencilOperations, NeedADMDA) {
  Handle<Mat> A;
  OK(MatCreate(PETSC_COMM_WORLD, &A));
  OK(MatSetSizes(A, 3, 3, PETSC_DETERMINE, PETSC_DETERMINE));
  OK(MatSetType(A, MATSTENCILTCBOUND));
  EXPECT_TRUE(contains(message_of([&] { return MatSetUp(A); }), "needs a DMDA"));
}

TEST_P(StencilOperations, SayWhatTheyKeep) {
  for (Fill how : {Fill::constant, Fill::dirichlet, Fill::variable, Fill::symmetric, Fill::replaced}) {
    Grid g = grid_2d();
    g.size[0] = g.size[1] = 60;
    StencilPair m(g, how);
    Handle<Vec> x, y;
    OK(MatCreateVecs(m.ours, &x, &y));
    OK(MatMult(m.ours, x, y));
    const std::string text = text_of([&](PetscViewer viewer) {
      OK(PetscViewerPushFormat(viewer, PETSC_VIEWER_ASCII_INFO));
      OK(MatView(m.ours, viewer));
      OK(PetscViewerPopFormat(viewer));
    });
    EXPECT_TRUE(contains(text, "box of width 1 in 2D")) << text;
    const bool constant = how == Fill::constant || how == Fill::dirichlet;
    const bool halved = (how == Fill::symmetric || how == Fill::replaced) && backend() == "cuda_core";
    EXPECT_TRUE(contains(text, constant ? "9 points, constant" : "9 points, variable")) << text;
    EXPECT_EQ(contains(text, "symmetric: half of the arrays"), halved) << text;
    if (how == Fill::dirichlet || (how == Fill::replaced && halved)) {
      EXPECT_TRUE(contains(text, "of 1 kinds")) << text;
    }
    EXPECT_TRUE(contains(text, "kernel: stencil/grid/" + backend())) << text;
  }
}

TEST_P(StencilOperations, TellWhatAProductCosts) {
  Grid g = grid_2d();
  g.size[0] = g.size[1] = 40;
  StencilPair    m(g, Fill::variable);
  MatTCBoundInfo info;
  MatInfo        aij;
  OK(MatTCBoundGetInfo(m.ours, &info));
  OK(MatGetInfo(m.aij, MAT_GLOBAL_SUM, &aij));
  EXPECT_EQ("stencil/grid/" + backend(), info.kernel);
  EXPECT_EQ(static_cast<double>(info.nonzeros), aij.nz_used);
  EXPECT_EQ(info.useful_flops, 2 * aij.nz_used);
  EXPECT_GE(info.moved_bytes, (16.0 + 9 * 8) * 1600);
  OK(MatTCBoundSetBackend(m.ours, "host"));
  OK(MatTCBoundGetInfo(m.ours, &info));
  EXPECT_STREQ(info.kernel, "stencil/grid/host");
  expect_same_products(m.ours, m.aij);
  EXPECT_TRUE(contains(message_of([&] { return MatTCBoundSetBackend(m.ours, "cusparse"); }), "Valid: auto, host, cuda_core"));
}

// The matrix itself, in the grid's own order on several ranks.
TEST_P(StencilOperations, AreViewedLikeAIJ) {
  StencilPair m(grid_2d(), Fill::variable);
  std::string texts[2];
  int         which = 0;
  for (Mat A : {Mat(m.ours), Mat(m.aij)}) {
    const TemporaryFile file;
    Handle<PetscViewer> viewer;
    OK(PetscViewerASCIIOpen(PETSC_COMM_WORLD, file.path.c_str(), &viewer));
    OK(MatView(A, viewer));
    OK(PetscViewerFlush(viewer));
    if (world_rank() == 0) {
      FILE *f = fopen(file.path.c_str(), "r");
      char  line[4096];
      while (f && fgets(line, sizeof(line), f))
        if (strstr(line, "row ")) texts[which] += line;
      if (f) fclose(f);
    }
    which++;
  }
  EXPECT_TRUE(world_rank() || !texts[0].empty());
  EXPECT_EQ(texts[0], texts[1]);
}

INSTANTIATE_TEST_SUITE_P(Host, StencilOperations, testing::Values("host"), backend_name<testing::TestParamInfo<const char *>>);
INSTANTIATE_TEST_SUITE_P(Gpu, StencilOperations, testing::Values("cuda_core"),
                         backend_name<testing::TestParamInfo<const char *>>);

} // namespace
