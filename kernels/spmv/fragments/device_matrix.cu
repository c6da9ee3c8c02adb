// Brings a CSR into the order of layout.h, gives it new values, and takes it back to CSR.
#include "device_matrix.h"

#include <algorithm>
#include <limits>

#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>

#include "cuda/algorithms.h"
#include "cuda/error.h"
#include "slots.h"

namespace tcbound::fragments {
namespace {

constexpr int      block = 128;
constexpr unsigned all_lanes = 0xffffffffU;

unsigned grid_for(std::int64_t threads) { return static_cast<unsigned>((threads + block - 1) / block); }

__device__ std::int64_t thread_number() { return blockIdx.x * static_cast<std::int64_t>(block) + threadIdx.x; }

__device__ int lane_number() { return static_cast<int>(threadIdx.x % warp_lanes); }

// Rows are sorted by these: long ones first, then window by window, in each the longest first.
constexpr int          length_bits = 13;
constexpr std::int64_t longest_key = (1 << length_bits) - 1;
static_assert(max_step_count * step_slots <= longest_key);
constexpr std::int64_t most_windows = (std::int64_t(1) << (32 - length_bits)) - 2;

struct Sorting {
  int          max_steps;
  std::int64_t window;

  __device__ std::int64_t longest() const { return static_cast<std::int64_t>(max_steps) * step_slots; }
  __device__ std::uint32_t key(std::int64_t row, std::int64_t entries) const {
    if (entries > longest()) return 0;
    return static_cast<std::uint32_t>(((row / window + 1) << length_bits) | (longest_key - entries));
  }
  __device__ static std::int64_t entries_of(std::uint32_t key) { return longest_key - (key & longest_key); }
  // The least key of rows of that class in the same window.
  __device__ std::uint32_t first_of_class(std::uint32_t key, int row_class) const {
    return static_cast<std::uint32_t>((key & ~longest_key) | (longest_key - most_entries(row_class, max_steps)));
  }
};

template <class Offset>
__global__ void make_keys(const Offset *offsets, std::int64_t rows, Sorting sorting, std::uint32_t *keys,
                          std::int32_t *numbers) {
  const std::int64_t i = thread_number();
  if (i >= rows) return;
  keys[i] = sorting.key(i, offsets[i + 1] - offsets[i]);
  numbers[i] = static_cast<std::int32_t>(i);
}

// How many groups start with each of the sorted rows.
template <class Offset>
__global__ void count_groups(const Offset *offsets, const std::int32_t *sorted_rows, const std::uint32_t *keys,
                             std::int64_t rows, Sorting sorting, std::int32_t *begin, std::int64_t *long_rows) {
  const std::int64_t p = thread_number();
  if (p > rows) return;
  std::int32_t groups = 0;
  if (p < rows && keys[p] == 0) {
    const std::int32_t row = sorted_rows[p];
    groups = static_cast<std::int32_t>((offsets[row + 1] - offsets[row] + sorting.longest() - 1) / sorting.longest());
    if (p + 1 == rows || keys[p + 1] != 0) *long_rows = p + 1;
  } else if (p < rows) {
    const int            row_class = class_of(Sorting::entries_of(keys[p]), sorting.max_steps);
    const std::uint32_t *first = thrust::lower_bound(thrust::seq, keys, keys + p, sorting.first_of_class(keys[p], row_class));
    groups = (p - (first - keys)) % rows_of(row_class) == 0;
  }
  begin[p] = groups;
}

__global__ void place_groups(const std::int32_t *begin, std::int64_t rows, std::int32_t *first_row) {
  const std::int64_t p = thread_number();
  if (p > rows) return;
  if (p == rows)
    first_row[begin[rows]] = static_cast<std::int32_t>(rows);
  else
    for (std::int32_t g = begin[p]; g < begin[p + 1]; ++g) first_row[g] = static_cast<std::int32_t>(p);
}

struct DeviceCounts {
  unsigned long long groups[3][max_step_count + 1];
  unsigned long long wide_groups, listed_rows;
};

// One warp a group: its record but for `at`, and its size in units.
template <class Offset>
__global__ void __launch_bounds__(block)
  measure_groups(const Offset *offsets, const std::int32_t *columns, const std::int32_t *sorted_rows, const std::int32_t *begin,
                 const std::int32_t *first_row, std::int64_t long_rows, std::int64_t group_count, int max_steps,
                 bool always_wide, Group *groups, std::int64_t *sizes, DeviceCounts *counts) {
  const std::int64_t g = thread_number() / warp_lanes;
  if (g > group_count) return;
  if (g == group_count) {
    if (lane_number() == 0) sizes[g] = 0;
    return;
  }
  const std::int32_t p = first_row[g], first = sorted_rows[p];
  const bool         part = p < long_rows;
  const std::int64_t longest = static_cast<std::int64_t>(max_steps) * step_slots;
  const std::int64_t skipped = part ? (g - begin[p]) * longest : 0;
  const std::int64_t left = offsets[first + 1] - offsets[first] - skipped, entries = left < longest ? left : longest;
  const int          rows = part ? 1 : first_row[g + 1] - p;
  std::int32_t       least = std::numeric_limits<std::int32_t>::max(), greatest = -1;
  bool               in_order = !part;
  for (int r = lane_number(); r < rows; r += warp_lanes) {
    const std::int32_t row = sorted_rows[p + r];
    const std::int64_t from = offsets[row] + skipped, to = part ? from + entries : static_cast<std::int64_t>(offsets[row + 1]);
    in_order = in_order && row == first + r;
    if (from == to) continue;
    least = min(least, columns[from]);
    greatest = max(greatest, columns[to - 1]);
  }
  least = __reduce_min_sync(all_lanes, least);
  greatest = __reduce_max_sync(all_lanes, greatest);
  in_order = __all_sync(all_lanes, in_order);
  if (lane_number() != 0) return;
  Group group{};
  group.row_class = part ? longest_class : class_of(entries, max_steps);
  const int slots = 1 << group.row_class;
  group.steps = static_cast<std::uint64_t>((entries + slots - 1) / slots);
  if (group.steps > 0) {
    const std::int64_t last = entries - (static_cast<std::int64_t>(group.steps) - 1) * slots;
    group.lanes = static_cast<std::uint64_t>((last + slots_of_lane(group.row_class) - 1) / slots_of_lane(group.row_class));
  }
  group.wide = always_wide || greatest - least >= no_narrow_column;
  if (group.steps == 0) group.wide = 0;
  group.in_order = in_order;
  group.rows = part ? 0 : rows;
  group.base = group.wide || group.steps == 0 ? 0 : least;
  group.row = in_order ? first : p;
  groups[g] = group;
  sizes[g] = bytes_of(group) / unit;
  atomicAdd(&counts->groups[group.row_class < 2 ? group.row_class : 2][group.steps], 1ULL);
  if (group.wide) atomicAdd(&counts->wide_groups, 1ULL);
  if (!in_order) atomicAdd(&counts->listed_rows, static_cast<unsigned long long>(rows));
}

// One warp a group.
template <bool with_columns, class Offset>
__global__ void __launch_bounds__(block)
  fill_groups(MatrixView<Offset> m, const std::int64_t *begin, const std::int32_t *columns, const double *values) {
  const std::int64_t g = thread_number() / warp_lanes;
  if (g >= m.group_count) return;
  Group group = m.groups[g];
  if (with_columns) {
    group.at = static_cast<std::uint64_t>(begin[g]);
    __syncwarp(); // all lanes have read the record
    if (lane_number() == 0) m.groups[g].at = group.at;
  }
  for_each_slot(m, g, group, lane_number(), [&](const SlotPlace &slot) {
    *slot.value = slot.entry < 0 ? 0.0 : values[slot.entry];
    if (!with_columns) return;
    if (group.wide)
      *static_cast<std::int32_t *>(slot.column) = slot.entry < 0 ? no_wide_column : columns[slot.entry];
    else
      *static_cast<std::uint16_t *>(slot.column) =
        slot.entry < 0 ? no_narrow_column : static_cast<std::uint16_t>(columns[slot.entry] - group.base);
  });
}

template <class Offset>
__global__ void __launch_bounds__(block) read_groups(MatrixView<Offset> m, std::int32_t *columns, double *values) {
  const std::int64_t g = thread_number() / warp_lanes;
  if (g >= m.group_count) return;
  const Group group = m.groups[g];
  for_each_slot(m, g, group, lane_number(), [&](const SlotPlace &slot) {
    if (slot.entry < 0) return;
    values[slot.entry] = *slot.value;
    columns[slot.entry] = column_in(group, slot.column);
  });
}

template <class Offset> __global__ void __launch_bounds__(block) find_diagonal(MatrixView<Offset> m, double *d) {
  const std::int64_t g = thread_number() / warp_lanes;
  if (g >= m.group_count) return;
  const Group group = m.groups[g];
  for_each_slot(m, g, group, lane_number(), [&](const SlotPlace &slot) {
    if (slot.entry >= 0 && column_in(group, slot.column) == slot.row) d[slot.row] = *slot.value;
  });
}

template <class Offset> MatrixView<Offset> view_of(const DeviceMatrix &m, const Offset *offsets) {
  return {const_cast<Group *>(m.groups.data()),
          m.groups.size(),
          const_cast<std::uint8_t *>(m.data.data()),
          offsets,
          m.sorted_rows.data(),
          m.long_begin.data(),
          static_cast<std::int64_t>(m.max_steps) * step_slots};
}

template <class F> void with_view(const DeviceMatrix &m, F &&f) {
  if (m.groups.size() > 0) csr::with_offsets(m.offsets, [&](const auto *offsets) { f(view_of(m, offsets)); });
}

// Sorted rows and where the groups of each begin.
void sort_rows(Algorithms &algorithms, Executor &executor, DeviceMatrix &m, const Config &config, Array<std::int32_t> &begin) {
  const Sorting        sorting{m.max_steps, std::max(config.window, m.rows / most_windows + 1)};
  Array<std::uint32_t> keys(executor, m.rows), sorted_keys(executor, m.rows);
  Array<std::int32_t>  numbers(executor, m.rows);
  Array<std::int64_t>  long_rows(executor, 1);
  m.sorted_rows = Array<std::int32_t>(executor, m.rows);
  TCBOUND_CUDA(cudaMemsetAsync(long_rows.data(), 0, sizeof(std::int64_t), algorithms.stream()));
  csr::with_offsets(m.offsets, [&](const auto *offsets) {
    make_keys<<<grid_for(m.rows), block, 0, algorithms.stream()>>>(offsets, m.rows, sorting, keys.data(), numbers.data());
    TCBOUND_LAUNCHED();
    algorithms.sort_pairs(keys.data(), sorted_keys.data(), numbers.data(), m.sorted_rows.data(), m.rows);
    count_groups<<<grid_for(m.rows + 1), block, 0, algorithms.stream()>>>(offsets, m.sorted_rows.data(), sorted_keys.data(),
                                                                          m.rows, sorting, begin.data(), long_rows.data());
    TCBOUND_LAUNCHED();
  });
  algorithms.exclusive_sum(begin.data(), begin.data(), m.rows + 1);
  m.counts.long_rows = algorithms.read(long_rows.data());
}

void take_counts(const DeviceCounts &from, Counts &to) {
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t s = 0; s <= max_step_count; ++s) to.groups[c][s] = static_cast<std::int64_t>(from.groups[c][s]);
  to.wide_groups = static_cast<std::int64_t>(from.wide_groups);
  to.listed_rows = static_cast<std::int64_t>(from.listed_rows);
}

} // namespace

