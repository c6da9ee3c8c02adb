#pragma once

// Device code for constant coefficients: a block has a tile of cells across and marches along the last dimension. Each plane of x is
// brought into shared memory once, several planes ahead, and added to the sums of all planes that it is a neighbour of, which stay
// in registers. For .cu files only.

#include <cuda_pipeline.h>

#include "device_view.h"

namespace tcbound::grid {
namespace {

// A 3D stencil marches along the third dimension; a 2D one along the second, with a plane that is a line (its grid is then given as
// n[0] x 1 x n[1]). box: all neighbours up to `reach` away, else those along the axes. columns: of a tile.
template <int dimensions_, bool box_, int reach_, int columns_> struct March {
  static constexpr int  dimensions = dimensions_, reach = reach_, columns = columns_;
  static constexpr bool box = box_;
  static constexpr int  threads = 256, per_thread = dimensions == 2 ? 1 : box && reach > 1 ? 2 : 4; // cells, in rows
  static constexpr int  blocks = dimensions == 2 ? (reach == 1 ? 6 : 4)
                                                 : (reach == 1 && !box ? 4
                                                    : reach < 3        ? 3
                                                                       : 2); // a multiprocessor, by registers
  static constexpr int  rows = threads / columns * per_thread;
  static constexpr int  beyond = dimensions == 3 ? reach : 0; // neighbouring rows on each side
  static constexpr int  pitch = columns + 2 * reach, height = rows + 2 * beyond, plane = pitch * height;
  static constexpr int  stages = dimensions == 3 ? 4 : 8;
  static constexpr int  copies = (plane + threads - 1) / threads; // of a thread, per plane
  static constexpr int  shared_bytes = stages * plane * 8;
  static constexpr int  across = 2 * reach + 1, coefficients = across * across * (dimensions == 3 ? across : 1);

  static constexpr bool has(int dx, int dy, int dz) { return box || (dx != 0) + (dy != 0) + (dz != 0) <= 1; }
  static constexpr int  at(int dx, int dy, int dz) {
     return dimensions == 3 ? dx + reach + across * (dy + reach + across * (dz + reach)) : dx + reach + across * (dz + reach);
  }
};

template <class M> struct MarchCoefficients {
  double values[M::coefficients]; // at M::at()
};

struct MarchPlan {
  int tiles[2];
  int chunks, planes; // of the marching direction, and their length
};

// Adds a plane to the sums: sums[i] are of the plane `i - reach` after it.
template <class M>
__device__ void add_plane(const MarchCoefficients<M> &a, const double *plane, double (&sums)[M::across][M::per_thread]) {
#pragma unroll
  for (int row = 0; row < M::per_thread + 2 * M::beyond; ++row) {
    double x[M::across];
#pragma unroll
    for (int c = 0; c < M::across; ++c) x[c] = plane[row * M::pitch + c]; // what no one needs is not loaded
#pragma unroll
    for (int r = 0; r < M::per_thread; ++r) {
      const int dy = row - M::beyond - r;
      if (dy < -M::beyond || dy > M::beyond) continue;
#pragma unroll
      for (int dz = -M::reach; dz <= M::reach; ++dz)
#pragma unroll
        for (int dx = -M::reach; dx <= M::reach; ++dx)
          if (M::has(dx, dy, dz))
            sums[M::reach - dz][r] = fma(a.values[M::at(dx, dy, dz)], x[M::reach + dx], sums[M::reach - dz][r]);
    }
  }
}

// Where in a plane of x each element of the tile that this thread brings lies; -1 where there is none.
template <class M> __device__ void find_sources(const DeviceGrid &grid, int i0, int j0, int (&sources)[M::copies]) {
#pragma unroll
  for (int copy = 0; copy < M::copies; ++copy) {
    const int  e = copy * M::threads + threadIdx.x, i = i0 + e % M::pitch - M::reach, j = j0 + e / M::pitch - M::beyond;
    const bool there = unsigned(i) < unsigned(grid.n[0]) && unsigned(j) < unsigned(grid.n[1]);
    sources[copy] = there ? j * grid.n[0] + i : -1;
  }
}

// Requests plane k of x; what does not exist becomes 0. Always one group of copies, if only an empty one.
template <class M>
__device__ void request(const DeviceGrid &grid, const double *x, const int (&sources)[M::copies], int k, int last, double *to) {
  if (k <= last) {
    const bool    exists = unsigned(k) < unsigned(grid.n[2]);
    const double *from = x + (exists ? grid.cell(0, 0, k) : 0);
#pragma unroll
    for (int copy = 0; copy < M::copies; ++copy) {
      const int  e = copy * M::threads + threadIdx.x;
      const bool there = exists && sources[copy] >= 0;
      if (M::plane % M::threads == 0 || e < M::plane)
        __pipeline_memcpy_async(to + e, from + (there ? sources[copy] : 0), 8, there ? 0 : 8);
    }
  }
  __pipeline_commit();
}

template <class M>
__device__ void march(const DeviceGrid &grid, const MarchCoefficients<M> &a, const DeviceProduct &p,
                      const DeviceExceptions &exceptions, const DeviceBox &box, const MarchPlan &plan, int block,
                      double *shared) {
  const int tile = block % (plan.tiles[0] * plan.tiles[1]), chunk = block / (plan.tiles[0] * plan.tiles[1]);
  const int i0 = box.begin[0] + tile % plan.tiles[0] * M::columns, j0 = box.begin[1] + tile / plan.tiles[0] * M::rows;
  const int k0 = box.begin[2] + chunk * plan.planes, k1 = min(box.end[2], k0 + plan.planes), last = k1 - 1 + M::reach;
  const int column = threadIdx.x % M::columns, row = threadIdx.x / M::columns * M::per_thread;
  const int i = i0 + column, j = j0 + row;
  double    sums[M::across][M::per_thread] = {};
  int       sources[M::copies];

  find_sources<M>(grid, i0, j0, sources);
  for (int s = 0; s < M::stages - 1; ++s) request<M>(grid, p.x, sources, k0 - M::reach + s, last, shared + s * M::plane);
  for (int k = k0 - M::reach, stage = 0; k <= last; ++k) {
    __pipeline_wait_prior(M::stages - 2);
    __syncthreads(); // this plane is there, and everyone has read the one whose place is taken next
    const int next = stage == 0 ? M::stages - 1 : stage - 1;
    request<M>(grid, p.x, sources, k + M::stages - 1, last, shared + next * M::plane);
    add_plane<M>(a, shared + stage * M::plane + row * M::pitch + column, sums);
    const int done = k - M::reach;
    if (done >= k0 && i < box.end[0]) {
      const std::int64_t first = grid.cell(i, j, done);
#pragma unroll
      for (int r = 0; r < M::per_thread; ++r)
        if (j + r < box.end[1]) exceptions.store(p, i, j + r, done, first + r * grid.n[0], 1, 0, sums[0][r]);
    }
#pragma unroll
    for (int r = 0; r < M::per_thread; ++r) {
#pragma unroll
      for (int s = 0; s + 1 < M::across; ++s) sums[s][r] = sums[s + 1][r];
      sums[M::across - 1][r] = 0.0;
    }
    stage = stage + 1 == M::stages ? 0 : stage + 1;
  }
}

} // namespace
} // namespace tcbound::grid
