// Kernels of operations combine, multiply and reduce against sums in long double, at every alignment.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "spmv_support.h"
#include "vector.h"

namespace {

using namespace tcbound;
using namespace tcbound::test;

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
constexpr double epsilon = std::numeric_limits<double>::epsilon();

using Vectors = std::vector<std::vector<double>>;

// Around pairs, warps, blocks, and past the number of blocks of one launch.
const std::vector<std::int64_t> sizes = {0,   1,   2,   3,    31,   32,   33,   63,   64,    65,     127,    128,    129,
                                         255, 256, 257, 1023, 1024, 1025, 2047, 4096, 10001, 100003, 270337, 1200007};

class VectorTest : public testing::TestWithParam<MemorySpace> {
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

  template <class K> const K &kernel(const std::string &op) const {
    return dynamic_cast<const K &>(*find_kernel(op + "/array/" + (GetParam() == MemorySpace::host ? "host" : "cuda_core")));
  }

  // w of one call; w starts as `w`. Vector k is at an odd multiple of 8 bytes where bit k of `odd` is set, w where bit 31 is.
  // in_place: w is v[in_place].
  std::vector<double> run(const std::string &op, const std::vector<double> &w, const Vectors &v, double scale,
                          const std::vector<double> &c, unsigned odd, int in_place = -1) {
    std::vector<std::unique_ptr<Guarded>> memory;
    std::vector<const double *>           pointers;
    for (std::size_t k = 0; k < v.size(); ++k) {
      memory.push_back(std::make_unique<Guarded>(*executor_, v[k], (odd >> (k % 31) & 1) != 0));
      pointers.push_back(memory[k]->data());
    }
    Guarded  own(*executor_, w, odd >> 31 != 0);
    Guarded &target = in_place < 0 ? own : *memory[static_cast<std::size_t>(in_place)];

    Elementwise call;
    call.length = static_cast<std::int64_t>(w.size());
    call.w = target.data();
    call.scale = scale;
    call.terms = static_cast<int>(v.size());
    call.v = pointers.data();
    call.coefficients = c.data();
    kernel<ElementwiseKernel>(op).run(*executor_, call);
    bool                intact = false;
    std::vector<double> result = target.read(intact);
    EXPECT_TRUE(intact) << "something around w was written to";
    for (std::size_t k = 0; k < v.size(); ++k) {
      if (static_cast<int>(k) == in_place) continue;
      const std::vector<double> after = memory[k]->read(intact);
      EXPECT_TRUE(intact && (after.empty() || std::memcmp(after.data(), v[k].data(), after.size() * 8) == 0)) << "v changed";
    }
    return result;
  }

  void expect_combination(std::int64_t n, int terms, double scale, unsigned odd, int in_place = -1) {
    SCOPED_TRACE(std::to_string(n) + " elements, " + std::to_string(terms) + " terms, scale " + std::to_string(scale) +
                 ", alignment " + std::to_string(odd) + ", in place " + std::to_string(in_place));
    Vectors             v;
    std::vector<double> c;
    for (int k = 0; k < terms; ++k) {
      v.push_back(random_vector(n, static_cast<unsigned>(100 + k)));
      c.push_back(k == 1 ? -1.0 : 0.3 * (k + 1));
    }
    std::vector<double> w = random_vector(n, 99);
    if (scale == 0.0) std::fill(w.begin(), w.end(), nan_value); // must not be read
    const std::vector<double> got = run("combine", w, v, scale, c, odd, in_place);
    for (std::size_t i = 0; i < got.size(); ++i) {
      long double sum = 0, size = 0;
      const auto  add = [&](long double term) {
        sum += term;
        size += std::abs(term);
      };
      if (scale != 0.0) add(static_cast<long double>(scale) * (in_place < 0 ? w[i] : v[static_cast<std::size_t>(in_place)][i]));
      for (std::size_t k = 0; k < v.size(); ++k) add(static_cast<long double>(c[k]) * v[k][i]);
      ASSERT_LE(std::abs(got[i] - sum), (terms + 2) * epsilon * size) << "element " << i;
    }
  }

