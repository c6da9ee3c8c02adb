// Sweeps of stencils: every backend, depth and shape gives what plain loops over the definition give, bit for bit where it says
// so.
#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "../../src/model/work_counts.h"
#include "stencil/banded/compose.h"
#include "stencil_support.h"

namespace {

using namespace tcbound;
using stencil::Grid;
using stencil::Problem;
using stencil::Shape;
using stencil::Sweep;
using stencil::Sweeper;
using namespace stencil::test;

// The definition, which shares nothing with the kernels but the order of summation: values outside are 0, those in the ring stay.
Cells by_definition(const Problem &p, Cells cells, int steps) {
  const auto [nx, ny, nz] = p.grid.extent;
  const int  ring = p.grid.ring;
  const auto inside = [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    return x >= 0 && x < nx && y >= 0 && y < ny && z >= 0 && z < nz;
  };
  const auto stays = [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    return x < ring || x >= nx - ring || y < ring || y >= ny - ring ||
           (p.shape.dimensions == 3 && (z < ring || z >= nz - ring));
  };
  for (int step = 0; step < steps; ++step) {
    Cells next(cells);
    for (std::int64_t z = 0; z < nz; ++z)
      for (std::int64_t y = 0; y < ny; ++y)
        for (std::int64_t x = 0; x < nx; ++x) {
          if (stays(x, y, z)) continue;
          double sum = 0.0;
          for (std::size_t k = 0; k < p.weights.size(); ++k) {
            const auto  &o = p.shape.offsets[k];
            const double value =
              inside(x + o[0], y + o[1], z + o[2]) ? cells[((z + o[2]) * ny + y + o[1]) * nx + x + o[0]] : 0.0;
            sum = k == 0 ? p.weights[k] * value : std::fma(p.weights[k], value, sum);
          }
          next[(z * ny + y) * nx + x] = sum;
        }
    cells = next;
  }
  return cells;
}

// Runs on poisoned memory, which begins so many cells after a multiple of 256 bytes: by default it is aligned to 8 bytes only.
Cells advance(Executor &executor, Sweep &sweep, const Problem &p, const Cells &cells, int steps, int in_begin = 1,
              int out_begin = 3) {
  const std::int64_t size = p.grid.stored();
  const std::size_t  bytes = static_cast<std::size_t>(size) * sizeof(double);
  Array<double>      in(executor, size + in_begin), out(executor, size + out_begin);
  Cells              result(static_cast<std::size_t>(size), std::nan(""));
  executor.copy(in.data() + in_begin, executor.space(), cells.data(), MemorySpace::host, bytes);
  executor.copy(out.data() + out_begin, executor.space(), result.data(), MemorySpace::host, bytes);
  sweep.run(executor, in.data() + in_begin, out.data() + out_begin, steps);
  executor.copy(result.data(), MemorySpace::host, out.data() + out_begin, executor.space(), bytes);
  return result;
}

// Weights and cells are of size 1, so that sums of a step are in error by some units of rounding.
void expect_near(const Problem &p, const Cells &found, const Cells &expected, int steps) {
  std::int64_t wrong = 0, first = -1;
  for (std::int64_t i = 0; i < p.grid.size(); ++i)
    if (!(std::abs(found[i] - expected[i]) <= 64.0 * 0x1p-53 * steps))
      if (wrong++ == 0) first = i;
  if (wrong > 0)
    ADD_FAILURE() << wrong << " cells differ, first (" << first % p.grid.extent[0] << ", " << first / p.grid.extent[0]
                  << "): " << found[first] << " instead of " << expected[first];
}

void expect_result(const Problem &p, const Sweep &sweep, const Cells &found, const Cells &expected, int steps) {
  if (sweep.same_bits())
    expect_same_bits(p, found, expected);
  else
    expect_near(p, found, expected, steps);
}

// Every shape, ring and depth on grids of these sizes, in one pass and in two with a remainder. Without sizes of three dimensions
// only shapes of two.
void expect_all(Executor &executor, const Sweeper &backend, const std::vector<std::array<std::int64_t, 3>> &plane_sizes,
                const std::vector<std::array<std::int64_t, 3>> &solid_sizes, MmaShape mma = MmaShape::automatic) {
  for (const Shape &shape : stencil::shapes()) {
    if (shape.dimensions == 3 && solid_sizes.empty()) continue;
    EXPECT_EQ(backend.check(executor.device(), shape), "") << backend.name() << " on " << shape.name;
    for (const auto &extent : shape.dimensions == 2 ? plane_sizes : solid_sizes)
      for (const int ring : {0, shape.radius}) {
        const Problem p = random_problem(shape, extent, ring, 1);
        const Cells   cells = random_cells(p.grid.size(), 2);
        SCOPED_TRACE(backend.name() + ": " + name_of(p));
        for (const int depth : backend.depths(shape, mma)) {
          SCOPED_TRACE("depth " + std::to_string(depth));
          const auto sweep = backend.build(executor, p, {depth, mma});
          EXPECT_EQ(sweep->depth(), depth);
          for (const int steps : {depth, 2 * depth + 1})
            expect_result(p, *sweep, advance(executor, *sweep, p, cells, steps), by_definition(p, cells, steps), steps);
        }
      }
  }
}

// Lines farther apart than they are long, which begin at multiples of 128, 16 and 8 bytes: nothing between them gets into a cell.
void expect_pitches(Executor &executor, const Sweeper &backend, MmaShape mma = MmaShape::automatic) {
  for (const Shape &shape : stencil::shapes())
    for (const std::int64_t nx : {61, 66, 131})
      for (const int ring : {0, shape.radius}) {
        const Problem        dense = random_problem(shape, {nx, 37, 13}, ring, 1);
        const Cells          cells = random_cells(dense.grid.size(), 2);
        std::map<int, Cells> expected; // of so many steps
        for (const int depth : backend.depths(shape, mma))
          for (const int steps : {depth, 2 * depth + 1}) expected[steps] = by_definition(dense, cells, steps);
        for (const std::int64_t pitch : {nx + 1, nx + 3, stencil::aligned_pitch(nx)}) {
          Problem p = dense;
          p.grid.pitch = pitch;
          SCOPED_TRACE(backend.name() + ": " + name_of(p) + ", pitch " + std::to_string(pitch));
          const Cells apart = spread(p.grid, cells);
          for (const int depth : backend.depths(shape, mma)) {
            const auto sweep = backend.build(executor, p, {depth, mma});
            for (const int begin : {0, 1})
              expect_result(dense, *sweep, gather(p.grid, advance(executor, *sweep, p, apart, depth, begin, begin)),
                            expected[depth], depth);
            expect_result(dense, *sweep, gather(p.grid, advance(executor, *sweep, p, apart, 2 * depth + 1)),
                          expected[2 * depth + 1], 2 * depth + 1);
            if (::testing::Test::HasFailure()) return;
          }
        }
      }
}

class StencilIterated : public ::testing::Test {
protected:
  const std::unique_ptr<Executor> host_ = make_host_executor();
};

TEST_F(StencilIterated, shapes_have_the_points_of_their_names) {
  const std::vector<std::pair<std::string, int>> points = {{"2d5pt", 5},   {"2ds9pt", 9},    {"2d9pt", 9},   {"2d25pt", 25},
                                                           {"2d49pt", 49}, {"star2d3r", 13}, {"3d7pt", 7},   {"3d13pt", 13},
                                                           {"3d17pt", 17}, {"3d27pt", 27},   {"poisson", 19}};
  for (const auto &[name, count] : points) EXPECT_EQ(stencil::find_shape(name).points(), count) << name;
  EXPECT_EQ(stencil::shapes().size(), points.size());
  EXPECT_THROW(stencil::find_shape("4d9pt"), Error);
}

TEST_F(StencilIterated, host_agrees_with_the_definition) {
  expect_all(*host_, sweeper("host"), {{1, 1, 1}, {2, 5, 1}, {5, 2, 1}, {17, 9, 1}, {131, 12, 1}, {0, 4, 1}},
             {{1, 1, 1}, {3, 2, 4}, {70, 5, 3}, {9, 11, 10}, {4, 0, 4}});
}

// S^2 of a single 1 is the weights convolved with themselves.
TEST_F(StencilIterated, two_steps_of_a_unit_convolve_the_weights) {
  Problem p = random_problem(stencil::find_shape("3d17pt"), {7, 7, 7}, 0, 3);
  Cells   cells(343, 0.0);
  cells[(3 * 7 + 3) * 7 + 3] = 1.0;
  const Cells found = advance(*host_, *sweeper("host").build(*host_, p, {2}), p, cells, 2);
  Cells       expected(343, 0.0);
  for (int a = 0; a < p.shape.points(); ++a)
    for (int b = 0; b < p.shape.points(); ++b) {
      std::array<int, 3> at;
      for (int d = 0; d < 3; ++d) at[d] = 3 - p.shape.offsets[a][d] - p.shape.offsets[b][d];
      expected[(at[2] * 7 + at[1]) * 7 + at[0]] += p.weights[a] * p.weights[b];
    }
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-15) << i;
}

