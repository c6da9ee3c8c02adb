// spmv/compact in host memory: what the format holds, and every instruction set that its product is compiled for.
#include <sys/mman.h>

#include <cstring>

#include "spmv/compact/host_format.h"
#include "spmv/compact/host_product.h"
#include "spmv_fixture.h"
#include "structured_matrices.h"

namespace {

using namespace tcbound;
using namespace tcbound::test;
using compact::BuildOptions;
using compact::Census;
using compact::HostArrays;

std::vector<Csr> all_matrices() {
  std::vector<Csr> all = structured_matrices();
  for (const Csr &a : small_matrices()) all.push_back(a);
  for (const Csr &a : long_row_matrices()) all.push_back(a);
  return all;
}

HostArrays build(const Stored &stored, const BuildOptions &options = {}) {
  static const auto executor = make_host_executor(); // outlives the arrays, which it frees
  return compact::build_host(*executor, stored.problem().csr, options);
}

void expect_recovered(const Csr &a, const HostArrays &arrays) {
  const compact::Recovered csr = compact::recover(arrays);
  EXPECT_EQ(csr.offsets, a.offsets);
  EXPECT_EQ(csr.columns, a.columns);
  ASSERT_EQ(csr.values.size(), a.values.size());
  EXPECT_TRUE(a.values.empty() || std::memcmp(csr.values.data(), a.values.data(), 8 * a.values.size()) == 0)
    << "a value has other bits";
}

TEST(CompactFormat, GivesTheMatrixBack) {
  for (const Csr &a : all_matrices())
    for (const int offset_bytes : {4, 8})
      for (const int index_bytes : {4, 8}) {
        SCOPED_TRACE(a.name + ", " + std::to_string(offset_bytes) + "-byte offsets, " + std::to_string(index_bytes) +
                     "-byte columns");
        expect_recovered(a, build(Stored(a, offset_bytes, index_bytes)));
      }
}

// Hashes that all collide, or often do, change nothing but the time.
TEST(CompactFormat, DoesNotTrustHashes) {
  for (const Csr &a : all_matrices()) {
    SCOPED_TRACE(a.name);
    const Stored stored(a);
    const Census usual = count(build(stored));
    for (const std::uint64_t mask : {std::uint64_t(0), std::uint64_t(3)}) {
      BuildOptions options;
      options.hash_mask = mask;
      const HostArrays arrays = build(stored, options);
      expect_recovered(a, arrays);
      EXPECT_EQ(count(arrays).bytes, usual.bytes);
    }
  }
}

TEST(CompactFormat, RowsAddUp) {
  for (const Csr &a : all_matrices()) {
    SCOPED_TRACE(a.name);
    const Stored stored(a);
    for (const bool constant : {true, false}) {
      BuildOptions options;
      options.constant = constant;
      const HostArrays arrays = build(stored, options);
      const Census     census = count(arrays);
      expect_recovered(a, arrays);
      EXPECT_EQ(census.constant_rows + census.explicit_rows + census.exceptions + census.remainder_rows, a.rows);
      EXPECT_TRUE(constant || census.constant_rows == 0);
    }
  }
}

// Columns beyond 2^31, where a distance from the diagonal may not fit in a pattern.
TEST(CompactFormat, FarColumns) {
  const std::int64_t columns = std::int64_t(5) << 30, just = (std::int64_t(1) << 31) - 1;
  for (const Coefficients c : {Coefficients::constant, Coefficients::variable})
    for (const std::int64_t far : {just, just + 1, std::int64_t(4) << 30}) {
      const Csr        a = banded(500, columns, {0, 1, far}, c);
      const HostArrays arrays = build(Stored(a, 4, 8));
      expect_recovered(a, arrays);
      EXPECT_EQ(count(arrays).remainder_rows, far == just ? 0 : 500);
    }
}

void expect_census(const Csr &a, std::int64_t constant_rows, std::int64_t explicit_rows, std::int64_t exceptions,
                   std::int64_t patterns) {
  SCOPED_TRACE(a.name);
  const Census census = count(build(Stored(a)));
  EXPECT_EQ(census.constant_rows, constant_rows);
  EXPECT_EQ(census.explicit_rows, explicit_rows);
  EXPECT_EQ(census.exceptions, exceptions);
  EXPECT_EQ(census.remainder_rows, a.rows - constant_rows - explicit_rows - exceptions);
  EXPECT_EQ(census.patterns, patterns);
}

TEST(CompactFormat, RulesByHand) {
  const Coefficients constant = Coefficients::constant, variable = Coefficients::variable;
  const auto         rows = [](std::int64_t in_each) { return [=](std::int64_t i) { return i % 64 < in_each; }; };
  expect_census(banded(640, 640, {-1, 0, 1}, constant), 638, 0, 0, 1); // the first and the last row occur once each
  expect_census(banded(640, 640, {-1, 0, 1}, variable), 0, 638, 0, 1);
  // Three quarters of a slice are just enough. In the last slice one row more is another: it has no right neighbour.
  expect_census(tridiagonal_but("odd", 640, 9, constant, rows(16)), 9 * 48, 0, 0, 1);
  expect_census(tridiagonal_but("odd", 640, 9, constant, rows(17)), 0, 0, 0, 0);
  // An exception that occurs four times is worth a pattern. The last row lacks its right neighbour.
  RowWriter four("four times", 640, constant), three("three times", 640, constant);
  for (std::int64_t i = 0; i < 640; ++i) {
    four.add(i % 64 == 9 && i < 4 * 64 ? std::vector<std::int64_t>{-5, 0} : std::vector<std::int64_t>{0, 1});
    three.add(i % 64 == 9 && i < 3 * 64 ? std::vector<std::int64_t>{-5, 0} : std::vector<std::int64_t>{0, 1});
  }
  expect_census(four.take(), 635, 0, 4, 2);
  expect_census(three.take(), 636, 0, 0, 1);
  // Rows of the same places with other values are other rows.
  Csr signs = banded(128, 128, {0}, constant);
  for (std::size_t i = 0; i < 128; ++i) signs.values[i] = i < 64 ? 0.0 : -0.0;
  expect_census(signs, 128, 0, 0, 2);
}

TEST(CompactFormat, BytesByHand) {
  const Csr a = banded(640, 640, {0, 1, 2, 3}, Coefficients::constant),
            b = banded(640, 640, {0, 1, 2, 3}, Coefficients::variable);
  const auto   csr = [](std::int64_t rows, std::int64_t entries) { return 4 * rows + 4 * (rows + 1) + 12 * entries; };
  const Census constant = count(build(Stored(a))), variable = count(build(Stored(b)));
  // 10 slices of 16 bytes, one pattern of 32 in two segments of 32 or 8, the last 3 rows as CSR; 10 slices of 4 times 64 values
  // with the places where they begin.
  EXPECT_EQ(constant.bytes, 10 * 16 + 32 + 2 * 32 + csr(3, 6));
  EXPECT_EQ(variable.bytes, 10 * 16 + 32 + 2 * 8 + csr(3, 6) + 10 * 4 * 64 * 8 + 11 * 8);
}

TEST(CompactFormat, RefillKeepsConstantsWhileTheyAre) {
  const Csr  first = stencil(66, 5, 4, false, Coefficients::constant);
  const auto executor = make_host_executor();
  Csr        scaled = first, changed = first;
  for (double &value : scaled.values) value *= -1.5;
  for (std::size_t i = 0; i < changed.values.size(); i += 500) changed.values[i] = -0.0;
  const Stored        stored(first), scaled_stored(scaled), changed_stored(changed);
  compact::HostFormat format(*executor, stored.problem().csr);
  const Census        usual = count(format.arrays());
  const auto          refill = [&](const Csr &a, const Stored &values) {
    format.refill(*executor, values.problem().csr.values, MemorySpace::host);
    expect_recovered(a, format.arrays());
    return count(format.arrays());
  };
  EXPECT_GT(usual.constant_rows, 0);
  EXPECT_EQ(refill(scaled, scaled_stored).bytes, usual.bytes);
  EXPECT_EQ(refill(first, stored).constant_rows, usual.constant_rows);
  EXPECT_EQ(refill(changed, changed_stored).constant_rows, 0);
  EXPECT_EQ(refill(first, stored).constant_rows, 0) << "it looked for constants again";
  EXPECT_THROW(format.refill(*executor, first.values.data(), MemorySpace::cuda), Error);
}

// The products of every instruction set that this processor has.
class CompactVariants : public Spmv {
protected:
  void apply(Format &format, const Product &product) override {
    for (const compact::HostVariant &variant : compact::host_variants())
      if (variant.name == variant_) return variant.multiply(static_cast<compact::HostFormat &>(format).arrays(), product);
    FAIL() << "there is no variant " << variant_;
  }
  template <class F> void for_each_variant(F &&f) {
    for (const compact::HostVariant &variant : compact::host_variants()) {
      SCOPED_TRACE(variant.name);
      variant_ = variant.name;
      f();
    }
  }

