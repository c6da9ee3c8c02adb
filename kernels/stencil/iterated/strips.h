#pragma once

// Device code: one warp advances a strip of columns while it walks down the rows; how, an engine P says (pipeline_2d.h). Rows are
// fetched ahead by asynchronous copies and leave by way of shared memory, so that a warp reads and writes whole lines whatever the
// alignment. For .cu files only.
//
// An engine has W cells of a row in each lane and
//   columns, margin   of a strip: columns - 2 margin are written; a segment of rows reads `margin` more on both sides
//   R                 how far below a row its last sums are
//   resident, ahead   warps of a multiprocessor, which bounds a lane's registers; row buffers of a warp
//   Weights, sources  what the kernel takes for its steps; row buffers of b where the engine relaxes, else 0
//   State(w, lane)    what a lane keeps from row to row
//   own_column(lane, j)                where its cells lie
//   advance<edge>(state, v, row, ...)  row y enters; row y - margin leaves in v
//   put(row, lane, v)                  stores v into a row
// advance() also takes the buffers of b: where the engine relaxes, rows y - T R to y - R are there.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <cuda_runtime.h>

#include "../../cuda/cell_copy.h"
#include "../../cuda/error.h"
#include "steps.h"

namespace tcbound::stencil {

struct Weights2d {
  double at[7][7]; // [dy + R][dx + R]
};

template <> inline Weights2d points_of<Weights2d>(const Shape &shape, const std::vector<double> &weights) {
  Weights2d w = {};
  const int r = shape.radius;
  for (int p = 0; p < shape.points(); ++p) w.at[shape.offsets[p][1] + r][shape.offsets[p][0] + r] = weights[p];
  return w;
}

// Which of the cells at hand may keep their values.
enum class Edge { none, columns, rows_and_columns };

// Segments of strips: a warp each. Strips at the sides of the grid, where cells that keep their values cost time in every row,
// have segments of fewer rows; those come first.
struct Strips {
  const double *in, *b; // b: only of engines that relax
  double       *out;
  int           nx, ny, ring;
  int           strips, strip_columns, segments, segment_rows, side_segments, side_rows;
  int pitch; // cells from row to row; in another place of the launch's parameters it makes two kernels spill (nvcc 13.0)

