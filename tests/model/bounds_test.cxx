#include "src/model/bounds.h"

#include <cmath>
#include <gtest/gtest.h>

#include "src/model/work_counts.h"

using namespace tcbound::model;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const double     not_a_number = std::nan("");

Machine built_in(const std::string &name) { return find_machine(built_in_machines(), name); }

double r_of(const char kernel[], const Machine &m, std::int64_t steps = 1) {
  const tcbound::Work work = kernel_work(kernel, {DataType::fp64, steps, 8});
  return double(work.useful_flops) / double(work.bytes) /
         balance(m.peak(Unit::cuda_core, DataType::fp64), m.bandwidth(Level::dram));
}

template <class Call> void expect_named(const char argument[], Call call) {
  try {
    call();
  } catch (const std::invalid_argument &e) {
    EXPECT_EQ(std::string(e.what()).find(argument), 0u) << e.what();
    return;
  }
  ADD_FAILURE() << "a bad " << argument << " was taken";
}

} // namespace

TEST(Bounds, PublishedLimits) {
  EXPECT_NEAR(speedup_limit(2), 1.33, 0.005);
  EXPECT_DOUBLE_EQ(speedup_limit(2), 4.0 / 3.0);
  EXPECT_DOUBLE_EQ(speedup_limit(infinity), 2);
  EXPECT_DOUBLE_EQ(speedup_limit(1), 1);
  EXPECT_DOUBLE_EQ(speedup(0.25, infinity), 1.25); // 1 + r
  EXPECT_DOUBLE_EQ(effective_alpha(2, 8), 0.25);   // DASP
}

TEST(Bounds, GemvOnTheA100GainsLessThanFivePercent) {
  for (const char *name : {"A100-80GB", "A100-80GB-PCIe"}) {
    const Machine a100 = built_in(name);
    const double  alpha = a100.peak(Unit::tensor_core, DataType::fp64) / a100.peak(Unit::cuda_core, DataType::fp64);
    EXPECT_LT(speedup(r_of("gemv", a100), alpha), 1.05) << name;
    EXPECT_GT(speedup(r_of("gemv", a100), alpha), 1.02) << name;
  }
  EXPECT_LT(speedup(r_of("gemv", built_in("A100-80GB-PCIe")), infinity), 1.05); // at balance 5.0 whatever alpha
}

TEST(Bounds, WideStencilIsComputeBoundOnTheA100AndMemoryBoundOnTheGH200) {
  for (const char *name : {"A100-80GB", "A100-80GB-PCIe"})
    EXPECT_EQ(classify({r_of("2d49pt", built_in(name)), 2}), State::compute_bound) << name;
  EXPECT_EQ(classify({r_of("2d49pt", built_in("GH200")), 2}), State::compliant);
  EXPECT_EQ(classify({r_of("2d49pt", built_in("H200")), 2}), State::compliant);
  EXPECT_EQ(classify({r_of("2d49pt", built_in("H200"), 3), 2}), State::compute_bound);
}

TEST(Bounds, ScaleUsesAnEighthOfTheEightByFourUnit) {
  const double rho = scale_redundancy(mma_shape_of("m8n8k4"));
  EXPECT_DOUBLE_EQ(rho, 8);
  EXPECT_NEAR(built_in("A100-80GB").peak(Unit::tensor_core, DataType::fp64) / rho, 2.4e12, 0.05e12);
  EXPECT_NEAR(built_in("GH200").peak(Unit::tensor_core, DataType::fp64) / rho, 8.37e12, 0.01e12);
}

TEST(Bounds, RooflineAndTimes) {
  EXPECT_DOUBLE_EQ(attainable(10, 2, 3), 6);
  EXPECT_DOUBLE_EQ(attainable(10, 2, 5), 10); // at the ridge
  EXPECT_DOUBLE_EQ(attainable(10, 2, 50), 10);
  EXPECT_DOUBLE_EQ(attainable(10, 2, 0), 0);
  EXPECT_DOUBLE_EQ(overlapped_time(20, 6, 10, 2), 3);
  EXPECT_DOUBLE_EQ(un_overlapped_time(20, 6, 10, 2), 5);
}

TEST(Bounds, SpeedupIsTheRatioOfUnOverlappedTimes) {
  const double flops = 7, bytes = 3, peak = 5, bandwidth = 2, alpha = 2.5;
  const double r = flops / bytes / balance(peak, bandwidth);
  EXPECT_NEAR(speedup(r, alpha),
              un_overlapped_time(flops, bytes, peak, bandwidth) / un_overlapped_time(flops, bytes, alpha * peak, bandwidth),
              1e-14);
}

