// spmv/compact/cuda_core on grids: columns of slices, partial rows, exceptions, and the CSR back from them.
#include <cmath>

#include "spmv/compact/cuda_core_tuning.h"
#include "spmv_fixture.h"
#include "structured_matrices.h"

#ifdef TCBOUND_HAVE_CUDA

namespace {

using namespace tcbound;
using namespace tcbound::test;

struct Grid {
  std::int64_t nx, ny, nz;
  bool         star;
};

std::string name_of(const Grid &g) {
  return std::to_string(g.nx) + "x" + std::to_string(g.ny) + "x" + std::to_string(g.nz) + (g.star ? " star" : " full");
}

// A stencil whose values belong to directions, so that a boundary row has a part of an inner row's entries. keep(row, direction)
// says which entries a row has, value(row, direction) what they are.
template <class Keep, class Value> Csr grid_matrix(const Grid &g, const std::string &what, Keep &&keep, Value &&value) {
  Csr a;
  a.name = name_of(g) + ", " + what;
  a.rows = a.columns_count = g.nx * g.ny * g.nz;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const std::int64_t i = row % g.nx, j = row / g.nx % g.ny, k = row / (g.nx * g.ny);
    for (int direction = 0; direction < 27; ++direction) {
      const int di = direction % 3 - 1, dj = direction / 3 % 3 - 1, dk = direction / 9 - 1;
      if (g.star && std::abs(di) + std::abs(dj) + std::abs(dk) > 1) continue;
      if (i + di < 0 || i + di >= g.nx || j + dj < 0 || j + dj >= g.ny || k + dk < 0 || k + dk >= g.nz) continue;
      if (!keep(row, direction)) continue;
      a.columns.push_back(row + (dk * g.ny + dj) * g.nx + di);
      a.values.push_back(value(row, direction));
    }
    a.offsets.push_back(a.nonzeros());
  }
  return a;
}

double coefficient(int direction) { return direction == 13 ? 26.5 : -1.0 - 0.03125 * direction; }
bool   all(std::int64_t, int) { return true; }
double constant(std::int64_t, int direction) { return coefficient(direction); }

// Entries missing here and there, as a hash of the place decides.
bool with_holes(std::int64_t row, int direction) {
  const std::uint64_t h = static_cast<std::uint64_t>(27 * row + direction) * 0x9e3779b97f4a7c15U;
  return direction == 13 || h >> 56 > 6;
}
double variable(std::int64_t row, int direction) { return std::sin(static_cast<double>(27 * row + direction)); }
// Another material in one corner of the grid, and rows of their own now and then.
double materials(std::int64_t row, int direction) {
  return coefficient(direction) * (row % 96 > 40 ? 1.0 : 3.0) + (row % 997 == 5 ? 0.1 * static_cast<double>(row) : 0.0);
}

// A row of its own now and then.
double few_odd(std::int64_t row, int direction) {
  return coefficient(direction) + (row % 499 == 7 && direction == 13 ? 1.0 : 0.0);
}

const std::vector<Grid> grids = {{64, 8, 9, false},   {64, 8, 9, true},    {33, 40, 20, false}, {33, 40, 20, true},
                                 {65, 17, 30, false}, {96, 12, 12, true},  {130, 6, 25, false}, {130, 6, 25, true},
                                 {37, 5, 40, false},  {128, 9, 33, true},  {200, 40, 1, false}, {200, 40, 1, true},
                                 {64, 30, 1, true},   {257, 33, 1, false}, {257, 33, 1, true},  {1000, 12, 1, false}};

class GpuCompact : public Spmv {
protected:
  void expect_recovery(const Csr &a, const Format &format) {
    expect_same_csr(compact::recover_cuda_core(executor(), format), a);
  }

  // levels 0: marched through where that may be.
  static compact::BuildChoices choices_of(int levels) { return {true, levels, levels == 0}; }

  void expect_all(const Csr &a, int levels) {
    SCOPED_TRACE(a.name + ", levels " + std::to_string(levels));
    const Stored           stored(a);
    const auto             format = compact::build_cuda_core(executor(), stored.problem().csr, choices_of(levels));
    const compact::Census &census = compact::census_of(*format);
    EXPECT_EQ(census.constant_rows + census.explicit_rows + census.partial_rows + census.exceptions + census.remainder_rows,
              a.rows);
    expect_recovery(a, *format);
    for (const bool transpose : {false, true}) {
      expect_product(a, *format, {transpose, 1.0, 0.0, false, false});
      expect_product(a, *format, {transpose, -0.5, 2.0, true, true});
    }
  }
};

