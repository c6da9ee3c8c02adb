// ranks: 1 2 4 6
// tcboundsweep as smoother of multigrid and as preconditioner takes the same steps as PETSc's Jacobi sweeps, on every matrix type.
#include "mat/stencil_grids.h"

namespace {

class SweepSolve : public OnBackend {
protected:
  // Options of a solver with a prefix.
  void options(const std::string &prefix, const std::vector<std::pair<std::string, std::string>> &pairs) {
    for (const auto &[name, value] : pairs) option(("-" + prefix + name).c_str(), value.c_str());
  }
};

// The Laplacian; with a ring of multiples of the identity around it, or without the cells there.
PetscErrorCode fill_laplacian(DM da, Mat A, bool ring) {
  PetscInt dim, size[3], begin[3], n[3];

  PetscFunctionBeginUser;
  PetscCall(DMDAGetInfo(da, &dim, &size[0], &size[1], &size[2], nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                        nullptr, nullptr));
  PetscCall(DMDAGetCorners(da, &begin[0], &begin[1], &begin[2], &n[0], &n[1], &n[2]));
  for (PetscInt k = begin[2]; k < begin[2] + n[2]; k++)
    for (PetscInt j = begin[1]; j < begin[1] + n[1]; j++)
      for (PetscInt i = begin[0]; i < begin[0] + n[0]; i++) {
        const PetscInt           at[3] = {i, j, k};
        const MatStencil         row = {k, j, i, 0};
        std::vector<MatStencil>  columns = {row};
        std::vector<PetscScalar> values = {2.0 * static_cast<double>(dim)};
        bool                     edge = false;
        for (PetscInt d = 0; d < dim; d++) edge = edge || at[d] == 0 || at[d] == size[d] - 1;
        for (PetscInt d = 0; d < dim; d++)
          for (PetscInt step : {-1, 1}) {
            if ((edge && ring) || at[d] + step < 0 || at[d] + step >= size[d]) continue;
            MatStencil column = row;
            (d == 0 ? column.i : d == 1 ? column.j : column.k) += step;
            columns.push_back(column);
            values.push_back(-1.0);
          }
        if (edge && ring) values[0] = 3.0;
        PetscCall(
          MatSetValuesStencil(A, 1, &row, static_cast<PetscInt>(columns.size()), columns.data(), values.data(), INSERT_VALUES));
      }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode operators(KSP ksp, Mat, Mat A, void *ring) {
  DM da;

  PetscFunctionBeginUser;
  PetscCall(KSPGetDM(ksp, &da));
  PetscCall(fill_laplacian(da, A, *static_cast<bool *>(ring)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

struct Result {
  PetscInt            iterations = 0;
  std::vector<double> solution; // of this rank
  std::string         smoother; // of the finest level, of the preconditioner without levels
};

// Solves from 0 with a random right-hand side.
Result solve(const Grid &g, bool ring, const std::string &prefix, const char *type, VecType vec_type) {
  Handle<DM>  da;
  Handle<KSP> ksp;
  Vec         b, x;
  PC          pc, smoother;
  PetscBool   multigrid;
  Result      result;

  make_da(g, &da);
  OK(DMSetMatType(da, type));
  OK(DMSetVecType(da, vec_type));
  OK(KSPCreate(PETSC_COMM_WORLD, &ksp));
  OK(KSPSetOptionsPrefix(ksp, prefix.c_str()));
  OK(KSPSetDM(ksp, da));
  OK(KSPSetComputeOperators(ksp, operators, &ring));
  OK(KSPSetFromOptions(ksp));
  OK(DMCreateGlobalVector(da, &b));
  OK(VecDuplicate(b, &x));
  randomize(b, 5);
  OK(VecSet(x, 0.0));
  OK(KSPSolve(ksp, b, x));
  OK(KSPGetIterationNumber(ksp, &result.iterations));
  on_host(x, [&](PetscScalar *array, PetscInt n) { result.solution.assign(array, array + n); });
  OK(KSPGetPC(ksp, &pc));
  OK(PetscObjectTypeCompare(reinterpret_cast<PetscObject>(pc), PCMG, &multigrid));
  if (multigrid) {
    PetscInt levels;
    KSP      finest;
    OK(PCMGGetLevels(pc, &levels));
    OK(PCMGGetSmoother(pc, levels - 1, &finest));
    OK(KSPGetPC(finest, &smoother));
  } else {
    smoother = pc;
  }
  result.smoother = text_of([&](PetscViewer viewer) { OK(PCView(smoother, viewer)); });
  OK(VecDestroy(&b));
  OK(VecDestroy(&x));
  return result;
}

void expect_same_solution(const Result &ours, const Result &reference, double tolerance) {
  double most = 0.0, size = 0.0;
  EXPECT_EQ(ours.iterations, reference.iterations);
  for (std::size_t i = 0; i < ours.solution.size(); i++) {
    most = std::max(most, std::isnan(ours.solution[i]) ? HUGE_VAL : std::fabs(ours.solution[i] - reference.solution[i]));
    size = std::max(size, std::fabs(reference.solution[i]));
  }
  EXPECT_LE(everywhere_most(most), tolerance * everywhere_most(size));
}

TEST_P(SweepSolve, SmoothesLikeRichardsonWithJacobi) {
  const std::vector<std::pair<std::string, std::string>> common = {
    {"ksp_type", "cg"}, {"ksp_rtol", "1e-9"}, {"pc_type", "mg"}, {"pc_mg_levels", "3"}, {"mg_levels_ksp_type", "richardson"}};
  int number = 0;
  for (const Grid &g : {grid_of(2, 49, 49, 1), grid_of(3, 25, 25, 25)})
    for (bool ring : {false, true}) {
      const std::string plain = "plain" + std::to_string(number) + "_", prefix = "sweep" + std::to_string(number++) + "_";
      options(plain, common);
      options(plain, {{"mg_levels_ksp_max_it", "4"},
                      {"mg_levels_ksp_richardson_scale", "0.66666666666666666"},
                      {"mg_levels_pc_type", "jacobi"}});
      options(prefix, common);
      options(prefix,
              {{"mg_levels_ksp_max_it", "2"}, {"mg_levels_pc_type", "tcboundsweep"}, {"mg_levels_pc_tcboundsweep_its", "2"}});
      const Result reference = solve(g, ring, plain, MATAIJ, VECSTANDARD);
      EXPECT_LT(reference.iterations, 30);
      for (const char *type : {MATAIJ, MATAIJTCBOUND, MATSTENCILTCBOUND}) {
        SCOPED_TRACE(g.describe() + ", " + type + (ring ? ", ring" : ""));
        const bool   ours = std::string(type) != MATAIJ;
        const Result found = solve(g, ring, prefix, type, ours && on_device() ? VECCUDA : VECSTANDARD);
        expect_same_solution(found, reference, 1e-8);
        EXPECT_EQ(contains(found.smoother, "  fused: stencil/iterated/" + backend()), std::string(type) == MATSTENCILTCBOUND)
          << found.smoother;
      }
    }
}

// Conjugate gradients want a symmetric preconditioner, and Richardson's iterations the same sweeps from a guess.
TEST_P(SweepSolve, PreconditionsAndSolves) {
  struct Solver {
    std::vector<std::pair<std::string, std::string>> options;
    double                                           tolerance;
  };
  const std::vector<Solver> solvers = {
    {{{"ksp_type", "cg"}, {"ksp_rtol", "1e-9"}, {"pc_tcboundsweep_its", "3"}}, 1e-7},
    {{{"ksp_type", "cg"},
      {"ksp_rtol", "1e-9"},
      {"pc_tcboundsweep_its", "5"},
      {"pc_tcboundsweep_type", "chebyshev"},
      {"pc_tcboundsweep_emin", "0.1"},
      {"pc_tcboundsweep_emax", "2"}},
     1e-7},
    {{{"ksp_type", "preonly"}, {"pc_tcboundsweep_its", "9"}, {"pc_tcboundsweep_omega", "0.5"}}, 1e-12},
    {{{"ksp_type", "richardson"}, {"ksp_max_it", "17"}, {"ksp_norm_type", "none"}, {"ksp_convergence_test", "skip"}}, 1e-12},
    {{{"ksp_type", "gmres"}, {"ksp_rtol", "1e-9"}}, 1e-7},
  };
  int number = 0;
  for (const Solver &solver : solvers) {
    const std::string prefix = "solve" + std::to_string(number++) + "_";
    SCOPED_TRACE(prefix);
    options(prefix, {{"pc_type", "tcboundsweep"}});
    options(prefix, solver.options);
    const Result reference = solve(grid_of(2, 35, 35, 1), false, prefix, MATAIJ, VECSTANDARD);
    EXPECT_TRUE(contains(reference.smoother, "not fused")) << reference.smoother;
    for (const char *type : {MATAIJTCBOUND, MATSTENCILTCBOUND}) {
      const Result found = solve(grid_of(2, 35, 35, 1), false, prefix, type, on_device() ? VECCUDA : VECSTANDARD);
      expect_same_solution(found, reference, solver.tolerance);
    }
  }
}

// Four times as many sweeps save iterations of conjugate gradients.
TEST_P(SweepSolve, NeedsFewerIterationsThanJacobi) {
  options("jacobi_", {{"ksp_type", "cg"}, {"ksp_rtol", "1e-9"}, {"pc_type", "jacobi"}});
  options("sweeps_", {{"ksp_type", "cg"}, {"ksp_rtol", "1e-9"}, {"pc_type", "tcboundsweep"}, {"pc_tcboundsweep_its", "5"}});
  const Result jacobi = solve(grid_of(2, 35, 35, 1), false, "jacobi_", MATSTENCILTCBOUND, VECSTANDARD),
               sweeps = solve(grid_of(2, 35, 35, 1), false, "sweeps_", MATSTENCILTCBOUND, VECSTANDARD);
  EXPECT_LT(2 * sweeps.iterations, jacobi.iterations + 5);
}

INSTANTIATE_TEST_SUITE_P(Host, SweepSolve, testing::Values("host"), backend_name<testing::TestParamInfo<const char *>>);
INSTANTIATE_TEST_SUITE_P(Gpu, SweepSolve, testing::Values("cuda_core"), backend_name<testing::TestParamInfo<const char *>>);

} // namespace
