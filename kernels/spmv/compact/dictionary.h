#pragma once

// Device code of build.cu: numbers the patterns, compares every row with the pattern that its hash proposes, and writes the
// dictionary. For .cu files only.

#include "device_matrix.h"
#include "grid.h"
#include "hot.h"
#include "votes.h"

namespace tcbound::compact {
namespace {

// Sorts slices by tile, and within a tile by plane and line.
struct Tiling {
  std::int64_t line, plane;   // rows; plane 0: none
  std::int64_t lines, planes; // of a tile
  std::int64_t most_line, most_part, most_in_tile;
  int          line_bits, part_bits, in_tile_bits, bits;

  Tiling(const Grid &grid, std::int64_t rows, int depth) : line(grid.line), plane(grid.plane) {
    planes = plane ? depth : 1;
    lines = plane ? block_slices : block_slices * depth;
    most_line = (plane ? plane : rows) / line / lines + 1;
    most_part = line / slice_rows;
    most_in_tile = planes * lines - 1;
    line_bits = bits_of(most_line);
    part_bits = bits_of(most_part);
    in_tile_bits = bits_of(most_in_tile);
    bits = line_bits + part_bits + in_tile_bits + (plane ? bits_of((rows + slice_rows) / plane / planes) : 0);
  }

  __device__ std::uint64_t key(std::int64_t row) const {
    const std::int64_t at_plane = plane ? row / plane : 0, in_plane = plane ? row % plane : row;
    const std::int64_t at_line = in_plane / line, part = in_plane % line / slice_rows;
    std::int64_t       key = at_plane / planes;
    key = key << line_bits | min(at_line / lines, most_line);
    key = key << part_bits | min(part, most_part);
    return static_cast<std::uint64_t>(key) << in_tile_bits |
           static_cast<std::uint64_t>(min(at_plane % planes * lines + at_line % lines, most_in_tile));
  }
};

__global__ void number_tiles(const std::int32_t *listed, std::int64_t count, const Cut cut, const Tiling tiling,
                             std::uint64_t *keys) {
  const std::int64_t s = global_index<block>();
  if (s < count) keys[s] = tiling.key(cut.first_row(cut.first_of(listed[s])) + slice_rows / 2);
}

// The exceptions of listed slice s are those from begin[s] to begin[s + 1] of its section.
__global__ void count_exceptions(const std::int32_t *listed, std::int64_t count, const SliceVotes votes, std::int64_t *begin) {
  const std::int64_t s = global_index<block>();
  if (s > count) return;
  std::int64_t exceptions = 0;
  if (s < count) exceptions = __popcll(votes.others(listed[s]));
  begin[s] = exceptions;
}

// What is sorted to number the patterns: first the slices' hashes, then the exceptions'. So many bits of a hash tell patterns apart;
// should they not, rows with a pattern go to the remainder.
constexpr int hash_bits_for(std::int64_t keys) { return keys < 1 << 16 ? 32 : keys < 1 << 20 ? 40 : 48; }

__device__ inline std::uint64_t key_of(std::uint64_t hash, int bits) {
  return hash ? max(hash >> (64 - bits), std::uint64_t(1)) : 0;
}

struct Keys {
  std::uint64_t *hash;
  std::int32_t  *row; // that the key stands for
  std::uint32_t *number;
};

__global__ void list_keys(const std::int32_t *listed, std::int64_t count, const Cut cut, const SliceVotes votes,
                          const std::int64_t *begin, int hash_bits, Slice *slices, Keys keys) {
  const std::int64_t s = global_index<block>();
  if (s >= count) return;
  const std::int64_t  first = cut.first_row(cut.first_of(listed[s]));
  const std::uint64_t have = votes.rows[listed[s]];
  slices[s] = {static_cast<std::int32_t>(first), -1, have};
  keys.hash[s] = key_of(votes.hash[listed[s]], hash_bits);
  keys.row[s] = static_cast<std::int32_t>(first + __ffsll(static_cast<long long>(have)) - 1);
  keys.number[s] = static_cast<std::uint32_t>(s);
  std::int64_t at = count + begin[s];
  for (std::uint64_t rest = votes.others(listed[s]); rest; rest &= rest - 1, ++at) {
    const std::int64_t row = first + __ffsll(static_cast<long long>(rest)) - 1;
    keys.hash[at] = key_of(votes.row_hash[row], hash_bits);
    keys.row[at] = static_cast<std::int32_t>(row);
    keys.number[at] = static_cast<std::uint32_t>(at);
  }
}

// Runs of equal sorted keys are patterns; a run that has a slice's key is kept, and others by the rule. weight: about the rows
// that have the pattern of a run that is kept, else 0. Within a run the numbers ascend, so that slices come first. There are at most
// `most` runs; what is not one is not kept.
template <class Offset>
__global__ void choose_patterns(const Offset *offsets, const std::int32_t *key_row, const std::int64_t *run_begin,
                                const std::int64_t *run_length, const std::uint32_t *sorted, const std::uint64_t *unique,
                                const std::int64_t *run_count, std::int64_t most, std::int64_t slices, bool spare_remainder,
                                std::int64_t *weight, std::int32_t *run, std::int64_t *kept) {
  const std::int64_t u = global_index<block>(), runs = *run_count;
  if (u > most) return;
  kept[u] = 0;
  if (u >= runs) return;
  std::int64_t low = 0, high = run_length[u]; // how many of the run are slices
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (sorted[run_begin[u] + middle] < slices)
      low = middle + 1;
    else
      high = middle;
  }
  const std::int64_t row = key_row[sorted[run_begin[u]]];
  const bool         spares = spare_remainder && offsets[row + 1] - offsets[row] <= longest_sparing;
  kept[u] = unique[u] != 0 && (low > 0 || is_kept(run_length[u], runs, spares));
  weight[u] = kept[u] ? slice_rows * low + run_length[u] - low : 0;
  run[u] = static_cast<std::int32_t>(u);
}

// The runs in order of falling weight: the first `count` are the patterns, so that the most frequent one is number 0.
__global__ void rank_patterns(const std::int32_t *run, std::int64_t runs, std::int64_t count, std::int32_t *number) {
  const std::int64_t rank = global_index<block>();
  if (rank < runs) number[run[rank]] = rank < count ? static_cast<std::int32_t>(rank) : -1;
}

__global__ void number_keys(const std::int64_t *run_begin, const std::int32_t *number, std::int64_t runs,
                            const std::uint32_t *sorted, std::int64_t keys, const std::int32_t *key_row,
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

// A row's columns, counted from the row, and values, of which each lane has two.
struct RowPair {
  std::int32_t column[2];
  std::int64_t value[2];
};

template <class Offset>
__device__ RowPair load_pair(const Rows<Offset> &a, std::int64_t row, std::int64_t begin, std::int64_t length, bool values) {
  RowPair pair = {};
  for (int h = 0; h < 2; ++h) {
    const std::int64_t k = threadIdx.x % 32 + 32 * h;
    if (k >= length) continue;
    pair.column[h] = a.columns[begin + k] - static_cast<std::int32_t>(row);
    if (values) pair.value[h] = __double_as_longlong(a.values[begin + k]);
  }
  return pair;
}

// The entries of `main` that a row has, one bit each, if it has no others; `partial` says whether that is so. By a warp, which has
// main's `entries` entries in `main`.
template <class Offset>
__device__ std::uint64_t find_entries(const Rows<Offset> &a, std::int64_t row, const RowPair &main, std::int64_t entries,
                                      bool compare_values, bool &partial) {
  const std::int64_t begin = a.offsets[row], length = a.offsets[row + 1] - begin, lane = threadIdx.x % 32;
  std::uint64_t      found = 0;
  partial = entries <= longest_masked && length <= entries;
  if (!partial) return 0;
  const RowPair mine = load_pair(a, row, begin, length, compare_values);
  for (int k = 0; partial && k < length; ++k) {
    const std::int32_t column = __shfl_sync(0xffffffffU, k < 32 ? mine.column[0] : mine.column[1], k % 32);
    const std::int64_t value = __shfl_sync(0xffffffffU, k < 32 ? mine.value[0] : mine.value[1], k % 32);
    const auto         same = [&](int h) {
      return lane + 32 * h < entries && main.column[h] == column && (!compare_values || main.value[h] == value);
    };
    const std::uint64_t low = __ballot_sync(0xffffffffU, same(0)), high = __ballot_sync(0xffffffffU, same(1));
    partial = (low | high) != 0;
    found |= low | high << 32;
  }
  return found;
}

// Which of the rows of a slice are not what another row is. By a warp, `lanes` threads a row.
template <class Offset>
__device__ std::uint64_t other_rows(const Rows<Offset> &a, const Slice &slice, std::int64_t wanted, int lanes,
                                    bool compare_values) {
  const std::int64_t there = a.offsets[wanted], entries = a.offsets[wanted + 1] - there;
  const int          lane = static_cast<int>(threadIdx.x % 32);
  std::uint64_t      others = 0;
#pragma unroll 2
  for (int r = lane / lanes; r < slice_rows; r += 32 / lanes) {
    if (!(slice.rows >> r & 1)) continue;
    const std::int64_t row = slice.first_row + r, begin = a.offsets[row], length = a.offsets[row + 1] - begin;
    const auto         shift = static_cast<std::int32_t>(row - wanted);
    bool               same = length == entries;
    for (std::int64_t k = lane % lanes; same && k < length; k += lanes)
      same = a.columns[begin + k] - shift == a.columns[there + k] &&
             (!compare_values || __double_as_longlong(a.values[begin + k]) == __double_as_longlong(a.values[there + k]));
    if (!same) others |= std::uint64_t(1) << r;
  }
  const std::uint64_t low = __reduce_or_sync(0xffffffffU, static_cast<unsigned>(others));
  return low | static_cast<std::uint64_t>(__reduce_or_sync(0xffffffffU, static_cast<unsigned>(others >> 32))) << 32;
}

// What a row that does not have its slice's pattern can be: both, or neither.
struct Odd {
  std::uint64_t entries; // of the slice's pattern
  bool          partial, exception;
};

// One warp a listed slice: compares every row with the representative of its pattern. A row that has another than its hash said
// goes to the remainder.
template <class Offset>
__global__ void __launch_bounds__(block)
  verify(const Rows<Offset> a, std::int64_t count, const std::int64_t *begin, const std::int32_t *pattern_of_key,
         const std::int32_t *key_row, const Pattern *patterns, bool constant, int lanes, Slice *slices, Odd *odd,
         std::uint8_t *in_remainder) {
  const std::int64_t s = blockIdx.x * static_cast<std::int64_t>(block_warps) + threadIdx.x / 32;
  const int          lane = static_cast<int>(threadIdx.x % 32);
  if (s >= count) return;
  Slice               slice = slices[s];
  const std::int32_t  main = patterns[pattern_of_key[s]].representative;
  const std::uint64_t others = other_rows(a, slice, main, lanes, constant);
  for (int r = lane; r < slice_rows; r += 32)
    if (others >> r & 1) in_remainder[slice.first_row + r] = 1;
  if (begin[s] < begin[s + 1]) {
    const std::int64_t there = a.offsets[main], entries = a.offsets[main + 1] - there;
    const RowPair      pair = load_pair(a, main, there, entries, constant);
    for (std::int64_t e = begin[s]; e < begin[s + 1]; ++e) {
      const std::int32_t  pattern = pattern_of_key[count + e], row = key_row[count + e];
      bool                partial = false;
      const std::uint64_t found = find_entries(a, row, pair, entries, constant, partial);
      const bool          exception = pattern >= 0 && same_pattern(a, row, patterns[pattern].representative, constant);
      if (lane == 0) odd[e] = {found, partial, exception};
    }
  }
  if (lane != 0) return;
  slice.pattern = pattern_of_key[s];
  slice.rows &= ~others;
  slices[s] = slice;
}

// Gathers the partial rows of each slice by mask; kept[e] becomes 1 for an exception, else 0, and so does the last, which is none.
// What finds no place goes to the remainder. second_rows: exceptions that could be second slices.
__global__ void sort_odd_rows(std::int64_t count, const std::int64_t *begin, const Odd *odd, const std::int32_t *odd_row,
                              const std::int32_t *odd_pattern, Slice *slices, Partial *partials, std::int32_t *partial_count,
                              std::int64_t *kept, std::uint8_t *in_remainder, std::int64_t *second_rows) {
  const std::int64_t s = global_index<block>();
  if (s > count) return;
  if (s == count) kept[begin[count]] = 0;
  const std::int64_t first = s < count ? begin[s] : 0, end = s < count ? begin[s + 1] : 0;
  std::int32_t likely = -1; // if one pattern has more than half of the exceptions it is this one (R. S. Boyer, J S. Moore 1991)
  int          found = 0, votes = 0, rows = 0;
  for (std::int64_t e = first; e < end; ++e) {
    const std::uint64_t bit = std::uint64_t(1) << (odd_row[e] - slices[s].first_row);
    int                 g = odd[e].partial ? 0 : most_partials;
    while (g < found && partials[s * most_partials + g].entries != odd[e].entries) ++g;
    if (g < most_partials) {
      Partial &group = partials[s * most_partials + g];
      group = {g < found ? group.rows | bit : bit, odd[e].entries};
      found = max(found, g + 1);
    }
    kept[e] = g >= most_partials && odd[e].exception;
    if (g >= most_partials && !odd[e].exception) in_remainder[odd_row[e]] = 1;
    if (!kept[e]) continue;
    if (votes == 0) likely = odd_pattern[e];
    votes += odd_pattern[e] == likely ? 1 : -1;
  }
  for (std::int64_t e = first; e < end; ++e) rows += kept[e] && odd_pattern[e] == likely;
  if (is_second(rows)) atomicAdd(reinterpret_cast<unsigned long long *>(second_rows), static_cast<unsigned long long>(rows));
  partial_count[s] = found;
  if (found > 0) slices[s].pattern |= Slice::has_partials;
}

// Takes partial rows to their places, and marks slices whose pattern reaches outside.
__global__ void finish_slices(std::int64_t count, const Pattern *patterns, std::int64_t columns, const Partial *from,
                              const std::int32_t *partial_begin, Slice *slices, Partial *to) {
  const std::int64_t s = global_index<block>();
  if (s >= count) return;
  const std::int32_t number = slices[s].pattern;
  const Pattern      pattern = patterns[number & ~Slice::flags];
  const std::int64_t first = slices[s].first_row, last = first + slice_rows - 1;
  if (pattern.entries > 0 && (first + pattern.low < 0 || last + pattern.high >= columns))
    slices[s].pattern = number | Slice::reaches_outside;
  for (std::int32_t i = partial_begin[s]; i < partial_begin[s + 1]; ++i)
    to[i] = from[s * most_partials + (i - partial_begin[s])];
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
  set_hot_as_first(patterns[p]);
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