TEST(Bounds, SpeedupIsMonotoneBoundedAndContinuous) {
  const double step = 1.0 / 64;
  for (const double alpha : {1.0, 1.001, 1.5, 2.0, 8.0, 16.0, 1e6, infinity}) {
    EXPECT_DOUBLE_EQ(speedup(0, alpha), 1);
    EXPECT_NEAR(speedup(1, alpha), speedup_limit(alpha), 1e-15);
    for (double r = 0; r < 1; r += step) {
      const double here = speedup(r, alpha), next = speedup(r + step, alpha);
      EXPECT_LE(here, next);
      EXPECT_LE(next - here, step + 1e-15) << "the slope (1 - 1/alpha)/(1 + r/alpha)^2 is at most 1";
      EXPECT_GE(here, 1);
      EXPECT_LE(here, speedup_limit(alpha) + 1e-15);
      EXPECT_LE(here, speedup(r, 2 * alpha) + 1e-15);
      EXPECT_LE(here, 1 + r + 1e-15);
    }
  }
  EXPECT_NEAR(speedup(0.5, 1e12), speedup(0.5, infinity), 1e-11);
  EXPECT_NEAR(speedup_limit(1e12), 2, 1e-11);
}

TEST(Bounds, RedundantIssueMakesTensorCoresSlower) {
  EXPECT_LT(speedup(0.5, effective_alpha(2, 8)), 1);
  EXPECT_DOUBLE_EQ(allowed_speedup(0.5, effective_alpha(2, 8)), 1); // with full overlap
  EXPECT_LT(speedup_limit(effective_alpha(2, 8)), 1);
  EXPECT_DOUBLE_EQ(effective_alpha(2, 1), 2);
}

TEST(Bounds, PaddingAndWaves) {
  EXPECT_DOUBLE_EQ(padding_efficiency({16, 8, 4}, {8, 8, 4}), 1);
  EXPECT_DOUBLE_EQ(padding_efficiency({9, 8, 4}, {8, 8, 4}), 9.0 / 16);
  EXPECT_DOUBLE_EQ(padding_efficiency({1, 8, 3}, {8, 8, 4}), 3.0 / 32);
  EXPECT_DOUBLE_EQ(wave_efficiency(132, 132, 1), 1);
  EXPECT_DOUBLE_EQ(wave_efficiency(133, 132, 1), 133.0 / 264);
  EXPECT_DOUBLE_EQ(wave_efficiency(66, 132, 1), 0.5);
  EXPECT_DOUBLE_EQ(split_k_wave_efficiency(66, 2, 132, 1), 1);
  EXPECT_DOUBLE_EQ(persistent_wave_efficiency(133, 132, 132, 1), 1);
  for (double tiles = 1; tiles < 600; ++tiles) {
    const double plain = wave_efficiency(tiles, 132, 2), persistent = persistent_wave_efficiency(tiles, 64, 132, 2);
    EXPECT_LE(plain, persistent + 1e-15);
    EXPECT_LE(persistent, 1);
    EXPECT_GT(plain, 0);
  }
}

TEST(Bounds, TheLevelThatHoldsAWorkingSet) {
  const Machine a100 = built_in("A100-80GB");
  EXPECT_EQ(level_that_holds(a100, 1e6), Level::l1);
  EXPECT_EQ(level_that_holds(a100, a100.capacity(Level::l2)), Level::l2);
  EXPECT_EQ(level_that_holds(a100, a100.capacity(Level::l2) + 1), Level::dram);
  expect_named("working_set_bytes", [&] { level_that_holds(a100, 81e9); });
  EXPECT_THROW(level_that_holds(built_in("GH200"), 45e6), UnknownFigure); // no source gives its L2
  // A working set in L2 moves the ridge to lower intensity.
  EXPECT_LT(balance(9.7e12, a100.bandwidth(Level::l2)), balance(9.7e12, a100.bandwidth(Level::dram)));
}

TEST(Bounds, TemporalFusionCrossesTheRidge) {
  EXPECT_DOUBLE_EQ(fused_intensity(0.625, 4), 2.5);
  EXPECT_DOUBLE_EQ(steps_across_ridge(0.625, 8.5), 14);
  EXPECT_DOUBLE_EQ(steps_across_ridge(2.5, 5), 3); // on the ridge it is still memory-bound
  EXPECT_DOUBLE_EQ(steps_across_ridge(6.125, 5), 1);
  for (const double intensity : {0.1, 0.625, 1.125, 6.125}) {
    const double steps = steps_across_ridge(intensity, 8.5);
    EXPECT_GT(fused_intensity(intensity, steps), 8.5);
    EXPECT_LE(intensity * (steps - 1), 8.5);
  }
}

