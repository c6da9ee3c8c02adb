// Fragments in TF32 and BF16, on both kinds of cores, against the host's sums of what was not rounded.
#include "arithmetic.h"
#include "spmv_fixture.h"
#ifdef TCBOUND_HAVE_CUDA
#include "fragments_matrices.h"
#include "spmv/fragments/device_matrix.h"

namespace {

using namespace tcbound;
using namespace tcbound::test;

constexpr Arithmetic lossy[] = {Arithmetic::tf32, Arithmetic::bf16};
constexpr double     most = 3.4028234663852886e38; // the largest of FP32

// To the nearest number with so many digits and the exponents of FP32, ties to even.
double rounded(double value, int digits) {
  int exponent = 0;
  if (!std::isfinite(value) || value == 0.0) return value;
  std::frexp(value, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent, -125) - digits), to = std::nearbyint(value / unit) * unit;
  return std::abs(to) > most ? std::copysign(infinity, value) : to;
}

class GpuRoundedFragments : public Spmv {
protected:
  std::unique_ptr<Format> build(const Csr &a, Arithmetic arithmetic, const Config &config = Config{}) {
    const MmaShape shape = kernel().backend() == "tensor_core" ? facts_of(arithmetic).mma : MmaShape::automatic;
    const Stored   stored(a);
    return fragments::build(executor(), stored.problem().csr, shape, config, arithmetic);
  }

  // The host's product, and how far the documented bound lets this one be from it.
  static Expected expected_of(const Csr &a, Arithmetic arithmetic, const Config &config, const Call &call,
                              const std::vector<double> &x, const std::vector<double> &y) {
    Expected expected = reference(a, call.transpose, call.alpha, call.beta, x, y);
    Csr      magnitudes = a;
    for (double &value : magnitudes.values) value = std::abs(value);
    std::vector<double> sizes_of_x = x;
    for (double &value : sizes_of_x) value = std::abs(value);
    const Expected            sizes = reference(magnitudes, call.transpose, 1.0, 0.0, sizes_of_x, y);
    std::vector<std::int64_t> entries(y.size());
    for (std::int64_t i = 0; i < a.rows; ++i)
      for (std::int64_t k = a.offsets[static_cast<std::size_t>(i)]; k < a.offsets[static_cast<std::size_t>(i) + 1]; ++k)
        ++entries[static_cast<std::size_t>(call.transpose ? a.columns[static_cast<std::size_t>(k)] : i)];
    for (std::size_t i = 0; i < y.size(); ++i)
      expected.tolerance[i] +=
        std::abs(call.alpha) * sizes.value[i] * lossy_error(arithmetic, entries[i], 4 * config.max_steps);
    return expected;
  }

  void expect_rounded_product(const Csr &a, Format &format, const Config &config, const Call &call) {
    SCOPED_TRACE(describe(a, call) + ", " + facts_of(format.arithmetic()).name + ", " + std::to_string(config.max_steps) +
                 " steps at most");
    const std::vector<double> x = random_vector(call.transpose ? a.rows : a.columns_count, 1);
    std::vector<double>       y = random_vector(call.transpose ? a.columns_count : a.rows, 2);
    if (call.beta == 0.0) std::fill(y.begin(), y.end(), nan_value); // y must not be read
    expect_near(multiply(format, call, x, y), expected_of(a, format.arithmetic(), config, call, x, y));
  }
};

TEST_P(GpuRoundedFragments, Products) {
  const std::vector<Csr> all = matrices();
  for (const Arithmetic arithmetic : lossy)
    for (const Config &config : configs())
      for (const Csr &a : all) {
        const auto format = build(a, arithmetic, config);
        expect_rounded_product(a, *format, config, {false, -0.5, 2.0, false, true});
        expect_rounded_product(a, *format, config, {false, 1.0, 0.0, false, false});
        expect_rounded_product(a, *format, config, {true, 1.0, 1.0, true, false});
        if (HasFailure()) return;
      }
}

