#pragma once

// Device code of tensor_core.cu and cuda_core.cu: one step of a stencil of three dimensions. A block walks through the planes of a
// tile; each plane is brought into shared memory once, ahead of time, and its cells are multiplied by banded matrices onto the
// sums of the 2R + 1 planes that they are neighbours of, which stay in registers. For .cu files only.
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

#include <algorithm>
#include <cstdint>

#include <cuda_runtime.h>

#include "../../cuda/cell_copy.h"
#include "../iterated/points_3d.h"
#include "../march_length.h"
#include "arithmetic.h"

namespace tcbound::stencil {

// Tiles cover the cells that change; those at the sides copy the ring beside them too. A block takes `planes_each` planes.
struct Slabs {
  const double *in;
  double       *out;
  int           nx, ny, nz, ring;
  int           lead; // columns of a buffer before the tile's first
  int           tiles_x, tiles_y, planes_each;
  bool          pairs; // lines begin at multiples of 16 bytes, and so do those of buffers

  __host__ __device__ int tiles() const { return tiles_x * tiles_y; }
};

// across, down: warps of a block in x and in y; stack: windows of a warp in y; resident: blocks of a multiprocessor; ahead: planes on
// their way while one is computed.
template <Arithmetic arithmetic_, Kind kind_, int R_, int down_, int resident_, int ahead_, int across_ = 1, int stack_ = 1>
struct Banded3d {
  static constexpr Arithmetic arithmetic = arithmetic_;
  static constexpr Kind       kind = kind_;
  static constexpr int        R = R_, across = across_, down = down_, stack = stack_, resident = resident_, ahead = ahead_;
  static constexpr bool twin = arithmetic == Arithmetic::multiply_add, wide = kind != Kind::star && kind != Kind::octahedron,
                        octahedron = kind == Kind::octahedron;
  static constexpr int threads = 32 * across * down, columns = 64 * across, lines = 2 * stack * down;

  // A plane's buffer; its lines have space for a first column that is even in the array. They are 2 more than a multiple of 4 apart:
  // then the loads of windows have no bank conflicts.
  static constexpr int beside = octahedron ? 6 : 4, width = columns + beside, pitch = width % 4 == 2 ? width : width + 2;
  static constexpr int height = lines + 2 * R, plane = pitch * height;
  static constexpr int buffers = ahead + 1 + R; // R planes stay: cells of the ring are copied from there
  static constexpr int shared_bytes = 8 * buffers * plane;
  static constexpr int warps = across * down, copies = (height + warps - 1) / warps; // lines of a plane that a warp brings

  static_assert(R == 1 || (R == 2 && !wide));
  static_assert(beside / 2 * height <= threads); // a line's last pairs are brought apart

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
  static __host__ __device__ constexpr int line_of(int step, int t) {
    if (is_line(step)) return octahedron ? (step == 1 ? 0 : step == 2 ? lines_of_window - 1 : step - 2) : step;
    if (octahedron && step == 0) return 1 + 3 * (t / 2);
    if (R == 2) return step == steps - 2 ? 2 : 3;
    return step == lines_of_window ? 1 + t / 2 : 3 * (t / 2);
  }
  static __host__ __device__ constexpr int column_of(int step, int t) {
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
    double sums[stack][2 * R][4]; // [2 h + line]: column lane + 32 h
    double band[twin ? 1 : 2 * matrices + 1][steps];

    __device__ __forceinline__ State(const Weights3d &w, int lane) {
#pragma unroll
      for (int s = 0; s < stack; ++s)
#pragma unroll
        for (int k = 0; k < 2 * R; ++k)
#pragma unroll
          for (int j = 0; j < 4; ++j) sums[s][k][j] = 0.0;
      if constexpr (!twin) {
        const int n = lane / 4;
#pragma unroll
        for (int dz = -matrices; dz <= matrices; ++dz)
#pragma unroll
          for (int i = 0; i < steps; ++i) {
            const int  dy = line_of(i, lane % 4) - R - n % 2, dx = column_of(i, lane % 4) - R - n / 2;
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
              a[2 * i + h] = window[line_of(i, lane % 4) * pitch + column_of(i, lane % 4) + 32 * h + lane / 4 * 4];
      }
    }

    __device__ __forceinline__ double own(int line, int h) const { return a[2 * step_of(line) + h]; }
    __device__ __forceinline__ double at(int line, int dx, int h) const { // of the twin
      return dx == 0 ? own(line, h) : sides[2 * line + h][dx < 0 ? R + dx : R + dx - 1];
    }
  };

  template <int dz>
  __device__ static __forceinline__ void add_plane(double (&sums)[4], const Operands &x, const State &state,
                                                   const Weights3d &w) {
    if constexpr (only_centre(dz)) {
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[j] = fma(w.at[dz + R][R][R], x.own(R + j % 2, j / 2), sums[j]);
    } else if constexpr (twin) {
#pragma unroll
      for (int dy = -R; dy <= R; ++dy)
#pragma unroll
        for (int dx = -R; dx <= R; ++dx)
          if (has_point(kind, dz, dy, dx))
#pragma unroll
            for (int j = 0; j < 4; ++j) sums[j] = fma(w.at[dz + R][dy + R][dx + R], x.at(R + j % 2 + dy, dx, j / 2), sums[j]);
    } else {
      banded::multiply<arithmetic, first_step(dz), stop_step(dz), steps>(sums, x.a, state.band[dz + matrices]);
    }
  }

  // A plane enters; the one R before it is done.
  template <int k>
  __device__ static __forceinline__ void advance(double (&rows)[2 * R][4], double (&done)[4], const Operands &x,
                                                 const State &state, const Weights3d &w) {
    if constexpr (k < 2 * R) {
      double sums[4] = {0.0, 0.0, 0.0, 0.0};
      if constexpr (k + 1 < 2 * R) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[j] = rows[k + 1][j];
      }
      add_plane<R - 1 - k>(sums, x, state, w);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if constexpr (k < 0)
          done[j] = sums[j];
        else
          rows[k][j] = sums[j];
      }
      advance<k + 1>(rows, done, x, state, w);
    }
  }
};

