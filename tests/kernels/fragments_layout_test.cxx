// The order in which fragments keep a matrix, on the host.
#include <gtest/gtest.h>

#include <set>

#include "spmv/fragments/layout.h"

namespace {

using namespace tcbound::fragments;

Group group_of(int row_class, int node, int steps, int lanes) {
  Group g{};
  g.row_class = static_cast<std::uint64_t>(row_class);
  g.node = static_cast<std::uint64_t>(node - 1);
  g.steps = static_cast<std::uint64_t>(steps);
  g.lanes = static_cast<std::uint64_t>(lanes);
  return g;
}

struct Kind {
  int row_class, node;
};

// Of a row by itself or in a node.
std::vector<Kind> kinds() {
  std::vector<Kind> all;
  for (int c = 0; c < classes; ++c) all.push_back({c, 1});
  for (int node = 2; node <= most_node; ++node)
    for (int c = least_fragment_class; c <= longest_node_class; ++c) all.push_back({c, node});
  return all;
}

TEST(FragmentsLayout, RowsTakeTheClassOfTheirLength) {
  for (const int max_steps : {1, 2, 12, 63}) {
    EXPECT_EQ(class_of(0, max_steps), 0);
    EXPECT_EQ(class_of(1, max_steps), 0);
    EXPECT_EQ(class_of(2, max_steps), 1);
    EXPECT_EQ(class_of(3, max_steps), 2);
    for (int c = 2; c < classes; ++c) {
      EXPECT_EQ(class_of(static_cast<std::int64_t>(max_steps) << c, max_steps), c);
      if (c < longest_class) {
        EXPECT_EQ(class_of((static_cast<std::int64_t>(max_steps) << c) + 1, max_steps), c + 1);
      }
    }
  }
}

TEST(FragmentsLayout, NodesTakeTheClassOfTheirLength) {
  EXPECT_EQ(class_of_node(0, 3), 2);
  EXPECT_EQ(class_of_node(12, 3), 2);
  EXPECT_EQ(class_of_node(13, 3), 3);
  EXPECT_EQ(class_of_node(49, 3), 5);
  EXPECT_EQ(class_of_node(96, 3), 5);
}

// The slots of a step hold each entry of each row of a group once.
TEST(FragmentsLayout, SlotsAreTheEntriesOfTheRows) {
  for (const auto &[c, node] : kinds()) {
    const int                     rows = nodes_of(c, node) * node;
    std::set<std::pair<int, int>> held;
    if (node == 1) {
      EXPECT_EQ(rows, rows_of(c));
    }
    for (int lane = 0; lane < warp_lanes; ++lane)
      for (int j = 0; j < values_of_lane(node); ++j) {
        const Slot slot = slot_of(c, node, lane, j);
        EXPECT_TRUE(slot.row >= 0 && slot.row < rows && slot.entry >= 0 && slot.entry < 1 << c);
        EXPECT_TRUE(held.insert({slot.row, slot.entry}).second) << "class " << c << ", lane " << lane << ", slice " << j;
      }
    EXPECT_EQ(held.size(), static_cast<std::size_t>(warp_lanes * values_of_lane(node)));
    EXPECT_EQ(static_cast<int>(held.size()), rows << c);
  }
}

// Slices that share a column hold the same entry of rows of the same node.
TEST(FragmentsLayout, NodesShareColumns) {
  for (const auto &[c, node] : kinds())
    for (int lane = 0; lane < warp_lanes; ++lane)
      for (int j = 0; j < values_of_lane(node); ++j) {
        const int  share = slices / columns_of_lane(node);
        const Slot slot = slot_of(c, node, lane, j), first = slot_of(c, node, lane, j / share * share);
        EXPECT_EQ(slot.entry, first.entry);
        EXPECT_EQ(slot.row / node, first.row / node);
      }
}

// A fragment row belongs to one row of the group, and to the one that its sum is stored in.
TEST(FragmentsLayout, SumsGoToTheirRows) {
  for (const auto &[c, node] : kinds()) {
    if (c < least_fragment_class) continue;
    const int apart = sum_distance(node), lanes = lanes_of_sum(c);
    for (int lane = 0; lane < warp_lanes; ++lane) {
      if (node == 3 && lane % 4 == 3) continue;
      for (int k = 0; k < 4; ++k)
        EXPECT_EQ(slot_of(c, node, lane / 4 * 4 + k, lane % 4).row, row_of_sum(c, node, lane)) << "class " << c << ", " << lane;
      for (int other = 0; other < warp_lanes; ++other) { // the lanes of a sum, and no others, have its row
        if (node == 3 && other % 4 == 3) continue;
        const bool together = lane % apart == other % apart && lane / apart / lanes == other / apart / lanes;
        EXPECT_EQ(row_of_sum(c, node, lane) == row_of_sum(c, node, other), together);
      }
    }
  }
}

// Lanes that a step keeps have places of their own, without gaps.
TEST(FragmentsLayout, PlacesAreDense) {
  for (const auto &[c, node] : kinds())
    for (int lanes = 1; lanes <= 1 << log2_lanes_of(c, node); ++lanes) {
      const Group g = group_of(c, node, 3, lanes);
      for (const bool last : {false, true}) {
        std::set<int> taken;
        int           kept = 0;
        for (int lane = 0; lane < warp_lanes; ++lane) {
          const Place place = place_of(g, node, last, lane);
          if (!place.kept) continue;
          EXPECT_TRUE(place.index >= 0 && place.index < place.lanes);
          EXPECT_TRUE(taken.insert(place.index).second);
          ++kept;
        }
        EXPECT_EQ(kept, last ? last_step_lanes(g, node) : warp_lanes);
        EXPECT_EQ(kept, place_of(g, node, last, 0).lanes);
      }
      EXPECT_EQ(stored_lanes(g, node), 2 * warp_lanes + (warp_lanes >> log2_lanes_of(c, node)) * lanes);
      for (const int width : {8, 4, 2}) {
        const int          stored = stored_lanes(g, node);
        const int          bytes = stored * (width * values_of_lane(node) + 2 * columns_of_lane(node));
        const std::int64_t all_bytes = bytes_of(g, stored, width);
        EXPECT_EQ(value_bytes_of(stored, node, width) % (width == 8 ? 8 : 16),
                  0); // columns are read up to so many bytes at once
        EXPECT_EQ(all_bytes % unit, 0);
        EXPECT_GE(all_bytes, bytes);
        EXPECT_LT(all_bytes, bytes + unit + (width == 8 ? 0 : 16));
      }
    }
}

// Each step of a ragged group keeps the lanes whose fragment row is long enough, one behind the other; all entries have a slot.
TEST(FragmentsLayout, RaggedGroupsKeepWhatTheirRowsNeed) {
  for (const int longest : {0, 1, 2, 3, 4, 5, 22, 96, longest_ragged}) {
    RaggedLengths lengths = 0;
    int           of_row[warp_lanes / 4], all = 0;
    for (int i = 0; i < warp_lanes / 4; ++i) {
      of_row[i] = longest * (8 - i) / 8;
      all += of_row[i];
      lengths |= static_cast<RaggedLengths>(of_row[i]) << 8 * i;
    }
    const int                     steps = (longest + 3) / 4;
    std::set<std::pair<int, int>> held; // fragment row and entry
    for (int t = 0; t < steps; ++t) {
      std::set<int> taken;
      for (int lane = 0; lane < warp_lanes; ++lane) {
        const auto [place, before] = place_of_ragged(lengths, t, lane);
        EXPECT_EQ(before, ragged_lanes(lengths, t));
        const int entry = 4 * t + slot_of_ragged(lane, 0).entry;
        EXPECT_EQ(place.kept, entry < of_row[lane / 4]);
        if (!place.kept) continue;
        EXPECT_TRUE(place.index >= 0 && place.index < place.lanes);
        EXPECT_TRUE(taken.insert(place.index).second);
        EXPECT_TRUE(held.insert({lane / 4, entry}).second);
      }
      EXPECT_EQ(static_cast<int>(taken.size()), place_of_ragged(lengths, t, 0).place.lanes);
      EXPECT_EQ(ragged_lanes(lengths, t) + static_cast<int>(taken.size()), ragged_lanes(lengths, t + 1));
    }
    EXPECT_EQ(static_cast<int>(held.size()), all);
    EXPECT_EQ(ragged_lanes(lengths, steps), all);
  }
  std::set<int> rows;
  for (int lane = 0; lane < warp_lanes; ++lane)
    for (int j = 0; j < slices; ++j) {
      EXPECT_EQ(slot_of_ragged(lane, j).row, lane / 4 * 4 + j); // collected by lane 4 i + j, as all sums of fragment rows are
      rows.insert(slot_of_ragged(lane, j).row);
    }
  EXPECT_EQ(static_cast<int>(rows.size()), ragged_rows);
}

// The values of a step have places of their own, without gaps.
TEST(FragmentsLayout, ValuesAreDense) {
  for (const auto &[c, node] : kinds())
    for (int lanes = 1; lanes <= 1 << log2_lanes_of(c, node); ++lanes)
      for (const int width : {8, 4, 2}) {
        const Group   g = group_of(c, node, 1, lanes);
        std::set<int> taken;
        for (int lane = 0; lane < warp_lanes; ++lane) {
          const Place place = place_of(g, node, true, lane);
          if (!place.kept) continue;
          for (int j = 0; j < values_of_lane(node); ++j) EXPECT_TRUE(taken.insert(value_index(j, node, width, place)).second);
        }
        EXPECT_EQ(static_cast<int>(taken.size()), last_step_lanes(g, node) * values_of_lane(node));
        EXPECT_EQ(*taken.begin(), 0);
        EXPECT_EQ(*taken.rbegin() + 1, static_cast<int>(taken.size()));
      }
}

} // namespace
