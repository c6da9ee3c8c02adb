#pragma once

// The upper 16 bits of an IEEE binary32: how values are stored that are exact in them. For .cu files only.

#include <cstdint>

#include <cuda_runtime.h>

namespace tcbound::sell {

struct Bfloat16 {
  std::uint16_t bits;

  Bfloat16() = default;
  // Cuts off; whoever stores values compares them with what comes back.
  __device__ explicit Bfloat16(double value) {
    bits = static_cast<std::uint16_t>(__float_as_uint(static_cast<float>(value)) >> 16);
  }
  __device__ explicit operator double() const { return __uint_as_float(static_cast<unsigned>(bits) << 16); }
};

struct alignas(4) Bfloat16Pair {
  Bfloat16 x, y;
};

} // namespace tcbound::sell
