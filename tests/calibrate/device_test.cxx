#include "apps/calibrate/device.h"

#include <cmath>
#include <gtest/gtest.h>
#include <set>

using namespace tcbound;
using namespace tcbound::calibrate;

// Without CUDA in the build there is nothing to call, and no device either.
#ifdef TCBOUND_HAVE_CUDA

namespace {

Measurements every_measurement(Executor &device) {
  Measurements all;
  for (const auto &measure : {measure_memory, measure_arithmetic, measure_launch})
    for (Measurement &m : measure(device, [](const std::string &) {})) all.push_back(std::move(m));
  return all;
}

} // namespace

// Every step runs and gives figures of some size; how large they are is for tcbound-calibrate to say.
TEST(GpuCalibrate, EveryStepMeasuresOrSaysWhyNot) {
  std::string why_not;
  if (cuda_device_count(&why_not) == 0) GTEST_SKIP() << why_not;
  const auto            executor = make_cuda_executor(0);
  std::set<std::string> keys;
  for (const Measurement &m : every_measurement(*executor)) {
    EXPECT_TRUE(keys.insert(m.key).second) << m.key;
    EXPECT_NE(m.measured(), !m.why_not.empty()) << m.key;
    for (const double value : m.values) EXPECT_TRUE(std::isfinite(value) && value > 0) << m.key << ' ' << value;
  }
  EXPECT_EQ(keys.size(), 23U);
}

TEST(GpuCalibrate, WarmUpLeavesNoError) {
  std::string why_not;
  if (cuda_device_count(&why_not) == 0) GTEST_SKIP() << why_not;
  const auto executor = make_cuda_executor(0);
  warm_up(*executor);
  executor->synchronize();
}

#endif
