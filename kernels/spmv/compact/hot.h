#pragma once

// Hot segments: constant segments in the kernel's parameters, from where broadcasting costs the first-level cache nothing, while
// there a broadcast takes as long as any other load.
//
// A small dictionary's first segments are hot. A large one is usually that of a matrix in which the same values stand at distances
// that change with the row (blocks of unknowns on grids of different sizes, as in saddle-point systems): there the segments of a
// pattern are hot for all patterns with the same counts and values, which then only bring their offsets.

#include "executor.h"
#include "format.h"

namespace tcbound::compact {

struct Section;

constexpr int most_hot_segments = 96;          // 3 KB: kernel parameters of up to 4 KB are cheap
constexpr int most_following_segments = 32;    // of a pattern that brings its offsets: one a lane
constexpr int most_patterns_hot_as_first = 64; // in a small dictionary

#ifdef __CUDACC__
// In a small dictionary.
__device__ inline void set_hot_as_first(Pattern &pattern) {
  pattern.hot_offsets = pattern.first_segment + pattern.segments <= most_hot_segments;
  pattern.hot = static_cast<std::int16_t>(pattern.hot_offsets ? pattern.first_segment : -1);
}
#endif

// Chooses the hot segments of a new dictionary.
void choose_hot_segments(Executor &executor, Section &section);

// The same when values are new, unless section.renewed says that rows have parted: then false. Waits for the device.
bool renew_hot_segments(Executor &executor, Section &section);

} // namespace tcbound::compact
