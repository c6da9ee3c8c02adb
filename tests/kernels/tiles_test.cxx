// spmv/tiles: where entries lie, on the host; the CSR back from the format, rows and tiles of all lengths, on a device.
#include <set>

#include "spmv/tiles/inspect.h"
#include "spmv_fixture.h"
#include "structured_matrices.h"

namespace {

using namespace tcbound;
using namespace tcbound::test;

TEST(TilesFormat, PlacesAreTakenOnce) {
  std::set<int> columns;
  for (int c = 0; c < tiles::width; ++c) {
    const int place = tiles::place_of_column(c);
    EXPECT_EQ(tiles::place_of_column(place), c);
    EXPECT_EQ(tiles::column_of(tiles::stored_column(c)), c);
    EXPECT_EQ(tiles::column_of(tiles::stored_column(c) | tiles::ends), c);
    EXPECT_EQ(tiles::stored_column(c) & tiles::ends, 0);
    columns.insert(place);
  }
  EXPECT_EQ(columns.size(), static_cast<std::size_t>(tiles::width));
  EXPECT_EQ(*columns.rbegin(), tiles::width - 1);
  for (const int bytes : {2, 4, 8}) {
    std::set<int> places;
    for (int at = 0; at < tiles::chunk; ++at) places.insert(tiles::place_of_stored(at, bytes));
    EXPECT_EQ(places.size(), static_cast<std::size_t>(tiles::chunk));
    EXPECT_EQ(*places.rbegin(), tiles::chunk - 1);
    // A lane's values are together as far as 16 bytes go, and the next lane's come after them.
    const int together = 16 / bytes;
    for (int i = 0; i < together; ++i) EXPECT_EQ(tiles::place_of_stored(together + i, bytes), tiles::entries_of_lane + i);
  }
}

#ifdef TCBOUND_HAVE_CUDA

class GpuTiles : public Spmv {
protected:
  void expect_recovery(const Csr &a, const Format &format) { expect_same_csr(tiles::recover_cuda_core(executor(), format), a); }

