#pragma once

// MMA instructions (PTX ISA, mma.sync: m8n8k4 ... m16n8k16 with .f64; m16n8k4 with .tf32, m16n8k8 with .bf16) on two slices: in each
// lane the values a[step][slice] at row lane / 4 and column lane % 4 of a fragment, and the elements b[step][slice] of x that belong to
// them. What is wanted of their product is the diagonal, which lies in lane 4 i + i / 2 for row i, in one of two registers.
//
// m8n8k4 takes one step of one slice: 8 of its 64 results are wanted. The others have 16 rows for the same 8 columns: both slices
// lie in A, the first in its upper half, and one instruction for each slice's x makes 8 wanted results of 128. Slices that share
// their x (`shared`) take one instruction, with 16 wanted results. They take 1, 2 or 4 steps.
//
// The lossy ones lie as m16n8k4 and m16n8k8 do, but that in BF16 an element holds two, here of one slice and two steps: which of the
// 8 columns of A and rows of B are which does not matter as long as both have it the same. They round x.
//
// With several columns of x all results may be wanted: a[step][] are then 8 or 16 of those columns, and b[step][] rows of the matrix;
// element(sums, eight, e) is that of column lane / 4 of each 8 and of row 2 (lane % 4) + e. For .cu files only.

#include <cuda_runtime.h>

#include "numbers.h"

namespace tcbound::fragments {
namespace {

struct M8n8k4 {
  using Numbers = Fp64;
  static constexpr int rows = 8;
  static constexpr int steps = 1;

  template <bool shared> struct Sums { // of two slices
    double c[2][2];
  };

  // The first `used` of two slices.
  template <int used, bool shared>
  static __device__ void multiply_add(Sums<shared> &s, const double (&a)[steps][2], const double (&b)[steps][2]) {
#pragma unroll
    for (int j = 0; j < used; ++j)
      asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
          : "+d"(s.c[j][0]), "+d"(s.c[j][1])
          : "d"(a[0][j]), "d"(b[0][j]));
  }
  template <bool shared> static __device__ double sum(const Sums<shared> &s, int slice, int odd_row) {
    return odd_row ? s.c[slice][1] : s.c[slice][0];
  }
  static __device__ double &element(Sums<true> &s, int eight, int e) { return s.c[eight][e]; }
};

template <class Numbers_> struct SixteenRows {
  using Numbers = Numbers_;
  using Real = typename Numbers::Real;
  static constexpr int rows = 16;

  template <bool shared> struct Sums { // of two slices together; for the x of each of them, or for that of both
    Real c[shared ? 1 : 2][4];
  };

  template <bool shared> static __device__ Real sum(const Sums<shared> &s, int slice, int odd_row) {
    const Real(&c)[4] = s.c[shared ? 0 : slice];
    return odd_row ? c[2 * slice + 1] : c[2 * slice];
  }
  static __device__ Real &element(Sums<true> &s, int eight, int e) { return s.c[0][2 * eight + e]; }
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define TCBOUND_MMA_90(...) __trap() // check() refuses such devices
#else
#define TCBOUND_MMA_90(instruction, ...) \
  asm(instruction : "+d"(s.c[j][0]), "+d"(s.c[j][1]), "+d"(s.c[j][2]), "+d"(s.c[j][3]) : __VA_ARGS__)
#endif

struct M16n8k4 : SixteenRows<Fp64> {
  static constexpr int steps = 1;
  template <int used, bool shared>
  static __device__ void multiply_add(Sums<shared> &s, const double (&a)[steps][2], const double (&b)[steps][2]) {
#pragma unroll
    for (int j = 0; j < (shared ? 1 : used); ++j)
      TCBOUND_MMA_90("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};",
                     "d"(a[0][0]), "d"(a[0][1]), "d"(b[0][j]));
  }
};

struct M16n8k8 : SixteenRows<Fp64> {
  static constexpr int steps = 2;
  template <int used, bool shared>
  static __device__ void multiply_add(Sums<shared> &s, const double (&a)[steps][2], const double (&b)[steps][2]) {
#pragma unroll
    for (int j = 0; j < (shared ? 1 : used); ++j)
      TCBOUND_MMA_90("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};",
                     "d"(a[0][0]), "d"(a[0][1]), "d"(a[1][0]), "d"(a[1][1]), "d"(b[0][j]), "d"(b[1][j]));
  }
};

struct M16n8k16 : SixteenRows<Fp64> {
  static constexpr int steps = 4;
  template <int used, bool shared>
  static __device__ void multiply_add(Sums<shared> &s, const double (&a)[steps][2], const double (&b)[steps][2]) {
#pragma unroll
    for (int j = 0; j < (shared ? 1 : used); ++j)
      TCBOUND_MMA_90("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, "
                     "{%12, %13, %14, %15}, {%0, %1, %2, %3};",
                     "d"(a[0][0]), "d"(a[0][1]), "d"(a[1][0]), "d"(a[1][1]), "d"(a[2][0]), "d"(a[2][1]), "d"(a[3][0]),
                     "d"(a[3][1]), "d"(b[0][j]), "d"(b[1][j]), "d"(b[2][j]), "d"(b[3][j]));
  }
};

#undef TCBOUND_MMA_90

struct M16n8k4Tf32 : SixteenRows<Tf32> {
  static constexpr int steps = 1;
  template <int used, bool shared>
  static __device__ void multiply_add(Sums<shared> &s, const float (&a)[steps][2], const float (&b)[steps][2]) {
#pragma unroll
    for (int j = 0; j < (shared ? 1 : used); ++j)
      asm("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
          : "+f"(s.c[j][0]), "+f"(s.c[j][1]), "+f"(s.c[j][2]), "+f"(s.c[j][3])
          : "r"(__float_as_uint(a[0][0])), "r"(__float_as_uint(a[0][1])), "r"(Tf32::word(b[0][j])));
  }
};

struct M16n8k8Bf16 : SixteenRows<Bf16> {
  static constexpr int steps = 2;
  template <int used, bool shared>
  static __device__ void multiply_add(Sums<shared> &s, const float (&a)[steps][2], const float (&b)[steps][2]) {
    const std::uint32_t upper = Bf16::join(a[0][0], a[1][0]), lower = Bf16::join(a[0][1], a[1][1]);
#pragma unroll
    for (int j = 0; j < (shared ? 1 : used); ++j)
      asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
          : "+f"(s.c[j][0]), "+f"(s.c[j][1]), "+f"(s.c[j][2]), "+f"(s.c[j][3])
          : "r"(upper), "r"(lower), "r"(Bf16::words(b[0][j], b[1][j])));
  }
};

} // namespace
} // namespace tcbound::fragments
