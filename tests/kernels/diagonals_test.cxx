// spmv/diagonals: where entries lie and how offsets are chosen, on the host; symmetric matrices, rows that spoil the symmetry, and the
// CSR back from the format, on a device.
#include <map>
#include <set>
#include <tuple>

#include "spmv/diagonals/cuda_core_tuning.h"
#include "spmv_fixture.h"
#include "structured_matrices.h"

namespace {

using namespace tcbound;
using namespace tcbound::test;

diagonals::Table table_of(int node, bool mirrored, const std::vector<std::int32_t> &offsets) {
  diagonals::Table table;
  table.node = node;
  table.mirrored = mirrored;
  table.count = static_cast<std::int32_t>(offsets.size());
  std::copy(offsets.begin(), offsets.end(), table.offsets);
  return table;
}

// A value of a plane belongs to one entry, or, mirrored off the diagonal block, to it and its mirror image.
TEST(DiagonalsFormat, EveryPlaceIsTakenOnceAndByItsMirrorImage) {
  constexpr std::int64_t nodes = 30;
  for (int node = 1; node <= diagonals::most_node; ++node)
    for (const diagonals::Table &table : {table_of(node, true, {0, 1, 4, 9}), table_of(node, false, {-7, -1, 0, 1, 2, 20})}) {
      std::map<std::pair<int, std::int64_t>, std::set<std::pair<std::int64_t, std::int64_t>>> taken; // place: (row, column)
      for (std::int64_t row = 0; row < nodes * node; ++row)
        for (int k = 0; k < diagonals::offset_count(table); ++k)
          for (int d = 0; d < node; ++d) {
            const std::int64_t p = row / node, other = p + diagonals::offset_of(table, k);
            if (other < 0 || other >= nodes) continue;
            const diagonals::Place place = diagonals::place_of(table, k, static_cast<int>(row % node), d);
            EXPECT_LT(place.plane, diagonals::plane_count(table));
            EXPECT_EQ(place.mirrored, table.mirrored && other < p);
            const bool new_one = taken[{place.plane, place.mirrored ? other : p}].insert({row, other * node + d}).second;
            EXPECT_TRUE(new_one);
          }
      for (const auto &[place, entries] : taken) {
        const auto [row, column] = *entries.begin();
        const bool shared = table.mirrored && row / node != column / node;
        EXPECT_EQ(entries.size(), shared ? 2U : 1U);
        EXPECT_EQ(entries.count({column, row}), shared || row == column ? 1U : 0U) << row << ", " << column;
      }
    }
}

TEST(DiagonalsFormat, RowsAreWalkedInOrder) {
  const diagonals::Table          table = table_of(2, true, {0, 3});
  const std::vector<std::int32_t> columns = {0, 4, 5, 6, 7, 9, 10}; // of row 8, the first one of node 4; offsets -3, 0 and 3
  std::vector<std::int64_t>       found;
  const auto                      walk = [&](int from, int to) {
    return diagonals::walk(table, 4, 0, 0, std::int64_t(columns.size()), columns.data(), from, to,
                                                [&](const diagonals::Place &, std::int64_t, int, std::int64_t entry) { found.push_back(entry); });
  };
  EXPECT_EQ(walk(0, 3), 1); // column 9 only: 2, 3, 8, 14 and 15 are not there
  EXPECT_EQ(found, (std::vector<std::int64_t>{-1, -1, -1, 5, -1, -1}));
  found.clear();
  EXPECT_EQ(walk(1, 2), 1);
  EXPECT_EQ(found, (std::vector<std::int64_t>{-1, 5}));
  EXPECT_EQ(walk(2, 2), 0);
}

// A sample of equal groups whose rows have the node offsets, all rows of a node the same columns.
diagonals::Sample sample_of(int node, const std::vector<std::int64_t> &offsets, bool symmetric) {
  diagonals::Group group(diagonals::group_rows);
  for (int i = 0; i < diagonals::group_rows; ++i) {
    for (const std::int64_t offset : offsets)
      for (int d = 0; d < node; ++d) group[static_cast<std::size_t>(i)].distances.push_back((i / node + offset) * node + d);
    group[static_cast<std::size_t>(i)].length = static_cast<std::int64_t>(offsets.size()) * node;
    group[static_cast<std::size_t>(i)].symmetric = symmetric;
  }
  return {{group, diagonals::most_groups}};
}

TEST(DiagonalsFormat, ChoosesNodesAndHalves) {
  for (int node = 1; node <= diagonals::most_node; ++node)
    for (const bool symmetric : {false, true}) {
      const diagonals::Table table = choose_table(12000, sample_of(node, {-50, -1, 0, 1, 50}, symmetric), {});
      EXPECT_EQ(table.node, node);
      EXPECT_EQ(table.mirrored, symmetric);
      EXPECT_EQ(diagonals::offset_count(table), 5);
      EXPECT_EQ(diagonals::plane_count(table), (symmetric ? 3 : 5) * node * node);
    }
  // A number of rows that is no number of nodes.
  EXPECT_EQ(choose_table(12001, sample_of(3, {-50, 0, 50}, true), {}).node, 1);
  EXPECT_FALSE(choose_table(12000, sample_of(1, {-50, 0, 50}, true), {0, false}).mirrored);
  EXPECT_TRUE(all_remainder(choose_table(12000, sample_of(2, {-50, 0, 50}, true), {4, true})) ||
              choose_table(12000, sample_of(2, {-50, 0, 50}, true), {4, true}).node == 4);
}

TEST(DiagonalsFormat, LeavesMatricesWithoutDiagonalsAlone) {
  EXPECT_TRUE(all_remainder(diagonals::choose_table(0, {}, {})));
  diagonals::Sample different;
  std::mt19937_64   random(3);
  for (int g = 0; g < diagonals::most_groups; ++g) {
    diagonals::Group group(diagonals::group_rows);
    for (diagonals::SampledRow &row : group) {
      for (int k = 0; k < 8; ++k) row.distances.push_back(static_cast<std::int64_t>(random() % 100000) - 50000);
      std::sort(row.distances.begin(), row.distances.end());
      row.length = 8;
    }
    ++different[group];
  }
  EXPECT_TRUE(all_remainder(choose_table(120000, different, {})));
  std::vector<std::int64_t> many; // more than a table lists
  for (std::int64_t k = 0; k <= diagonals::most_offsets; ++k) many.push_back(3 * k);
  EXPECT_TRUE(all_remainder(choose_table(120000, sample_of(1, many, false), {})));
}

TEST(DiagonalsFormat, GroupsAreWholeAndInside) {
  for (const std::int64_t rows : {1, 11, 12, 13, 287, 288, 289, 5000, 16777216}) {
    const std::vector<std::int64_t> first = diagonals::sampled_groups(rows);
    const std::int64_t              all = (rows + diagonals::group_rows - 1) / diagonals::group_rows;
    EXPECT_LE(static_cast<std::int64_t>(first.size()), std::min<std::int64_t>(diagonals::most_groups, all));
    EXPECT_GE(2 * static_cast<std::int64_t>(first.size()), std::min<std::int64_t>(diagonals::most_groups, all));
    for (std::size_t i = 0; i < first.size(); ++i) {
      EXPECT_EQ(first[i] % diagonals::group_rows, 0);
      EXPECT_LT(first[i], rows);
      EXPECT_TRUE(i == 0 || first[i] > first[i - 1]);
    }
  }
}

#ifdef TCBOUND_HAVE_CUDA

// In [-1, 1), by SplitMix64's mixing.
double value_of_pair(std::int64_t i, std::int64_t j) {
  auto bits = static_cast<std::uint64_t>(std::min(i, j)) * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(std::max(i, j));
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  return static_cast<double>(static_cast<std::int64_t>(bits ^ (bits >> 31))) * 0x1p-63;
}

Csr symmetric(Csr a) {
  a.name += ", symmetric";
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (auto k = a.offsets[static_cast<std::size_t>(i)]; k < a.offsets[static_cast<std::size_t>(i) + 1]; ++k)
      a.values[static_cast<std::size_t>(k)] = value_of_pair(i, a.columns[static_cast<std::size_t>(k)]);
  return a;
}

// The rows that odd(i) names become rows of the identity, as boundary conditions make them; columns stay.
template <class F> Csr with_identity_rows(const Csr &a, F &&odd) {
  Csr b;
  b.name = a.name + ", some rows of the identity";
  b.rows = a.rows;
  b.columns_count = a.columns_count;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (auto k = static_cast<std::size_t>(a.offsets[static_cast<std::size_t>(i)]);
         k < static_cast<std::size_t>(a.offsets[static_cast<std::size_t>(i) + 1]); ++k)
      if (!odd(i) || a.columns[k] == i) {
        b.columns.push_back(a.columns[k]);
        b.values.push_back(odd(i) ? 1.0 : a.values[k]);
      }
    b.offsets.push_back(b.nonzeros());
  }
  return b;
}

