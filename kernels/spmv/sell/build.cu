// Builds a matrix of format sell on the device: sorts the rows of each window in the ways that format.h names, measures the slices
// of each, takes the best for each window, and stores columns and values.
#include <algorithm>
#include <limits>

#include "cuda/algorithms.h"
#include "cuda/error.h"
#include "renumber.h"
#include "slice_view.h"

namespace tcbound::sell {
namespace {

constexpr int      block = 256;
constexpr unsigned all_lanes = 0xffffffffU;
constexpr int      orders = 3; // natural, by length, by pattern

unsigned grid_for(std::int64_t threads) { return static_cast<unsigned>((threads + block - 1) / block); }

__device__ std::int64_t global_index() { return blockIdx.x * static_cast<std::int64_t>(block) + threadIdx.x; }

__device__ int lane_number() { return static_cast<int>(threadIdx.x % 32); }

template <class Offset> struct Rows {
  const Offset       *offsets;
  const std::int32_t *columns;
  std::int64_t        count;
  std::int32_t        longest; // entries of a row that is not cut
  // Of a renumbered matrix: which row comes at a place, and the new numbers of columns; else null.
  const std::int32_t *order, *new_columns;

  __device__ std::int32_t at(std::int64_t place) const { return order ? order[place] : static_cast<std::int32_t>(place); }
  __device__ std::int32_t column(std::int64_t k) const { return new_columns ? new_columns[columns[k]] : columns[k]; }
  __device__ std::int64_t length(std::int64_t row) const { return static_cast<std::int64_t>(offsets[row + 1]) - offsets[row]; }
};

template <class Offset> struct IsLong {
  Rows<Offset> rows;

  __device__ bool operator()(std::int32_t row) const { return rows.length(row) > rows.longest; }
};

__device__ std::uint64_t mix(std::uint64_t hash, std::uint64_t next) {
  hash = (hash ^ next) * 0xbf58476d1ce4e5b9U;
  return hash ^ (hash >> 29);
}

// Sorting keys: the window, then the longest rows first, then, `by_pattern`, rows of a hash. Long rows come last.
template <class Offset>
__global__ void make_keys(const Rows<Offset> rows, int log2_window, bool by_pattern, std::uint64_t *keys,
                          std::int32_t *numbers) {
  const std::int64_t place = global_index();
  if (place >= rows.count) return;
  const std::int32_t  row = rows.at(place);
  const std::int64_t  length = rows.length(row);
  const std::uint64_t in_window = static_cast<std::uint64_t>(place >> log2_window) << 40;
  std::uint64_t       hash = 0;
  if (by_pattern && length <= rows.longest)
    for (std::int64_t k = rows.offsets[row], end = k + length; k < end; ++k)
      hash = mix(hash, static_cast<std::uint64_t>(rows.columns[k] - row));
  keys[place] = length > rows.longest ? in_window | 0xffffffffffU
                                      : in_window | static_cast<std::uint64_t>(0xffe - length) << 28 | hash >> 36;
  numbers[place] = row;
}

// Keys that bring a window's slices into the order of their first rows. An incomplete slice, the last, stays last.
__global__ void make_slice_keys(const std::int32_t *order, std::int64_t rows, int window_slices, std::uint64_t *keys,
                                std::int32_t *numbers, std::int64_t slices) {
  const std::int64_t s = global_index();
  if (s >= slices) return;
  const bool complete = (s + 1) * slice_rows <= rows;
  keys[s] = static_cast<std::uint64_t>(s / window_slices) << 32 |
            (complete ? static_cast<std::uint32_t>(order[s * slice_rows]) : 0xffffffffU);
  numbers[s] = static_cast<std::int32_t>(s);
}

__global__ void move_slices(const std::int32_t *from, const std::int32_t *numbers, std::int64_t rows, std::int32_t *to) {
  const std::int64_t i = global_index();
  if (i < rows) to[i] = from[static_cast<std::int64_t>(numbers[i / slice_rows]) * slice_rows + i % slice_rows];
}

// The row at a place in an order (null: the matrix's own), -1 where there is none or a long one.
template <class Offset> __device__ std::int32_t row_at(const Rows<Offset> &rows, const std::int32_t *order, std::int64_t at) {
  if (at >= rows.count) return -1;
  const std::int32_t row = order ? order[at] : rows.at(at);
  return rows.length(row) > rows.longest ? -1 : row;
}

// Whether all rows of a warp's lanes have the same distances from their row index. Those there have `steps` entries each.
template <class Offset> __device__ bool same_pattern(const Rows<Offset> &rows, std::int32_t row, int steps) {
  const unsigned     there = __ballot_sync(all_lanes, row >= 0);
  const int          leader = __ffs(static_cast<int>(there)) - 1;
  const std::int64_t begin = row < 0 ? 0 : static_cast<std::int64_t>(rows.offsets[row]);
  for (int k = 0; k < steps; k += 4) {
    bool same = true;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const std::int32_t distance = row >= 0 && k + j < steps ? rows.columns[begin + k + j] - row : 0;
      const std::int32_t wanted = __shfl_sync(all_lanes, distance, leader);
      same = same && (row < 0 || distance == wanted);
    }
    if (!__all_sync(all_lanes, same)) return false;
  }
  return true;
}

// The least and the greatest column of a warp's rows, given to all lanes. Without new numbers they are sorted in each row.
template <class Offset>
__device__ void find_span(const Rows<Offset> &rows, std::int64_t begin, std::int64_t end, std::int32_t &least,
                          std::int32_t &greatest) {
  least = std::numeric_limits<std::int32_t>::max();
  greatest = 0;
  if (rows.new_columns) {
#pragma unroll 4
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int32_t column = rows.column(k);
      least = min(least, column);
      greatest = max(greatest, column);
    }
  } else if (begin < end) {
    least = rows.columns[begin];
    greatest = rows.columns[end - 1];
  }
  least = __reduce_min_sync(all_lanes, least);
  greatest = __reduce_max_sync(all_lanes, greatest);
}

