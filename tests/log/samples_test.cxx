#include "src/log/samples.h"

#include <cmath>
#include <gtest/gtest.h>

using tcbound::CallSample;
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

TEST(CallSample, TakesTheFirstCallsAndThenOneInEachGroup) {
  for (std::int64_t call = 0; call < CallSample::all; ++call) EXPECT_TRUE(CallSample::takes(call)) << call;
  std::int64_t places[CallSample::one_in] = {};
  const int    groups = 800000;
  for (int group = 0; group < groups; ++group) {
    int taken = 0;
    for (std::int64_t place = 0; place < CallSample::one_in; ++place) {
      const bool takes = CallSample::takes(CallSample::all + group * CallSample::one_in + place);
      taken += takes;
      places[place] += takes;
    }
    ASSERT_EQ(taken, 1) << group;
  }
  EXPECT_TRUE(CallSample::takes(CallSample::all)); // so that there is a mean for those that follow
  for (const std::int64_t n : places) EXPECT_NEAR(n, groups / CallSample::one_in, 0.08 * groups / CallSample::one_in);
}

// An application that does different things in turns: each gets its share, however long the cycle.
TEST(CallSample, PeriodsAreMetInFairShares) {
  const std::int64_t calls = 6400000;
  for (const std::int64_t period : {2, 3, 4, 5, 7, 8, 12, 16, 24, 64, 128}) {
    std::vector<std::int64_t> taken(static_cast<std::size_t>(period));
    for (std::int64_t call = CallSample::all; call < calls; ++call)
      taken[static_cast<std::size_t>(call % period)] += CallSample::takes(call);
    const double fair = static_cast<double>(calls) / static_cast<double>(CallSample::one_in * period);
    for (const std::int64_t n : taken) EXPECT_NEAR(static_cast<double>(n), fair, 5 * std::sqrt(fair)) << "period " << period;
  }
}

TEST(Samples, UntimedCallsCountAsTheMeanOfLaterOnes) {
  Samples s;
  EXPECT_EQ(s.total(0), 0.0);
  for (std::int64_t call = 0; call < CallSample::all; ++call) s.add(10);
  EXPECT_EQ(s.total(CallSample::all), 10.0 * CallSample::all);
  s.add(1);
  EXPECT_EQ(s.total(CallSample::all + 1), 10.0 * CallSample::all + 1);
  s.add(3);
  EXPECT_EQ(s.total(CallSample::all + 1000), 10.0 * CallSample::all + 2.0 * 1000);
  EXPECT_EQ(s.total(), 10.0 * CallSample::all + 4);
}

// The estimate of what a varying application takes.
TEST(Samples, TheTotalOfASampleIsNearThatOfAll) {
  Samples            s;
  double             all = 0;
  const std::int64_t calls = 64032;
  for (std::int64_t call = 0; call < calls; ++call) {
    const double seconds = 1 + (call % 8 == 3 ? 2.0 : 0.0) + (call % 5 == 0 ? 0.5 : 0.0); // in step with the groups, too
    all += seconds;
    if (CallSample::takes(call)) s.add(seconds);
  }
  EXPECT_EQ(s.count(), CallSample::all + (calls - CallSample::all) / CallSample::one_in);
  EXPECT_NEAR(s.total(calls), all, 0.03 * all);
}
