#pragma once

// FP64 MMA instructions (PTX ISA, mma.m8n8k4 ... m16n8k16 with .f64) on two slices: in each lane the values a[step][slice] at row
// lane / 4 and column lane % 4 of a fragment, and the elements b[step][slice] of x that belong to them. What is wanted of their
// product is the diagonal, which lies in lane 4 i + i / 2 for row i, in one of two registers.
//
// m8n8k4 takes one step of one slice: 8 of its 64 results are wanted. The others have 16 rows for the same 8 columns: both slices
// lie in A, the first in its upper half, and one instruction for each slice's x makes 8 wanted results of 128. They take 1, 2 or 4
// steps. For .cu files only.

#include <cuda_runtime.h>

namespace tcbound::fragments {
namespace {

struct M8n8k4 {
  static constexpr int rows = 8;
  static constexpr int steps = 1;
  struct Sums { // of two slices
    double c[2][2];
  };
  static __device__ void multiply_add(Sums &s, const double (&a)[steps][2], const double (&b)[steps][2]) {
#pragma unroll
    for (int j = 0; j < 2; ++j)
      asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
          : "+d"(s.c[j][0]), "+d"(s.c[j][1])
          : "d"(a[0][j]), "d"(b[0][j]));
  }
  static __device__ double sum(const Sums &s, int slice, int odd_row) { return odd_row ? s.c[slice][1] : s.c[slice][0]; }
};

struct SixteenRows {
  static constexpr int rows = 16;
  struct Sums { // of two slices, each with all 16 rows
    double c[2][4];
  };
  static __device__ double sum(const Sums &s, int slice, int odd_row) {
    return odd_row ? s.c[slice][2 * slice + 1] : s.c[slice][2 * slice];
  }
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define TCBOUND_MMA_90(...) __trap() // check() refuses such devices
#else
#define TCBOUND_MMA_90(instruction, ...) \
  asm(instruction : "+d"(s.c[j][0]), "+d"(s.c[j][1]), "+d"(s.c[j][2]), "+d"(s.c[j][3]) : __VA_ARGS__)
#endif

struct M16n8k4 : SixteenRows {
  static constexpr int   steps = 1;
  static __device__ void multiply_add(Sums &s, const double (&a)[steps][2], const double (&b)[steps][2]) {
#pragma unroll
    for (int j = 0; j < 2; ++j)
      TCBOUND_MMA_90("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};",
                     "d"(a[0][0]), "d"(a[0][1]), "d"(b[0][j]));
  }
};

struct M16n8k8 : SixteenRows {
  static constexpr int   steps = 2;
  static __device__ void multiply_add(Sums &s, const double (&a)[steps][2], const double (&b)[steps][2]) {
#pragma unroll
    for (int j = 0; j < 2; ++j)
      TCBOUND_MMA_90("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};",
                     "d"(a[0][0]), "d"(a[0][1]), "d"(a[1][0]), "d"(a[1][1]), "d"(b[0][j]), "d"(b[1][j]));
  }
};

struct M16n8k16 : SixteenRows {
  static constexpr int   steps = 4;
  static __device__ void multiply_add(Sums &s, const double (&a)[steps][2], const double (&b)[steps][2]) {
#pragma unroll
    for (int j = 0; j < 2; ++j)
      TCBOUND_MMA_90("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, "
                     "{%12, %13, %14, %15}, {%0, %1, %2, %3};",
                     "d"(a[0][0]), "d"(a[0][1]), "d"(a[1][0]), "d"(a[1][1]), "d"(a[2][0]), "d"(a[2][1]), "d"(a[3][0]),
                     "d"(a[3][1]), "d"(b[0][j]), "d"(b[1][j]), "d"(b[2][j]), "d"(b[3][j]));
  }
};

#undef TCBOUND_MMA_90

} // namespace
} // namespace tcbound::fragments