// Whole numbers of few bits, whose products and sums are exact in FP32: the result is that of FP64, to the last bit.
TEST_P(GpuRoundedFragments, WholeNumbersAreExact) {
  for (const Arithmetic arithmetic : lossy)
    for (Csr a : matrices()) {
      std::int64_t next = 0;
      for (double &value : a.values) value = static_cast<double>(next++ * 7 % 31 - 15);
      const auto format = build(a, arithmetic);
      for (const bool transpose : {false, true}) {
        std::vector<double>       x(static_cast<std::size_t>(transpose ? a.rows : a.columns_count));
        const std::vector<double> y(static_cast<std::size_t>(transpose ? a.columns_count : a.rows), nan_value);
        for (double &element : x) element = static_cast<double>(next++ * 11 % 29 - 14);
        Expected expected = reference(a, transpose, 1.0, 0.0, x, y);
        std::fill(expected.tolerance.begin(), expected.tolerance.end(), 0.0L);
        SCOPED_TRACE(a.name + (transpose ? ", transposed, " : ", ") + facts_of(arithmetic).name);
        expect_near(multiply(*format, {transpose, 1.0, 0.0, false, false}, x, y), expected);
        if (HasFailure()) return;
      }
    }
}

// Ties, numbers below 2^-126, the ends of the range: what is stored is the nearest number of the type.
TEST_P(GpuRoundedFragments, ValuesAreTheNearest) {
  for (const Arithmetic arithmetic : lossy) {
    const int                              digits = facts_of(arithmetic).digits;
    const double                           u = std::ldexp(1.0, -digits);
    Csr                                    a = uniform(400, 500, 8);
    std::mt19937_64                        random(5);
    std::uniform_real_distribution<double> exponents(-150.0, 127.0);
    for (double &value : a.values) value *= std::exp2(exponents(random));
    const double special[] = {1 + u,
                              1 + 3 * u,
                              -1 - u,
                              1 + u * (1 + 0x1p-40),
                              1 + u * (1 - 0x1p-40),
                              0.0,
                              -0.0,
                              most,
                              -most,
                              3.5e38,
                              -1e300,
                              1e-300,
                              0x1p-149,
                              0x1.8p-133,
                              -0x1.2p-133,
                              0x1p-126 - 0x1p-149,
                              0x1.fffffep127 * (1 - u),
                              nan_value,
                              infinity,
                              -infinity};
    std::copy(std::begin(special), std::end(special), a.values.begin() + 17);
    const Stored              stored(a);
    csr::DeviceArrays         arrays = csr::copy_to_device(executor(), stored.problem().csr, false);
    fragments::DeviceMatrix   matrix(executor(), arrays, Config{}, arithmetic);
    const csr::DeviceArrays   back = matrix.recover(executor());
    std::vector<double>       values(a.values.size());
    std::vector<std::int32_t> columns(a.columns.size());
    executor().copy(values.data(), MemorySpace::host, back.values.data(), MemorySpace::cuda, values.size() * 8);
    executor().copy(columns.data(), MemorySpace::host, back.columns.data(), MemorySpace::cuda, columns.size() * 4);
    EXPECT_EQ(std::vector<std::int64_t>(columns.begin(), columns.end()), a.columns);
    for (std::size_t k = 0; k < values.size(); ++k) {
      const double want = rounded(a.values[k], digits);
      EXPECT_TRUE(std::isnan(want) ? std::isnan(values[k]) : same_bits({want}, {values[k]}))
        << values[k] << " for " << a.values[k] << " in " << facts_of(arithmetic).name;
    }
  }
}

