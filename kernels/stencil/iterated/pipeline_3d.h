#pragma once

// Device code of cuda_core.cu: one block advances a column of tiles by T steps while it walks through the planes. For .cu files
// only.
//
// As in pipeline_2d.h with planes for rows: a lane owns W columns of `lines` lines, a warp 32 W columns of them, a block the
// lines of its warps. A stage holds the sums of 2R planes. Neighbours in x come from the lanes beside, those in y from the lane's
// own lines and, beyond them, through shared memory from the warps above and below: a barrier a stage. Tiles overlap by 2 T R
// cells in x and in y.
//
// A pass that relaxes adds b to the planes that a stage completes, R T to R planes behind the one that enters: b's planes arrive
// R turns after those of the input and stay in shared memory until the last stage has read them.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <cuda_runtime.h>

#include "../../cuda/cell_copy.h"
#include "points_3d.h"

namespace tcbound::stencil {

// Which of the cells at hand may keep their values. outside: none do, but some lie outside the array and are 0 in every step, which
// takes a select for each cell and step where the others take one for each of its sums.
enum class EdgeOfTile { none, lines_and_columns, planes, outside };

// A block takes `planes_each` planes of a tile's column. Blocks that follow each other are neighbours, which find in L2 what both
// read.
struct Tiles {
  const double *in, *b; // b: only of passes that relax
  double       *out;
  int           nx, ny, nz, ring;
  int           tiles_x, tiles_y, tile_columns, tile_lines, segments, planes_each;
};

// resident: blocks of a multiprocessor. ahead: plane buffers of a warp.
template <int R_, Kind kind_, int T_, int W_, int lines_, int warps_, int resident_, bool relaxes_ = false, int ahead_ = 4>
struct Pipeline3d {
  static constexpr int  R = R_, T = T_, lines = lines_, warps = warps_, resident = resident_, ahead = ahead_;
  static constexpr Kind kind = kind_;
  static constexpr bool relaxes = relaxes_;
  static constexpr int  W = W_, columns = 32 * W, tile = lines * warps, margin = T * R, threads = 32 * warps;
  static constexpr int  plane = columns * lines;                     // cells of a warp
  static constexpr int  sources = relaxes ? (T - 1) * R + ahead : 0; // plane buffers of b
  static constexpr int  warp_doubles = (ahead + sources) * plane;
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

// Adds plane dz of the stencil to a cell's sum; lines[dy + R] are those around the cell.
template <class P, int dz>
__device__ __forceinline__ double add_plane(double sum, const Line<P> (&lines)[2 * P::R + 1], int i, const Weights3d &w) {
  constexpr int R = P::R;
  bool          first = dz == -R;
#pragma unroll
  for (int dy = -R; dy <= R; ++dy)
#pragma unroll
    for (int dx = -R; dx <= R; ++dx)
      if (has_point(P::kind, dz, dy, dx)) {
        const double weight = w.at[dz + R][dy + R][dx + R], value = lines[dy + R][i + R + dx];
        sum = first ? weight * value : fma(weight, value, sum);
        first = false;
      }
  return sum;
}

// plane: that of sums[0] before this turn. b: of the cells that are completed, where the pass relaxes.
template <class P, EdgeOfTile edge, int k>
__device__ __forceinline__ void advance_line(double (&sums)[2 * P::R][P::lines][P::W], double (&done)[P::W], int j,
                                             const Line<P> (&lines)[2 * P::R + 1], const StepWeights<Weights3d> &w,
                                             const double (&b)[P::W], unsigned fixed_cells, int plane, int ring, int last) {
  constexpr int R = P::R, dz = R - 1 - k;
  if constexpr (k < 2 * R) {
    constexpr bool by_plane = edge == EdgeOfTile::planes || edge == EdgeOfTile::outside;
    constexpr bool passes = edge != EdgeOfTile::none && edge != EdgeOfTile::outside; // through all sums
    const bool     fixed_plane = by_plane && (plane + k + 1 < ring || plane + k + 1 > last);
#pragma unroll
    for (int i = 0; i < P::W; ++i) {
      double old = 0.0;
      if constexpr (k + 1 < 2 * R) old = sums[k + 1][j][i];
      double     sum = add_plane<P, dz>(old, lines, i, w.points);
      const bool fixed = edge != EdgeOfTile::none && (fixed_plane || (fixed_cells >> (j * P::W + i) & 1));
      if (passes && fixed) sum = dz != 0 ? old : P::relaxes ? w.sources.ring_weight * lines[R][i + R] : lines[R][i + R];
      if constexpr (k < 0) {
        done[i] = P::relaxes ? fma(passes && fixed ? w.sources.ring_source : w.sources.source, b[i], sum) : sum;
        if (edge == EdgeOfTile::outside && fixed) done[i] = 0.0;
      } else
        sums[k][j][i] = sum;
    }
    advance_line<P, edge, k + 1>(sums, done, j, lines, w, b, fixed_cells, plane, ring, last);
  }
}

// A plane enters a stage in `v`, the one R before it leaves. exchange: this stage's lines of all warps. source: of the plane that
// leaves, the lane's first cell in the buffer.
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
  __syncthreads();
  // The first warp and the last one read lines of their own for those beyond the tile: they end in the margin.
  const double *above = warp == 0 ? own : own - R * columns, *below = warp == P::warps - 1 ? own : own + 2 * R * columns;
  Line<P>       around[2 * R + 1];
  const auto    enter = [&](int at, int line) {
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
    if constexpr (P::relaxes) get_line<W>(b, source + j * columns);
    advance_line<P, edge, -1>(sums, v[j], j, around, w, b, fixed_cells, plane, ring, last);
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
    corner = static_cast<std::int64_t>(y_lane) * g.nx + x_first + lane;
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
__device__ __forceinline__ void copy_plane(double *to, const double *line, bool outside, const Place<P> &place, int nx) {
  constexpr int W = P::W, lines = P::lines, columns = P::columns;
  if (!outside && place.whole) {
#pragma unroll
    for (int j = 0; j < lines; ++j, line += nx)
#pragma unroll
      for (int i = 0; i < W; ++i) copy_cell(to + j * columns + 32 * i, line + 32 * i);
  } else {
#pragma unroll
    for (int j = 0; j < lines; ++j, line += nx)
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

template <class P>
__global__ void __launch_bounds__(P::threads, P::resident) advance_tiles(const Tiles g, const typename P::Weights w) {
  using namespace pipeline;
  constexpr int             R = P::R, T = P::T, W = P::W, lines = P::lines, columns = P::columns, ahead = P::ahead;
  extern __shared__ double2 shared[];
  const int                 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  double *const             planes = reinterpret_cast<double *>(shared) + warp * P::warp_doubles;
  double *const             sources = planes + ahead * P::plane; // of b
  double *const             exchange = reinterpret_cast<double *>(shared) + P::warps * P::warp_doubles;
  const std::int64_t        plane_cells = static_cast<std::int64_t>(g.nx) * g.ny;
  const int                 tiles = g.tiles_x * g.tiles_y, item = static_cast<int>(blockIdx.x);
  const int      z_begin = item / tiles * g.planes_each, z_end = min(z_begin + g.planes_each, g.nz), last = g.nz - 1 - g.ring;
  const Place<P> place(g, item % tiles);
  int            turns = 0; // stages so far: they take the two exchange buffers in turns

  int                z_fetched = z_begin - P::margin;
  const int          z_fetch_end = min(z_end + P::margin, g.nz);
  const std::int64_t first = z_fetched * plane_cells + place.corner;
  const double      *from = g.in + first, *from_b = P::relaxes ? g.b + (first - R * plane_cells) : nullptr;
  const auto         fetch = [&] { // the next plane into its buffer and, of b, the one R before
    const auto outside = [&](int at) { return at < 0 || at >= z_fetch_end; };
    copy_plane<P>(planes + slot_of<ahead>(z_fetched) * P::plane + lane, from, outside(z_fetched), place, g.nx);
    if constexpr (P::relaxes) {
              copy_plane<P>(sources + slot_of<P::sources>(z_fetched - R) * P::plane + lane, from_b, outside(z_fetched - R), place,
                    g.nx);
              from_b += plane_cells;
    }
    commit_copies();
    from += plane_cells;
    ++z_fetched;
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
  for (int i = 0; i < ahead - 1; ++i) fetch();
  double    *to = g.out + z_begin * plane_cells + place.corner;
  int        z = z_begin - P::margin;
  const auto turn = [&](auto edge) {
    double v[lines][W];
    wait_copies<ahead - 2>();
    __syncwarp(); // plane z is there, and all lanes are done with plane z - 1, whose buffer is filled next
    double *const plane = planes + slot_of<ahead>(z) * P::plane;
#pragma unroll
    for (int j = 0; j < lines; ++j) get_line<W>(v[j], plane + j * columns + lane * W);
    fetch();
    if constexpr (P::relaxes) {
      constexpr bool edges = decltype(edge)::value != EdgeOfTile::none;
      if (w.starts) start_plane<P, edges>(v, w, place.fixed, z < g.ring || z > last);
    }
#pragma unroll
    for (int s = 0; s < T; ++s) {
      const double *source = nullptr;
      if constexpr (P::relaxes) source = sources + slot_of<P::sources>(z - (s + 1) * R) * P::plane + lane * W;
      advance_stage<P, decltype(edge)::value>(state.sums[s], v, exchange + (turns & 1) * P::exchange, source,
                                              weights_of_step(w, s), place.fixed, z - (s + 1) * R, g.ring, last);
      ++turns;
    }
    if (z - P::margin >= z_begin) {
#pragma unroll
      for (int j = 0; j < lines; ++j) put_line<W>(plane + j * columns + lane * W, v[j]); // the plane that came has been read
      __syncwarp();
      double *line = to;
#pragma unroll
      for (int j = 0; j < lines; ++j, line += g.nx)
#pragma unroll
        for (int i = 0; i < W; ++i)
          if (place.written >> (j * W + i) & 1) line[32 * i] = plane[j * columns + lane + 32 * i];
      to += plane_cells;
    }
    ++z;
  };
  // Cells that keep their values need care: at the grid's sides in all planes, else in the first and the last ones.
  const int z_stop = z_end + P::margin;
  const int inner_begin = min(max(z, g.ring + P::margin), z_stop), inner_end = max(inner_begin, min(z_stop, last + 1 - R));
  constexpr EdgeOfTile without_ring = P::relaxes ? EdgeOfTile::outside : EdgeOfTile::planes;
#pragma unroll 1
  for (int part = 0; part < 3; ++part) {
    const int stop = part == 0 ? inner_begin : part == 1 ? inner_end : z_stop;
    if (P::relaxes && g.ring == 0 && (part != 1 || place.side)) {
#pragma unroll 1
      while (z < stop) turn(std::integral_constant<EdgeOfTile, without_ring>());
    } else if (part != 1) {
#pragma unroll 1
      while (z < stop) turn(std::integral_constant<EdgeOfTile, EdgeOfTile::planes>());
    } else if (place.side) {
#pragma unroll 1
      while (z < stop) turn(std::integral_constant<EdgeOfTile, EdgeOfTile::lines_and_columns>());
    } else {
#pragma unroll 1
      while (z < stop) turn(std::integral_constant<EdgeOfTile, EdgeOfTile::none>());
    }
  }
}

// Segments of at most some 64 planes: where there are many, several for each block that is resident, so that blocks which take
// longer, those at the sides of the grid, do not leave the others idle; where there are few, as many as end together the soonest.
template <class P> int segment_planes(int planes, int tiles, int multiprocessors) {
  const auto ceil_divide = [](int a, int b) { return (a + b - 1) / b; };
  const int  most = 64, slots = P::resident * multiprocessors, fewest = ceil_divide(planes, most);
  const auto turns = [&](int segments) {
    return ceil_divide(tiles * segments, slots) * (ceil_divide(planes, segments) + 2 * P::margin);
  };
  int best = fewest;
  for (int segments = fewest; segments <= planes && tiles * segments <= 4 * slots; ++segments)
    if (turns(segments) < turns(best)) best = segments;
  return ceil_divide(planes, best);
}

template <class P> Tiles plan_tiles(const Grid &grid, int multiprocessors) {
  const auto ceil_divide = [](int a, int b) { return (a + b - 1) / b; };
  Tiles      g = {};
  g.nx = static_cast<int>(grid.extent[0]);
  g.ny = static_cast<int>(grid.extent[1]);
  g.nz = static_cast<int>(grid.extent[2]);
  g.ring = grid.ring;
  const auto split = [&](int cells, int most, int &pieces, int &each) {
    each = ceil_divide(std::max(cells, 1), ceil_divide(std::max(cells, 1), most));
    pieces = ceil_divide(std::max(cells, 1), each);
  };
  split(g.nx, P::columns - 2 * P::margin, g.tiles_x, g.tile_columns);
  split(g.ny, P::tile - 2 * P::margin, g.tiles_y, g.tile_lines);
  split(g.nz, segment_planes<P>(std::max(g.nz, 1), g.tiles_x * g.tiles_y, multiprocessors), g.segments, g.planes_each);
  return g;
}

inline unsigned blocks_of(const Tiles &g) { return static_cast<unsigned>(g.tiles_x * g.tiles_y * g.segments); }

} // namespace tcbound::stencil
