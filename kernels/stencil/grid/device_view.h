#pragma once

// How device code sees a stencil and a product. For .cu files only.

#include <cstdint>

namespace tcbound::grid {

struct DeviceBox {
  int begin[3], end[3];

  __device__ bool has(int i, int j, int k) const {
    return i >= begin[0] && i < end[0] && j >= begin[1] && j < end[1] && k >= begin[2] && k < end[2];
  }
};

// Extents with 32-bit counts: a plane has fewer than 2^31 rows, the grid may have more.
struct DeviceGrid {
  int n[3], low[3], high[3];
  int dof;

  __device__ std::int64_t cell(int i, int j, int k) const {
    return static_cast<std::int64_t>(k) * (n[0] * n[1]) + (j * n[0] + i);
  }
  __device__ bool owned(int i, int j, int k) const {
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

// Division by an invariant of numbers below 2^31 (Granlund and Montgomery, PLDI 1994, figure 4.1).
struct Divisor {
  unsigned by = 1, multiplier = 0;
  int      shift = 0;

  Divisor() = default;
  explicit Divisor(unsigned divisor) : by(divisor) {
    while ((std::uint64_t(1) << shift) < divisor) ++shift;
    multiplier = static_cast<unsigned>(((std::uint64_t(1) << 32) * ((std::uint64_t(1) << shift) - divisor)) / divisor + 1);
  }
#ifdef __CUDACC__
  __device__ unsigned divide(unsigned n) const { return (__umulhi(n, multiplier) + n) >> shift; }
#endif
};

struct DeviceProduct {
  double        alpha, beta;
  const double *x, *ghosts, *y;
  double       *z;

  __device__ void store(std::int64_t row, double sum) const {
    double result = alpha * sum;
    if (beta != 0.0) result += beta * y[row];
    z[row] = result;
  }
};

// Cells whose rows are not the constant ones, as bits that are looked at outside of the core only. Those whose rows are a certain
// multiple of the identity's are computed in passing; the others are listed.
struct DeviceExceptions {
  const std::int64_t  *cells;
  const std::int32_t  *kinds;
  const double        *patterns;
  const std::uint32_t *bits, *diagonal_bits; // null: none
  double               diagonal;
  std::int64_t         count; // of the list
  DeviceBox            core;

  static __device__ bool test(const std::uint32_t *bits, std::int64_t cell) {
    return __ldg(bits + (cell >> 5)) >> (cell & 31) & 1;
  }

  // Stores the sum that the constants give, unless the cell is an exception.
  __device__ void store(const DeviceProduct &p, int i, int j, int k, std::int64_t cell, int dof, int component,
                        double sum) const {
    if (bits && !core.has(i, j, k) && test(bits, cell)) {
      if (!diagonal_bits || !test(diagonal_bits, cell)) return;
      sum = diagonal * __ldg(p.x + cell * dof + component);
    }
    p.store(cell * dof + component, sum);
  }
};

} // namespace tcbound::grid
