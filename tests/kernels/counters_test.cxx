// Hardware counters: which of them chips have, and what they say of kernels whose work is known.
#include "counters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "kernel.h"
#include "rules.h"
#include "vector.h"

namespace {

using namespace tcbound;

// CUPTI knows the counters of chips that are not here, too.
CounterPlan plan_or_skip(const std::string &chip, std::string &why_not) {
  try {
    return plan_counters(chip);
  } catch (const Error &e) {
    why_not = e.what();
    return {};
  }
}

TEST(CounterPlan, ChipsWithFp64TensorCoresCountAll) {
  for (const char *chip : {"GA100", "GH100", "GB100"}) {
    std::string       why_not;
    const CounterPlan plan = plan_or_skip(chip, why_not);
    if (!why_not.empty()) GTEST_SKIP() << why_not;
    EXPECT_EQ(plan.metrics.size(), 8U) << chip;
    EXPECT_TRUE(plan.missing.empty()) << chip << ": " << plan.missing[0];
    EXPECT_EQ(plan.passes, 2U) << chip;
  }
}

TEST(CounterPlan, WhatAChipLacksIsLeftOutAndNamed) {
  std::string       why_not;
  const CounterPlan plan = plan_or_skip("GV100", why_not);
  if (!why_not.empty()) GTEST_SKIP() << why_not;
  const std::vector<std::string> lacking = {"FP64 tensor-core instructions", "operations of FP64 tensor cores"};
  EXPECT_EQ(plan.missing, lacking);
  EXPECT_EQ(plan.metrics.size(), 6U);
}

TEST(CounterPlan, AnUnknownChipIsAnError) {
  std::string why_not;
  plan_or_skip("GH100", why_not);
  if (!why_not.empty()) GTEST_SKIP() << why_not;
  EXPECT_THROW(plan_counters("no such chip"), Error);
}

TEST(CounterPlan, AHostHasNone) {
  const auto host = make_host_executor();
  EXPECT_THROW(make_cuda_counters(*host), Error);
}

class GpuCounters : public testing::Test {
protected:
  void SetUp() override {
    std::string why_not;
    if (cuda_device_count(&why_not) == 0) GTEST_SKIP() << why_not;
    executor_ = make_cuda_executor(0);
    try {
      counters_ = make_cuda_counters(*executor_);
    } catch (const Error &e) {
      if (e.code() != ErrorCode::unsupported) throw;
      GTEST_SKIP() << e.what();
    }
  }

