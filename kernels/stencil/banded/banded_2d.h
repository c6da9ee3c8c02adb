#pragma once

// Device code of tensor_core.cu and cuda_core.cu: an engine of march.h and direct_2d.h whose rows are multiplied by banded matrices.
// For .cu files only.
//
// A row of 128 cells and what is left and right of them is read as a matrix of 16 windows, one for each 8 results, times a banded
// (Toeplitz) matrix for each row of the stencil:
//   A(m, k) = window m at position(k),  B_dy(k, n) = weight(dy, position(k) - n).
// Positions are the window's own 8 columns, of which lane 4 g + t takes the two that it has the results of, then what lies at the
// sides, the nearest first, so that narrow rows of the stencil need fewer of them. A row is loaded once and multiplied by all 2R + 1
// matrices, which stay in registers, onto the sums of 2R + 1 rows. Of a row of the stencil with one point a matrix would have one
// non-zero of 8: both kernels multiply and add there. The twin on CUDA cores computes the same results in the same lanes from the same
// buffers or registers, by multiply-adds with the weights that may differ from 0.
//
// A zero of a band times what is not finite is NaN: infinities and NaN spread to all 8 results of a window that holds them.

#include "../iterated/strips.h"
#include "arithmetic.h"
#include "march.h"

namespace tcbound::stencil {

// Which weights of a square of radius R may differ from 0.
enum class Outline { box, star, diamond };

constexpr int half_width(Outline outline, int R, int dy) {
  if (outline == Outline::box || dy == 0) return R;
  return outline == Outline::star ? 0 : R - (dy < 0 ? -dy : dy);
}

// As march.h says; direct_2d.h needs but the first three.
template <Arithmetic arithmetic_, Outline outline_, int R_, int warps_ = 4, int resident_ = 1, int ahead_ = 1,
          int best_planes_ = 1>
struct Banded2d {
  using Weights = Weights2d;

  static constexpr Arithmetic arithmetic = arithmetic_;
  static constexpr Outline    outline = outline_;
  static constexpr bool       twin = arithmetic == Arithmetic::multiply_add;
  static constexpr int        R = R_, warps = warps_, resident = resident_, ahead = ahead_, threads = 32 * warps;
  static constexpr int columns = 128 * warps, lines = 1, reach_y = 0, results = 4, scratch = 128, best_planes = best_planes_;
  static constexpr int beside = 8, pitch = columns + beside;

  // Tiles begin at even columns, so that pairs of cells lie at multiples of 16 bytes.
  static constexpr int first_column(int ring) { return ring - ring % 2; }
  static constexpr int lead(int) { return beside / 2; }

  __device__ static __forceinline__ int window_line(int) { return 0; }
  __device__ static __forceinline__ int window_column(int warp) { return 128 * warp; }
  __device__ static __forceinline__ int column_of(int lane, int j) { return lane + 32 * j; } // where results are stored
  __device__ static __forceinline__ int line_of(int) { return 0; }

  // Positions of a window, four a step, one for each lane of a group. At the sides: one and then two to the left, to the right, ...
  static constexpr int  steps = 2 + (2 * R + 3) / 4;
  static constexpr int  steps_of(int dy) { return 2 + (2 * half_width(outline, R, dy) + 3) / 4; }
  static constexpr bool only_centre(int dy) { return half_width(outline, R, dy) == 0; }

  static __host__ __device__ constexpr int distance(int step, int t) { return 1 + (4 * (step - 2) + t) / 2; } // at the sides
  static __host__ __device__ constexpr int position(int step, int t) {
    if (step < 2) return 2 * t + step;
    return t % 2 == 0 ? -distance(step, t) : 7 + distance(step, t);
  }

  // Multiply-adds that are issued for a result, zeros in the bands included.
  static constexpr int issued() {
    int issued = 0;
    for (int dy = -R; dy <= R; ++dy) issued += twin || only_centre(dy) ? 2 * half_width(outline, R, dy) + 1 : 4 * steps_of(dy);
    return issued;
  }

  struct State {
    double sums[2 * R][4];                     // of columns 64 h + 2 lane + (0, 1) in [2 h], [2 h + 1]
    double bands[twin ? 1 : 2 * R + 1][steps]; // B_dy(4 i + t, g) of lane 4 g + t

    __device__ __forceinline__ State(const Weights2d &w, int lane) {
#pragma unroll
      for (int k = 0; k < 2 * R; ++k)
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[k][j] = 0.0;
      if constexpr (!twin) {
#pragma unroll
        for (int dy = -R; dy <= R; ++dy)
#pragma unroll
          for (int i = 0; i < steps; ++i) {
            const int dx = position(i, lane % 4) - lane / 4, half = half_width(outline, R, dy);
            bands[dy + R][i] = dx >= -half && dx <= half ? w.at[dy + R][dx + R] : 0.0;
          }
      }
    }
  };

  // What a lane needs of a row: its windows, or what is around its two pairs of cells.
  struct Operands {
    double a[2 * steps]; // a[2 i + h]: step i
    double near[2][2 + 8];

