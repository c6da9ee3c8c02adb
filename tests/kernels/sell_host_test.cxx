// spmv/sell/host: what slices come to be, the CSR back from them, and every instruction set's products.
#include "spmv/sell/host_format.h"
#include "spmv/sell/host_product.h"
#include "spmv_fixture.h"
#include "structured_matrices.h"

namespace {

using namespace tcbound;
using namespace tcbound::test;

// Rows alike but for their length, in turn.
Csr lengths_in_turn() {
  std::vector<std::int64_t> lengths;
  for (int i = 0; i < 3000; ++i) lengths.push_back(1 + i % 7);
  return from_lengths("lengths in turn", 3000, lengths);
}

// Neighbouring columns in several far stretches: each step of a slice is narrow, but not all together.
Csr far_stretches() {
  Csr a = uniform(800, 400000, 4);
  a.name = "far stretches";
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = 0; k < 4; ++k) a.columns[static_cast<std::size_t>(4 * i + k)] = k * 100000 + (i * 37 + k * k) % 900;
  return a;
}

Csr with_values(Csr a, double scale, double step) {
  for (std::size_t k = 0; k < a.values.size(); ++k) a.values[k] = scale + step * static_cast<double>(k % 5);
  return a;
}

std::vector<Csr> matrices() {
  std::vector<Csr> all = {nodes(9, 9, 9, 1), nodes(8, 8, 8, 2), nodes(7, 7, 7, 3), nodes(6, 6, 6, 5),
                          lengths_in_turn(), far_stretches(),   ragged(),          uniform(3001, 1000000, 9),
                          uniform(0, 17, 0), uniform(17, 0, 0), uniform(7, 90, 5), irregular(2049, 2000, 20)};
  all.push_back(with_values(irregular(1000, 1000, 9), 1.5, 0.25));    // exact in 16 bits
  all.push_back(with_values(irregular(1000, 1000, 9), 1.0, 0x1p-20)); // in 32
  return all;
}

Executor &host() {
  static const auto executor = make_host_executor();
  return *executor;
}

sell::HostArrays build_arrays(const Stored &stored) { return sell::build_host(host(), stored.problem().csr); }

double value_at(const sell::HostArrays &a, std::int64_t at) {
  if (a.value_bytes == 8) return reinterpret_cast<const double *>(a.values.data())[at];
  if (a.value_bytes == 4) return static_cast<double>(reinterpret_cast<const float *>(a.values.data())[at]);
  const std::uint32_t bits = std::uint32_t(reinterpret_cast<const std::uint16_t *>(a.values.data())[at]) << 16;
  float               value;
  std::memcpy(&value, &bits, sizeof value);
  return static_cast<double>(value);
}

// Every entry is where its row and column say, once, bit for bit, and what fills up is zero and names a column that is there.
void expect_recovered(const Csr &a, const sell::HostArrays &arrays) {
  std::vector<std::int64_t> found(static_cast<std::size_t>(a.rows), -1);
  sell::for_each_slice(arrays, [&](const sell::HostSliceView &view, std::int64_t first) {
    for (int l = 0; l < sell::host_slice_rows; ++l) {
      const bool present = l < view.slice.lanes;
      const int  length = present ? view.length(l) : 0;
      const auto row = static_cast<std::size_t>(present ? view.row(l) : 0);
      ASSERT_TRUE(!present || found.at(row) == -1) << "row " << row << " is stored twice";
      if (present) found[row] = length;
      for (int k = 0; k < view.slice.steps; ++k) {
        const double value = value_at(arrays, first + sell::host_slice_rows * k + l);
        if (k < length) {
          const auto at = static_cast<std::size_t>(a.offsets[row] + k);
          ASSERT_EQ(view.column(k, l), a.columns[at]) << "row " << row << " entry " << k;
          ASSERT_EQ(std::memcmp(&value, &a.values[at], sizeof value), 0) << "row " << row << " entry " << k;
        } else {
          ASSERT_EQ(value, 0.0);
          ASSERT_LT(view.column(k, l), a.columns_count);
          ASSERT_GE(view.column(k, l), 0);
        }
      }
    }
  });
  const CsrView rest = arrays.long_csr();
  for (std::int64_t i = 0; i < rest.rows; ++i) {
    const auto row = static_cast<std::size_t>(arrays.long_rows[static_cast<std::size_t>(i)]);
    ASSERT_EQ(found[row], -1);
    found[row] = rest.row_offsets[i + 1] - rest.row_offsets[i];
    for (std::int64_t k = 0; k < found[row]; ++k) {
      ASSERT_EQ(rest.columns[rest.row_offsets[i] + k], a.columns[static_cast<std::size_t>(a.offsets[row] + k)]);
      ASSERT_EQ(rest.values[rest.row_offsets[i] + k], a.values[static_cast<std::size_t>(a.offsets[row] + k)]);
    }
  }
  for (std::size_t row = 0; row < found.size(); ++row) ASSERT_EQ(found[row], a.offsets[row + 1] - a.offsets[row]);
}

