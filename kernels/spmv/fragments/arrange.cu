#include "arrange.h"

#include <algorithm>
#include <limits>

#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>

#include "cuda/algorithms.h"
#include "cuda/error.h"
#include "warps.h"

namespace tcbound::fragments {
namespace {

// Rows are sorted by these: long ones first, then window by window, in each the longest first.
constexpr int          length_bits = 13;
constexpr std::int64_t longest_key = (1 << length_bits) - 1;
static_assert(max_step_count * step_slots <= longest_key);
constexpr std::int64_t most_windows = (std::int64_t(1) << (32 - length_bits)) - 2;

struct Sorting {
  int          max_steps;
  int          node;
  std::int64_t window; // in nodes

  __device__ std::int64_t longest() const { return static_cast<std::int64_t>(max_steps) * step_slots; }
  __device__ std::uint32_t key(std::int64_t row, std::int64_t entries) const {
    if (entries > longest()) return 0;
    return static_cast<std::uint32_t>(((row / window + 1) << length_bits) | (longest_key - entries));
  }
  __device__ static std::int64_t entries_of(std::uint32_t key) { return longest_key - (key & longest_key); }
  __device__ int                 class_of(std::int64_t entries) const {
                    return node == 1 ? fragments::class_of(entries, max_steps) : class_of_node(entries, max_steps);
  }
  // The least key of rows of that class in the same window.
  __device__ std::uint32_t first_of_class(std::uint32_t key, int row_class) const {
    return static_cast<std::uint32_t>((key & ~longest_key) | (longest_key - most_entries(row_class, max_steps)));
  }
};

template <class Offset>
__global__ void make_keys(const Offset *offsets, std::int64_t nodes, Sorting sorting, std::uint32_t *keys,
                          std::int32_t *numbers) {
  const std::int64_t i = thread_number(), row = i * sorting.node;
  if (i >= nodes) return;
  keys[i] = sorting.key(i, offsets[row + 1] - offsets[row]);
  numbers[i] = static_cast<std::int32_t>(i);
}

// How many groups start with each of the sorted nodes.
template <class Offset>
__global__ void count_groups(const Offset *offsets, const std::int32_t *sorted_nodes, const std::uint32_t *keys,
                             std::int64_t nodes, Sorting sorting, std::int32_t *begin, std::int64_t *long_rows) {
  const std::int64_t p = thread_number();
  if (p > nodes) return;
  std::int32_t groups = 0;
  if (p < nodes && keys[p] == 0) { // of a row, as nodes are not long
    const std::int32_t row = sorted_nodes[p];
    groups = static_cast<std::int32_t>((offsets[row + 1] - offsets[row] + sorting.longest() - 1) / sorting.longest());
    if (p + 1 == nodes || keys[p + 1] != 0) *long_rows = p + 1;
  } else if (p < nodes) {
    const int            row_class = sorting.class_of(Sorting::entries_of(keys[p]));
    const std::uint32_t *first = thrust::lower_bound(thrust::seq, keys, keys + p, sorting.first_of_class(keys[p], row_class));
    groups = (p - (first - keys)) % nodes_of(row_class, sorting.node) == 0;
  }
  begin[p] = groups;
}

__global__ void place_groups(const std::int32_t *begin, std::int64_t nodes, std::int32_t *first_node) {
  const std::int64_t p = thread_number();
  if (p > nodes) return;
  if (p == nodes)
    first_node[begin[nodes]] = static_cast<std::int32_t>(nodes);
  else
    for (std::int32_t g = begin[p]; g < begin[p + 1]; ++g) first_node[g] = static_cast<std::int32_t>(p);
}

struct DeviceCounts {
  unsigned long long groups[3][max_step_count + 1];
  unsigned long long wide_groups, medium_groups, listed_nodes;
  int                too_long; // whether a row is too long to be in a ragged group
  std::int64_t       units;    // of data
};

// One warp a group: its record but for `at`, and its size in units.
template <class Offset>
__global__ void __launch_bounds__(block)
  measure_groups(const Offset *offsets, const std::int32_t *columns, const std::int32_t *sorted_nodes,
                 const std::int32_t *begin, const std::int32_t *first_node, std::int64_t long_rows, std::int64_t group_count,
                 Sorting sorting, bool always_wide, int width, Group *groups, std::int64_t *sizes) {
  const std::int64_t g = thread_number() / warp_lanes;
  if (g > group_count) return;
  if (g == group_count) {
    if (lane_number() == 0) sizes[g] = 0;
    return;
  }
  const int          node = sorting.node;
  const std::int32_t p = first_node[g], first = sorted_nodes[p];
  const bool         part = p < long_rows;
  const std::int64_t skipped = part ? (g - begin[p]) * sorting.longest() : 0, row = static_cast<std::int64_t>(first) * node;
  const std::int64_t left = offsets[row + 1] - offsets[row] - skipped, most = sorting.longest();
  const std::int64_t entries = left < most ? left : most;
  const int          nodes = part ? 1 : first_node[g + 1] - p;
  std::int32_t       least = std::numeric_limits<std::int32_t>::max(), greatest = -1;
  bool               in_order = !part;
  for (int n = lane_number(); n < nodes; n += warp_lanes) {
    const std::int64_t at = static_cast<std::int64_t>(sorted_nodes[p + n]) * node;
    const std::int64_t from = offsets[at] + skipped, to = part ? from + entries : static_cast<std::int64_t>(offsets[at + 1]);
    in_order = in_order && sorted_nodes[p + n] == first + n;
    if (from == to) continue;
    least = min(least, columns[from]);
    greatest = max(greatest, columns[to - 1]);
  }
  least = __reduce_min_sync(all_lanes, least);
  greatest = __reduce_max_sync(all_lanes, greatest);
  in_order = __all_sync(all_lanes, in_order);
  if (lane_number() != 0) return;
  Group group{};
  group.node = node - 1;
  group.row_class = part ? longest_class : sorting.class_of(entries);
  const int slots = 1 << group.row_class, of_lane = node == 1 ? slots_of_lane(group.row_class) : 1;
  group.steps = static_cast<std::uint64_t>((entries + slots - 1) / slots);
  if (group.steps > 0) {
    const std::int64_t last = entries - (static_cast<std::int64_t>(group.steps) - 1) * slots;
    group.lanes = static_cast<std::uint64_t>((last + of_lane - 1) / of_lane);
    group.wide = always_wide || greatest - least >= no_narrow_column;
    group.base = group.wide ? 0 : least;
  }
  group.in_order = in_order;
  group.rows = part ? 0 : nodes * node;
  group.row = in_order ? static_cast<std::int32_t>(row) : p;
  groups[g] = group;
  sizes[g] = bytes_of(group, stored_lanes(group, node), width) / unit;
}

// The same for ragged groups, whose rows it also sorts, `window` of them by themselves: a thread a row.
template <class Offset>
__global__ void __launch_bounds__(ragged_window)
  measure_ragged(const Offset *offsets, const std::int32_t *columns, std::int64_t rows, std::int64_t group_count, int window,
                 int most_entries, bool always_wide, int width, std::uint8_t *places, Group *groups, RaggedLengths *all_lengths,
                 std::int64_t *sizes, DeviceCounts *counts) {
  __shared__ int     lengths[ragged_window];
  __shared__ int     sorted[ragged_window]; // row of the block at each place
  const std::int64_t first = blockIdx.x * static_cast<std::int64_t>(ragged_window);
  const int          own = static_cast<int>(threadIdx.x), lane = lane_number();
  {
    const std::int64_t row = first + own, size = row < rows ? static_cast<std::int64_t>(offsets[row + 1] - offsets[row]) : -1;
    if (size > most_entries) counts->too_long = 1; // what comes of it is not used
    lengths[own] = static_cast<int>(size > most_entries ? most_entries : size);
  }
  __syncthreads();
  int place = own / window * window;
  for (int other = place, end = place + window; other < end; ++other)
    place += lengths[other] > lengths[own] || (lengths[other] == lengths[own] && other < own);
  sorted[place] = own;
  __syncthreads();
  const std::int64_t  at = first + own, row = first + sorted[own], g = at / ragged_rows;
  const bool          exists = at < rows;
  const int           length = lengths[sorted[own]];
  const std::int64_t  begin = exists ? static_cast<std::int64_t>(offsets[row]) : 0;
  const RaggedLengths mine = own % 4 == 0 && exists ? static_cast<RaggedLengths>(length) << 8 * (lane / 4) : 0;
  const unsigned      low = __reduce_or_sync(all_lanes, static_cast<unsigned>(mine)),
                 high = __reduce_or_sync(all_lanes, static_cast<unsigned>(mine >> 32));
  const std::int32_t least =
    __reduce_min_sync(all_lanes, length > 0 ? columns[begin] : std::numeric_limits<std::int32_t>::max());
  const std::int32_t greatest = __reduce_max_sync(all_lanes, length > 0 ? columns[begin + length - 1] : -1);
  const int          longest = __reduce_max_sync(all_lanes, length);
  const int          of_column = always_wide ? 4 : ragged_column_bytes(static_cast<std::int64_t>(greatest) - least, window);
  const bool         in_order = __all_sync(all_lanes, !exists || sorted[own] == own);
  if (exists) places[at] = static_cast<std::uint8_t>(sorted[own] % window);
  if (lane != 0 || g >= group_count) return;
  const RaggedLengths together = static_cast<RaggedLengths>(high) << 32 | low;
  Group               group{};
  group.row_class = ragged_class;
  group.steps = static_cast<std::uint64_t>((longest + 3) / 4);
  group.lanes = static_cast<std::uint64_t>(of_column);
  group.wide = of_column == 4;
  group.base = group.wide || longest <= 0 ? 0 : least;
  group.in_order = in_order;
  group.rows = static_cast<std::uint64_t>(rows - at < ragged_rows ? rows - at : ragged_rows);
  group.row = static_cast<std::int32_t>(at); // a row and a place in the table of places
  groups[g] = group;
  all_lengths[g] = together;
  const int lanes = ragged_lanes(together, static_cast<int>(group.steps));
  sizes[g] = RaggedPlan{window, lanes, of_column, width}.end() / unit;
}

// First each block for itself: many groups are alike.
__global__ void __launch_bounds__(block)
  count_kinds(const Group *groups, bool ragged, std::int64_t count, DeviceCounts *counts) {
  constexpr int       kinds = 3 * (max_step_count + 1);
  __shared__ unsigned of_kind[kinds];
  unsigned            wide = 0, medium = 0, listed = 0;
  for (int i = static_cast<int>(threadIdx.x); i < kinds; i += block) of_kind[i] = 0;
  __syncthreads();
  for (std::int64_t g = thread_number(); g < count; g += gridDim.x * static_cast<std::int64_t>(block)) {
    const Group group = groups[g];
    atomicAdd(of_kind + (group.row_class < 2 ? group.row_class : 2) * (max_step_count + 1) + group.steps, 1U);
    wide += group.wide;
    medium += ragged && group.lanes == 3;
    if (!group.in_order) listed += group.rows == 0 ? 1 : group.rows / node_of(group); // a part's row is listed
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kinds; i += block)
    if (of_kind[i] > 0) atomicAdd(&counts->groups[0][0] + i, static_cast<unsigned long long>(of_kind[i]));
  wide = __reduce_add_sync(all_lanes, wide);
  medium = __reduce_add_sync(all_lanes, medium);
  listed = __reduce_add_sync(all_lanes, listed);
  if (lane_number() != 0) return;
  if (wide > 0) atomicAdd(&counts->wide_groups, static_cast<unsigned long long>(wide));
  if (medium > 0) atomicAdd(&counts->medium_groups, static_cast<unsigned long long>(medium));
  if (listed > 0) atomicAdd(&counts->listed_nodes, static_cast<unsigned long long>(listed));
}

// Of some rows, their entries and those of them that are near the diagonal of a matrix with `slope` columns for a row.
struct NearCounts {
  unsigned long long entries, near;
};

// One warp a row: the rows `distance` apart.
template <class Offset>
__global__ void __launch_bounds__(block) count_near(const Offset *offsets, const std::int32_t *columns, std::int64_t rows,
                                                    std::int64_t distance, double slope, NearCounts *counts) {
  const std::int64_t row = thread_number() / warp_lanes * distance;
  if (row >= rows) return;
  const std::int64_t begin = offsets[row], end = offsets[row + 1];
  const double       place = slope * static_cast<double>(row);
  unsigned           near = 0;
  for (std::int64_t k = begin + lane_number(); k < end; k += warp_lanes) near += fabs(columns[k] - place) < no_narrow_column;
  near = __reduce_add_sync(all_lanes, near);
  if (lane_number() != 0 || begin == end) return;
  atomicAdd(&counts->entries, static_cast<unsigned long long>(end - begin));
  if (near > 0) atomicAdd(&counts->near, static_cast<unsigned long long>(near));
}

// Whether most entries of some tens of thousands of rows are near the diagonal.
bool is_near_diagonal(Algorithms &algorithms, Executor &executor, const DeviceMatrix &m, const std::int32_t *columns) {
  const std::int64_t distance = m.rows / 32768 + 1, sampled = (m.rows + distance - 1) / distance;
  const double       slope = static_cast<double>(m.columns_count) / static_cast<double>(m.rows);
  Array<NearCounts>  counts(executor, 1);
  TCBOUND_CUDA(cudaMemsetAsync(counts.data(), 0, sizeof(NearCounts), algorithms.stream()));
  csr::with_offsets(m.offsets, [&](const auto *offsets) {
    count_near<<<grid_for(sampled * warp_lanes), block, 0, algorithms.stream()>>>(offsets, columns, m.rows, distance, slope,
                                                                                  counts.data());
    TCBOUND_LAUNCHED();
  });
  const NearCounts found = algorithms.read(counts.data());
  return 2 * found.near > found.entries;
}

// Sorted nodes and where the groups of each begin; returns how many groups there are.
std::int64_t sort_nodes(Algorithms &algorithms, Executor &executor, DeviceMatrix &m, const Sorting &sorting, std::int64_t nodes,
                        Array<std::int32_t> &begin) {
  Array<std::uint32_t> keys(executor, nodes), sorted_keys(executor, nodes);
  Array<std::int32_t>  numbers(executor, nodes);
  Array<std::int64_t>  long_rows(executor, 1);
  const int            bits = length_bits + bits_of((nodes - 1) / sorting.window + 1);
  m.sorted_nodes = Array<std::int32_t>(executor, nodes);
  TCBOUND_CUDA(cudaMemsetAsync(long_rows.data(), 0, sizeof(std::int64_t), algorithms.stream()));
  csr::with_offsets(m.offsets, [&](const auto *offsets) {
    make_keys<<<grid_for(nodes), block, 0, algorithms.stream()>>>(offsets, nodes, sorting, keys.data(), numbers.data());
    TCBOUND_LAUNCHED();
    algorithms.sort_pairs(keys.data(), sorted_keys.data(), numbers.data(), m.sorted_nodes.data(), nodes, bits);
    count_groups<<<grid_for(nodes + 1), block, 0, algorithms.stream()>>>(offsets, m.sorted_nodes.data(), sorted_keys.data(),
                                                                         nodes, sorting, begin.data(), long_rows.data());
    TCBOUND_LAUNCHED();
  });
  algorithms.exclusive_sum(begin.data(), begin.data(), nodes + 1);
  const auto [found, groups] = algorithms.read_all(long_rows.data(), begin.data() + nodes);
  m.counts.long_rows = found;
  return groups;
}

void take_counts(const DeviceCounts &from, Counts &to) {
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t s = 0; s <= max_step_count; ++s) to.groups[c][s] = static_cast<std::int64_t>(from.groups[c][s]);
  to.wide_groups = static_cast<std::int64_t>(from.wide_groups);
  to.medium_groups = static_cast<std::int64_t>(from.medium_groups);
  to.listed_nodes = static_cast<std::int64_t>(from.listed_nodes);
}

// Counts groups by their kinds, and turns the sizes of their data into where it starts. Returns the units of all data, or -1 if a row is
// too long.
std::int64_t place_data(Algorithms &algorithms, Executor &executor, DeviceMatrix &m, Array<DeviceCounts> &device_counts,
                        Array<std::int64_t> &at) {
  const std::int64_t group_count = m.groups.size(),
                     resident = 2048 * static_cast<std::int64_t>(executor.device().multiprocessors);
  count_kinds<<<grid_for(std::min(group_count, resident)), block, 0, algorithms.stream()>>>(
    m.groups.data(), m.ragged_sorted > 0, group_count, device_counts.data());
  TCBOUND_LAUNCHED();
  algorithms.exclusive_sum(at.data(), at.data(), group_count + 1);
  executor.copy(&device_counts.data()->units, MemorySpace::cuda, at.data() + group_count, MemorySpace::cuda,
                sizeof(std::int64_t));
  const DeviceCounts counts = algorithms.read(device_counts.data());
  take_counts(counts, m.counts);
  return counts.too_long ? -1 : counts.units;
}

Array<DeviceCounts> no_counts(Algorithms &algorithms, Executor &executor) {
  Array<DeviceCounts> counts(executor, 1);
  TCBOUND_CUDA(cudaMemsetAsync(counts.data(), 0, sizeof(DeviceCounts), algorithms.stream()));
  return counts;
}

// Puts the nodes into groups; `begin` and `at` then tell the first group of each sorted node and where each group's data starts.
// Returns the units of all data.
std::int64_t arrange(Algorithms &algorithms, Executor &executor, DeviceMatrix &m, const std::int32_t *columns,
                     const Sorting &sorting, bool wide, Array<std::int32_t> &begin, Array<std::int64_t> &at) {
  const std::int64_t nodes = m.rows / m.node;
  begin = Array<std::int32_t>(executor, nodes + 1);
  const std::int64_t  group_count = sort_nodes(algorithms, executor, m, sorting, nodes, begin);
  Array<std::int32_t> first_node(executor, group_count + 1);
  Array<DeviceCounts> counts = no_counts(algorithms, executor);
  at = Array<std::int64_t>(executor, group_count + 1);
  m.groups = Array<Group>(executor, group_count);
  m.ragged_sorted = 0;
  m.ragged = Array<RaggedLengths>();
  m.ragged_places = Array<std::uint8_t>();
  place_groups<<<grid_for(nodes + 1), block, 0, algorithms.stream()>>>(begin.data(), nodes, first_node.data());
  TCBOUND_LAUNCHED();
  csr::with_offsets(m.offsets, [&](const auto *offsets) {
    measure_groups<<<grid_for((group_count + 1) * warp_lanes), block, 0, algorithms.stream()>>>(
      offsets, columns, m.sorted_nodes.data(), begin.data(), first_node.data(), m.counts.long_rows, group_count, sorting, wide,
      facts_of(m.arithmetic).value_bytes, m.groups.data(), at.data());
    TCBOUND_LAUNCHED();
  });
  return place_data(algorithms, executor, m, counts, at);
}

// Puts the rows into ragged groups, and returns as arrange() does: -1 if a row is too long.
std::int64_t arrange_ragged(Algorithms &algorithms, Executor &executor, DeviceMatrix &m, const std::int32_t *columns,
                            int window, bool wide, Array<std::int64_t> &at) {
  const std::int64_t  group_count = (m.rows + ragged_rows - 1) / ragged_rows;
  const int           most_entries = std::min(longest_ragged, 4 * m.max_steps);
  Array<DeviceCounts> counts = no_counts(algorithms, executor);
  at = Array<std::int64_t>(executor, group_count + 1);
  m.sorted_nodes = Array<std::int32_t>();
  m.groups = Array<Group>(executor, group_count);
  m.ragged_sorted = window;
  m.ragged_places = Array<std::uint8_t>(executor, m.rows);
  m.ragged = Array<RaggedLengths>(executor, group_count);
  TCBOUND_CUDA(cudaMemsetAsync(at.data(), 0, static_cast<std::size_t>(at.bytes()), algorithms.stream()));
  csr::with_offsets(m.offsets, [&](const auto *offsets) {
    measure_ragged<<<static_cast<unsigned>((m.rows + ragged_window - 1) / ragged_window), ragged_window, 0,
                     algorithms.stream()>>>(offsets, columns, m.rows, group_count, window, most_entries, wide,
                                            facts_of(m.arithmetic).value_bytes, m.ragged_places.data(), m.groups.data(),
                                            m.ragged.data(), at.data(), counts.data());
    TCBOUND_LAUNCHED();
  });
  m.counts.long_rows = 0;
  return place_data(algorithms, executor, m, counts, at);
}

// Whether most groups span more than 16-bit columns reach.
bool are_scattered(const DeviceMatrix &m, const Config &config) {
  return 2 * m.counts.wide_groups > m.groups.size() && !config.wide;
}

// Ragged groups, if rows suit them: the units of their data, else -1.
std::int64_t arrange_ragged(Algorithms &algorithms, Executor &executor, DeviceMatrix &m, const std::int32_t *columns,
                            const Config &config, Array<std::int64_t> &at) {
  if (m.node > 1 || config.ragged == Config::Ragged::never) return -1;
  std::int64_t units = arrange_ragged(algorithms, executor, m, columns, ragged_rows, config.wide, at);
  if (units < 0) return -1;
  const bool scattered = are_scattered(m, config);
  if (scattered && !is_near_diagonal(algorithms, executor, m, columns))
    units = arrange_ragged(algorithms, executor, m, columns, ragged_window, config.wide, at);
  const std::int64_t most_slots = (scattered ? 4 : 2) * m.nonzeros; // of steps, stored or not
  return m.counts.steps() * step_slots <= most_slots || config.ragged == Config::Ragged::always ? units : -1;
}

// Rows sorted by length within windows, which keep together rows that read neighbouring parts of x; or, where there are none, over all
// rows, which fills groups better and brings rows of a kind together.
std::int64_t arrange_even(Algorithms &algorithms, Executor &executor, DeviceMatrix &m, const std::int32_t *columns,
                          const Config &config, Array<std::int32_t> &begin, Array<std::int64_t> &at) {
  const std::int64_t nodes = m.rows / m.node, siblings = m.siblings;
  const auto         by = [&](std::int64_t window) {
    const std::int64_t least = nodes / most_windows + 1, whole = (std::max(window, least) + siblings - 1) / siblings * siblings;
    return arrange(algorithms, executor, m, columns, {m.max_steps, m.node, whole}, config.wide, begin, at);
  };
  const std::int64_t window = config.window / m.node, units = by(window);
  const bool         all = are_scattered(m, config) && window < nodes && !is_near_diagonal(algorithms, executor, m, columns);
  return all ? by(nodes) : units;
}

} // namespace

Arrangement arrange(Algorithms &algorithms, Executor &executor, DeviceMatrix &m, const std::int32_t *columns,
                    const Config &config) {
  Arrangement to;
  to.units = arrange_ragged(algorithms, executor, m, columns, config, to.at);
  if (to.units < 0) to.units = arrange_even(algorithms, executor, m, columns, config, to.begin, to.at);
  return to;
}

} // namespace tcbound::fragments
