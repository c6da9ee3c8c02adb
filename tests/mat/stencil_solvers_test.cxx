// ranks: 1 2 4 6
// What solvers ask of stenciltcbound matrices beside products, against AIJ: orderings, factors, Jacobians by finite differences.
#include "mat/stencil_grids.h"

inline PetscErrorCode destroy(ISColoring *o) { return ISColoringDestroy(o); }
inline PetscErrorCode destroy(MatColoring *o) { return MatColoringDestroy(o); }
inline PetscErrorCode destroy(MatFDColoring *o) { return MatFDColoringDestroy(o); }

namespace {

using StencilSolvers = OnBackend;

Grid grid_of_components(PetscInt dim, PetscInt dof, bool star, bool periodic) {
  Grid g = grid_of(dim, 9, 9, dim > 2 ? 9 : 1, star);
  g.dof = dof;
  if (periodic) g.boundary[0] = g.boundary[1] = DM_BOUNDARY_PERIODIC;
  return g;
}

// Rows of a cell are alike: AIJ finds nodes, and orders these.
TEST_P(StencilSolvers, OrderingsAndFactors) {
  if (world_size() > 1) GTEST_SKIP() << "PETSc orders matrices of one rank";
  for (PetscInt dof : {1, 3}) {
    StencilPair m(grid_of_components(2, dof, false, false), Fill::variable);
    OK(MatShift(m.ours, 20.0));
    OK(MatShift(m.aij, 20.0));
    for (MatOrderingType type :
         {MATORDERINGNATURAL, MATORDERINGND, MATORDERING1WD, MATORDERINGRCM, MATORDERINGQMD, MATORDERINGROWLENGTH}) {
      SCOPED_TRACE(std::string(type) + ", dof " + std::to_string(dof));
      Handle<IS> rows[2], columns[2];
      PetscBool  same_orders[2];
      PetscInt   n;
      OK(MatGetOrdering(m.ours, type, &rows[0], &columns[0]));
      OK(MatGetOrdering(m.aij, type, &rows[1], &columns[1]));
      OK(ISGetSize(rows[0], &n));
      EXPECT_EQ(n, 81 * dof);
      OK(ISEqualUnsorted(rows[0], rows[1], &same_orders[0]));
      OK(ISEqualUnsorted(columns[0], columns[1], &same_orders[1]));
      EXPECT_TRUE(same_orders[0] && same_orders[1]);
      for (PCType factor : {PCLU, PCILU}) {
        Vec         found[2];
        Handle<Vec> b, x, reference;
        Handle<KSP> ksp[2];
        const Mat   matrices[2] = {m.ours, m.aij};
        OK(MatCreateVecs(m.aij, &x, &b));
        OK(VecDuplicate(x, &reference));
        randomize(b, 5);
        found[0] = x;
        found[1] = reference;
        for (int i = 0; i < 2; i++) {
          PC pc;
          OK(KSPCreate(PETSC_COMM_WORLD, &ksp[i]));
          OK(KSPSetOperators(ksp[i], matrices[i], matrices[i]));
          OK(KSPSetType(ksp[i], KSPPREONLY));
          OK(KSPGetPC(ksp[i], &pc));
          OK(PCSetType(pc, factor));
          OK(PCFactorSetMatSolverType(pc, MATSOLVERPETSC));
          OK(PCFactorSetMatOrderingType(pc, type));
          OK(KSPSolve(ksp[i], b, found[i]));
        }
        PetscReal norm, error;
        OK(VecNorm(reference, NORM_INFINITY, &norm));
        OK(VecAXPY(x, -1.0, reference));
        OK(VecNorm(x, NORM_INFINITY, &error));
        EXPECT_GT(norm, 0.0);
        EXPECT_LE(error, 1e-13 * norm) << factor;
      }
    }
  }
}

// f = A x + x^3 by components.
PetscErrorCode cubic(void *, Vec x, Vec f, void *A) {
  const PetscScalar *from;
  PetscScalar       *to;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(MatMult(static_cast<Mat>(A), x, f));
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetArrayRead(x, &from));
  PetscCall(VecGetArray(f, &to));
  for (PetscInt i = 0; i < n; i++) to[i] += from[i] * from[i] * from[i];
  PetscCall(VecRestoreArray(f, &to));
  PetscCall(VecRestoreArrayRead(x, &from));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Of the matrix rather than of the DMDA: the same colors as AIJ's, also where this finds nodes.
TEST_P(StencilSolvers, ColoringsOfTheMatrix) {
  for (const Grid &g : {grid_of_components(2, 1, true, false), grid_of_components(2, 3, false, true),
                        grid_of_components(3, 2, true, false), grid_of_components(3, 1, false, false)})
    for (MatColoringType type : {MATCOLORINGSL, MATCOLORINGLF, MATCOLORINGID, MATCOLORINGNATURAL}) {
      SCOPED_TRACE(g.describe() + ", " + type);
      StencilPair            m(g, Fill::variable);
      Handle<ISColoring>     colors[2];
      const ISColoringValue *values[2];
      PetscInt               rows[2], count[2];
      for (int i = 0; i < 2; i++) {
        Handle<MatColoring> coloring;
        OK(MatColoringCreate(i ? m.aij : m.ours, &coloring));
        OK(MatColoringSetType(coloring, type));
        OK(MatColoringApply(coloring, &colors[i]));
        OK(ISColoringGetColors(colors[i], &rows[i], &count[i], &values[i]));
      }
      EXPECT_EQ(rows[0], rows[1]);
      EXPECT_EQ(count[0], count[1]);
      EXPECT_GT(count[0], 1);
      EXPECT_TRUE(std::equal(values[0], values[0] + rows[0], values[1]));
      if (std::string(type) != MATCOLORINGSL) continue;
      Handle<Mat> linear;
      Handle<Vec> x;
      OK(MatDuplicate(m.aij, MAT_COPY_VALUES, &linear));
      OK(MatCreateVecs(m.aij, &x, nullptr));
      randomize(x, 5);
      for (Mat J : {static_cast<Mat>(m.ours), static_cast<Mat>(m.aij)}) {
        Handle<MatFDColoring> c;
        OK(MatFDColoringCreate(J, colors[0], &c));
        OK(MatFDColoringSetFunction(c, (MatFDColoringFn *)cubic, static_cast<Mat>(linear)));
        OK(MatFDColoringSetUp(J, colors[0], c));
        OK(MatFDColoringApply(J, c, x, nullptr));
      }
      EXPECT_TRUE(everywhere(same_rows(m.ours, m.aij)));
    }
}

// The same function, steps and code make the same bits.
TEST_P(StencilSolvers, JacobiansByColoring) {
  for (const Grid &g : {grid_of_components(2, 1, true, false), grid_of_components(2, 3, false, true),
                        grid_of_components(3, 2, true, false), grid_of_components(3, 1, false, false)})
    for (const char *type : {MATMFFD_WP, MATMFFD_DS})
      for (bool by_dm : {false, true}) {
        SCOPED_TRACE(g.describe() + ", " + type + (by_dm ? ", MatFDColoringUseDM()" : ""));
        StencilPair           m(g, Fill::variable);
        Handle<Mat>           linear;
        Handle<Vec>           x;
        Handle<ISColoring>    colors;
        Handle<MatFDColoring> coloring[2];
        const Mat             jacobians[2] = {m.ours, m.aij};
        OK(MatDuplicate(m.aij, MAT_COPY_VALUES, &linear));
        OK(MatCreateVecs(m.aij, &x, nullptr));
        OK(DMCreateColoring(m.da, IS_COLORING_GLOBAL, &colors));
        OK(MatSetOption(m.ours, MAT_IGNORE_ZERO_ENTRIES, PETSC_TRUE));
        for (int i = 0; i < 2; i++) {
          OK(MatFDColoringCreate(jacobians[i], colors, &coloring[i]));
          OK(MatFDColoringSetType(coloring[i], type));
          OK(MatFDColoringSetFunction(coloring[i], (MatFDColoringFn *)cubic, static_cast<Mat>(linear)));
          if (by_dm) OK(MatFDColoringUseDM(jacobians[i], coloring[i]));
          OK(MatFDColoringSetUp(jacobians[i], colors, coloring[i]));
        }
        for (std::uint64_t seed : {7, 8}) {
          randomize(x, seed);
          for (int i = 0; i < 2; i++) OK(MatFDColoringApply(jacobians[i], coloring[i], x, nullptr));
          EXPECT_TRUE(everywhere(same_rows(m.ours, m.aij)));
          EXPECT_FALSE(everywhere(same_rows(m.ours, linear, 1e-6))); // the cubes' part
          expect_same_products(m.ours, m.aij);
          for (Mat J : jacobians) { // what comes after stays, also after an assembly of nothing
            OK(MatScale(J, -3.0));
            OK(MatAssemblyBegin(J, MAT_FINAL_ASSEMBLY));
            OK(MatAssemblyEnd(J, MAT_FINAL_ASSEMBLY));
          }
          EXPECT_TRUE(everywhere(same_rows(m.ours, m.aij)));
          fill(m.da, g, m.ours, Fill::dirichlet, ADD_VALUES, 3);
          fill(m.da, g, m.aij, Fill::dirichlet, ADD_VALUES, 3);
          EXPECT_TRUE(everywhere(same_rows(m.ours, m.aij)));
        }
      }
}

// Colorings share what they write into, and may outlive the matrix.
TEST_P(StencilSolvers, ColoringsOutliveOneAnother) {
  StencilPair        m(grid_of_components(2, 2, false, false), Fill::variable);
  Handle<Vec>        x;
  Handle<ISColoring> colors;
  Handle<Mat>        linear;
  MatFDColoring      coloring[2];
  OK(MatDuplicate(m.aij, MAT_COPY_VALUES, &linear));
  OK(MatCreateVecs(m.aij, &x, nullptr));
  randomize(x, 9);
  OK(DMCreateColoring(m.da, IS_COLORING_GLOBAL, &colors));
  Handle<Mat> J;
  make_matrix(m.da, MATSTENCILTCBOUND, &J);
  for (MatFDColoring &c : coloring) {
    OK(MatFDColoringCreate(J, colors, &c));
    OK(MatFDColoringSetFunction(c, (MatFDColoringFn *)cubic, static_cast<Mat>(linear)));
    OK(MatFDColoringSetUp(J, colors, c));
  }
  OK(MatFDColoringApply(J, coloring[1], x, nullptr));
  Handle<Mat> first;
  OK(MatDuplicate(J, MAT_COPY_VALUES, &first));
  OK(MatFDColoringDestroy(&coloring[1]));
  OK(MatZeroEntries(J));
  OK(MatFDColoringApply(J, coloring[0], x, nullptr));
  EXPECT_TRUE(everywhere(same_rows(J, first)));
  OK(MatDestroy(&J));
  OK(MatFDColoringDestroy(&coloring[0]));
}

INSTANTIATE_TEST_SUITE_P(Host, StencilSolvers, testing::Values("host"), backend_name<testing::TestParamInfo<const char *>>);
INSTANTIATE_TEST_SUITE_P(Gpu, StencilSolvers, testing::Values("cuda_core"), backend_name<testing::TestParamInfo<const char *>>);

} // namespace
