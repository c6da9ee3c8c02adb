#pragma once

// Products of fragments by MMA instructions, of whose results the diagonal is wanted. For .cu files only.

#include <algorithm>

#include "mma.h"
#include "multiply.h"

namespace tcbound::fragments {
namespace {

// Instruction: one of mma.h.
template <class Instruction> struct TensorCores {
  using Numbers = typename Instruction::Numbers;
  using Real = typename Numbers::Real;
  static constexpr int taken = Instruction::steps; // by one instruction
  // The twin's, but where the unwanted results take registers.
  static constexpr int depth(int node) {
    return node > 1 && (Instruction::rows == 8 || Numbers::bytes < 8) ? 4 : std::max(2, taken);
  }
  static constexpr int min_blocks(int node) {
    if (Numbers::bytes < 8) return node > 1 ? 8 : (Numbers::bytes == 4 ? 7 : 8);
    return Instruction::rows == 8 ? (node > 1 ? 5 : 6) : (taken == 4 ? 3 : 4);
  }

  static constexpr int min_ragged_blocks = Numbers::bytes == 8 && Instruction::rows == 8 ? 7 : min_blocks(1);

  template <int node> struct Sums { typename Instruction::template Sums<(node > 1)> of[slices / 2]; };

  template <int node, int steps>
  static __device__ void add(Sums<node> &sums, const Real (&v)[steps][slices], const Real (&w)[steps][slices]) {
#pragma unroll
    for (int first = 0; first < steps; first += taken) {
      Real a[taken][2], b[taken][2];
      take<steps>(first, 0, v, w, a, b);
      Instruction::template multiply_add<2>(sums.of[0], a, b);
      take<steps>(first, 1, v, w, a, b);
      Instruction::template multiply_add<values_of_lane(node) - 2>(sums.of[1], a, b);
    }
  }

  // What an instruction takes of a pair of slices, from step `first` on; zeros behind the last step.
  template <int steps>
  static __device__ void take(int first, int pair, const Real (&v)[steps][slices], const Real (&w)[steps][slices],
                              Real (&a)[taken][2], Real (&b)[taken][2]) {
#pragma unroll
    for (int u = 0; u < taken; ++u)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const bool in = first + u < steps;
        a[u][j] = in ? v[in ? first + u : 0][2 * pair + j] : Real(0);
        b[u][j] = in ? w[in ? first + u : 0][2 * pair + j] : Real(0);
      }
  }

  // The sum of fragment row lane / 4 of a slice, from the lane that has it.
  template <int node> static __device__ Real sum_of_row(const Sums<node> &sums, int slice, int lane) {
    const Real mine = Instruction::sum(sums.of[slice / 2], slice % 2, lane / 4 % 2);
    return __shfl_sync(all_lanes, mine, lane / 4 * 4 + lane / 8);
  }

  template <int node> static __device__ double collect(const Sums<node> &sums, int lane) {
    Real mine = 0;
#pragma unroll
    for (int j = 0; j < values_of_lane(node); ++j) {
      const Real of_slice = sum_of_row(sums, j, lane);
      if (lane % 4 == j) mine = of_slice;
    }
    return mine;
  }

  // One instruction for each of the rows that share a fragment row, with zeros in place of the others.
  template <int lanes>
  static __device__ void packed(const Real (&v)[slices], const Real (&w)[slices], int lane, double (&to)[slices]) {
#pragma unroll
    for (int part = 0; part < 4 / lanes; ++part) {
      const bool in = lane % 4 / lanes == part;
      Real       a[1][slices], b[1][slices];
      Sums<1>    sums{};
#pragma unroll
      for (int j = 0; j < slices; ++j) {
        a[0][j] = in ? v[j] : Real(0);
        b[0][j] = in ? w[j] : Real(0);
      }
      add<1, 1>(sums, a, b);
#pragma unroll
      for (int j = 0; j < slices; ++j) {
        const Real sum = sum_of_row(sums, j, lane);
        if (in) to[j] = sum;
      }
    }
  }
};

} // namespace
} // namespace tcbound::fragments
