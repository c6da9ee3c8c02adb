#pragma once

// Device code for constant coefficients and neighbours one cell away: a block has a tile of cells across and marches along the last
// dimension. Each plane of x is brought into shared memory once, several planes ahead, and added to the sums of the planes before,
// at and after it, which stay in registers. For .cu files only.

#include <cuda_pipeline.h>

#include "device_view.h"

namespace tcbound::grid {
namespace {

// A 3D stencil marches along the third dimension; a 2D one along the second, with a plane that is a line (its grid is then given as
// n[0] x 1 x n[1]). box: all neighbours, else those along the axes.
template <int dimensions, bool box> struct March {
  static constexpr int columns = dimensions == 3 ? 32 : 256, rows = dimensions == 3 ? 32 : 1; // of a tile
  static constexpr int per_thread = dimensions == 3 ? 4 : 1;                                  // rows
  static constexpr int threads = columns * rows / per_thread;
  static constexpr int beyond = dimensions == 3 ? 1 : 0; // neighbouring rows on each side
  static constexpr int pitch = columns + 2, height = rows + 2 * beyond, plane = pitch * height;
  static constexpr int stages = dimensions == 3 ? 4 : 8;
  static constexpr int copies = (plane + threads - 1) / threads; // of a thread, per plane
  static constexpr int shared_bytes = stages * plane * 8;

  static constexpr bool has(int dx, int dy, int dz) {
    return (dimensions == 3 || dy == 0) && (box || (dx != 0) + (dy != 0) + (dz != 0) <= 1);
  }
};

struct MarchPlan {
  int tiles[2];
  int chunks, planes; // of the marching direction, and their length
};

// Indexed by 1 + dx + 3 (1 + dy) + 9 (1 + dz).
struct MarchCoefficients {
  double values[27];
};

// What the plane adds to the sums of the plane `dz` before it.
template <class M, int dz>
__device__ void add_plane(const MarchCoefficients &a, const double (&x)[M::per_thread + 2 * M::beyond][3],
                          double (&sums)[M::per_thread]) {
#pragma unroll
  for (int r = 0; r < M::per_thread; ++r)
#pragma unroll
    for (int dy = -M::beyond; dy <= M::beyond; ++dy)
#pragma unroll
      for (int dx = -1; dx <= 1; ++dx)
        if (M::has(dx, dy, dz))
          sums[r] = fma(a.values[1 + dx + 3 * (1 + dy) + 9 * (1 + dz)], x[r + M::beyond + dy][1 + dx], sums[r]);
}

// Where in a plane of x each element of the tile that this thread brings lies; -1 where there is none.
template <class M> __device__ void find_sources(const DeviceGrid &grid, int i0, int j0, int (&sources)[M::copies]) {
#pragma unroll
  for (int copy = 0; copy < M::copies; ++copy) {
    const int  e = copy * M::threads + threadIdx.x, i = i0 + e % M::pitch - 1, j = j0 + e / M::pitch - M::beyond;
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
__device__ void march(const DeviceGrid &grid, const MarchCoefficients &a, const DeviceProduct &p,
                      const DeviceExceptions &exceptions, const DeviceBox &box, const MarchPlan &plan, int block,
                      double *shared) {
  const int tile = block % (plan.tiles[0] * plan.tiles[1]), chunk = block / (plan.tiles[0] * plan.tiles[1]);
  const int i0 = box.begin[0] + tile % plan.tiles[0] * M::columns, j0 = box.begin[1] + tile / plan.tiles[0] * M::rows;
  const int k0 = box.begin[2] + chunk * plan.planes, k1 = min(box.end[2], k0 + plan.planes);
  const int column = threadIdx.x % M::columns, row = threadIdx.x / M::columns * M::per_thread;
  const int i = i0 + column, j = j0 + row;
  double    before[M::per_thread] = {}, at[M::per_thread] = {}, after[M::per_thread] = {};

  int sources[M::copies];

  find_sources<M>(grid, i0, j0, sources);
  for (int s = 0; s < M::stages - 1; ++s) request<M>(grid, p.x, sources, k0 - 1 + s, k1, shared + s * M::plane);
  for (int k = k0 - 1, stage = 0; k <= k1; ++k) {
    __pipeline_wait_prior(M::stages - 2);
    __syncthreads(); // this plane is there, and everyone has read the one whose place is taken next
    {
      const int next = stage == 0 ? M::stages - 1 : stage - 1;
      request<M>(grid, p.x, sources, k + M::stages - 1, k1, shared + next * M::plane);
    }
    const double *plane = shared + stage * M::plane + row * M::pitch + column;
    double        x[M::per_thread + 2 * M::beyond][3];
#pragma unroll
    for (int r = 0; r < M::per_thread + 2 * M::beyond; ++r)
#pragma unroll
      for (int c = 0; c < 3; ++c) x[r][c] = plane[r * M::pitch + c];
    add_plane<M, 1>(a, x, before);
    add_plane<M, 0>(a, x, at);
    add_plane<M, -1>(a, x, after);
    if (k > k0 && i < box.end[0]) {
#pragma unroll
      for (int r = 0; r < M::per_thread; ++r) {
        if (j + r >= box.end[1]) break;
        const std::int64_t cell = grid.cell(i, j + r, k - 1);
        if (exceptions.count == 0 || !exceptions.has(i, j + r, k - 1, cell)) p.store(cell, before[r]);
      }
    }
#pragma unroll
    for (int r = 0; r < M::per_thread; ++r) {
      before[r] = at[r];
      at[r] = after[r];
      after[r] = 0.0;
    }
    stage = stage + 1 == M::stages ? 0 : stage + 1;
  }
}

} // namespace
} // namespace tcbound::grid