TEST(Bounds, HaloOfOverlappedTiling) {
  const OverlappedTile one{2, 32, 1, 1}, four{2, 32, 1, 4};
  EXPECT_DOUBLE_EQ(halo_read_redundancy(one), (34.0 * 34) / (32 * 32));
  EXPECT_DOUBLE_EQ(halo_compute_redundancy(one), 1);
  EXPECT_DOUBLE_EQ(halo_read_redundancy(four), (40.0 * 40) / (32 * 32));
  EXPECT_DOUBLE_EQ(halo_compute_redundancy(four), (32.0 * 32 + 34 * 34 + 36 * 36 + 38 * 38) / (4.0 * 32 * 32));
  EXPECT_LT(fused_tile_intensity(four, 10, 8), fused_intensity(10.0 / 16, 4));
  EXPECT_NEAR(fused_tile_intensity({2, 1e9, 1, 4}, 10, 8), fused_intensity(10.0 / 16, 4), 1e-6); // no halo to speak of
  EXPECT_GT(halo_read_redundancy({3, 32, 1, 4}), halo_read_redundancy(four));
}

TEST(Bounds, TensorCoresPayPastTheRidge) {
  EXPECT_TRUE(tensor_cores_pay(2, 0.75, 1));
  EXPECT_FALSE(tensor_cores_pay(2, 0.5, 1)); // as fast is no gain
  EXPECT_FALSE(tensor_cores_pay(2, 1, 8));
  EXPECT_TRUE(tensor_cores_pay(infinity, 0.1, 100));
}

TEST(Bounds, States) {
  Observation o{0.5, 2};
  EXPECT_EQ(classify(o), State::compliant);
  o.measured_speedup = 1.19; // S(1/2) is 1.2
  EXPECT_EQ(classify(o), State::compliant);
  o.measured_speedup = 1.3;
  EXPECT_EQ(classify(o), State::over_bound);
  o.r = 1.01;
  EXPECT_EQ(classify(o), State::compute_bound);
  o.time_seconds = 10e-6;
  o.launch_seconds = 3e-6;
  EXPECT_EQ(classify(o), State::latency_bound);
  o.time_seconds = 1e-3;
  EXPECT_EQ(classify(o), State::compute_bound);
  EXPECT_EQ(classify({1, 2}), State::compliant); // the ridge itself
  EXPECT_EQ(classify({0.5, 0.25, 1.0}), State::compliant);
  EXPECT_STREQ(words(State::compute_bound), "compute-bound, out of scope");
  EXPECT_STREQ(words(State::compliant), "memory-bound, compliant");
}

TEST(Bounds, BadArgumentsAreNamed) {
  for (const double bad : {0.0, -1.0, not_a_number, infinity}) {
    expect_named("peak", [&] { balance(bad, 1); });
    expect_named("bandwidth", [&] { balance(1, bad); });
    expect_named("intensity_of_one_step", [&] { fused_intensity(bad, 1); });
    expect_named("ridge", [&] { steps_across_ridge(1, bad); });
    expect_named("rho", [&] { effective_alpha(2, bad); });
    expect_named("eta", [&] { tensor_cores_pay(2, bad, 1); });
    expect_named("tile k", [&] { padding_efficiency({8, 8, 8}, {8, 8, bad}); });
    expect_named("sms", [&] { wave_efficiency(1, bad, 1); });
    expect_named("measured_speedup", [&] { classify({0.5, 2, std::isnan(bad) ? -1 : bad}); });
  }
  for (const double bad : {-1.0, not_a_number}) {
    expect_named("alpha", [&] { speedup_limit(bad); });
    expect_named("r ", [&] { speedup(bad, 2); });
    expect_named("flops", [&] { overlapped_time(bad, 1, 1, 1); });
    expect_named("bytes", [&] { un_overlapped_time(1, bad, 1, 1); });
  }
  expect_named("rho", [] { effective_alpha(2, 0.5); });
  expect_named("eta", [] { tensor_cores_pay(2, 1.5, 1); });
  expect_named("tiles", [] { wave_efficiency(1.5, 132, 1); });
  expect_named("splits", [] { split_k_wave_efficiency(1, 0, 132, 1); });
  expect_named("dimensions", [] { halo_read_redundancy({4, 8, 1, 1}); });
  expect_named("edge", [] { halo_read_redundancy({2, 0, 1, 1}); });
  expect_named("steps", [] { halo_compute_redundancy({2, 8, 1, 0}); });
}
