#pragma once

// Device code of cuda_core.cu: one warp advances a strip of columns by T steps while it walks down the rows. For .cu files only.
//
// A lane owns W neighbouring columns. Rows enter at stage 0; each stage holds, in registers, the sums of the 2R rows that its
// input has begun but not completed, and hands the completed row on to the next stage in the same turn of the loop. Neighbours in
// x beyond a lane's own columns come from the lanes beside it. No barrier but the warp's own, no memory
// between stages: 2R W T sums a lane are all that T steps cost. A warp computes 2 T R columns, and a
// segment of rows 2 T R rows, that its neighbours compute too.
//
// A pass that relaxes adds b to the rows that a stage completes, R T to R rows behind the one that enters: b's rows arrive R turns
// after those of the input and stay in shared memory until the last stage has read them.

#include "strips.h"

namespace tcbound::stencil {
namespace pipeline {

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

// What one cell of a stage's sums becomes. k: the sum's place; its row is the input's less R - 1 - k. b: of the cells that are
// completed, where the pass relaxes.
template <class P, Edge edge, int k>
__device__ __forceinline__ void advance_sums(double (&sums)[2 * P::R][P::W], double (&done)[P::W],
                                             const double (&near)[P::W + 2 * P::R], const StepWeights<Weights2d> &w,
                                             const double (&b)[P::W], unsigned fixed_columns, int row, int ring, int last) {
  constexpr int R = P::R, dy = R - 1 - k;
  if constexpr (k < 2 * R) {
    const bool fixed_row = edge == Edge::rows_and_columns && (row + k < ring || row + k > last);
#pragma unroll
    for (int j = 0; j < P::W; ++j) {
      double old = 0.0;
      if constexpr (k + 1 < 2 * R) old = sums[k + 1][j];
      double     sum = add_row<P, dy, k == 2 * R - 1>(old, near, j, w.points);
      const bool fixed = edge != Edge::none && (fixed_row || (fixed_columns >> j & 1));
      if (fixed) sum = dy != 0 ? old : P::relaxes ? w.sources.ring_weight * near[j + R] : near[j + R];
      if constexpr (k < 0)
        done[j] = P::relaxes ? fma(fixed ? w.sources.ring_source : w.sources.source, b[j], sum) : sum;
      else
        sums[k][j] = sum;
    }
    advance_sums<P, edge, k + 1>(sums, done, near, w, b, fixed_columns, row, ring, last);
  }
}

} // namespace pipeline

template <int R_, bool box_, int T_, int W_, int resident_, bool relaxes_ = false, int ahead_ = 8> struct Pipeline2d {
  static constexpr int  R = R_, T = T_, W = W_, resident = resident_, ahead = ahead_;
  static constexpr bool box = box_; // else a star
  static constexpr bool relaxes = relaxes_;
  static constexpr int  columns = 32 * W, margin = T * R, sources = relaxes ? (T - 1) * R + ahead : 0;
  using Points = Weights2d;
  using Weights = std::conditional_t<relaxes, RelaxationWeights<Points, T>, Points>;

  struct State {
    double sums[T][2 * R][W];

    __device__ __forceinline__ State(const Weights &, int) {
#pragma unroll
      for (int s = 0; s < T; ++s)
#pragma unroll
        for (int k = 0; k < 2 * R; ++k)
#pragma unroll
          for (int j = 0; j < W; ++j) sums[s][k][j] = 0.0;
    }
  };

  __device__ static int own_column(int lane, int j) { return lane * W + j; }

  __device__ static __forceinline__ void get(double (&v)[W], const double *row, int lane) {
#pragma unroll
    for (int j = 0; j < W; j += 2) {
      const double2 two = *reinterpret_cast<const double2 *>(row + lane * W + j);
      v[j] = two.x;
      v[j + 1] = two.y;
    }
  }

  template <Edge edge>
  __device__ static __forceinline__ void advance(State &state, double (&v)[W], const double *row, const double *sources_of_b,
                                                 const Weights &w, int lane, unsigned fixed_columns, int y, int ring,
                                                 int last) {
    get(v, row, lane);
    if constexpr (relaxes)
      if (w.starts) {
        const bool fixed_row = edge == Edge::rows_and_columns && (y < ring || y > last);
#pragma unroll
        for (int j = 0; j < W; ++j)
          v[j] *= edge != Edge::none && (fixed_row || (fixed_columns >> j & 1)) ? w.ring_start : w.start;
      }
#pragma unroll
    for (int s = 0; s < T; ++s) {
      double near[W + 2 * R], b[W] = {};
      if constexpr (relaxes) get(b, sources_of_b + slot_of<sources>(y - (s + 1) * R) * columns, lane);
#pragma unroll
      for (int j = 0; j < W; ++j) near[j + R] = v[j];
#pragma unroll
      for (int i = 0; i < R; ++i) {
        near[i] = __shfl_up_sync(~0U, v[W - R + i], 1);
        near[W + R + i] = __shfl_down_sync(~0U, v[i], 1);
      }
      pipeline::advance_sums<Pipeline2d, edge, -1>(state.sums[s], v, near, weights_of_step(w, s), b, fixed_columns,
                                                   y - s * R - (R - 1), ring, last);
    }
  }

  __device__ static __forceinline__ void put(double *row, int lane, const double (&v)[W]) {
#pragma unroll
    for (int j = 0; j < W; j += 2) *reinterpret_cast<double2 *>(row + lane * W + j) = make_double2(v[j], v[j + 1]);
  }
};

} // namespace tcbound::stencil
