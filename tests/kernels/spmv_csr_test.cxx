// Every spmv/csr kernel against a long double reference.
#include <gtest/gtest.h>

#include <cctype>
#include <cstring>

#include "csr_support.h"
#ifdef TCBOUND_HAVE_CUDA
#include "spmv/csr/cuda_core_tuning.h"
#endif

namespace {

using namespace tcbound;
using namespace tcbound::test;

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

struct Call {
  bool   transpose = false;
  double alpha = 1.0, beta = 0.0;
  bool   in_place = false, misaligned = false; // z is y; all vectors at odd multiples of 8 bytes
};

std::string describe(const Csr &a, const Call &call) {
  return a.name + (call.transpose ? ", transposed" : "") + ", alpha " + std::to_string(call.alpha) + ", beta " +
         std::to_string(call.beta) + (call.in_place ? ", y = z" : "") + (call.misaligned ? ", misaligned" : "");
}

class SpmvCsr : public testing::TestWithParam<const Kernel *> {
protected:
  void SetUp() override {
    std::string why_not;
    if (kernel().space() == MemorySpace::host)
      executor_ = make_host_executor();
    else if (cuda_device_count(&why_not) > 0)
      executor_ = make_cuda_executor(0);
    else
      GTEST_SKIP() << why_not;
  }

  const Kernel &kernel() const { return *GetParam(); }
  Executor     &executor() { return *executor_; }

  std::unique_ptr<Format> build(const Problem &problem) { return kernel().build(executor(), problem); }

  // z of one product; z starts as y when y = z, and as NaN otherwise. y must not have changed, nor anything around z.
  std::vector<double> multiply(Format &format, const Call &call, const std::vector<double> &x, const std::vector<double> &y) {
    Guarded device_x(executor(), x, call.misaligned), device_y(executor(), y, call.misaligned);
    Guarded device_z(executor(), call.in_place ? y : std::vector<double>(y.size(), nan_value), call.misaligned);
    Product product;
    product.transpose = call.transpose;
    product.alpha = call.alpha;
    product.beta = call.beta;
    product.x = device_x.data();
    product.y = call.in_place ? device_z.data() : (call.beta == 0.0 ? nullptr : device_y.data());
    product.z = device_z.data();
    kernel().apply(executor(), format, product);
    bool                      x_intact = false, y_intact = false, z_intact = false;
    const std::vector<double> x_after = device_x.read(x_intact), y_after = device_y.read(y_intact), z = device_z.read(z_intact);
    EXPECT_TRUE(x_intact && y_intact && z_intact) << "something around a vector was written to";
    EXPECT_TRUE(same_bits(x, x_after)) << "x was written to";
    EXPECT_TRUE(same_bits(y, y_after)) << "y was written to";
    return z;
  }

  static bool same_bits(const std::vector<double> &a, const std::vector<double> &b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
  }

  static void expect_near(const std::vector<double> &got, const Expected &expected) {
    ASSERT_EQ(got.size(), expected.value.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      const long double want = expected.value[i];
      if (std::isnan(want))
        ASSERT_TRUE(std::isnan(got[i])) << "element " << i << " is " << got[i] << " instead of NaN";
      else if (std::isinf(want))
        ASSERT_EQ(got[i], static_cast<double>(want)) << "element " << i;
      else
        ASSERT_LE(std::abs(got[i] - want), expected.tolerance[i]) << "element " << i << ": " << got[i] << ", not " << want;
    }
  }

  void expect_product(const Csr &a, Format &format, const Call &call) {
    SCOPED_TRACE(describe(a, call));
    const std::vector<double> x = random_vector(call.transpose ? a.rows : a.columns_count, 1);
    std::vector<double>       y = random_vector(call.transpose ? a.columns_count : a.rows, 2);
    if (call.beta == 0.0) std::fill(y.begin(), y.end(), nan_value); // y must not be read
    expect_near(multiply(format, call, x, y), reference(a, call.transpose, call.alpha, call.beta, x, y));
  }

  void expect_products(const Csr &a, const Problem &problem) {
    const auto format = build(problem);
    for (const bool transpose : {false, true}) {
      expect_product(a, *format, {transpose, 1.0, 0.0, false, false});
      expect_product(a, *format, {transpose, -1.0, 1.0, true, true});
    }
  }

