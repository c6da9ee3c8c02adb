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
  int pitch; // cells from line to line
  int dof;

  __device__ std::int64_t cell(int i, int j, int k) const {
    return static_cast<std::int64_t>(k) * (pitch * n[1]) + (j * pitch + i);
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
  __device__ unsigned divide(unsigned n) const { return (__umulhi(n, multiplier) + n) >> shift; }
};

// What becomes of sums, the elements of A x: z = alpha A x + beta y.
struct DeviceProduct {
  double        alpha, beta;
  const double *x, *ghosts, *y;
  double       *z;

  __device__ double sum_of_diagonal(double sum) const { return sum; }
  __device__ double result(std::int64_t row, double sum) const {
    const double result = alpha * sum;
    return beta != 0.0 ? result + beta * y[row] : result;
  }
  __device__ void store(std::int64_t row, double sum) const {
    __stcs(z + row, result(row, sum)); // streaming, so that x stays in the L2
  }
};

// Of a damped Jacobi sweep (Relaxation in format.h): z = keeps x + factor inverse (b - A x). without_diagonal: sums lack the products with
// the diagonal, for which `keeps` is then less.
struct DeviceRelaxation {
  double        factor, keeps;
  bool          without_diagonal;
  const double *x, *ghosts, *b, *inverse;
  double       *z;

  __device__ double sum_of_diagonal(double sum) const { return without_diagonal ? 0.0 : sum; }
  __device__ double result(std::int64_t row, double sum) const {
    const double scale = inverse ? factor * __ldcs(inverse + row) : factor;
    return fma(scale, __ldcs(b + row) - sum, keeps * __ldg(x + row));
  }
  __device__ void store(std::int64_t row, double sum) const { __stcs(z + row, result(row, sum)); }
};

// Two damped Jacobi sweeps (varying_sweeps.h).
struct TwoSweeps {
  double        factors[2], keeps[2]; // keeps: 1 - factor
  const double *x;                    // null: sweeps start from 0
  const double *b, *inverse;
  double       *z;
};

// Cells whose rows are not the constant ones. If they are all cells outside of the core and all of one kind, a multiple of the
// identity's row, as Dirichlet's conditions make them, kernels compute them in passing; else they are listed, and bits tell where
// they are, for kernels that must leave them out.
struct DeviceExceptions {
  const std::int64_t  *cells;
  const std::int32_t  *kinds;
  const double        *patterns;
  const std::uint32_t *bits; // null: none, or they may be written to
  std::int64_t         count;
  DeviceBox            core;
  bool                 diagonal_outside;
  double               diagonal;

  __device__ bool skips(int i, int j, int k, std::int64_t cell) const {
    return bits && !core.has(i, j, k) && (__ldg(bits + (cell >> 5)) >> (cell & 31) & 1);
  }
};

} // namespace tcbound::grid
