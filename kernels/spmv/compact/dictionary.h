#pragma once

// Device code of build.cu: numbers the patterns, compares every row with the pattern that its hash proposes, and writes the
// dictionary. For .cu files only.

#include "device_matrix.h"
#include "grid.h"
#include "votes.h"

namespace tcbound::compact {
namespace {

// Sorts slices by tile, and within a tile by plane and line.
__global__ void number_tiles(const std::int32_t *listed, std::int64_t count, const Cut cut, const Grid grid, int depth,
                             std::uint64_t *keys) {
  const std::int64_t s = global_index<block>();
  if (s >= count) return;
  const std::int64_t middle = cut.first_row(listed[s]) + slice_rows / 2;
  const std::int64_t plane = grid.plane ? middle / grid.plane : 0, in_plane = grid.plane ? middle % grid.plane : middle;
  const std::int64_t line = in_plane / grid.line, part = in_plane % grid.line / slice_rows;
  const std::int64_t planes = grid.plane ? depth : 1, lines = grid.plane ? block_slices : block_slices * depth;
  std::int64_t       key = plane / planes;
  key = key << 20 | min(line / lines, (std::int64_t(1) << 20) - 1);
  key = key << 16 | min(part, (std::int64_t(1) << 16) - 1);
  keys[s] = static_cast<std::uint64_t>(key) << 10 | static_cast<std::uint64_t>(plane % planes * lines + line % lines);
}

// The exceptions of listed slice s are those from begin[s] to begin[s + 1] of its section.
__global__ void count_exceptions(const std::int32_t *listed, std::int64_t count, const Cut cut, const std::uint64_t *rows_with,
                                 std::int64_t *begin) {
  const std::int64_t s = global_index<block>();
  if (s > count) return;
  std::int64_t exceptions = 0;
  if (s < count) exceptions = __popcll(cut.present(listed[s]) & ~rows_with[listed[s]]);
  begin[s] = exceptions;
}

// What is sorted to number the patterns: first the slices' hashes, then the exceptions'.
struct Keys {
  std::uint64_t *hash;
  std::int32_t  *row; // that the key stands for
  std::int64_t  *number;
};

__global__ void list_keys(const std::int32_t *listed, std::int64_t count, const Cut cut, const std::uint64_t *slice_hash,
                          const std::uint64_t *rows_with, const std::uint64_t *row_hash, const std::int64_t *begin,
                          Slice *slices, Keys keys) {
  const std::int64_t s = global_index<block>();
  if (s >= count) return;
  const std::int64_t  first = cut.first_row(listed[s]);
  const std::uint64_t have = rows_with[listed[s]];
  slices[s] = {static_cast<std::int32_t>(first), -1, have};
  keys.hash[s] = slice_hash[listed[s]];
  keys.row[s] = static_cast<std::int32_t>(first + __ffsll(static_cast<long long>(have)) - 1);
  keys.number[s] = s;
  std::int64_t at = count + begin[s];
  for (std::uint64_t rest = cut.present(listed[s]) & ~have; rest; rest &= rest - 1, ++at) {
    const std::int64_t row = first + __ffsll(static_cast<long long>(rest)) - 1;
    keys.hash[at] = row_hash[row];
    keys.row[at] = static_cast<std::int32_t>(row);
    keys.number[at] = at;
  }
}

// Runs of equal sorted keys are patterns; a run that has a slice's key is kept, and others by the rule. weight: about the rows
// that have the pattern of a run that is kept, else 0. Within a run the numbers ascend, so that slices come first.
__global__ void choose_patterns(const std::int64_t *run_begin, const std::int64_t *run_length, const std::int64_t *sorted,
                                const std::uint64_t *unique, std::int64_t runs, std::int64_t slices, std::int64_t *weight,
                                std::int32_t *run, std::int64_t *kept) {
  const std::int64_t u = global_index<block>();
  if (u > runs) return;
  kept[u] = 0;
  if (u == runs) return;
  std::int64_t low = 0, high = run_length[u]; // how many of the run are slices
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (sorted[run_begin[u] + middle] < slices)
      low = middle + 1;
    else
      high = middle;
  }
  kept[u] = unique[u] != 0 && (low > 0 || is_kept(run_length[u], runs));
  weight[u] = kept[u] ? slice_rows * low + run_length[u] - low : 0;
  run[u] = static_cast<std::int32_t>(u);
}

// The runs in order of falling weight: the first `count` are the patterns, so that the most frequent one is number 0.
__global__ void rank_patterns(const std::int32_t *run, std::int64_t runs, std::int64_t count, std::int32_t *number) {
  const std::int64_t rank = global_index<block>();
  if (rank < runs) number[run[rank]] = rank < count ? static_cast<std::int32_t>(rank) : -1;
}

__global__ void number_keys(const std::int64_t *run_begin, const std::int32_t *number, std::int64_t runs,
                            const std::int64_t *sorted, std::int64_t keys, const std::int32_t *key_row,
                            std::int32_t *pattern_of_key, Pattern *patterns) {
  const std::int64_t i = global_index<block>();
  if (i >= keys) return;
  std::int64_t low = 0, high = runs; // the last run that begins at or before i is low - 1
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (run_begin[middle] <= i)
      low = middle + 1;
    else
      high = middle;
  }
  const std::int32_t pattern = number[low - 1];
  pattern_of_key[sorted[i]] = pattern;
  if (pattern >= 0 && i == run_begin[low - 1]) patterns[pattern].representative = key_row[sorted[i]];
}

