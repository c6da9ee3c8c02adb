#pragma once

// Device code of cuda_core.cu: one block advances a column of tiles by T steps while it walks through the planes. For .cu files
// only.
//
// As in pipeline_2d.h with planes for rows: a lane owns W columns of `lines` lines, a warp 32 W columns of them, a block the
// lines of its warps. A stage holds the sums of 2R planes. Neighbours in x come from the lanes beside, those in y from the lane's
// own lines and, beyond them, through shared memory from the warps above and below: a barrier a stage. Tiles overlap by 2 T R
// cells in x and in y.
//
// Cells that keep their values are computed like the others, and replaced when they leave a stage: by those of the input, which stays in
// shared memory for the T R turns until its plane has left the last stage. Where passes relax, such cells change as well, and go through
// all sums instead.
//
// A pass that relaxes adds b to the planes that a stage completes, R T to R planes behind the one that enters: b's planes arrive
// R turns after those of the input and stay in shared memory until the last stage has read them.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <cuda_runtime.h>

#include "../../cuda/cell_copy.h"
#include "plane_ranges.h"
#include "points_3d.h"

namespace tcbound::stencil {

// Which of the cells at hand may keep their values. outside: none do, but some lie outside the array and are 0 in every step, which
// takes a select for each cell and step; where passes that relax have a ring, it takes one for each of the cell's sums.
enum class EdgeOfTile { none, lines_and_columns, planes, outside };

struct Tiles {
  const double     *in;
  double           *out;
  std::int64_t      to_b; // of passes that relax: from a cell of the input to that of b, R planes before
  const PlaneRange *ranges;
  std::int64_t      plane; // cells
  int               pitch; // cells from line to line
  int               nx, ny, nz, ring;
  int               tiles_x, tiles_y, tile_columns, tile_lines;
};

// resident: blocks of a multiprocessor. ahead: planes of a warp on their way, and the one that enters. sides: how planes are shared
// out (share_planes()).
template <int R_, Kind kind_, int T_, int W_, int lines_, int warps_, int resident_, bool relaxes_ = false, int ahead_ = 4,
          int sides_ = 0>
struct Pipeline3d {
  static constexpr int  R = R_, T = T_, lines = lines_, warps = warps_, resident = resident_, ahead = ahead_, sides = sides_;
  static constexpr Kind kind = kind_;
  static constexpr bool relaxes = relaxes_;
  static constexpr int  W = W_, columns = 32 * W, tile = lines * warps, margin = T * R, threads = 32 * warps;
  static constexpr int  plane = columns * lines;                     // cells of a warp
  static constexpr int  sources = relaxes ? (T - 1) * R + ahead : 0; // plane buffers of b
  static constexpr int  kept = relaxes ? 0 : margin;                 // planes that cells which keep their values are taken from
  static constexpr int  slots = ahead + kept;
  static constexpr int  warp_doubles = (slots + sources) * plane;
  static constexpr int  exchange = warps * 2 * R * columns; // lines that the warps of a block show each other
  static constexpr int  shared_bytes = 8 * (warps * warp_doubles + 2 * exchange);
  static constexpr bool wide = kind != Kind::star; // neighbours in x of neighbours in y count
  using Points = Weights3d;
  using Weights = std::conditional_t<relaxes, RelaxationWeights<Points, T>, Points>;
};

namespace pipeline {

template <class P> struct State3d { double sums[P::T][2 * P::R][P::lines][P::W]; };

template <class P> using Line = double[P::W + 2 * P::R]; // a lane's cells of a line, R more on each side

template <int W> __device__ __forceinline__ void put_line(double *to, const double (&cells)[W]) {
#pragma unroll
  for (int i = 0; i < W; i += 2) *reinterpret_cast<double2 *>(to + i) = make_double2(cells[i], cells[i + 1]);
}

template <int W> __device__ __forceinline__ void get_line(double (&cells)[W], const double *from) {
#pragma unroll
  for (int i = 0; i < W; i += 2) {
    const double2 two = *reinterpret_cast<const double2 *>(from + i);
    cells[i] = two.x;
    cells[i + 1] = two.y;
  }
}

template <class P> __device__ __forceinline__ void add_sides(Line<P> &line) {
  constexpr int R = P::R, W = P::W;
#pragma unroll
  for (int i = 0; i < R; ++i) {
    line[i] = __shfl_up_sync(~0U, line[W + i], 1);
    line[W + R + i] = __shfl_down_sync(~0U, line[R + i], 1);
  }
}

// Of plane dz = -R of the stencil, which makes new sums, the first point.
template <class P> constexpr bool first_point(int dy, int dx) {
  for (int y = -P::R; y <= P::R; ++y)
    for (int x = -P::R; x <= P::R; ++x)
      if (has_point(P::kind, -P::R, y, x)) return y == dy && x == dx;
  return false;
}

// Adds a plane to the sums of a line's cells; lines[dy + R] are those around it. Of sums[k + 1] it is plane R - 1 - k of the stencil;
// sums[0] are complete then. Products of one point follow each other, so that multiply-adds which wait for each other lie apart.
template <class P>
__device__ __forceinline__ void add_plane(double (&sums)[2 * P::R + 1][P::W], const Line<P> (&lines)[2 * P::R + 1],
                                          const Weights3d &w) {
  constexpr int R = P::R;
#pragma unroll
  for (int k = -1; k < 2 * R; ++k)
#pragma unroll
    for (int dy = -R; dy <= R; ++dy)
#pragma unroll
      for (int dx = -R; dx <= R; ++dx) {
        const int dz = R - 1 - k;
        if (!has_point(P::kind, dz, dy, dx)) continue;
        const double weight = w.at[dz + R][dy + R][dx + R];
#pragma unroll
        for (int i = 0; i < P::W; ++i) {
          const double value = lines[dy + R][i + R + dx];
          sums[k + 1][i] = dz == -R && first_point<P>(dy, dx) ? weight * value : fma(weight, value, sums[k + 1][i]);
        }
      }
}

// plane: that of sums[0] before this turn. b: of the cells that are completed; where the pass does not relax, what they keep.
template <class P, EdgeOfTile edge>
__device__ __forceinline__ void advance_line(double (&sums)[2 * P::R][P::lines][P::W], double (&done)[P::W], int j,
                                             const Line<P> (&lines)[2 * P::R + 1], const StepWeights<Weights3d> &w,
                                             const double (&b)[P::W], unsigned fixed_cells, int plane, int ring, int last) {
  constexpr int  R = P::R, W = P::W;
  constexpr bool by_plane = edge == EdgeOfTile::planes || edge == EdgeOfTile::outside;
  constexpr bool passes = P::relaxes && edge != EdgeOfTile::none && edge != EdgeOfTile::outside; // through all sums
  double         next[2 * R + 1][W];
#pragma unroll
  for (int k = 0; k <= 2 * R; ++k)
#pragma unroll
    for (int i = 0; i < W; ++i) next[k][i] = k < 2 * R ? sums[k][j][i] : 0.0;
  add_plane<P>(next, lines, w.points);
#pragma unroll
  for (int k = -1; k < 2 * R; ++k) {
    const bool fixed_plane = by_plane && (plane + k + 1 < ring || plane + k + 1 > last);
#pragma unroll
    for (int i = 0; i < W; ++i) {
      const bool fixed = edge != EdgeOfTile::none && (fixed_plane || (fixed_cells >> (j * W + i) & 1));
      double     sum = next[k + 1][i];
      if (passes && fixed) {
        const double own = lines[R][i + R];
        sum = k == R - 1 ? w.sources.ring_weight * own : k + 1 < 2 * R ? sums[k + 1][j][i] : 0.0;
      }
      if (k < 0) {
        done[i] = P::relaxes ? fma(passes && fixed ? w.sources.ring_source : w.sources.source, b[i], sum) : fixed ? b[i] : sum;
        if (edge == EdgeOfTile::outside && fixed) done[i] = 0.0;
      } else
        sums[k][j][i] = sum;
    }
  }
}

// A plane enters a stage in `v`, the one R before it leaves. exchange: this stage's lines of all warps. source: of the plane that
// leaves, the lane's first cell in the buffer (b's, or the input's).
template <class P, EdgeOfTile edge>
__device__ __forceinline__ void advance_stage(double (&sums)[2 * P::R][P::lines][P::W], double (&v)[P::lines][P::W],
                                              double *exchange, const double *source, const StepWeights<Weights3d> &w,
                                              unsigned fixed_cells, int plane, int ring, int last) {
  constexpr int R = P::R, W = P::W, lines = P::lines, columns = P::columns;
  const int     lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  double       *own = exchange + warp * 2 * R * columns + lane * W;
#pragma unroll
  for (int i = 0; i < R; ++i) {
    put_line<W>(own + i * columns, v[i]);
    put_line<W>(own + (R + i) * columns, v[lines - R + i]);
  }
  // The first warp and the last one read lines of their own for those beyond the tile: they end in the margin.
  const double *above = warp == 0 ? own : own - R * columns, *below = warp == P::warps - 1 ? own : own + 2 * R * columns;
  __syncthreads();
  Line<P>    around[2 * R + 1];
  const auto enter = [&](int at, int line) {
    double cells[W];
    if (line < 0)
      get_line<W>(cells, above + (line + R) * columns);
    else if (line >= lines)
      get_line<W>(cells, below + (line - lines) * columns);
#pragma unroll
    for (int i = 0; i < W; ++i) around[at][R + i] = line < 0 || line >= lines ? cells[i] : v[line][i];
    if (P::wide) add_sides<P>(around[at]);
  };
#pragma unroll
  for (int at = 0; at < 2 * R; ++at) enter(at, at - R);
#pragma unroll
  for (int j = 0; j < lines; ++j) {
    enter(2 * R, j + R);
    if (!P::wide) add_sides<P>(around[R]);
    double b[W] = {};
    if constexpr (P::relaxes || edge != EdgeOfTile::none) get_line<W>(b, source + j * columns);
    advance_line<P, edge>(sums, v[j], j, around, w, b, fixed_cells, plane, ring, last);
#pragma unroll
    for (int at = 0; at < 2 * R; ++at)
#pragma unroll
      for (int i = 0; i < W + 2 * R; ++i) around[at][i] = around[at + 1][i];
  }
}

// A lane's part of a tile: cells (j, i) are line j and, of copies, column lane + 32 i, of sums column W lane + i.
template <class P> struct Place {
  int          x_begin, x_end, y_begin, y_end, x_first, y_first; // of what the tile computes; of what it reads
  std::int64_t corner;                                           // of copies: cell (0, 0) in a plane
  unsigned     copied, written, fixed;                           // bit j W + i
  bool         whole, side;                                      // all places of the tile are read; some cells keep their value

  __device__ __forceinline__ Place(const Tiles &g, int tile) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    x_begin = tile % g.tiles_x * g.tile_columns;
    y_begin = tile / g.tiles_x * g.tile_lines;
    x_end = min(x_begin + g.tile_columns, g.nx);
    y_end = min(y_begin + g.tile_lines, g.ny);
    x_first = x_begin - P::margin;
    y_first = y_begin - P::margin;
    const int x_stop = min(x_end + P::margin, g.nx), y_stop = min(y_end + P::margin, g.ny);
    whole = x_first >= 0 && x_first + P::columns == x_stop && y_first >= 0 && y_first + P::tile == y_stop;
    side = x_first < g.ring || x_first + P::columns > g.nx - g.ring || y_first < g.ring || y_first + P::tile > g.ny - g.ring;
    copied = written = fixed = 0;
    const int y_lane = y_first + warp * P::lines;
    corner = static_cast<std::int64_t>(y_lane) * g.pitch + x_first + lane;
#pragma unroll
    for (int j = 0; j < P::lines; ++j)
#pragma unroll
      for (int i = 0; i < P::W; ++i) {
        const int y = y_lane + j, x = x_first + lane + 32 * i, own = x_first + P::W * lane + i, bit = j * P::W + i;
        copied |= (x >= 0 && x < x_stop && y >= 0 && y < y_stop ? 1U : 0U) << bit;
        written |= (x >= x_begin && x < x_end && y >= y_begin && y < y_end ? 1U : 0U) << bit;
        fixed |= (own < g.ring || own >= g.nx - g.ring || y < g.ring || y >= g.ny - g.ring ? 1U : 0U) << bit;
      }
  }
};

// Asynchronous copies of a warp's part of a plane, whose cell (0, 0) is at `line`; zeros for what lies outside the array.
template <class P>
__device__ __forceinline__ void copy_plane(double *to, const double *line, bool outside, const Place<P> &place, int pitch) {
  constexpr int W = P::W, lines = P::lines, columns = P::columns;
  if (!outside && place.whole) {
#pragma unroll
    for (int j = 0; j < lines; ++j, line += pitch)
#pragma unroll
      for (int i = 0; i < W; ++i) copy_cell(to + j * columns + 32 * i, line + 32 * i);
  } else {
#pragma unroll
    for (int j = 0; j < lines; ++j, line += pitch)
#pragma unroll
      for (int i = 0; i < W; ++i)
        if (!outside && (place.copied >> (j * W + i) & 1))
          copy_cell(to + j * columns + 32 * i, line + 32 * i);
        else
          to[j * columns + 32 * i] = 0.0;
  }
}

// The step from 0 makes of the plane of b that enters the first cells.
template <class P, bool edge>
__device__ __forceinline__ void start_plane(double (&v)[P::lines][P::W], const typename P::Weights &w, unsigned fixed_cells,
                                            bool fixed_plane) {
#pragma unroll
  for (int j = 0; j < P::lines; ++j)
#pragma unroll
    for (int i = 0; i < P::W; ++i)
      v[j][i] *= edge && (fixed_plane || (fixed_cells >> (j * P::W + i) & 1)) ? w.ring_start : w.start;
}

} // namespace pipeline