// A line of x that a load of a warp asks the first-level cache for costs as much as so many bytes of the matrix: what makes up for
// most of the differences between measured times of several orders of a matrix's rows on an H200.
constexpr int line_cost = 4;
constexpr int line_doubles = 16;

// About how many lines of x a warp's loads ask for, by a few of the steps of its rows.
template <class Offset> __device__ int count_lines(const Rows<Offset> &rows, std::int64_t begin, int length, int steps) {
  const int sampled = min(steps, 4);
  int       lines = 0;
  for (int i = 0; i < sampled; ++i) {
    const int      k = steps * i / sampled;
    const int      line = k < length ? rows.column(begin + k) / line_doubles : -1;
    const unsigned same = __match_any_sync(all_lanes, line);
    lines += __popc(__ballot_sync(all_lanes, k < length && __ffs(static_cast<int>(same)) - 1 == lane_number()));
  }
  return sampled > 0 ? lines * steps / sampled : 0;
}

// Whether the columns of each of the steps of a warp's rows span little enough.
template <class Offset> __device__ bool narrow_steps(const Rows<Offset> &rows, std::int64_t begin, int length, int steps) {
  for (int k = 0; k < steps; ++k) {
    const std::int32_t column = k < length ? rows.column(begin + k) : 0;
    const std::int32_t least = __reduce_min_sync(all_lanes, k < length ? column : std::numeric_limits<std::int32_t>::max());
    if (__reduce_max_sync(all_lanes, column) - least >= narrow_padding) return false;
  }
  return true;
}

