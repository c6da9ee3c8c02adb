#pragma once

// The fixture of tests that run a kernel of operation spmv.

#include <gtest/gtest.h>

#include <cstring>

#include "spmv/csr/recovered.h"
#include "spmv_support.h"

namespace tcbound::test {

inline constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
inline constexpr double infinity = std::numeric_limits<double>::infinity();

struct Call {
  bool   transpose = false;
  double alpha = 1.0, beta = 0.0;
  bool   in_place = false, misaligned = false; // z is y; all vectors at odd multiples of 8 bytes
};

inline std::string describe(const Csr &a, const Call &call) {
  return a.name + (call.transpose ? ", transposed" : "") + ", alpha " + std::to_string(call.alpha) + ", beta " +
         std::to_string(call.beta) + (call.in_place ? ", y = z" : "") + (call.misaligned ? ", misaligned" : "");
}

// One kernel, on the machine that it runs on.
class Spmv : public testing::TestWithParam<const Kernel *> {
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
  virtual void            apply(Format &format, const Product &product) { kernel().apply(executor(), format, product); }

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
    apply(format, product);
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

  // What a format gives back is the matrix that it was built from.
  static void expect_same_csr(const csr::RecoveredCsr &found, const Csr &a) {
    EXPECT_EQ(found.offsets, a.offsets);
    EXPECT_TRUE(std::equal(found.columns.begin(), found.columns.end(), a.columns.begin(), a.columns.end()));
    EXPECT_TRUE(same_bits(found.values, a.values));
  }

  // A format of `a`, whose values 16 bits hold exactly, stores new ones with as few bits as do until some do not fit, then with more for
  // good. census_of(format) tells the bits, recovered(format) the CSR; `stored` values take them.
  template <class CensusOf, class Recovered>
  void expect_widening(const Csr &a, Format &format, std::int64_t stored, CensusOf &&census_of, Recovered &&recovered) {
    Csr b = a, c = a;
    b.values[b.values.size() - 2] = 1 + 1.0 / 1024; // not among the first, which may be looked at before
    c.values[c.values.size() - 3] = 0.1;
    const std::int64_t narrow = format.work(false, false).bytes;
    expect_product(a, format, {true, -0.5, 2.0, false, true}); // there is a transpose, too
    EXPECT_EQ(census_of(format).value_bytes, 2);
    struct {
      const Csr *matrix;
      int        bytes;
    } const turns[] = {{&a, 2}, {&b, 4}, {&a, 4}, {&c, 8}, {&b, 8}, {&a, 8}};
    for (const auto &turn : turns) {
      format.refill(executor(), turn.matrix->values.data(), MemorySpace::host);
      EXPECT_EQ(census_of(format).value_bytes, turn.bytes);
      EXPECT_EQ(format.work(false, false).bytes, narrow + (turn.bytes - 2) * stored);
      expect_same_csr(recovered(format), *turn.matrix);
      for (const bool transpose : {false, true}) expect_product(*turn.matrix, format, {transpose, -0.5, 2.0, false, true});
    }
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

  // Columns stand further apart than they are long; what lies between them must stay as it is.
  void expect_columns(const Csr &a, Format &format, const Call &call, std::int64_t count) {
    SCOPED_TRACE(describe(a, call) + ", " + std::to_string(count) + " columns");
    const std::int64_t inputs = call.transpose ? a.rows : a.columns_count, outputs = call.transpose ? a.columns_count : a.rows;
    const Columns      by = {count, inputs + 3, outputs + 5, call.in_place ? outputs + 5 : outputs + 2};
    const std::vector<double> x = random_vector(count * by.x, 1);
    std::vector<double>       y = random_vector(count * by.y, 2);
    if (call.beta == 0.0) std::fill(y.begin(), y.end(), nan_value); // y must not be read
    const std::vector<double> before = call.in_place ? y : std::vector<double>(static_cast<std::size_t>(count * by.z), 77.0);
    Guarded                   device_x(executor(), x, call.misaligned), device_y(executor(), y, call.misaligned);
    Guarded                   device_z(executor(), before, call.misaligned);
    Product                   product;
    product.transpose = call.transpose;
    product.alpha = call.alpha;
    product.beta = call.beta;
    product.x = device_x.data();
    product.y = call.in_place ? device_z.data() : (call.beta == 0.0 ? nullptr : device_y.data());
    product.z = device_z.data();
    for (int repeat = 0; repeat < (call.in_place ? 1 : 2); ++repeat) // the second finds counters as the first left them
      kernel().apply_columns(executor(), format, product, by);

    bool                      x_intact = false, y_intact = false, z_intact = false;
    const std::vector<double> x_after = device_x.read(x_intact), y_after = device_y.read(y_intact), z = device_z.read(z_intact);
    EXPECT_TRUE(x_intact && y_intact && z_intact) << "something around a vector was written to";
    EXPECT_TRUE(same_bits(x, x_after) && same_bits(y, y_after)) << "an input was written to";
    for (std::int64_t k = 0; k < count; ++k) {
      SCOPED_TRACE("column " + std::to_string(k));
      const auto part = [k](const std::vector<double> &v, std::int64_t distance, std::int64_t begin, std::int64_t end) {
        return std::vector<double>(v.begin() + k * distance + begin, v.begin() + k * distance + end);
      };
      expect_near(part(z, by.z, 0, outputs),
                  reference(a, call.transpose, call.alpha, call.beta, part(x, by.x, 0, inputs), part(y, by.y, 0, outputs)));
      EXPECT_TRUE(same_bits(part(z, by.z, outputs, by.z), part(before, by.z, outputs, by.z))) << "written between columns";
    }
  }

  std::unique_ptr<Executor> executor_;
};

inline std::string test_name(const testing::TestParamInfo<const Kernel *> &info) {
  return info.param->format() + "_" + info.param->backend();
}

} // namespace tcbound::test