class GpuDiagonals : public Spmv {
protected:
  std::unique_ptr<Format> build_with(const Csr &a, const diagonals::CudaCoreConfig &config) {
    const Stored stored(a);
    return diagonals::build_cuda_core(executor(), stored.problem().csr, config);
  }

  void expect_recovery(const Csr &a, const Format &format) {
    expect_same_csr(diagonals::recover_cuda_core(executor(), format), a);
  }

  void expect_all(const Csr &a, Format &format) {
    SCOPED_TRACE(a.name);
    expect_recovery(a, format);
    for (const bool transpose : {false, true})
      for (int repeat = 0; repeat < 2; ++repeat) expect_product(a, format, {transpose, -0.5, 2.0, repeat == 1, true});
    std::vector<double> d(static_cast<std::size_t>(a.rows), nan_value), expected(d.size(), 0.0);
    Guarded             device(executor(), d, true);
    format.diagonal(executor(), device.data());
    bool intact = false;
    d = device.read(intact);
    for (std::int64_t i = 0; i < a.rows; ++i)
      for (auto k = static_cast<std::size_t>(a.offsets[static_cast<std::size_t>(i)]);
           k < static_cast<std::size_t>(a.offsets[static_cast<std::size_t>(i) + 1]); ++k)
        if (a.columns[k] == i) expected[static_cast<std::size_t>(i)] = a.values[k];
    EXPECT_TRUE(intact && same_bits(d, expected)) << "the diagonal";
  }

