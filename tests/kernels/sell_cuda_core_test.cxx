// spmv/sell: where entries lie in a slice, on the host; the kinds of slices, long rows, tables of rows and the CSR back from them,
// on a device.
#include "spmv/sell/cuda_core_tuning.h"
#include "spmv_fixture.h"
#include "structured_matrices.h"

namespace {

using namespace tcbound;
using namespace tcbound::test;

TEST(SellFormat, EveryPlaceOfASliceIsTakenOnceAndLanesHavePairs) {
  for (int steps = 0; steps <= 9; ++steps) {
    std::vector<int> taken(static_cast<std::size_t>(steps * sell::slice_rows), 0);
    for (int lane = 0; lane < sell::slice_rows; ++lane)
      for (int step = 0; step < steps; ++step) ++taken.at(static_cast<std::size_t>(sell::place_of(step, lane, steps)));
    EXPECT_EQ(taken, std::vector<int>(taken.size(), 1)) << steps << " steps";
    for (int step = 0; step + 1 < steps; step += 2)
      EXPECT_EQ(sell::place_of(step, 5, steps) + 1, sell::place_of(step + 1, 5, steps));
  }
}

// With an even number of steps a part's places, pair by pair over the lanes, are those of a row's entries.
TEST(SellFormat, APartHasItsRowsEntriesInOrder) {
  std::int64_t next = 0;
  for (int pair = 0; pair < 4; ++pair)
    for (int lane = 0; lane < sell::slice_rows; ++lane)
      for (int step = 2 * pair; step < 2 * pair + 2; ++step) EXPECT_EQ(sell::place_of(step, lane, 8), next++);
  EXPECT_EQ(next, 8 * sell::slice_rows);
}

TEST(SellFormat, PartsCoverARow) {
  for (const std::int64_t length : {1, 63, 64, 65, 513, 2048, 2049, 46500, 300000})
    for (const std::int64_t count : {1, 2, 3, 7, 23, 147}) {
      const std::int64_t part = sell::part_length(length, count);
      EXPECT_EQ(part % 64, 0);
      EXPECT_GE(part * count, length);
      EXPECT_LT(part, (length + count - 1) / count + 64);
    }
}

#ifdef TCBOUND_HAVE_CUDA

// The same matrix with rows and columns numbered at random.
Csr shuffled(const Csr &a) {
  std::mt19937_64           random(41);
  std::vector<std::int64_t> number(static_cast<std::size_t>(a.rows)), row(number.size());
  for (std::size_t i = 0; i < number.size(); ++i) number[i] = static_cast<std::int64_t>(i);
  std::shuffle(number.begin(), number.end(), random);
  for (std::size_t i = 0; i < number.size(); ++i) row[static_cast<std::size_t>(number[i])] = static_cast<std::int64_t>(i);
  Csr b;
  b.name = a.name + ", shuffled";
  b.rows = b.columns_count = a.rows;
  for (const std::int64_t old : row) {
    std::vector<std::pair<std::int64_t, double>> entries;
    for (auto k = static_cast<std::size_t>(a.offsets[static_cast<std::size_t>(old)]);
         k < static_cast<std::size_t>(a.offsets[static_cast<std::size_t>(old) + 1]); ++k)
      entries.emplace_back(number[static_cast<std::size_t>(a.columns[k])], a.values[k]);
    std::sort(entries.begin(), entries.end());
    for (const auto &[column, value] : entries) {
      b.columns.push_back(column);
      b.values.push_back(value);
    }
    b.offsets.push_back(b.nonzeros());
  }
  return b;
}

// Rows whose columns span exactly `span`.
Csr spanning(std::int64_t rows, std::int64_t span) {
  RowWriter a("spanning " + std::to_string(span), 200000, Coefficients::variable);
  while (a.rows() < rows) a.add({100 - a.rows(), 100 + 7 + a.rows() % 5 - a.rows(), 100 + span - a.rows()});
  return a.take();
}

class GpuSell : public Spmv {
protected:
  std::unique_ptr<Format> build_with(const Csr &a, const sell::CudaCoreConfig &config) {
    const Stored stored(a);
    return sell::build_cuda_core(executor(), stored.problem().csr, config);
  }

  void expect_recovery(const Csr &a, const Format &format) { expect_same_csr(sell::recover_cuda_core(executor(), format), a); }

  void expect_all(const Csr &a, const sell::CudaCoreConfig &config) {
    SCOPED_TRACE(a.name);
    const auto format = build_with(a, config);
    expect_recovery(a, *format);
    for (const bool transpose : {false, true})
      for (int repeat = 0; repeat < 2; ++repeat) expect_product(a, *format, {transpose, -0.5, 2.0, false, true});
  }

