#pragma once

// Device code for constant coefficients in three dimensions where the rows of all cells within reach of the grid's faces are multiples of
// the identity's: no neighbour of any other cell is missing, so nothing is asked. A thread has two cells of a line in a few planes and reads
// everything before it computes, as in direct.h; neighbours along the line come from the lanes beside it. The lanes at the ends of a
// warp only help: their results are the next warp's, which costs less than to read what lies beyond a warp.
//
// The lines between the frame's are cut into bands of as many lines as a block has warps, and bands are laid end to end: a warp has a
// stretch of their columns, so that lines of any length are cut without a remainder. Where one line ends and another begins lanes get
// wrong neighbours, but those are the frame's cells, which need none. Lines and planes of the frame alone are computed by blocks of their own.
//
// For .cu files only.

#include "../kind.h"
#include "march.h"

namespace tcbound::grid {

// Columns from band to band where lines begin at multiples of 16 bytes: as many as keep what warps and blocks have at the sectors, and at
// the lines of the L2, that a line of cells begins at.
constexpr int aligned_band(int nx, int pitch) {
  const int of = pitch % 16 == 0 ? 16 : (pitch % 4 == 0 ? 4 : 2);
  return (nx + of - 1) / of * of;
}

// Bands, and how they are cut.
struct FramedPlan {
  Divisor columns, tiles; // columns from band to band; tiles of all bands
  int     chunks;         // of the planes between the frame's
};

namespace {

// A stencil of reach 1. down: warps of a block, in lines below each other; blocks: of a multiprocessor.
template <stencil::Kind kind_, int planes_, int down_, int blocks_> struct Framed {
  static constexpr stencil::Kind kind = kind_;

  static constexpr int reach = 1, planes = planes_, down = down_, blocks = blocks_, threads = 32 * down;
  static constexpr int across = 2 * reach + 1, coefficients = across * across * across, depth = planes + 2 * reach;

  static constexpr bool marches = false;
  static constexpr int  shared_bytes = 0;

  static_assert(planes >= 2 && planes <= 4); // marcher.h: there are at least 4

  static constexpr int at(int dx, int dy, int dz) { return dx + reach + across * (dy + reach + across * (dz + reach)); }

  // Results of a warp begin at sectors of the L2 if lines are as long as to begin at multiples of 16 bytes, for which bands are 2 columns
  // longer than lines.
  static constexpr int columns = 60; // of a warp; it reads 2 on each side
  static constexpr int columns_of_band(int nx, int pitch, bool) {
    return pitch % 4 != 0 ? nx + nx % 2 + 2 : aligned_band(nx, pitch);
  }

  // Whether any of the planes has a point in this line of plane k0 + q - 1, which is a neighbour of one; beside its own column.
  static constexpr bool needs(int q, int dy) { return has(q, dy, 0) || has(q, dy, 1); }
  static constexpr bool needs_sides(int q, int dy) { return has(q, dy, 1); }

private:
  static constexpr bool has(int q, int dy, int dx) {
    return stencil::has_point(kind, 1, dy, dx) || (q > 0 && q <= planes && stencil::has_point(kind, 0, dy, dx));
  }
};

// A lane's two columns. before: cells before the first of its planes, as far as multiples of 4 do not count.
template <class M> struct FramedColumns {
  bool stored, framed[2]; // both columns; those of the frame
  int  cell;              // of a plane, the first column's

  __device__ __forceinline__ FramedColumns(const DeviceGrid &grid, const DeviceBox &core, const FramedPlan &plan, int tile,
                                           int before) {
    const int      lane = threadIdx.x % 32, nx = grid.n[0], pitch = grid.pitch;
    const unsigned at = static_cast<unsigned>(max(tile * M::columns + 2 * lane - 2, 0)), band = plan.columns.divide(at);
    const int      y = core.begin[1] + static_cast<int>(band) * M::down + static_cast<int>(threadIdx.x / 32);
    const int      x = static_cast<int>(at - band * plan.columns.by) - (pitch % 4 != 0 ? (y * pitch + before) & 2 : 0);
    stored = lane > 0 && lane < 31 && y < core.end[1] && x >= 0 && x < nx;
    framed[0] = x < core.begin[0] || x >= core.end[0];
    framed[1] = x + 1 < core.begin[0] || x + 1 >= core.end[0];
    cell = min(y, core.end[1] - 1) * pitch + min(max(x, 0), (nx - 1) & ~1);
  }
};

template <class M> using FramedCells = double2[M::depth][M::across];

template <class M>
__device__ __forceinline__ void load_framed(const double *x, std::int64_t plane, int pitch, FramedCells<M> &cells) {
#pragma unroll
  for (int q = 0; q < M::depth; ++q, x += plane)
#pragma unroll
    for (int dy = -1; dy <= 1; ++dy)
      if (M::needs(q, dy)) cells[q][dy + 1] = __ldg(reinterpret_cast<const double2 *>(x + dy * pitch));
}

// Sums add points in the order of (dz, dy, dx), the first product alone.
template <class M>
__device__ __forceinline__ void add_framed(const MarchCoefficients<M> &a, const FramedCells<M> &cells,
                                           double (&sums)[M::planes][2]) {
#pragma unroll
  for (int q = 0; q < M::depth; ++q)
#pragma unroll
    for (int dy = -1; dy <= 1; ++dy) {
      if (!M::needs(q, dy)) continue;
      const double2 own = cells[q][dy + 1];
      double        x[4] = {0.0, own.x, own.y, 0.0};
      if (M::needs_sides(q, dy)) {
        x[0] = __shfl_up_sync(~0U, own.y, 1);
        x[3] = __shfl_down_sync(~0U, own.x, 1);
      }
#pragma unroll
      for (int dx = -1; dx <= 1; ++dx)
#pragma unroll
        for (int k = 0; k < M::planes; ++k) {
          const int dz = q - 1 - k;
          if (dz < -1 || dz > 1 || !stencil::has_point(M::kind, dz, dy, dx)) continue;
          const double coefficient = a.values[M::at(dx, dy, dz)];
          const bool   first = stencil::is_first_point(M::kind, 1, dz, dy, dx);
#pragma unroll
          for (int j = 0; j < 2; ++j)
            sums[k][j] = first ? coefficient * x[1 + dx + j] : fma(coefficient, x[1 + dx + j], sums[k][j]);
        }
    }
}

// Cells of the frame, which lie one after the other: block b has the lines between those of a plane and of the next, or a piece of what is
// before the first of these or after the last. Each is computed once: y may be z.
constexpr int frame_piece = 1024;

__host__ __device__ inline std::int64_t frame_before(const DeviceGrid &grid, const DeviceBox &core) {
  return static_cast<std::int64_t>(grid.pitch) * (static_cast<std::int64_t>(core.begin[2] - 1) * grid.n[1] + core.end[1]);
}

__host__ __device__ inline std::int64_t frame_after(const DeviceGrid &grid, const DeviceBox &core) {
  return static_cast<std::int64_t>(grid.pitch) *
         (static_cast<std::int64_t>(grid.n[2] - core.end[2]) * grid.n[1] - core.begin[1]);
}

__host__ __device__ inline int frame_pieces(std::int64_t cells) {
  return static_cast<int>((cells + frame_piece - 1) / frame_piece);
}

inline int frame_blocks(const DeviceGrid &grid, const DeviceBox &core) {
  return core.end[2] - core.begin[2] + 1 + frame_pieces(frame_before(grid, core)) + frame_pieces(frame_after(grid, core));
}

__device__ __forceinline__ void compute_frame(const DeviceGrid &grid, const DeviceProduct &p,
                                              const DeviceExceptions &exceptions, int block) {
  const DeviceBox &core = exceptions.core;
  const int        between = core.end[2] - core.begin[2] + 1, before = frame_pieces(frame_before(grid, core));
  std::int64_t     begin, end;
  if (block < between) {
    begin = grid.cell(0, core.end[1], core.begin[2] - 1 + block);
    end = grid.cell(0, core.begin[1], core.begin[2] + block);
  } else {
    const bool first = block - between < before;
    const int  piece = block - between - (first ? 0 : before);
    begin = (first ? 0 : grid.cell(0, core.begin[1], core.end[2])) + static_cast<std::int64_t>(piece) * frame_piece;
    end = min(begin + frame_piece, first ? frame_before(grid, core) : grid.cell(0, 0, grid.n[2]));
  }
  for (std::int64_t row = begin + threadIdx.x; row < end; row += blockDim.x)
    p.z[row] = p.result(row, exceptions.diagonal * p.x[row]);
}

// As DeviceProduct::result() of two neighbours.
__device__ __forceinline__ double2 result_of_two(const DeviceProduct &p, std::int64_t row, double first, double second) {
  double2 two = make_double2(p.alpha * first, p.alpha * second);
  if (p.beta != 0.0) {
    two.x = two.x + p.beta * p.y[row];
    two.y = two.y + p.beta * p.y[row + 1];
  }
  return two;
}

// Lines of x and z begin at multiples of 16 bytes.
template <class M>
__device__ __forceinline__ void compute_framed(const DeviceGrid &grid, const MarchCoefficients<M> &a, const DeviceProduct &p,
                                               const DeviceExceptions &exceptions, const FramedPlan &plan) {
  const DeviceBox   &core = exceptions.core;
  const unsigned     chunk = plan.tiles.divide(blockIdx.x);
  const std::int64_t plane = static_cast<std::int64_t>(grid.pitch) * grid.n[1];
  if (chunk >= static_cast<unsigned>(plan.chunks))
    return compute_frame(grid, p, exceptions, static_cast<int>(blockIdx.x - plan.chunks * plan.tiles.by));
  const int              first = core.begin[2] + static_cast<int>(chunk) * M::planes, k0 = min(first, core.end[2] - M::planes);
  const FramedColumns<M> columns(grid, core, plan, static_cast<int>(blockIdx.x - chunk * plan.tiles.by),
                                 static_cast<int>(k0 * plane & 2));

  FramedCells<M> cells;
  double         sums[M::planes][2];
  load_framed<M>(p.x + (k0 - 1) * plane + columns.cell, plane, grid.pitch, cells);
  add_framed<M>(a, cells, sums);
  if (!columns.stored) return;
  std::int64_t row = k0 * plane + columns.cell;
#pragma unroll
  for (int k = 0; k < M::planes; ++k, row += plane) {
    if (k0 + k < first) continue; // of another block
    const double2 own = cells[k + 1][1];
    *reinterpret_cast<double2 *>(p.z + row) =
      result_of_two(p, row, columns.framed[0] ? exceptions.diagonal * own.x : sums[k][0],
                    columns.framed[1] ? exceptions.diagonal * own.y : sums[k][1]);
  }
}

} // namespace
} // namespace tcbound::grid