  std::string variant_;
};

TEST_P(CompactVariants, Products) {
  for (const Csr &a : structured_matrices()) for_each_variant([&] { expect_products(a, Stored(a).problem()); });
}

// Rows with patterns are added up from the first entry to the last, with a rounding for each entry or two (a processor
// without fused multiply-add), but all in the same way, wherever they are stored.
TEST_P(CompactVariants, RowsAreSummedInOrder) {
  for (const Csr &a : structured_matrices()) {
    if (a.name.find("NaN") != std::string::npos) continue; // which of two NaNs a sum takes its payload from is not ours to say
    const Stored              stored(a);
    const auto                format = Spmv::build(stored.problem());
    const std::vector<double> x = random_vector(a.columns_count, 7), y(static_cast<std::size_t>(a.rows));
    std::vector<double>       fused(y.size()), rounded(y.size());
    for (std::size_t i = 0; i < y.size(); ++i)
      for (auto k = static_cast<std::size_t>(a.offsets[i]); k < static_cast<std::size_t>(a.offsets[i + 1]); ++k) {
        volatile double term = a.values[k] * x[static_cast<std::size_t>(a.columns[k])]; // volatile: nothing to fuse
        fused[i] = std::fma(a.values[k], x[static_cast<std::size_t>(a.columns[k])], fused[i]);
        rounded[i] += term;
      }
    for (const std::int32_t row : static_cast<compact::HostFormat &>(*format).arrays().remainder_rows)
      fused[static_cast<std::size_t>(row)] = rounded[static_cast<std::size_t>(row)] = 0.0;
    for_each_variant([&] {
      std::vector<double> z = multiply(*format, {false, 1.0, 0.0, false, true}, x, y);
      for (const std::int32_t row : static_cast<compact::HostFormat &>(*format).arrays().remainder_rows)
        z[static_cast<std::size_t>(row)] = 0.0;
      EXPECT_TRUE(same_bits(z, fused) || same_bits(z, rounded)) << a.name;
    });
  }
}

// A vector that begins or ends at the edge of what may be read.
class AtTheEdge {
public:
  AtTheEdge(const std::vector<double> &values, bool end) : bytes_((8 * values.size() + page - 1) / page * page + 2 * page) {
    memory_ = static_cast<char *>(mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory_ == MAP_FAILED || mprotect(memory_ + page, bytes_ - 2 * page, PROT_READ | PROT_WRITE) != 0)
      throw std::runtime_error("mmap failed");
    data_ = reinterpret_cast<double *>(end ? memory_ + bytes_ - page - 8 * values.size() : memory_ + page);
    std::copy(values.begin(), values.end(), data_);
  }
  AtTheEdge(const AtTheEdge &) = delete;
  ~AtTheEdge() { munmap(memory_, bytes_); }
  double *data() { return data_; }

private:
  static constexpr std::size_t page = 65536; // bytes; a multiple of every system's
  std::size_t                  bytes_;
  char                        *memory_;
  double                      *data_;
};

TEST_P(CompactVariants, NothingOutsideTheVectorsIsTouched) {
  for (const Csr &a : structured_matrices()) {
    const Stored stored(a);
    const auto   format = Spmv::build(stored.problem());
    for (const bool transpose : {false, true})
      for (const bool end : {false, true}) {
        AtTheEdge x(random_vector(transpose ? a.rows : a.columns_count, 1), end);
        AtTheEdge z(random_vector(transpose ? a.columns_count : a.rows, 2), end);
        Product   product;
        product.transpose = transpose;
        product.x = x.data();
        product.y = product.z = z.data();
        product.beta = 1.0;
        for_each_variant([&] { apply(*format, product); });
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, CompactVariants, testing::Values(find_kernel("spmv/compact/host")), test_name);

} // namespace