// One warp a slice of an order: how it would be stored, and what that costs, in bytes.
template <class Offset>
__global__ void __launch_bounds__(block)
  measure_slices(const Rows<Offset> rows, const std::int32_t *order, std::int64_t count, Slice *slices, std::uint32_t *costs) {
  const std::int64_t s = global_index() / 32;
  if (s >= count) return;
  const std::int64_t at = s * slice_rows + lane_number();
  const std::int32_t row = row_at(rows, order, at);
  const int          length = row < 0 ? 0 : static_cast<int>(rows.length(row));
  const int          steps = __reduce_max_sync(all_lanes, length);
  const std::int64_t begin = row < 0 ? 0 : static_cast<std::int64_t>(rows.offsets[row]);
  std::int32_t       least, greatest;
  find_span(rows, begin, begin + length, least, greatest);
  Slice slice = {};
  slice.steps = static_cast<std::uint16_t>(steps);
  slice.permuted = __any_sync(all_lanes, row >= 0 ? row != at : at < rows.count) != 0;
  if (__all_sync(all_lanes, row < 0 || length == steps) && (steps == 0 || !rows.new_columns) &&
      same_pattern(rows, row, steps)) {
    slice.coding = Coding::pattern;
  } else if (greatest - least < narrow_padding) {
    slice.coding = Coding::narrow;
    slice.base = least;
  } else {
    slice.coding = narrow_steps(rows, begin, length, steps) ? Coding::stepped : Coding::wide;
  }
  const int lines = count_lines(rows, begin, length, steps);
  if (lane_number() != 0) return;
  slices[s] = slice;
  costs[s] = static_cast<std::uint32_t>(8 * slice_rows * steps + column_bytes(slice.coding, steps) +
                                        (slice.permuted ? 2 * slice_rows : 0) + line_cost * lines);
}

template <class T> struct Candidates {
  const T *of[orders]; // null: not one
};

// One warp a window. An order must be worth its disturbing the natural one, in which x has its best locality.
__global__ void choose_orders(const Candidates<std::uint32_t> costs, int window_slices, std::int64_t slices,
                              std::int64_t windows, std::uint8_t *choice, unsigned long long *total) {
  const std::int64_t w = global_index() / 32;
  if (w >= windows) return;
  double least = std::numeric_limits<double>::infinity(), cost = 0.0;
  int    best = 0;
  for (int o = 0; o < orders; ++o) {
    if (!costs.of[o]) continue;
    double sum = 0.0;
    for (std::int64_t s = w * window_slices + lane_number(); s < min(slices, (w + 1) * window_slices); s += 32)
      sum += costs.of[o][s];
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(all_lanes, sum, distance);
    if (sum < least) {
      least = 0.97 * sum;
      cost = sum;
      best = o;
    }
  }
  if (lane_number() != 0) return;
  choice[w] = static_cast<std::uint8_t>(best);
  atomicAdd(total, static_cast<unsigned long long>(cost));
}

// One warp a slice: takes what was measured of the order that its window has, and the places of its rows.
template <class Offset>
__global__ void __launch_bounds__(block)
  take_slices(const Rows<Offset> rows, const Candidates<Slice> measured, const Candidates<std::int32_t> order,
              const std::uint8_t *choice, int log2_window, std::int64_t count, Slice *slices, std::uint16_t *places,
              std::int32_t *lane_rows, int *permuted) {
  const std::int64_t s = global_index() / 32;
  if (s >= count) return;
  const int          o = choice[s * slice_rows >> log2_window];
  const Slice        slice = measured.of[o][s];
  const std::int64_t at = s * slice_rows + lane_number();
  const std::int32_t row = row_at(rows, order.of[o], at);
  if (lane_number() == 0) {
    slices[s] = slice;
    if (slice.permuted) *permuted = 1;
  }
  if (lane_rows)
    lane_rows[at] = row;
  else
    places[at] = static_cast<std::uint16_t>(row < 0 ? no_place : row - (at >> log2_window << log2_window));
}

// The entries of a row in the order of their new columns, so that those of neighbouring rows that are alike come at the same step. The
// order within longer rows does not matter much.
constexpr std::int64_t longest_sorted = 64;