  std::unique_ptr<Executor> executor_;
};

TEST_P(SpmvCsr, SmallMatrices) {
  for (const Csr &a : small_matrices()) expect_products(a, Stored(a).problem());
}

TEST_P(SpmvCsr, LongRows) {
  for (const Csr &a : long_row_matrices()) expect_products(a, Stored(a).problem());
}

TEST_P(SpmvCsr, ScalingAndAliasing) {
  const Csr    a = irregular(3001, 2500, 40);
  const Stored stored(a);
  const auto   format = build(stored.problem());
  for (const bool transpose : {false, true})
    for (const double alpha : {1.0, -1.0, 0.5, 0.0})
      for (const double beta : {0.0, 1.0, -2.0})
        for (const bool in_place : {false, true})
          for (const bool misaligned : {false, true})
            expect_product(a, *format, {transpose, alpha, beta, in_place, misaligned});
}

TEST_P(SpmvCsr, IndexWidths) {
  for (const Csr &a : {irregular(2000, 1500, 30), ragged(), uniform(0, 5, 0)})
    for (const int offset_bytes : {4, 8})
      for (const int index_bytes : {4, 8}) {
        SCOPED_TRACE(std::to_string(offset_bytes) + "-byte offsets, " + std::to_string(index_bytes) + "-byte columns");
        Stored stored(a, offset_bytes, index_bytes);
        expect_products(a, stored.problem());
        expect_products(a, stored.on(executor())); // in device memory for a device kernel
      }
}

// NaN and infinity come out where they go in and nowhere else.
TEST_P(SpmvCsr, NotFinite) {
  Csr a = irregular(1500, 1200, 12);
  a.values[100] = infinity;
  a.values[2000] = nan_value;
  a.values[static_cast<std::size_t>(a.nonzeros()) - 1] = -infinity;
  const Stored stored(a);
  const auto   format = build(stored.problem());
  for (const bool transpose : {false, true}) {
    std::vector<double> x = random_vector(transpose ? a.rows : a.columns_count, 3);
    std::vector<double> y = random_vector(transpose ? a.columns_count : a.rows, 4);
    x[0] = nan_value;
    x[7] = infinity;
    x[x.size() - 1] = -infinity;
    SCOPED_TRACE(transpose ? "transposed" : "plain");
    expect_near(multiply(*format, {transpose, 1.0, 0.0, false, false}, x, y), reference(a, transpose, 1.0, 0.0, x, y));
    y[5] = nan_value;
    expect_near(multiply(*format, {transpose, -1.0, 2.0, true, false}, x, y), reference(a, transpose, -1.0, 2.0, x, y));
  }
}

// Zeros stored in the matrix count: zero times infinity is NaN.
TEST_P(SpmvCsr, StoredZerosAndSubnormals) {
  Csr a = uniform(300, 300, 1);
  for (std::size_t i = 0; i < 300; ++i) {
    a.columns[i] = static_cast<std::int64_t>(i);
    a.values[i] = i % 3 == 0 ? 0.0 : (i % 3 == 1 ? -0.0 : 1.0);
  }
  const Stored        stored(a);
  const auto          format = build(stored.problem());
  std::vector<double> x(300, std::numeric_limits<double>::denorm_min());
  x[30] = infinity;
  x[31] = -1.0;
  for (const bool transpose : {false, true}) {
    const std::vector<double> z = multiply(*format, {transpose, 1.0, 0.0, false, false}, x, x);
    for (std::size_t i = 0; i < 300; ++i) {
      if (i == 30)
        EXPECT_TRUE(std::isnan(z[i]));
      else if (i % 3 == 2)
        EXPECT_EQ(z[i], x[i]) << "a subnormal number was lost in row " << i;
      else
        EXPECT_EQ(z[i], 0.0) << "row " << i;
    }
  }
}

TEST_P(SpmvCsr, Refill) {
  Csr    first = ragged(), second = first;
  Stored stored(first);
  for (double &value : second.values) value = 3.0 - 2.0 * value;
  Stored     again(second);
  const auto format = build(stored.problem());
  for (int round = 0; round < 2; ++round) { // in the second round the transpose exists already
    format->refill(executor(), again.problem().csr.values, MemorySpace::host);
    for (const bool transpose : {false, true}) expect_product(second, *format, {transpose, 1.0, 0.0, false, false});
    format->refill(executor(), stored.on(executor()).csr.values, executor().space());
    for (const bool transpose : {false, true}) expect_product(first, *format, {transpose, 1.0, 0.0, false, false});
  }
}

TEST_P(SpmvCsr, Diagonal) {
  Csr a = irregular(700, 650, 9);
  for (const std::size_t i : {std::size_t(0), std::size_t(123), std::size_t(649)}) { // rows that surely have one
    if (a.offsets[i] == a.offsets[i + 1]) continue;
    a.columns[static_cast<std::size_t>(a.offsets[i])] = static_cast<std::int64_t>(i);
    std::sort(a.columns.begin() + a.offsets[i], a.columns.begin() + a.offsets[i + 1]);
    a.columns.erase(std::unique(a.columns.begin() + a.offsets[i], a.columns.begin() + a.offsets[i + 1]),
                    a.columns.begin() + a.offsets[i + 1]);
    ASSERT_EQ(a.columns.size(), a.values.size()) << "the test's own matrix has a duplicate";
  }
  for (const Csr &m : {a, uniform(650, 700, 20), uniform(700, 650, 20), uniform(40, 0, 0), uniform(64, 64, 64)}) {
    SCOPED_TRACE(m.name);
    const auto          size = static_cast<std::size_t>(m.rows);
    std::vector<double> expected(size, 0.0);
    for (std::size_t i = 0; i < size; ++i)
      for (auto k = static_cast<std::size_t>(m.offsets[i]); k < static_cast<std::size_t>(m.offsets[i + 1]); ++k)
        if (m.columns[k] == static_cast<std::int64_t>(i)) expected[i] = m.values[k];
    Guarded      d(executor(), std::vector<double>(size, nan_value), true);
    const Stored stored(m);
    build(stored.problem())->diagonal(executor(), d.data());
    bool intact = false;
    EXPECT_TRUE(same_bits(d.read(intact), expected));
    EXPECT_TRUE(intact);
  }
}

TEST_P(SpmvCsr, SameBitsInEveryRun) {
  for (const Csr &a : {ragged(), one_long_row(1000, 300000, 499), irregular(20000, 20000, 30)}) {
    const Stored stored(a);
    const auto   format = build(stored.problem()), other = build(stored.problem());
    for (const bool transpose : {false, true}) {
      const std::vector<double> x = random_vector(transpose ? a.rows : a.columns_count, 5);
      const std::vector<double> y = random_vector(transpose ? a.columns_count : a.rows, 6);
      const Call                call{transpose, 0.5, -2.0, false, false};
      const std::vector<double> first = multiply(*format, call, x, y);
      for (int run = 0; run < 20; ++run) ASSERT_TRUE(same_bits(multiply(*format, call, x, y), first)) << describe(a, call);
      EXPECT_TRUE(same_bits(multiply(*other, call, x, y), first)) << "a second format differs: " << describe(a, call);
    }
  }
}

TEST_P(SpmvCsr, PredictedWorkIsTheWork) {
  std::vector<Csr> all = small_matrices();
  for (const Csr &a : long_row_matrices()) all.push_back(a);
  for (const Csr &a : all) {
    SCOPED_TRACE(a.name);
    const Stored stored(a);
    const auto   format = build(stored.problem());
    const auto   compare = [&] {
      for (const bool transpose : {false, true})
        for (const bool accumulate : {false, true}) {
          const Work work = format->work(transpose, accumulate);
          EXPECT_EQ(kernel().predict(stored.problem(), transpose, accumulate), work);
          EXPECT_EQ(work.useful_flops, 2 * a.nonzeros());
          EXPECT_EQ(work.issued_flops, work.useful_flops);
          EXPECT_GE(work.bytes, work.compulsory_bytes);
          EXPECT_GE(work.compulsory_bytes, 12 * a.nonzeros() + 8 * (a.rows + a.columns_count));
        }
    };
    compare();
    expect_product(a, *format, {true, 1.0, 0.0, false, false});
    compare();
  }
}

TEST_P(SpmvCsr, BytesByHand) {
  const Csr          a = uniform(1000, 500, 7); // 7000 entries
  const Stored       stored(a);
  const std::int64_t matrix = 12 * 7000;
  const Work plain = kernel().predict(stored.problem(), false, false), added = kernel().predict(stored.problem(), false, true);
  EXPECT_EQ(plain.compulsory_bytes, matrix + 4 * 1001 + 8 * 500 + 8 * 1000);
  EXPECT_EQ(added.compulsory_bytes, plain.compulsory_bytes + 8 * 1000);
  EXPECT_LE(static_cast<double>(plain.bytes), 1.002 * static_cast<double>(plain.compulsory_bytes));
}

TEST_P(SpmvCsr, CheckSaysWhyNot) {
  const Csr    a = uniform(10, 10, 3);
  const Stored stored(a);
  EXPECT_EQ(kernel().check(executor().device(), stored.problem()), "");
  Device other;
  other.space = kernel().space() == MemorySpace::host ? MemorySpace::cuda : MemorySpace::host;
  other.name = "another device";
  EXPECT_NE(kernel().check(other, stored.problem()), "");
  if (kernel().space() == MemorySpace::host) {
    Problem elsewhere = stored.problem();
    elsewhere.csr.space = MemorySpace::cuda;
    EXPECT_NE(kernel().check(executor().device(), elsewhere).find("device memory"), std::string::npos);
    EXPECT_THROW(build(elsewhere), Error);
    return;
  }
  Problem tall, wide;
  tall.csr.rows = wide.csr.columns_count = std::int64_t(1) << 31;
  EXPECT_NE(kernel().check(executor().device(), tall).find("2147483648 rows"), std::string::npos);
  EXPECT_NE(kernel().check(executor().device(), wide).find("2147483648 columns"), std::string::npos);
  EXPECT_THROW(build(wide), Error);
  if (kernel().backend() == "cusparse") {
    Problem many;
    many.csr.nonzeros = std::int64_t(1) << 31;
    EXPECT_NE(kernel().check(executor().device(), many).find("64-bit row offsets"), std::string::npos);
  }
  Device old = executor().device();
  old.compute_major = 7;
  EXPECT_NE(kernel().check(old, stored.problem()).find("compute capability"), std::string::npos);
}

TEST_P(SpmvCsr, ContradictingSizesAreRefused) {
  const Csr    a = uniform(10, 10, 3);
  const Stored stored(a);
  Problem      problem = stored.problem();
  problem.csr.nonzeros = 29;
  try {
    build(problem);
    FAIL() << "a matrix whose offsets end beyond its entries was taken";
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid) << error.what();
  }
}