TEST(SellHost, EveryEntryIsStoredOnce) {
  for (const Csr &a : matrices())
    for (const int bytes : {4, 8}) {
      SCOPED_TRACE(a.name);
      const Stored stored(a, bytes, bytes);
      expect_recovered(a, build_arrays(stored));
    }
}

TEST(SellHost, SlicesAreOfTheKindThatTakesTheFewestBytes) {
  const auto   census_of = [](const Csr &a) { return sell::count(build_arrays(Stored(a))); };
  const auto   of = [](const sell::Census &census, sell::Coding coding) { return census.slices[static_cast<int>(coding)]; };
  sell::Census census = census_of(nodes(16, 16, 16, 3)); // the three unknowns of a line's nodes
  EXPECT_GT(4 * census.stored[0], 3 * census.entries());
  EXPECT_GT(census.permuted, 0);
  EXPECT_LE(census.entries() - census.nonzeros, census.nonzeros / 100);
  census = census_of(lengths_in_turn());
  EXPECT_LE(census.entries() - census.nonzeros, census.nonzeros / 50) << "rows are not sorted by length";
  census = census_of(irregular(2049, 2000, 20));
  EXPECT_GT(of(census, sell::Coding::narrow), 240); // of 257; empty rows are alike
  EXPECT_EQ(of(census, sell::Coding::stepped) + of(census, sell::Coding::wide), 0);
  census = census_of(far_stretches());
  EXPECT_GT(of(census, sell::Coding::stepped), 50);
  EXPECT_EQ(of(census, sell::Coding::narrow) + of(census, sell::Coding::wide), 0);
  EXPECT_GT(of(census_of(uniform(3001, 1000000, 9)), sell::Coding::wide), 0);
  census = census_of(one_long_row(1000, 5000, 499));
  EXPECT_EQ(census.long_rows, 1);
  EXPECT_EQ(census.apart, 5000);
  EXPECT_EQ(census_of(with_values(irregular(1000, 1000, 9), 1.5, 0.25)).value_bytes, 2);
  EXPECT_EQ(census_of(with_values(irregular(1000, 1000, 9), 1.0, 0x1p-20)).value_bytes, 4);
  EXPECT_EQ(census_of(irregular(1000, 1000, 9)).value_bytes, 8);
}

// Two slices of 8 rows with 3 entries each, of one pattern: 16 bytes a slice, 12 for the pattern's distances, no columns.
TEST(SellHost, BytesByHand) {
  Csr inner;
  inner.rows = 16;
  inner.columns_count = 18;
  for (std::int64_t i = 0; i < 16; ++i) {
    for (std::int64_t k = 0; k < 3; ++k) {
      inner.columns.push_back(i + k);
      inner.values.push_back(1.0 / static_cast<double>(3 + i + k));
    }
    inner.offsets.push_back(inner.nonzeros());
  }
  EXPECT_EQ(sell::count(build_arrays(Stored(inner))).bytes, 2 * 16 + 12 + 8 * 48);
}

