// Which candidates are built, and which of the formats is kept.
#include <gtest/gtest.h>

#include "spmv/compact/format.h"
#include "src/model/selection.h"

namespace {

using namespace tcbound;

class Named final : public Kernel {
public:
  Named(const char *format, MemorySpace space, bool gathers = true)
    : Kernel("spmv", format, "test"), space_(space), gathers_(gathers) {}
  MemorySpace             space() const override { return space_; }
  bool                    gathers() const override { return gathers_; }
  std::string             check(const Device &, const Problem &) const override { return {}; }
  Work                    predict(const Problem &, bool, bool) const override { return {}; }
  std::unique_ptr<Format> build(Executor &, const Problem &) const override { return nullptr; }
  void                    apply(Executor &, Format &, const Product &) const override {}

private:
  MemorySpace space_;
  bool        gathers_;
};

class Sized final : public Format {
public:
  Sized(std::int64_t bytes, double share, bool gathers = true) : share_(share), gathers_(gathers) { work_.bytes = bytes; }
  const char  *name() const override { return "sized"; }
  void         refill(Executor &, const double *, MemorySpace) override {}
  void         diagonal(Executor &, double *) override {}
  Work         work(bool, bool) const override { return work_; }
  std::int64_t stored_bytes() const override { return 0; }
  double       usual_share() const override { return share_; }
  bool         gathers() const override { return gathers_; }

private:
  Work   work_;
  double share_;
  bool   gathers_;
};

Candidate promising(const Kernel &kernel, std::int64_t bytes) {
  Work work;
  work.bytes = bytes;
  return {&kernel, nullptr, work};
}

TEST(Selection, DeviceKernelsComeFirstAndThenTheFewestBytes) {
  const Named host("a", MemorySpace::host), few("b", MemorySpace::cuda), many("c", MemorySpace::cuda),
    tied("d", MemorySpace::cuda);
  std::vector<Candidate> all = {promising(host, 1), promising(many, 9), promising(few, 5), promising(tied, 9)};
  rank(all);
  EXPECT_EQ(all[0].kernel, &few);
  EXPECT_EQ(all[1].kernel, &many);
  EXPECT_EQ(all[2].kernel, &tied);
  EXPECT_EQ(all[3].kernel, &host);
}

TEST(Selection, AFormatOfAFasterKernelMayHaveMoreBytes) {
  EXPECT_LT(cost(Sized(1000, 0.9), false), cost(Sized(900, 0.8), false));
  EXPECT_EQ(cost(Sized(1000, 1.0), false), 1000.0);
}

TEST(Selection, ACandidateIsBuiltOnlyWhileItMayWin) {
  const Named kernel("a", MemorySpace::cuda);
  EXPECT_TRUE(worth_building(promising(kernel, 99), 100.0));
  EXPECT_FALSE(worth_building(promising(kernel, 100), 100.0));
}

// x that the second-level cache has to deliver sector by sector is free up to what it delivers besides the memory.
TEST(Selection, LoadingXRowByRowCosts) {
  EXPECT_EQ(cost(Sized(1000, 0.5), false, 200.0), 2000.0);
  EXPECT_DOUBLE_EQ(cost(Sized(1000, 0.5), false, 2000.0), 2.0 * 3000.0 / cache_over_memory);
  EXPECT_EQ(cost(Sized(1000, 0.5, false), false, 2000.0), 2000.0);
  const Named rows("a", MemorySpace::cuda), tiles("b", MemorySpace::cuda, false);
  EXPECT_FALSE(worth_building(promising(rows, 1000), 2000.0, 2000.0));
  EXPECT_TRUE(worth_building(promising(tiles, 1000), 2000.0, 2000.0));
}

TEST(Selection, ExceptionsAndARemainderMakeCompactSlower) {
  compact::Census census;
  census.rows = 1000;
  census.nonzeros = 7000;
  const double slices = compact::usual_share(census);
  census.exceptions = 50;
  const double exceptions = compact::usual_share(census);
  census.exceptions = 0;
  census.remainder_nonzeros = 7000;
  const double remainder = compact::usual_share(census);
  EXPECT_DOUBLE_EQ(slices, 0.9);
  EXPECT_DOUBLE_EQ(remainder, 0.7);
  EXPECT_LT(exceptions, slices);
  EXPECT_GT(exceptions, remainder);
  EXPECT_EQ(compact::usual_share(compact::Census{}), 1.0);
}

Candidate registered(const char *kernel, std::int64_t bytes) { return promising(*find_kernel(kernel), bytes); }

TEST(Selection, TensorCoresOnlyIfNothingElseIsThere) {
  std::vector<Candidate> all = {registered("spmv/fragments/tensor_core", 10), registered("spmv/fragments/cuda_core", 10),
                                registered("spmv/csr/cuda_core", 12)},
                         alone = {all[0]};
  leave_out_tensor_cores(all);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].kernel->name(), "spmv/fragments/cuda_core");
  EXPECT_EQ(all[1].kernel->name(), "spmv/csr/cuda_core");
  leave_out_tensor_cores(alone);
  EXPECT_EQ(alone.size(), 1U);
}

} // namespace