namespace banded {

// Where a tile lies, and what a thread copies of each of its planes: pairs of cells of every line of the block's warps, and one of
// the last pairs of some line.
template <class P> struct Tile {
  int  x_begin, x_end, y_begin, y_end; // cells that change
  int  x_low, x_high, y_low, y_high;   // with the ring beside them
  int  x_first, y_first;               // of a buffer
  bool whole, side;                    // all cells exist; there is a ring beside

  __device__ __forceinline__ Tile(const Slabs &g, int tile) {
    const int tile_x = tile % g.tiles_x, tile_y = tile / g.tiles_x;
    x_begin = g.ring + tile_x * P::columns;
    y_begin = g.ring + tile_y * P::lines;
    x_end = min(x_begin + P::columns, g.nx - g.ring);
    y_end = min(y_begin + P::lines, g.ny - g.ring);
    x_low = tile_x == 0 ? 0 : x_begin;
    y_low = tile_y == 0 ? 0 : y_begin;
    x_high = tile_x == g.tiles_x - 1 ? g.nx : x_end;
    y_high = tile_y == g.tiles_y - 1 ? g.ny : y_end;
    x_first = x_begin - g.lead;
    y_first = y_begin - P::R;
    whole = x_first >= 0 && x_first + P::width <= g.nx && y_first >= 0 && y_first + P::height <= g.ny;
    side = x_low < x_begin || x_high > x_end || y_low < y_begin || y_high > y_end;
  }

  // corner: the buffer's first cell in the plane of `in`, which need not exist.
  __device__ __forceinline__ void fetch(const Slabs &g, const double *corner, double *buffer, bool plane_exists) const {
    const int  lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const auto copy = [&](int line, int column) {
      const bool line_exists = plane_exists && (whole || (y_first + line >= 0 && y_first + line < g.ny));
      const int  x = x_first + column;
      const bool first = line_exists && (whole || (x >= 0 && x < g.nx)),
                 second = line_exists && (whole || (x + 1 >= 0 && x + 1 < g.nx));
      const double *from = corner + static_cast<std::int64_t>(line) * g.nx + column;
      double       *to = buffer + line * P::pitch + column;
      if (g.pairs) {
        copy_pair_or_zero(to, first ? from : g.in, first);
      } else {
        copy_cell_or_zero(to, first ? from : g.in, first);
        copy_cell_or_zero(to + 1, second ? from + 1 : g.in, second);
      }
    };
#pragma unroll
    for (int c = 0; c < P::copies; ++c)
      if ((c + 1) * P::warps <= P::height || c * P::warps + warp < P::height)
#pragma unroll
        for (int part = 0; part < P::across; ++part) copy(c * P::warps + warp, 64 * part + 2 * lane);
    constexpr int last = P::beside / 2;
    if (static_cast<int>(threadIdx.x) < last * P::height) copy(threadIdx.x / last, P::columns + 2 * (threadIdx.x % last));
  }

  // Cells of the tile in a plane that keep their values, from its buffer.
  __device__ __forceinline__ void copy_ring(const Slabs &g, double *plane, const double *buffer, bool all) const {
#pragma unroll 1
    for (int e = threadIdx.x; e < P::width * P::height; e += P::threads) {
      const int  column = e % P::width, line = e / P::width, x = x_first + column, y = y_first + line;
      const bool own = x >= x_low && x < x_high && y >= y_low && y < y_high;
      const bool changes = x >= x_begin && x < x_end && y >= y_begin && y < y_end;
      if (own && (all || !changes)) plane[static_cast<std::int64_t>(y) * g.nx + x] = buffer[line * P::pitch + column];
    }
  }
};

} // namespace banded