TEST_P(GpuCompact, Grids) {
  for (const Grid &g : grids)
    for (const int levels : {0, 1, 4, 16}) {
      expect_all(grid_matrix(g, "constant", all, constant), levels);
      expect_all(grid_matrix(g, "with holes", with_holes, constant), levels);
    }
}

TEST_P(GpuCompact, GridsOfOtherCoefficients) {
  for (const Grid &g : grids) {
    for (const int levels : {0, 5}) {
      expect_all(grid_matrix(g, "variable", all, variable), levels);
      expect_all(grid_matrix(g, "variable with holes", with_holes, variable), levels);
      expect_all(grid_matrix(g, "materials", all, materials), levels);
      expect_all(grid_matrix(g, "few odd rows", all, few_odd), levels);
    }
  }
}

TEST_P(GpuCompact, GridsComeInColumns) {
  for (const Grid &g : grids) {
    const Csr    a = grid_matrix(g, "constant", all, constant);
    const Stored stored(a);
    SCOPED_TRACE(a.name);
    const auto columns = compact::build_cuda_core(executor(), stored.problem().csr, choices_of(8));
    EXPECT_GT(64 * compact::slices_in_columns(*columns), a.rows / 5);
    const auto none = compact::build_cuda_core(executor(), stored.problem().csr, choices_of(1));
    EXPECT_EQ(compact::slices_in_columns(*none), 0);
    EXPECT_EQ(compact::census_of(*none).remainder_rows, 0);
  }
}

// Samples of a matrix tell whether there is anything to find, whatever the widths of indices.
TEST_P(GpuCompact, SuitsWhatRepeatsPatterns) {
  const Grid grid = {40, 33, 20, false};
  Csr        empty = uniform(1000, 1000, 0), hardly = irregular(20000, 20000, 30);
  hardly.name = "irregular, mostly empty rows";
  for (std::int64_t row = 0; row < hardly.rows; ++row) // one row has what was that of eight
    if (row % 8 != 0) hardly.offsets[static_cast<std::size_t>(row)] = hardly.offsets[static_cast<std::size_t>(row / 8 * 8 + 8)];
  Csr in_turn;
  in_turn.name = "three patterns in turn";
  in_turn.rows = 20000;
  in_turn.columns_count = 20003;
  for (std::int64_t row = 0; row < in_turn.rows; ++row) {
    for (const std::int64_t distance : {std::int64_t(0), 1 + row % 3}) in_turn.columns.push_back(row + distance);
    in_turn.values.insert(in_turn.values.end(), 2, 1.0);
    in_turn.offsets.push_back(in_turn.nonzeros());
  }
  struct {
    Csr  matrix;
    bool suits;
  } const cases[] = {{grid_matrix(grid, "constant", all, constant), true},
                     {grid_matrix(grid, "variable", all, variable), true},
                     {grid_matrix(grid, "with holes", with_holes, variable), true},
                     {irregular(20000, 20000, 30), false},
                     {in_turn, false},
                     {hardly, false},
                     {empty, true},
                     {uniform(0, 5, 0), true}};
  for (const auto &one : cases)
    for (const int offset_bytes : {4, 8})
      for (const int index_bytes : {4, 8}) {
        Stored stored(one.matrix, offset_bytes, index_bytes);
        EXPECT_EQ(kernel().suits(executor(), stored.on(executor())), one.suits)
          << one.matrix.name << ", " << offset_bytes << " and " << index_bytes << " bytes";
      }
}

TEST_P(GpuCompact, GridsAreMarchedThrough) {
  for (const Grid &g : grids) {
    const Csr    a = grid_matrix(g, "constant", all, constant), odd = grid_matrix(g, "few odd rows", all, few_odd);
    const Stored stored(a), stored_odd(odd);
    SCOPED_TRACE(a.name);
    const auto format = compact::build_cuda_core(executor(), stored.problem().csr, {});
    EXPECT_EQ(compact::marched_rows(*format), a.rows);
    EXPECT_EQ(compact::census_of(*format).bytes, 0) << "a march reads the vectors only";
    const auto mostly = compact::build_cuda_core(executor(), stored_odd.problem().csr, {});
    EXPECT_EQ(compact::marched_rows(*mostly), a.rows - (a.rows - 8) / 499 - 1);
    const auto none = compact::build_cuda_core(executor(), stored.problem().csr, {true, 0, false});
    EXPECT_EQ(compact::marched_rows(*none), 0);
  }
}

