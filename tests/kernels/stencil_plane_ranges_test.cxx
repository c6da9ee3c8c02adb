// How the planes of a pipeline's tiles are shared out among blocks: each once, and about the same for all.
#include <algorithm>

#include <gtest/gtest.h>

#include "stencil/iterated/plane_ranges.h"

namespace {

using namespace tcbound::stencil;

const std::vector<TilesToShare> some_tiles = {{9, 19, 514, 4}, {9, 20, 514, 6},  {3, 6, 160, 4}, {1, 1, 1, 4},   {1, 1, 300, 6},
                                              {10, 17, 5, 8},  {40, 70, 900, 4}, {2, 1, 7, 6},   {1, 200, 3, 4}, {5, 5, 64, 2}};

void expect_each_plane_once(const TilesToShare &tiles, std::vector<PlaneRange> ranges) {
  int at = 0;
  std::sort(ranges.begin(), ranges.end(), [](const PlaneRange &a, const PlaneRange &b) { return a.begin < b.begin; });
  for (const PlaneRange &range : ranges) {
    ASSERT_EQ(range.begin, at);
    ASSERT_GT(range.end, range.begin);
    at = range.end;
  }
  EXPECT_EQ(at, tiles.tiles_x * tiles.tiles_y * tiles.planes);
}

// Planes that a block computes, with those beyond; those of tiles at the sides count for more.
double cost_of(const TilesToShare &tiles, const PlaneRange &range, double side) {
  double cost = 0.0;
  for (int at = range.begin; at < range.end;) {
    const int  tile = at / tiles.planes, end = std::min(range.end, (tile + 1) * tiles.planes);
    const int  x = tile % tiles.tiles_x, y = tile / tiles.tiles_x;
    const bool at_side = x == 0 || y == 0 || x == tiles.tiles_x - 1 || y == tiles.tiles_y - 1;
    cost += (at_side ? side : 1.0) * (end - at + tiles.beyond);
    at = end;
  }
  return cost;
}

TEST(StencilPlaneRanges, have_each_plane_once) {
  for (const TilesToShare &tiles : some_tiles)
    for (const int blocks : {1, 7, 132, 264}) {
      SCOPED_TRACE(std::to_string(tiles.tiles_x) + " by " + std::to_string(tiles.tiles_y) + " tiles, " +
                   std::to_string(blocks));
      expect_each_plane_once(tiles, short_ranges(tiles, blocks));
      for (const int side : {100, 125, 150}) {
        const std::vector<PlaneRange> ranges = equal_ranges(tiles, blocks, side);
        expect_each_plane_once(tiles, ranges);
        EXPECT_LE(static_cast<int>(ranges.size()), blocks);
      }
    }
}

TEST(StencilPlaneRanges, take_about_the_same_time) {
  const TilesToShare            tiles = {9, 20, 514, 6};
  const std::vector<PlaneRange> ranges = equal_ranges(tiles, 132, 120);
  double                        most = 0.0, all = 0.0;
  for (const PlaneRange &range : ranges) {
    most = std::max(most, cost_of(tiles, range, 1.2));
    all += cost_of(tiles, range, 1.2);
  }
  EXPECT_LT(most, 1.02 * all / 132);
  for (const PlaneRange &range : short_ranges(tiles, 132)) EXPECT_LE(range.end - range.begin, 64);
}

TEST(StencilPlaneRanges, redundancy_counts_the_planes_beyond_of_each_part) {
  const TilesToShare tiles = {2, 1, 10, 4};
  EXPECT_DOUBLE_EQ(redundancy(tiles, {{0, 10}, {10, 20}}), 28.0 / 20.0);
  EXPECT_DOUBLE_EQ(redundancy(tiles, {{0, 20}}), 28.0 / 20.0);
  EXPECT_DOUBLE_EQ(redundancy(tiles, {{0, 5}, {5, 20}}), 32.0 / 20.0);
}

} // namespace
