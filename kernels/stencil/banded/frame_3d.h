#pragma once

// Device code of passes.h: the cells beside those that keep their values, two steps of a star of radius 1 in three dimensions. As in
// frame.h, composed weights are wrong there. For .cu files only.

#include <algorithm>
#include <cstdint>

#include <cuda_runtime.h>

#include "../iterated/plain.h"

namespace tcbound::stencil {

constexpr int side_threads = 128;

// A cell after one step; 0 outside the array. Loads do not wait for conditions: `safe` is the address of any cell.
template <int points>
__device__ __forceinline__ double after_a_step(const double *__restrict__ in, const PlainStencil &s, int x, int y, int z,
                                               std::int64_t safe) {
  const int  nx = s.extent[0], ny = s.extent[1], nz = s.extent[2];
  const auto exists = [&](int i, int j, int k) { return i >= 0 && i < nx && j >= 0 && j < ny && k >= 0 && k < nz; };
  const auto value = [&](std::int64_t cell, bool there) {
    const double found = in[there ? cell : safe];
    return there ? found : 0.0;
  };
  const std::int64_t cell = (static_cast<std::int64_t>(z) * ny + y) * s.pitch + x;
  const bool         fixed = x < s.ring || x >= nx - s.ring || y < s.ring || y >= ny - s.ring || z < s.ring || z >= nz - s.ring;
  const double       own = value(cell, exists(x, y, z));
  double             sum = 0.0;
#pragma unroll
  for (int p = 0; p < points; ++p)
    sum =
      fma(s.weight[p], value(cell + s.distance[p], exists(x + s.offset[p][0], y + s.offset[p][1], z + s.offset[p][2])), sum);
  return exists(x, y, z) && !fixed ? sum : own;
}

// Of the box of cells that change the six sides, two for each direction: a block has a piece of 128 cells along y for those of x, else
// along x, of every gridDim.y-th line. Cells of two sides are computed twice.
template <int points>
__global__ void __launch_bounds__(side_threads)
  step_sides(const double *__restrict__ in, double *__restrict__ out, const __grid_constant__ PlainStencil s) {
  const int direction = blockIdx.z / 2, ring = s.ring;
  const int nx = s.extent[0] - 2 * ring, ny = s.extent[1] - 2 * ring, nz = s.extent[2] - 2 * ring;
  const int piece = blockIdx.x * side_threads + threadIdx.x;
  const int far = blockIdx.z % 2 == 0 ? 0 : (direction == 0 ? nx : direction == 1 ? ny : nz) - 1;
  if (piece >= (direction == 0 ? ny : nx)) return;
  for (int line = blockIdx.y; line < (direction == 2 ? ny : nz); line += gridDim.y) {
    const int x = ring + (direction == 0 ? far : piece),
              y = ring + (direction == 0   ? piece
                          : direction == 1 ? far
                                           : line),
              z = ring + (direction == 2 ? far : line);
    const std::int64_t cell = (static_cast<std::int64_t>(z) * s.extent[1] + y) * s.pitch + x;
    double             sum = 0.0;
#pragma unroll
    for (int p = 0; p < points; ++p)
      sum =
        fma(s.weight[p], after_a_step<points>(in, s, x + s.offset[p][0], y + s.offset[p][1], z + s.offset[p][2], cell), sum);
    out[cell] = sum;
  }
}

// Some, if any cell changes.
inline dim3 side_blocks(const PlainStencil &s) {
  const int nx = s.extent[0] - 2 * s.ring, ny = s.extent[1] - 2 * s.ring, nz = s.extent[2] - 2 * s.ring;
  if (nx <= 0 || ny <= 0 || nz <= 0) return dim3(0, 0, 0);
  return dim3(static_cast<unsigned>((std::max(nx, ny) + side_threads - 1) / side_threads),
              static_cast<unsigned>(std::min(std::max(ny, nz), 65535)), 6);
}

} // namespace tcbound::stencil