template <class Offset>
__device__ bool same_pattern(const Rows<Offset> &a, std::int64_t row, std::int64_t other, bool compare_values) {
  const std::int64_t begin = a.offsets[row], length = a.offsets[row + 1] - begin, there = a.offsets[other];
  bool               same = length == a.offsets[other + 1] - there;
  const auto         shift = static_cast<std::int32_t>(row - other);
  for (std::int64_t k = threadIdx.x % 32; same && k < length; k += 32) {
    same = a.columns[begin + k] - shift == a.columns[there + k];
    if (same && compare_values) same = __double_as_longlong(a.values[begin + k]) == __double_as_longlong(a.values[there + k]);
  }
  return __all_sync(0xffffffffU, same);
}

// The entries of `main` that a row has, one bit each, if it has no others; `partial` says whether that is so. By a warp.
template <class Offset>
__device__ std::uint64_t find_entries(const Rows<Offset> &a, std::int64_t row, std::int64_t main, bool compare_values,
                                      bool &partial) {
  const std::int64_t begin = a.offsets[row], length = a.offsets[row + 1] - begin, there = a.offsets[main];
  const std::int64_t entries = a.offsets[main + 1] - there, lane = threadIdx.x % 32;
  const auto         shift = static_cast<std::int32_t>(row - main);
  std::uint64_t      found = 0;
  partial = entries <= longest_masked && length <= entries;
  for (std::int64_t k = 0; partial && k < length; ++k) {
    const std::int32_t column = a.columns[begin + k] - shift;
    const auto         same = [&](std::int64_t j) {
      return j < entries && a.columns[there + j] == column &&
             (!compare_values || __double_as_longlong(a.values[there + j]) == __double_as_longlong(a.values[begin + k]));
    };
    const std::uint64_t low = __ballot_sync(0xffffffffU, same(lane)), high = __ballot_sync(0xffffffffU, same(lane + 32));
    partial = (low | high) != 0;
    found |= low | high << 32;
  }
  return found;
}

// What a row that does not have its slice's pattern can be.
struct Odd {
  std::uint64_t entries; // of the slice's pattern
  bool          partial, exception;
};