// A piece of a grid that begins and ends within planes is no box.
TEST_P(GpuCompact, PieceOfAGrid) {
  const Csr whole = grid_matrix({64, 20, 30, false}, "constant", all, constant);
  for (const std::int64_t begin : {0, 64, 777}) {
    const std::int64_t end = whole.rows - 1500;
    Csr                a;
    a.name = "from row " + std::to_string(begin);
    a.rows = a.columns_count = end - begin;
    for (std::int64_t row = begin; row < end; ++row) {
      for (auto k = static_cast<std::size_t>(whole.offsets[static_cast<std::size_t>(row)]);
           k < static_cast<std::size_t>(whole.offsets[static_cast<std::size_t>(row + 1)]); ++k) {
        if (whole.columns[k] < begin || whole.columns[k] >= end) continue;
        a.columns.push_back(static_cast<std::int32_t>(whole.columns[k] - begin));
        a.values.push_back(whole.values[k]);
      }
      a.offsets.push_back(a.nonzeros());
    }
    expect_all(a, 0);
  }
}

// The masks of the first rows that lack entries take all places for masks, so that the empty row after them is an exception.
TEST_P(GpuCompact, EmptyRowAsAnException) {
  for (const bool last : {false, true}) {
    Csr a;
    a.name = last ? "an empty row last" : "an empty row in the middle";
    a.rows = 64;
    a.columns_count = 70;
    for (std::int64_t row = 0; row < a.rows; ++row) {
      for (std::int64_t k = 0; k < 6; ++k) {
        if (row == (last ? 63 : 30) || (row % 4 == 1 && row < 17 && k == row / 4)) continue;
        a.columns.push_back(row + k);
        a.values.push_back(coefficient(static_cast<int>(k)));
      }
      a.offsets.push_back(a.nonzeros());
    }
    const Stored stored(a);
    const auto   format = compact::build_cuda_core(executor(), stored.problem().csr, {true, 1});
    EXPECT_EQ(compact::census_of(*format).partial_rows, 4);
    EXPECT_EQ(compact::census_of(*format).exceptions, 1);
    EXPECT_EQ(compact::census_of(*format).remainder_rows, 0);
    expect_all(a, 1);
  }
}

// One slice has a pattern; of the other, a quarter of the rows is empty and no two others have a pattern in common.
TEST_P(GpuCompact, EmptyRowsInTheRemainder) {
  Csr a;
  a.name = "a slice of row patterns and one without";
  a.rows = 128;
  a.columns_count = 200;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    for (std::int64_t k = 0; k < (row < 64 ? 3 : row % 4); ++k) {
      a.columns.push_back(row < 64 ? row + k : row * row % 97 + 30 * k);
      a.values.push_back(coefficient(static_cast<int>(k)));
    }
    a.offsets.push_back(a.nonzeros());
  }
  const Stored stored(a);
  const auto   format = compact::build_cuda_core(executor(), stored.problem().csr, {true, 1});
  EXPECT_EQ(compact::census_of(*format).constant_rows, 64);
  EXPECT_EQ(compact::census_of(*format).remainder_rows, 64);
  expect_all(a, 1);
}

// A row's result is the plain sum of its entries in order, whichever way it is stored: all ways agree bit for bit.
TEST_P(GpuCompact, SameBitsHoweverStored) {
  for (const Grid &g : grids) {
    const Csr    a = grid_matrix(g, "constant", all, constant);
    const Stored stored(a);
    SCOPED_TRACE(a.name);
    const std::vector<double> x = random_vector(a.rows, 3);
    const Call                call{false, 1.0, 0.0, false, false};
    std::vector<double>       expected(static_cast<std::size_t>(a.rows));
    for (std::size_t i = 0; i < expected.size(); ++i)
      for (auto k = static_cast<std::size_t>(a.offsets[i]); k < static_cast<std::size_t>(a.offsets[i + 1]); ++k)
        expected[i] = std::fma(a.values[k], x[static_cast<std::size_t>(a.columns[k])], expected[i]);
    for (const compact::BuildChoices &choices :
         {compact::BuildChoices{}, {true, 1, false}, {true, 4, false}, {true, 16, false}, {false, 1, false}}) {
      const auto format = compact::build_cuda_core(executor(), stored.problem().csr, choices);
      EXPECT_TRUE(same_bits(multiply(*format, call, x, x), expected)) << "levels " << choices.levels;
      for (int run = 0; run < 10; ++run) ASSERT_TRUE(same_bits(multiply(*format, call, x, x), expected));
    }
  }
}

// NaN and infinity reach exactly the rows that have the entry, also past the ends of lines and in columns.
TEST_P(GpuCompact, NotFiniteVectors) {
  for (const Grid &g : grids) {
    const Csr           a = grid_matrix(g, "constant", all, constant);
    const Stored        stored(a);
    std::vector<double> x = random_vector(a.rows, 4);
    for (std::int64_t row = 0; row < a.rows; row += g.nx) {
      if (row / g.nx % 3 == 0) x[static_cast<std::size_t>(row)] = nan_value;
      if (row / g.nx % 3 == 1) x[static_cast<std::size_t>(row + g.nx - 1)] = infinity;
    }
    SCOPED_TRACE(a.name);
    for (const int levels : {0, 1, 6}) {
      const auto format = compact::build_cuda_core(executor(), stored.problem().csr, choices_of(levels));
      const Call call{false, 1.0, 0.0, false, false};
      expect_near(multiply(*format, call, x, x), reference(a, false, 1.0, 0.0, x, x));
    }
  }
}

