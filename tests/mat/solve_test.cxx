// ranks: 1 2 3 5
// Solvers on our matrices take the same steps to the same solutions as on plain AIJ.
#include <petscdmda.h>
#include <petscsnes.h>
#include <petscts.h>

#include "mat/matrices.h"

inline PetscErrorCode destroy(DM *o) { return DMDestroy(o); }
inline PetscErrorCode destroy(SNES *o) { return SNESDestroy(o); }
inline PetscErrorCode destroy(TS *o) { return TSDestroy(o); }

namespace {

class Solve : public OnBackend {
protected:
  // Options of the solver with a prefix.
  void options(const std::string &prefix, std::vector<std::pair<std::string, std::string>> pairs) {
    for (auto &[name, value] : pairs) option(("-" + prefix + name).c_str(), value.c_str());
  }
};

// The 2-norm of the difference of two vectors of any type, relative to the second.
double relative_difference(Vec x, Vec y) {
  Handle<Vec> difference;
  PetscReal   norm, size;

  OK(VecDuplicate(y, &difference));
  on_host(x, [&](PetscScalar *from, PetscInt n) {
    on_host(difference, [&](PetscScalar *to, PetscInt) { std::copy(from, from + n, to); });
  });
  OK(VecAXPY(difference, -1.0, y));
  OK(VecNorm(difference, NORM_2, &norm));
  OK(VecNorm(y, NORM_2, &size));
  EXPECT_GT(size, 0.0);
  return norm / size;
}

struct Result {
  PetscInt    iterations = -1;
  Handle<Vec> x;
};

void solve(Mat A, const std::string &prefix, Result &result) {
  Handle<KSP>        ksp;
  Handle<Vec>        b;
  KSPConvergedReason reason;

  OK(MatCreateVecs(A, &result.x, &b));
  randomize(b, 80);
  OK(KSPCreate(PETSC_COMM_WORLD, &ksp));
  OK(KSPSetOptionsPrefix(ksp, prefix.c_str()));
  OK(KSPSetTolerances(ksp, 1e-9, PETSC_CURRENT, PETSC_CURRENT, 500));
  OK(KSPSetOperators(ksp, A, A));
  OK(KSPSetFromOptions(ksp));
  OK(KSPSolve(ksp, b, result.x));
  OK(KSPGetConvergedReason(ksp, &reason));
  EXPECT_GT(static_cast<int>(reason), 0) << KSPConvergedReasons[reason];
  OK(KSPGetIterationNumber(ksp, &result.iterations));
}

void expect_same_solve(Mat ours, Mat aij, const std::string &prefix) {
  Result mine, reference;

  solve(ours, prefix, mine);
  solve(aij, prefix, reference);
  EXPECT_LE(std::abs(mine.iterations - reference.iterations), 1 + reference.iterations / 20) << "of " << reference.iterations;
  EXPECT_LE(relative_difference(mine.x, reference.x), 1e-6);
}

TEST_P(Solve, ByKrylovMethods) {
  Case symmetric = laplacian_case(23, 17), general = dominant_case(301, false);
  symmetric.empty_rank = 1;
  const Pair  s(symmetric), g(general);
  const char *sub = world_size() == 1 ? "pc_type" : "sub_pc_type"; // ilu is sequential
  int         number = 0;

  for (const char *ksp : {"cg", "gmres", "bcgs"})
    for (const char *pc : {"none", "jacobi", "bjacobi", "sor", "ilu", "gamg", "asm"}) {
      SCOPED_TRACE(std::string(ksp) + " with " + pc);
      const bool        ilu = std::string(pc) == "ilu";
      const std::string prefix = "s" + std::to_string(number++) + "_";
      options(prefix, {{"ksp_type", ksp}, {"pc_type", ilu && world_size() > 1 ? "bjacobi" : pc}});
      if (ilu) options(prefix, {{sub, "ilu"}});
      if (std::string(pc) == "gamg") options(prefix, {{"mg_coarse_sub_pc_type", "lu"}, {"pc_gamg_coarse_eq_limit", "20"}});
      const bool cg = std::string(ksp) == "cg";
      if (cg && std::string(pc) == "asm") continue; // not symmetric
      const Pair &m = cg ? s : g;
      if (std::string(pc) == "gamg" && !cg) continue; // for the Laplacian
      expect_same_solve(m.ours, m.aij, prefix);
      if (cg) continue;
      // Other values in the same matrix: a factor, a hierarchy or a format of the old ones would show.
      for (Mat A : {Mat(m.ours), Mat(m.aij)}) OK(MatShift(A, 0.75));
      expect_same_solve(m.ours, m.aij, prefix);
    }
}

// The same KSP again after the values changed; the last two solve with the transposed factors too.
TEST_P(Solve, AgainAfterAChangeOfValues) {
  for (const char *type : {"gmres", "bicg", "cgne"}) {
    SCOPED_TRACE(type);
    const Pair  m(dominant_case(301, false));
    Handle<KSP> ksp[2];
    Handle<Vec> x[2], b[2];
    PetscInt    iterations[2];

    options("again_", {{"ksp_type", type}, {"pc_type", "bjacobi"}});
    for (int round = 0; round < 3; round++) {
      for (int k = 0; k < 2; k++) {
        Mat A = k ? m.aij : m.ours;
        if (round == 0) {
          OK(MatCreateVecs(A, &x[k], &b[k]));
          randomize(b[k], 81);
          OK(KSPCreate(PETSC_COMM_WORLD, &ksp[k]));
          OK(KSPSetOptionsPrefix(ksp[k], "again_"));
          OK(KSPSetTolerances(ksp[k], 1e-10, PETSC_CURRENT, PETSC_CURRENT, 500));
          OK(KSPSetFromOptions(ksp[k]));
        } else {
          OK(MatScale(A, 1.5));
          OK(MatShift(A, 1.0));
        }
        OK(KSPSetOperators(ksp[k], A, A));
        OK(KSPSolve(ksp[k], b[k], x[k]));
        OK(KSPGetIterationNumber(ksp[k], &iterations[k]));
      }
      EXPECT_NEAR(iterations[0], iterations[1], 1) << "round " << round;
      EXPECT_LE(relative_difference(x[0], x[1]), 1e-8) << "round " << round;
    }
  }
}

// Two unknowns a point, one field each.
TEST_P(Solve, ByFields) {
  const Case  base = dominant_case(120 * world_size(), true);
  Handle<IS>  fields[2];
  Handle<Mat> ours, aij;
  Result      results[2];

  options("fields_", {{"ksp_type", "fgmres"},
                      {"pc_type", "fieldsplit"},
                      {"pc_fieldsplit_type", "multiplicative"},
                      {"fieldsplit_0_ksp_type", "cg"},
                      {"fieldsplit_0_pc_type", "jacobi"},
                      {"fieldsplit_1_ksp_type", "preonly"},
                      {"fieldsplit_1_pc_type", "bjacobi"}});
  build(base, MATAIJTCBOUND, &ours);
  build(base, MATAIJ, &aij);
  PetscInt begin, end;
  OK(MatGetOwnershipRange(ours, &begin, &end));
  for (int f = 0; f < 2; f++) OK(ISCreateStride(PETSC_COMM_WORLD, (end - begin) / 2, begin + f, 2, &fields[f]));
  for (int k = 0; k < 2; k++) {
    Handle<KSP> ksp;
    Handle<Vec> b;
    PC          pc;
    Mat         A = k ? aij : ours;
    OK(MatCreateVecs(A, &results[k].x, &b));
    randomize(b, 82);
    OK(KSPCreate(PETSC_COMM_WORLD, &ksp));
    OK(KSPSetOptionsPrefix(ksp, "fields_"));
    OK(KSPSetTolerances(ksp, 1e-9, PETSC_CURRENT, PETSC_CURRENT, 500));
    OK(KSPSetOperators(ksp, A, A));
    OK(KSPGetPC(ksp, &pc));
    OK(KSPSetFromOptions(ksp));
    OK(PCFieldSplitSetIS(pc, "0", fields[0]));
    OK(PCFieldSplitSetIS(pc, "1", fields[1]));
    OK(KSPSolve(ksp, b, results[k].x));
    OK(KSPGetIterationNumber(ksp, &results[k].iterations));
    KSP     *subs;
    PetscInt n;
    OK(PCFieldSplitGetSubKSP(pc, &n, &subs));
    EXPECT_EQ(n, 2);
    Mat block;
    OK(KSPGetOperators(subs[0], &block, nullptr));
    EXPECT_TRUE(k || type_of(object(block)) == ours_name()) << type_of(object(block));
    OK(PetscFree(subs));
  }
  EXPECT_NEAR(results[0].iterations, results[1].iterations, 1);
  EXPECT_LE(relative_difference(results[0].x, results[1].x), 1e-6);
}

void make_grid(MatType type, PetscInt n, Handle<DM> &grid, bool device) {
  OK(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, n, n, PETSC_DECIDE, PETSC_DECIDE, 1,
                  1, nullptr, nullptr, &grid));
  OK(DMSetMatType(grid, type));
  if (device) OK(DMSetVecType(grid, VECCUDA));
  OK(DMSetFromOptions(grid));
  OK(DMSetUp(grid));
}