  void expect_all(const Csr &a) {
    SCOPED_TRACE(a.name);
    const Stored stored(a);
    const auto   format = build(stored.problem());
    expect_recovery(a, *format);
    for (const bool transpose : {false, true})
      for (int repeat = 0; repeat < 2; ++repeat) expect_product(a, *format, {transpose, -0.5, 2.0, repeat == 1, true});
  }
};

// Tiles have 8192 columns, strips 2047 places, bins some thousand sums.
TEST_P(GpuTiles, MultipliesAndIsRecovered) {
  std::vector<Csr> all = {ragged(),
                          uniform(30011, 1000, 7),
                          uniform(5000, 3000000, 9),
                          uniform(40, 100000, 3000),
                          uniform(1, 60000, 20000),
                          irregular(20000, 20000, 30),
                          irregular(9000, 200000, 300),
                          irregular(90000, 30000, 12),
                          uniform(70001, 3, 0),
                          uniform(0, 3, 0),
                          uniform(3, 0, 0),
                          one_long_row(1000, 300000, 499),
                          every_length(300, false, Coefficients::variable),
                          nodes(33, 9, 7, 3),
                          stencil(66, 9, 8, false, Coefficients::variable)};
  for (const std::int64_t columns : {1, 8191, 8192, 8193, 16384, 16385}) all.push_back(irregular(777, columns, 20));
  for (const std::int64_t rows : {1, 31, 33, 511, 512, 513, 4097}) all.push_back(irregular(rows, 50000, 12));
  all.push_back(with_short_values(irregular(9000, 60000, 40)));
  all.push_back(with_shorter_values(irregular(9000, 60000, 40)));
  for (const Csr &a : all) expect_all(a);
}

// Runs of 2047 and a few more or less: the ends of strips, with and without a sum that goes on.
TEST_P(GpuTiles, EndsOfStrips) {
  for (const std::int64_t length : {1, 2, 3, 2046, 2047, 2048, 4093, 4094, 4095, 8191, 8192}) {
    RowWriter a("strips, rows of " + std::to_string(length), 8192 * 2 + 5, Coefficients::variable);
    for (int i = 0; i < (length < 10 ? 5000 : 7); ++i) a.add_run(i % 3, length);
    a.add_run(8000, 300);
    a.add({});
    for (int i = 0; i < 2050; ++i) a.add_run(9000 + i % 7, 1);
    expect_all(a.take());
  }
}

// Rows with more sums than a block has room for.
TEST_P(GpuTiles, HeavyRowsAreAddedInTwoTurns) {
  const std::int64_t columns = std::int64_t(tiles::width) * tiles::most_tiles;
  RowWriter          a("heavy rows", columns, Coefficients::variable);
  a.add({0, 5, 70000});
  a.add_run(0, columns);
  for (int i = 0; i < 50; ++i) a.add_odd(9);
  a.add_odd(3000);
  a.add_odd(20000);
  for (int i = 0; i < 3; ++i) a.add({});
  const Csr    wide = a.take();
  const Stored stored(wide);
  const auto   format = build(stored.problem());
  expect_product(wide, *format, {false, 1.0, 0.0, false, false});
  expect_product(wide, *format, {false, -0.5, 2.0, true, true});
  expect_recovery(wide, *format);
}

TEST_P(GpuTiles, SumsByHand) {
  RowWriter a("by hand", 30000, Coefficients::variable);
  a.add({0, 1, 8200, 29999}); // three tiles
  a.add({});
  a.add({20000, 20001});
  const Csr            csr = a.take();
  const Stored         stored(csr);
  const auto           format = build(stored.problem());
  const tiles::Census &census = tiles::census_of(*format);
  EXPECT_EQ(census.tiles, 4);
  EXPECT_EQ(census.bins, 1);
  EXPECT_EQ(census.sums, 2 + 2 + 2 + 2); // one and a filler in tiles 0, 1, 3, and one of tile 2
  EXPECT_EQ(census.places, 4 * tiles::chunk);
  EXPECT_EQ(census.bytes, census.places * (8 + 2) + 4 * 4 + 4 * 16 + 24 + 4 * 8 + 4 * 4 + 8 * 2);
  EXPECT_EQ(format->work(false, false).bytes, census.bytes + 16 * census.sums + 8 * (30000 + 3));
}

TEST_P(GpuTiles, ColumnsAndRowsBeyondItsTilesAreRefused) {
  const std::int64_t most = std::int64_t(tiles::width) * tiles::most_tiles;
  for (const bool wide : {false, true}) {
    Problem problem;
    problem.csr.rows = wide ? 5 : most + 1;
    problem.csr.columns_count = wide ? most + 1 : 5;
    EXPECT_NE(kernel().check(executor().device(), problem).find(std::to_string(most)), std::string::npos);
  }
}

// As few bits as do until new values do not fit, then more for good.
TEST_P(GpuTiles, ValuesWidenWhenTheyMust) {
  const Csr    a = with_shorter_values(irregular(5000, 50000, 30));
  const Stored stored(a);
  const auto   format = build(stored.problem());
  expect_widening(a, *format, tiles::census_of(*format).places, tiles::census_of,
                  [&](const Format &of) { return tiles::recover_cuda_core(executor(), of); });
}

TEST_P(GpuTiles, OddValuesAreRecovered) {
  Csr a = irregular(3000, 30000, 40);
  for (std::size_t k = 0; k < a.values.size(); k += 5) {
    const double odd[] = {0.0, -0.0, with_payload(0x123456789), infinity, -infinity, std::numeric_limits<double>::denorm_min()};
    a.values[k] = odd[k / 5 % 6];
  }
  const Stored stored(a);
  expect_recovery(a, *build(stored.problem()));
}

// Places without an entry must not bring in an element of x.
TEST_P(GpuTiles, FillersReadNoX) {
  for (const Csr &a : {irregular(5000, 700, 12), irregular(3000, 20000, 5)}) {
    const Stored stored(a);
    const auto   format = build(stored.problem());
    for (const std::size_t at : {std::size_t(0), std::size_t(699)}) {
      std::vector<double> x = random_vector(a.columns_count, 5);
      x[at] = nan_value;
      const std::vector<double> y(static_cast<std::size_t>(a.rows), 0.0);
      expect_near(multiply(*format, {}, x, y), reference(a, false, 1.0, 0.0, x, y));
    }
  }
}

TEST_P(GpuTiles, EveryProductHasTheSameBits) {
  const Csr                 a = irregular(30000, 60000, 40);
  const Stored              stored(a);
  const std::vector<double> x = random_vector(a.columns_count, 5), y = random_vector(a.rows, 6);
  const auto                format = build(stored.problem()), again = build(stored.problem());
  const std::vector<double> expected = multiply(*format, {}, x, y);
  for (int repeat = 0; repeat < 20; ++repeat) EXPECT_TRUE(same_bits(multiply(*format, {}, x, y), expected));
  EXPECT_TRUE(same_bits(multiply(*again, {}, x, y), expected));
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuTiles, testing::Values(find_kernel("spmv/tiles/cuda_core")), test_name);

#endif

} // namespace
