// Decides which rows come into which slice.
#include "plan.h"

#include <algorithm>
#include <limits>

#include "cuda/algorithms.h"
#include "cuda/error.h"
#include "rows.h"

namespace tcbound::sell {
namespace {

constexpr int orders = 3; // natural, by length, by pattern

constexpr int hash_bits = 24;

__device__ std::uint64_t mix(std::uint64_t hash, std::uint64_t next) {
  hash = (hash ^ next) * 0xbf58476d1ce4e5b9U;
  return hash ^ (hash >> 29);
}

// Sorting keys: the window, then the longest rows first, then, `by_pattern`, rows of a hash. Long rows come last. length_bits: of
// numbers up to rows.longest + 1.
template <class Offset>
__global__ void make_keys(const Rows<Offset> rows, int log2_window, int length_bits, bool by_pattern, std::uint64_t *keys,
                          std::int32_t *numbers) {
  const std::int64_t row = global_index();
  if (row >= rows.count) return;
  const std::int64_t length = rows.length(row), window = row >> log2_window;
  const bool         is_long = length > rows.longest;
  std::uint64_t      hash = 0;
  if (by_pattern && !is_long)
    for (std::int64_t k = rows.offsets[row], end = k + length; k < end; ++k)
      hash = mix(hash, static_cast<std::uint64_t>(rows.columns[k] - row));
  const auto key = static_cast<std::uint64_t>(window << length_bits | (is_long ? rows.longest + 1 : rows.longest - length));
  keys[row] = by_pattern ? key << hash_bits | hash >> (64 - hash_bits) : key;
  numbers[row] = static_cast<std::int32_t>(row);
}

// Keys that bring a window's slices into the order of their first rows. An incomplete slice, the last, stays last.
__global__ void make_slice_keys(const std::int32_t *order, std::int64_t rows, std::uint32_t *keys, std::int32_t *numbers,
                                std::int64_t slices) {
  const std::int64_t s = global_index();
  if (s >= slices) return;
  const bool complete = (s + 1) * slice_rows <= rows;
  keys[s] = complete ? static_cast<std::uint32_t>(order[s * slice_rows]) : static_cast<std::uint32_t>(rows);
  numbers[s] = static_cast<std::int32_t>(s);
}

__global__ void move_slices(const std::int32_t *from, const std::int32_t *numbers, std::int64_t rows, std::int32_t *to) {
  const std::int64_t i = global_index();
  if (i < rows) to[i] = from[static_cast<std::int64_t>(numbers[i / slice_rows]) * slice_rows + i % slice_rows];
}

// The row at a place in an order (null: the matrix's own), -1 where there is none or a long one.
template <class Offset> __device__ std::int32_t row_at(const Rows<Offset> &rows, const std::int32_t *order, std::int64_t at) {
  if (at >= rows.count) return -1;
  const std::int32_t row = order ? order[at] : static_cast<std::int32_t>(at);
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

// The least and the greatest column of a warp's rows, given to all lanes.
template <class Offset>
__device__ void find_span(const Rows<Offset> &rows, std::int64_t begin, int length, std::int32_t &least,
                          std::int32_t &greatest) {
  least = std::numeric_limits<std::int32_t>::max();
  greatest = 0;
  for (int k = 0; k < length; k += length <= rows.sorted ? max(length - 1, 1) : 1) {
    const std::int32_t column = rows.columns[begin + k];
    least = min(least, column);
    greatest = max(greatest, column);
  }
  least = __reduce_min_sync(all_lanes, least);
  greatest = __reduce_max_sync(all_lanes, greatest);
}

// A line of x that a load of a warp asks the first-level cache for costs as much as so many bytes of the matrix: what makes up for
// most of the differences between measured times of several orders of a matrix's rows on an H200.
constexpr int line_cost = 4;
// And a result that does not go out with its neighbours, as much as the rest of its sector of memory.
constexpr int scatter_cost = 24;
constexpr int line_doubles = 16;

// About how many lines of x a warp's loads ask for, by a few of the steps of its rows.
template <class Offset> __device__ int count_lines(const Rows<Offset> &rows, std::int64_t begin, int length, int steps) {
  const int sampled = min(steps, 4);
  int       lines = 0;
  for (int i = 0; i < sampled; ++i) {
    const int      k = steps * i / sampled;
    const int      line = k < length ? rows.columns[begin + k] / line_doubles : -1;
    const unsigned same = __match_any_sync(all_lanes, line);
    lines += __popc(__ballot_sync(all_lanes, k < length && __ffs(static_cast<int>(same)) - 1 == lane_number()));
  }
  return sampled > 0 ? lines * steps / sampled : 0;
}

// Whether the columns of each of the steps of a warp's rows span little enough.
template <class Offset> __device__ bool narrow_steps(const Rows<Offset> &rows, std::int64_t begin, int length, int steps) {
  for (int k = 0; k < steps; ++k) {
    const std::int32_t column = k < length ? rows.columns[begin + k] : 0;
    const std::int32_t least = __reduce_min_sync(all_lanes, k < length ? column : std::numeric_limits<std::int32_t>::max());
    if (__reduce_max_sync(all_lanes, column) - least >= narrow_padding) return false;
  }
  return true;
}

// One warp a slice of an order: how it would be stored, and what that costs, in bytes.
template <class Offset>
__global__ void __launch_bounds__(block) measure_slices(const Rows<Offset> rows, const std::int32_t *order, bool renumbered,
                                                        std::int64_t count, Slice *slices, std::uint32_t *costs) {
  const std::int64_t s = global_index() / 32;
  if (s >= count) return;
  const std::int64_t at = s * slice_rows + lane_number();
  const std::int32_t row = row_at(rows, order, at);
  const int          length = row < 0 ? 0 : static_cast<int>(rows.length(row));
  const int          steps = __reduce_max_sync(all_lanes, length);
  const std::int64_t begin = row < 0 ? 0 : static_cast<std::int64_t>(rows.offsets[row]);
  std::int32_t       least, greatest;
  find_span(rows, begin, length, least, greatest);
  Slice slice = {};
  slice.steps = static_cast<std::uint16_t>(steps);
  slice.permuted = renumbered || __any_sync(all_lanes, row >= 0 ? row != at : at < rows.count) != 0;
  // Distances are those of rows and columns without new numbers.
  if (__all_sync(all_lanes, row < 0 || length == steps) && (steps == 0 || !renumbered) && same_pattern(rows, row, steps)) {
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
                                        (slice.permuted ? (2 + scatter_cost) * slice_rows : 0) + line_cost * lines);
}

template <class T> struct Candidates {
  const T *of[orders]; // null: not one
};

// One warp a window. An order must be worth its disturbing the natural one, in which x has its best locality.
__global__ void choose_orders(const Candidates<std::uint32_t> costs, int window_slices, std::int64_t slices,
                              std::int64_t windows, std::uint8_t *choice) {
  const std::int64_t w = global_index() / 32;
  if (w >= windows) return;
  double least = std::numeric_limits<double>::infinity();
  int    best = 0;
  for (int o = 0; o < orders; ++o) {
    if (!costs.of[o]) continue;
    double sum = 0.0;
    for (std::int64_t s = w * window_slices + lane_number(); s < min(slices, (w + 1) * window_slices); s += 32)
      sum += costs.of[o][s];
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(all_lanes, sum, distance);
    if (sum < least) {
      least = 0.97 * sum;
      best = o;
    }
  }
  if (lane_number() == 0) choice[w] = static_cast<std::uint8_t>(best);
}

// One warp a slice: takes what was measured of the order that its window has, and the places of its rows. row_numbers: of a renumbered
// matrix's rows.
template <class Offset>
__global__ void __launch_bounds__(block)
  take_slices(const Rows<Offset> rows, const Candidates<Slice> measured, const Candidates<std::int32_t> order,
              const std::uint8_t *choice, int log2_window, std::int64_t count, const std::int32_t *row_numbers, Slice *slices,
              std::uint16_t *places, std::int32_t *lane_rows) {
  const std::int64_t s = global_index() / 32;
  if (s >= count) return;
  const int          o = choice[s * slice_rows >> log2_window];
  const std::int64_t at = s * slice_rows + lane_number();
  const std::int32_t row = row_at(rows, order.of[o], at);
  if (lane_number() == 0) slices[s] = measured.of[o][s];
  if (lane_rows)
    lane_rows[at] = row < 0 ? -1 : row_numbers[row];
  else
    places[at] = static_cast<std::uint16_t>(row < 0 ? no_place : row - (at >> log2_window << log2_window));
}

template <class Offset> class Planner {
public:
  Planner(Executor &executor, const Rows<Offset> &rows, const CudaCoreConfig &config)
    : executor_(executor), algorithms_(executor), rows_(rows), config_(config),
      slices_((rows.count + slice_rows - 1) / slice_rows), windows_((rows.count + window() - 1) / window()) {}

  Plan plan(const Renumbered *renumbered, std::int64_t parts) {
    Plan                      plan;
    Array<std::int32_t>       order[orders];
    Array<Slice>              measured[orders];
    Array<std::uint32_t>      costs[orders];
    Array<std::uint8_t>       choice(executor_, windows_);
    Candidates<std::int32_t>  order_of = {};
    Candidates<Slice>         measured_of = {};
    Candidates<std::uint32_t> costs_of = {};
    for (int o = 0; o < orders; ++o) {
      if (config_.order != Order::automatic && static_cast<int>(config_.order) != o + 1) continue;
      if (renumbered && o == 2 && config_.order == Order::automatic) continue; // they have no patterns
      if (o > 0) order[o] = sorted(o == 2);
      measured[o] = Array<Slice>(executor_, slices_);
      costs[o] = Array<std::uint32_t>(executor_, slices_);
      measure_slices<<<grid_for(32 * slices_), block, 0, stream()>>>(rows_, order[o].data(), renumbered != nullptr, slices_,
                                                                     measured[o].data(), costs[o].data());
      TCBOUND_LAUNCHED();
      order_of.of[o] = order[o].data();
      measured_of.of[o] = measured[o].data();
      costs_of.of[o] = costs[o].data();
    }
    choose_orders<<<grid_for(32 * windows_), block, 0, stream()>>>(costs_of, window() / slice_rows, slices_, windows_,
                                                                   choice.data());
    TCBOUND_LAUNCHED();
    plan.slices = Array<Slice>(executor_, parts + slices_);
    if (renumbered)
      plan.rows = Array<std::int32_t>(executor_, slices_ * slice_rows);
    else
      plan.places = Array<std::uint16_t>(executor_, slices_ * slice_rows);
    take_slices<<<grid_for(32 * slices_), block, 0, stream()>>>(
      rows_, measured_of, order_of, choice.data(), config_.log2_window, slices_,
      renumbered ? renumbered->order.data() : nullptr, plan.slices.data() + parts, plan.places.data(), plan.rows.data());
    TCBOUND_LAUNCHED();
    return plan;
  }

private:
  cudaStream_t stream() const { return algorithms_.stream(); }
  std::int64_t window() const { return std::int64_t(1) << config_.log2_window; }

  // The rows sorted by keys.
  Array<std::int32_t> sorted(bool by_pattern) {
    const std::int64_t   count = rows_.count;
    const int            length_bits = bits_of(rows_.longest + 1);
    const int            bits = bits_of(windows_ - 1) + length_bits + (by_pattern ? hash_bits : 0);
    Array<std::uint64_t> keys(executor_, count), keys_out(executor_, count);
    Array<std::int32_t>  numbers(executor_, count), order(executor_, count);
    make_keys<<<grid_for(count), block, 0, stream()>>>(rows_, config_.log2_window, length_bits, by_pattern, keys.data(),
                                                       numbers.data());
    TCBOUND_LAUNCHED();
    algorithms_.sort_pairs(keys.data(), keys_out.data(), numbers.data(), order.data(), count, bits);
    if (!by_pattern) return order;
    Array<std::uint32_t> slice_keys(executor_, slices_), slice_keys_out(executor_, slices_);
    Array<std::int32_t>  slice_numbers(executor_, slices_), from(executor_, slices_), moved(executor_, count);
    make_slice_keys<<<grid_for(slices_), block, 0, stream()>>>(order.data(), count, slice_keys.data(), slice_numbers.data(),
                                                               slices_);
    TCBOUND_LAUNCHED();
    algorithms_.sort_pairs(slice_keys.data(), slice_keys_out.data(), slice_numbers.data(), from.data(), slices_,
                           bits_of(count));
    move_slices<<<grid_for(count), block, 0, stream()>>>(order.data(), from.data(), count, moved.data());
    TCBOUND_LAUNCHED();
    return moved;
  }

  Executor             &executor_;
  Algorithms            algorithms_;
  Rows<Offset>          rows_;
  const CudaCoreConfig &config_;
  std::int64_t          slices_, windows_; // slices that are no parts
};

} // namespace

Plan make_plan(Executor &executor, const csr::DeviceArrays &a, const Renumbered *renumbered, std::int64_t parts,
               const CudaCoreConfig &config) {
  const csr::DeviceArrays &cut = renumbered ? renumbered->matrix : a;
  return csr::with_offsets(cut, [&](const auto *offsets) {
    auto rows = rows_of(cut, offsets, config.longest);
    if (renumbered) rows.sorted = most_sorted;
    return Planner(executor, rows, config).plan(renumbered, parts);
  });
}

} // namespace tcbound::sell
