#pragma once

// Device code of tensor_core.cu and cuda_core.cu: an engine of march.h for one step of a stencil of three dimensions, whose planes are
// multiplied by banded matrices. For .cu files only.
//
// A window is what 8 results, 4 columns by 2 lines of a plane, depend on within a plane: 4 + 2R columns by 2 + 2R lines. Patches of
// 4 by 2 results waste less than 8 results of one line: for a box of radius 1 a window has 24 cells, of which a result needs 9, where
// a line of 8 takes three windows of 12. A matrix has 16 windows, those of 64 results of both lines:
//   A(m, k) = window m at position(k),  B_dz(k, n) = weight(dz, position(k) - place of result n),  results n: column n / 2, line n % 2.
// So lane l has the results of columns l and 32 + l, of both lines, and stores whole lines of 32 cells. Positions come in an order in
// which the four lanes of a group read what lies side by side: first 4 columns of each line (of the stencil's column dx = 0), which
// the lane's own cells are among, then what lies at the sides. Where only the point itself counts in a plane (a star's planes beside
// the middle one) a matrix would have one non-zero of 8: both kernels multiply and add there.
//
// A zero of a band times what is not finite is NaN: infinities and NaN spread to all 8 results of a window that holds them.

#include "../iterated/points_3d.h"
#include "arithmetic.h"
#include "march.h"

namespace tcbound::stencil {

// across, down: warps of a block in x and in y. The rest as march.h says.
template <Arithmetic arithmetic_, Kind kind_, int R_, int across_, int down_, int resident_, int ahead_, int best_planes_>
struct Banded3d {
  using Weights = Weights3d;

  static constexpr Arithmetic arithmetic = arithmetic_;
  static constexpr Kind       kind = kind_;
  static constexpr int        R = R_, across = across_, down = down_, resident = resident_, ahead = ahead_;
  static constexpr bool twin = arithmetic == Arithmetic::multiply_add, wide = kind != Kind::star && kind != Kind::octahedron,
                        octahedron = kind == Kind::octahedron;
  static constexpr int threads = 32 * across * down, columns = 64 * across, lines = 2 * down;

  static constexpr int reach_y = R, warps = across * down, results = 4, scratch = 0, best_planes = best_planes_;

  static_assert(R == 1 || (R == 2 && !wide));

  // Lines of a buffer are 2 more than a multiple of 4 apart: then the loads of windows have no bank conflicts.
  static constexpr int beside = octahedron ? 6 : 4,
                       pitch = (columns + beside) % 4 == 2 ? columns + beside : columns + beside + 2;

  static constexpr int first_column(int ring) { return ring; }
  static constexpr int lead(int ring) { return R + (R + ring) % 2; }

  __device__ static __forceinline__ int window_line(int warp) { return 2 * (warp / across); }
  __device__ static __forceinline__ int window_column(int warp) { return 64 * (warp % across); }
  __device__ static __forceinline__ int column_of(int lane, int j) { return lane + 32 * (j / 2); }
  __device__ static __forceinline__ int line_of(int j) { return j % 2; }

  // A window's positions, four a step, one for each lane of a group: lines of the result's columns, then sides. The planes beside
  // the middle one need some of them only; in an octahedron all but the first three: two sides, the first and the last line.
  static constexpr int lines_of_window = 2 + 2 * R;
  static constexpr int steps = octahedron ? 9 : lines_of_window + (wide ? 2 : R);

  static __host__ __device__ constexpr int step_of(int line) {
    if (!octahedron) return line;
    return line == 0 ? 1 : line == lines_of_window - 1 ? 2 : 2 + line;
  }
  static __host__ __device__ constexpr bool is_line(int step) {
    return octahedron ? step > 0 && step < steps - 2 : step < lines_of_window;
  }
  static __host__ __device__ constexpr int position_line(int step, int t) {
    if (is_line(step)) return octahedron ? (step == 1 ? 0 : step == 2 ? lines_of_window - 1 : step - 2) : step;
    if (octahedron && step == 0) return 1 + 3 * (t / 2);
    if (R == 2) return step == steps - 2 ? 2 : 3;
    return step == lines_of_window ? 1 + t / 2 : 3 * (t / 2);
  }
  static __host__ __device__ constexpr int position_column(int step, int t) {
    if (is_line(step)) return R + t;
    if (octahedron && step == 0) return 1 + 5 * (t % 2);
    return R == 2 ? t + 4 * (t / 2) : 5 * (t % 2);
  }

  // Planes of the stencil within `matrices` of the middle one are matrices; in those beyond, only the point itself counts.
  static constexpr int  matrices = kind == Kind::star ? 0 : octahedron ? 1 : R;
  static constexpr bool only_centre(int dz) { return dz < -matrices || dz > matrices; }
  static constexpr int  first_step(int dz) { return octahedron && dz != 0 ? 3 : 0; }
  static constexpr int  stop_step(int dz) { return kind == Kind::faces_and_edges && dz != 0 ? lines_of_window + R : steps; }