TEST_F(StencilIterated, the_ring_keeps_its_values_and_no_steps_copy) {
  const Problem p = random_problem(stencil::find_shape("2d25pt"), {20, 13, 1}, 2, 4);
  const Cells   cells = random_cells(p.grid.size(), 5);
  const auto    sweep = sweeper("host").build(*host_, p, {4});
  const Cells   found = advance(*host_, *sweep, p, cells, 7);
  for (std::int64_t y = 0; y < 13; ++y)
    for (std::int64_t x = 0; x < 20; ++x) {
      const bool ring = x < 2 || x >= 18 || y < 2 || y >= 11;
      EXPECT_EQ(found[y * 20 + x] == cells[y * 20 + x], ring) << x << ", " << y;
    }
  EXPECT_EQ(advance(*host_, *sweep, p, cells, 0), cells);
}

// Composed weights make several steps at once where no cell on the way keeps its value.
TEST_F(StencilIterated, composed_weights_make_several_steps) {
  for (const char *name : {"2d5pt", "2ds9pt", "3d7pt"}) {
    const Problem p = random_problem(stencil::find_shape(name), {21, 19, 17}, 0, 13);
    const Problem three = stencil::compose(p, 3);
    const Cells   cells = random_cells(p.grid.size(), 14);
    const Cells   found = by_definition(three, cells, 1), expected = by_definition(p, cells, 3);
    const int     reach = 3 * p.shape.radius;
    SCOPED_TRACE(name);
    EXPECT_EQ(three.shape.radius, reach);
    for (std::int64_t i = 0; i < p.grid.size(); ++i) {
      const std::int64_t x = i % 21, y = i / 21 % 19, z = i / (21 * 19);
      const bool         flat = p.shape.dimensions == 2;
      if (x < reach || x >= 21 - reach || y < reach || y >= 19 - reach || (!flat && (z < reach || z >= 17 - reach))) continue;
      EXPECT_NEAR(found[i], expected[i], 1e-14) << x << ", " << y << ", " << z;
    }
  }
  EXPECT_EQ(stencil::compose(random_problem(stencil::find_shape("2d9pt"), {9, 9, 1}, 0, 1), 3).shape.offsets,
            stencil::box(2, 3).offsets);
}