// One warp a listed slice: compares every row with the representative of its pattern. A row that has another than its hash said
// goes to the remainder.
template <class Offset>
__global__ void __launch_bounds__(block)
  verify(const Rows<Offset> a, std::int64_t count, const std::int64_t *begin, const std::int32_t *pattern_of_key,
         const std::int32_t *key_row, const Pattern *patterns, bool constant, Slice *slices, Odd *odd,
         std::uint8_t *in_remainder) {
  const std::int64_t s = blockIdx.x * static_cast<std::int64_t>(block_warps) + threadIdx.x / 32;
  const bool         first_lane = threadIdx.x % 32 == 0;
  if (s >= count) return;
  Slice              slice = slices[s];
  std::uint64_t      have = slice.rows;
  const std::int32_t main = patterns[pattern_of_key[s]].representative;
  for (std::uint64_t rest = slice.rows; rest; rest &= rest - 1) {
    const int r = __ffsll(static_cast<long long>(rest)) - 1;
    if (same_pattern(a, slice.first_row + r, main, constant)) continue;
    have &= ~(std::uint64_t(1) << r);
    if (first_lane) in_remainder[slice.first_row + r] = 1;
  }
  for (std::int64_t e = begin[s]; e < begin[s + 1]; ++e) {
    const std::int32_t  pattern = pattern_of_key[count + e], row = key_row[count + e];
    bool                partial = false;
    const std::uint64_t entries = find_entries(a, row, main, constant, partial);
    const bool exception = !partial && pattern >= 0 && same_pattern(a, row, patterns[pattern].representative, constant);
    if (first_lane) odd[e] = {entries, partial, exception};
  }
  if (!first_lane) return;
  slice.pattern = pattern_of_key[s];
  slice.rows = have;
  slices[s] = slice;
}

// Gathers the partial rows of each slice by mask; kept[e] becomes 1 for an exception. What finds no place goes to the remainder.
__global__ void sort_odd_rows(std::int64_t count, const std::int64_t *begin, const Odd *odd, const std::int32_t *odd_row,
                              Slice *slices, Partial *partials, std::int32_t *partial_count, std::int64_t *kept,
                              std::uint8_t *in_remainder) {
  const std::int64_t s = global_index<block>();
  if (s > count) return;
  int found = 0;
  for (std::int64_t e = s < count ? begin[s] : 0, end = s < count ? begin[s + 1] : 0; e < end; ++e) {
    const std::uint64_t bit = std::uint64_t(1) << (odd_row[e] - slices[s].first_row);
    int                 g = odd[e].partial ? 0 : most_partials;
    while (g < found && partials[s * most_partials + g].entries != odd[e].entries) ++g;
    if (g < most_partials) {
      Partial &group = partials[s * most_partials + g];
      group = {g < found ? group.rows | bit : bit, odd[e].entries};
      found = max(found, g + 1);
    }
    kept[e] = odd[e].exception;
    if (g >= most_partials && !odd[e].exception) in_remainder[odd_row[e]] = 1;
  }
  partial_count[s] = found;
  if (found > 0) slices[s].pattern |= Slice::has_partials;
}

__global__ void mark_outside(std::int64_t count, const Pattern *patterns, std::int64_t columns, Slice *slices) {
  const std::int64_t s = global_index<block>();
  if (s >= count) return;
  const Pattern      pattern = patterns[slices[s].pattern & ~Slice::flags];
  const std::int64_t first = slices[s].first_row, last = first + slice_rows - 1;
  if (pattern.entries > 0 && (first + pattern.low < 0 || last + pattern.high >= columns))
    slices[s].pattern |= Slice::reaches_outside;
}

__global__ void place_partials(std::int64_t count, const Partial *from, const std::int32_t *partial_begin, Partial *to) {
  const std::int64_t s = global_index<block>();
  if (s >= count) return;
  for (std::int32_t i = partial_begin[s]; i < partial_begin[s + 1]; ++i)
    to[i] = from[s * most_partials + (i - partial_begin[s])];
}

__global__ void mark_remainder(const Kind *kind, const Cut cut, std::uint8_t *in_remainder) {
  const std::int64_t row = global_index<block>();
  if (row < cut.rows && kind[cut.slice_of(row)] == remainder_kind) in_remainder[row] = 1;
}

