// ranks: 1 2 4 6
// The preconditioner tcboundsweep against damped Jacobi sweeps that are written out with a plain AIJ matrix.
#include "mat/stencil_grids.h"

inline PetscErrorCode destroy(PC *o) { return PCDestroy(o); }

namespace {

class Sweeps : public OnBackend {};

// Makes rows dominant, so that sweeps converge.
void make_dominant(StencilPair &m) {
  const double shift = 1.5 * static_cast<double>(offsets_of(m.g).size()) * static_cast<double>(m.g.dof);
  OK(MatShift(m.aij, shift));
  OK(MatShift(m.ours, shift));
}

void make_sweeps(Mat A, PetscInt its, PC *pc) {
  OK(PCCreate(PETSC_COMM_WORLD, pc));
  OK(PCSetType(*pc, PCTCBOUNDSWEEP));
  OK(PCSetOperators(*pc, A, A));
  OK(PCTCBoundSweepSetIterations(*pc, its));
}

std::string view_of(PC pc) {
  return text_of([&](PetscViewer viewer) { OK(PCView(pc, viewer)); });
}

// x = x + factor D^-1 (b - A x), written out.
void sweep(Mat A, bool transpose, const std::vector<double> &factors, Vec b, Vec x) {
  Handle<Vec> d, r;
  OK(VecDuplicate(b, &d));
  OK(VecDuplicate(b, &r));
  OK(MatGetDiagonal(A, d));
  for (double factor : factors) {
    OK((transpose ? MatMultTranspose : MatMult)(A, x, r));
    OK(VecAYPX(r, -1.0, b));
    OK(VecPointwiseDivide(r, r, d));
    OK(VecAXPY(x, factor, r));
  }
}

double relative_difference(Vec ours, Vec reference) {
  Handle<Vec> limit;
  PetscReal   norm;
  OK(VecNorm(reference, NORM_INFINITY, &norm));
  OK(VecDuplicate(reference, &limit));
  OK(VecSet(limit, norm));
  return excess(ours, reference, limit);
}

enum class How { apply, transpose, from_zero, from_guess };

// `times` applications by Richardson, or one.
void expect_same_sweeps(PC pc, Mat ours, Mat reference, const std::vector<double> &factors, How how, PetscInt times,
                        VecType type) {
  Handle<Vec>         b, x, w, rb, rx, before;
  std::vector<double> all;
  make_vector(ours, true, type, 5, &b);
  make_vector(ours, false, type, how == How::from_guess ? 6 : 0, &x);
  make_vector(ours, false, type, 0, &w);
  make_vector(reference, true, VECSTANDARD, 5, &rb);
  make_vector(reference, false, VECSTANDARD, 6, &rx);
  move_to_memory_of_type(b);
  move_to_memory_of_type(x);
  if (how != How::from_guess) OK(VecSet(rx, 0.0));
  if (how == How::apply || how == How::transpose) {
    OK((how == How::apply ? PCApply : PCApplyTranspose)(pc, b, x));
    times = 1;
  } else {
    PetscInt                    done;
    PCRichardsonConvergedReason reason;
    OK(PCApplyRichardson(pc, b, x, w, 0.0, 0.0, 0.0, times, how == How::from_zero ? PETSC_TRUE : PETSC_FALSE, &done, &reason));
    EXPECT_EQ(done, times);
    EXPECT_EQ(reason, PCRICHARDSON_CONVERGED_ITS);
  }
  for (PetscInt i = 0; i < times; i++) all.insert(all.end(), factors.begin(), factors.end());
  sweep(reference, how == How::transpose, all, rb, rx);
  EXPECT_LE(relative_difference(x, rx), 1e-13 * (1.0 + 0.1 * static_cast<double>(all.size())))
    << all.size() << " sweeps, how " << static_cast<int>(how) << ", " << type;
  make_vector(reference, true, VECSTANDARD, 5, &before);
  EXPECT_EQ(relative_difference(b, before), 0.0) << "b has changed";
}

void expect_same_sweeps(PC pc, Mat ours, Mat reference, const std::vector<double> &factors, PetscInt times, VecType type) {
  for (How how : {How::apply, How::transpose, How::from_zero, How::from_guess})
    expect_same_sweeps(pc, ours, reference, factors, how, times, type);
}

constexpr Fill fills[] = {Fill::constant, Fill::dirichlet, Fill::variable, Fill::some_zero};

TEST_P(Sweeps, AgreeWithJacobiOnRandomGrids) {
  int fused = 0;
  for (std::uint64_t seed = 1; seed <= 40; seed++) {
    Grid g = random_grid(seed);
    auto how = fills[random_index(seed, 90, 4)];
    if (seed % 2) { // which can be fused, but for some shapes and rings
      g.dof = 1;
      for (DMBoundaryType &boundary : g.boundary) boundary = boundary == DM_BOUNDARY_PERIODIC ? DM_BOUNDARY_NONE : boundary;
      if (how == Fill::variable) how = Fill::constant;
    }
    SCOPED_TRACE(g.describe() + ", fill " + std::to_string(static_cast<int>(how)));
    StencilPair m(g, how, seed);
    make_dominant(m);
    const PetscInt its = 1 + random_index(seed, 91, 5), times = 1 + random_index(seed, 92, 4);
    Handle<PC>     pc;
    make_sweeps(m.ours, its, &pc);
    OK(PCTCBoundSweepSetOmega(pc, 0.8));
    for (VecType type : vec_types())
      expect_same_sweeps(pc, m.ours, m.aij, std::vector<double>(static_cast<std::size_t>(its), 0.8), times, type);
    fused += contains(view_of(pc), "  fused: ");
  }
  EXPECT_GT(fused, on_device() ? 0 : 5);
  EXPECT_LT(fused, 30);
}

struct Case {
  Grid grid;
  Fill how;
};

// Sizes that divide by nothing, so that ranks have uneven parts.
std::vector<Case> fused_cases() {
  return {{grid_of(1, 97, 1, 1, true, 1), Fill::constant},     {grid_of(1, 61, 1, 1, true, 3), Fill::constant},
          {grid_of(2, 41, 37, 1, true, 1), Fill::constant},    {grid_of(2, 41, 37, 1, true, 1), Fill::dirichlet},
          {grid_of(2, 43, 29, 1, false, 1), Fill::constant},   {grid_of(2, 43, 31, 1, false, 1), Fill::dirichlet},
          {grid_of(2, 31, 34, 1, true, 2), Fill::constant},    {grid_of(2, 37, 33, 1, false, 2), Fill::constant},
          {grid_of(2, 30, 23, 1, false, 1), Fill::some_zero},  {grid_of(3, 17, 19, 23, true, 1), Fill::constant},
          {grid_of(3, 23, 21, 25, true, 1), Fill::dirichlet},  {grid_of(3, 19, 13, 17, false, 1), Fill::constant},
          {grid_of(3, 25, 23, 21, false, 1), Fill::dirichlet}, {grid_of(3, 17, 13, 19, false, 1), Fill::some_zero}};
}

TEST_P(Sweeps, AreFused) {
  for (const Case &one : fused_cases())
    for (const char *steps : {"0", "1", "2", on_device() ? "3" : "8"}) {
      if (on_device() && one.grid.width > 1) continue; // no kernels that relax
      SCOPED_TRACE(one.grid.describe() + ", fill " + std::to_string(static_cast<int>(one.how)) + ", steps " + steps);
      option("-mat_tcbound_steps", steps);
      StencilPair m(one.grid, one.how, 7);
      make_dominant(m);
      for (PetscInt its : {1, 3, 11}) {
        Handle<PC> pc;
        make_sweeps(m.ours, its, &pc);
        expect_same_sweeps(pc, m.ours, m.aij, std::vector<double>(static_cast<std::size_t>(its), 2.0 / 3.0), 2, VECSTANDARD);
        if (on_device())
          expect_same_sweeps(pc, m.ours, m.aij, std::vector<double>(static_cast<std::size_t>(its), 2.0 / 3.0), 2, VECCUDA);
        const std::string text = view_of(pc);
        EXPECT_TRUE(contains(text, "  fused: stencil/iterated/" + backend())) << text;
        EXPECT_EQ(contains(text, "for each exchange of values among ranks"), world_size() > 1) << text;
      }
    }
}

TEST_P(Sweeps, SayWhyTheyAreNotFused) {
  const auto expect_reason = [this](const Grid &g, Fill how, const std::string &reason) {
    SCOPED_TRACE(g.describe());
    StencilPair m(g, how, 7);
    Handle<PC>  pc;
    make_dominant(m);
    make_sweeps(m.ours, 3, &pc);
    OK(PCSetUp(pc));
    const std::string text = view_of(pc);
    EXPECT_TRUE(contains(text, "not fused, a pass over memory for each sweep by stencil/grid/" + backend() + ": " + reason))
      << text;
    for (VecType type : vec_types()) expect_same_sweeps(pc, m.ours, m.aij, {2.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0}, 2, type);
  };
  Grid g = grid_of(2, 41, 37, 1, true, 1);
  expect_reason(g, Fill::variable, "coefficients vary");
  g.boundary[1] = DM_BOUNDARY_PERIODIC;
  expect_reason(g, Fill::constant, "the grid is periodic");
  g = grid_of(2, 41, 37, 1, true, 1);
  g.dof = 2;
  expect_reason(g, Fill::constant, "cells have 2 components");
  expect_reason(grid_of(2, 41, 37, 1, true, 2), Fill::dirichlet, "rows differ, and not as a ring of 2 cells");
  expect_reason(grid_of(1, 47, 1, 1, true, 1), Fill::dirichlet, "rows at the ends of a grid of one dimension differ");
  for (const char *type : {MATAIJ, MATAIJTCBOUND}) {
    StencilPair m(grid_of(2, 41, 37, 1, true, 1), Fill::dirichlet, 7);
    Handle<Mat> A;
    Handle<PC>  pc;
    make_dominant(m);
    OK(MatConvert(m.aij, type, MAT_INITIAL_MATRIX, &A));
    make_sweeps(A, 2, &pc);
    OK(PCSetUp(pc));
    EXPECT_TRUE(
      contains(view_of(pc), "not fused, a product and vector operations for each sweep: the matrix is no stenciltcbound"));
    expect_same_sweeps(pc, A, m.aij, {2.0 / 3.0, 2.0 / 3.0}, 3, VECSTANDARD);
  }
}

// 7 points that vary, on one rank of a device.
TEST_P(Sweeps, TwoAtATime) {
  for (const Grid &g : {grid_of(3, 23, 21, 25, true, 1), grid_of(3, 65, 19, 50, true, 1)})
    for (Fill how : {Fill::variable, Fill::symmetric, Fill::replaced}) {
      SCOPED_TRACE(g.describe() + ", fill " + std::to_string(static_cast<int>(how)));
      StencilPair m(g, how, 7);
      make_dominant(m);
      for (PetscInt its = 1; its <= 4; its++) {
        Handle<PC> pc;
        make_sweeps(m.ours, its, &pc);
        const std::vector<double> factors(static_cast<std::size_t>(its), 2.0 / 3.0);
        for (PetscInt times : {1, 2})
          for (VecType type : vec_types()) expect_same_sweeps(pc, m.ours, m.aij, factors, times, type);
        const bool        two = on_device() && backend() == "cuda_core" && world_size() == 1;
        const std::string text = view_of(pc);
        EXPECT_TRUE(contains(text, two ? "  fused: stencil/grid/cuda_core, up to 2 sweeps a pass over memory"
                                       : "  not fused, a pass over memory for each sweep by stencil/grid/"))
          << text;
        option("-mat_tcbound_steps", "1");
        OK(MatSetFromOptions(m.ours));
        EXPECT_TRUE(contains(view_of(pc), "  not fused, a pass over memory for each sweep by stencil/grid/"));
        for (VecType type : vec_types()) expect_same_sweeps(pc, m.ours, m.aij, factors, 2, type);
        option("-mat_tcbound_steps", "0");
        OK(MatSetFromOptions(m.ours));
      }
    }
}

TEST_P(Sweeps, FollowChangedValues) {
  StencilPair m(grid_of(2, 41, 37, 1, true, 1), Fill::constant, 7);
  Handle<PC>  pc;
  make_dominant(m);
  make_sweeps(m.ours, 3, &pc);
  const std::vector<double> factors(3, 2.0 / 3.0);
  expect_same_sweeps(pc, m.ours, m.aij, factors, 2, VECSTANDARD);
  for (Fill how : fills) {
    fill(m.da, m.g, m.ours, how, INSERT_VALUES, 9);
    fill(m.da, m.g, m.aij, how, INSERT_VALUES, 9);
    make_dominant(m);
    OK(PCSetOperators(pc, m.ours, m.ours));
    expect_same_sweeps(pc, m.ours, m.aij, factors, 2, VECSTANDARD);
  }
  OK(PCTCBoundSweepSetOmega(pc, 0.9)); // settings as well
  expect_same_sweeps(pc, m.ours, m.aij, {0.9, 0.9, 0.9}, 2, VECSTANDARD);
  OK(PCTCBoundSweepSetIterations(pc, 1));
  expect_same_sweeps(pc, m.ours, m.aij, {0.9}, 5, VECSTANDARD);
  OK(PCReset(pc));
  OK(PCSetOperators(pc, m.ours, m.ours));
  expect_same_sweeps(pc, m.ours, m.aij, {0.9}, 5, VECSTANDARD);
}

void make_kept_sweeps(Mat A, PC *pc) {
  make_sweeps(A, 3, pc);
  OK(PCSetUp(*pc));
  OK(PCSetReusePreconditioner(*pc, PETSC_TRUE));
}

// Both preconditioners with the matrices as they are now.
void expect_same_application(PC ours, PC plain, const StencilPair &now) {
  Handle<Vec> b, x, rb, rx;
  OK(PCSetOperators(ours, now.ours, now.ours));
  OK(PCSetOperators(plain, now.aij, now.aij));
  make_vector(now.ours, true, VECSTANDARD, 5, &b);
  make_vector(now.ours, false, VECSTANDARD, 0, &x);
  make_vector(now.aij, true, VECSTANDARD, 5, &rb);
  make_vector(now.aij, false, VECSTANDARD, 0, &rx);
  OK(PCApply(ours, b, x));
  OK(PCApply(plain, rb, rx));
  EXPECT_LE(relative_difference(x, rx), 1e-13);
}

// A preconditioner that is kept has the old diagonal, whether its sweeps were fused before or not.
TEST_P(Sweeps, KeepTheDiagonalWhenReused) {
  StencilPair m(grid_of(2, 41, 37, 1, true, 1), Fill::constant, 7);
  Handle<PC>  kept, plain;
  make_dominant(m);
  make_kept_sweeps(m.ours, &kept);
  make_kept_sweeps(m.aij, &plain);
  EXPECT_TRUE(contains(view_of(kept), "  fused: ")) << view_of(kept);
  for (Mat A : {Mat(m.ours), Mat(m.aij)}) {
    OK(MatShift(A, 3.0));
    OK(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    OK(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  }
  expect_same_application(kept, plain, m);
  EXPECT_TRUE(contains(view_of(kept), "earlier values")) << view_of(kept);
  OK(PCSetReusePreconditioner(kept, PETSC_FALSE));
  OK(PCSetOperators(kept, m.ours, m.ours));
  expect_same_sweeps(kept, m.ours, m.aij, std::vector<double>(3, 2.0 / 3.0), 1, VECSTANDARD);
  EXPECT_TRUE(contains(view_of(kept), "  fused: ")) << view_of(kept);
}

// The same with another matrix, which has been filled in the same calls.
TEST_P(Sweeps, KeepTheDiagonalWhenReusedWithAnotherMatrix) {
  const Grid  g = grid_of(2, 41, 37, 1, true, 1);
  StencilPair m(g, Fill::constant, 7), other(g, Fill::constant, 7);
  Handle<PC>  kept, plain;
  make_dominant(m);
  OK(MatShift(other.ours, 70.0));
  OK(MatShift(other.aij, 70.0));
  make_kept_sweeps(m.ours, &kept);
  make_kept_sweeps(m.aij, &plain);
  expect_same_application(kept, plain, other);
}

// Richardson's iterations are with the operator, be it the matrix that preconditions or, later, another one.
TEST_P(Sweeps, IterateWithTheOperator) {
  StencilPair m(grid_of(2, 21, 17, 1, true, 1), Fill::constant, 7), other(grid_of(2, 21, 17, 1, true, 1), Fill::variable, 8);
  Handle<PC>  pc;
  make_dominant(m);
  make_dominant(other);
  make_sweeps(m.ours, 2, &pc);
  const std::vector<double> factors(2, 2.0 / 3.0);
  expect_same_sweeps(pc, m.ours, m.aij, factors, 2, VECSTANDARD);
  OK(PCSetOperators(pc, other.ours, m.ours));
  for (const bool from_zero : {true, false}) {
    Handle<Vec>                 b, x, w, rb, rx, r, z;
    PetscInt                    done;
    PCRichardsonConvergedReason reason;
    make_vector(m.ours, true, VECSTANDARD, 5, &b);
    make_vector(m.ours, false, VECSTANDARD, from_zero ? 0 : 6, &x);
    make_vector(m.ours, false, VECSTANDARD, 0, &w);
    make_vector(m.aij, true, VECSTANDARD, 5, &rb);
    make_vector(m.aij, false, VECSTANDARD, 6, &rx);
    if (from_zero) OK(VecSet(rx, 0.0));
    OK(PCApplyRichardson(pc, b, x, w, 0.0, 0.0, 0.0, 3, from_zero ? PETSC_TRUE : PETSC_FALSE, &done, &reason));
    OK(VecDuplicate(rx, &r));
    OK(VecDuplicate(rx, &z));
    for (int i = 0; i < 3; i++) {
      OK(MatMult(other.aij, rx, r));
      OK(VecAYPX(r, -1.0, rb));
      OK(VecSet(z, 0.0));
      sweep(m.aij, false, factors, r, z);
      OK(VecAXPY(rx, 1.0, z));
    }
    EXPECT_LE(relative_difference(x, rx), 1e-13) << "from zero " << from_zero;
  }
}

// The same polynomial as KSPCHEBYSHEV's.
TEST_P(Sweeps, OfChebyshevAgreeWithPETSc) {
  for (const Case &one :
       {Case{grid_of(2, 41, 37, 1, true, 1), Fill::constant}, Case{grid_of(3, 19, 13, 17, false, 1), Fill::constant},
        Case{grid_of(2, 41, 37, 1, true, 1), Fill::variable}, Case{grid_of(3, 23, 21, 25, true, 1), Fill::dirichlet}})
    for (PetscInt its : {1, 2, 3, 8, 30}) {
      SCOPED_TRACE(one.grid.describe() + ", " + std::to_string(its) + " sweeps");
      StencilPair m(one.grid, one.how, 7);
      make_dominant(m);
      Handle<KSP> ksp;
      PC          jacobi;
      OK(KSPCreate(PETSC_COMM_WORLD, &ksp));
      OK(KSPSetOperators(ksp, m.aij, m.aij));
      OK(KSPSetType(ksp, KSPCHEBYSHEV));
      OK(KSPChebyshevSetEigenvalues(ksp, 1.8, 0.4));
      OK(KSPGetPC(ksp, &jacobi));
      OK(PCSetType(jacobi, PCJACOBI));
      OK(KSPSetNormType(ksp, KSP_NORM_NONE));
      OK(KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, its));
      Handle<PC> pc;
      make_sweeps(m.ours, its, &pc);
      OK(PCTCBoundSweepSetType(pc, PC_TCBOUNDSWEEP_CHEBYSHEV));
      OK(PCTCBoundSweepSetEigenvalues(pc, 0.4, 1.8));
      Handle<Vec> b, x, rb, rx;
      make_vector(m.ours, true, VECSTANDARD, 5, &b);
      make_vector(m.ours, false, VECSTANDARD, 0, &x);
      make_vector(m.aij, true, VECSTANDARD, 5, &rb);
      make_vector(m.aij, false, VECSTANDARD, 0, &rx);
      OK(PCApply(pc, b, x));
      OK(KSPSolve(ksp, rb, rx));
      EXPECT_LE(relative_difference(x, rx), 1e-11);
    }
}

// The estimate of the largest eigenvalue, and what comes of it.
TEST_P(Sweeps, OfChebyshevEstimateTheirInterval) {
  const Grid  g = grid_of(2, 41, 37, 1, true, 1);
  Handle<DM>  da;
  Handle<Mat> A;
  make_da(g, &da);
  make_matrix(da, MATSTENCILTCBOUND, &A);
  PetscInt x, y, m, n;
  OK(DMDAGetCorners(da, &x, &y, nullptr, &m, &n, nullptr));
  for (PetscInt j = y; j < y + n; j++)
    for (PetscInt i = x; i < x + m; i++) {
      const MatStencil  row = {0, j, i, 0};
      const MatStencil  columns[5] = {{0, j, i, 0}, {0, j, i - 1, 0}, {0, j, i + 1, 0}, {0, j - 1, i, 0}, {0, j + 1, i, 0}};
      const PetscScalar values[5] = {4.0, -1.0, -1.0, -1.0, -1.0};
      std::vector<MatStencil>  inside;
      std::vector<PetscScalar> kept;
      for (int k = 0; k < 5; k++)
        if (columns[k].i >= 0 && columns[k].i < g.size[0] && columns[k].j >= 0 && columns[k].j < g.size[1]) {
          inside.push_back(columns[k]);
          kept.push_back(values[k]);
        }
      OK(MatSetValuesStencil(A, 1, &row, static_cast<PetscInt>(inside.size()), inside.data(), kept.data(), INSERT_VALUES));
    }
  OK(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  OK(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  for (bool spd : {false, true}) {
    if (spd) OK(MatSetOption(A, MAT_SPD, PETSC_TRUE));
    Handle<PC> pc;
    make_sweeps(A, 3, &pc);
    OK(PCTCBoundSweepSetType(pc, PC_TCBOUNDSWEEP_CHEBYSHEV));
    OK(PCSetUp(pc));
    const std::string text = view_of(pc);
    double            low = 0, high = 0, estimate = 0;
    const std::size_t at = text.find("eigenvalues of D^-1 A from ");
    ASSERT_NE(at, text.npos) << text;
    ASSERT_EQ(
      sscanf(text.c_str() + at, "eigenvalues of D^-1 A from %lf to %lf, the largest estimated as %lf", &low, &high, &estimate),
      3)
      << text;
    const double largest = 1.0 + 0.5 * (std::cos(PETSC_PI / 42.0) + std::cos(PETSC_PI / 38.0)); // of this matrix
    EXPECT_LE(estimate, largest * (1.0 + 1e-6));
    EXPECT_GE(estimate, 0.85 * largest);
    EXPECT_NEAR(high, 1.1 * estimate, 1e-4);
    EXPECT_NEAR(low, 0.1 * estimate, 1e-4);
    OK(PCTCBoundSweepSetEstimateFactors(pc, 0.25, 1.25));
    OK(PCSetUp(pc));
    ASSERT_EQ(sscanf(view_of(pc).c_str() + at, "eigenvalues of D^-1 A from %lf to %lf", &low, &high), 2);
    EXPECT_NEAR(high, 1.25 * estimate, 1e-4);
    EXPECT_NEAR(low, 0.25 * estimate, 1e-4);
  }
}

TEST_P(Sweeps, RefuseWhatTheyCannot) {
  const Grid  g = grid_of(2, 21, 17, 1, true, 1);
  StencilPair m(g, Fill::constant, 7);
  Handle<PC>  pc;
  make_sweeps(m.ours, 2, &pc);
  EXPECT_TRUE(contains(message_of([&] { return PCTCBoundSweepSetIterations(pc, 0); }), "must be at least 1"));
  for (double omega : {0.0, -1.0, HUGE_VAL, std::nan("")})
    EXPECT_TRUE(contains(message_of([&] { return PCTCBoundSweepSetOmega(pc, omega); }), "must be positive and finite"));
  EXPECT_TRUE(contains(message_of([&] { return PCTCBoundSweepSetEigenvalues(pc, 2.0, 1.0); }), "must be less than emax"));
  EXPECT_TRUE(contains(message_of([&] { return PCTCBoundSweepSetEigenvalues(pc, -1.0, 1.0); }), "must be positive"));
  EXPECT_TRUE(contains(message_of([&] { return PCTCBoundSweepSetEstimateFactors(pc, 1.0, 0.5); }), "positive and rise"));
  for (Mat A : {Mat(m.ours), Mat(m.aij)}) {
    const PetscInt zero = 5;
    OK(MatZeroRows(A, world_rank() == world_size() - 1 ? 1 : 0, &zero, 0.0, nullptr, nullptr));
    Handle<PC> other;
    make_sweeps(A, 2, &other);
    const std::string text = message_of([&] { return PCSetUp(other); });
    EXPECT_TRUE(contains(text, "Row 5 of the matrix has no diagonal entry")) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Host, Sweeps, testing::Values("host"), backend_name<testing::TestParamInfo<const char *>>);
INSTANTIATE_TEST_SUITE_P(Gpu, Sweeps, testing::Values("cuda_core"), backend_name<testing::TestParamInfo<const char *>>);

} // namespace