template <class Offset>
__global__ void __launch_bounds__(block) order_entries(const Rows<Offset> rows, std::uint16_t *step_entries) {
  const std::int64_t row = global_index();
  if (row >= rows.count) return;
  const std::int64_t begin = rows.offsets[row];
  const int          length = static_cast<int>(min(rows.length(row), static_cast<std::int64_t>(rows.longest)));
  for (int k = 0; k < length; ++k) {
    int before = k;
    if (length <= longest_sorted) {
      const std::int32_t column = rows.column(begin + k);
      before = 0;
      for (int j = 0; j < length; ++j) before += rows.column(begin + j) < column;
    }
    step_entries[begin + before] = static_cast<std::uint16_t>(k);
  }
}

__device__ std::int32_t parts_of(std::int64_t length, int part) {
  return static_cast<std::int32_t>((length + part - 1) / part);
}

template <class Offset>
__global__ void count_parts(const Rows<Offset> rows, const std::int32_t *long_rows, std::int64_t count, int part,
                            std::int64_t *parts) {
  const std::int64_t i = global_index();
  if (i <= count) parts[i] = i < count ? parts_of(rows.length(long_rows[i]), part) : 0;
}

template <class Offset>
__global__ void list_parts(const Rows<Offset> rows, const std::int32_t *long_rows, std::int64_t count, int part,
                           const std::int64_t *first, Part *parts) {
  const std::int64_t i = global_index() / 32;
  if (i >= count) return;
  const std::int32_t row = long_rows[i], parts_count = parts_of(rows.length(row), part);
  const auto         from = static_cast<std::int32_t>(first[i]);
  for (std::int32_t p = lane_number(); p < parts_count; p += 32)
    parts[from + p] = {row, from, parts_count, static_cast<std::int32_t>(i)};
}

// One warp a part.
template <class Offset>
__global__ void measure_parts(const Rows<Offset> rows, const Part *parts, std::int64_t count, Slice *slices) {
  const std::int64_t i = global_index() / 32;
  if (i >= count) return;
  const Part         part = parts[i];
  const std::int64_t length = part_length(rows.length(part.row), part.count);
  const std::int64_t begin = rows.offsets[part.row] + (i - part.first) * length;
  const std::int64_t end = min(begin + length, static_cast<std::int64_t>(rows.offsets[part.row + 1]));
  const std::int64_t piece = length / 32, mine = begin + lane_number() * piece;
  std::int32_t       least, greatest;
  find_span(rows, mine, min(mine + piece, end), least, greatest);
  if (lane_number() != 0) return;
  Slice slice = {};
  slice.coding = Coding::narrow;
  if (begin < end) {
    slice.steps = static_cast<std::uint16_t>(round_up_to(2 * slice_rows, end - begin) / slice_rows);
    slice.base = least;
    if (greatest - least >= narrow_padding) slice.coding = Coding::wide;
  }
  slices[i] = slice;
}

// What a product's tables take, counted by the slices themselves.
struct Totals {
  unsigned long long slices[codings], steps[codings], permuted;
};

__global__ void count_slices(const Slice *slices, std::int64_t parts, std::int64_t count, std::int64_t *steps,
                             std::int64_t *units, Totals *totals) {
  const std::int64_t i = global_index();
  const Slice        slice = i < count ? slices[i] : Slice{};
  if (i <= count) {
    steps[i] = slice.steps;
    units[i] = column_bytes(slice.coding, slice.steps) / column_unit;
  }
  const auto add = [](unsigned long long *to, unsigned value) {
    const unsigned sum = __reduce_add_sync(all_lanes, value);
    if (lane_number() == 0 && sum > 0) atomicAdd(to, sum);
  };
  for (int c = 0; c < codings; ++c) {
    const bool has = i < count && static_cast<int>(slice.coding) == c;
    add(totals->slices + c, has && i >= parts);
    add(totals->steps + c, has ? slice.steps : 0);
  }
  add(&totals->permuted, slice.permuted);
}

