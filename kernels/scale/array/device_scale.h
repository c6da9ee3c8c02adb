#pragma once

// The device kernel that SCALE's twins share: loads, stores, launch and what is done about special values are the same, and
// `Arithmetic` alone differs. For .cu files only.

#include "cuda/error.h"
#include "format.h"

namespace tcbound::scale {

constexpr int threads = 256;
constexpr int lane_elements = warp_elements / 32;

// The place, from the start of a warp's tile, of a lane's element k. In pairs where both arrays have the same place within 16
// bytes; else in single elements, 32 lanes beside each other.
template <bool pairs> __device__ inline int place_of(int lane, int k) {
  return pairs ? 2 * (lane + 32 * (k / 2)) + k % 2 : lane + 32 * k;
}

// q x by the IEEE rules, not to be merged with another one by the compiler.
__device__ inline double multiply_again(double q, double x) {
  double product;
  asm volatile("mul.rn.f64 %0, %1, %2;" : "=d"(product) : "d"(q), "d"(x));
  return product;
}

// What an MMA makes of special values is not what multiplication makes of them: zeros of the diagonal matrix times an Inf or NaN
// spoil a whole row of D, and -0 + 0 = +0. All of that shows in the result, which is then zero (or so small that its upper half is)
// or not finite, and only then: a zero that is added changes no other number. Such a lane multiplies again. CUDA cores do the
// same, so that the twins differ in nothing else.
__device__ inline bool is_special(double result) {
  return (static_cast<unsigned>(__double2hiint(result)) & 0x7fffffffU) - 1U >= 0x7ff00000U - 1U;
}

// `skip` is 1 where pairs begin at the element before the first one, so that they are aligned.
template <class Arithmetic, bool pairs>
__global__ void __launch_bounds__(threads) scale_array(double *z, const double *x, double q, std::int64_t length, int skip) {
  const std::int64_t thread = blockIdx.x * static_cast<std::int64_t>(threads) + threadIdx.x;
  const int          lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t first = thread / 32 * warp_elements - skip;
  if (first >= length) return; // the whole warp
  const bool inside = first >= 0 && first + warp_elements <= length;
  double     v[lane_elements], r[lane_elements];
  if (inside) {
    if constexpr (pairs) {
      const double2 *from = reinterpret_cast<const double2 *>(x + first) + lane;
      const double2  one = from[0], two = from[32];
      v[0] = one.x, v[1] = one.y, v[2] = two.x, v[3] = two.y;
    } else {
#pragma unroll
      for (int k = 0; k < lane_elements; ++k) v[k] = x[first + place_of<pairs>(lane, k)];
    }
  } else {
#pragma unroll
    for (int k = 0; k < lane_elements; ++k) {
      const std::int64_t i = first + place_of<pairs>(lane, k);
      v[k] = i >= 0 && i < length ? x[i] : 1.0;
    }
  }
  Arithmetic::multiply(r, q, v, lane);
  bool special = false;
#pragma unroll
  for (int k = 0; k < lane_elements; ++k) special |= is_special(r[k]);
  if (special) {
#pragma unroll
    for (int k = 0; k < lane_elements; ++k) r[k] = multiply_again(q, v[k]);
  }
  if (inside) {
    if constexpr (pairs) {
      double2 *to = reinterpret_cast<double2 *>(z + first) + lane;
      to[0] = make_double2(r[0], r[1]);
      to[32] = make_double2(r[2], r[3]);
    } else {
#pragma unroll
      for (int k = 0; k < lane_elements; ++k) z[first + place_of<pairs>(lane, k)] = r[k];
    }
  } else {
#pragma unroll
    for (int k = 0; k < lane_elements; ++k) {
      const std::int64_t i = first + place_of<pairs>(lane, k);
      if (i >= 0 && i < length) z[i] = r[k];
    }
  }
}

template <class Arithmetic> void launch(Executor &executor, const Elementwise &call) {
  if (call.length == 0) return;
  const auto   odd = [](const double *p) { return reinterpret_cast<std::uintptr_t>(p) % 16 != 0; };
  const bool   pairs = odd(call.v[0]) == odd(call.w);
  const int    skip = pairs && odd(call.w) ? 1 : 0;
  const auto   warps = (call.length + skip + warp_elements - 1) / warp_elements;
  const auto   blocks = static_cast<unsigned>((warps + threads / 32 - 1) / (threads / 32));
  cudaStream_t stream = static_cast<cudaStream_t>(executor.stream());
  if (pairs)
    scale_array<Arithmetic, true><<<blocks, threads, 0, stream>>>(call.w, call.v[0], call.coefficients[0], call.length, skip);
  else
    scale_array<Arithmetic, false><<<blocks, threads, 0, stream>>>(call.w, call.v[0], call.coefficients[0], call.length, skip);
  TCBOUND_LAUNCHED();
}

// Grids have up to 2^31 - 1 blocks.
inline std::string check_length(std::int64_t length) {
  const std::int64_t most = (std::int64_t(1) << 31) * threads * lane_elements - 2 * threads * lane_elements;
  return length <= most ? "" : "there are more than " + std::to_string(most) + " elements";
}

} // namespace tcbound::scale