    // From registers: owns[h] are columns 2 lane + (0, 1) of a half's 64; around its ends lanes count from 0 again: left[h] of the last lanes
    // are the cells to the left of lane 0's, right[h] of the first lanes those to the right of lane 31's. reach: how far the row is used to
    // the sides.
    __device__ __forceinline__ Operands(const double2 (&owns)[2], const double2 (&left)[2], const double2 (&right)[2],
                                        int reach, int lane) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const double2 own = owns[h];
        // What lanes `distance` to the right and to the left need of this one.
        const auto to_right = [&](int distance) { return lane + distance < 32 ? own : left[h]; };
        const auto to_left = [&](int distance) { return lane >= distance ? own : right[h]; };
        const auto from = [](double value, int other) { return __shfl_sync(~0U, value, other); };
        if constexpr (twin) {
          near[h][4] = own.x;
          near[h][5] = own.y;
          if (reach > 0) {
            near[h][3] = from(to_right(1).y, lane - 1);
            near[h][6] = from(to_left(1).x, lane + 1);
          }
          if (reach > 1) {
            near[h][2] = from(to_right(1).x, lane - 1);
            near[h][7] = from(to_left(1).y, lane + 1);
          }
          if (reach > 2) {
            near[h][1] = from(to_right(2).y, lane - 2);
            near[h][8] = from(to_left(2).x, lane + 2);
          }
        } else {
          // The group to the right needs of lanes with t = 3 and 2, that to the left of t = 0 and 1; see position().
          const int     t = lane % 4, group = lane - t, other = t % 2 == 0 ? group - 1 : group + 4;
          const double2 nearest = t == 3 ? to_right(1) : to_left(1);
          a[h] = own.x;
          a[2 + h] = own.y;
          a[4 + h] = 0.0;
          if (reach == 1) {
            const double one = from(t == 3 ? nearest.y : nearest.x, other);
            a[4 + h] = t < 2 ? one : 0.0;
          }
          if (reach > 1) {
            const double x = from(nearest.x, other), y = from(nearest.y, other);
            a[4 + h] = t == 0 || t == 3 ? y : x;
          }
          if constexpr (steps > 3) {
            a[6 + h] = 0.0;
            if (reach > 2) {
              const double third = from(t == 2 ? to_right(2).y : to_left(2).x, t % 2 == 0 ? group - 2 : group + 5);
              a[6 + h] = t < 2 ? third : 0.0;
            }
          }
        }
      }
    }

    __device__ __forceinline__ Operands(const double *cells, int lane) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const double *own_cells = cells + 64 * h + 2 * lane;
        if constexpr (twin) {
#pragma unroll
          for (int i = 0; i < 10; i += 2) {
            const double2 two = *reinterpret_cast<const double2 *>(own_cells - 4 + i);
            near[h][i] = two.x;
            near[h][i + 1] = two.y;
          }
        } else {
          a[h] = own_cells[0]; // one by one: operands of matrix instructions have another order in registers
          a[2 + h] = own_cells[1];
#pragma unroll
          for (int i = 2; i < steps; ++i) // farther than the stencil reaches, a zero of the band does not help
            a[2 * i + h] = distance(i, lane % 4) <= R ? cells[64 * h + lane / 4 * 8 + position(i, lane % 4)] : 0.0;
        }
      }
    }

    __device__ __forceinline__ double own(int j) const { return twin ? near[j / 2][4 + j % 2] : a[2 * (j % 2) + j / 2]; }
  };

  // The first row makes new sums: by multiply-adds they have the bits of plain steps, signs of zeros included.
  template <int dy>
  __device__ static __forceinline__ void add(double (&sums)[4], const Operands &x, const State &state, const Weights2d &w) {
    if constexpr (only_centre(dy)) {
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[j] = dy == -R ? w.at[0][R] * x.own(j) : fma(w.at[dy + R][R], x.own(j), sums[j]);
    } else if constexpr (twin) {
      constexpr int half = half_width(outline, R, dy);
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int dx = -half; dx <= half; ++dx) {
          const double weight = w.at[dy + R][dx + R], value = x.near[j / 2][4 + j % 2 + dx];
          sums[j] = dy == -R && dx == -half ? weight * value : fma(weight, value, sums[j]);
        }
    } else {
      banded::multiply<arithmetic, 0, steps_of(dy), steps>(sums, x.a, state.bands[dy + R]);
    }
  }

  __device__ static __forceinline__ void compute(State &state, double (&done)[4], const double *cells, const Weights2d &w,
                                                 int lane) {
    banded::advance<Banded2d, -1>(state, done, Operands(cells, lane), w);
  }

  // From pairs to whole lines of 32 cells.
  __device__ static __forceinline__ void arrange(double (&done)[4], double *scratch, int lane) {
#pragma unroll
    for (int h = 0; h < 2; ++h)
      *reinterpret_cast<double2 *>(scratch + 64 * h + 2 * lane) = make_double2(done[2 * h], done[2 * h + 1]);
    __syncwarp();
#pragma unroll
    for (int j = 0; j < 4; ++j) done[j] = scratch[lane + 32 * j];
  }
};

} // namespace tcbound::stencil