__global__ void set_begins(const std::int64_t *values, const std::int64_t *columns, std::int64_t count, Slice *slices) {
  const std::int64_t i = global_index();
  if (i >= count) return;
  slices[i].values = static_cast<std::uint32_t>(values[i]);
  slices[i].columns = static_cast<std::uint32_t>(columns[i]);
}

// One warp a slice.
template <class Offset>
__global__ void __launch_bounds__(block) fill_columns(const SliceView view, const Rows<Offset> rows, std::uint8_t *to) {
  const std::int64_t i = global_index() / 32;
  if (i >= view.slice_count) return;
  const Slice   slice = view.slices[i];
  std::uint8_t *at = to + static_cast<std::int64_t>(slice.columns) * column_unit;
  auto         *words = reinterpret_cast<std::int32_t *>(at);
  auto         *distances = reinterpret_cast<std::uint16_t *>(at + distances_at(slice));
  for_entries(view, rows.offsets, static_cast<std::int32_t>(i), lane_number(),
              [&](std::int32_t row, int step, std::int64_t place, std::int64_t entry) { // the same step in all lanes
                const std::int32_t column = entry < 0 ? wide_padding : rows.column(entry);
                std::int32_t       base = slice.base;
                if (slice.coding == Coding::wide) {
                  words[place] = column;
                } else if (slice.coding == Coding::pattern) {
                  if (entry >= 0) words[step] = column - row; // what all lanes write is the same, here and below
                } else {
                  if (slice.coding == Coding::stepped)
                    words[step] = base =
                      __reduce_min_sync(all_lanes, entry < 0 ? std::numeric_limits<std::int32_t>::max() : column);
                  distances[place] = static_cast<std::uint16_t>(entry < 0 ? narrow_padding : column - base);
                }
              });
}

class Builder {
public:
  Builder(Executor &executor, csr::DeviceArrays csr, const CudaCoreConfig &config)
    : executor_(executor), algorithms_(executor), config_(config) {
    matrix_.csr = std::move(csr);
    const std::int64_t mean = matrix_.csr.nonzeros / std::max<std::int64_t>(matrix_.csr.rows, 1);
    short_rows_ = mean <= 24;
    if (config_.longest == 0) config_.longest = static_cast<int>(std::clamp<std::int64_t>(8 * mean, 128, 512));
    slices_ = (matrix_.csr.rows + slice_rows - 1) / slice_rows;
  }

  DeviceMatrix build() {
    csr::DeviceArrays &csr = matrix_.csr;
    matrix_.census.rows = csr.rows;
    matrix_.census.columns = csr.columns_count;
    matrix_.census.nonzeros = csr.nonzeros;
    if (csr.rows == 0) return std::move(matrix_);
    csr::with_offsets(csr, [&](const auto *offsets) {
      using Offset = std::decay_t<decltype(*offsets)>;
      Rows<Offset> rows = {offsets, csr.columns.data(), csr.rows, config_.longest, nullptr, nullptr};
      list_long_rows(rows);
      choose_window(rows);
      try_new_numbers(rows);
      matrix_.staged = !matrix_.census.renumbered && staged();
      allocate_columns();
      fill_columns<<<grid_for(32 * matrix_.slices.size()), block, 0, stream()>>>(view_of(matrix_), rows,
                                                                                 matrix_.columns.data());
      TCBOUND_LAUNCHED();
      executor_.synchronize(); // before the new numbers go
    });
    refill(executor_, matrix_, csr.values.data(), config_.narrow_values);
    executor_.synchronize(); // the arrays that only building needs are freed on return
    csr.columns = Array<std::int32_t>();
    csr.values = Array<double>();
    return std::move(matrix_);
  }

private:
  cudaStream_t stream() const { return algorithms_.stream(); }
  int          window() const { return 1 << matrix_.log2_window; }
  bool         staged() const { return may_be_staged(matrix_.log2_window) && 2 * matrix_.census.permuted > slices_; }