std::int64_t Counts::slots() const {
  std::int64_t steps = 0;
  for (const auto &of_class : groups)
    for (std::size_t s = 0; s < of_class.size(); ++s) steps += of_class[s] * static_cast<std::int64_t>(s);
  return steps * step_slots;
}

DeviceMatrix::DeviceMatrix(Executor &executor, csr::DeviceArrays &a, const Config &config)
  : rows(a.rows), columns_count(a.columns_count), nonzeros(a.nonzeros), max_steps(config.max_steps) {
  offsets = std::move(a);
  if (rows == 0) return;
  const Array<std::int32_t> columns = std::move(offsets.columns);
  const Array<double>       values = std::move(offsets.values);
  Algorithms                algorithms(executor);
  const cudaStream_t        stream = algorithms.stream();
  Array<std::int32_t>       begin(executor, rows + 1);
  sort_rows(algorithms, executor, *this, config, begin);
  const std::int64_t  group_count = algorithms.read(begin.data() + rows);
  Array<std::int32_t> first_row(executor, group_count + 1);
  Array<std::int64_t> at(executor, group_count + 1);
  Array<DeviceCounts> device_counts(executor, 1);
  groups = Array<Group>(executor, group_count);
  TCBOUND_CUDA(cudaMemsetAsync(device_counts.data(), 0, sizeof(DeviceCounts), stream));
  place_groups<<<grid_for(rows + 1), block, 0, stream>>>(begin.data(), rows, first_row.data());
  TCBOUND_LAUNCHED();
  csr::with_offsets(offsets, [&](const auto *o) {
    measure_groups<<<grid_for((group_count + 1) * warp_lanes), block, 0, stream>>>(
      o, columns.data(), sorted_rows.data(), begin.data(), first_row.data(), counts.long_rows, group_count, max_steps,
      config.wide, groups.data(), at.data(), device_counts.data());
    TCBOUND_LAUNCHED();
  });
  algorithms.exclusive_sum(at.data(), at.data(), group_count + 1);
  take_counts(algorithms.read(device_counts.data()), counts);
  data = Array<std::uint8_t>(executor, unit * algorithms.read(at.data() + group_count));
  if (counts.long_rows > 0) {
    counts.long_parts = algorithms.read(begin.data() + counts.long_rows);
    long_begin = Array<std::int32_t>(executor, counts.long_rows + 1);
    executor.copy(long_begin.data(), MemorySpace::cuda, begin.data(), MemorySpace::cuda,
                  static_cast<std::size_t>(long_begin.bytes()));
    parts = Array<double>(executor, counts.long_parts);
    arrivals = Array<unsigned>(executor, counts.long_rows);
    TCBOUND_CUDA(cudaMemsetAsync(arrivals.data(), 0, static_cast<std::size_t>(arrivals.bytes()), stream));
  }
  with_view(*this, [&](const auto &view) {
    fill_groups<true><<<grid_for(group_count * warp_lanes), block, 0, stream>>>(view, at.data(), columns.data(), values.data());
    TCBOUND_LAUNCHED();
  });
  executor.synchronize(); // the arrays that only building needs are freed on return
}

