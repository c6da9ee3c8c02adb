#pragma once

// Device code of tensor_core.cu and cuda_core.cu: an engine of ../iterated/strips.h whose rows are multiplied by banded matrices.
// For .cu files only.
//
// A row of 128 cells and what is left and right of them is read as a matrix of 16 windows, one for each 8 results:
//   A(m, k) = row[8 m + k - shift];
// times the banded (Toeplitz) matrix B_dy(k, n) = weight(dy, k - shift - n) it gives what row dy of the stencil adds to the
// results 8 m + n. A row is loaded once and multiplied by all 2R + 1 matrices, which stay in registers, onto the sums of 2R + 1
// rows. In the layout of the matrix instructions lane l owns the results 2 l, 2 l + 1 and 64 + 2 l, 64 + 2 l + 1: no result needs
// a shuffle. The twin on CUDA cores computes the same results in the same lanes from the same buffers, by multiply-adds with the
// weights that may differ from 0.
//
// A zero of a band times what is not finite is NaN: infinities and NaN spread to all 8 results of a window that holds them.

#include "../iterated/strips.h"
#include "arithmetic.h"

namespace tcbound::stencil {

// Which weights of a square of radius R may differ from 0.
enum class Outline { box, star, diamond };

constexpr int half_width(Outline outline, int R, int dy) {
  if (outline == Outline::box || dy == 0) return R;
  return outline == Outline::star ? 0 : R - (dy < 0 ? -dy : dy);
}

template <Arithmetic arithmetic_, Outline outline_, int R_, int resident_, int ahead_ = 8> struct Banded2d {
  static constexpr Arithmetic arithmetic = arithmetic_;
  static constexpr Outline    outline = outline_;
  static constexpr int        R = R_, W = 4, resident = resident_, ahead = ahead_;
  static constexpr int        columns = 128, margin = R, pad = 4;
  static constexpr int        shift = outline == Outline::box ? R : 4; // with 4, rows of one point need 8 columns only
  static constexpr bool       twin = arithmetic == Arithmetic::multiply_add;

  // Columns of a window that row dy of the stencil reaches, in steps of 4.
  static constexpr int first_step(int dy) { return (shift - half_width(outline, R, dy)) / 4; }
  static constexpr int stop_step(int dy) { return (shift + 7 + half_width(outline, R, dy)) / 4 + 1; }

  // Multiply-adds that are issued for a result, zeros in the bands included.
  static constexpr int issued() {
    int issued = 0;
    for (int dy = -R; dy <= R; ++dy) issued += twin ? 2 * half_width(outline, R, dy) + 1 : 4 * (stop_step(dy) - first_step(dy));
    return issued;
  }

  struct State {
    double sums[2 * R][4];
    double bands[twin ? 1 : 2 * R + 1][4]; // B_dy(4 i + t, g) of lane 4 g + t

    __device__ __forceinline__ State(const Weights2d &w, int lane) {
#pragma unroll
      for (int k = 0; k < 2 * R; ++k)
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[k][j] = 0.0;
      if constexpr (!twin) {
#pragma unroll
        for (int dy = -R; dy <= R; ++dy)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int dx = 4 * i + lane % 4 - shift - lane / 4;
            double    weight = 0.0;
#pragma unroll
            for (int known = -R; known <= R; ++known)
              if (dx == known) weight = w.at[dy + R][known + R];
            bands[dy + R][i] = weight;
          }
      }
    }
  };

  __device__ static int own_column(int lane, int j) { return 64 * (j / 2) + 2 * lane + j % 2; }

  // What a lane needs of a row: its windows, or what is around its two pairs of cells.
  struct Operands {
    double a[8];
    double near[2][2 + 8];

    __device__ __forceinline__ Operands(const double *row, int lane) {
      if constexpr (twin) {
#pragma unroll
        for (int h = 0; h < 2; ++h)
#pragma unroll
          for (int i = 0; i < 10; i += 2) {
            const double2 two = *reinterpret_cast<const double2 *>(row + 64 * h + 2 * lane - 4 + i);
            near[h][i] = two.x;
            near[h][i + 1] = two.y;
          }
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int k =
            4 * i + lane % 4; // beyond what the stencil reaches the row may end, and a zero of the band does not help
#pragma unroll
          for (int h = 0; h < 2; ++h) a[2 * i + h] = k < shift + 8 + R ? row[64 * h + 8 * (lane / 4) + k - shift] : 0.0;
        }
      }
    }
  };

  template <int dy>
  __device__ static __forceinline__ void add_row(double (&sums)[4], const Operands &x, const State &state, const Weights2d &w) {
    if constexpr (twin) {
      constexpr int half = half_width(outline, R, dy);
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int dx = -half; dx <= half; ++dx) sums[j] = fma(w.at[dy + R][dx + R], x.near[j / 2][4 + j % 2 + dx], sums[j]);
    } else {
      banded::multiply<arithmetic, first_step(dy), stop_step(dy), 4>(sums, x.a, state.bands[dy + R]);
    }
  }

  // As in pipeline_2d.h; own: the lane's cells of the row.
  template <Edge edge, int k>
  __device__ static __forceinline__ void advance_sums(State &state, double (&done)[4], const Operands &x,
                                                      const double (&own)[4], const Weights2d &w, unsigned fixed_columns,
                                                      int row, int ring, int last) {
    constexpr int dy = R - 1 - k;
    if constexpr (k < 2 * R) {
      const bool fixed_row = edge == Edge::rows_and_columns && (row + k < ring || row + k > last);
      double     old[4] = {0.0, 0.0, 0.0, 0.0}, sums[4];
      if constexpr (k + 1 < 2 * R) {
#pragma unroll
        for (int j = 0; j < 4; ++j) old[j] = state.sums[k + 1][j];
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[j] = old[j];
      add_row<dy>(sums, x, state, w);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (edge != Edge::none && (fixed_row || (fixed_columns >> j & 1))) sums[j] = dy == 0 ? own[j] : old[j];
        if constexpr (k < 0)
          done[j] = sums[j];
        else
          state.sums[k][j] = sums[j];
      }
      advance_sums<edge, k + 1>(state, done, x, own, w, fixed_columns, row, ring, last);
    }
  }

  template <Edge edge>
  __device__ static __forceinline__ void advance(State &state, double (&v)[4], const double *row, const Weights2d &w, int lane,
                                                 unsigned fixed_columns, int y, int ring, int last) {
    const Operands x(row, lane);
    double         own[4] = {0.0, 0.0, 0.0, 0.0};
    if constexpr (edge != Edge::none) {
#pragma unroll
      for (int j = 0; j < 4; ++j) own[j] = row[own_column(lane, j)];
    }
    advance_sums<edge, -1>(state, v, x, own, w, fixed_columns, y - (R - 1), ring, last);
  }

  __device__ static __forceinline__ void put(double *row, int lane, const double (&v)[4]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) *reinterpret_cast<double2 *>(row + 64 * h + 2 * lane) = make_double2(v[2 * h], v[2 * h + 1]);
  }
};

} // namespace tcbound::stencil