std::vector<const Kernel *> kernels_in(MemorySpace space) {
  std::vector<const Kernel *> found;
  for (const Kernel *kernel : all_kernels())
    if (kernel->op() == "spmv" && kernel->format() == "csr" && kernel->space() == space) found.push_back(kernel);
  return found;
}

std::string test_name(const testing::TestParamInfo<const Kernel *> &info) { return info.param->backend(); }

INSTANTIATE_TEST_SUITE_P(Cpu, SpmvCsr, testing::ValuesIn(kernels_in(MemorySpace::host)), test_name);
INSTANTIATE_TEST_SUITE_P(Gpu, SpmvCsr, testing::ValuesIn(kernels_in(MemorySpace::cuda)), test_name);

#ifdef TCBOUND_HAVE_CUDA

// Every way that cuda_core can be tuned gives the same results; also 64-bit row offsets, which only a matrix of more than
// 24 GB would bring about by itself.
class GpuCudaCoreVariants : public SpmvCsr {};

TEST_P(GpuCudaCoreVariants, Products) {
  std::vector<csr::CudaCoreVariant> variants = csr::cuda_core_variants();
  variants.push_back({"smallest chunks", {32, 1, 2, 3, csr::ChunkMode::automatic, true, false}});
  variants.push_back({"wide offsets", {128, 1792, 2, 2, csr::ChunkMode::automatic, true, true}});
  const std::vector<Csr> matrices = {ragged(),
                                     uniform(30011, 1000, 7),
                                     uniform(7001, 7001, 27),
                                     irregular(20000, 20000, 30),
                                     uniform(70001, 3, 0),
                                     one_long_row(1000, 300000, 499),
                                     one_long_row(1000, 46500, 999),
                                     uniform(0, 3, 0)};
  for (const csr::CudaCoreVariant &variant : variants)
    for (const Csr &a : matrices) {
      SCOPED_TRACE(variant.name);
      const Stored stored(a);
      const auto   format = csr::build_cuda_core(executor(), stored.problem().csr, variant.config);
      for (const bool transpose : {false, true})
        for (int repeat = 0; repeat < 2; ++repeat) expect_product(a, *format, {transpose, -0.5, 2.0, false, true});
    }
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuCudaCoreVariants, testing::Values(find_kernel("spmv/csr/cuda_core")), test_name);

#endif

} // namespace