void DeviceMatrix::refill(Executor &executor, const double *values) {
  with_view(*this, [&](const auto &view) {
    fill_groups<false><<<grid_for(groups.size() * warp_lanes), block, 0, static_cast<cudaStream_t>(executor.stream())>>>(
      view, nullptr, nullptr, values);
    TCBOUND_LAUNCHED();
  });
}

csr::DeviceArrays DeviceMatrix::recover(Executor &executor) const {
  csr::DeviceArrays a;
  a.rows = rows;
  a.columns_count = columns_count;
  a.nonzeros = nonzeros;
  a.wide = offsets.wide;
  const auto copy = [&](auto &to, const auto &from) {
    to = std::decay_t<decltype(to)>(executor, from.size());
    executor.copy(to.data(), MemorySpace::cuda, from.data(), MemorySpace::cuda, static_cast<std::size_t>(from.bytes()));
  };
  if (a.wide)
    copy(a.wide_offsets, offsets.wide_offsets);
  else
    copy(a.narrow_offsets, offsets.narrow_offsets);
  a.columns = Array<std::int32_t>(executor, nonzeros);
  a.values = Array<double>(executor, nonzeros);
  with_view(*this, [&](const auto &view) {
    read_groups<<<grid_for(groups.size() * warp_lanes), block, 0, static_cast<cudaStream_t>(executor.stream())>>>(
      view, a.columns.data(), a.values.data());
    TCBOUND_LAUNCHED();
  });
  return a;
}

void DeviceMatrix::diagonal(Executor &executor, double *d) const {
  const auto stream = static_cast<cudaStream_t>(executor.stream());
  if (rows > 0) TCBOUND_CUDA(cudaMemsetAsync(d, 0, static_cast<std::size_t>(rows) * sizeof(double), stream));
  with_view(*this, [&](const auto &view) {
    find_diagonal<<<grid_for(groups.size() * warp_lanes), block, 0, stream>>>(view, d);
    TCBOUND_LAUNCHED();
  });
}

std::int64_t DeviceMatrix::product_bytes() const {
  return data.bytes() + groups.bytes() + 4 * counts.listed_rows + long_begin.bytes() + parts.bytes() + arrivals.bytes();
}

std::int64_t DeviceMatrix::stored_bytes() const {
  return data.bytes() + groups.bytes() + sorted_rows.bytes() + offsets.bytes() + long_begin.bytes() + parts.bytes() +
         arrivals.bytes();
}

} // namespace tcbound::fragments