  static std::vector<Csr> matrices() {
    std::vector<Csr> all = {ragged(),
                            uniform(30011, 1000, 7),
                            uniform(7001, 7001, 27),
                            uniform(5000, 3000000, 9),
                            irregular(20000, 20000, 30),
                            irregular(9000, 200000, 300),
                            uniform(70001, 3, 0),
                            one_long_row(1000, 300000, 499),
                            one_long_row(1000, 46500, 999),
                            one_long_row(9000, 513, 4096),
                            every_length(300, false, Coefficients::variable),
                            every_length(70, true, Coefficients::variable),
                            nodes(33, 9, 7, 3),
                            nodes(6, 7, 30, 5),
                            stencil(66, 9, 8, false, Coefficients::variable),
                            spanning(100, 65534),
                            spanning(100, 65535),
                            spanning(100, 65536),
                            uniform(0, 3, 0)};
    for (const std::int64_t rows : {1, 31, 33, 4064, 4095, 4096, 4097, 8193}) all.push_back(irregular(rows, 5000, 12));
    for (const std::size_t i : {0U, 4U, 7U, 12U}) {
      all.push_back(with_short_values(all[i]));
      all.push_back(with_shorter_values(all[i]));
    }
    return all;
  }
};

TEST_P(GpuSell, MultipliesAndIsRecovered) {
  sell::CudaCoreConfig small, large;
  small.longest = 1;
  small.part = 64;
  small.log2_window = 5;
  large.longest = 30;
  large.order = sell::Order::by_pattern;
  large.log2_window = 15;
  for (const sell::CudaCoreConfig &config : {sell::CudaCoreConfig{}, small, large}) {
    SCOPED_TRACE("windows of 2^" + std::to_string(config.log2_window));
    for (const Csr &a : matrices()) expect_all(a, config);
  }
}

TEST_P(GpuSell, EveryTuningChoice) {
  const std::vector<Csr> all = {irregular(5000, 20000, 30), one_long_row(1000, 46500, 499), nodes(9, 9, 7, 3),
                                with_short_values(ragged()), with_shorter_values(ragged())};
  for (const sell::CudaCoreVariant &variant : sell::cuda_core_variants()) {
    SCOPED_TRACE(variant.name);
    for (const Csr &a : all) expect_all(a, variant.config);
  }
}

// The sum of a row does not depend on the order of the rows nor on how many steps are in flight, unless columns get new numbers.
TEST_P(GpuSell, SameBitsWithEveryTuningChoice) {
  for (const Csr &a : {irregular(20000, 20000, 30), nodes(33, 9, 7, 3)}) {
    const std::vector<double> x = random_vector(a.columns_count, 5), y = random_vector(a.rows, 6);
    const auto                first = build_with(a, {});
    const std::vector<double> expected = multiply(*first, {}, x, y);
    for (const sell::CudaCoreVariant &variant : sell::cuda_core_variants()) {
      const auto format = build_with(a, variant.config);
      if (sell::census_of(*format).renumbered) continue;
      EXPECT_TRUE(same_bits(multiply(*format, {}, x, y), expected)) << variant.name;
    }
  }
}

// Interior nodes come together by degree of freedom, and their columns take next to nothing.
TEST_P(GpuSell, RowsOfOneDegreeOfFreedomShareAPattern) {
  const Csr           a = nodes(64, 16, 16, 3);
  const auto          format = build_with(a, {});
  const sell::Census &census = sell::census_of(*format);
  EXPECT_GT(census.stored[0], 8 * census.entries() / 10);
  EXPECT_LT(census.entries() - a.nonzeros(), a.nonzeros() / 100);
  EXPECT_LT(static_cast<double>(census.bytes), 8.8 * static_cast<double>(a.nonzeros()));
}

// A mesh numbered at random gets numbers with which 16 bits do for most columns; a matrix without neighbourhoods does not.
TEST_P(GpuSell, RenumbersWhatComesInNoOrder) {
  const Csr           mesh = shuffled(stencil(70, 70, 62, true, Coefficients::variable));
  const auto          format = build_with(mesh, {});
  const sell::Census &census = sell::census_of(*format);
  EXPECT_TRUE(census.renumbered);
  EXPECT_GT(census.stored[1], 8 * census.entries() / 10) << format->describe();
  const Csr random = irregular(120000, 120000, 9);
  EXPECT_FALSE(sell::census_of(*build_with(random, {})).renumbered);
  expect_all(mesh, {});
  expect_all(random, {});
}

TEST_P(GpuSell, RenumberedMatricesMultiplyAndAreRecovered) {
  sell::CudaCoreConfig always;
  always.renumber = sell::Renumber::always;
  for (const Csr &a :
       {shuffled(stencil(13, 11, 9, true, Coefficients::variable)), shuffled(nodes(9, 8, 7, 3)), irregular(4097, 4097, 40),
        with_short_values(shuffled(stencil(30, 20, 1, false, Coefficients::variable))),
        with_shorter_values(shuffled(stencil(30, 20, 1, false, Coefficients::variable))), irregular(3000, 50, 12),
        tridiagonal_but("rows of 600 now and then", 20000, 600, Coefficients::variable,
                        [](std::int64_t i) { return i % 1000 == 7; })})
    expect_all(a, always);
}

// 40960 rows of 0 to 20 entries, in no order: sorted they fill slices, and a table of 2 bytes a row says where.
TEST_P(GpuSell, SortedRowsHardlyFillUp) {
  const Csr            a = irregular(40960, 60000, 20);
  sell::CudaCoreConfig natural;
  natural.order = sell::Order::natural;
  const auto          format = build_with(a, {}), filled = build_with(a, natural);
  const sell::Census &census = sell::census_of(*format);
  EXPECT_EQ(census.permuted, 40960 / 32);
  EXPECT_LT(census.entries(), a.nonzeros() + a.nonzeros() / 50);
  EXPECT_EQ(sell::census_of(*filled).permuted, 0);
  EXPECT_GT(sell::census_of(*filled).entries(), a.nonzeros() + a.nonzeros() / 2);
  EXPECT_EQ(format->work(false, false).padded_flops, 2 * census.entries());
}

// 100 rows of 3: four slices of 3 steps, the last with 28 lanes without a row.
TEST_P(GpuSell, BytesByHand) {
  const std::int64_t vectors = 8 * (200000 + 100), slices = 4 * 16, values = 4 * 3 * 32 * 8;
  const auto         bytes = [&](const Csr &a) { return build_with(a, {})->work(false, false).bytes; };
  EXPECT_EQ(bytes(spanning(100, 65534)), vectors + slices + values + 4 * 3 * 32 * 2);
  EXPECT_EQ(bytes(spanning(100, 65535)), vectors + slices + values + 4 * (64 + 3 * 32 * 2)); // 64: where 3 steps start
  EXPECT_EQ(bytes(uniform(100, 200000, 2)), vectors + slices + 4 * 2 * 32 * (8 + 4));
  RowWriter band("band", 200000, Coefficients::variable);
  while (band.rows() < 100) band.add({0, 100, 100000});
  EXPECT_EQ(bytes(band.take()), vectors + slices + values + 4 * 64); // 3 distances, filled up to 64 bytes
  EXPECT_EQ(bytes(with_short_values(spanning(100, 65534))), vectors + slices + values / 2 + 4 * 3 * 32 * 2);
  EXPECT_EQ(bytes(with_shorter_values(spanning(100, 65534))), vectors + slices + values / 4 + 4 * 3 * 32 * 2);
}

// As few bits as do until new values do not fit, then more for good; the same bits of the product either way.
TEST_P(GpuSell, ValuesWidenWhenTheyMust) {
  const Csr    a = with_shorter_values(irregular(5000, 5000, 30));
  const Stored stored(a);
  const auto   format = build(stored.problem());
  expect_widening(a, *format, sell::census_of(*format).entries(), sell::census_of,
                  [&](const Format &of) { return sell::recover_cuda_core(executor(), of); });
}

TEST_P(GpuSell, OddValuesAreRecovered) {
  Csr a = irregular(3000, 3000, 40);
  for (std::size_t k = 0; k < a.values.size(); k += 5) {
    const double odd[] = {0.0, -0.0, with_payload(0x123456789), infinity, -infinity, std::numeric_limits<double>::denorm_min()};
    a.values[k] = odd[k / 5 % 6];
  }
  const auto format = build_with(a, {});
  expect_recovery(a, *format);
  const auto all_odd = [](Csr m) {
    for (std::size_t k = 0; k < m.values.size(); ++k) m.values[k] = k % 3 ? infinity : -0.0; // exact in 16 bits
    return m;
  };
  const Csr  b = all_odd(a);
  const auto narrow = build_with(b, {});
  EXPECT_EQ(sell::census_of(*narrow).value_bytes, 2);
  expect_recovery(b, *narrow);
}

// What fills a slice up must not bring in an element of x.
TEST_P(GpuSell, FillingUpReadsNoX) {
  for (const Csr &a : {irregular(5000, 700, 12), one_long_row(1000, 700, 3)}) {
    sell::CudaCoreConfig config;
    config.longest = 500;
    config.order = sell::Order::natural;
    const auto format = build_with(a, config);
    for (const std::size_t at : {std::size_t(0), std::size_t(699)}) {
      std::vector<double> x = random_vector(a.columns_count, 5);
      x[at] = nan_value;
      const std::vector<double> y(static_cast<std::size_t>(a.rows), 0.0);
      expect_near(multiply(*format, {}, x, y), reference(a, false, 1.0, 0.0, x, y));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuSell, testing::Values(find_kernel("spmv/sell/cuda_core")), test_name);

#endif

} // namespace