  // Vector k (x is k = 0, y[j] is j + 1) at an odd multiple of 8 bytes where bit k of `odd` is set.
  std::vector<double> reduce(Sum sum, const std::vector<double> &x, const Vectors &y, unsigned odd, double factor = 1.0) {
    Guarded                               device_x(*executor_, x, (odd & 1) != 0);
    std::vector<std::unique_ptr<Guarded>> memory;
    std::vector<const double *>           pointers;
    for (std::size_t k = 0; k < y.size(); ++k) {
      memory.push_back(std::make_unique<Guarded>(*executor_, y[k], (odd >> ((k + 1) % 32) & 1) != 0));
      pointers.push_back(memory[k]->data());
    }
    const auto &k = kernel<ReductionKernel>("reduce");
    if (!space_) space_ = k.make_space(*executor_);
    Reduction call;
    call.sum = sum;
    call.length = static_cast<std::int64_t>(x.size());
    call.x = device_x.data();
    call.terms = static_cast<int>(y.size());
    call.y = pointers.data();
    call.factor = factor;
    std::vector<double> results(static_cast<std::size_t>(call.results()) + 1, -77.0);
    k.start(*executor_, *space_, call);
    k.finish(*executor_, *space_, call, results.data());
    EXPECT_EQ(results.back(), -77.0) << "more was written than there are results";
    results.pop_back();
    return results;
  }

  void expect_reductions(std::int64_t n, unsigned odd) {
    SCOPED_TRACE(std::to_string(n) + " elements, alignment " + std::to_string(odd));
    const std::vector<double> x = random_vector(n, 5), y = random_vector(n, 6);
    long double               xy = 0, size = 0, xx = 0, yy = 0, one = 0;
    double                    most = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      xy += static_cast<long double>(x[i]) * y[i];
      size += std::abs(static_cast<long double>(x[i]) * y[i]);
      xx += static_cast<long double>(x[i]) * x[i];
      yy += static_cast<long double>(y[i]) * y[i];
      one += std::abs(x[i]);
      most = std::max(most, std::abs(x[i]));
    }
    const auto near = [&](double got, long double want, long double magnitude) {
      // Sums of sums: a rounding error for each of at most n, but far fewer levels than that.
      EXPECT_LE(std::abs(got - want), (16 + static_cast<double>(n) / 256) * epsilon * magnitude);
    };
    near(reduce(Sum::dots, x, {y}, odd)[0], xy, size);
    near(reduce(Sum::squares, x, {}, odd)[0], xx, xx);
    near(reduce(Sum::squares, x, {}, odd, 0x1p-300)[0], xx * 0x1p-600L, xx * 0x1p-600L);
    near(reduce(Sum::magnitudes, x, {}, odd)[0], one, one);
    const std::vector<double> both = reduce(Sum::both, x, {}, odd), two = reduce(Sum::dot_and_squares, x, {y}, odd);
    near(both[0], one, one);
    near(both[1], xx, xx);
    near(two[0], xy, size);
    near(two[1], yy, yy);
    EXPECT_EQ(reduce(Sum::maximum, x, {}, odd)[0], most);
  }

  std::unique_ptr<Executor>       executor_;
  std::unique_ptr<ReductionSpace> space_;
};

TEST_P(VectorTest, CombinesEverySize) {
  for (const std::int64_t n : sizes)
    for (const int terms : {1, 2, 3, 4, 9})
      for (const double scale : {0.0, 1.0, -0.7}) expect_combination(n, terms, scale, n % 2 ? 0U : ~0U);
}

TEST_P(VectorTest, CombinesAtEveryAlignment) {
  for (const std::int64_t n : {1, 2, 1023, 1024, 1025, 5000})
    for (unsigned odd = 0; odd < 16; ++odd)
      for (const int terms : {1, 2, 3, 5}) expect_combination(n, terms, 0.5, (odd & 7U) | (odd & 8U ? 1U << 31 : 0U));
}

TEST_P(VectorTest, CombinesInPlaceAndManyTerms) {
  for (const int at : {0, 1, 2}) expect_combination(3000, 3, 0.0, 0U, at);
  expect_combination(3000, 2, 1.0, 0U, 1);
  for (const int terms : {7, 8, 31, 127, 128, 129, 300}) expect_combination(2111, terms, 1.0, 0U);
  expect_combination(2111, 129, 0.0, 0U);
}