TEST_F(StencilIterated, nothing_between_lines_gets_into_cells) { expect_pitches(*host_, sweeper("host")); }

TEST_F(StencilIterated, depth_is_chosen_by_the_roofline) {
  const Problem p = random_problem(stencil::find_shape("2d5pt"), {64, 64, 1}, 1, 15);
  EXPECT_EQ(sweeper("host").build(*host_, p, {0, MmaShape::automatic, 1e6})->depth(), 8); // bytes are all that counts
  EXPECT_EQ(sweeper("host").build(*host_, p, {0, MmaShape::automatic, 1e-6})->depth(), 8);
}

TEST_F(StencilIterated, contradictions_are_errors) {
  const Problem  good = random_problem(stencil::find_shape("2d9pt"), {8, 8, 1}, 1, 6);
  const Sweeper &host = sweeper("host");
  Problem        p = good;
  p.weights.pop_back();
  EXPECT_THROW(host.build(*host_, p, {1}), Error);
  p = good;
  p.grid.ring = 2;
  EXPECT_THROW(host.build(*host_, p, {1}), Error);
  p = good;
  p.grid.extent[2] = 2;
  EXPECT_THROW(host.build(*host_, p, {1}), Error);
  p = good;
  p.grid.pitch = 7;
  EXPECT_THROW(host.build(*host_, p, {1}), Error);
  p = random_problem(stencil::find_shape("3d7pt"), {40000, 50000, 9}, 1, 6);
  EXPECT_NO_THROW(stencil::check_problem(p));
  p.grid.pitch = 44000;
  EXPECT_THROW(stencil::check_problem(p), Error);
  p = good;
  p.shape.offsets[0][0] = -2;
  EXPECT_THROW(host.build(*host_, p, {1}), Error);
  try {
    host.build(*host_, good, {3});
    FAIL();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), "2d9pt in passes of 3 steps; there are passes of 1, 2, 4, 8");
  }
}

