#pragma once

// FP64 matrix instructions: D = A B + D of one warp, a row of A and a column of B a group of four lanes (PTX ISA, "Matrix
// multiply-accumulate operation using mma instruction"). With group g = lane / 4 and t = lane % 4 a lane holds
//   a: A(g + 8 (i % 2), t + 4 (i / 2)) for i < m k / 32 (of m8n8k4: A(g, t)),  b: B(t + 4 i, g) for i < k / 4,
//   d: D(g, 2 t), D(g, 2 t + 1) and, of the shapes with m = 16, D(g + 8, 2 t), D(g + 8, 2 t + 1).
// In code for devices that lack an instruction its function stops the kernel; check_mma_code() tells of that before.

#include <cuda_runtime.h>

namespace tcbound {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define TCBOUND_SM90_MMA 1
#endif

__device__ inline void mma_m8n8k4(double (&d)[2], double a, double b) {
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(d[0]), "+d"(d[1])
      : "d"(a), "d"(b));
}

__device__ inline void mma_m16n8k4([[maybe_unused]] double (&d)[4], [[maybe_unused]] const double (&a)[2],
                                   [[maybe_unused]] double b) {
#ifdef TCBOUND_SM90_MMA
  asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[1]), "d"(b));
#else
  __trap();
#endif
}

__device__ inline void mma_m16n8k8([[maybe_unused]] double (&d)[4], [[maybe_unused]] const double (&a)[4],
                                   [[maybe_unused]] const double (&b)[2]) {
#ifdef TCBOUND_SM90_MMA
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
  __trap();
#endif
}

__device__ inline void mma_m16n8k16([[maybe_unused]] double (&d)[4], [[maybe_unused]] const double (&a)[8],
                                    [[maybe_unused]] const double (&b)[4]) {
#ifdef TCBOUND_SM90_MMA
  asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, "
      "{%12, %13, %14, %15}, {%0, %1, %2, %3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]),
        "d"(b[3]));
#else
  __trap();
#endif
}

} // namespace tcbound