// What is infinite or NaN in x or the matrix gets to its own row, and padding is not multiplied.
TEST_P(GpuRoundedFragments, NotFinite) {
  for (const Arithmetic arithmetic : lossy)
    for (Csr a :
         {in_nodes(2, lengths_up_to(40, 5)), in_nodes(3, lengths_up_to(40, 5)), in_nodes(4, uniform(50, 300, 1)),
          lengths_up_to(40, 5), uniform(300, 500, 1), uniform(300, 500, 2), uniform(300, 500, 3), uniform(100, 3000, 700)}) {
      for (std::size_t k = 0; k < a.values.size(); k += 97) a.values[k] = k % 2 == 0 ? infinity : nan_value;
      const auto          format = build(a, arithmetic);
      std::vector<double> x = random_vector(a.columns_count, 3);
      for (std::size_t i = 0; i < x.size(); i += 53) x[i] = i % 3 == 0 ? nan_value : (i % 3 == 1 ? infinity : -infinity);
      const std::vector<double> y(static_cast<std::size_t>(a.rows), nan_value);
      const Call                call{};
      SCOPED_TRACE(a.name);
      expect_near(multiply(*format, call, x, y), expected_of(a, arithmetic, Config{}, call, x, y));
    }
}

// Values, x and sums beyond FP32's range are infinite, on both kinds of cores.
TEST_P(GpuRoundedFragments, OverflowIsInfinite) {
  for (const Arithmetic arithmetic : lossy)
    for (const std::int64_t length : {1, 2, 3, 40}) {
      Csr a = uniform(50, 500, length);
      std::fill(a.values.begin(), a.values.end(), 1.0);
      const std::vector<double> y(50, nan_value);
      std::vector<double>       x(500, 1.0);
      const std::vector<double> inf(50, infinity);
      const auto                format = build(a, arithmetic);
      std::fill(x.begin(), x.end(), -1e39); // rounds to an infinity
      for (const double z : multiply(*format, {}, x, y)) EXPECT_EQ(z, -infinity);
      std::fill(x.begin(), x.end(), 3e38);
      for (const double z : multiply(*format, {}, x, y))
        EXPECT_EQ(z, length > 1 ? infinity : rounded(3e38, facts_of(arithmetic).digits));
      std::fill(a.values.begin(), a.values.end(), 3.5e38);
      std::fill(x.begin(), x.end(), 1.0);
      format->refill(executor(), a.values.data(), MemorySpace::host);
      for (const double z : multiply(*format, {}, x, y)) EXPECT_EQ(z, infinity);
    }
}

// Numbers and sums below 2^-126 are at most lost.
TEST_P(GpuRoundedFragments, SmallNumbers) {
  for (const Arithmetic arithmetic : lossy)
    for (const std::int64_t length : {1, 3, 40}) {
      Csr                       a = uniform(50, 500, length);
      const std::vector<double> y(50, nan_value);
      const auto                near = [&](double value, double in_x, double most_off) {
        std::fill(a.values.begin(), a.values.end(), value);
        const auto format = build(a, arithmetic);
        for (const double z : multiply(*format, {}, std::vector<double>(500, in_x), y))
          EXPECT_NEAR(z, static_cast<double>(length) * value * in_x, static_cast<double>(length) * most_off);
      };
      near(0x1p-130, 4.0, 0x1p-124);
      near(4.0, 0x1p-130, 0x1p-124);
      near(0x1p-64, 0x1p-64, 0x1p-126);
      near(0x1p-100, 0x1p-100, 0x1p-126);
    }
}

TEST_P(GpuRoundedFragments, NewValues) {
  for (const Arithmetic arithmetic : lossy)
    for (Csr a : {lengths_up_to(70, 3), in_nodes(3, lengths_up_to(40, 3)), class_edges(3)}) {
      const Config config{3, 64, 2, true, false};
      const auto   format = build(a, arithmetic, config);
      expect_rounded_product(a, *format, config, {true, 1.0, 0.0, false, false}); // there is a transpose, too
      std::reverse(a.values.begin(), a.values.end());
      format->refill(executor(), a.values.data(), MemorySpace::host);
      for (const bool transpose : {false, true})
        expect_rounded_product(a, *format, config, {transpose, -0.5, 2.0, false, true});
    }
}

