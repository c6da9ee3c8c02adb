#pragma once

// Device code for constant coefficients and stencils of width 1 that need few lines: a thread has two neighbouring cells in a few
// planes and reads all that they depend on before it computes, so that it waits for memory once. Threads of a block share lines
// through the L1, neighbours along a line come from the lanes beside; no shared memory, no barrier. For .cu files only.

#include "march.h"

namespace tcbound::grid {
namespace {

// As March, with `planes` planes (in 2D: lines) to a block.
template <int dimensions_, bool box_, int planes_, int blocks_, int threads_ = 256> struct Direct {
  static constexpr int  dimensions = dimensions_, reach = 1, planes = planes_, blocks = blocks_, threads = threads_;
  static constexpr bool box = box_, direct = true;
  static constexpr int  side = 2, per_thread = 1, columns = dimensions == 3 ? 64 : side * threads;
  static constexpr int  lanes = columns / side, rows = threads / lanes, shared_bytes = 0;
  static constexpr int  across = 3, coefficients = dimensions == 3 ? 27 : 9;

  static_assert(dimensions == 2 || !box);

  static constexpr bool has(int dx, int dy, int dz) { return box || (dx != 0) + (dy != 0) + (dz != 0) <= 1; }
  static constexpr int  at(int dx, int dy, int dz) {
     return dimensions == 3 ? dx + 1 + 3 * (dy + 1 + 3 * (dz + 1)) : dx + 1 + 3 * (dz + 1);
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

// What a thread's cells depend on: [q] is of plane k0 + q - 1.
template <class M> struct Around {
  static constexpr int planes = M::planes;

  double2 own[planes + 2], south[planes + 2], north[planes + 2];
  double  edge[planes + 2]; // of the first lane the cell to the left, of the last lane the one to the right

  static constexpr bool needs_sides(int q) { return M::box || (q > 0 && q <= planes); }

  template <bool pairs> __device__ __forceinline__ void load(const DeviceGrid &grid, const double *from, int i, int j, int k0) {
    const std::int64_t plane = static_cast<std::int64_t>(grid.n[0]) * grid.n[1];
    const int          lane = static_cast<int>(threadIdx.x % 32), nx = grid.n[0], beside = lane == 0 ? -1 : 2;
    const bool         here = j < grid.n[1], first = here && i < nx, second = here && i + 1 < nx;
    const bool         end = here && (lane == 0 || lane == 31) && unsigned(i + beside) < unsigned(nx);
    const bool         has_south = j > 0, has_north = j + 1 < grid.n[1];
    const double      *x = from + grid.cell(i, j, k0); // may not exist
#pragma unroll
    for (int q = 0; q < planes + 2; ++q) {
      const bool    exists = unsigned(k0 + q - 1) < unsigned(grid.n[2]);
      const double *at = x + (q - 1) * plane;
      own[q] = load_two<pairs>(at, first && exists, second && exists);
      edge[q] = 0.0;
      if (needs_sides(q) && end && exists) edge[q] = __ldg(at + beside);
      if (M::dimensions == 2 || q == 0 || q > planes) continue;
      south[q] = load_two<pairs>(at - nx, first && exists && has_south, second && exists && has_south);
      north[q] = load_two<pairs>(at + nx, first && exists && has_north, second && exists && has_north);
    }
  }

  // Adds plane q to the sums of those that it is a neighbour of, the one that this finishes first.
  __device__ __forceinline__ void add(const MarchCoefficients<M> &a, int q, double (&sums)[planes][1][2]) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    double    left = 0.0, right = 0.0;
    if (needs_sides(q)) {
      left = __shfl_up_sync(~0U, own[q].y, 1);
      right = __shfl_down_sync(~0U, own[q].x, 1);
      if (lane == 0) left = edge[q];
      if (lane == 31) right = edge[q];
    }
#pragma unroll
    for (int dz = 1; dz >= -1; --dz) {
      const int k = q - 1 - dz;
      if (k < 0 || k >= planes) continue;
      const auto multiply = [&](int dx, int dy, double first, double second) {
        sums[k][0][0] = fma(a.values[M::at(dx, dy, dz)], first, sums[k][0][0]);
        sums[k][0][1] = fma(a.values[M::at(dx, dy, dz)], second, sums[k][0][1]);
      };
      if (M::dimensions == 3 && dz == 0) multiply(0, -1, south[q].x, south[q].y);
      if (M::has(-1, 0, dz)) multiply(-1, 0, left, own[q].x);
      multiply(0, 0, own[q].x, own[q].y);
      if (M::has(1, 0, dz)) multiply(1, 0, own[q].y, right);
      if (M::dimensions == 3 && dz == 0) multiply(0, 1, north[q].x, north[q].y);
    }
  }
};

template <class M, bool pairs>
__device__ __forceinline__ void compute_directly(const DeviceGrid &grid, const MarchCoefficients<M> &a, const DeviceProduct &p,
                                                 const DeviceExceptions &exceptions, const DeviceBox &box,
                                                 const MarchPlan &plan, int block) {
  constexpr int    planes = M::planes;
  const int        tile = block % (plan.tiles[0] * plan.tiles[1]), chunk = block / (plan.tiles[0] * plan.tiles[1]);
  const int        k0 = box.begin[2] + chunk * planes;
  const Results<M> results(box, (box.begin[0] & ~1) + tile % plan.tiles[0] * M::columns,
                           box.begin[1] + tile / plan.tiles[0] * M::rows);
  Around<M>        around;
  double           sums[planes][1][2] = {};
  around.template load<pairs>(grid, p.x, results.i, results.j, k0);
#pragma unroll
  for (int q = 0; q < planes + 2; ++q) around.add(a, q, sums);
  if (!exceptions.diagonal_outside && !exceptions.bits) {
    const std::int64_t row = grid.cell(results.i, results.j, k0), plane = static_cast<std::int64_t>(grid.n[0]) * grid.n[1];
#pragma unroll
    for (int k = 0; k < planes; ++k)
      if (k0 + k < box.end[2]) results.store(grid, p, pairs, row + k * plane, results.mine, sums[k]);
    return;
  }
#pragma unroll
  for (int k = 0; k < planes; ++k) {
    if (k0 + k >= box.end[2]) continue;
    const double2 own = around.own[k + 1];
    const double  scaled[1][2] = {{exceptions.diagonal * own.x, exceptions.diagonal * own.y}};
    results.store_plane(grid, p, exceptions, pairs, k0 + k, sums[k]);
    results.store_outside(grid, p, exceptions, k0 + k, scaled);
  }
}

template <class M>
__device__ __forceinline__ void compute_directly(const DeviceGrid &grid, const MarchCoefficients<M> &a, const DeviceProduct &p,
                                                 const DeviceExceptions &exceptions, const DeviceBox &box,
                                                 const MarchPlan &plan, int block) {
  if (plan.pairs_from && plan.pairs_to)
    compute_directly<M, true>(grid, a, p, exceptions, box, plan, block);
  else
    compute_directly<M, false>(grid, a, p, exceptions, box, plan, block);
}

} // namespace
} // namespace tcbound::grid