  static std::vector<Csr> matrices() {
    const auto       variable = Coefficients::variable;
    std::vector<Csr> all;
    for (const std::int64_t n : {1, 2, 31, 32, 33, 63, 64, 65, 128, 1000}) all.push_back(banded(n, n, {-1, 0, 1}, variable));
    all.push_back(banded(5000, 5000, {-4990, -300, -7, 0, 7, 300, 4990}, variable));
    all.push_back(banded(777, 777, {0}, variable));
    all.push_back(stencil(70, 40, 1, true, variable));
    all.push_back(stencil(64, 33, 1, false, variable));
    for (const bool star : {false, true}) {
      all.push_back(stencil(32, 32, 32, star, variable));
      all.push_back(stencil(33, 17, 9, star, variable));
      all.push_back(stencil(65, 34, 3, star, variable));
      all.push_back(stencil(5, 4, 200, star, variable));
    }
    for (const int dofs : {2, 3, 4, 5}) {
      all.push_back(nodes(33, 9, 7, dofs));
      all.push_back(nodes(40, 35, 1, dofs));
    }
    return all;
  }
};

TEST_P(GpuDiagonals, HalfOfASymmetricMatrixIsStored) {
  for (const Csr &a : matrices()) {
    const Csr  s = symmetric(a);
    const auto format = build_with(s, {});
    expect_all(s, *format);
    const diagonals::Census &census = diagonals::census_of(*format);
    if (a.rows < 64) continue;                                              // these may be stored either way
    EXPECT_EQ(census.mirrored, a.nonzeros() > a.rows) << a.name;            // of a diagonal alone both ways are the same
    EXPECT_LE(census.remainder_rows, a.rows / 10) << a.name;                // rare offsets are not listed
    EXPECT_LE(census.places, s.nonzeros() * 3 / 4 + 16 * s.rows) << a.name; // nodes of five are no nodes
  }
  const Csr all_regular = symmetric(stencil(32, 32, 32, false, Coefficients::variable));
  EXPECT_EQ(diagonals::census_of(*build_with(all_regular, {})).remainder_rows, 0);
}