  template <class Offset> void list_long_rows(const Rows<Offset> &rows) {
    Array<std::int32_t> listed(executor_, rows.count);
    const std::int64_t  count = algorithms_.select_numbers(listed.data(), rows.count, IsLong<Offset>{rows});
    matrix_.census.long_rows = count;
    if (count == 0) return;
    Array<std::int64_t> first(executor_, count + 1);
    count_parts<<<grid_for(count + 1), block, 0, stream()>>>(rows, listed.data(), count, config_.part, first.data());
    TCBOUND_LAUNCHED();
    algorithms_.exclusive_sum(first.data(), first.data(), count + 1);
    const std::int64_t parts = algorithms_.read(first.data() + count);
    matrix_.census.parts = parts;
    matrix_.parts = Array<Part>(executor_, parts);
    matrix_.sums = Array<double>(executor_, parts);
    matrix_.arrivals = Array<std::uint32_t>(executor_, count);
    TCBOUND_CUDA(cudaMemsetAsync(matrix_.arrivals.data(), 0, static_cast<std::size_t>(matrix_.arrivals.bytes()), stream()));
    list_parts<<<grid_for(32 * count), block, 0, stream()>>>(rows, listed.data(), count, config_.part, first.data(),
                                                             matrix_.parts.data());
    TCBOUND_LAUNCHED();
    executor_.synchronize(); // before the lists go
  }

  // The rows sorted by keys.
  template <class Offset> Array<std::int32_t> sorted(const Rows<Offset> &rows, bool by_pattern) {
    Array<std::uint64_t> keys(executor_, rows.count), keys_out(executor_, rows.count);
    Array<std::int32_t>  numbers(executor_, rows.count), order(executor_, rows.count);
    make_keys<<<grid_for(rows.count), block, 0, stream()>>>(rows, matrix_.log2_window, by_pattern, keys.data(), numbers.data());
    TCBOUND_LAUNCHED();
    algorithms_.sort_pairs(keys.data(), keys_out.data(), numbers.data(), order.data(), rows.count);
    if (by_pattern) {
      make_slice_keys<<<grid_for(slices_), block, 0, stream()>>>(order.data(), rows.count, window() / slice_rows, keys.data(),
                                                                 numbers.data(), slices_);
      TCBOUND_LAUNCHED();
      Array<std::int32_t> from(executor_, slices_), moved(executor_, rows.count);
      algorithms_.sort_pairs(keys.data(), keys_out.data(), numbers.data(), from.data(), slices_);
      move_slices<<<grid_for(rows.count), block, 0, stream()>>>(order.data(), from.data(), rows.count, moved.data());
      TCBOUND_LAUNCHED();
      executor_.synchronize(); // before `from` and the order before go
      return moved;
    }
    executor_.synchronize();
    return order;
  }