// Planes z_begin to z_end of a tile.
template <class P>
__device__ __forceinline__ void advance_segment(const Tiles &g, const typename P::Weights &w, double *shared, int tile,
                                                int z_begin, int z_end) {
  using namespace pipeline;
  constexpr int R = P::R, T = P::T, W = P::W, lines = P::lines, columns = P::columns, ahead = P::ahead;
  const int     lane = threadIdx.x % 32, warp = threadIdx.x / 32, last = g.nz - 1 - g.ring;
  double *const planes = shared + warp * P::warp_doubles, *const sources = planes + P::slots * P::plane; // of b
  double *const      exchange = shared + P::warps * P::warp_doubles;
  Place<P>           place(g, tile);
  int                z = z_begin - P::margin;
  const int          z_stop = z_end + P::margin;
  const std::int64_t first = z * g.plane + place.corner;
  const double      *from = g.in + first;
  const auto         fetch = [&](int next) { // a plane into its buffer and, of b, the one R before
    const auto outside = [&](int plane) { return plane < 0 || plane >= z_stop || plane >= g.nz; };
    copy_plane<P>(planes + slot_of<P::slots>(next) * P::plane + lane, from, outside(next), place, g.pitch);
    if constexpr (P::relaxes)
      copy_plane<P>(sources + slot_of<P::sources>(next - R) * P::plane + lane, from + g.to_b, outside(next - R), place,
                    g.pitch);
    commit_copies();
    from += g.plane;
  };

  State3d<P> state;
#pragma unroll
  for (int s = 0; s < T; ++s)
#pragma unroll
    for (int k = 0; k < 2 * R; ++k)
#pragma unroll
      for (int j = 0; j < lines; ++j)
#pragma unroll
        for (int i = 0; i < W; ++i) state.sums[s][k][j][i] = 0.0;
#pragma unroll 1
  for (int i = 0; i < ahead - 1; ++i) fetch(z + i);
  double    *to = g.out + (z_begin * g.plane + place.corner);
  const auto turn = [&](auto edge) {
    double v[lines][W];
    asm volatile("" : "+r"(place.copied), "+r"(place.written), "+r"(place.fixed)); // not each bit in a register
    wait_copies<ahead - 2>();
    __syncwarp(); // plane z is there, and all lanes are done with plane z - 1, whose buffer is filled next
    const double *const plane = planes + slot_of<P::slots>(z) * P::plane;
#pragma unroll
    for (int j = 0; j < lines; ++j) get_line<W>(v[j], plane + j * columns + lane * W);
    fetch(z + ahead - 1);
    if constexpr (P::relaxes) {
      constexpr bool edges = decltype(edge)::value != EdgeOfTile::none;
      if (w.starts) start_plane<P, edges>(v, w, place.fixed, z < g.ring || z > last);
    }
#pragma unroll
    for (int s = 0; s < T; ++s) {
      constexpr int slots = P::relaxes ? P::sources : P::slots;
      const int     leaving = z - (s + 1) * R;
      const double *source = (P::relaxes ? sources : planes) + slot_of<slots>(leaving) * P::plane + lane * W;
      advance_stage<P, decltype(edge)::value>(state.sums[s], v, exchange + ((z * T + s) & 1) * P::exchange, source,
                                              weights_of_step(w, s), place.fixed, leaving, g.ring, last);
    }
    if (z - P::margin >= z_begin) {
      double *const stage = planes + slot_of<P::slots>(z - P::kept) * P::plane; // has been read
#pragma unroll
      for (int j = 0; j < lines; ++j) put_line<W>(stage + j * columns + lane * W, v[j]);
      __syncwarp();
      double *line = to;
#pragma unroll
      for (int j = 0; j < lines; ++j, line += g.pitch)
#pragma unroll
        for (int i = 0; i < W; ++i)
          if (place.written >> (j * W + i) & 1) line[32 * i] = stage[j * columns + lane + 32 * i];
      to += g.plane;
    }
    ++z;
  };
  // Cells that keep their values need care: at the grid's sides in all planes, else in the first and the last ones.
  constexpr EdgeOfTile without_ring = P::relaxes ? EdgeOfTile::outside : EdgeOfTile::none;
#pragma unroll 1
  while (z < z_stop) {
    const bool inner = z >= g.ring + P::margin && z <= last - R;
    if (P::relaxes && g.ring == 0 && (!inner || place.side))
      turn(std::integral_constant<EdgeOfTile, without_ring>());
    else if (!inner)
      turn(std::integral_constant<EdgeOfTile, EdgeOfTile::planes>());
    else if (place.side)
      turn(std::integral_constant<EdgeOfTile, EdgeOfTile::lines_and_columns>());
    else
      turn(std::integral_constant<EdgeOfTile, EdgeOfTile::none>());
  }
}

