#pragma once

// Device code: one pass of a constant-coefficient stencil by an engine P (banded_2d.h, banded_3d.h). A block walks through the planes
// of a tile; each plane is brought into shared memory once, ahead of time, and added to the sums of the 2R + 1 planes that it is a
// neighbour of, which stay in registers. Of a grid of two dimensions a row is a plane of one line. For .cu files only.
//
// An engine has
//   Weights, R               what the kernel takes; planes before and after that a result depends on
//   reach_y                  lines beyond the tile that it depends on
//   columns, lines           of a tile
//   threads, warps, resident of a block; blocks of a multiprocessor, which bounds a lane's registers
//   ahead                    planes on their way while one is computed
//   beside, pitch            columns of a plane's buffer beside the tile's; doubles from line to line of it
//   best_planes              how long marches are on grids that fill the device
//   first_column(ring)       where the grid's first tile begins
//   lead(ring)               columns of a buffer before the tile's first, so that a buffer's first column is even in the array
//   window_line, window_column(warp)      where in the tile a warp's results begin
//   results, scratch         of a lane; doubles of shared memory for each warp
//   State(w, lane)           what a lane keeps from plane to plane
//   compute(state, done, cells, w, lane)  a plane enters; the one R before it is done. cells: of its buffer, reach_y lines above the
//                                         warp's first result
//   arrange(done, scratch, lane)          brings results to where they are stored:
//   column_of(lane, j), line_of(j)        from the warp's first result

#include <algorithm>
#include <cstdint>

#include <cuda_runtime.h>

#include "../../cuda/cell_copy.h"
#include "../iterated/iterated.h"
#include "../march_length.h"

namespace tcbound::stencil {

// Tiles cover the cells that change; those at the sides copy the ring beside them too. A block takes `planes_each` planes.
struct Slabs {
  const double *in;
  double       *out;
  int           nx, ny, nz, ring_x, ring_y, ring_z;
  int           pitch;              // cells from line to line
  int           first_column, lead; // as the engine's
  int           tiles_x, tiles_y, planes_each;
  bool          pairs; // lines begin at multiples of 16 bytes, and so do those of buffers

  __host__ __device__ int tiles() const { return tiles_x * tiles_y; }
};

namespace banded {

// Buffers of planes. Units of copies are 64 columns of a line, each a warp's, and then what is beside, in pairs of cells.
template <class P> struct Buffers {
  static constexpr int width = P::columns + P::beside, height = P::lines + 2 * P::reach_y, plane = P::pitch * height;
  static constexpr int count = P::ahead + 1 + P::R; // R planes stay: cells of the ring are copied from there
  static constexpr int parts = P::columns / 64, copies = (height * parts + P::warps - 1) / P::warps;
  static constexpr int bytes = 8 * (count * plane + P::warps * P::scratch);

  static_assert(P::beside / 2 * height <= P::threads && P::pitch >= width && P::pitch % 2 == 0);
};

// Where a tile lies.
template <class P> struct Tile {
  using B = Buffers<P>;

  int  x_tile, x_begin, x_end, y_begin, y_end; // its first column; its cells that change
  int  x_low, x_high, y_low, y_high;           // with the ring beside them
  int  x_first, y_first;                       // of a buffer
  bool whole, side;                            // all cells exist; there is a ring beside

  __device__ __forceinline__ Tile(const Slabs &g, int tile) {
    const int tile_x = tile % g.tiles_x, tile_y = tile / g.tiles_x;
    x_tile = g.first_column + tile_x * P::columns;
    x_begin = max(x_tile, g.ring_x);
    y_begin = g.ring_y + tile_y * P::lines;
    x_end = min(x_tile + P::columns, g.nx - g.ring_x);
    y_end = min(y_begin + P::lines, g.ny - g.ring_y);
    x_low = tile_x == 0 ? 0 : x_begin;
    y_low = tile_y == 0 ? 0 : y_begin;
    x_high = tile_x == g.tiles_x - 1 ? g.nx : x_end;
    y_high = tile_y == g.tiles_y - 1 ? g.ny : y_end;
    x_first = x_tile - g.lead;
    y_first = y_begin - P::reach_y;
    whole = x_first >= 0 && x_first + B::width <= g.nx && y_first >= 0 && y_first + B::height <= g.ny;
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
      const double *from = corner + static_cast<std::int64_t>(line) * g.pitch + column;
      double       *to = buffer + line * P::pitch + column;
      if (g.pairs) {
        copy_pair_or_zero(to, first ? from : g.in, first);
      } else {
        copy_cell_or_zero(to, first ? from : g.in, first);
        copy_cell_or_zero(to + 1, second ? from + 1 : g.in, second);
      }
    };
#pragma unroll
    for (int c = 0; c < B::copies; ++c) {
      const int unit = c * P::warps + warp;
      if ((c + 1) * P::warps <= B::height * B::parts || unit < B::height * B::parts)
        copy(unit / B::parts, 64 * (unit % B::parts) + 2 * lane);
    }
    constexpr int last = P::beside / 2;
    if (static_cast<int>(threadIdx.x) < last * B::height) copy(threadIdx.x / last, P::columns + 2 * (threadIdx.x % last));
  }