  template <class Offset> void plan(const Rows<Offset> &rows) {
    const std::int64_t        parts = matrix_.parts.size(), windows = (rows.count + window() - 1) / window();
    Array<std::int32_t>       order[orders];
    Array<Slice>              measured[orders];
    Array<std::uint32_t>      costs[orders];
    Array<std::uint8_t>       choice(executor_, windows);
    Array<int>                permuted(executor_, 1);
    Array<unsigned long long> total(executor_, 1);
    TCBOUND_CUDA(cudaMemsetAsync(total.data(), 0, sizeof(unsigned long long), stream()));
    Candidates<std::int32_t>  order_of = {};
    Candidates<Slice>         measured_of = {};
    Candidates<std::uint32_t> costs_of = {};
    for (int o = 0; o < orders; ++o) {
      if (config_.order != Order::automatic && static_cast<int>(config_.order) != o + 1) continue;
      if (rows.order && o == 2 && config_.order == Order::automatic) continue; // they have no patterns
      if (o > 0) order[o] = sorted(rows, o == 2);
      measured[o] = Array<Slice>(executor_, slices_);
      costs[o] = Array<std::uint32_t>(executor_, slices_);
      measure_slices<<<grid_for(32 * slices_), block, 0, stream()>>>(rows, order[o].data(), slices_, measured[o].data(),
                                                                     costs[o].data());
      TCBOUND_LAUNCHED();
      order_of.of[o] = order[o].data();
      measured_of.of[o] = measured[o].data();
      costs_of.of[o] = costs[o].data();
    }
    choose_orders<<<grid_for(32 * windows), block, 0, stream()>>>(costs_of, window() / slice_rows, slices_, windows,
                                                                  choice.data(), total.data());
    TCBOUND_LAUNCHED();
    matrix_.slices = Array<Slice>(executor_, parts + slices_);
    if (rows.order)
      matrix_.rows = Array<std::int32_t>(executor_, slices_ * slice_rows);
    else
      matrix_.places = Array<std::uint16_t>(executor_, slices_ * slice_rows);
    TCBOUND_CUDA(cudaMemsetAsync(permuted.data(), 0, sizeof(int), stream()));
    take_slices<<<grid_for(32 * slices_), block, 0, stream()>>>(rows, measured_of, order_of, choice.data(), matrix_.log2_window,
                                                                slices_, matrix_.slices.data() + parts, matrix_.places.data(),
                                                                matrix_.rows.data(), permuted.data());
    TCBOUND_LAUNCHED();
    if (parts > 0) {
      measure_parts<<<grid_for(32 * parts), block, 0, stream()>>>(rows, matrix_.parts.data(), parts, matrix_.slices.data());
      TCBOUND_LAUNCHED();
    }
    cost_ = static_cast<double>(algorithms_.read(total.data()));
    if (!algorithms_.read(permuted.data()) || rows.order) matrix_.places = Array<std::uint16_t>();
  }

  void lay_out() {
    const std::int64_t  count = matrix_.slices.size(), parts = matrix_.parts.size();
    Array<std::int64_t> steps(executor_, count + 1), units(executor_, count + 1);
    Array<Totals>       device_totals(executor_, 1);
    TCBOUND_CUDA(cudaMemsetAsync(device_totals.data(), 0, sizeof(Totals), stream()));
    count_slices<<<grid_for(count + 1), block, 0, stream()>>>(matrix_.slices.data(), parts, count, steps.data(), units.data(),
                                                              device_totals.data());
    TCBOUND_LAUNCHED();
    algorithms_.exclusive_sum(steps.data(), steps.data(), count + 1);
    algorithms_.exclusive_sum(units.data(), units.data(), count + 1);
    set_begins<<<grid_for(count), block, 0, stream()>>>(steps.data(), units.data(), count, matrix_.slices.data());
    TCBOUND_LAUNCHED();
    const Totals       totals = algorithms_.read(device_totals.data());
    const std::int64_t all_units = algorithms_.read(units.data() + count), most = std::numeric_limits<std::uint32_t>::max();
    if (all_units > most || algorithms_.read(steps.data() + count) > most)
      throw Error(ErrorCode::unsupported, "spmv/sell/cuda_core: the matrix is too large for this format");
    column_bytes_ = all_units * column_unit;
    Census &census = matrix_.census;
    for (int c = 0; c < codings; ++c) {
      census.slices[c] = static_cast<std::int64_t>(totals.slices[c]);
      census.stored[c] = static_cast<std::int64_t>(totals.steps[c]) * slice_rows;
    }
    census.permuted = static_cast<std::int64_t>(totals.permuted);
    // refill() adds the bytes of the values.
    census.bytes = matrix_.slices.bytes() + matrix_.parts.bytes() + matrix_.sums.bytes() + matrix_.arrivals.bytes() +
                   matrix_.rows.bytes() + column_bytes_;
    if (!census.renumbered) census.bytes += census.permuted * 2 * slice_rows;
    executor_.synchronize(); // before the sums go
  }

  void allocate_columns() {
    matrix_.columns = Array<std::uint8_t>(executor_, column_bytes_);
    if (column_bytes_ > 0) // what fills up the patterns
      TCBOUND_CUDA(cudaMemsetAsync(matrix_.columns.data(), 0, static_cast<std::size_t>(column_bytes_), stream()));
  }