TEST_P(VectorTest, CombinesOneTermExactly) {
  const std::vector<double> v = {0.0, -0.0, infinity, -infinity, nan_value, 5e-324, -1e308, 3.0};
  const std::vector<double> got = run("combine", std::vector<double>(8, nan_value), {v}, 0.0, {1.0}, 0U);
  for (std::size_t i = 0; i < v.size(); ++i)
    EXPECT_TRUE(std::isnan(v[i]) ? std::isnan(got[i]) : std::memcmp(&v[i], &got[i], 8) == 0) << i;
}

TEST_P(VectorTest, MultipliesAtEveryAlignment) {
  for (const std::int64_t n : sizes)
    for (unsigned odd = 0; odd < 8; ++odd) {
      const unsigned            bits = (odd & 3U) | (odd & 4U ? 1U << 31 : 0U);
      const std::vector<double> x = random_vector(n, 3), y = random_vector(n, 4), w(x.size(), nan_value);
      for (const int in_place : {-1, 0, 1}) {
        const std::vector<double> got = run("multiply", w, {x, y}, 0.0, {}, bits, in_place);
        for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(got[i], x[i] * y[i]) << n << " elements, element " << i;
      }
      if (n > 200000) break;
    }
}

TEST_P(VectorTest, ReducesEverySize) {
  for (const std::int64_t n : sizes)
    for (unsigned odd = 0; odd < 4; ++odd) expect_reductions(n, odd);
}

TEST_P(VectorTest, MultipliesWithManyVectors) {
  for (const int terms : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 30, 64, 255, 256, 257, 600})
    for (const std::int64_t n : {0, 1, 999, 5001}) {
      const std::vector<double> x = random_vector(n, 1);
      Vectors                   y;
      for (int k = 0; k < terms; ++k) y.push_back(random_vector(n, static_cast<unsigned>(k + 2)));
      for (const unsigned odd : {0U, ~0U, 0x55U}) {
        const std::vector<double> got = reduce(Sum::dots, x, y, odd);
        ASSERT_EQ(got.size(), y.size());
        for (std::size_t k = 0; k < y.size(); ++k) {
          long double want = 0, size = 0;
          for (std::size_t i = 0; i < x.size(); ++i) {
            want += static_cast<long double>(x[i]) * y[k][i];
            size += std::abs(static_cast<long double>(x[i]) * y[k][i]);
          }
          ASSERT_LE(std::abs(got[k] - want), 40 * epsilon * size) << terms << " vectors of " << n << ", vector " << k;
        }
        if (terms > 64) break;
      }
    }
}

TEST_P(VectorTest, MultipliesAVectorWithItself) {
  const std::vector<double> x = random_vector(70001, 8);
  Guarded                   device_x(*executor_, x, false);
  const double             *y[1] = {device_x.data()};
  const auto               &k = kernel<ReductionKernel>("reduce");
  const auto                space = k.make_space(*executor_);
  Reduction                 call;
  double                    got = 0;
  call.length = 70001;
  call.x = device_x.data();
  call.y = y;
  EXPECT_EQ(k.work(call).bytes, 8 * 70001);
  k.start(*executor_, *space, call);
  k.finish(*executor_, *space, call, &got);
  const double squares = reduce(Sum::squares, x, {}, 0)[0];
  EXPECT_LE(std::abs(got - squares), 1e-12 * squares);
}

TEST_P(VectorTest, ReductionsSpreadNaNAndInf) {
  for (const std::int64_t n : {1, 100, 5000, 300000})
    for (const std::int64_t at : {std::int64_t(0), n / 2, n - 1}) {
      std::vector<double> x = random_vector(n, 5);
      const Vectors       y = {random_vector(n, 6)};
      x[static_cast<std::size_t>(at)] = infinity;
      EXPECT_EQ(reduce(Sum::squares, x, {}, 0)[0], infinity);
      EXPECT_EQ(reduce(Sum::maximum, x, {}, 0)[0], infinity);
      EXPECT_EQ(reduce(Sum::magnitudes, x, {}, 0)[0], infinity);
      x[static_cast<std::size_t>(at)] = nan_value;
      for (const Sum sum : {Sum::squares, Sum::maximum, Sum::magnitudes, Sum::dots})
        EXPECT_TRUE(std::isnan(reduce(sum, x, y, 0)[0])) << n << " elements, NaN at " << at;
    }
}

