// Chooses the constant segments that are in the kernel's parameters.
#include "hot.h"

#include <algorithm>

#include "cuda/error.h"
#include "device_matrix.h"
#include "rows.h"

namespace tcbound::compact {
namespace {

constexpr int block = 256;
constexpr int leading_threads = 1024;
constexpr int most_leaders = 32;

cudaStream_t stream_of(Executor &executor) { return static_cast<cudaStream_t>(executor.stream()); }

unsigned grid_for(std::int64_t threads) { return static_cast<unsigned>((threads + block - 1) / block); }

// Patterns whose segments are hot.
struct Leaders {
  std::int32_t  count;
  std::int32_t  pattern[most_leaders], first[most_leaders]; // among the hot segments
  std::uint64_t hash[most_leaders];
};

__global__ void take_first(const ConstantSegment *segments, int count, Renewed *renewed) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < count) renewed->hot[i] = segments[i];
  if (i == 0) renewed->hot_count = count;
}

// Of counts and values; 0 for a pattern with too many segments.
__global__ void hash_patterns(const Pattern *patterns, std::int64_t count, const ConstantSegment *segments,
                              std::uint64_t *hashes) {
  const std::int64_t p = global_index<block>();
  if (p >= count) return;
  const Pattern pattern = patterns[p];
  std::uint64_t hash = static_cast<std::uint64_t>(pattern.segments);
  for (std::int64_t i = pattern.first_segment; i < pattern.first_segment + pattern.segments; ++i) {
    hash = mix(hash + static_cast<std::uint64_t>(segments[i].count));
    for (int j = 0; j < segments[i].count; ++j)
      hash = mix(hash ^ static_cast<std::uint64_t>(__double_as_longlong(segments[i].values[j])));
  }
  hashes[p] = pattern.segments <= most_hot_segments ? hash | 1U : 0;
}

// One block. Patterns come in order of falling frequency; of each hash the first leads while there is room.
__global__ void __launch_bounds__(leading_threads)
  choose_leaders(const Pattern *patterns, std::int64_t count, const std::uint64_t *hashes, Leaders *to, Renewed *renewed) {
  __shared__ Leaders            leaders;
  __shared__ unsigned long long next;
  std::int64_t                  at = threadIdx.x; // the thread's first pattern that has no leader yet
  int                           used = 0;
  if (threadIdx.x == 0) leaders.count = 0;
  for (int known = 0, compared = 0; known < most_leaders; ++known) {
    if (threadIdx.x == 0) next = static_cast<unsigned long long>(count);
    __syncthreads();
    for (; at < count; at += leading_threads, compared = 0) {
      bool led = hashes[at] == 0;
      for (; !led && compared < known; ++compared) led = hashes[at] == leaders.hash[compared];
      if (!led) break;
    }
    if (at < count) atomicMin(&next, static_cast<unsigned long long>(at));
    __syncthreads();
    const auto found = static_cast<std::int64_t>(next);
    if (found >= count || used + patterns[found].segments > most_hot_segments) break;
    if (threadIdx.x == 0) {
      leaders.pattern[known] = static_cast<std::int32_t>(found);
      leaders.first[known] = used;
      leaders.hash[known] = hashes[found];
      leaders.count = known + 1;
    }
    used += patterns[found].segments;
    __syncthreads();
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  *to = leaders;
  renewed->hot_count = used;
}

__device__ bool same_values(const ConstantSegment *a, const ConstantSegment *b, std::int32_t segments) {
  bool same = true;
  for (std::int32_t i = 0; same && i < segments; ++i) {
    same = a[i].count == b[i].count;
    for (int j = 0; same && j < a[i].count; ++j)
      same = __double_as_longlong(a[i].values[j]) == __double_as_longlong(b[i].values[j]);
  }
  return same;
}

__global__ void follow_leaders(Pattern *patterns, std::int64_t count, const ConstantSegment *segments,
                               const std::uint64_t *hashes, const Leaders *leaders, Renewed *renewed) {
  const std::int64_t p = global_index<block>();
  if (p >= count) return;
  const std::int32_t all = leaders->count;
  Pattern            pattern = patterns[p];
  int                found = 0;
  while (found < all && leaders->hash[found] != hashes[p]) ++found;
  pattern.hot = -1;
  pattern.hot_offsets = false;
  if (found < all) {
    const Pattern          leader = patterns[leaders->pattern[found]];
    const ConstantSegment *mine = segments + pattern.first_segment;
    pattern.hot_offsets = p == leaders->pattern[found];
    if (pattern.hot_offsets)
      for (std::int32_t i = 0; i < pattern.segments; ++i) renewed->hot[leaders->first[found] + i] = mine[i];
    if (pattern.hot_offsets || (pattern.segments == leader.segments && pattern.segments <= most_following_segments &&
                                same_values(mine, segments + leader.first_segment, pattern.segments)))
      pattern.hot = static_cast<std::int16_t>(leaders->first[found]);
  }
  patterns[p].hot = pattern.hot;
  patterns[p].hot_offsets = pattern.hot_offsets;
}

void launch(Executor &executor, Section &section) {
  const cudaStream_t stream = stream_of(executor);
  const std::int64_t count = section.patterns.size();
  const auto         segments = section.constant_segments.data();
  Renewed           *renewed = section.renewed.data();
  if (count <= most_patterns_hot_as_first) {
    const auto first = static_cast<int>(std::min<std::int64_t>(most_hot_segments, section.constant_segments.size()));
    take_first<<<1, most_hot_segments, 0, stream>>>(segments, first, renewed);
    TCBOUND_LAUNCHED();
    return;
  }
  Array<std::uint64_t> hashes(executor, count);
  Array<Leaders>       leaders(executor, 1);
  hash_patterns<<<grid_for(count), block, 0, stream>>>(section.patterns.data(), count, segments, hashes.data());
  TCBOUND_LAUNCHED();
  choose_leaders<<<1, leading_threads, 0, stream>>>(section.patterns.data(), count, hashes.data(), leaders.data(), renewed);
  TCBOUND_LAUNCHED();
  follow_leaders<<<grid_for(count), block, 0, stream>>>(section.patterns.data(), count, segments, hashes.data(), leaders.data(),
                                                        renewed);
  TCBOUND_LAUNCHED();
}

} // namespace

bool renew_hot_segments(Executor &executor, Section &section) {
  Renewed renewed;
  launch(executor, section);
  executor.copy(&renewed, MemorySpace::host, section.renewed.data(), MemorySpace::cuda, sizeof renewed);
  if (renewed.parted) return false;
  section.hot_segments.assign(renewed.hot, renewed.hot + renewed.hot_count);
  return true;
}

void choose_hot_segments(Executor &executor, Section &section) {
  section.renewed = Array<Renewed>(executor, 1);
  TCBOUND_CUDA(cudaMemsetAsync(section.renewed.data(), 0, sizeof(Renewed), stream_of(executor)));
  renew_hot_segments(executor, section);
}

} // namespace tcbound::compact
