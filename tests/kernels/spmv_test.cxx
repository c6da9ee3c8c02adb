// Every spmv kernel against a long double reference.
#include "spmv_fixture.h"
#include "structured_matrices.h"
#ifdef TCBOUND_HAVE_CUDA
#include "spmv/csr/cuda_core_tuning.h"
#endif

namespace {

using namespace tcbound;
using namespace tcbound::test;

class SpmvCsr : public Spmv {};

TEST_P(Spmv, SmallMatrices) {
  for (const Csr &a : small_matrices()) expect_products(a, Stored(a).problem());
}

TEST_P(Spmv, LongRows) {
  for (const Csr &a : long_row_matrices()) expect_products(a, Stored(a).problem());
}

TEST_P(Spmv, StructuredMatrices) {
  for (const Csr &a : structured_matrices()) expect_products(a, Stored(a).problem());
}

TEST_P(Spmv, ScalingAndAliasing) {
  for (const Csr &a : {irregular(3001, 2500, 40), stencil(20, 11, 9, true, Coefficients::constant),
                       stencil(20, 11, 9, true, Coefficients::variable)}) {
    const Stored stored(a);
    const auto   format = build(stored.problem());
    for (const bool transpose : {false, true})
      for (const double alpha : {1.0, -1.0, 0.5, 0.0})
        for (const double beta : {0.0, 1.0, -2.0})
          for (const bool in_place : {false, true})
            for (const bool misaligned : {false, true})
              expect_product(a, *format, {transpose, alpha, beta, in_place, misaligned});
  }
}

TEST_P(Spmv, IndexWidths) {
  for (const Csr &a : {irregular(2000, 1500, 30), ragged(), uniform(0, 5, 0), stencil(70, 9, 1, false, Coefficients::constant),
                       stencil(70, 9, 1, false, Coefficients::variable)})
    for (const int offset_bytes : {4, 8})
      for (const int index_bytes : {4, 8}) {
        SCOPED_TRACE(std::to_string(offset_bytes) + "-byte offsets, " + std::to_string(index_bytes) + "-byte columns");
        Stored stored(a, offset_bytes, index_bytes);
        expect_products(a, stored.problem());
        expect_products(a, stored.on(executor())); // in device memory for a device kernel
      }
}

// A format on a device may be built from arrays there, and then has nothing of them any more.
TEST_P(Spmv, KeepsNothingOfTheMatrixThatItWasBuiltFrom) {
  if (kernel().space() == MemorySpace::host) GTEST_SKIP() << "formats on a host borrow the matrix";
  for (const Csr &a : {irregular(2000, 1500, 30), irregular(1700, 1700, 5), stencil(70, 9, 5, false, Coefficients::constant),
                       stencil(70, 9, 5, false, Coefficients::variable)}) {
    Stored                 stored(a, 4, 4);
    const Problem          problem = stored.on(executor());
    const auto             format = build(problem);
    const std::vector<int> poison(static_cast<std::size_t>(2 * a.nonzeros()), -1); // NaN, too
    const auto             overwrite = [&](const void *array, std::int64_t bytes) {
      executor().copy(const_cast<void *>(array), executor().space(), poison.data(), MemorySpace::host,
                                  static_cast<std::size_t>(bytes));
    };
    overwrite(problem.csr.columns.data, 4 * a.nonzeros());
    overwrite(problem.csr.values, 8 * a.nonzeros());
    for (const bool transpose : {false, true}) expect_product(a, *format, {transpose, 1.0, 0.0, false, false});
  }
}

// NaN and infinity come out where they go in and nowhere else.
TEST_P(Spmv, NotFinite) {
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

// What must not be multiplied is next to what must: rows of one pattern are computed together, and some of them are not rows of
// that pattern, or not rows of the matrix.
TEST_P(Spmv, NotFiniteBesideOtherRows) {
  for (const Csr &a : structured_matrices()) {
    const Stored stored(a);
    const auto   format = build(stored.problem());
    for (const bool transpose : {false, true}) {
      std::vector<double> x = random_vector(transpose ? a.rows : a.columns_count, 3);
      const std::size_t   size = x.size();
      const double        bad[] = {nan_value, infinity, -infinity};
      for (const std::size_t at :
           {std::size_t(0), std::size_t(1), std::size_t(63), std::size_t(64), size / 2, size - 2, size - 1})
        if (at < size) x[at] = bad[at % 3];
      for (std::size_t at = 5; at < size; at += 150) x[at] = bad[at % 3];
      const std::vector<double> y(static_cast<std::size_t>(transpose ? a.columns_count : a.rows), nan_value);
      SCOPED_TRACE(a.name + (transpose ? ", transposed" : ""));
      expect_near(multiply(*format, {transpose, 1.0, 0.0, false, false}, x, y), reference(a, transpose, 1.0, 0.0, x, y));
    }
  }
}

// Zeros stored in the matrix count: zero times infinity is NaN.
TEST_P(Spmv, StoredZerosAndSubnormals) {
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

TEST_P(Spmv, Refill) {
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

// Coefficients that stay constant, and then do not.
TEST_P(Spmv, RefillOfStructuredMatrices) {
  for (const Csr &first : {stencil(66, 5, 4, false, Coefficients::constant), stencil(66, 5, 4, false, Coefficients::variable),
                           every_length(100, true, Coefficients::constant)}) {
    const Stored stored(first);
    const auto   format = build(stored.problem());
    Csr          scaled = first, changed = first;
    for (double &value : scaled.values) value *= -1.5;
    for (std::size_t i = 0; i < changed.values.size(); i += 500) changed.values[i] += 1.0;
    const Stored scaled_stored(scaled), changed_stored(changed);
    for (int round = 0; round < 2; ++round)
      for (const auto &[a, values] : {std::pair<const Csr *, const Stored *>(&scaled, &scaled_stored),
                                      std::pair<const Csr *, const Stored *>(&changed, &changed_stored),
                                      std::pair<const Csr *, const Stored *>(&first, &stored)}) {
        format->refill(executor(), values->problem().csr.values, MemorySpace::host);
        for (const bool transpose : {false, true}) expect_product(*a, *format, {transpose, 1.0, 0.0, false, false});
      }
  }
}

TEST_P(Spmv, Diagonal) {
  Csr a = irregular(700, 650, 9);
  for (const std::size_t i : {std::size_t(0), std::size_t(123), std::size_t(649)}) { // rows that surely have one
    if (a.offsets[i] == a.offsets[i + 1]) continue;
    a.columns[static_cast<std::size_t>(a.offsets[i])] = static_cast<std::int64_t>(i);
    std::sort(a.columns.begin() + a.offsets[i], a.columns.begin() + a.offsets[i + 1]);
    a.columns.erase(std::unique(a.columns.begin() + a.offsets[i], a.columns.begin() + a.offsets[i + 1]),
                    a.columns.begin() + a.offsets[i + 1]);
    ASSERT_EQ(a.columns.size(), a.values.size()) << "the test's own matrix has a duplicate";
  }
  std::vector<Csr> all = structured_matrices();
  for (const Csr &m : {a, uniform(650, 700, 20), uniform(700, 650, 20), uniform(40, 0, 0), uniform(64, 64, 64)})
    all.push_back(m);
  for (const Csr &m : all) {
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

TEST_P(Spmv, SameBitsInEveryRun) {
  for (const Csr &a :
       {ragged(), one_long_row(1000, 300000, 499), irregular(20000, 20000, 30),
        stencil(66, 9, 8, false, Coefficients::constant), stencil(66, 9, 8, false, Coefficients::variable),
        tridiagonal_but("odd rows every other", 1000, 9, Coefficients::constant, [](std::int64_t i) { return i % 2 == 0; })}) {
    const Stored stored(a);
    const auto   format = build(stored.problem()), other = build(stored.problem());
    for (const bool transpose : {false, true}) {
      const std::vector<double> x = random_vector(transpose ? a.rows : a.columns_count, 5);
      const std::vector<double> y = random_vector(transpose ? a.columns_count : a.rows, 6);
      const Call                call{transpose, 0.5, -2.0, false, false};
      const std::vector<double> first = multiply(*format, call, x, y);
      for (int run = 0; run < 100; ++run) ASSERT_TRUE(same_bits(multiply(*format, call, x, y), first)) << describe(a, call);
      EXPECT_TRUE(same_bits(multiply(*other, call, x, y), first)) << "a second format differs: " << describe(a, call);
    }
  }
}

// Exactly in CSR, whose sizes tell all; other formats may only need more than was predicted.
TEST_P(Spmv, PredictedWork) {
  std::vector<Csr> all = small_matrices();
  for (const Csr &a : long_row_matrices()) all.push_back(a);
  for (const Csr &a : structured_matrices()) all.push_back(a);
  const bool csr = kernel().format() == "csr";
  for (const Csr &a : all) {
    SCOPED_TRACE(a.name);
    const Stored stored(a);
    const auto   format = build(stored.problem());
    const auto   compare = [&] {
      for (const bool transpose : {false, true})
        for (const bool accumulate : {false, true}) {
          const Work work = format->work(transpose, accumulate),
                     predicted = kernel().predict(stored.problem(), transpose, accumulate);
          EXPECT_TRUE(!csr || predicted == work);
          EXPECT_EQ(predicted.useful_flops, work.useful_flops);
          EXPECT_LE(predicted.bytes, work.bytes);
          EXPECT_LE(predicted.compulsory_bytes, work.compulsory_bytes);
          EXPECT_EQ(work.useful_flops, 2 * a.nonzeros());
          EXPECT_TRUE(work.issued_flops == work.useful_flops || kernel().format() == "fragments");
          EXPECT_GE(work.bytes, work.compulsory_bytes);
          EXPECT_GE(work.compulsory_bytes, (csr ? 12 * a.nonzeros() : 0) + 8 * (a.rows + a.columns_count));
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
  EXPECT_LE(static_cast<double>(plain.bytes), 1.01 * static_cast<double>(plain.compulsory_bytes));
}

TEST_P(Spmv, CheckSaysWhyNot) {
  const Csr    a = uniform(10, 10, 3);
  const Stored stored(a);
  EXPECT_EQ(kernel().check(executor().device(), stored.problem()), "");
  Device other;
  other.space = kernel().space() == MemorySpace::host ? MemorySpace::cuda : MemorySpace::host;
  other.name = "another device";
  EXPECT_NE(kernel().check(other, stored.problem()), "");
  Problem lossy = stored.problem();
  lossy.arithmetic = Arithmetic::tf32;
  if (kernel().format() != "fragments") {
    EXPECT_EQ(kernel().check(executor().device(), lossy), "it multiplies in fp64 only, not in tf32");
    EXPECT_THROW(build(lossy), Error);
  }
  if (kernel().space() == MemorySpace::host) {
    Problem elsewhere = stored.problem();
    elsewhere.csr.space = MemorySpace::cuda;
    EXPECT_NE(kernel().check(executor().device(), elsewhere).find("device memory"), std::string::npos);
    EXPECT_THROW(build(elsewhere), Error);
    if (kernel().format() == "csr") return; // on the host it takes any size
  }
  Problem tall, wide;
  tall.csr.rows = wide.csr.columns_count = std::int64_t(1) << 31;
  EXPECT_NE(kernel().check(executor().device(), tall).find("2147483648 rows"), std::string::npos);
  EXPECT_THROW(build(tall), Error);
  if (kernel().space() == MemorySpace::host) return;
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

TEST_P(Spmv, ContradictingSizesAreRefused) {
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

std::vector<const Kernel *> kernels_in(MemorySpace space, const std::string &format = "") {
  std::vector<const Kernel *> found;
  for (const Kernel *kernel : all_kernels())
    if (kernel->op() == "spmv" && kernel->space() == space && (format.empty() || kernel->format() == format))
      found.push_back(kernel);
  return found;
}

INSTANTIATE_TEST_SUITE_P(Cpu, Spmv, testing::ValuesIn(kernels_in(MemorySpace::host)), test_name);
INSTANTIATE_TEST_SUITE_P(Gpu, Spmv, testing::ValuesIn(kernels_in(MemorySpace::cuda)), test_name);
INSTANTIATE_TEST_SUITE_P(Cpu, SpmvCsr, testing::ValuesIn(kernels_in(MemorySpace::host, "csr")), test_name);
INSTANTIATE_TEST_SUITE_P(Gpu, SpmvCsr, testing::ValuesIn(kernels_in(MemorySpace::cuda, "csr")), test_name);

#ifdef TCBOUND_HAVE_CUDA

// Every way that cuda_core can be tuned gives the same results; also 64-bit row offsets, which only a matrix of more than
// 24 GB would bring about by itself.
class GpuCudaCoreVariants : public Spmv {};

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