  // What one way to cut the matrix into slices comes to.
  struct Plan {
    Array<Slice>         slices;
    Array<std::uint16_t> places;
    Array<std::int32_t>  rows;
    Census               census;
    std::int64_t         column_bytes = 0;
    double               cost = 0.0;
    int                  log2_window = 0;
  };
  // Exchanges the matrix's plan with that one.
  void exchange(Plan &with) {
    std::swap(matrix_.slices, with.slices);
    std::swap(matrix_.places, with.places);
    std::swap(matrix_.rows, with.rows);
    std::swap(matrix_.census, with.census);
    std::swap(column_bytes_, with.column_bytes);
    std::swap(cost_, with.cost);
    std::swap(matrix_.log2_window, with.log2_window);
  }

  template <class Offset> void plan_with(const Rows<Offset> &rows, int log2_window) {
    matrix_.log2_window = log2_window;
    plan(rows);
    lay_out();
  }

  // Of short rows a block multiplies a window and puts the results in order. Larger windows fill slices up with less and have more
  // rows alike, but results that are not in order cost up to three quarters of a sector a row.
  template <class Offset> void choose_window(const Rows<Offset> &rows) {
    const int staged_window = 9, large_window = 13;
    if (config_.log2_window > 0 || !short_rows_)
      return plan_with(rows, config_.log2_window > 0 ? config_.log2_window : large_window);
    plan_with(rows, staged_window);
    if (!staged()) return;
    Plan staged_plan;
    staged_plan.census = matrix_.census;
    exchange(staged_plan);
    plan_with(rows, large_window);
    if (cost_ + 24.0 * static_cast<double>(rows.count) > staged_plan.cost) exchange(staged_plan);
  }

  // Gives rows and columns new numbers if that brings most columns that take 32 bits into 16.
  template <class Offset> void try_new_numbers(Rows<Offset> &rows) {
    const csr::DeviceArrays &a = matrix_.csr;
    const bool               always = config_.renumber == Renumber::always;
    const std::int64_t       wide = matrix_.census.stored[static_cast<int>(Coding::wide)];
    if (a.rows != a.columns_count || config_.renumber == Renumber::never) return;
    if (!always && 2 * wide < matrix_.entries()) return;
    Array<std::int32_t> order = renumber(executor_, a);
    if (order.size() == 0) return;
    new_columns_ = inverse(executor_, order);
    Rows<Offset> renumbered = rows;
    renumbered.order = order.data();
    renumbered.new_columns = new_columns_.data();
    Plan         before;
    const Census census = matrix_.census;
    const int    log2_window = matrix_.log2_window;
    exchange(before);
    matrix_.census = census;
    matrix_.census.renumbered = true;
    plan_with(renumbered, log2_window);
    if (!always && 2 * matrix_.census.stored[static_cast<int>(Coding::wide)] >= wide) return exchange(before);
    rows = renumbered;
    matrix_.renumbered_x = Array<double>(executor_, a.columns_count);
    matrix_.column_order = std::move(order);
    matrix_.step_entries = Array<std::uint16_t>(executor_, a.nonzeros);
    order_entries<<<grid_for(rows.count), block, 0, stream()>>>(rows, matrix_.step_entries.data());
    TCBOUND_LAUNCHED();
    matrix_.census.bytes += matrix_.column_order.bytes() + 2 * matrix_.renumbered_x.bytes(); // which is written and read
  }

  Executor           &executor_;
  Algorithms          algorithms_;
  CudaCoreConfig      config_;
  DeviceMatrix        matrix_;
  std::int64_t        slices_;           // that are no parts
  std::int64_t        column_bytes_ = 0; // of the matrix
  double              cost_ = 0.0;
  bool                short_rows_ = false;
  Array<std::int32_t> new_columns_;
};

} // namespace

DeviceMatrix build(Executor &executor, csr::DeviceArrays csr, const CudaCoreConfig &config) {
  return Builder(executor, std::move(csr), config).build();
}

} // namespace tcbound::sell
