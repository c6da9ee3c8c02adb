#include "choose.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tcbound::diagonals {
namespace {

constexpr double remainder_row_bytes = 8.0, remainder_entry_bytes = 12.0; // of CSR
constexpr double other_entry_bytes = 9.0; // about what other formats take for an entry of a matrix with much structure

// Of a row of a group and a column, both counted from the group's first row, which is a whole number of nodes from the matrix's.
std::int64_t node_offset(std::int64_t row, std::int64_t column, int node) {
  return (column >= 0 ? column / node : -((node - 1 - column) / node)) - row / node;
}

double row_count(const Sample &sample) {
  double rows = 0.0;
  for (const auto &[group, times] : sample) rows += static_cast<double>(group.size()) * times;
  return rows;
}

// The node offsets that at least one of `share` sampled nodes has, ascending.
std::vector<std::int64_t> common_offsets(const Sample &sample, int node, double share) {
  std::vector<std::pair<std::int64_t, int>> with; // offsets of a node, and how often it occurs
  std::vector<std::int64_t>                 of_node, common;
  for (const auto &[group, times] : sample)
    for (std::size_t i = 0; i < group.size(); ++i) {
      for (const std::int64_t column : group[i].distances)
        of_node.push_back(node_offset(static_cast<std::int64_t>(i), column, node));
      if (i + 1 < group.size() && (i + 1) % static_cast<std::size_t>(node) != 0) continue;
      std::sort(of_node.begin(), of_node.end());
      of_node.erase(std::unique(of_node.begin(), of_node.end()), of_node.end());
      for (const std::int64_t offset : of_node) with.emplace_back(offset, times);
      of_node.clear();
    }
  std::sort(with.begin(), with.end());
  for (std::size_t begin = 0, end = 0; begin < with.size(); begin = end) {
    double nodes = 0.0;
    for (; end < with.size() && with[end].first == with[begin].first; ++end) nodes += with[end].second;
    if (share * nodes * node >= row_count(sample) && std::abs(with[begin].first) <= std::numeric_limits<std::int32_t>::max())
      common.push_back(with[begin].first);
  }
  return common;
}

bool fits(const SampledRow &row, std::int64_t number, const std::vector<std::int64_t> &offsets, int node) {
  if (static_cast<std::int64_t>(row.distances.size()) != row.length) return false;
  return std::all_of(row.distances.begin(), row.distances.end(), [&](std::int64_t column) {
    return std::binary_search(offsets.begin(), offsets.end(), node_offset(number, column, node));
  });
}

// Bytes a row.
double bytes_of(const Table &table, const Sample &sample, const std::vector<std::int64_t> &offsets) {
  double remainder = 0.0;
  for (const auto &[group, times] : sample)
    for (std::size_t i = 0; i < group.size(); ++i)
      if ((table.mirrored && !group[i].symmetric) || !fits(group[i], static_cast<std::int64_t>(i), offsets, table.node))
        remainder += times * (remainder_row_bytes + remainder_entry_bytes * static_cast<double>(group[i].length));
  return 8.0 * plane_count(table) / table.node + remainder / row_count(sample);
}

// Each offset with its negative, and 0.
std::vector<std::int64_t> both_ways(const std::vector<std::int64_t> &offsets) {
  std::vector<std::int64_t> both = {0};
  for (const std::int64_t offset : offsets) both.insert(both.end(), {offset, -offset});
  std::sort(both.begin(), both.end());
  both.erase(std::unique(both.begin(), both.end()), both.end());
  return both;
}

} // namespace

std::vector<std::int64_t> sampled_groups(std::int64_t rows) {
  const std::int64_t        all = (rows + group_rows - 1) / group_rows, count = std::min<std::int64_t>(all, most_groups);
  std::vector<std::int64_t> first;
  for (std::int64_t g = 0; g < count; ++g) { // irregularly, so as not to meet the same place of each grid line
    const double at = static_cast<double>(g) + std::fmod(0.6180339887 * static_cast<double>(g), 1.0);
    first.push_back(group_rows * (all <= most_groups
                                    ? g
                                    : static_cast<std::int64_t>(at / static_cast<double>(count) * static_cast<double>(all))));
  }
  first.erase(std::unique(first.begin(), first.end()), first.end());
  return first;
}

Table choose_table(std::int64_t rows, const Sample &sample, const BuildChoices &choices) {
  Table  best;
  double entries = 0.0;
  for (const auto &[group, times] : sample)
    for (const SampledRow &row : group) entries += times * static_cast<double>(row.length);
  if (sample.empty()) return best;
  // Of a matrix with node blocks, too, rows have some offsets in common, and not only that to themselves.
  if (common_offsets(sample, 1, 8.0).size() < 2 && entries >= 2.0 * row_count(sample)) return best;
  double least = other_entry_bytes * entries / row_count(sample);
  for (int node = 1; node <= most_node; ++node) {
    if (rows % node != 0 || (choices.node != 0 && choices.node != node)) continue;
    const std::vector<std::int64_t> common = common_offsets(sample, node, 4.0);
    for (const bool mirrored : {false, true}) {
      if (mirrored && !choices.allow_mirrored) continue;
      const std::vector<std::int64_t> offsets = mirrored ? both_ways(common) : common;
      Table                           table;
      table.node = node;
      table.mirrored = mirrored;
      table.count = static_cast<std::int32_t>(mirrored ? offsets.size() / 2 + 1 : offsets.size());
      if (offset_count(table) > most_offsets || common.empty()) continue;
      std::copy(offsets.end() - table.count, offsets.end(), table.offsets);
      const double bytes = bytes_of(table, sample, offsets);
      if (bytes >= least) continue;
      least = bytes;
      best = table;
    }
  }
  return best;
}

} // namespace tcbound::diagonals