template <class P>
__global__ void __launch_bounds__(P::threads, P::resident) advance_tiles(const Tiles g, const typename P::Weights w) {
  extern __shared__ double2  shared[];
  const volatile PlaneRange *range = g.ranges + blockIdx.x; // is read anew rather than kept in registers
  int                        at = range->begin;
#pragma unroll 1
  while (at < range->end) {
    const int tile = at / g.nz, z_begin = at - tile * g.nz, z_end = min(g.nz, z_begin + range->end - at);
    __syncthreads(); // all have read their neighbours' lines
    advance_segment<P>(g, w, reinterpret_cast<double *>(shared), tile, z_begin, z_end);
    at += z_end - z_begin;
  }
}

template <class P> Tiles plan_tiles(const Grid &grid) {
  const auto ceil_divide = [](int a, int b) { return (a + b - 1) / b; };
  Tiles      g = {};
  g.nx = static_cast<int>(grid.extent[0]);
  g.ny = static_cast<int>(grid.extent[1]);
  g.nz = static_cast<int>(grid.extent[2]);
  g.pitch = static_cast<int>(grid.line());
  g.plane = grid.line() * g.ny;
  g.ring = grid.ring;
  const auto split = [&](int cells, int most, int &pieces, int &each) {
    each = ceil_divide(std::max(cells, 1), ceil_divide(std::max(cells, 1), most));
    pieces = ceil_divide(std::max(cells, 1), each);
  };
  split(g.nx, P::columns - 2 * P::margin, g.tiles_x, g.tile_columns);
  split(g.ny, P::tile - 2 * P::margin, g.tiles_y, g.tile_lines);
  return g;
}

// sides: as equal_ranges() takes it; 0: short ranges.
template <class P> std::vector<PlaneRange> share_planes(const Tiles &g, int multiprocessors) {
  const TilesToShare tiles = {g.tiles_x, g.tiles_y, g.nz, 2 * P::margin};
  const int          blocks = P::resident * multiprocessors;
  return P::sides > 0 ? equal_ranges(tiles, blocks, P::sides) : short_ranges(tiles, blocks);
}

} // namespace tcbound::stencil