TEST_F(StencilIterated, work_is_the_models) {
  for (const model::Stencil &s : model::stencils()) {
    const Shape &shape = stencil::find_shape(s.name);
    EXPECT_EQ(shape.points(), s.points) << s.name;
    EXPECT_EQ(shape.radius, s.radius) << s.name;
    EXPECT_EQ(shape.dimensions, s.dimensions) << s.name;
    const Problem p = random_problem(shape, {16, 12, 9}, 0, 7);
    const Work    pass = sweeper("host").build(*host_, p, {4})->work(4);
    EXPECT_EQ(pass, model::stencil_work(p.grid.size(), shape.points(), 4)) << s.name;
    EXPECT_EQ(sweeper("host").build(*host_, p, {4})->work(7).bytes, 3 * 16 * p.grid.size()); // passes of 4, 2 and 1
  }
  const Problem ringed = random_problem(stencil::find_shape("2d5pt"), {16, 12, 1}, 1, 7);
  EXPECT_EQ(sweeper("host").build(*host_, ringed, {1})->work(1).useful_flops, 10 * 14 * 10);
}

#ifdef TCBOUND_HAVE_CUDA
class GpuStencilIterated : public OnDevice {};

TEST_F(GpuStencilIterated, plain_kernel_agrees_with_the_definition) {
  expect_all(*device_, sweeper("plain"), plane_sizes, solid_sizes);
}

TEST_F(GpuStencilIterated, cuda_cores_agree_with_the_definition) {
  expect_all(*device_, sweeper("cuda_core"), plane_sizes, solid_sizes);
}

// The same for tiles of 64 by 16 cells and segments of 8 planes, with and without a ring of 1 or 2.
const std::vector<std::array<std::int64_t, 3>> banded_sizes = {
  {1, 1, 1},    {2, 3, 2},     {7, 5, 9},    {4, 4, 4},    {5, 5, 5},   {33, 40, 12}, {64, 16, 8}, {65, 17, 9}, {66, 18, 10},
  {68, 20, 12}, {130, 34, 19}, {129, 33, 3}, {128, 32, 1}, {1, 70, 33}, {3, 90, 40},  {90, 3, 7},  {0, 5, 5}};

TEST_F(GpuStencilIterated, banded_twin_agrees_with_the_definition) {
  expect_all(*device_, sweeper("cuda_core", "banded"), plane_sizes, banded_sizes);
}

TEST_F(GpuStencilIterated, tensor_cores_agree_with_the_definition) {
  for (const MmaShapeFacts &facts : mma_shapes) {
    SCOPED_TRACE(facts.name);
    if (check_mma(device_->device(), facts.shape).empty())
      expect_all(*device_, sweeper("tensor_core", "banded"), plane_sizes, banded_sizes, facts.shape);
    else
      EXPECT_THROW(sweeper("tensor_core", "banded")
                     .build(*device_, random_problem(stencil::find_shape("2d49pt"), {9, 9, 1}, 3, 1), {1, facts.shape}),
                   Error);
  }
}