TEST_P(GpuDiagonals, BothHalvesOfAnotherOneAre) {
  for (const Csr &a : matrices()) {
    const auto format = build_with(a, {});
    expect_all(a, *format);
    EXPECT_FALSE(a.rows >= 64 && a.nonzeros() > a.rows && diagonals::census_of(*format).mirrored) << a.name;
  }
}

TEST_P(GpuDiagonals, RowsThatSpoilTheSymmetryAreTheRemainder) {
  const auto odd = [](std::int64_t i) { return i % 97 == 5 || (i > 400 && i < 450); };
  for (const Csr &a : {stencil(33, 17, 9, false, Coefficients::variable), stencil(130, 60, 1, true, Coefficients::variable),
                       nodes(33, 9, 7, 3), banded(3000, 3000, {-1, 0, 1}, Coefficients::variable)}) {
    const Csr    b = with_identity_rows(symmetric(a), odd);
    const auto   format = build_with(b, {});
    std::int64_t rows = 0;
    for (std::int64_t i = 0; i < b.rows; ++i) rows += odd(i);
    expect_all(b, *format);
    const diagonals::Census &census = diagonals::census_of(*format);
    EXPECT_TRUE(census.mirrored) << b.name;
    EXPECT_GT(census.remainder_rows, 0) << b.name;
    // Where rows are short, one may contradict its neighbours no more than they do others.
    EXPECT_LE(census.remainder_rows, b.nonzeros() > 5 * b.rows ? rows : 3 * rows) << b.name;
  }
}

TEST_P(GpuDiagonals, RowsOfOtherPatternsAreTheRemainder) {
  for (const Csr &a : structured_matrices()) {
    const Csr  s = symmetric(a);
    const auto format = build_with(s, {});
    expect_recovery(s, *format);
    expect_product(s, *format, {false, 1.0, 0.0, false, true});
  }
}

TEST_P(GpuDiagonals, NewValues) {
  for (const Csr &a :
       {stencil(33, 17, 9, false, Coefficients::variable), nodes(33, 9, 7, 3),
        with_identity_rows(stencil(70, 40, 1, false, Coefficients::variable), [](std::int64_t i) { return i % 50 == 3; })}) {
    Csr        first = symmetric(a), second = first, third = a;
    const auto format = build_with(first, {});
    const bool mirrored = diagonals::census_of(*format).mirrored;
    for (double &value : second.values) value = 3.0 * value;
    for (const bool transposed_too : {false, true}) {
      if (transposed_too) format->prepare(executor(), true);
      format->refill(executor(), second.values.data(), MemorySpace::host);
      EXPECT_EQ(diagonals::census_of(*format).mirrored, mirrored && !transposed_too) << a.name;
      expect_all(second, *format);
      format->refill(executor(), third.values.data(), MemorySpace::host); // no longer symmetric
      EXPECT_FALSE(diagonals::census_of(*format).mirrored) << a.name;
      expect_all(third, *format);
    }
  }
}

TEST_P(GpuDiagonals, SeveralColumns) {
  std::vector<Csr> all = {with_identity_rows(symmetric(stencil(33, 17, 9, false, Coefficients::variable)),
                                             [](std::int64_t i) { return i % 90 == 7; }),
                          symmetric(stencil(100, 40, 1, true, Coefficients::variable)),
                          stencil(33, 17, 9, true, Coefficients::variable)};
  for (const int dofs : {2, 3, 4}) {
    all.push_back(symmetric(nodes(33, 9, 7, dofs)));
    all.push_back(nodes(17, 5, 4, dofs));
  }
  for (const Csr &a : all) {
    const auto format = build_with(a, {});
    const Work one = format->work(false, false), eleven = format->work_of_columns(false, false, 11); // in 8, 2 and 1
    EXPECT_EQ(eleven.bytes, 11 * one.bytes - 8 * 8 * diagonals::census_of(*format).places) << a.name;
    for (const bool transpose : {false, true}) {
      for (const std::int64_t count : {1, 2, 4, 8, 15}) expect_columns(a, *format, {transpose, 1.0, 0.0, false, true}, count);
      expect_columns(a, *format, {transpose, -0.5, 2.0, true, false}, 11);
    }
  }
}