  // Of y = A x; the work counted goes to work_.
  Counts product(const char *name, const bench::Matrix &a) {
    const Kernel             *kernel = find_kernel(name);
    Array<double>             x(*executor_, a.columns_count), y(*executor_, a.rows);
    Problem                   problem;
    const std::vector<double> ones(static_cast<std::size_t>(a.columns_count), 1.0);
    executor_->copy(x.data(), MemorySpace::cuda, ones.data(), MemorySpace::host, ones.size() * sizeof(double));
    problem.csr = a.view();
    const auto format = kernel->build(*executor_, problem);
    Product    product;
    product.x = x.data();
    product.z = y.data();
    work_ = format->work(false, false);
    return counters_->measure([&] { kernel->apply(*executor_, *format, product); });
  }

  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Counters> counters_;
  Work                      work_;
};

// 1.4 GB: more than 20 times the L2 of an H200.
TEST_F(GpuCounters, BytesOfALargeMatrixAreThoseCounted) {
  const Counts counts = product("spmv/csr/cuda_core", bench::poisson(160, 27, false, "poisson27-160"));
  EXPECT_NEAR(counts.dram_bytes() / static_cast<double>(work_.bytes), 1.0, 0.05)
    << counts.dram_read_bytes << " read, " << counts.dram_write_bytes << " written, " << work_.bytes << " counted";
  EXPECT_GT(counts.l2_bytes, counts.dram_read_bytes);
  EXPECT_EQ(counts.mma_instructions, 0.0);
  // Zeros stored in rows' ends are not multiplied; lanes that add up a row add a little.
  EXPECT_GE(counts.flops(), 0.99 * static_cast<double>(work_.useful_flops));
  EXPECT_LE(counts.flops(), 1.5 * static_cast<double>(work_.useful_flops));
}

// How much L2 keeps from one product to the next is its own affair.
TEST_F(GpuCounters, AMatrixThatFitsInL2TakesNoMoreFromDram) {
  const Counts counts = product("spmv/csr/cuda_core", bench::poisson(48, 7, false, "poisson7-48")); // 11 MB
  EXPECT_LT(counts.dram_bytes(), 1.05 * static_cast<double>(work_.bytes));
  EXPECT_GT(counts.l2_bytes, 0.95 * static_cast<double>(work_.bytes));
}

// w = q v as matrix products: their instructions are there, and cuda_core's twin has none.
TEST_F(GpuCounters, TensorCoresAreSeen) {
  const std::int64_t length = std::int64_t(1) << 24;
  Array<double>      v(*executor_, length), w(*executor_, length);
  const double      *in = v.data();
  // Not zeros, whose products are computed twice (scale/array/device_scale.h).
  const std::vector<double> ones(static_cast<std::size_t>(length), 1.0);
  executor_->copy(v.data(), MemorySpace::cuda, ones.data(), MemorySpace::host, static_cast<std::size_t>(v.bytes()));
  const double q = 1.5;
  Elementwise  call;
  call.length = length;
  call.w = w.data();
  call.v = &in;
  call.coefficients = &q;
  const auto       &tensor = dynamic_cast<const ElementwiseKernel &>(*find_kernel("scale/array/tensor_core"));
  const auto       &cuda = dynamic_cast<const ElementwiseKernel &>(*find_kernel("scale/array/cuda_core"));
  const std::string why_not = tensor.check_vectors(executor_->device(), length, MmaShape::automatic);
  if (!why_not.empty()) GTEST_SKIP() << why_not;
  const Counts with = counters_->measure([&] { tensor.run(*executor_, call); });
  const Counts without = counters_->measure([&] { cuda.run(*executor_, call); });
  const double issued = static_cast<double>(tensor.work(call).issued_flops);
  EXPECT_GT(with.mma_instructions, 0.0);
  EXPECT_EQ(without.mma_instructions, 0.0);
  EXPECT_EQ(without.mma_flops, 0.0);
  std::cout << "operations of tensor cores, measured over issued: " << with.mma_flops / issued << '\n';
  EXPECT_GT(with.mma_flops, 0.45 * issued);
  EXPECT_LT(with.mma_flops, 2.2 * issued);
  EXPECT_GE(without.multiply + without.fma, static_cast<double>(length)); // a multiplication an element
  EXPECT_LE(without.multiply + without.fma, 1.1 * static_cast<double>(length));
}

TEST_F(GpuCounters, NothingIsNothing) {
  const Counts counts = counters_->measure([] {});
  EXPECT_EQ(counts.flops(), 0.0);
  EXPECT_LT(counts.dram_bytes(), 1e6);
}

// A second measurement on the same counters is as good as the first, and one that fails leaves them usable.
TEST_F(GpuCounters, MeasureAgainAndAfterAFailure) {
  const bench::Matrix a = bench::poisson(64, 27, true, "poisson27-64");
  const Counts        first = product("spmv/csr/cuda_core", a);
  int                 runs = 0;
  EXPECT_THROW(counters_->measure([&] {
    if (++runs == 2) throw Error(ErrorCode::invalid, "in the first pass");
  }),
               Error);
  const Counts second = product("spmv/csr/cuda_core", a);
  EXPECT_EQ(first.flops(), second.flops());
  EXPECT_GT(second.flops(), 0.0);
}

} // namespace