TEST_F(GpuStencilIterated, nothing_between_lines_gets_into_cells) {
  expect_pitches(*device_, sweeper("plain"));
  expect_pitches(*device_, sweeper("cuda_core"));
  expect_pitches(*device_, sweeper("cuda_core", "banded"));
  for (const MmaShape mma : {MmaShape::m8n8k4, MmaShape::m16n8k16})
    if (check_mma(device_->device(), mma).empty()) expect_pitches(*device_, sweeper("tensor_core", "banded"), mma);
}

TEST_F(GpuStencilIterated, tensor_cores_repeat_their_results) {
  const Problem p = random_problem(stencil::find_shape("2d9pt"), {1500, 700, 1}, 1, 16);
  const Cells   cells = random_cells(p.grid.size(), 17);
  const auto    sweep = sweeper("tensor_core", "banded").build(*device_, p, {3});
  EXPECT_EQ(sweep->mma(), check_mma(device_->device(), MmaShape::m16n8k16).empty() ? "m16n8k16" : "m8n8k4");
  const Cells first = advance(*device_, *sweep, p, cells, 7);
  for (int run = 0; run < 20; ++run) expect_same_bits(p, advance(*device_, *sweep, p, cells, 7), first);

  const Problem solid = random_problem(stencil::find_shape("3d7pt"), {200, 90, 70}, 1, 20);
  const Cells   solid_cells = random_cells(solid.grid.size(), 21);
  const auto    two = sweeper("tensor_core", "banded").build(*device_, solid, {2});
  const Cells   once = advance(*device_, *two, solid, solid_cells, 5);
  for (int run = 0; run < 20; ++run) expect_same_bits(solid, advance(*device_, *two, solid, solid_cells, 5), once);
}

// Lines that begin at multiples of 16 bytes are read in pairs of cells.
TEST_F(GpuStencilIterated, passes_of_aligned_lines_agree_with_the_plain_kernel) {
  const std::pair<const char *, const char *> kernels[] = {
    {"iterated", "cuda_core"}, {"banded", "cuda_core"}, {"banded", "tensor_core"}};
  for (const Shape &shape : stencil::shapes())
    for (const auto &[format, backend] : kernels)
      for (const int ring : {0, shape.radius}) {
        const bool        solid = shape.dimensions == 3;
        const Problem     p = random_problem(shape, {solid ? 326 : 1034, solid ? 130 : 301, solid ? 100 : 1}, ring, 18);
        const Cells       cells = random_cells(p.grid.size(), 19);
        const std::size_t bytes = cells.size() * sizeof(double);
        Array<double>     in(*device_, p.grid.size());
        Array<double>     out(*device_, p.grid.size());
        SCOPED_TRACE(std::string(format) + "/" + backend + ": " + name_of(p));
        device_->copy(in.data(), MemorySpace::cuda, cells.data(), MemorySpace::host, bytes);
        for (const int depth : sweeper(backend, format).depths(shape, MmaShape::m8n8k4)) {
          Cells found(cells.size(), std::nan(""));
          device_->copy(out.data(), MemorySpace::cuda, found.data(), MemorySpace::host, bytes);
          const auto sweep = sweeper(backend, format).build(*device_, p, {depth});
          sweep->run(*device_, in.data(), out.data(), depth);
          device_->copy(found.data(), MemorySpace::host, out.data(), MemorySpace::cuda, bytes);
          const Cells expected = advance(*device_, *sweeper("plain").build(*device_, p, {1}), p, cells, depth);
          expect_result(p, *sweep, found, expected, depth);
        }
      }
}