TEST(SellHost, ValuesGrowWiderAndStayWide) {
  const Csr        narrow = with_values(irregular(1000, 1000, 9), 1.5, 0.25);
  const Csr        wider = with_values(narrow, 1.0, 0x1p-20), widest = with_values(narrow, 1.0 / 3, 0.1);
  const Stored     stored(narrow), second(wider), third(widest);
  sell::HostFormat format(host(), stored.problem().csr);
  const auto       refill = [&](const Csr &a, const Stored &from, int bytes) {
    format.refill(host(), from.problem().csr.values, MemorySpace::host);
    EXPECT_EQ(format.arrays().value_bytes, bytes);
    expect_recovered(a, format.arrays());
  };
  EXPECT_EQ(format.arrays().value_bytes, 2);
  refill(wider, second, 4);
  refill(narrow, stored, 4);
  refill(widest, third, 8);
  refill(narrow, stored, 8);
  EXPECT_THROW(format.refill(host(), narrow.values.data(), MemorySpace::cuda), Error);
}

// The products of every instruction set that this processor has.
class SellVariants : public Spmv {
protected:
  void apply(Format &format, const Product &product) override {
    for (const sell::HostVariant &variant : sell::host_variants())
      if (variant.name == variant_) return variant.multiply(static_cast<sell::HostFormat &>(format).arrays(), product);
    FAIL() << "there is no variant " << variant_;
  }
  std::string variant_;
};

TEST_P(SellVariants, Products) {
  for (const sell::HostVariant &variant : sell::host_variants()) {
    SCOPED_TRACE(variant.name);
    variant_ = variant.name;
    for (const Csr &a : matrices()) {
      const Stored stored(a);
      const auto   format = build(stored.problem());
      for (const bool transpose : {false, true})
        for (const double beta : {0.0, -2.0}) expect_product(a, *format, {transpose, 0.5, beta, beta != 0.0, true});
    }
  }
}

TEST_P(SellVariants, NothingSpillsOverFromWhatFillsUp) {
  for (const sell::HostVariant &variant : sell::host_variants()) {
    SCOPED_TRACE(variant.name);
    variant_ = variant.name;
    for (const Csr &a : matrices()) {
      const Stored        stored(a);
      const auto          format = build(stored.problem());
      std::vector<double> x = random_vector(a.columns_count, 3), y(static_cast<std::size_t>(a.rows), nan_value);
      for (std::size_t j = 0; j < x.size(); j += 3) x[j] = j % 2 ? infinity : nan_value;
      SCOPED_TRACE(a.name);
      expect_near(multiply(*format, {false, 1.0, 0.0, false, false}, x, y), reference(a, false, 1.0, 0.0, x, y));
    }
  }
}

// Variants with fused multiply-adds, and compact in its slices, add up rows in the same way.
TEST_P(SellVariants, HaveTheSameBits) {
  const auto &all = sell::host_variants();
  for (const Csr &a : matrices()) {
    const Stored              stored(a);
    const auto                format = build(stored.problem());
    const std::vector<double> x = random_vector(a.columns_count, 7), y = random_vector(a.rows, 8);
    std::vector<double>       first;
    for (const sell::HostVariant &variant : all) {
      if (std::string(variant.name) == "baseline" && all.size() > 1) continue;
      variant_ = variant.name;
      const std::vector<double> z = multiply(*format, {false, 0.5, 3.0, false, false}, x, y);
      if (first.empty()) first = z;
      EXPECT_TRUE(same_bits(z, first)) << a.name << ", " << variant.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, SellVariants, testing::Values(find_kernel("spmv/sell/host")), test_name);

} // namespace
