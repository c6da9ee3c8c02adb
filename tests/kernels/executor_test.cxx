#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "executor.h"

namespace {

using namespace tcbound;

class ExecutorTest : public testing::TestWithParam<MemorySpace> {
protected:
  void SetUp() override {
    std::string why_not;
    if (GetParam() == MemorySpace::host)
      executor_ = make_host_executor();
    else if (cuda_device_count(&why_not) > 0)
      executor_ = make_cuda_executor(0);
    else
      GTEST_SKIP() << why_not;
  }

  std::unique_ptr<Executor> executor_;
};

TEST_P(ExecutorTest, DescribesItsDevice) {
  const Device &device = executor_->device();
  EXPECT_EQ(device.space, GetParam());
  EXPECT_FALSE(device.name.empty());
  EXPECT_EQ(device.multiprocessors > 0, GetParam() == MemorySpace::cuda);
  EXPECT_EQ(device.compute_major > 0, GetParam() == MemorySpace::cuda);
  EXPECT_EQ(device.memory_bytes > 0, GetParam() == MemorySpace::cuda);
}

TEST_P(ExecutorTest, CopiesThereAndBack) {
  std::vector<double> from(1001), to(1001, 0.0);
  std::iota(from.begin(), from.end(), 1.0);
  const std::size_t bytes = from.size() * sizeof(double);
  Array<double>     first(*executor_, 1001), second(*executor_, 1001);
  executor_->copy(first.data(), executor_->space(), from.data(), MemorySpace::host, bytes);
  executor_->copy(second.data(), executor_->space(), first.data(), executor_->space(), bytes);
  executor_->copy(to.data(), MemorySpace::host, second.data(), executor_->space(), bytes);
  EXPECT_EQ(from, to);
  executor_->copy(nullptr, executor_->space(), nullptr, MemorySpace::host, 0);
}

TEST_P(ExecutorTest, ArraysMoveAndMayBeEmpty) {
  Array<int> a(*executor_, 10), b;
  int *const data = a.data();
  EXPECT_NE(data, nullptr);
  b = std::move(a);
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(b.bytes(), 40);
  EXPECT_EQ(Array<int>(*executor_, 0).data(), nullptr);
  executor_->release(nullptr);
}

TEST_P(ExecutorTest, IntervalsMeasureTime) {
  const auto    interval = executor_->interval();
  Array<double> memory(*executor_, 1 << 20);
  EXPECT_FALSE(interval->ready());
  interval->begin();
  executor_->copy(memory.data(), executor_->space(), memory.data(), executor_->space(),
                  static_cast<std::size_t>(memory.bytes()));
  interval->end();
  const double seconds = interval->seconds();
  EXPECT_TRUE(interval->ready());
  EXPECT_GT(seconds, 0.0);
  EXPECT_LT(seconds, 10.0);
}

TEST_P(ExecutorTest, BandwidthIsOfThisCentury) {
  const double bandwidth = executor_->measure_bandwidth();
  EXPECT_GT(bandwidth, 1e8);
  EXPECT_LT(bandwidth, 1e14);
}

TEST_P(ExecutorTest, MeasuresTheOtherCeilingsOfItsKind) {
  const bool   host = GetParam() == MemorySpace::host;
  const double cache = executor_->measure_cache_bandwidth(), peak = executor_->measure_peak(),
               launch = executor_->measure_launch();
  EXPECT_EQ(cache == 0, host);
  EXPECT_EQ(peak == 0, !host);
  EXPECT_GT(launch, 0);
  EXPECT_LT(launch, 1e-3);
  if (host) {
    EXPECT_GT(peak, 1e8);
    EXPECT_LT(peak, 1e12); // of one thread
  } else {
    EXPECT_GT(cache, 1e10);
    EXPECT_GT(launch, 1e-7);
  }
  EXPECT_FALSE(executor_->device().driver.empty());
}

// Not on the host, where a sanitizer ends the program at such a request.
TEST_P(ExecutorTest, GoesOnAfterRunningOutOfMemory) {
  if (GetParam() == MemorySpace::host) GTEST_SKIP() << "the host's allocator may overcommit";
  for (const std::size_t bytes : {std::size_t(1) << 50, ~std::size_t(0) - 5}) try {
      executor_->allocate(bytes);
      FAIL() << "got " << bytes << " bytes";
    } catch (const Error &error) {
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
      EXPECT_NE(std::string(error.what()).find(std::to_string(bytes)), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("free"), std::string::npos) << error.what();
    }
  std::vector<int> values = {1, 2, 3}, back(3);
  Array<int>       array(*executor_, 3);
  executor_->copy(array.data(), executor_->space(), values.data(), MemorySpace::host, 12);
  executor_->copy(back.data(), MemorySpace::host, array.data(), executor_->space(), 12);
  EXPECT_EQ(values, back);
}

// What is released on a device is kept for the next request of about that size, unless it is large.
TEST_P(ExecutorTest, AllocatesAgainWhatWasReleased) {
  if (GetParam() == MemorySpace::host) GTEST_SKIP() << "the host's allocator does as it likes";
  const std::size_t all = executor_->device().memory_bytes;
  for (const std::size_t bytes : {std::size_t(1), std::size_t(1000), std::size_t(3) << 20, all / 300}) {
    void *const first = executor_->allocate(bytes), *const other = executor_->allocate(bytes);
    EXPECT_NE(first, other);
    executor_->release(first);
    void *const second = executor_->allocate(bytes);
    EXPECT_EQ(second, first) << bytes;
    executor_->release(second);
    void *const much_less = executor_->allocate(bytes / 2);
    EXPECT_NE(much_less, bytes > 1 ? first : nullptr) << bytes;
    for (void *memory : {other, much_less}) executor_->release(memory);
  }
}

// Memory that is kept is there for a request that would find none otherwise.
TEST_P(ExecutorTest, GivesUpWhatItKeepsForALargeRequest) {
  if (GetParam() == MemorySpace::host) GTEST_SKIP() << "the host's allocator may overcommit";
  const std::size_t all = executor_->device().memory_bytes, piece = all / 512;
  std::size_t       most = all; // that can be had while all is kept, or a little less
  const auto        try_one = [&](std::size_t bytes) {
    try {
      executor_->release(executor_->allocate(bytes));
      return true;
    } catch (const Error &error) {
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
      return false;
    }
  };
  while (!try_one(most)) most -= piece; // and nothing is kept any more
  std::vector<void *> pieces;
  for (int i = 0; i < 6; ++i) pieces.push_back(executor_->allocate(piece));
  EXPECT_FALSE(try_one(most));
  for (void *memory : pieces) executor_->release(memory);
  EXPECT_TRUE(try_one(most));
}

TEST_P(ExecutorTest, BorrowedArraysAreNotReleased) {
  Array<int> owner(*executor_, 5);
  {
    const Array<int> borrowed = Array<int>::borrow(owner.data(), 5);
    EXPECT_EQ(borrowed.data(), owner.data());
    EXPECT_EQ(borrowed.size(), 5);
  }
  if (GetParam() == MemorySpace::cuda) {
    EXPECT_NE(Array<int>(*executor_, 5).data(), owner.data());
  }
  const std::vector<int> values = {1, 2, 3, 4, 5};
  std::vector<int>       back(5);
  executor_->copy(owner.data(), executor_->space(), values.data(), MemorySpace::host, 20);
  executor_->copy(back.data(), MemorySpace::host, owner.data(), executor_->space(), 20);
  EXPECT_EQ(values, back);
}

std::string test_name(const testing::TestParamInfo<MemorySpace> &info) {
  return info.param == MemorySpace::host ? "host" : "cuda";
}

INSTANTIATE_TEST_SUITE_P(Cpu, ExecutorTest, testing::Values(MemorySpace::host), test_name);
INSTANTIATE_TEST_SUITE_P(Gpu, ExecutorTest, testing::Values(MemorySpace::cuda), test_name);

TEST(HostExecutor, CannotReachDeviceMemory) {
  const auto executor = make_host_executor();
  double     value = 0.0;
  EXPECT_THROW(executor->copy(&value, MemorySpace::cuda, &value, MemorySpace::host, 8), Error);
}

TEST(CudaDevices, AreCountedOrTheReasonGiven) {
  for (int time = 0; time < 2; ++time) {
    std::string why_not;
    const int   count = cuda_device_count(&why_not);
    EXPECT_GE(count, 0);
    EXPECT_EQ(why_not.empty(), count > 0) << why_not;
    EXPECT_EQ(cuda_device_count(nullptr), count);
    EXPECT_THROW(make_cuda_executor(count), Error);
    EXPECT_THROW(make_cuda_executor(-1), Error);
  }
}

} // namespace
