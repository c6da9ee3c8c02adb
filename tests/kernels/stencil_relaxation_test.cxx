// Damped sweeps of S x = b: every backend, depth and shape gives the bits that iterated.h defines, and what the formula gives in
// long double.
#include <cmath>
#include <limits>

#include "stencil_support.h"

namespace {

using namespace tcbound;
using namespace stencil::test;
using stencil::Problem;
using stencil::Relaxation;
using stencil::Shape;
using stencil::Sweep;
using stencil::Sweeper;

// Cell by cell: step(cell, index, in the ring) with `sum(start, add)` over the points that exist or are 0.
template <class Number, class Step> std::vector<Number> each_cell(const Problem &p, Step &&step) {
  const auto [nx, ny, nz] = p.grid.extent;
  const int           ring = p.grid.ring;
  std::vector<Number> next(static_cast<std::size_t>(p.grid.size()));
  for (std::int64_t z = 0; z < nz; ++z)
    for (std::int64_t y = 0; y < ny; ++y)
      for (std::int64_t x = 0; x < nx; ++x) {
        const std::int64_t i = (z * ny + y) * nx + x;
        const bool         in_ring =
          x < ring || x >= nx - ring || y < ring || y >= ny - ring || (p.shape.dimensions == 3 && (z < ring || z >= nz - ring));
        const auto neighbour = [&, nx = nx, ny = ny, nz = nz](const std::vector<Number> &cells, std::size_t k) {
          const auto        &o = p.shape.offsets[k];
          const std::int64_t at[3] = {x + o[0], y + o[1], z + o[2]};
          const bool         inside = at[0] >= 0 && at[0] < nx && at[1] >= 0 && at[1] < ny && at[2] >= 0 && at[2] < nz;
          return inside ? cells[(at[2] * ny + at[1]) * nx + at[0]] : Number(0);
        };
        next[i] = step(i, in_ring, neighbour);
      }
  return next;
}

// x' = x + f (b - S x) as it stands. x empty: 0.
std::vector<long double> step_by_formula(const Problem &p, std::vector<long double> x, const Cells &b, const Relaxation &r,
                                         long double f) {
  if (x.empty()) x.assign(b.size(), 0.0L);
  return each_cell<long double>(p, [&](std::int64_t i, bool in_ring, auto &&neighbour) -> long double {
    if (in_ring) return x[i] + f * r.ring_scale * (b[i] - static_cast<long double>(r.ring_diagonal) * x[i]);
    long double product = 0.0L;
    for (std::size_t k = 0; k < p.weights.size(); ++k) product += p.weights[k] * neighbour(x, k);
    return x[i] + f * (b[i] - product);
  });
}

// The order of operations that iterated.h defines.
Cells step_by_definition(const Problem &p, const Cells &x, const Cells &b, const Relaxation &r, double f) {
  const double ring = f * r.ring_scale;
  Cells        weights;
  for (std::size_t k = 0; k < p.weights.size(); ++k) {
    const auto &o = p.shape.offsets[k];
    const bool  centre = o[0] == 0 && o[1] == 0 && o[2] == 0;
    weights.push_back(centre ? std::fma(-f, p.weights[k], 1.0) : -(f * p.weights[k]));
  }
  return each_cell<double>(p, [&](std::int64_t i, bool in_ring, auto &&neighbour) {
    if (x.empty()) return (in_ring ? ring : f) * b[i];
    if (in_ring) return std::fma(ring, b[i], std::fma(-ring, r.ring_diagonal, 1.0) * x[i]);
    double sum = 0.0;
    for (std::size_t k = 0; k < weights.size(); ++k)
      sum = k == 0 ? weights[k] * neighbour(x, k) : std::fma(weights[k], neighbour(x, k), sum);
    return std::fma(f, b[i], sum);
  });
}

Relaxation factors(int steps) {
  Relaxation r;
  for (int s = 0; s < steps; ++s) r.factors.push_back(0.9 - 0.17 * (s % 5));
  r.ring_diagonal = 1.75;
  r.ring_scale = 0.6;
  return r;
}

// What sweeps with those factors give from `in`, step by step.
class Expected {
public:
  Expected(const Problem &p, const Cells &in, const Cells &b)
    : p_(p), b_(b), in_(in), definition_{in}, formula_{{in.begin(), in.end()}}, bounds_{1.0} {}

