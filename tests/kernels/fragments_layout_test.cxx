// The order in which fragments keep a matrix, on the host.
#include <gtest/gtest.h>

#include <set>

#include "spmv/fragments/layout.h"

namespace {

using namespace tcbound::fragments;

Group group_of(int row_class, int steps, int lanes) {
  Group g{};
  g.row_class = static_cast<std::uint64_t>(row_class);
  g.steps = static_cast<std::uint64_t>(steps);
  g.lanes = static_cast<std::uint64_t>(lanes);
  return g;
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

// The slots of a step hold each entry of each row of a group once.
TEST(FragmentsLayout, SlotsAreTheEntriesOfTheRows) {
  for (int c = 0; c < classes; ++c) {
    EXPECT_EQ(warp_lanes / lanes_of(c) * (slices / slots_of_lane(c)), rows_of(c));
    std::set<std::pair<int, int>> held;
    for (int lane = 0; lane < warp_lanes; ++lane)
      for (int j = 0; j < slices; ++j) {
        const Slot slot = slot_of(c, lane, j);
        EXPECT_TRUE(slot.row >= 0 && slot.row < rows_of(c) && slot.entry >= 0 && slot.entry < 1 << c);
        EXPECT_TRUE(held.insert({slot.row, slot.entry}).second) << "class " << c << ", lane " << lane << ", slice " << j;
      }
    EXPECT_EQ(held.size(), static_cast<std::size_t>(step_slots));
  }
}

// A fragment row belongs to one row of the group, and to the one that its sum is stored in.
TEST(FragmentsLayout, SumsGoToTheirRows) {
  for (int c = least_fragment_class; c < classes; ++c)
    for (int lane = 0; lane < warp_lanes; ++lane)
      for (int k = 0; k < 4; ++k)
        EXPECT_EQ(slot_of(c, lane / 4 * 4 + k, lane % 4).row, row_of_sum(c, lane)) << "class " << c << ", lane " << lane;
  for (int c = least_fragment_class; c < classes; ++c) // the lanes of a sum are neighbours, and no others have its row
    for (int lane = 0; lane < warp_lanes; ++lane)
      for (int other = 0; other < warp_lanes; ++other)
        EXPECT_EQ(row_of_sum(c, lane) == row_of_sum(c, other), lane / lanes_of_sum(c) == other / lanes_of_sum(c));
}

// Lanes that a step keeps have places of their own, without gaps.
TEST(FragmentsLayout, PlacesAreDense) {
  for (int c = 0; c < classes; ++c)
    for (int lanes = 1; lanes <= lanes_of(c); ++lanes) {
      const Group g = group_of(c, 3, lanes);
      for (const bool last : {false, true}) {
        std::set<int> taken;
        int           kept = 0;
        for (int lane = 0; lane < warp_lanes; ++lane) {
          const Place place = place_of(g, last, lane);
          if (!place.kept) continue;
          EXPECT_TRUE(place.index >= 0 && place.index < place.lanes);
          EXPECT_TRUE(taken.insert(place.index).second);
          EXPECT_TRUE(!last || slot_of(c, lane, 0).entry < lanes * slots_of_lane(c));
          ++kept;
        }
        EXPECT_EQ(kept, last ? last_step_lanes(g) : warp_lanes);
        EXPECT_EQ(kept, place_of(g, last, 0).lanes);
      }
      EXPECT_EQ(stored_lanes(g), 2 * warp_lanes + warp_lanes / lanes_of(c) * lanes);
      EXPECT_EQ(bytes_of(g) % unit, 0);
      EXPECT_GE(bytes_of(g), stored_lanes(g) * slices * 10);
      EXPECT_LT(bytes_of(g), stored_lanes(g) * slices * 10 + unit);
    }
}

} // namespace