  // Multiply-adds that are issued for a result, zeros in the bands included.
  static constexpr int issued() {
    int issued = 0;
    for (int dz = -R; dz <= R; ++dz)
      if (twin) {
        for (int dy = -R; dy <= R; ++dy)
          for (int dx = -R; dx <= R; ++dx) issued += has_point(kind, dz, dy, dx);
      } else {
        issued += only_centre(dz) ? 1 : 4 * (stop_step(dz) - first_step(dz));
      }
    return issued;
  }

  struct State {
    double sums[2 * R][4]; // [2 h + line]: column lane + 32 h
    double band[twin ? 1 : 2 * matrices + 1][steps];

    __device__ __forceinline__ State(const Weights3d &w, int lane) {
#pragma unroll
      for (int k = 0; k < 2 * R; ++k)
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[k][j] = 0.0;
      if constexpr (!twin) {
        const int n = lane / 4;
#pragma unroll
        for (int dz = -matrices; dz <= matrices; ++dz)
#pragma unroll
          for (int i = 0; i < steps; ++i) {
            const int  dy = position_line(i, lane % 4) - R - n % 2, dx = position_column(i, lane % 4) - R - n / 2;
            const bool near = dy >= -R && dy <= R && dx >= -R && dx <= R;
            band[dz + matrices][i] = near && has_point(kind, dz, dy, dx) ? w.at[dz + R][dy + R][dx + R] : 0.0;
          }
      }
    }
  };

  // Of two windows in each lane: a[2 i + h] is step i of the one 32 h columns on. The twin takes what is around its own cells.
  struct Operands {
    double a[2 * steps];
    double sides[twin ? 2 * lines_of_window : 1][2 * R];

    __device__ __forceinline__ Operands(const double *window, int lane) {
#pragma unroll
      for (int line = 0; line < lines_of_window; ++line)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const double *own_cell = window + line * pitch + R + 32 * h + lane;
          a[2 * step_of(line) + h] = *own_cell;
          if constexpr (twin) {
#pragma unroll
            for (int r = 1; r <= R; ++r) { // what no one needs is not loaded
              sides[2 * line + h][R - r] = own_cell[-r];
              sides[2 * line + h][R + r - 1] = own_cell[r];
            }
          }
        }
      if constexpr (!twin) {
#pragma unroll
        for (int i = 0; i < steps; ++i)
          if (!is_line(i))
#pragma unroll
            for (int h = 0; h < 2; ++h)
              a[2 * i + h] = window[position_line(i, lane % 4) * pitch + position_column(i, lane % 4) + 32 * h + lane / 4 * 4];
      }
    }

    __device__ __forceinline__ double own(int line, int h) const { return a[2 * step_of(line) + h]; }
    __device__ __forceinline__ double at(int line, int dx, int h) const { // of the twin
      return dx == 0 ? own(line, h) : sides[2 * line + h][dx < 0 ? R + dx : R + dx - 1];
    }
  };

  // The first plane makes new sums: by multiply-adds they have the bits of plain steps, signs of zeros included.
  template <int dz>
  __device__ static __forceinline__ void add(double (&sums)[4], const Operands &x, const State &state, const Weights3d &w) {
    if constexpr (only_centre(dz)) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const double own = x.own(R + j % 2, j / 2);
        sums[j] = dz == -R ? w.at[0][R][R] * own : fma(w.at[dz + R][R][R], own, sums[j]);
      }
    } else if constexpr (twin) {
      bool first = dz == -R;
#pragma unroll
      for (int dy = -R; dy <= R; ++dy)
#pragma unroll
        for (int dx = -R; dx <= R; ++dx)
          if (has_point(kind, dz, dy, dx)) {
            const double weight = w.at[dz + R][dy + R][dx + R];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
              const double value = x.at(R + j % 2 + dy, dx, j / 2);
              sums[j] = first ? weight * value : fma(weight, value, sums[j]);
            }
            first = false;
          }
    } else {
      banded::multiply<arithmetic, first_step(dz), stop_step(dz), steps>(sums, x.a, state.band[dz + matrices]);
    }
  }

  // Windows begin R columns and lines before their results.
  __device__ static __forceinline__ void compute(State &state, double (&done)[4], const double *cells, const Weights3d &w,
                                                 int lane) {
    banded::advance<Banded3d, -1>(state, done, Operands(cells - R, lane), w);
  }

  __device__ static __forceinline__ void arrange(double (&)[results], double *, int) {}
};

} // namespace tcbound::stencil