  const Cells &in() const { return in_; }

  const Cells &definition(int steps) {
    const Relaxation r = factors(steps);
    for (int s = static_cast<int>(definition_.size()) - 1; s < steps; ++s)
      definition_.push_back(step_by_definition(p_, definition_[s], b_, r, r.factors[s]));
    return definition_[steps];
  }

  // Errors of rounding grow as the cells may: by a factor 1 + |f| |S| a step.
  void expect_formula(const Cells &found, int steps) {
    const Relaxation r = factors(steps);
    double           norm = std::abs(r.ring_diagonal);
    for (const double weight : p_.weights) norm += std::abs(weight);
    for (int s = static_cast<int>(formula_.size()) - 1; s < steps; ++s) {
      formula_.push_back(step_by_formula(p_, formula_[s], b_, r, r.factors[s]));
      bounds_.push_back(bounds_[s] * (1.0 + std::abs(r.factors[s]) * norm) + std::abs(r.factors[s]));
    }
    const double tolerance = 0x1p-53 * bounds_[steps] * static_cast<double>(p_.weights.size() + 4) * (steps + 1);
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < found.size(); ++i) wrong += !(std::abs(found[i] - formula_[steps][i]) <= tolerance);
    EXPECT_EQ(wrong, 0) << "cells differ from the formula by more than " << tolerance;
  }

private:
  const Problem                        &p_;
  const Cells                          &b_;
  const Cells                           in_;
  std::vector<Cells>                    definition_;
  std::vector<std::vector<long double>> formula_;
  std::vector<double>                   bounds_;
};

// Runs on poisoned memory that is aligned to 8 bytes only. in empty: from 0.
Cells relax(Executor &executor, Sweep &sweep, const Cells &in, const Cells &b, const Relaxation &r) {
  const auto        size = static_cast<std::int64_t>(b.size());
  const std::size_t bytes = b.size() * sizeof(double);
  Array<double>     x(executor, size + 1), source(executor, size + 1), out(executor, size + 3);
  Cells             result(b.size(), std::nan("")), kept(b.size());
  if (!in.empty()) executor.copy(x.data() + 1, executor.space(), in.data(), MemorySpace::host, bytes);
  executor.copy(source.data() + 1, executor.space(), b.data(), MemorySpace::host, bytes);
  executor.copy(out.data() + 3, executor.space(), result.data(), MemorySpace::host, bytes);
  sweep.relax(executor, in.empty() ? nullptr : x.data() + 1, source.data() + 1, out.data() + 3, r);
  executor.copy(result.data(), MemorySpace::host, out.data() + 3, executor.space(), bytes);
  executor.copy(kept.data(), MemorySpace::host, source.data() + 1, executor.space(), bytes);
  EXPECT_TRUE(b.empty() || std::memcmp(kept.data(), b.data(), bytes) == 0) << "b was written to";
  return result;
}

