// What compress() makes of the coefficients of stencils, and how arrays of them lie in memory.
#include <gtest/gtest.h>

#include "stencil_cases.h"

namespace {

// The bits of all coefficients come back, however they are kept.
TEST(StencilCoefficients, AreKeptBitForBit) {
  for (const Values values : all_values)
    for (const int dof : {1, 2}) {
      const Case    c{{{9, 8, 7}, {1, 0, 1}, {0, 0, 1}, dof}, 1, true, values};
      const auto    slots = slots_of(c);
      const auto    arrays = values_of(c, slots);
      const Stencil s = compress(c.extents, slots, arrays);
      const auto    back = s.expand();
      SCOPED_TRACE(c.describe() + ": " + s.describe());
      for (std::size_t slot = 0; slot < slots.size(); ++slot) {
        std::size_t at = 0;
        while (at < s.slots.size() && (!std::equal(s.slots[at].offset, s.slots[at].offset + 3, slots[slot].offset) ||
                                       s.slots[at].component != slots[slot].component))
          ++at;
        for (std::int64_t row = 0; row < c.extents.rows(); ++row) {
          const std::int64_t cell = row / dof;
          if (!s.exists(slots[slot], cell % 9, cell / 9 % 8, cell / 72)) continue;
          const double want = arrays[slot][static_cast<std::size_t>(row)];
          ASSERT_EQ(at < s.slots.size() ? back[at][static_cast<std::size_t>(row)] : 0.0, want);
          if (at < s.slots.size()) {
            ASSERT_EQ(s.coefficient(static_cast<int>(at), cell, static_cast<int>(row % dof)), want);
          }
        }
      }
    }
}

// Rows that are not symmetric, where others are, are found out to the bit, and few.
TEST(StencilCoefficients, AreFoundSymmetric) {
  const auto find = [](Values values, int dof) {
    const Case c{{{30, 31, 32}, {1, 0, 1}, {0, 1, 1}, dof}, 1, true, values};
    const auto slots = slots_of(c);
    return compress(c.extents, slots, values_of(c, slots));
  };
  EXPECT_TRUE(find(Values::variable, 1).mirrors.empty());
  EXPECT_TRUE(find(Values::mixed, 1).mirrors.empty());
  EXPECT_TRUE(find(Values::symmetric, 2).mirrors.empty());
  EXPECT_EQ(find(Values::symmetric, 1).mirrors.size(), 27U);
  EXPECT_TRUE(find(Values::symmetric, 1).exceptions.empty());
  const Stencil nearly = find(Values::nearly, 1), replaced = find(Values::replaced, 1);
  EXPECT_EQ(nearly.mirrors.size(), 27U);
  EXPECT_EQ(nearly.exceptions.size(), 1U);
  EXPECT_EQ(replaced.mirrors.size(), 27U);
  EXPECT_EQ(replaced.exceptions.size(), 30U * 31 * 32 - 28 * 29 * 30);
  EXPECT_LE(replaced.patterns.size(), 2U * 27); // of one kind, but where a corner's only contradiction is between zeros
}

// Device code finds every coefficient where the layout says, in the cell's own place or its neighbour's.
TEST(StencilCoefficients, AreLaidOutBitForBit) {
  for (const Values values :
       {Values::variable, Values::mixed, Values::symmetric, Values::symmetric_mixed, Values::nearly, Values::replaced})
    for (const int dof : {1, 2})
      for (const int layers : {0, 1, 2}) {
        const Case    c{{{13, 20, 21}, {layers, 0, layers}, {0, layers, layers}, dof}, 1, true, values};
        const auto    slots = slots_of(c);
        const Stencil s = compress(c.extents, slots, values_of(c, slots));
        SCOPED_TRACE(c.describe());
        for (const int kind : {0, 1, 2, 3}) {
          const bool halved = kind % 2 == 1;
          if (halved && s.mirrors.empty()) continue;
          const grid::Values       layout = lay_out_values(s, halved, kind > 1);
          const grid::ValueLayout &l = layout.layout;
          const auto               filled = fill_values(s, layout, halved);
          EXPECT_EQ(l.arrays, halved ? (s.array_count() + 1) / 2 : s.array_count());
          for (std::int64_t row = 0; row < c.extents.rows(); ++row) {
            const std::int64_t cell = row / dof, i = cell % 13, j = cell / 13 % 20, k = cell / 260;
            if (halved && std::binary_search(s.exceptions.begin(), s.exceptions.end(), cell)) continue;
            for (int slot = 0; slot < s.slot_count(); ++slot) {
              const auto at = static_cast<std::size_t>(slot);
              if (s.arrays[at].empty() || !s.exists(s.slots[at], i, j, k)) continue;
              const std::int64_t place = l.first + k * l.plane + j * l.line + i * dof + row % dof + layout.distances[at];
              ASSERT_TRUE(place >= 0 && place < layout.size);
              const double found = filled[static_cast<std::size_t>(place)], want = s.arrays[at][static_cast<std::size_t>(row)];
              ASSERT_EQ(std::memcmp(&found, &want, sizeof found), 0) << found << " instead of " << want;
            }
          }
        }
      }
}

TEST(StencilCoefficients, AreStoredBriefly) {
  const auto bytes = [](Values values, std::int64_t n) {
    const Case    c{{{n, n, n}}, 1, false, values};
    const auto    slots = slots_of(c);
    const Stencil s = compress(c.extents, slots, values_of(c, slots));
    return s.work(false).bytes;
  };
  EXPECT_EQ(bytes(Values::constant, 20), 16 * 8000);
  EXPECT_EQ(bytes(Values::variable, 20), (16 + 7 * 8) * 8000);
  EXPECT_EQ(bytes(Values::mixed, 20), (16 + 4 * 8) * 8000);
  EXPECT_EQ(bytes(Values::symmetric, 20), (16 + 7 * 8) * 8000);
  EXPECT_EQ(bytes(Values::dirichlet, 40), 16 * 64000 + 12 * (64000 - 38 * 38 * 38) + 7 * 8);
  EXPECT_LT(bytes(Values::faces, 40), 16 * 64000 + 12 * (64000 - 38 * 38 * 38) + 81 * 7 * 8);
}

// -0.0 and 0.0 are different bits; zeros of either kind alone add nothing and are left out.
TEST(StencilCoefficients, KeepZerosApart) {
  const Case c{{{4, 1, 1}}, 1, false, Values::constant};
  const auto slots = slots_of(c);
  auto       arrays = values_of(c, slots);
  arrays[1] = {0.0, -0.0, 0.0, 0.0};
  const Stencil s = compress(c.extents, slots, arrays);
  bool          negative = false;
  for (std::int64_t cell = 0; cell < 4; ++cell) negative = negative || (std::signbit(s.coefficient(1, cell, 0)) && cell == 1);
  EXPECT_TRUE(negative);
}

} // namespace