TEST_P(VectorTest, ReductionsAreTheSameInEveryRun) {
  const std::vector<double> x = random_vector(1200007, 5);
  Vectors                   y;
  for (unsigned k = 0; k < 11; ++k) y.push_back(random_vector(1200007, 6 + k));
  const std::vector<double> first = reduce(Sum::dots, x, y, 0);
  const double              norm = reduce(Sum::squares, x, {}, 0)[0];
  for (int run = 0; run < 20; ++run) {
    ASSERT_EQ(reduce(Sum::dots, x, y, 0), first);
    ASSERT_EQ(reduce(Sum::squares, x, {}, 0)[0], norm);
  }
}

TEST_P(VectorTest, ReductionsFollowOneAnotherInTheSameSpace) {
  const std::vector<double> ones(4097, 1.0);
  for (int run = 0; run < 200; ++run) {
    ASSERT_EQ(reduce(Sum::magnitudes, ones, {}, 0)[0], 4097.0);
    ASSERT_EQ(reduce(Sum::dots, ones, Vectors(9, ones), 0), std::vector<double>(9, 4097.0));
    ASSERT_EQ(reduce(Sum::both, ones, {}, 1), std::vector<double>(2, 4097.0));
  }
}

// Several starts without a finish: the last one's result counts, not a late one of those before it.
TEST_P(VectorTest, TakesTheResultOfTheLastStart) {
  const std::vector<double> ones(300007, 1.0), twos(300007, 2.0);
  Guarded                   first(*executor_, ones, false), second(*executor_, twos, false);
  const auto               &k = kernel<ReductionKernel>("reduce");
  const auto                space = k.make_space(*executor_);
  Reduction                 call;
  call.sum = Sum::magnitudes;
  call.length = 300007;
  call.terms = 0;
  for (int run = 0; run < 100; ++run) {
    double got = 0;
    call.x = first.data();
    k.start(*executor_, *space, call);
    k.start(*executor_, *space, call);
    call.x = second.data();
    k.start(*executor_, *space, call);
    k.finish(*executor_, *space, call, &got);
    ASSERT_EQ(got, 600014.0);
  }
}

TEST_P(VectorTest, CountsBytesAndFlops) {
  const double      *v[3] = {};
  const double       c[3] = {2, 3, 4};
  Elementwise        call;
  const std::int64_t n = 1000;
  call.length = n;
  call.v = v;
  call.coefficients = c;
  call.terms = 1;
  call.scale = 1.0; // axpy
  EXPECT_EQ(kernel<ElementwiseKernel>("combine").work(call).bytes, 24 * n);
  EXPECT_EQ(kernel<ElementwiseKernel>("combine").work(call).useful_flops, 2 * n);
  call.terms = 2;
  call.scale = 0.0; // waxpy with factors
  EXPECT_EQ(kernel<ElementwiseKernel>("combine").work(call).bytes, 24 * n);
  EXPECT_EQ(kernel<ElementwiseKernel>("combine").work(call).useful_flops, 3 * n);
  call.scale = 0.5; // axpbypcz
  EXPECT_EQ(kernel<ElementwiseKernel>("combine").work(call).bytes, 32 * n);
  EXPECT_EQ(kernel<ElementwiseKernel>("combine").work(call).useful_flops, 5 * n);
  Reduction mdot;
  mdot.length = n;
  mdot.terms = 3;
  mdot.y = v;
  EXPECT_EQ(kernel<ReductionKernel>("reduce").work(mdot).bytes, 32 * n);
  EXPECT_EQ(kernel<ReductionKernel>("reduce").work(mdot).useful_flops, 6 * n);
}

std::string space_name(const testing::TestParamInfo<MemorySpace> &info) {
  return info.param == MemorySpace::host ? "host" : "cuda_core";
}

INSTANTIATE_TEST_SUITE_P(Cpu, VectorTest, testing::Values(MemorySpace::host), space_name);
INSTANTIATE_TEST_SUITE_P(Gpu, VectorTest, testing::Values(MemorySpace::cuda), space_name);

} // namespace