// Every shape that the backend relaxes, ring, depth and start on grids of these sizes, in one pass and in several.
void expect_all(Executor &executor, const Sweeper &backend, const std::vector<std::array<std::int64_t, 3>> &plane_sizes,
                const std::vector<std::array<std::int64_t, 3>> &solid_sizes) {
  for (const Shape &shape : stencil::shapes())
    for (const auto &extent : shape.dimensions == 2 ? plane_sizes : solid_sizes)
      for (const int ring : {0, shape.radius}) {
        const Problem p = random_problem(shape, extent, ring, 1);
        const Cells   b = random_cells(p.grid.size(), 3);
        Expected      starts[2] = {Expected(p, random_cells(p.grid.size(), 2), b), Expected(p, {}, b)};
        SCOPED_TRACE(backend.name() + ": " + name_of(p));
        std::vector<int> depths = backend.relaxation_depths(shape);
        if (!depths.empty()) depths.push_back(0);
        for (const int depth : depths) {
          const auto sweep = backend.build(executor, p, {depth});
          ASSERT_TRUE(sweep->relaxes());
          for (const int steps : {1, std::max(depth, 2), 2 * depth + 3})
            for (Expected &expected : starts) {
              SCOPED_TRACE("depth " + std::to_string(depth) + ", " + std::to_string(steps) + " steps from " +
                           (expected.in().empty() ? "0" : "cells"));
              const Cells found = relax(executor, *sweep, expected.in(), b, factors(steps));
              expect_same_bits(p, found, expected.definition(steps));
              expected.expect_formula(found, steps);
            }
          if (p.grid.size() == 0) continue;
          Problem apart = p; // what is between lines does not get into cells
          apart.grid.pitch = extent[0] + 3;
          const auto spread_sweep = backend.build(executor, apart, {depth});
          for (Expected &expected : starts) {
            const Cells from = expected.in().empty() ? Cells() : spread(apart.grid, expected.in());
            const Cells found = relax(executor, *spread_sweep, from, spread(apart.grid, b), factors(2 * depth + 3));
            expect_same_bits(p, gather(apart.grid, found), expected.definition(2 * depth + 3));
          }
        }
      }
}

bool same_or_both_nan(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Into cells, into b, into the ring, and through the step from 0.
void expect_no_numbers_spread(Executor &executor, const Sweeper &backend, const Shape &shape) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  for (const int ring : {0, shape.radius}) {
    const Problem p = random_problem(shape, {133, 61, 21}, ring, 10);
    const auto    at = [&](std::int64_t x, std::int64_t y, std::int64_t z) { return (z * 61 + y) * 133 + x; };
    const int     z = shape.dimensions == 3 ? 9 : 0;
    Cells         cells = random_cells(p.grid.size(), 11), b = random_cells(p.grid.size(), 12);
    cells[at(57, 20, z)] = nan;
    cells[at(118, 0, z)] = -inf;
    b[at(62, 44, z)] = inf;
    b[at(132, 60, 0)] = nan;
    b[at(3, 5, z)] = nan;
    Expected starts[2] = {Expected(p, cells, b), Expected(p, {}, b)};
    for (const int depth : backend.relaxation_depths(shape)) {
      const auto sweep = backend.build(executor, p, {depth});
      for (Expected &expected : starts) {
        const Cells  found = relax(executor, *sweep, expected.in(), b, factors(depth + 1));
        const Cells &right = expected.definition(depth + 1);
        std::int64_t wrong = 0, nans = 0;
        for (std::size_t i = 0; i < found.size(); ++i) {
          wrong += !same_or_both_nan(found[i], right[i]);
          nans += std::isnan(found[i]);
        }
        EXPECT_EQ(wrong, 0) << name_of(p) << ", depth " << depth;
        EXPECT_GT(nans, 0);
        EXPECT_LT(nans, p.grid.size() / 2);
      }
    }
  }
}

class StencilRelaxation : public ::testing::Test {
protected:
  const std::unique_ptr<Executor> host_ = make_host_executor();
};

TEST_F(StencilRelaxation, host_agrees_with_the_definition_and_the_formula) {
  for (const Shape &shape : stencil::shapes())
    EXPECT_EQ(sweeper("host").relaxation_depths(shape), (std::vector<int>{1, 2, 4, 8}));
  expect_all(*host_, sweeper("host"), {{1, 1, 1}, {2, 5, 1}, {5, 1, 1}, {17, 9, 1}, {131, 12, 1}, {0, 4, 1}},
             {{1, 1, 1}, {3, 2, 4}, {70, 5, 3}, {9, 11, 10}, {4, 0, 4}});
}

TEST_F(StencilRelaxation, host_spreads_values_that_are_no_numbers_as_by_definition) {
  for (const char *name : {"2d5pt", "2d25pt", "3d7pt", "3d27pt"})
    expect_no_numbers_spread(*host_, sweeper("host"), stencil::find_shape(name));
}