template <class P>
__global__ void __launch_bounds__(P::threads, P::resident) advance_planes(const Slabs g, const __grid_constant__ Weights3d w) {
  constexpr int             R = P::R, stack = P::stack, buffers = P::buffers;
  extern __shared__ double2 shared[];
  double *const             planes = reinterpret_cast<double *>(shared);
  const int             lane = threadIdx.x % 32, warp_x = threadIdx.x / 32 % P::across, warp_y = threadIdx.x / 32 / P::across;
  const int             item = static_cast<int>(blockIdx.x), line = 2 * stack * warp_y;
  const banded::Tile<P> tile(g, item % g.tiles());
  const std::int64_t    plane_cells = static_cast<std::int64_t>(g.nx) * g.ny;
  const int             z_begin = item / g.tiles() * g.planes_each, z_end = min(z_begin + g.planes_each, g.nz);
  const int             window = line * P::pitch + g.lead - R + 64 * warp_x; // in a buffer
  const auto            back = [](int slot, int n) { return slot < n ? slot - n + buffers : slot - n; };

  int           z_fetched = z_begin - R;
  const double *from = g.in + z_fetched * plane_cells + static_cast<std::int64_t>(tile.y_first) * g.nx + tile.x_first;
  const auto    fetch = [&](int slot) {
    if (z_fetched < z_end + R) tile.fetch(g, from, planes + slot * P::plane, z_fetched >= 0 && z_fetched < g.nz);
    commit_copies();
    from += plane_cells;
    ++z_fetched;
  };

  typename P::State state(w, lane);
#pragma unroll 1
  for (int slot = 0; slot < P::ahead; ++slot) fetch(slot);
  unsigned written = 0;
#pragma unroll
  for (int j = 0; j < 4 * stack; ++j) {
    const int x = tile.x_begin + 64 * warp_x + lane + 32 * (j / 2 % 2), y = tile.y_begin + line + 2 * (j / 4) + j % 2;
    written |= (x < tile.x_end && y < tile.y_end ? 1U : 0U) << j;
  }
  double *plane_out = g.out + static_cast<std::int64_t>(z_begin) * plane_cells;
  double *to = plane_out + static_cast<std::int64_t>(tile.y_begin + line) * g.nx + tile.x_begin + 64 * warp_x + lane;
  int     slot = 0;
#pragma unroll 1
  for (int z = z_begin - R; z < z_end + R; ++z) {
    wait_copies<P::ahead - 1>();
    __syncthreads(); // plane z is there, and all are done with plane z - 1 - R, whose buffer is filled next
    fetch(back(slot, R + 1));
    double done[stack][4];
#pragma unroll
    for (int s = 0; s < stack; ++s) {
      const typename P::Operands x(planes + slot * P::plane + window + 2 * s * P::pitch, lane);
      P::template advance<-1>(state.sums[s], done[s], x, state, w);
    }
    const int leaving = z - R;
    if (leaving >= z_begin) {
      const bool fixed = leaving < g.ring || leaving >= g.nz - g.ring;
      if (fixed || tile.side) tile.copy_ring(g, plane_out, planes + back(slot, R) * P::plane, fixed);
      if (!fixed) {
#pragma unroll
        for (int s = 0; s < stack; ++s)
#pragma unroll
          for (int j = 0; j < 4; ++j)
            if (written >> (4 * s + j) & 1)
              __stcs(to + static_cast<std::int64_t>(2 * s + j % 2) * g.nx + 32 * (j / 2), done[s][j]);
      }
      plane_out += plane_cells;
      to += plane_cells;
    }
    slot = slot + 1 == buffers ? 0 : slot + 1;
  }
}

// resident: blocks that run at once. planes: that a block takes; 0: as many as suit the grid.
template <class P> Slabs plan_slabs(const Grid &grid, int resident, int planes = 0) {
  const auto tiles = [&](int cells, int each) { return std::max(1, (cells - 2 * grid.ring + each - 1) / each); };
  Slabs      g = {};
  g.nx = static_cast<int>(grid.extent[0]);
  g.ny = static_cast<int>(grid.extent[1]);
  g.nz = static_cast<int>(grid.extent[2]);
  g.ring = grid.ring;
  g.lead = P::R + (P::R + grid.ring) % 2; // the buffers' first column is even
  g.tiles_x = tiles(g.nx, P::columns);
  g.tiles_y = tiles(g.ny, P::lines);
  const int all = std::max(1, g.nz), best = 8;
  g.planes_each = planes ? std::min(planes, all) : march_length(g.tiles(), all, P::R, resident, best);
  return g;
}

inline unsigned blocks_of(const Slabs &g) {
  return static_cast<unsigned>(g.tiles()) * static_cast<unsigned>((std::max(1, g.nz) + g.planes_each - 1) / g.planes_each);
}

} // namespace tcbound::stencil
