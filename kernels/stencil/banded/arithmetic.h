#pragma once

// Device code: what multiplies windows by bands. For .cu files only.

#include "../../cuda/mma.h"

namespace tcbound::stencil {

// How results are computed: one instruction shape, or multiply-adds.
enum class Arithmetic { multiply_add, m8n8k4, m16n8k4, m16n8k8, m16n8k16 };

namespace banded {

// sums += the window's steps [first, stop) of 4 columns times the band. In a[2 i + h] of step i rows g + 8 h.
template <Arithmetic arithmetic, int first, int stop, int steps>
__device__ __forceinline__ void multiply(double (&sums)[4], const double (&a)[2 * steps], const double (&b)[steps]) {
  if constexpr (first < stop) {
    if constexpr (arithmetic == Arithmetic::m16n8k16 && stop - first >= 4) {
      double four_a[8], four_b[4];
#pragma unroll
      for (int i = 0; i < 8; ++i) four_a[i] = a[2 * first + i];
#pragma unroll
      for (int i = 0; i < 4; ++i) four_b[i] = b[first + i];
      mma_m16n8k16(sums, four_a, four_b);
      multiply<arithmetic, first + 4, stop, steps>(sums, a, b);
    } else if constexpr ((arithmetic == Arithmetic::m16n8k16 || arithmetic == Arithmetic::m16n8k8) && stop - first >= 2) {
      const double two_a[4] = {a[2 * first], a[2 * first + 1], a[2 * first + 2], a[2 * first + 3]};
      const double two_b[2] = {b[first], b[first + 1]};
      mma_m16n8k8(sums, two_a, two_b);
      multiply<arithmetic, first + 2, stop, steps>(sums, a, b);
    } else if constexpr (arithmetic == Arithmetic::m8n8k4) {
      double upper[2] = {sums[0], sums[1]}, lower[2] = {sums[2], sums[3]};
      mma_m8n8k4(upper, a[2 * first], b[first]);
      mma_m8n8k4(lower, a[2 * first + 1], b[first]);
      sums[0] = upper[0], sums[1] = upper[1], sums[2] = lower[0], sums[3] = lower[1];
      multiply<arithmetic, first + 1, stop, steps>(sums, a, b);
    } else {
      const double one_a[2] = {a[2 * first], a[2 * first + 1]};
      mma_m16n8k4(sums, one_a, b[first]);
      multiply<arithmetic, first + 1, stop, steps>(sums, a, b);
    }
  }
}

// A row or plane x enters the sums of its neighbours by an engine's add<its place from theirs>(); the one R before it is done.
template <class P, int k>
__device__ __forceinline__ void advance(typename P::State &state, double (&done)[4], const typename P::Operands &x,
                                        const typename P::Weights &w) {
  if constexpr (k < 2 * P::R) {
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    if constexpr (k + 1 < 2 * P::R) {
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[j] = state.sums[k + 1][j];
    }
    P::template add<P::R - 1 - k>(sums, x, state, w);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if constexpr (k < 0)
        done[j] = sums[j];
      else
        state.sums[k][j] = sums[j];
    }
    advance<P, k + 1>(state, done, x, w);
  }
}

} // namespace banded

} // namespace tcbound::stencil