// The solution is left where it is; a ring of Dirichlet rows gets its values at once where f ring_scale ring_diagonal = 1.
TEST_F(StencilRelaxation, the_solution_stays_and_sweeps_approach_it) {
  Problem p = random_problem(stencil::find_shape("2d5pt"), {12, 11, 1}, 1, 4);
  p.weights = {-1.0, -1.0, 4.0, -1.0, -1.0};
  const Cells solution = random_cells(p.grid.size(), 5);
  Cells       b(solution.size());
  for (std::int64_t i = 0; i < p.grid.size(); ++i) {
    const std::int64_t x = i % 12, y = i / 12;
    const bool         ring = x == 0 || x == 11 || y == 0 || y == 10;
    b[i] =
      ring ? 4.0 * solution[i] : 4.0 * solution[i] - solution[i - 1] - solution[i + 1] - solution[i - 12] - solution[i + 12];
  }
  const auto sweep = sweeper("host").build(*host_, p);
  Relaxation r;
  r.ring_diagonal = 4.0;
  r.factors.assign(300, 0.25); // Jacobi; its rate is cos(pi / 11)
  const Cells stays = relax(*host_, *sweep, solution, b, r), found = relax(*host_, *sweep, {}, b, r);
  for (std::int64_t i = 0; i < p.grid.size(); ++i) {
    EXPECT_NEAR(stays[i], solution[i], 1e-14) << i;
    EXPECT_NEAR(found[i], solution[i], 1e-4) << i;
  }
}

TEST_F(StencilRelaxation, no_steps_copy) {
  const Problem p = random_problem(stencil::find_shape("3d7pt"), {5, 6, 7}, 1, 6);
  const Cells   cells = random_cells(p.grid.size(), 7), b = random_cells(p.grid.size(), 8);
  const auto    sweep = sweeper("host").build(*host_, p);
  EXPECT_EQ(relax(*host_, *sweep, cells, b, {}), cells);
  EXPECT_EQ(relax(*host_, *sweep, {}, b, {}), Cells(b.size(), 0.0));
}

TEST_F(StencilRelaxation, a_shape_without_the_cell_itself_is_refused) {
  Problem p = random_problem(stencil::find_shape("2d5pt"), {8, 8, 1}, 1, 9);
  p.shape.offsets.erase(p.shape.offsets.begin() + p.shape.centre());
  p.weights.pop_back();
  EXPECT_EQ(p.shape.centre(), -1);
  EXPECT_TRUE(sweeper("host").relaxation_depths(p.shape).empty());
  const auto sweep = sweeper("host").build(*host_, p);
  EXPECT_FALSE(sweep->relaxes());
  const Cells b(64, 1.0);
  try {
    relax(*host_, *sweep, b, b, factors(1));
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_STREQ(error.what(), "stencil/iterated/host: the stencil 2d5pt lacks the cell itself");
  }
  EXPECT_THROW(sweep->work_of_relaxation(1, false), Error);
}

// 24 bytes a pass, 16 where it starts from 0, whose first step is part of it.
TEST_F(StencilRelaxation, work_counts_passes) {
  const Problem      p = random_problem(stencil::find_shape("3d27pt"), {16, 12, 9}, 0, 7);
  const std::int64_t n = p.grid.size();
  const auto         sweep = sweeper("host").build(*host_, p, {4});
  EXPECT_EQ(sweep->work_of_relaxation(4, false), (Work{4 * 56 * n, 4 * 56 * n, 24 * n, 24 * n, 0}));
  EXPECT_EQ(sweep->work_of_relaxation(5, true), ((Work{(4 * 56 + 1) * n, (4 * 56 + 1) * n, 16 * n, 16 * n, 0})));
  EXPECT_EQ(sweep->work_of_relaxation(1, true), (Work{n, n, 16 * n, 16 * n, 0}));
  EXPECT_EQ(sweep->work_of_relaxation(7, false).bytes, 3 * 24 * n); // passes of 4, 2 and 1
  EXPECT_EQ(sweep->work_of_relaxation(0, true), Work());
  const Problem ringed = random_problem(stencil::find_shape("2d5pt"), {16, 12, 1}, 1, 7);
  EXPECT_EQ(sweeper("host").build(*host_, ringed)->work_of_relaxation(1, false).useful_flops,
            12 * 14 * 10 + 4 * (16 * 12 - 14 * 10));
}

