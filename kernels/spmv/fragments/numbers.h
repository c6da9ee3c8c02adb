#pragma once

// The numbers that lanes multiply, by the arithmetic of the products: what they add up in (Real), bytes of a value as stored, and how x
// is brought to what the values are. For .cu files only.

#include <cstdint>

#include <cuda_runtime.h>

#include "problem.h"

namespace tcbound::fragments {

// To the nearest number with `digits` bits of significand, ties to even, exponents as in IEEE binary32. What overflows becomes an
// infinity.
template <int digits> __device__ inline float rounded(double value) {
  constexpr int dropped = 24 - digits;
  static_assert(dropped > 1);
  if (value != value) return __uint_as_float(0x7fc00000U);
  const float   cut = __double2float_rz(value);
  std::uint32_t bits = __float_as_uint(cut);
  if (static_cast<double>(cut) != value) bits |= 1U;           // to odd, so that rounding again is as rounding once
  bits += (1U << (dropped - 1)) - 1U + (bits >> dropped & 1U); // a carry goes into the exponent, as it should
  return __uint_as_float(bits >> dropped << dropped);
}

struct Fp64 {
  using Real = double;
  static constexpr int     bytes = 8;
  __device__ static double of_x(double x) { return x; }
};

struct Tf32 {
  using Real = float;
  static constexpr int bytes = 4, digits = 11;
  // x has been rounded to FP32.
  __device__ static std::uint32_t word(float x) {
    std::uint32_t to;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(to) : "f"(x));
    return to;
  }
  __device__ static float of_x(float x) { return __uint_as_float(word(x)); }
};

struct Bf16 {
  using Real = float;
  static constexpr int bytes = 2, digits = 8;
  // Two of x, the first in the lower half.
  __device__ static std::uint32_t words(float first, float second) {
    std::uint32_t to;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(to) : "f"(second), "f"(first));
    return to;
  }
  __device__ static float of_x(float x) { return __uint_as_float(words(0.0F, x) & 0xffff0000U); }
  // Two numbers that are bfloat16s, the first in the lower half.
  __device__ static std::uint32_t join(float first, float second) {
    return __byte_perm(__float_as_uint(first), __float_as_uint(second), 0x7632);
  }
};

} // namespace tcbound::fragments
