// Finds the patterns of a CSR matrix in device memory and stores it by them.
//
// Rows are hashed and each slice votes for its most frequent hash. The hashes of the slices and of their exceptions are sorted
// to number the patterns. A hash only proposes: every row is then compared with the row that represents its pattern.
#include <utility>
#include <vector>

#include "cuda/algorithms.h"
#include "cuda/error.h"
#include "device_matrix.h"
#include "grid.h"
#include "rows.h"

namespace tcbound::compact {
namespace {

constexpr int block = 256;
constexpr int block_warps = block / 32;

enum Kind : std::uint8_t { remainder_kind, constant_kind, explicit_kind };

// What the slices voted for.
struct Votes {
  Array<std::uint64_t> hash; // of each slice's main pattern
  Array<std::uint64_t> rows; // that have it
  Array<Kind>          kind;
  Array<std::uint64_t> row_hash; // of each exception, at its row; not set elsewhere
};

__device__ std::uint64_t mix(std::uint64_t h) { // the finaliser of splitmix64 (G. L. Steele, D. Lea, C. H. Flood 2014)
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9U;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebU;
  return h ^ (h >> 31);
}

struct Hashes {
  std::uint64_t offsets, values; // of the offset pattern and of the row pattern; 0: the row can have none
};

// By `lanes` neighbouring threads, in all of which the result is right.
template <class Offset>
__device__ Hashes hash_row(const Rows<Offset> &a, std::int64_t row, int lane, int lanes, bool hash_values) {
  const bool          in = row >= 0 && row < a.count;
  const std::int64_t  begin = in ? a.offsets[row] : 0;
  const std::int64_t  length = in ? a.offsets[row + 1] - begin : 0;
  const bool          patterned = in && length <= longest_patterned;
  const std::uint64_t step = 0x9e3779b97f4a7c15U;
  std::uint64_t       offsets = 0, values = 0;
  for (std::int64_t k = lane; patterned && k < length; k += lanes) {
    const auto offset = static_cast<std::uint32_t>(a.columns[begin + k] - static_cast<std::int32_t>(row));
    const auto place = static_cast<std::uint64_t>(k + 1) * step;
    offsets += mix(place ^ offset);
    if (hash_values) values += mix(place + static_cast<std::uint64_t>(__double_as_longlong(a.values[begin + k])));
  }
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    offsets += __shfl_xor_sync(0xffffffffU, offsets, distance);
    values += __shfl_xor_sync(0xffffffffU, values, distance);
  }
  if (!patterned) return {0, 0};
  offsets = mix(offsets + static_cast<std::uint64_t>(length) + 1) | 1U;
  return {offsets, mix(values ^ offsets) | 1U};
}

// The hash that most of a half slice's rows have, one a lane; of equally frequent ones the first row's.
__device__ std::uint64_t most_frequent(std::uint64_t hash) {
  const unsigned same = __match_any_sync(0xffffffffU, hash), lane = threadIdx.x % 32;
  const unsigned rank = hash ? __popc(same) * 32U + (31U - lane) : 0U;
  const unsigned best = __reduce_max_sync(0xffffffffU, rank);
  return __shfl_sync(0xffffffffU, hash, static_cast<int>(31U - best % 32U));
}

__device__ std::uint64_t rows_with(std::uint64_t hash, std::uint64_t lower, std::uint64_t upper) {
  const std::uint64_t low = __ballot_sync(0xffffffffU, lower == hash), high = __ballot_sync(0xffffffffU, upper == hash);
  return hash ? low | high << 32 : 0;
}

// Of the rows first to first + 63, those that the matrix has.
__device__ std::uint64_t present_rows(std::int64_t first, std::int64_t rows) {
  const std::uint64_t all = ~std::uint64_t(0);
  const std::uint64_t begun = first < 0 ? all << -first : all;
  return rows - first >= slice_rows ? begun : begun & ((std::uint64_t(1) << (rows - first)) - 1);
}

struct Vote {
  std::uint64_t hash, rows;
};

__device__ Vote vote(std::uint64_t lower, std::uint64_t upper) {
  const std::uint64_t first = most_frequent(lower), second = most_frequent(upper);
  const Vote          a = {first, rows_with(first, lower, upper)}, b = {second, rows_with(second, lower, upper)};
  return __popcll(b.rows) > __popcll(a.rows) ? b : a;
}

// One warp a slice.
template <class Offset>
__global__ void __launch_bounds__(block)
  classify(const Rows<Offset> a, std::int64_t slices, int shift, int lanes, bool allow_constant, std::uint64_t *slice_hash,
           std::uint64_t *slice_rows_with, Kind *slice_kind, std::uint64_t *row_hash) {
  __shared__ Hashes  shared[block_warps][slice_rows];
  const std::int64_t slice = blockIdx.x * static_cast<std::int64_t>(block_warps) + threadIdx.x / 32;
  const int          lane = static_cast<int>(threadIdx.x % 32);
  if (slice >= slices) return;
  Hashes            *hashes = shared[threadIdx.x / 32];
  const std::int64_t first = slice * slice_rows - shift;
  for (int r = lane / lanes; r < slice_rows; r += 32 / lanes) {
    const Hashes h = hash_row(a, first + r, lane % lanes, lanes, allow_constant);
    if (lane % lanes == 0) hashes[r] = h;
  }
  __syncwarp();
  const Hashes        lower = hashes[lane], upper = hashes[lane + 32];
  const Vote          constant = vote(lower.values, upper.values), offsets = vote(lower.offsets, upper.offsets);
  const std::uint64_t present = present_rows(first, a.count);
  const auto          fits = [&](const Vote &v) { return is_main(__popcll(v.rows), __popcll(present)); };
  const Kind kind = allow_constant && fits(constant) ? constant_kind : (fits(offsets) ? explicit_kind : remainder_kind);
  const Vote main = kind == constant_kind ? constant : (kind == explicit_kind ? offsets : Vote{0, 0});
  if (lane == 0) {
    slice_hash[slice] = main.hash;
    slice_rows_with[slice] = main.rows;
    slice_kind[slice] = kind;
  }
  for (int r = lane; r < slice_rows && kind != remainder_kind; r += 32)
    if ((present & ~main.rows) >> r & 1) row_hash[first + r] = kind == constant_kind ? hashes[r].values : hashes[r].offsets;
}

// Sorts slices by tile, and within a tile by plane and line.
__global__ void number_tiles(const std::int32_t *listed, std::int64_t count, const Grid grid, std::uint64_t *keys) {
  const std::int64_t s = global_index<block>();
  if (s >= count) return;
  const std::int64_t middle = static_cast<std::int64_t>(listed[s]) * slice_rows + slice_rows / 2;
  const std::int64_t plane = grid.plane ? middle / grid.plane : 0, in_plane = grid.plane ? middle % grid.plane : middle;
  const std::int64_t line = in_plane / grid.line, part = in_plane % grid.line / slice_rows;
  const std::int64_t planes = grid.plane ? grid.tile_planes : 1, lines = grid.plane ? grid.tile_lines : block_slices;
  std::int64_t       key = plane / planes;
  key = key << 24 | min(line / lines, std::int64_t(1) << 23);
  key = key << 20 | min(part, std::int64_t(1) << 19);
  keys[s] = static_cast<std::uint64_t>(key) << 10 | static_cast<std::uint64_t>(plane % planes * lines + line % lines);
}

// The exceptions of listed slice s are those from begin[s] to begin[s + 1] of its section.
__global__ void count_exceptions(const std::int32_t *listed, std::int64_t count, int shift, const std::uint64_t *rows_with,
                                 std::int64_t rows, std::int64_t *begin) {
  const std::int64_t s = global_index<block>();
  if (s > count) return;
  std::int64_t exceptions = 0;
  if (s < count) {
    const std::int64_t first = static_cast<std::int64_t>(listed[s]) * slice_rows - shift;
    exceptions = __popcll(present_rows(first, rows) & ~rows_with[listed[s]]);
  }
  begin[s] = exceptions;
}

// What is sorted to number the patterns: first the slices' hashes, then the exceptions'.
struct Keys {
  std::uint64_t *hash;
  std::int32_t  *row; // that the key stands for
  std::int64_t  *number;
};

__global__ void list_keys(const std::int32_t *listed, std::int64_t count, int shift, const std::uint64_t *slice_hash,
                          const std::uint64_t *rows_with, const std::uint64_t *row_hash, std::int64_t rows,
                          const std::int64_t *begin, Slice *slices, Keys keys) {
  const std::int64_t s = global_index<block>();
  if (s >= count) return;
  const std::int64_t  first = static_cast<std::int64_t>(listed[s]) * slice_rows - shift;
  const std::uint64_t have = rows_with[listed[s]];
  slices[s] = {static_cast<std::int32_t>(first), -1, have};
  keys.hash[s] = slice_hash[listed[s]];
  keys.row[s] = static_cast<std::int32_t>(first + __ffsll(static_cast<long long>(have)) - 1);
  keys.number[s] = s;
  std::int64_t at = count + begin[s];
  for (std::uint64_t rest = present_rows(first, rows) & ~have; rest; rest &= rest - 1, ++at) {
    const std::int64_t row = first + __ffsll(static_cast<long long>(rest)) - 1;
    keys.hash[at] = row_hash[row];
    keys.row[at] = static_cast<std::int32_t>(row);
    keys.number[at] = at;
  }
}

// Runs of equal sorted keys are patterns; a run whose first key is a slice's is kept, and others by the rule.
__global__ void choose_patterns(const std::int64_t *run_begin, const std::int64_t *run_length, const std::int64_t *sorted,
                                const std::uint64_t *unique, std::int64_t runs, std::int64_t slices, std::int64_t *kept) {
  const std::int64_t u = global_index<block>();
  if (u > runs) return;
  kept[u] = u < runs && unique[u] != 0 && (sorted[run_begin[u]] < slices || is_kept(run_length[u], runs));
}

// number[u]: of run u's pattern; number[u + 1] is the same when it has none.
__global__ void number_patterns(const std::int64_t *run_begin, const std::int64_t *number, std::int64_t runs,
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
  const std::int64_t u = low - 1;
  const bool         has = number[u + 1] > number[u];
  pattern_of_key[sorted[i]] = has ? static_cast<std::int32_t>(number[u]) : -1;
  if (has && i == run_begin[u]) patterns[number[u]].representative = key_row[sorted[i]];
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

// One warp a listed slice: compares every row with the representative of its pattern. Rows without a pattern, and those that
// have another than their hash said, go to the remainder.
template <class Offset>
__global__ void __launch_bounds__(block)
  verify(const Rows<Offset> a, std::int64_t count, const std::int64_t *begin, const std::int32_t *pattern_of_key,
         const std::int32_t *key_row, const Pattern *patterns, bool constant, Slice *slices, std::int64_t *kept_exception,
         std::uint8_t *in_remainder) {
  const std::int64_t s = blockIdx.x * static_cast<std::int64_t>(block_warps) + threadIdx.x / 32;
  const bool         first_lane = threadIdx.x % 32 == 0;
  if (s >= count) return;
  Slice              slice = slices[s];
  std::uint64_t      have = slice.rows;
  const std::int32_t representative = patterns[pattern_of_key[s]].representative;
  for (std::uint64_t rest = slice.rows; rest; rest &= rest - 1) {
    const int r = __ffsll(static_cast<long long>(rest)) - 1;
    if (same_pattern(a, slice.first_row + r, representative, constant)) continue;
    have &= ~(std::uint64_t(1) << r);
    if (first_lane) in_remainder[slice.first_row + r] = 1;
  }
  for (std::int64_t e = begin[s]; e < begin[s + 1]; ++e) {
    const std::int32_t pattern = pattern_of_key[count + e], row = key_row[count + e];
    const bool         kept = pattern >= 0 && same_pattern(a, row, patterns[pattern].representative, constant);
    if (!first_lane) continue;
    kept_exception[e] = kept;
    if (!kept) in_remainder[row] = 1;
  }
  if (!first_lane) return;
  slice.pattern = pattern_of_key[s];
  slice.rows = have;
  slices[s] = slice;
}

__global__ void mark_remainder(const Kind *kind, std::int64_t rows, int shift, std::uint8_t *in_remainder) {
  const std::int64_t row = global_index<block>();
  if (row < rows && kind[(row + shift) / slice_rows] == remainder_kind) in_remainder[row] = 1;
}

// place[e]: of exception e among those kept.
__global__ void place_exceptions(std::int64_t count, const std::int64_t *place, const std::int32_t *pattern_of_key,
                                 const std::int32_t *key_row, Exception *exceptions) {
  const std::int64_t e = global_index<block>();
  if (e < count && place[e + 1] > place[e]) exceptions[place[e]] = {key_row[e], pattern_of_key[e]};
}

__global__ void begin_blocks(std::int64_t blocks, std::int64_t slices, const std::int64_t *begin, const std::int64_t *place,
                             std::int32_t *exception_begin) {
  const std::int64_t b = global_index<block>();
  if (b <= blocks) exception_begin[b] = static_cast<std::int32_t>(place[begin[min(b * block_slices, slices)]]);
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
    longest = slices[s].rows ? patterns[slices[s].pattern].entries : 0;
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

template <class Offset>
__global__ void measure_remainder(const Offset *offsets, const std::int32_t *rows, std::int64_t count, std::int64_t *lengths) {
  const std::int64_t i = global_index<block>();
  if (i <= count) lengths[i] = i < count ? static_cast<std::int64_t>(offsets[rows[i] + 1] - offsets[rows[i]]) : 0;
}

template <class To> __global__ void narrow(const std::int64_t *from, To *to, std::int64_t size) {
  const std::int64_t i = global_index<block>();
  if (i < size) to[i] = static_cast<To>(from[i]);
}

// One warp a row.
template <class Offset>
__global__ void copy_columns(const Rows<Offset> a, const std::int32_t *rows, std::int64_t count, const std::int64_t *begin,
                             std::int32_t *columns) {
  const std::int64_t i = global_index<block>() / 32;
  if (i >= count) return;
  const std::int64_t from = a.offsets[rows[i]], length = a.offsets[rows[i] + 1] - from;
  for (std::int64_t k = threadIdx.x % 32; k < length; k += 32) columns[begin[i] + k] = a.columns[from + k];
}

struct HasKind {
  const Kind *kinds;
  Kind        kind;

  __device__ bool operator()(std::int32_t slice) const { return kinds[slice] == kind; }
};

struct IsMarked {
  const std::uint8_t *marks;

  __device__ bool operator()(std::int32_t row) const { return marks[row] != 0; }
};

class Builder {
public:
  Builder(Executor &executor, csr::DeviceArrays csr)
    : executor_(executor), algorithms_(executor), stream_(algorithms_.stream()) {
    matrix_.csr = std::move(csr);
  }

  DeviceMatrix build(bool allow_constant) {
    const csr::DeviceArrays &a = matrix_.csr;
    csr::with_offsets(a, [&](const auto *offsets) {
      const auto rows = rows_of(a, offsets);
      grid_ = look_at_rows(rows);
      slices_ = (a.rows + grid_.shift + slice_rows - 1) / slice_rows;
      if (a.rows > 0) classify_slices(rows, allow_constant);
      build_section(rows, constant_kind, matrix_.constant);
      build_section(rows, explicit_kind, matrix_.explicit_);
      build_remainder(rows);
    });
    fill_values(executor_, matrix_, a.values.data());
    executor_.synchronize(); // before the arrays that only building needs go
    matrix_.csr.columns = Array<std::int32_t>();
    matrix_.csr.values = Array<double>();
    matrix_.remainder_product.prepare(executor_, matrix_.remainder, csr::CudaCoreConfig{});
    take_census();
    return std::move(matrix_);
  }

private:
  // `rows` of the work, a thread each or a warp each.
  template <class F> void launch(std::int64_t threads, F &&f) {
    if (threads == 0) return;
    f(static_cast<unsigned>((threads + block - 1) / block));
    TCBOUND_LAUNCHED();
  }

  template <class Offset> void classify_slices(const Rows<Offset> &a, bool allow_constant) {
    votes_.hash = Array<std::uint64_t>(executor_, slices_);
    votes_.rows = Array<std::uint64_t>(executor_, slices_);
    votes_.kind = Array<Kind>(executor_, slices_);
    votes_.row_hash = Array<std::uint64_t>(executor_, a.count);
    in_remainder_ = Array<std::uint8_t>(executor_, a.count);
    TCBOUND_CUDA(cudaMemsetAsync(in_remainder_.data(), 0, static_cast<std::size_t>(in_remainder_.bytes()), stream_));
    int lanes = 2; // of a row: about half its entries, so that most lanes have two
    while (lanes < 32 && 4 * lanes * a.count <= 2 * matrix_.csr.nonzeros) lanes *= 2;
    launch(32 * slices_, [&](unsigned grid) {
      classify<<<grid, block, 0, stream_>>>(a, slices_, grid_.shift, lanes, allow_constant, votes_.hash.data(),
                                            votes_.rows.data(), votes_.kind.data(), votes_.row_hash.data());
    });
    launch(a.count, [&](unsigned grid) {
      mark_remainder<<<grid, block, 0, stream_>>>(votes_.kind.data(), a.count, grid_.shift, in_remainder_.data());
    });
  }

  // Guesses the grid from the offsets of the fullest of a few rows.
  template <class Offset> Grid look_at_rows(const Rows<Offset> &a) {
    std::vector<std::int32_t> best;
    for (const double place : {0.5, 0.382, 0.618, 0.45, 0.55}) {
      if (a.count == 0) break;
      const auto         row = static_cast<std::int64_t>(place * static_cast<double>(a.count));
      const std::int64_t begin = algorithms_.read(a.offsets + row), length = algorithms_.read(a.offsets + row + 1) - begin;
      if (length > longest_patterned || length <= static_cast<std::int64_t>(best.size())) continue;
      best.resize(static_cast<std::size_t>(length));
      executor_.copy(best.data(), MemorySpace::host, a.columns + begin, MemorySpace::cuda, best.size() * sizeof(std::int32_t));
      for (std::int32_t &column : best) column -= static_cast<std::int32_t>(row);
    }
    return guess_grid(best);
  }

  // Puts the slices that a block multiplies next to each other in the grid, so that they share x in the first-level cache.
  void put_in_tiles(Array<std::int32_t> &listed, std::int64_t count) {
    if (grid_.line == 0) return;
    Array<std::uint64_t> keys(executor_, count), sorted_keys(executor_, count);
    Array<std::int32_t>  sorted(executor_, count);
    launch(count, [&](unsigned grid) { number_tiles<<<grid, block, 0, stream_>>>(listed.data(), count, grid_, keys.data()); });
    algorithms_.sort_pairs(keys.data(), sorted_keys.data(), listed.data(), sorted.data(), count);
    executor_.synchronize(); // the keys are freed on return
    listed = std::move(sorted);
  }

  template <class Offset> void build_section(const Rows<Offset> &a, Kind kind, Section &section) {
    Array<std::int32_t> listed(executor_, slices_);
    const std::int64_t  count = algorithms_.select_numbers(listed.data(), slices_, HasKind{votes_.kind.data(), kind});
    if (count == 0) return;
    put_in_tiles(listed, count);
    section.slices = Array<Slice>(executor_, count);

    Array<std::int64_t> begin(executor_, count + 1);
    launch(count + 1, [&](unsigned grid) {
      count_exceptions<<<grid, block, 0, stream_>>>(listed.data(), count, grid_.shift, votes_.rows.data(), a.count,
                                                    begin.data());
    });
    algorithms_.exclusive_sum(begin.data(), begin.data(), count + 1);
    const std::int64_t exceptions = algorithms_.read(begin.data() + count), keys = count + exceptions;

    Array<std::int32_t> key_row(executor_, keys), pattern_of_key(executor_, keys);
    number_patterns_of(section, listed.data(), begin.data(), a.count, exceptions, key_row, pattern_of_key);

    Array<std::int64_t> place(executor_, exceptions + 1);
    TCBOUND_CUDA(cudaMemsetAsync(place.data(), 0, static_cast<std::size_t>(place.bytes()), stream_));
    launch(32 * count, [&](unsigned grid) {
      verify<<<grid, block, 0, stream_>>>(a, count, begin.data(), pattern_of_key.data(), key_row.data(),
                                          section.patterns.data(), kind == constant_kind, section.slices.data(), place.data(),
                                          in_remainder_.data());
    });
    write_dictionary(a, kind, section);
    algorithms_.exclusive_sum(place.data(), place.data(), exceptions + 1);
    section.exceptions = Array<Exception>(executor_, algorithms_.read(place.data() + exceptions));
    launch(exceptions, [&](unsigned grid) {
      place_exceptions<<<grid, block, 0, stream_>>>(exceptions, place.data(), pattern_of_key.data() + count,
                                                    key_row.data() + count, section.exceptions.data());
    });
    section.exception_begin = Array<std::int32_t>(executor_, section.blocks() + 1);
    launch(section.blocks() + 1, [&](unsigned grid) {
      begin_blocks<<<grid, block, 0, stream_>>>(section.blocks(), count, begin.data(), place.data(),
                                                section.exception_begin.data());
    });
    if (kind == explicit_kind) place_values(section, begin, place);
    executor_.synchronize(); // the temporary arrays are freed on return
  }

  void number_patterns_of(Section &section, const std::int32_t *listed, const std::int64_t *begin, std::int64_t rows,
                          std::int64_t exceptions, Array<std::int32_t> &key_row, Array<std::int32_t> &pattern_of_key) {
    const std::int64_t   count = section.slices.size(), keys = count + exceptions;
    Array<std::uint64_t> hash(executor_, keys), sorted_hash(executor_, keys);
    Array<std::int64_t>  number(executor_, keys), sorted(executor_, keys);
    launch(count, [&](unsigned grid) {
      list_keys<<<grid, block, 0, stream_>>>(listed, count, grid_.shift, votes_.hash.data(), votes_.rows.data(),
                                             votes_.row_hash.data(), rows, begin, section.slices.data(),
                                             Keys{hash.data(), key_row.data(), number.data()});
    });
    algorithms_.sort_pairs(hash.data(), sorted_hash.data(), number.data(), sorted.data(), keys);
    Array<std::int64_t> run_length(executor_, keys);
    const std::int64_t  runs = algorithms_.run_lengths(sorted_hash.data(), hash.data(), run_length.data(), keys);
    Array<std::int64_t> run_begin(executor_, runs), kept(executor_, runs + 1);
    algorithms_.exclusive_sum(run_length.data(), run_begin.data(), runs);
    launch(runs + 1, [&](unsigned grid) {
      choose_patterns<<<grid, block, 0, stream_>>>(run_begin.data(), run_length.data(), sorted.data(), hash.data(), runs, count,
                                                   kept.data());
    });
    algorithms_.exclusive_sum(kept.data(), kept.data(), runs + 1);
    section.patterns = Array<Pattern>(executor_, algorithms_.read(kept.data() + runs));
    launch(keys, [&](unsigned grid) {
      number_patterns<<<grid, block, 0, stream_>>>(run_begin.data(), kept.data(), runs, sorted.data(), keys, key_row.data(),
                                                   pattern_of_key.data(), section.patterns.data());
    });
    executor_.synchronize(); // the temporary arrays are freed on return
  }

  template <class Offset> void write_dictionary(const Rows<Offset> &a, Kind kind, Section &section) {
    const std::int64_t  count = section.patterns.size();
    Array<std::int64_t> first(executor_, count + 1);
    launch(count + 1, [&](unsigned grid) {
      measure_patterns<<<grid, block, 0, stream_>>>(a, count, section.patterns.data(), first.data());
    });
    algorithms_.exclusive_sum(first.data(), first.data(), count + 1);
    const std::int64_t segments = algorithms_.read(first.data() + count);
    if (kind == constant_kind)
      section.constant_segments = Array<ConstantSegment>(executor_, segments);
    else
      section.segments = Array<Segment>(executor_, segments);
    launch(count, [&](unsigned grid) {
      write_patterns<<<grid, block, 0, stream_>>>(a, count, first.data(), section.patterns.data(), section.segments.data(),
                                                  section.constant_segments.data());
    });
    executor_.synchronize(); // `first` is freed on return
  }

  void place_values(Section &section, const Array<std::int64_t> &begin, const Array<std::int64_t> &place) {
    const std::int64_t count = section.slices.size();
    section.value_begin = Array<std::int64_t>(executor_, count + 1);
    section.exception_values = Array<std::int64_t>(executor_, section.exceptions.size());
    launch(count + 1, [&](unsigned grid) {
      count_values<<<grid, block, 0, stream_>>>(section.slices.data(), count, section.patterns.data(), begin.data(),
                                                place.data(), section.exceptions.data(), section.value_begin.data());
    });
    algorithms_.exclusive_sum(section.value_begin.data(), section.value_begin.data(), count + 1);
    section.values = Array<double>(executor_, algorithms_.read(section.value_begin.data() + count));
    launch(count, [&](unsigned grid) {
      place_exception_values<<<grid, block, 0, stream_>>>(section.slices.data(), count, begin.data(), place.data(),
                                                          section.exceptions.data(), section.value_begin.data(),
                                                          section.exception_values.data());
    });
  }

  template <class Offset> void build_remainder(const Rows<Offset> &a) {
    csr::DeviceArrays  &to = matrix_.remainder;
    Array<std::int32_t> listed(executor_, a.count);
    to.rows = algorithms_.select_numbers(listed.data(), a.count, IsMarked{in_remainder_.data()});
    to.columns_count = matrix_.csr.columns_count;
    to.wide = matrix_.csr.wide;
    if (to.rows == 0) return;
    matrix_.remainder_rows = Array<std::int32_t>(executor_, to.rows);
    executor_.copy(matrix_.remainder_rows.data(), MemorySpace::cuda, listed.data(), MemorySpace::cuda,
                   static_cast<std::size_t>(matrix_.remainder_rows.bytes()));
    Array<std::int64_t> begin(executor_, to.rows + 1);
    launch(to.rows + 1, [&](unsigned grid) {
      measure_remainder<<<grid, block, 0, stream_>>>(a.offsets, listed.data(), to.rows, begin.data());
    });
    algorithms_.exclusive_sum(begin.data(), begin.data(), to.rows + 1);
    to.nonzeros = algorithms_.read(begin.data() + to.rows);
    const auto write_offsets = [&](auto &offsets) {
      launch(to.rows + 1,
             [&](unsigned grid) { narrow<<<grid, block, 0, stream_>>>(begin.data(), offsets.data(), to.rows + 1); });
    };
    if (to.wide)
      write_offsets(to.wide_offsets = Array<std::int64_t>(executor_, to.rows + 1));
    else
      write_offsets(to.narrow_offsets = Array<std::int32_t>(executor_, to.rows + 1));
    to.columns = Array<std::int32_t>(executor_, to.nonzeros);
    to.values = Array<double>(executor_, to.nonzeros);
    launch(32 * to.rows, [&](unsigned grid) {
      copy_columns<<<grid, block, 0, stream_>>>(a, listed.data(), to.rows, begin.data(), to.columns.data());
    });
    executor_.synchronize(); // the temporary arrays are freed on return
  }

  std::int64_t count_rows(const Section &section) {
    std::vector<Slice> slices(static_cast<std::size_t>(section.slices.size()));
    executor_.copy(slices.data(), MemorySpace::host, section.slices.data(), MemorySpace::cuda,
                   static_cast<std::size_t>(section.slices.bytes()));
    std::int64_t rows = 0;
    for (const Slice &slice : slices) rows += __builtin_popcountll(slice.rows);
    return rows;
  }

  void take_census() {
    Census &census = matrix_.census;
    census.rows = matrix_.csr.rows;
    census.columns = matrix_.csr.columns_count;
    census.nonzeros = matrix_.csr.nonzeros;
    census.constant_rows = count_rows(matrix_.constant);
    census.explicit_rows = count_rows(matrix_.explicit_);
    census.exceptions = matrix_.constant.exceptions.size() + matrix_.explicit_.exceptions.size();
    census.remainder_rows = matrix_.remainder.rows;
    census.remainder_nonzeros = matrix_.remainder.nonzeros;
    census.patterns = matrix_.constant.patterns.size() + matrix_.explicit_.patterns.size();
    census.bytes = matrix_.constant.bytes() + matrix_.explicit_.bytes() + matrix_.remainder_rows.bytes() +
                   matrix_.remainder.bytes() + matrix_.remainder_product.table().bytes();
  }

  Executor           &executor_;
  Algorithms          algorithms_;
  cudaStream_t        stream_;
  Grid                grid_;
  std::int64_t        slices_ = 0;
  DeviceMatrix        matrix_;
  Votes               votes_;
  Array<std::uint8_t> in_remainder_;
};

} // namespace

DeviceMatrix build(Executor &executor, csr::DeviceArrays csr, bool allow_constant) {
  return Builder(executor, std::move(csr)).build(allow_constant);
}

} // namespace tcbound::compact