TEST_P(GpuCompact, NotFiniteCoefficients) {
  for (const double odd : {nan_value, infinity}) {
    const Csr                 a = grid_matrix({96, 12, 12, false}, "not finite", all,
                                              [&](std::int64_t, int direction) { return direction == 16 ? odd : coefficient(direction); });
    const Stored              stored(a);
    const auto                format = compact::build_cuda_core(executor(), stored.problem().csr, {true, 6});
    const std::vector<double> x(static_cast<std::size_t>(a.rows), 1.0);
    EXPECT_GT(compact::slices_in_columns(*format), 0);
    expect_near(multiply(*format, {false, 1.0, 0.0, false, false}, x, x), reference(a, false, 1.0, 0.0, x, x));
    expect_recovery(a, *format);
  }
}

// Constants may change together; the first that parts from the others costs the constant slices.
TEST_P(GpuCompact, Refill) {
  for (const Grid &g : {Grid{64, 8, 9, false}, Grid{130, 6, 25, true}, Grid{257, 33, 1, false}}) {
    const Csr a = grid_matrix(g, "constant", all, constant);
    Csr       scaled = a, parted = a;
    for (double &value : scaled.values) value *= 0.75;
    parted.values[parted.values.size() / 2] += 1.0;
    const Stored stored(a), stored_scaled(scaled), stored_parted(parted);
    const auto   format = compact::build_cuda_core(executor(), stored.problem().csr, choices_of(6));
    const auto   expect_refilled = [&](const Csr &b, const Stored &from) {
      SCOPED_TRACE(b.name);
      format->refill(executor(), from.problem().csr.values, MemorySpace::host);
      expect_recovery(b, *format);
      for (const bool transpose : {false, true}) expect_product(b, *format, {transpose, 1.0, 0.0, false, false});
    };
    expect_refilled(scaled, stored_scaled);
    EXPECT_GT(compact::census_of(*format).constant_rows, 0);
    EXPECT_GT(compact::slices_in_columns(*format), 0);
    expect_refilled(parted, stored_parted);
    EXPECT_EQ(compact::census_of(*format).constant_rows, 0);
    expect_refilled(a, stored);
    expect_refilled(scaled, stored_scaled);
  }
}

// Rows that no longer are the stencil's leave the march, and come back.
TEST_P(GpuCompact, RefillOfAMarch) {
  const Grid         g{64, 8, 9, true};
  const std::int64_t plane = g.nx * g.ny;
  const Csr          a = grid_matrix(g, "constant", all, constant);
  Csr                lowest = a, infinite = a;
  lowest.name += ", other values in the lowest plane";
  for (std::int64_t k = 0; k < a.offsets[static_cast<std::size_t>(plane)]; ++k)
    lowest.values[static_cast<std::size_t>(k)] *= 2.0;
  for (double &value : infinite.values)
    if (value == coefficient(13)) value = infinity;
  const Stored stored(a), stored_lowest(lowest), stored_infinite(infinite);
  const auto   format = compact::build_cuda_core(executor(), stored.problem().csr, {});
  const auto   expect_refilled = [&](const Csr &b, const Stored &from, std::int64_t marched) {
    SCOPED_TRACE(b.name);
    format->refill(executor(), from.problem().csr.values, MemorySpace::host);
    EXPECT_EQ(compact::marched_rows(*format), marched);
    expect_recovery(b, *format);
    if (marched == 0) { // not finite
      const std::vector<double> x(static_cast<std::size_t>(b.rows), 1.0);
      expect_near(multiply(*format, {false, 1.0, 0.0, false, false}, x, x), reference(b, false, 1.0, 0.0, x, x));
      return;
    }
    expect_product(b, *format, {false, 1.0, 0.0, false, false});
    expect_product(b, *format, {false, -0.5, 2.0, true, true});
  };
  EXPECT_EQ(compact::marched_rows(*format), a.rows);
  expect_refilled(lowest, stored_lowest, a.rows - plane);
  expect_refilled(infinite, stored_infinite, 0);
  expect_refilled(a, stored, a.rows);
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuCompact, testing::Values(find_kernel("spmv/compact/cuda_core")),
                         [](const testing::TestParamInfo<const Kernel *> &) { return std::string("cuda_core"); });

} // namespace

#endif
