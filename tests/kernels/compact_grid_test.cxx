// What spmv/compact/cuda_core reads from the offsets of a row: grid, stencil, and how rows are cut into slices.
#include <gtest/gtest.h>

#include "spmv/compact/grid.h"

namespace {

using namespace tcbound::compact;

std::vector<std::int32_t> offsets_of(int line, int plane, bool star) {
  std::vector<std::int32_t> offsets;
  for (int k = plane ? -1 : 0; k <= (plane ? 1 : 0); ++k)
    for (int j = -1; j <= 1; ++j)
      for (int i = -1; i <= 1; ++i)
        if (!star || std::abs(i) + std::abs(j) + std::abs(k) <= 1) offsets.push_back(k * plane + j * line + i);
  return offsets;
}

TEST(CompactGrid, FindsLinesAndPlanes) {
  const struct {
    int  line, plane;
    bool star;
    int  shape;
  } cases[] = {{160, 25600, false, 0}, {256, 65536, true, 1}, {33, 1320, false, 0}, {4000, 0, false, 2}, {257, 0, true, 3}};
  for (const auto &c : cases) {
    const Grid grid = guess_grid(offsets_of(c.line, c.plane, c.star));
    EXPECT_EQ(grid.line, c.line);
    EXPECT_EQ(grid.plane, c.plane);
    EXPECT_EQ(grid.stencil.shape, c.shape);
    EXPECT_EQ(grid.stencil.stride, c.plane ? c.plane : c.line);
    EXPECT_EQ(grid.stride(), grid.stencil.stride);
  }
}

// Runs of three that start at odd distances are read in pairs if slices start a row earlier; single entries at even ones are not.
TEST(CompactGrid, ShiftsSlicesForPairs) {
  EXPECT_EQ(guess_grid(offsets_of(160, 25600, false)).shift, 1);
  EXPECT_EQ(guess_grid(offsets_of(256, 65536, true)).shift, 0);
}

TEST(CompactGrid, SeesNoGridWhereNoneIs) {
  for (const std::vector<std::int32_t> &offsets :
       {std::vector<std::int32_t>{}, {0}, {-1, 0, 1}, {-3, -2, 0, 1, 7}, {-900, -17, 0, 401, 5000}, {-400, 0}}) {
    const Grid grid = guess_grid(offsets);
    EXPECT_EQ(grid.stencil.shape, -1);
    EXPECT_EQ(cut_rows(grid, 1000).stride, 0);
  }
  // A stencil with an entry too many or too few is none of those that columns are made for.
  std::vector<std::int32_t> offsets = offsets_of(160, 25600, false);
  offsets.pop_back();
  EXPECT_EQ(guess_grid(offsets).stencil.shape, -1);
  offsets = offsets_of(256, 65536, true);
  offsets.push_back(65537);
  EXPECT_EQ(guess_grid(offsets).stencil.shape, -1);
}

TEST(CompactGrid, SlotsAreTheEntriesInOrder) {
  for (const bool star : {false, true}) {
    const std::vector<std::int32_t> offsets = offsets_of(100, 10000, star);
    const Stencil                   stencil = match_stencil(offsets, 100, 10000);
    ASSERT_GE(stencil.shape, 0);
    std::uint32_t found = 0;
    for (std::size_t k = 0; k < offsets.size(); ++k) {
      EXPECT_TRUE(k == 0 || stencil.slot[k - 1] < stencil.slot[k]);
      found |= 1U << stencil.slot[k];
      const int plane = stencil.slot[k] / 9 - 1, run = stencil.slot[k] / 3 % 3, step = stencil.slot[k] % 3 - 1;
      EXPECT_EQ(plane * stencil.stride + stencil.centers[static_cast<std::size_t>(run)] + step, offsets[k]);
    }
    EXPECT_EQ(found, shapes[stencil.shape].slots);
  }
}

// Slices lie one above the other where rows repeat; planes of whole slices need no cut, nor do those that would leave too much empty.
TEST(CompactGrid, CutsAtPlanes) {
  Grid grid = guess_grid(offsets_of(100, 10000, false));
  EXPECT_EQ(cut_rows(grid, 1000000).stride, 0) << "no row was seen twice";
  grid.repeats = true;
  const Cut cut = cut_rows(grid, 1000000);
  EXPECT_EQ(cut.stride, 10000);
  EXPECT_EQ(cut.per_plane, (10000 + grid.shift + 63) / 64);
  EXPECT_EQ(cut.slices(), 100 * cut.per_plane);
  for (const std::int64_t plane : {0, 1, 99}) {
    EXPECT_EQ(cut.first_row(plane * cut.per_plane), plane * 10000 - grid.shift);
    EXPECT_EQ(cut.slice_of(plane * 10000), plane * cut.per_plane);
    EXPECT_EQ(cut.slice_of(plane * 10000 + 9999), plane * cut.per_plane + (9999 + grid.shift) / 64);
  }
  Grid whole = guess_grid(offsets_of(160, 25600, false));
  whole.repeats = true;
  EXPECT_EQ(cut_rows(whole, 4096000).stride, 0);
  EXPECT_EQ(cut_rows(whole, 4096000).slices(), 4096000 / 64 + 1);
  Grid narrow = guess_grid(offsets_of(65, 0, false));
  narrow.repeats = true;
  EXPECT_EQ(cut_rows(narrow, 65000).stride, 0);
}

} // namespace