  // Cells of the tile in a plane that keep their values, from its buffer.
  __device__ __forceinline__ void copy_ring(const Slabs &g, double *plane, const double *buffer, bool all) const {
#pragma unroll 1
    for (int e = threadIdx.x; e < B::width * B::height; e += P::threads) {
      const int  column = e % B::width, line = e / B::width, x = x_first + column, y = y_first + line;
      const bool own = x >= x_low && x < x_high && y >= y_low && y < y_high;
      const bool changes = x >= x_begin && x < x_end && y >= y_begin && y < y_end;
      if (own && (all || !changes)) plane[static_cast<std::int64_t>(y) * g.pitch + x] = buffer[line * P::pitch + column];
    }
  }
};

} // namespace banded

template <class P>
__global__ void __launch_bounds__(P::threads, P::resident)
  advance_planes(const Slabs g, const __grid_constant__ typename P::Weights w) {
  using B = banded::Buffers<P>;
  constexpr int             R = P::R, results = P::results;
  extern __shared__ double2 shared[];
  double *const             planes = reinterpret_cast<double *>(shared);
  const int                 lane = threadIdx.x % 32, warp = threadIdx.x / 32, item = static_cast<int>(blockIdx.x);
  double *const             scratch = planes + B::count * B::plane + warp * P::scratch;
  const banded::Tile<P>     tile(g, item % g.tiles());
  const std::int64_t        plane_cells = static_cast<std::int64_t>(g.pitch) * g.ny;
  const int                 z_begin = item / g.tiles() * g.planes_each, z_end = min(z_begin + g.planes_each, g.nz);
  const int                 window = g.lead + P::window_line(warp) * P::pitch + P::window_column(warp); // in a buffer
  const auto                back = [](int slot, int n) { return slot < n ? slot - n + B::count : slot - n; };

  int           z_fetched = z_begin - R;
  const double *from = g.in + z_fetched * plane_cells + static_cast<std::int64_t>(tile.y_first) * g.pitch + tile.x_first;
  const auto    fetch = [&](int slot) {
    if (z_fetched < z_end + R) tile.fetch(g, from, planes + slot * B::plane, z_fetched >= 0 && z_fetched < g.nz);
    commit_copies();
    from += plane_cells;
    ++z_fetched;
  };

  typename P::State state(w, lane);
#pragma unroll 1
  for (int slot = 0; slot < P::ahead; ++slot) fetch(slot);
  const int x_lane = tile.x_tile + P::window_column(warp), y_lane = tile.y_begin + P::window_line(warp);
  unsigned  written = 0;
#pragma unroll
  for (int j = 0; j < results; ++j) {
    const int x = x_lane + P::column_of(lane, j), y = y_lane + P::line_of(j);
    written |= (x >= tile.x_begin && x < tile.x_end && y < tile.y_end ? 1U : 0U) << j;
  }
  double *plane_out = g.out + static_cast<std::int64_t>(z_begin) * plane_cells;
  double *to = plane_out + static_cast<std::int64_t>(y_lane) * g.pitch + x_lane + P::column_of(lane, 0);
  int     slot = 0;
#pragma unroll 1
  for (int z = z_begin - R; z < z_end + R; ++z) {
    wait_copies<P::ahead - 1>();
    __syncthreads(); // plane z is there, and all are done with plane z - 1 - R, whose buffer is filled next
    fetch(back(slot, R + 1));
    double done[results];
    P::compute(state, done, planes + slot * B::plane + window, w, lane);
    const int leaving = z - R;
    if (leaving >= z_begin) {
      const bool fixed = leaving < g.ring_z || leaving >= g.nz - g.ring_z;
      if (fixed || tile.side) tile.copy_ring(g, plane_out, planes + back(slot, R) * B::plane, fixed);
      if (!fixed) {
        P::arrange(done, scratch, lane);
#pragma unroll
        for (int j = 0; j < results; ++j)
          if (written >> j & 1)
            to[static_cast<std::int64_t>(P::line_of(j)) * g.pitch + (P::column_of(lane, j) - P::column_of(lane, 0))] = done[j];
      }
      plane_out += plane_cells;
      to += plane_cells;
    }
    slot = slot + 1 == B::count ? 0 : slot + 1;
  }
}

// resident: blocks that run at once. planes: that a block takes; 0: as many as suit the grid.
template <class P> Slabs plan_slabs(const Grid &grid, int dimensions, int resident, int planes = 0) {
  const auto tiles = [](int cells, int each) { return std::max(1, (cells + each - 1) / each); };
  const bool flat = dimensions == 2;
  Slabs      g = {};
  g.nx = static_cast<int>(grid.extent[0]);
  g.pitch = static_cast<int>(grid.line());
  g.ny = flat ? 1 : static_cast<int>(grid.extent[1]);
  g.nz = static_cast<int>(grid.extent[flat ? 1 : 2]);
  g.ring_x = g.ring_z = grid.ring;
  g.ring_y = flat ? 0 : grid.ring;
  g.first_column = P::first_column(grid.ring);
  g.lead = P::lead(grid.ring);
  g.tiles_x = tiles(g.nx - g.ring_x - g.first_column, P::columns);
  g.tiles_y = tiles(g.ny - 2 * g.ring_y, P::lines);
  const int all = std::max(1, g.nz);
  g.planes_each = planes ? std::min(planes, all) : march_length(g.tiles(), all, P::R, resident, P::best_planes);
  return g;
}

inline unsigned blocks_of(const Slabs &g) {
  return static_cast<unsigned>(g.tiles()) * static_cast<unsigned>((std::max(1, g.nz) + g.planes_each - 1) / g.planes_each);
}

} // namespace tcbound::stencil