// place[e]: of exception e among those kept.
__global__ void place_exceptions(std::int64_t count, const std::int64_t *place, const std::int32_t *pattern_of_key,
                                 const std::int32_t *key_row, Exception *exceptions) {
  const std::int64_t e = global_index<block>();
  if (e < count && place[e + 1] > place[e]) exceptions[place[e]] = {key_row[e], pattern_of_key[e]};
}

// Calls f(offset of the first column, entries, number of the first entry) for each segment of a row, in order.
template <class Offset, class F> __device__ void for_each_segment(const Rows<Offset> &a, std::int64_t row, F &&f) {
  const std::int64_t end = a.offsets[row + 1];
  for (std::int64_t k = a.offsets[row]; k < end;) {
    const std::int32_t column = a.columns[k];
    int                count = 1;
    while (count < longest_run && k + count < end && a.columns[k + count] == column + count) ++count;
    f(column - static_cast<std::int32_t>(row), count, k);
    k += count;
  }
}

template <class Offset>
__global__ void measure_patterns(const Rows<Offset> a, std::int64_t count, Pattern *patterns, std::int64_t *segments) {
  const std::int64_t p = global_index<block>();
  if (p > count) return;
  segments[p] = 0;
  if (p == count) return;
  Pattern            pattern = patterns[p];
  const std::int64_t row = pattern.representative, begin = a.offsets[row], end = a.offsets[row + 1];
  std::int32_t       found = 0;
  for_each_segment(a, row, [&](std::int32_t, int, std::int64_t) { ++found; });
  pattern.segments = found;
  pattern.entries = static_cast<std::int32_t>(end - begin);
  pattern.low = end > begin ? a.columns[begin] - static_cast<std::int32_t>(row) : 0;
  pattern.high = end > begin ? a.columns[end - 1] - static_cast<std::int32_t>(row) : 0;
  pattern.unused = 0;
  patterns[p] = pattern;
  segments[p] = found;
}

template <class Offset>
__global__ void write_patterns(const Rows<Offset> a, std::int64_t count, const std::int64_t *first, Pattern *patterns,
                               Segment *segments, ConstantSegment *constant_segments) {
  const std::int64_t p = global_index<block>();
  if (p >= count) return;
  std::int64_t at = first[p];
  patterns[p].first_segment = at;
  for_each_segment(a, patterns[p].representative, [&](std::int32_t offset, int entries, std::int64_t k) {
    if (constant_segments) {
      ConstantSegment segment = {offset, entries, {}};
      for (int j = 0; j < entries; ++j) segment.values[j] = a.values[k + j];
      constant_segments[at] = segment;
    } else {
      segments[at] = {offset, entries};
    }
    ++at;
  });
}

// Elements of `values` that a slice takes: slice_rows for each entry of its longest row.
__global__ void count_values(const Slice *slices, std::int64_t count, const Pattern *patterns, const std::int64_t *begin,
                             const std::int64_t *place, const Exception *exceptions, std::int64_t *size) {
  const std::int64_t s = global_index<block>();
  if (s > count) return;
  std::int32_t longest = 0;
  if (s < count) {
    longest = patterns[slices[s].pattern & ~Slice::flags].entries;
    for (std::int64_t e = place[begin[s]]; e < place[begin[s + 1]]; ++e)
      longest = max(longest, patterns[exceptions[e].pattern].entries);
  }
  size[s] = static_cast<std::int64_t>(longest) * slice_rows;
}

__global__ void place_exception_values(const Slice *slices, std::int64_t count, const std::int64_t *begin,
                                       const std::int64_t *place, const Exception *exceptions, const std::int64_t *value_begin,
                                       std::int64_t *exception_values) {
  const std::int64_t s = global_index<block>();
  if (s >= count) return;
  for (std::int64_t e = place[begin[s]]; e < place[begin[s + 1]]; ++e)
    exception_values[e] = value_begin[s] + (exceptions[e].row - slices[s].first_row);
}

} // namespace
} // namespace tcbound::compact
