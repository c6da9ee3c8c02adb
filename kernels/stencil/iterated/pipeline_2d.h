#pragma once

// Device code of cuda_core.cu: one warp advances a strip of columns by T steps while it walks down the rows. For .cu files only.
//
// A lane owns W neighbouring columns. Rows enter at stage 0; each stage holds, in registers, the sums of the 2R rows that its
// input has begun but not completed, and hands the completed row on to the next stage in the same turn of the loop. Neighbours in
// x beyond a lane's own columns come from the lanes beside it. No block-wide barrier, no shared memory but for the way in (rows
// fetched ahead by asynchronous copies) and out (so that a warp writes whole lines whatever the alignment): 2R W T sums a lane
// are all that T steps cost. A warp computes 2 T R columns, and a segment of rows 2 T R rows, that its neighbours compute too.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <cuda_runtime.h>

#include "../../cuda/cell_copy.h"
#include "iterated.h"

namespace tcbound::stencil {

struct Weights2d {
  double at[7][7]; // [dy + R][dx + R]; of a star only the cross is used
};

// Segments of strips: a warp each.
struct Strips {
  const double *in;
  double       *out;
  int           nx, ny, ring;
  int           strips, strip_columns, segments, segment_rows;
};

// resident: warps of a multiprocessor, which bounds a lane's registers. ahead: row buffers of a warp, a power of 2.
template <int R_, bool box_, int T_, int W_, int resident_, int ahead_ = 8> struct Pipeline2d {
  static constexpr int  R = R_, T = T_, W = W_, resident = resident_, ahead = ahead_;
  static constexpr bool box = box_;
  static constexpr int  columns = 32 * W, margin = T * R;
  static constexpr int  shared_bytes = 8 * columns * (ahead + 2);
};

namespace pipeline {

template <class P> struct State { double sums[P::T][2 * P::R][P::W]; };

// Adds row dy of the stencil to `sum`; `near` holds a row from R columns left of the lane's first. first: there is no sum yet.
template <class P, int dy, bool first>
__device__ __forceinline__ double add_row(double sum, const double (&near)[P::W + 2 * P::R], int j, const Weights2d &w) {
  constexpr int R = P::R;
  if constexpr (P::box || dy == 0) {
#pragma unroll
    for (int dx = -R; dx <= R; ++dx)
      sum = first && dx == -R ? w.at[dy + R][dx + R] * near[j + R + dx] : fma(w.at[dy + R][dx + R], near[j + R + dx], sum);
    return sum;
  } else {
    return first ? w.at[dy + R][R] * near[j + R] : fma(w.at[dy + R][R], near[j + R], sum);
  }
}

// What one cell of a stage's sums becomes. k: the sum's place; its row is the input's less R - 1 - k.
template <class P, bool edge, int k>
__device__ __forceinline__ void advance_sums(double (&sums)[2 * P::R][P::W], double (&done)[P::W],
                                             const double (&near)[P::W + 2 * P::R], const Weights2d &w, unsigned fixed_columns,
                                             int row, int ring, int last) {
  constexpr int R = P::R, dy = R - 1 - k;
  if constexpr (k < 2 * R) {
    const bool fixed_row = edge && (row + k < ring || row + k > last);
#pragma unroll
    for (int j = 0; j < P::W; ++j) {
      double old = 0.0;
      if constexpr (k + 1 < 2 * R) old = sums[k + 1][j];
      double sum = add_row<P, dy, k == 2 * R - 1>(old, near, j, w);
      if (edge && (fixed_row || (fixed_columns >> j & 1))) sum = dy == 0 ? near[j + R] : old; // passed through unchanged
      if constexpr (k < 0)
        done[j] = sum;
      else
        sums[k][j] = sum;
    }
    advance_sums<P, edge, k + 1>(sums, done, near, w, fixed_columns, row, ring, last);
  }
}

// Row y enters the first stage, row y - T R leaves the last one in `v`.
template <class P, bool edge>
__device__ __forceinline__ void advance(State<P> &state, double (&v)[P::W], const Weights2d &w, unsigned fixed_columns, int y,
                                        int ring, int last) {
  constexpr int R = P::R, W = P::W;
#pragma unroll
  for (int s = 0; s < P::T; ++s) {
    double near[W + 2 * R];
#pragma unroll
    for (int j = 0; j < W; ++j) near[j + R] = v[j];
#pragma unroll
    for (int i = 0; i < R; ++i) {
      near[i] = __shfl_up_sync(~0U, v[W - R + i], 1);
      near[W + R + i] = __shfl_down_sync(~0U, v[i], 1);
    }
    advance_sums<P, edge, -1>(state.sums[s], v, near, w, fixed_columns, y - s * R - (R - 1), ring, last);
  }
}

} // namespace pipeline

// Blocks are single warps: all that does not depend on the lane is then uniform for the compiler too, so that weights and loop
// counters lie in uniform registers.
template <class P> __global__ void __launch_bounds__(32, P::resident) advance_strips(const Strips g, const Weights2d w) {
  using namespace pipeline;
  constexpr int             R = P::R, T = P::T, W = P::W, columns = P::columns, ahead = P::ahead;
  extern __shared__ double2 shared[];
  const int                 lane = threadIdx.x, item = blockIdx.x;
  double *const rows = reinterpret_cast<double *>(shared), *const leaving = rows + ahead * columns;
  const int x_begin = item % g.strips * g.strip_columns, x_end = min(x_begin + g.strip_columns, g.nx);
  const int y_begin = item / g.strips * g.segment_rows, y_end = min(y_begin + g.segment_rows, g.ny);
  const int x_first = x_begin - P::margin, x_lane = x_first + lane; // of copies: columns lane, lane + 32, ...
  const int last_column = g.nx - 1 - g.ring, last = g.ny - 1 - g.ring;
  unsigned  copied = 0, written = 0, fixed_columns = 0;
#pragma unroll
  for (int j = 0; j < W; ++j) {
    const int x = x_lane + 32 * j, own = x_first + lane * W + j;
    copied |= (x >= 0 && x < g.nx ? 1U : 0U) << j;
    written |= (x >= x_begin && x < x_end ? 1U : 0U) << j;
    fixed_columns |= (own < g.ring || own > last_column ? 1U : 0U) << j;
  }
  const bool side = x_first < g.ring || x_first + columns - 1 > last_column;

  const bool    whole = x_first >= 0 && x_first + columns <= g.nx; // every column of every copied row lies in the array
  const double *from = g.in + static_cast<std::int64_t>(y_begin - P::margin) * g.nx + x_lane;
  int           y_fetched = y_begin - P::margin;
  const int     y_fetch_end = min(y_end + P::margin, g.ny);
  const auto    fetch = [&] { // the next row into its buffer; rows outside the array are zeros
    double *to = rows + (y_fetched & (ahead - 1)) * columns + lane;
    if (y_fetched < 0 || y_fetched >= y_fetch_end) {
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
    commit_copies();
    from += g.nx;
    ++y_fetched;
  };

  State<P> state;
#pragma unroll
  for (int s = 0; s < T; ++s)
#pragma unroll
    for (int k = 0; k < 2 * R; ++k)
#pragma unroll
      for (int j = 0; j < W; ++j) state.sums[s][k][j] = 0.0;
#pragma unroll 1
  for (int i = 0; i < ahead - 1; ++i) fetch();
  double    *to = g.out + static_cast<std::int64_t>(y_begin) * g.nx + x_lane;
  int        y = y_begin - P::margin;
  const auto turn = [&](auto edge) {
    double v[W];
    wait_copies<ahead - 2>();
    __syncwarp(); // row y is there, and all lanes are done with row y - 1, whose buffer is filled next
    const double *row = rows + (y & (ahead - 1)) * columns + lane * W;
#pragma unroll
    for (int j = 0; j < W; j += 2) {
      const double2 two = *reinterpret_cast<const double2 *>(row + j);
      v[j] = two.x;
      v[j + 1] = two.y;
    }
    fetch();
    advance<P, edge.value>(state, v, w, fixed_columns, y, g.ring, last);
    if (y - P::margin >= y_begin) {
      double *const buffer = leaving + (y & 1) * columns; // the other one is still being read
#pragma unroll
      for (int j = 0; j < W; j += 2) *reinterpret_cast<double2 *>(buffer + lane * W + j) = make_double2(v[j], v[j + 1]);
      __syncwarp();
#pragma unroll
      for (int j = 0; j < W; ++j)
        if (written >> j & 1) to[32 * j] = buffer[lane + 32 * j];
      to += g.nx;
    }
    ++y;
  };
  // Cells that keep their values need care: at the grid's sides in all rows, else in the first and the last rows.
  const int y_stop = y_end + P::margin;
  const int inner_begin = side ? y_stop : min(max(y, g.ring + P::margin), y_stop);
  const int inner_end = side ? y_stop : max(inner_begin, min(y_stop, last + 1 - R));
#pragma unroll 1
  for (int part = 0; part < 3; ++part) {
    if (part == 1) {
#pragma unroll 1
      while (y < inner_end) turn(std::false_type());
    } else {
      const int stop = part == 0 ? inner_begin : y_stop;
#pragma unroll 1
      while (y < stop) turn(std::true_type());
    }
  }
}

// As many segments as warps are resident at once, so that all end together, but none so short that the rows it shares with its
// neighbours would be more than half of its own.
template <class P> Strips plan_strips(const Grid &grid, int multiprocessors) {
  const auto ceil_divide = [](int a, int b) { return (a + b - 1) / b; };
  const int nx = static_cast<int>(grid.extent[0]), ny = static_cast<int>(grid.extent[1]), warps = P::resident * multiprocessors;
  Strips    g = {nullptr, nullptr, nx, ny, grid.ring, 0, 0, 0, 0};
  const int strips = std::max(1, ceil_divide(nx, P::columns - 2 * P::margin));
  g.strip_columns = std::max(1, ceil_divide(nx, strips));
  g.strips = std::max(1, ceil_divide(nx, g.strip_columns));
  g.segment_rows = std::max(ceil_divide(ny, std::max(1, warps / g.strips)), std::min(std::max(ny, 1), 4 * P::margin));
  g.segments = ceil_divide(ny, g.segment_rows);
  return g;
}

} // namespace tcbound::stencil
