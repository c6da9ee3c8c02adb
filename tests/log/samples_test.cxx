#include "src/log/samples.h"

#include <gtest/gtest.h>

using tcbound::Samples;

TEST(Samples, EmptyHasNoMedian) {
  Samples s;
  EXPECT_EQ(s.count(), 0);
  EXPECT_EQ(s.total(), 0.0);
  EXPECT_EQ(s.median(), 0.0);
}

TEST(Samples, MedianOfOddAndEvenCounts) {
  Samples s;
  s.add(9);
  EXPECT_EQ(s.median(), 9.0);
  s.add(1);
  EXPECT_EQ(s.median(), 5.0);
  s.add(2);
  EXPECT_EQ(s.median(), 2.0);
  s.add(4);
  EXPECT_EQ(s.median(), 3.0);
  EXPECT_EQ(s.minimum(), 1.0);
}

// Counts around each doubling of the stride.
TEST(Samples, ThinningKeepsCountTotalAndMinimumExact) {
  const std::int64_t capacity = Samples::capacity;
  for (std::int64_t n : {capacity - 1, capacity, capacity + 1, 2 * capacity, 2 * capacity + 1, 10 * capacity + 7}) {
    Samples s;
    for (std::int64_t i = 0; i < n; ++i) s.add(static_cast<double>(n - i));
    EXPECT_EQ(s.count(), n);
    EXPECT_EQ(s.total(), 0.5 * static_cast<double>(n) * static_cast<double>(n + 1)); // integers: no rounding
    EXPECT_EQ(s.minimum(), 1.0);
    EXPECT_LE(s.kept(), Samples::capacity);
    EXPECT_GE(s.kept(), std::min<std::size_t>(static_cast<std::size_t>(n), Samples::capacity / 2));
    EXPECT_NEAR(s.median(), 0.5 * static_cast<double>(n + 1), 1e-3 * static_cast<double>(n));
  }
}

TEST(Samples, ThinnedSamplesAreEvenlySpaced) {
  Samples s;
  // Every fourth call is slow; strides of 1, 2 and 4 from call 0 would see only slow calls at the end, which the median shows.
  for (std::size_t i = 0; i < Samples::capacity * 4; ++i) s.add(i % 4 == 0 ? 2.0 : 1.0);
  EXPECT_EQ(s.kept(), Samples::capacity);
  EXPECT_EQ(s.median(), 2.0);
}