  __host__ __device__ int sides() const { return strips < 2 ? strips : 2; }
  __host__ __device__ int items() const { return sides() * side_segments + (strips - sides()) * segments; }
};

// Blocks are single warps: all that does not depend on the lane is then uniform for the compiler too, so that weights and loop
// counters lie in uniform registers.
template <class P>
__global__ void __launch_bounds__(32, P::resident) advance_strips(const Strips g, const typename P::Weights w) {
  constexpr int             R = P::R, W = P::W, columns = P::columns, ahead = P::ahead;
  extern __shared__ double2 shared[];
  const int                 lane = threadIdx.x, item = blockIdx.x;
  double *const             leaving = reinterpret_cast<double *>(shared) + ahead * columns;
  double *const             rows = reinterpret_cast<double *>(shared);
  double *const             sources = leaving + 2 * columns; // of b
  const int  side_items = g.sides() * g.side_segments, inner_item = item - side_items, inner_strips = g.strips - g.sides();
  const bool at_side = item < side_items;
  const int  strip = at_side ? item % g.sides() * (g.strips - 1) : 1 + inner_item % inner_strips;
  const int  rows_each = at_side ? g.side_rows : g.segment_rows;
  const int  x_begin = strip * g.strip_columns, x_end = min(x_begin + g.strip_columns, g.nx);
  const int  y_begin = (at_side ? item / g.sides() : inner_item / inner_strips) * rows_each,
            y_end = min(y_begin + rows_each, g.ny);
  const int x_first = x_begin - P::margin, x_lane = x_first + lane; // of copies: columns lane, lane + 32, ...
  const int last_column = g.nx - 1 - g.ring, last = g.ny - 1 - g.ring;
  unsigned  copied = 0, written = 0, fixed_columns = 0;
#pragma unroll
  for (int j = 0; j < W; ++j) {
    const int x = x_lane + 32 * j, own = x_first + P::own_column(lane, j);
    copied |= (x >= 0 && x < g.nx ? 1U : 0U) << j;
    written |= (x >= x_begin && x < x_end ? 1U : 0U) << j;
    fixed_columns |= (own < g.ring || own > last_column ? 1U : 0U) << j;
  }
  const bool side = x_first < g.ring || x_first + columns - 1 > last_column;

  const bool whole = x_first >= 0 && x_first + columns <= g.nx; // every column of every copied row lies in the array
  int        y_fetched = y_begin - P::margin;
  const int  y_fetch_end = min(y_end + P::margin, g.ny);
  const auto copy_row = [&](double *to, const double *from, int row) { // rows outside the array are zeros
    if (row < 0 || row >= y_fetch_end) {
#pragma unroll
      for (int j = 0; j < W; ++j) to[32 * j] = 0.0;
    } else if (whole) {
#pragma unroll
      for (int j = 0; j < W; ++j) copy_cell(to + 32 * j, from + 32 * j);
    } else {
#pragma unroll
      for (int j = 0; j < W; ++j)
        if (copied >> j & 1)
          copy_cell(to + 32 * j, from + 32 * j);
        else
          to[32 * j] = 0.0;
    }
  };
  const std::int64_t first = static_cast<std::int64_t>(y_fetched) * g.pitch + x_lane;
  const double      *from = g.in + first, *from_b = nullptr;
  if constexpr (P::sources > 0) from_b = g.b + (first - static_cast<std::int64_t>(R) * g.pitch);
  const auto fetch = [&] { // the next row into its buffer and, of b, the one R before
    copy_row(rows + slot_of<ahead>(y_fetched) * columns + lane, from, y_fetched);
    if constexpr (P::sources > 0) {
      copy_row(sources + slot_of<P::sources>(y_fetched - R) * columns + lane, from_b, y_fetched - R);
      from_b += g.pitch;
    }
    commit_copies();
    from += g.pitch;
    ++y_fetched;
  };

  typename P::State state(w, lane);
#pragma unroll 1
  for (int i = 0; i < ahead - 1; ++i) fetch();
  double    *to = g.out + static_cast<std::int64_t>(y_begin) * g.pitch + x_lane;
  int        y = y_begin - P::margin;
  const auto turn = [&](auto edge) {
    double v[W];
    wait_copies<ahead - 2>();
    __syncwarp(); // row y is there, and all lanes are done with row y - 1, whose buffer is filled next
    fetch();
    const double *row = rows + slot_of<ahead>(y) * columns;
    P::template advance<decltype(edge)::value>(state, v, row, sources, w, lane, fixed_columns, y, g.ring, last);
    if (y - P::margin >= y_begin) {
      double *const buffer = leaving + (y & 1) * columns; // the other one is still being read
      P::put(buffer, lane, v);
      __syncwarp();
#pragma unroll
      for (int j = 0; j < W; ++j)
        if (written >> j & 1) to[32 * j] = buffer[lane + 32 * j];
      to += g.pitch;
    }
    ++y;
  };
  // Cells that keep their values need care: at the grid's sides in all rows, else in the first and the last rows.
  const int y_stop = y_end + P::margin;
  const int inner_begin = min(max(y, g.ring + P::margin), y_stop), inner_end = max(inner_begin, min(y_stop, last + 1 - R));
#pragma unroll 1
  for (int part = 0; part < 3; ++part) {
    const int stop = part == 0 ? inner_begin : part == 1 ? inner_end : y_stop;
    if (part != 1) {
#pragma unroll 1
      while (y < stop) turn(std::integral_constant<Edge, Edge::rows_and_columns>());
    } else if (side) {
#pragma unroll 1
      while (y < stop) turn(std::integral_constant<Edge, Edge::columns>());
    } else {
#pragma unroll 1
      while (y < stop) turn(std::integral_constant<Edge, Edge::none>());
    }
  }
}

// As many segments as warps are resident at once, so that all end together, but none so short that the rows it shares with its
// neighbours would be more than half of its own.
template <class P> Strips plan_strips(const Grid &grid, int multiprocessors) {
  const auto   ceil_divide = [](int a, int b) { return (a + b - 1) / b; };
  const double side_cost = 1.6; // of a row there over one elsewhere
  const int    warps = P::resident * multiprocessors;
  Strips       g = {};
  g.nx = static_cast<int>(grid.extent[0]);
  g.pitch = static_cast<int>(grid.line());
  g.ny = static_cast<int>(grid.extent[1]);
  g.ring = grid.ring;
  const int nx = std::max(1, g.nx), ny = std::max(1, g.ny), least = std::min(ny, 4 * P::margin);
  g.strip_columns = ceil_divide(nx, ceil_divide(nx, P::columns - 2 * P::margin));
  g.strips = ceil_divide(nx, g.strip_columns);
  const int segments = std::max(1, static_cast<int>(warps / (g.strips - g.sides() + side_cost * g.sides())));
  const int side_segments = std::max(1, (warps - (g.strips - g.sides()) * segments) / g.sides());
  g.segment_rows = std::max(ceil_divide(ny, segments), least);
  g.side_rows = std::max(ceil_divide(ny, std::min(side_segments, 2 * segments)), least);
  g.segments = ceil_divide(ny, g.segment_rows);
  g.side_segments = ceil_divide(ny, g.side_rows);
  return g;
}

// The strips of a grid, and how they are launched.
template <class P> class LaunchStrips {
public:
  LaunchStrips(Executor &executor, const Grid &grid) : plan_(plan_strips<P>(grid, executor.device().multiprocessors)) {
    TCBOUND_CUDA(cudaFuncSetAttribute(advance_strips<P>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
    TCBOUND_CUDA(cudaFuncSetAttribute(advance_strips<P>, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
  }

  // A segment of a strip takes margins on both sides in both directions.
  double redundancy() const {
    if (plan_.nx == 0 || plan_.ny == 0) return 1.0;
    const double computed = 1.0 * plan_.strips * P::columns * plan_.segments * (plan_.segment_rows + 2.0 * P::margin);
    return computed / (1.0 * plan_.nx * plan_.ny);
  }

  void operator()(Executor &executor, const double *in, const double *b, double *out,
                  const typename P::Weights &weights) const {
    Strips strips = plan_;
    strips.in = in;
    strips.b = b;
    strips.out = out;
    advance_strips<P><<<static_cast<unsigned>(plan_.items()), 32, shared_bytes, static_cast<cudaStream_t>(executor.stream())>>>(
      strips, weights);
    TCBOUND_LAUNCHED();
  }

  static constexpr int shared_bytes = 8 * (P::ahead + 2 + P::sources) * P::columns;

private:
  const Strips plan_;
};

template <class P> class StripPass : public Pass {
public:
  // shape, weights: those of the engine, of as many steps as it makes at once.
  StripPass(Executor &executor, const Grid &grid, const Shape &shape, const std::vector<double> &weights, int depth)
    : launch_(executor, grid), weights_(points_of<Weights2d>(shape, weights)), depth_(depth) {}

  int    depth() const override { return depth_; }
  double redundancy() const override { return launch_.redundancy(); }
  void   run(Executor &executor, const double *in, double *out) override { launch_(executor, in, nullptr, out, weights_); }

private:
  const LaunchStrips<P> launch_;
  const Weights2d       weights_;
  const int             depth_;
};

} // namespace tcbound::stencil