TEST_P(GpuRoundedFragments, SameBitsInEveryRun) {
  for (const Arithmetic arithmetic : lossy)
    for (const Csr &a : {class_edges(3), lengths_up_to(70, 3)}) {
      const auto                format = build(a, arithmetic, {3, 64, 2, true, false});
      const std::vector<double> x = random_vector(a.columns_count, 5), y(static_cast<std::size_t>(a.rows), 0.0);
      const std::vector<double> first = multiply(*format, {}, x, y);
      for (int run = 0; run < 50; ++run) ASSERT_TRUE(same_bits(multiply(*format, {}, x, y), first)) << a.name;
    }
}

// Several columns are taken one after the other.
TEST_P(GpuRoundedFragments, Columns) {
  for (const Arithmetic arithmetic : lossy) {
    const Csr           a = in_nodes(3, lengths_up_to(40, 2));
    const auto          format = build(a, arithmetic);
    const Columns       by = {3, a.columns_count, 0, a.rows};
    std::vector<double> x = random_vector(3 * by.x, 3), none(static_cast<std::size_t>(a.rows), nan_value);
    Guarded             device_x(executor(), x, false),
      device_z(executor(), std::vector<double>(static_cast<std::size_t>(3 * by.z)), false);
    Product product;
    product.x = device_x.data();
    product.z = device_z.data();
    kernel().apply_columns(executor(), *format, product, by);
    bool                      intact;
    const std::vector<double> z = device_z.read(intact);
    for (std::int64_t k = 0; k < 3; ++k) {
      const std::vector<double> column(x.begin() + k * by.x, x.begin() + (k + 1) * by.x);
      EXPECT_TRUE(same_bits({z.begin() + k * by.z, z.begin() + (k + 1) * by.z}, multiply(*format, {}, column, none)));
    }
    EXPECT_EQ(format->work_of_columns(false, false, 3), 3 * format->work(false, false));
  }
}

TEST_P(GpuRoundedFragments, SaysWhatItIs) {
  for (const ArithmeticFacts &facts : arithmetics) {
    if (facts.arithmetic == Arithmetic::fp64) continue;
    const Csr rows = uniform(3200, 400, 32), nodes = in_nodes(4, uniform(800, 400, 32)); // 100 groups of 8 whole steps
    for (const Csr &a : {rows, nodes}) {
      const Stored stored(a);
      Problem      problem = stored.problem();
      problem.arithmetic = facts.arithmetic;
      ASSERT_EQ(kernel().check(executor().device(), problem), "");
      const auto format = kernel().build(executor(), problem);
      const Work work = format->work(false, false);
      const bool tensor = kernel().backend() == "tensor_core", in_nodes_of_4 = a.name == nodes.name;
      EXPECT_EQ(format->arithmetic(), facts.arithmetic);
      EXPECT_EQ(format->mma(), tensor ? facts_of(facts.mma).name : "");
      EXPECT_NE(format->describe().find(std::string("lossy: values and x in ") + facts.name), std::string::npos);
      EXPECT_EQ(work.padded_flops, work.useful_flops);
      EXPECT_EQ(work.bytes, facts.value_bytes * a.nonzeros() + 2 * a.nonzeros() / (in_nodes_of_4 ? 4 : 1) +
                              100 * (in_nodes_of_4 ? 16 : 16 + 8) + 8 * (3200 + 400));
      EXPECT_EQ(work.issued_flops, (tensor ? (in_nodes_of_4 ? 8 : 16) : 1) * work.useful_flops);
      EXPECT_LE(kernel().predict(problem, false, false).bytes, work.bytes);
      problem.mma = facts.mma;
      EXPECT_EQ(kernel().check(executor().device(), problem), "");
      problem.mma = MmaShape::m16n8k16;
      EXPECT_EQ(kernel().check(executor().device(), problem),
                tensor ? std::string("in ") + facts.name + " it takes " + facts_of(facts.mma).name : "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuRoundedFragments,
                         testing::Values(find_kernel("spmv/fragments/cuda_core"), find_kernel("spmv/fragments/tensor_core")),
                         test_name);

} // namespace
#endif
