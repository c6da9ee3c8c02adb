#pragma once

// Where a lane finds its slots in each step of a group. For .cu files only.

#include <cuda_runtime.h>

#include "layout.h"

namespace tcbound::fragments {
namespace {

// What a step keeps: lanes of the steps before; this lane's number among those it keeps, less the lane; lanes that it keeps; whether this
// is one of them.
struct Step {
  int  before, shift, lanes;
  bool kept;
};

// Steps of groups whose rows are about as long as each other: all lanes, but for the last step.
struct EvenSteps {
  Place last;
  int   lane, count;

  __device__ EvenSteps(const Group &group, int node, int lane_)
    : last(place_of(group, node, true, lane_)), lane(lane_), count(static_cast<int>(group.steps)) {}

  __device__ int value_bytes(const Group &group, int node, int width) const {
    return value_bytes_of(stored_lanes(group, node), node, width);
  }

  // Calls f with `depth` steps at a time, and in the end with what is left of them.
  template <int depth, class F> __device__ void for_each(F &&f) const {
    int t = 0;
    for (; t + depth < count; t += depth) f(take<depth, false>(t));
    static_assert(depth == 2 || depth == 4);
    if constexpr (depth == 4) {
      if (t + 4 == count) f(take<4, true>(t));
      if (t + 3 == count) f(take<3, true>(t));
    }
    if (t + 2 == count) f(take<2, true>(t));
    if (t + 1 == count) f(take<1, true>(t));
  }

  template <int steps> struct Some { Step of[steps]; };
  // ends: the last of them is the group's last.
  template <int steps, bool ends> __device__ Some<steps> take(int t) const {
    Some<steps> some;
#pragma unroll
    for (int u = 0; u < steps; ++u) {
      const bool at_end = ends && u == steps - 1;
      some.of[u] = {(t + u) * warp_lanes, at_end ? last.index - lane : 0, at_end ? last.lanes : warp_lanes,
                    !at_end || last.kept};
    }
    return some;
  }
};

// Steps of ragged groups.
template <int sorted> struct RaggedSteps {
  int lane, length, all, count; // of the lane's fragment row; lanes of all steps; steps

  __device__ RaggedSteps(const Group &group, RaggedLengths lengths, int lane_)
    : lane(lane_), length(ragged_length(lengths, lane_ / 4)), count(static_cast<int>(group.steps)) {
    const unsigned low = static_cast<unsigned>(lengths), high = static_cast<unsigned>(lengths >> 32);
    all = static_cast<int>(__dp4a(low, 0x01010101U, __dp4a(high, 0x01010101U, 0U)));
  }

  __device__ int        value_bytes(const Group &, int, int width) const { return plan(width).columns(); }
  __device__ RaggedPlan plan(int width) const { return {sorted, all, 3, width}; }

  template <int steps> struct Some { Step of[steps]; };
  template <int depth, class F> __device__ void for_each(F &&f) const {
    int before = 0;
    for (int t = 0; t < count; t += depth) { // behind the last step none is kept
      Some<depth> some;
#pragma unroll
      for (int u = 0; u < depth; ++u) {
        const bool     kept = 4 * (t + u) + lane % 4 < length;
        const unsigned all_kept = __ballot_sync(~0U, kept);
        some.of[u] = {before, __popc(all_kept & ((1U << lane) - 1U)) - lane, __popc(all_kept), kept};
        before += __popc(all_kept);
      }
      f(some);
    }
  }
};

} // namespace
} // namespace tcbound::fragments