// The passes are those that take the least time together: six steps of bytes alone as 4 + 2, not as 8.
TEST_F(StencilRelaxation, passes_are_chosen_by_the_roofline) {
  const Problem p = random_problem(stencil::find_shape("2d5pt"), {64, 64, 1}, 0, 15);
  const auto    sweep = sweeper("host").build(*host_, p, {0, MmaShape::automatic, 1e6});
  EXPECT_EQ(sweep->work_of_relaxation(8, false).bytes, 24 * p.grid.size());
  EXPECT_EQ(sweep->work_of_relaxation(6, false).bytes, 2 * 24 * p.grid.size());
  EXPECT_EQ(sweep->work_of_relaxation(9, true).bytes, 16 * p.grid.size());
}

#ifdef TCBOUND_HAVE_CUDA
class GpuStencilRelaxation : public OnDevice {};

TEST_F(GpuStencilRelaxation, plain_kernel_agrees_with_the_definition_and_the_formula) {
  for (const Shape &shape : stencil::shapes()) EXPECT_EQ(sweeper("plain").relaxation_depths(shape), (std::vector<int>{1}));
  expect_all(*device_, sweeper("plain"), plane_sizes, solid_sizes);
}

TEST_F(GpuStencilRelaxation, cuda_cores_agree_with_the_definition_and_the_formula) {
  for (const char *name : {"2d5pt", "2d9pt", "3d7pt", "3d27pt"})
    EXPECT_GE(sweeper("cuda_core").relaxation_depths(stencil::find_shape(name)).size(), 2U) << name;
  expect_all(*device_, sweeper("cuda_core"), plane_sizes, solid_sizes);
}

TEST_F(GpuStencilRelaxation, values_that_are_no_numbers_spread_as_by_definition) {
  for (const char *name : {"2d5pt", "2d9pt", "3d7pt", "3d27pt"})
    for (const char *backend : {"plain", "cuda_core"})
      expect_no_numbers_spread(*device_, sweeper(backend), stencil::find_shape(name));
}

TEST_F(GpuStencilRelaxation, many_strips_and_segments_agree_with_the_plain_kernel) {
  for (const Shape &shape : stencil::shapes()) {
    if (sweeper("cuda_core").relaxation_depths(shape).empty()) continue;
    const Problem p = shape.dimensions == 2 ? random_problem(shape, {2051, 1501, 1}, shape.radius, 8)
                                            : random_problem(shape, {131, 101, 190}, 0, 8);
    const Cells   cells = random_cells(p.grid.size(), 9), b = random_cells(p.grid.size(), 10);
    SCOPED_TRACE(name_of(p));
    for (const int depth : sweeper("cuda_core").relaxation_depths(shape))
      for (const Cells &in : {cells, Cells()}) {
        const auto       sweep = sweeper("cuda_core").build(*device_, p, {depth});
        const auto       plain = sweeper("plain").build(*device_, p);
        const Relaxation r = factors(depth + 1);
        const Cells      found = relax(*device_, *sweep, in, b, r);
        expect_same_bits(p, found, relax(*device_, *plain, in, b, r));
        EXPECT_EQ(found, relax(*device_, *sweep, in, b, r)) << "from run to run, depth " << depth;
      }
  }
}

TEST_F(GpuStencilRelaxation, what_has_no_relaxation_says_so) {
  const Shape &shape = stencil::find_shape("2d49pt");
  const Cells  b(81, 1.0);
  for (const char *format : {"iterated", "banded"}) {
    const auto sweep = sweeper("cuda_core", format).build(*device_, random_problem(shape, {9, 9, 1}, 3, 12));
    EXPECT_FALSE(sweep->relaxes());
    try {
      relax(*device_, *sweep, b, b, factors(1));
      FAIL();
    } catch (const Error &error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      EXPECT_EQ(error.what(), std::string("stencil/") + format + "/cuda_core: it has no relaxation of the stencil 2d49pt");
    }
  }
}
#endif

} // namespace
