#pragma once

// Device code for constant coefficients where a thread can keep all that its cells depend on: it has two neighbouring cells of a line
// in a few planes and reads everything before it computes, so that it waits for memory once. Threads of a block share lines through
// the L1, neighbours along a line come from the lanes beside; no shared memory, no barrier. For .cu files only.

#include "march.h"

namespace tcbound::grid {
namespace {

// As March, with `planes` planes (in 2D: lines) to a warp. across, down: warps of a block along the line and, below each other, in 3D
// in lines of the same planes, in 2D in further lines. With more than one neighbour on a side in 2D, the lanes at a warp's ends only
// help: their results are the next warps'. Else these lanes read what lies beyond the warp.
template <int dimensions_, bool box_, int reach_, int planes_, int across_, int down_, int blocks_> struct Direct {
  static constexpr int  dimensions = dimensions_, reach = reach_, planes = planes_, blocks = blocks_;
  static constexpr bool box = box_, direct = true, overlap = dimensions == 2 && reach > 1;
  static constexpr int  side = 2, per_thread = 1, threads = 32 * across_ * down_, shared_bytes = 0;
  static constexpr int  helpers = overlap ? (reach + 1) / 2 : 0, warp_columns = 2 * (32 - 2 * helpers);
  static constexpr int  warps_across = across_, columns = across_ * warp_columns;
  static constexpr int  rows = dimensions == 3 ? down_ : 1, block_planes = dimensions == 3 ? planes : down_ * planes;
  static constexpr int  beyond = dimensions == 3 ? reach : 0; // neighbouring lines on each side
  static constexpr int  across = 2 * reach + 1, coefficients = across * across * (dimensions == 3 ? across : 1);

  static_assert(dimensions == 2 || (!box && reach <= 2));

  static constexpr bool has(int dx, int dy, int dz) { return box || (dx != 0) + (dy != 0) + (dz != 0) <= 1; }
  static constexpr int  at(int dx, int dy, int dz) {
     return dimensions == 3 ? dx + reach + across * (dy + reach + across * (dz + reach)) : dx + reach + across * (dz + reach);
  }
};

// Two cells of x, 0 where they do not exist. pairs: both do or none, and they begin at a multiple of 16 bytes.
template <bool pairs> __device__ __forceinline__ double2 load_two(const double *x, bool first, bool second) {
  double2 two = make_double2(0.0, 0.0);
  if (pairs) {
    if (first) two = __ldg(reinterpret_cast<const double2 *>(x));
  } else {
    if (first) two.x = __ldg(x);
    if (second) two.y = __ldg(x + 1);
  }
  return two;
}

// What a thread's cells depend on: [q] is of plane k0 + q - reach, [line] of line j + line - beyond.
template <class M> struct Around {
  static constexpr int reach = M::reach, planes = M::planes, depth = planes + 2 * reach, lines = 2 * M::beyond + 1;

  double2 cells[depth][lines];
  double2
    edges[depth]; // of the first lane the cells to the left, of the last lane those to the right; with a reach of 1 that in x

  static constexpr bool own_plane(int q) { return q >= reach && q < planes + reach; }
  static constexpr bool needs_line(int q, int line) { return line == M::beyond || own_plane(q); } // of stars
  static constexpr bool needs_sides(int q) { return M::box || own_plane(q); }

  template <bool pairs> __device__ __forceinline__ void load(const DeviceGrid &grid, const double *from, int i, int j, int k0) {
    const std::int64_t plane = static_cast<std::int64_t>(grid.pitch) * grid.n[1];
    const int          lane = static_cast<int>(threadIdx.x % 32), nx = grid.n[0];
    const int          beside = lane > 0 ? 2 : reach == 1 ? -1 : -2;
    const bool         first = unsigned(i) < unsigned(nx), second = unsigned(i + 1) < unsigned(nx);
    const bool         end = !M::overlap && (lane == 0 || lane == 31) && j < grid.n[1];
    const bool         first_edge = end && unsigned(i + beside) < unsigned(nx);
    const bool         second_edge = end && reach > 1 && unsigned(i + beside + 1) < unsigned(nx);
    const double      *x = from + grid.cell(i, j, k0); // may not exist
#pragma unroll
    for (int q = 0; q < depth; ++q) {
      const bool    exists = unsigned(k0 + q - reach) < unsigned(grid.n[2]);
      const double *at = x + (q - reach) * plane;
#pragma unroll
      for (int line = 0; line < lines; ++line) {
        if (!needs_line(q, line)) continue;
        const int  dy = line - M::beyond;
        const bool here = exists && unsigned(j + dy) < unsigned(grid.n[1]);
        cells[q][line] = load_two<pairs>(at + static_cast<std::int64_t>(dy) * grid.pitch, first && here, second && here);
      }
      edges[q] = make_double2(0.0, 0.0);
      if (M::overlap || !needs_sides(q)) continue;
      if (reach > 1)
        edges[q] = load_two<pairs>(at + beside, first_edge && exists, second_edge && exists);
      else if (first_edge && exists)
        edges[q].x = __ldg(at + beside);
    }
  }

  __device__ __forceinline__ double2 own(int k) const { return cells[k + reach][M::beyond]; }

  // The thread's two cells of its line in plane q, and `reach` on each side.
  __device__ __forceinline__ void get_line(int q, double (&x)[2 + 2 * reach]) const {
    const int     lane = static_cast<int>(threadIdx.x % 32);
    const double2 two = cells[q][M::beyond];
    const bool    left = !M::overlap && lane == 0, right = !M::overlap && lane == 31;
    x[reach] = two.x;
    x[reach + 1] = two.y;
    if (!needs_sides(q)) return;
    x[reach - 1] = __shfl_up_sync(~0U, two.y, 1);
    x[reach + 2] = __shfl_down_sync(~0U, two.x, 1);
    if (left) x[reach - 1] = reach == 1 ? edges[q].x : edges[q].y;
    if (right) x[reach + 2] = edges[q].x;
    if constexpr (reach > 1) {
      x[reach - 2] = __shfl_up_sync(~0U, two.x, 1);
      x[reach + 3] = __shfl_down_sync(~0U, two.y, 1);
      if (left) x[reach - 2] = edges[q].x;
      if (right) x[reach + 3] = edges[q].y;
    }
    if constexpr (reach > 2) {
      x[0] = __shfl_up_sync(~0U, x[2], 1);
      x[7] = __shfl_down_sync(~0U, x[5], 1);
    }
  }

  // Adds plane q to the sums of those that it is a neighbour of. Sums add points in the order of (dz, dy, dx), the first one alone.
  __device__ __forceinline__ void add(const MarchCoefficients<M> &a, int q, double (&sums)[planes][1][2]) const {
    double x[2 + 2 * reach];
    get_line(q, x);
#pragma unroll
    for (int line = 0; line < lines; ++line) {
      if (!needs_line(q, line)) continue;
      const int dy = line - M::beyond;
#pragma unroll
      for (int dx = -reach; dx <= reach; ++dx)
#pragma unroll
        for (int k = 0; k < planes; ++k) {
          const int dz = q - reach - k;
          if (dz < -reach || dz > reach || !M::has(dx, dy, dz)) continue;
          const double coefficient = a.values[M::at(dx, dy, dz)];
          const double two[2] = {dy == 0 ? x[reach + dx] : cells[q][line].x, dy == 0 ? x[reach + dx + 1] : cells[q][line].y};
#pragma unroll
          for (int c = 0; c < 2; ++c)
            sums[k][0][c] =
              dz == -reach && (!M::box || dx == -reach) ? coefficient * two[c] : fma(coefficient, two[c], sums[k][0][c]);
        }
    }
  }
};

// Where a thread's two cells of each plane go.
template <class M, bool pairs> struct DirectResults {
  static constexpr int planes = M::planes;

  Results<M>   cells;
  int          k0;
  std::int64_t first, plane; // cell of plane k0; from plane to plane

  __device__ __forceinline__ bool here(const DeviceBox &box, int k) const { return k0 + k < box.end[2]; }

  // Rows of the diagonal outside of the core.
  __device__ __forceinline__ void replace(const DeviceExceptions &exceptions, const Around<M> &around,
                                          double (&sums)[planes][1][2]) const {
    if (!exceptions.diagonal_outside) return;
#pragma unroll
    for (int k = 0; k < planes; ++k) {
      const double2 own = around.own(k);
      if (!exceptions.core.has(cells.i, cells.j, k0 + k)) sums[k][0][0] = exceptions.diagonal * own.x;
      if (!exceptions.core.has(cells.i + 1, cells.j, k0 + k)) sums[k][0][1] = exceptions.diagonal * own.y;
    }
  }

  // As DeviceProduct::result(), with one question for all.
  __device__ __forceinline__ void store(const DeviceProduct &p, const DeviceBox &box, double (&sums)[planes][1][2]) const {
    const bool one = cells.mine & 1, other = cells.mine & 2;
#pragma unroll
    for (int k = 0; k < planes; ++k) sums[k][0][0] *= p.alpha, sums[k][0][1] *= p.alpha;
    if (p.beta != 0.0) {
#pragma unroll
      for (int k = 0; k < planes; ++k) {
        if (one && here(box, k)) sums[k][0][0] = sums[k][0][0] + p.beta * p.y[first + k * plane];
        if (other && here(box, k)) sums[k][0][1] = sums[k][0][1] + p.beta * p.y[first + k * plane + 1];
      }
    }
#pragma unroll
    for (int k = 0; k < planes; ++k) {
      double *to = p.z + first + k * plane;
      if (pairs && one && other && here(box, k)) *reinterpret_cast<double2 *>(to) = make_double2(sums[k][0][0], sums[k][0][1]);
      if (one && !(pairs && other) && here(box, k)) to[0] = sums[k][0][0];
      if (other && !(pairs && one) && here(box, k)) to[1] = sums[k][0][1];
    }
  }
};

// pairs: lines of x and of z begin at multiples of 16 bytes.
template <class M, bool pairs>
__device__ __forceinline__ void compute_directly(const DeviceGrid &grid, const MarchCoefficients<M> &a, const DeviceProduct &p,
                                                 const DeviceExceptions &exceptions, const DeviceBox &box,
                                                 const MarchPlan &plan, int block) {
  constexpr int planes = M::planes;
  const int     tile = block % (plan.tiles[0] * plan.tiles[1]), chunk = block / (plan.tiles[0] * plan.tiles[1]);
  const int     lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int     down = warp / M::warps_across, column = warp % M::warps_across * M::warp_columns + 2 * (lane - M::helpers);
  const int     i = (box.begin[0] & ~1) + tile % plan.tiles[0] * M::columns + column;
  const int     j = box.begin[1] + tile / plan.tiles[0] * M::rows + (M::dimensions == 3 ? down : 0);
  const int     k0 = box.begin[2] + chunk * M::block_planes + (M::dimensions == 3 ? 0 : down * planes);
  Around<M>     around;
  double        sums[planes][1][2];
  around.template load<pairs>(grid, p.x, i, j, k0);
#pragma unroll
  for (int q = 0; q < planes + 2 * M::reach; ++q) around.add(a, q, sums);
  const std::int64_t      plane = static_cast<std::int64_t>(grid.pitch) * grid.n[1];
  DirectResults<M, pairs> results{Results<M>(box, i, j), k0, grid.cell(i, j, k0), plane};
  if (lane < M::helpers || lane >= 32 - M::helpers) results.cells.mine = 0;
  if (exceptions.bits && !exceptions.diagonal_outside) {
#pragma unroll
    for (int k = 0; k < planes; ++k)
      if (results.here(box, k)) results.cells.store_plane(grid, p, exceptions, pairs, k0 + k, sums[k]);
    return;
  }
  results.replace(exceptions, around, sums);
  results.store(p, box, sums);
}

} // namespace
} // namespace tcbound::grid