// Values of 16 and 32 bits: the lower ones of a double's bits are zeros.
TEST_P(GpuDiagonals, NarrowValues) {
  for (const Csr &wide : {symmetric(stencil(33, 17, 9, false, Coefficients::variable)),
                          symmetric(stencil(40, 40, 40, true, Coefficients::variable)),
                          stencil(64, 33, 1, false, Coefficients::variable), symmetric(nodes(33, 9, 7, 3)), nodes(40, 35, 1, 2),
                          with_identity_rows(symmetric(stencil(70, 40, 1, true, Coefficients::variable)),
                                             [](std::int64_t i) { return i % 60 == 7; })})
    for (const int bytes : {2, 4}) {
      Csr narrow = wide;
      for (double &value : narrow.values) {
        std::uint64_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        bits &= ~std::uint64_t(0) << (bytes == 2 ? 45 : 29);
        std::memcpy(&value, &bits, sizeof bits);
      }
      const auto format = build_with(narrow, {});
      SCOPED_TRACE(std::to_string(bytes) + " bytes");
      EXPECT_EQ(diagonals::census_of(*format).value_bytes, bytes);
      expect_all(narrow, *format);
      expect_columns(narrow, *format, {false, -0.5, 2.0, true, false}, 5);
      format->refill(executor(), wide.values.data(), MemorySpace::host);
      EXPECT_EQ(diagonals::census_of(*format).value_bytes, 8);
      expect_all(wide, *format);
      format->refill(executor(), narrow.values.data(), MemorySpace::host);
      expect_all(narrow, *format);
    }
}

// Values that look like absent ones, from the start and later.
TEST_P(GpuDiagonals, ValuesThatLookAbsent) {
  double looks_absent;
  static_assert(sizeof looks_absent == sizeof diagonals::absent_bits);
  std::memcpy(&looks_absent, &diagonals::absent_bits, sizeof looks_absent);
  Csr        a = symmetric(stencil(33, 17, 9, false, Coefficients::variable)), b = a;
  const auto format = build_with(a, {});
  b.values[777] = b.values[5000] = looks_absent;
  expect_recovery(b, *build_with(b, {}));
  format->refill(executor(), b.values.data(), MemorySpace::host);
  expect_recovery(b, *format);
  format->refill(executor(), a.values.data(), MemorySpace::host);
  expect_all(a, *format);
}

TEST_P(GpuDiagonals, SameBitsWithEveryTile) {
  for (const Csr &a : {symmetric(stencil(33, 17, 9, false, Coefficients::variable)),
                       symmetric(stencil(100, 40, 1, true, Coefficients::variable)),
                       symmetric(stencil(40, 40, 40, true, Coefficients::variable)), symmetric(nodes(33, 9, 7, 3)),
                       stencil(65, 9, 8, false, Coefficients::variable)}) {
    const std::vector<double> x = random_vector(a.columns_count, 5), y = random_vector(a.rows, 6);
    const std::vector<double> expected = multiply(*build_with(a, {}), {}, x, y);
    for (const int width : {1, 8, 32, 64, 256})
      for (const int height : {1, 2, 8})
        for (const int many : {1, 2}) {
          diagonals::CudaCoreConfig config;
          config.tile = {width, height, 32 / width > 4 ? 32 / width : 1, many};
          if (config.tile.threads() > diagonals::most_threads || config.tile.threads() % 32 != 0) continue;
          EXPECT_TRUE(same_bits(multiply(*build_with(a, config), {}, x, y), expected))
            << a.name << ", " << width << " x " << height;
        }
  }
}

TEST_P(GpuDiagonals, TuningChoicesOutOfRangeAreRefused) {
  for (const diagonals::Tile &tile : {diagonals::Tile{33, 1, 1, 1}, {1024, 1, 1, 1}, {32, 1, 1, 3}, {-32, -1, 1, 1}}) {
    diagonals::CudaCoreConfig config;
    config.tile = tile;
    EXPECT_THROW(build_with(uniform(5, 5, 1), config), Error);
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuDiagonals, testing::Values(find_kernel("spmv/diagonals/cuda_core")), test_name);

#endif

} // namespace
