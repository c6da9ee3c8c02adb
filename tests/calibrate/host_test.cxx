#include "apps/calibrate/host.h"

#include <cmath>
#include <gtest/gtest.h>

#include "apps/calibrate/host_fma.h"

using namespace tcbound::calibrate;

TEST(CalibrateHost, ThreadCountsDouble) {
  EXPECT_EQ(thread_counts(1), (std::vector<int>{1}));
  EXPECT_EQ(thread_counts(6), (std::vector<int>{1, 2, 4, 6}));
  EXPECT_EQ(thread_counts(8), (std::vector<int>{1, 2, 4, 8}));
  EXPECT_GE(host_cores(), 1);
}

// r <- r f + s with f + s = 1 has the fixed point 1, from which no chain is far after many iterations.
TEST(CalibrateHost, EveryFmaLoopComputes) {
  ASSERT_FALSE(fma_loops().empty());
  for (const FmaLoop &loop : fma_loops()) {
    const double sum = loop.run(1000, 0.5, 0.5), chains_and_lanes = loop.flops / 2;
    EXPECT_DOUBLE_EQ(sum, chains_and_lanes) << loop.name;
    EXPECT_NE(loop.run(1, 0.5, 0.5), sum) << loop.name;
  }
}

TEST(CalibrateHost, MoreThreadsThanCoresStillMeasure) {
  const Measurements all = measure_host(host_cores() + 1, [](const std::string &) {});
  EXPECT_EQ(all.size(), 7U);
  for (const Measurement &m : all) {
    EXPECT_NE(m.measured(), !m.why_not.empty()) << m.key;
    for (const double value : m.values) EXPECT_TRUE(std::isfinite(value) && value > 0) << m.key;
  }
}
