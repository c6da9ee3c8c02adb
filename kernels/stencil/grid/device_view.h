#pragma once

// How device code sees a stencil and a product. For .cu files only.

#include <cstdint>

namespace tcbound::grid {

struct DeviceSlot {
  const double *values;   // null: constant
  std::int64_t  distance; // of the neighbour's element from the row's cell, in x
  int           offset[3];
  int           component;
};

// Extents with 32-bit counts: a dimension has fewer than 2^31 cells, the grid may have more.
struct DeviceGrid {
  int n[3], low[3], high[3];
  int dof;

  __device__ std::int64_t cell(int i, int j, int k) const { return (static_cast<std::int64_t>(k) * n[1] + j) * n[0] + i; }
  __device__ bool         owned(int i, int j, int k) const {
            return unsigned(i) < unsigned(n[0]) && unsigned(j) < unsigned(n[1]) && unsigned(k) < unsigned(n[2]);
  }
  __device__ bool exists(int i, int j, int k) const {
    return i >= -low[0] && i < n[0] + high[0] && j >= -low[1] && j < n[1] + high[1] && k >= -low[2] && k < n[2] + high[2];
  }
  __device__ std::int64_t ghost(int i, int j, int k) const {
    return (static_cast<std::int64_t>(k + low[2]) * (low[1] + n[1] + high[1]) + j + low[1]) * (low[0] + n[0] + high[0]) + i +
           low[0];
  }
};

struct DeviceBox {
  int begin[3], end[3];
};

struct DeviceProduct {
  double        alpha, beta;
  const double *x, *ghosts, *y;
  double       *z;

  __device__ void store(std::int64_t row, double sum) const {
    double result = alpha * sum;
    if (beta != 0.0) result += beta * y[row];
    __stcs(z + row, result); // streaming, so that x stays in the L2
  }
};

// Cells that differ from the constants: listed, and as bits, which are looked at only outside of the core.
struct DeviceExceptions {
  const std::int64_t  *cells;
  const std::int32_t  *kinds;
  const double        *patterns;
  const std::uint32_t *bits;
  std::int64_t         count;
  DeviceBox            core;

  __device__ bool has(int i, int j, int k, std::int64_t cell) const {
    const bool inside =
      i >= core.begin[0] && i < core.end[0] && j >= core.begin[1] && j < core.end[1] && k >= core.begin[2] && k < core.end[2];
    return !inside && (__ldg(bits + (cell >> 5)) >> (cell & 31) & 1);
  }
};

} // namespace tcbound::grid