// Single steps of solid grids with a ring: lines of all remainders around what a warp has of them, in bands that end in the middle of a
// block and of a march, in memory at multiples of 16 bytes and not; grids of which little or nothing changes.
TEST_F(GpuStencilIterated, framed_steps_agree_with_the_definition) {
  const std::array<std::int64_t, 3> inner[] = {
    {1, 1, 1},   {1, 1, 4},   {3, 2, 3},     {2, 9, 5},   {58, 8, 8},   {59, 7, 6},   {60, 16, 9},  {61, 17, 10}, {62, 25, 7},
    {63, 15, 5}, {64, 33, 4}, {118, 12, 16}, {119, 9, 6}, {121, 31, 5}, {130, 34, 9}, {254, 10, 6}, {518, 9, 5},  {1, 40, 12}};
  for (const Shape &shape : stencil::shapes())
    if (shape.dimensions == 3)
      for (const auto &n : inner) {
        const int     ring = shape.radius;
        const Problem p = random_problem(shape, {n[0] + 2 * ring, n[1] + 2 * ring, n[2] + 2 * ring}, ring, 23);
        const Cells   cells = random_cells(p.grid.size(), 24), expected = by_definition(p, cells, 1);
        SCOPED_TRACE(name_of(p));
        for (const auto &[in_begin, out_begin] : {std::pair{0, 0}, {2, 0}, {1, 0}, {0, 1}})
          expect_same_bits(
            p, advance(*device_, *sweeper("cuda_core").build(*device_, p, {1}), p, cells, 1, in_begin, out_begin), expected);
      }
}

TEST_F(GpuStencilIterated, many_strips_and_segments_agree_with_the_plain_kernel) {
  for (const Shape &shape : stencil::shapes()) {
    const Problem p = shape.dimensions == 2 ? random_problem(shape, {4099, 3001, 1}, shape.radius, 8)
                                            : random_problem(shape, {260, 201, 190}, shape.radius, 8);
    const Cells   cells = random_cells(p.grid.size(), 9);
    SCOPED_TRACE(name_of(p));
    for (const int depth : sweeper("cuda_core").depths(shape)) {
      const auto  sweep = sweeper("cuda_core").build(*device_, p, {depth});
      const Cells found = advance(*device_, *sweep, p, cells, depth + 1);
      expect_same_bits(p, found, advance(*device_, *sweeper("plain").build(*device_, p, {1}), p, cells, depth + 1));
      EXPECT_EQ(found, advance(*device_, *sweep, p, cells, depth + 1)) << "from run to run, depth " << depth;
    }
  }
}

TEST_F(GpuStencilIterated, values_that_are_no_numbers_spread_as_by_definition) {
  const Problem p = random_problem(stencil::find_shape("2d9pt"), {150, 40, 1}, 1, 10);
  Cells         cells = random_cells(p.grid.size(), 11);
  cells[20 * 150 + 70] = std::nan("");
  cells[5 * 150 + 113] = INFINITY;
  for (const int depth : sweeper("cuda_core").depths(p.shape)) {
    const Cells found = advance(*device_, *sweeper("cuda_core").build(*device_, p, {depth}), p, cells, depth);
    const Cells expected = by_definition(p, cells, depth);
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_TRUE(found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i]))) << i << ", depth " << depth;
  }
}

// Where all products are zeros, their signs show what a sum begins with. A weight that is not finite makes a NaN of a 0 outside.
TEST_F(GpuStencilIterated, signs_of_zeros_and_infinite_weights_are_as_by_definition) {
  for (const Shape &shape : stencil::shapes())
    for (const bool infinite : {false, true}) {
      Problem     p = random_problem(shape, {70, 21, 9}, 0, 22);
      const Cells cells(static_cast<std::size_t>(p.grid.size()), infinite ? 1.0 : 0.0);
      for (double &weight : p.weights) weight = -std::abs(weight);
      if (infinite) p.weights.back() = INFINITY;
      SCOPED_TRACE(name_of(p));
      const Cells expected = by_definition(p, cells, 1),
                  found = advance(*device_, *sweeper("cuda_core").build(*device_, p, {1}), p, cells, 1);
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_TRUE(std::isnan(expected[i]) ? std::isnan(found[i]) : std::memcmp(&found[i], &expected[i], sizeof(double)) == 0)
          << i;
    }
}

TEST_F(GpuStencilIterated, a_shape_without_a_pipeline_is_refused) {
  const Shape shape = stencil::star(3, 3);
  EXPECT_EQ(sweeper("cuda_core").check(device_->device(), shape), "it has no pipeline for the stencil star3d3r");
  EXPECT_THROW(sweeper("cuda_core").build(*device_, random_problem(shape, {9, 9, 9}, 0, 12)), Error);
}
#endif

} // namespace
