#include "sharing.h"

#include <algorithm>

#include "cuda/algorithms.h"
#include "cuda/error.h"
#include "warps.h"

namespace tcbound::fragments {
namespace {

constexpr int most_alike = most_siblings * most_node;

// Of the rows that are not the first of 2, 3, ... most_alike, whether any has other columns than the row before; and the longest row.
struct NodeCounts {
  int                odd[most_alike + 1];
  unsigned long long longest;
};

// One warp a row.
template <class Offset, class Column>
__global__ void __launch_bounds__(block)
  count_odd_rows(const Offset *offsets, const Column *columns, std::int64_t rows, NodeCounts *counts) {
  const std::int64_t row = thread_number() / warp_lanes;
  if (row >= rows) return;
  const std::int64_t begin = offsets[row], size = offsets[row + 1] - begin, before = row > 0 ? offsets[row - 1] : Offset(0);
  bool               same = row > 0 && begin - before == size;
  for (std::int64_t k = lane_number(); same && k < size; k += warp_lanes) same = columns[begin + k] == columns[before + k];
  same = __all_sync(all_lanes, same);
  if (lane_number() != 0) return;
  for (int alike = 2; alike <= most_alike; ++alike)
    if (!same && row % alike != 0 && !counts->odd[alike]) counts->odd[alike] = 1;
  if (static_cast<unsigned long long>(size) > counts->longest)
    atomicMax(&counts->longest, static_cast<unsigned long long>(size));
}

Sharing sharing_of(const NodeCounts &found, std::int64_t rows, int max_steps) {
  constexpr Sharing all[] = {{4, 2}, {3, 2}, {4, 1}, {3, 1}, {2, 1}};
  for (const Sharing &one : all) {
    const int alike = one.node * one.siblings, longest_class_of = one.siblings > 1 ? longest_sibling_class : longest_node_class;
    const bool fits = static_cast<std::int64_t>(found.longest) <= most_entries(longest_class_of, max_steps);
    if (fits && rows % alike == 0 && found.odd[alike] == 0) return one;
  }
  return {1, 1};
}

// The most rows that share their columns, of the first `looked_at`, if all do and none is too long to be in a node.
template <class Offset, class Column>
Sharing find_sharing(Algorithms &algorithms, Executor &executor, const Offset *offsets, const Column *columns,
                     std::int64_t rows, std::int64_t looked_at, int max_steps) {
  Array<NodeCounts> counts(executor, 1);
  TCBOUND_CUDA(cudaMemsetAsync(counts.data(), 0, sizeof(NodeCounts), algorithms.stream()));
  count_odd_rows<<<grid_for(looked_at * warp_lanes), block, 0, algorithms.stream()>>>(offsets, columns, looked_at,
                                                                                      counts.data());
  TCBOUND_LAUNCHED();
  return sharing_of(algorithms.read(counts.data()), rows, max_steps);
}

constexpr std::int64_t first_rows = 12288; // whole nodes of any size

} // namespace

Sharing find_sharing(Algorithms &algorithms, Executor &executor, const DeviceMatrix &m, const std::int32_t *columns) {
  Sharing sharing = {1, 1};
  for (const std::int64_t looked_at : {std::min(m.rows, first_rows), m.rows}) {
    csr::with_offsets(m.offsets, [&](const auto *offsets) {
      sharing = find_sharing(algorithms, executor, offsets, columns, m.rows, looked_at, m.max_steps);
    });
    if (sharing.node == 1) break;
  }
  return sharing;
}

bool seem_to_share(Executor &executor, const CsrView &view, int max_steps) {
  if (view.rows == 0) return false;
  Algorithms algorithms(executor);
  const auto with_types = [&](auto offset, auto column) {
    const auto *offsets = static_cast<const decltype(offset) *>(view.row_offsets.data);
    const auto *columns = static_cast<const decltype(column) *>(view.columns.data);
    return find_sharing(algorithms, executor, offsets, columns, view.rows, std::min(view.rows, first_rows), max_steps).node > 1;
  };
  const bool wide_offsets = view.row_offsets.bytes == 8, wide_columns = view.columns.bytes == 8;
  if (wide_offsets && wide_columns) return with_types(std::int64_t(), std::int64_t());
  if (wide_offsets) return with_types(std::int64_t(), std::int32_t());
  return wide_columns ? with_types(std::int32_t(), std::int64_t()) : with_types(std::int32_t(), std::int32_t());
}

} // namespace tcbound::fragments
