#pragma once

// Products of fragments by multiply-adds and shuffles, the twin of by_tensor_cores.h. For .cu files only.

#include "multiply.h"

namespace tcbound::fragments {
namespace {

template <class Numbers_> struct CudaCores {
  using Numbers = Numbers_;
  using Real = typename Numbers::Real;

  static constexpr int depth(int node) { return node > 1 ? 4 : 2; }
  static constexpr int min_blocks(int node) {
    if (Numbers::bytes < 8) return node > 1 ? 8 : (Numbers::bytes == 4 ? 8 : 9);
    return node > 1 ? 5 : 6;
  }

  static constexpr int min_ragged_blocks = Numbers::bytes < 8 ? min_blocks(1) : 7;

  template <int node> struct Sums { Real of[slices]; };

  template <int node, int steps>
  static __device__ void add(Sums<node> &sums, const Real (&v)[steps][slices], const Real (&w)[steps][slices]) {
#pragma unroll
    for (int u = 0; u < steps; ++u)
#pragma unroll
      for (int j = 0; j < values_of_lane(node); ++j) sums.of[j] = fma(v[u][j], Numbers::of_x(w[u][j]), sums.of[j]);
  }

  // 4 sums in each of 4 lanes: half of them change hands, then a quarter.
  template <int node> static __device__ double collect(const Sums<node> &sums, int lane) {
    const bool odd = lane % 2 != 0, upper = lane % 4 >= 2;
    const Real low = (odd ? sums.of[1] : sums.of[0]) + __shfl_xor_sync(all_lanes, odd ? sums.of[0] : sums.of[1], 1);
    const Real high = (odd ? sums.of[3] : sums.of[2]) + __shfl_xor_sync(all_lanes, odd ? sums.of[2] : sums.of[3], 1);
    return (upper ? high : low) + __shfl_xor_sync(all_lanes, upper ? low : high, 2);
  }

  template <int lanes>
  static __device__ void packed(const Real (&v)[slices], const Real (&w)[slices], int, double (&sums)[slices]) {
#pragma unroll
    for (int j = 0; j < slices; ++j) {
      Real sum = v[j] * Numbers::of_x(w[j]);
      if (lanes == 2) sum += __shfl_xor_sync(all_lanes, sum, 1);
      sums[j] = sum;
    }
  }
};

} // namespace
} // namespace tcbound::fragments