// The 5-point Laplacian into a matrix of a grid, plus `shift` in the interior.
PetscErrorCode fill_laplacian(DM grid, Mat A, PetscScalar factor, PetscScalar shift, const PetscScalar *const *u = nullptr) {
  DMDALocalInfo info;

  PetscFunctionBeginUser;
  PetscCall(DMDAGetLocalInfo(grid, &info));
  for (PetscInt j = info.ys; j < info.ys + info.ym; j++)
    for (PetscInt i = info.xs; i < info.xs + info.xm; i++) {
      const bool  edge = i == 0 || j == 0 || i == info.mx - 1 || j == info.my - 1;
      MatStencil  row = {}, columns[5] = {};
      PetscScalar values[5] = {edge ? 1.0 : 4.0 * factor + shift, -factor, -factor, -factor, -factor};
      row.i = i;
      row.j = j;
      for (MatStencil &c : columns) c = row;
      columns[1].i--;
      columns[2].i++;
      columns[3].j--;
      columns[4].j++;
      if (!edge && u) values[0] -= PetscExpScalar(u[j][i]) / ((info.mx - 1.0) * (info.mx - 1.0)) * 4.0;
      PetscCall(MatSetValuesStencil(A, 1, &row, edge ? 1 : 5, columns, values, INSERT_VALUES));
    }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode grid_operator(KSP ksp, Mat, Mat A, void *) {
  DM grid;

  PetscFunctionBeginUser;
  PetscCall(KSPGetDM(ksp, &grid));
  PetscCall(fill_laplacian(grid, A, 1.0, 0.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode grid_rhs(KSP, Vec b, void *) {
  PetscFunctionBeginUser;
  randomize(b, 83);
  PetscFunctionReturn(PETSC_SUCCESS);
}

TEST_P(Solve, ByMultigridOnAGrid) {
  Result results[2];

  options("mg_", {{"ksp_type", "gmres"},
                  {"pc_type", "mg"},
                  {"pc_mg_levels", "3"},
                  {"pc_mg_galerkin", "both"},
                  {"mg_levels_ksp_type", "chebyshev"},
                  {"mg_levels_pc_type", "jacobi"},
                  {"mg_coarse_pc_type", "redundant"}});
  for (int k = 0; k < 2; k++) {
    Handle<DM>  grid;
    Handle<KSP> ksp;
    Vec         x;
    Mat         A;

    make_grid(k ? MATAIJ : MATAIJTCBOUND, 33, grid, !k && on_device());
    OK(KSPCreate(PETSC_COMM_WORLD, &ksp));
    OK(KSPSetOptionsPrefix(ksp, "mg_"));
    OK(KSPSetDM(ksp, grid));
    OK(KSPSetComputeOperators(ksp, grid_operator, nullptr));
    OK(KSPSetComputeRHS(ksp, grid_rhs, nullptr));
    OK(KSPSetTolerances(ksp, 1e-9, PETSC_CURRENT, PETSC_CURRENT, 100));
    OK(KSPSetFromOptions(ksp));
    OK(KSPSolve(ksp, nullptr, nullptr));
    OK(KSPGetIterationNumber(ksp, &results[k].iterations));
    OK(KSPGetSolution(ksp, &x));
    OK(VecDuplicate(x, &results[k].x));
    OK(VecCopy(x, results[k].x));
    OK(KSPGetOperators(ksp, &A, nullptr));
    if (k) continue;
    EXPECT_EQ(type_of(object(A)), ours_name());
    PC  pc;
    KSP level;
    OK(KSPGetPC(ksp, &pc));
    OK(PCMGGetSmoother(pc, 1, &level)); // its matrix is P^T A P
    OK(KSPGetOperators(level, &A, nullptr));
    EXPECT_EQ(type_of(object(A)), ours_name());
  }
  EXPECT_NEAR(results[0].iterations, results[1].iterations, 1); // a device's random start of the eigenvalue estimate differs
  EXPECT_LT(results[0].iterations, 25);
  EXPECT_LE(relative_difference(results[0].x, results[1].x), 1e-6);
}

// Bratu's problem, -Laplace(u) = 4 exp(u) with u = 0 on the edge.
PetscErrorCode bratu(DMDALocalInfo *info, void *u_array, void *f_array, void *) {
  PetscScalar   **u = static_cast<PetscScalar **>(u_array), **f = static_cast<PetscScalar **>(f_array);
  const PetscReal h = 1.0 / (info->mx - 1.0);

  PetscFunctionBeginUser;
  for (PetscInt j = info->ys; j < info->ys + info->ym; j++)
    for (PetscInt i = info->xs; i < info->xs + info->xm; i++) {
      const bool edge = i == 0 || j == 0 || i == info->mx - 1 || j == info->my - 1;
      f[j][i] =
        edge ? u[j][i]
             : 4.0 * u[j][i] - u[j][i - 1] - u[j][i + 1] - u[j - 1][i] - u[j + 1][i] - 4.0 * h * h * PetscExpScalar(u[j][i]);
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode bratu_jacobian(DMDALocalInfo *info, void *u_array, Mat, Mat A, void *) {
  PetscFunctionBeginUser;
  PetscCall(fill_laplacian(info->da, A, 1.0, 0.0, static_cast<PetscScalar **>(u_array)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

TEST_P(Solve, NonlinearSystems) {
  options("bratu_", {{"ksp_type", "gmres"}, {"pc_type", "bjacobi"}, {"ksp_rtol", "1e-8"}});
  for (bool coloring : {true, false}) { // the Jacobian by differences of colored columns, or assembled
    SCOPED_TRACE(coloring ? "coloring" : "assembled");
    Result   results[2];
    PetscInt linear[2];
    for (int k = 0; k < 2; k++) {
      Handle<DM>          grid;
      Handle<SNES>        snes;
      SNESConvergedReason reason;
      Mat                 A;

      make_grid(k ? MATAIJ : MATAIJTCBOUND, 17, grid, !k && on_device());
      OK(DMDASNESSetFunctionLocal(grid, INSERT_VALUES, reinterpret_cast<DMDASNESFunctionFn *>(bratu), nullptr));
      if (!coloring) OK(DMDASNESSetJacobianLocal(grid, reinterpret_cast<DMDASNESJacobianFn *>(bratu_jacobian), nullptr));
      OK(SNESCreate(PETSC_COMM_WORLD, &snes));
      OK(SNESSetOptionsPrefix(snes, "bratu_"));
      OK(SNESSetDM(snes, grid));
      OK(SNESSetFromOptions(snes));
      OK(DMCreateGlobalVector(grid, &results[k].x));
      OK(SNESSolve(snes, nullptr, results[k].x));
      OK(SNESGetConvergedReason(snes, &reason));
      EXPECT_GT(static_cast<int>(reason), 0);
      OK(SNESGetIterationNumber(snes, &results[k].iterations));
      OK(SNESGetLinearSolveIterations(snes, &linear[k]));
      OK(SNESGetJacobian(snes, &A, nullptr, nullptr, nullptr));
      EXPECT_TRUE(k || type_of(object(A)) == ours_name()) << type_of(object(A));
    }
    EXPECT_EQ(results[0].iterations, results[1].iterations);
    EXPECT_GT(results[0].iterations, 1);
    EXPECT_NEAR(linear[0], linear[1], 2);
    EXPECT_LE(relative_difference(results[0].x, results[1].x), 1e-8);
  }
}

// The heat equation u' = -L u, implicit; the matrix is shift + L.
PetscErrorCode heat(TS ts, PetscReal, Vec u, Vec udot, Vec f, void *) {
  DM  grid;
  Mat L;

  PetscFunctionBeginUser;
  PetscCall(TSGetDM(ts, &grid));
  PetscCall(PetscObjectQuery(reinterpret_cast<PetscObject>(ts), "L", reinterpret_cast<PetscObject *>(&L)));
  PetscCall(MatMultAdd(L, u, udot, f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode heat_jacobian(TS ts, PetscReal, Vec, Vec, PetscReal shift, Mat, Mat A, void *) {
  Mat L;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectQuery(reinterpret_cast<PetscObject>(ts), "L", reinterpret_cast<PetscObject *>(&L)));
  PetscCall(MatCopy(L, A, SAME_NONZERO_PATTERN));
  PetscCall(MatShift(A, shift));
  PetscFunctionReturn(PETSC_SUCCESS);
}

TEST_P(Solve, TimeSteps) {
  Result results[2];

  options("heat_",
          {{"ts_type", "bdf"}, {"ksp_type", "cg"}, {"pc_type", "jacobi"}, {"ksp_rtol", "1e-10"}, {"ts_adapt_type", "none"}});
  for (int k = 0; k < 2; k++) {
    Handle<DM>  grid;
    Handle<TS>  ts;
    Handle<Mat> L, A;

    make_grid(k ? MATAIJ : MATAIJTCBOUND, 19, grid, !k && on_device());
    OK(DMCreateMatrix(grid, &L));
    EXPECT_TRUE(k || type_of(object(L)) == ours_name());
    OK(fill_laplacian(grid, L, 1.0, 0.0));
    OK(MatDuplicate(L, MAT_COPY_VALUES, &A));
    OK(TSCreate(PETSC_COMM_WORLD, &ts));
    OK(TSSetOptionsPrefix(ts, "heat_"));
    OK(TSSetDM(ts, grid));
    OK(PetscObjectCompose(reinterpret_cast<PetscObject>(TS(ts)), "L", object(L)));
    OK(TSSetIFunction(ts, nullptr, heat, nullptr));
    OK(TSSetIJacobian(ts, A, A, heat_jacobian, nullptr));
    OK(TSSetTimeStep(ts, 0.05));
    OK(TSSetMaxTime(ts, 1.0));
    OK(TSSetExactFinalTime(ts, TS_EXACTFINALTIME_MATCHSTEP));
    OK(TSSetFromOptions(ts));
    OK(DMCreateGlobalVector(grid, &results[k].x));
    randomize(results[k].x, 84);
    OK(TSSolve(ts, results[k].x));
    OK(TSGetKSPIterations(ts, &results[k].iterations));
  }
  EXPECT_NEAR(results[0].iterations, results[1].iterations, 2);
  EXPECT_GT(results[1].iterations, 20);
  EXPECT_LE(relative_difference(results[0].x, results[1].x), 1e-8);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Solve, testing::Values("host"), backend_name<testing::TestParamInfo<const char *>>);
INSTANTIATE_TEST_SUITE_P(Gpu, Solve, testing::Values("cuda_core", "cusparse"),
                         backend_name<testing::TestParamInfo<const char *>>);

} // namespace
