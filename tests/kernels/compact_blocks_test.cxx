// spmv/compact/cuda_core on matrices whose unknowns live on grids of different sizes: from line to line the same values stand at other
// distances, and lines are no multiples of slices.
#include <array>

#include "spmv/compact/cuda_core_tuning.h"
#include "spmv_fixture.h"
#include "structured_matrices.h"

#ifdef TCBOUND_HAVE_CUDA

namespace {

using namespace tcbound;
using namespace tcbound::test;

// The saddle-point matrix [D B'; B 0] of faces and cells: nx + 1 faces and nx cells in each of ny lines. A cell's row has the two
// faces at its sides in its own line and the lines before and after it. value(line, which of the six) is what they are.
template <class Value> Csr saddle_point(std::int64_t nx, std::int64_t ny, const std::string &what, Value &&value) {
  const std::int64_t faces = (nx + 1) * ny;
  Csr                a;
  a.name = std::to_string(nx) + "x" + std::to_string(ny) + " cells, " + what;
  a.rows = a.columns_count = faces + nx * ny;
  const auto add = [&](std::int64_t column, double v) {
    a.columns.push_back(column);
    a.values.push_back(v);
  };
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const bool         face = row < faces;
    const std::int64_t in = face ? row : row - faces, width = face ? nx + 1 : nx, x = in % width, y = in / width;
    if (face) add(row, 4.0);
    for (int line = -1; line <= 1; ++line) {
      if (y + line < 0 || y + line >= ny) continue;
      for (int side = 0; side < 2; ++side) {
        const int which = 2 * (line + 1) + side;
        if (!face) add((nx + 1) * (y + line) + x + side, value(y, which));
        if (face && x - 1 + side >= 0 && x - 1 + side < nx) add(faces + nx * (y + line) + x - 1 + side, value(y, which));
      }
    }
    a.offsets.push_back(a.nonzeros());
  }
  return a;
}

double of_place(std::int64_t, int which) { return 1.5 + which; }
double of_line(std::int64_t line, int which) { return 1.5 + which + (line % 3 == 1 ? 0.25 : 0.0); }
double of_many_lines(std::int64_t line, int which) { return 1.5 + which + 0.125 * static_cast<double>(line % 31); }

class GpuCompactBlocks : public Spmv {
protected:
  void expect_all(const Csr &a, Format &format) {
    SCOPED_TRACE(a.name);
    expect_same_csr(compact::recover_cuda_core(executor(), format), a);
    for (const bool transpose : {false, true}) {
      expect_product(a, format, {transpose, 1.0, 0.0, false, false});
      expect_product(a, format, {transpose, -0.5, 2.0, true, true});
    }
  }
};

TEST_P(GpuCompactBlocks, LinesOfAllLengths) {
  for (const std::int64_t nx : {1, 5, 24, 39, 63, 64, 65, 80, 100, 129, 200})
    for (const auto &value : {of_place, of_line, of_many_lines}) {
      const Csr    a = saddle_point(nx, 70, "", value);
      const Stored stored(a);
      const auto   format = compact::build_cuda_core(executor(), stored.problem().csr, {});
      expect_all(a, *format);
    }
}

// Every line has patterns of its own; all but the first few find their values among the hot segments. Where two lines meet in a slice, it
// is two.
TEST_P(GpuCompactBlocks, PatternsShareHotValues) {
  const Csr    a = saddle_point(80, 150, "the same values", of_place);
  const Stored stored(a);
  const auto   format = compact::build_cuda_core(executor(), stored.problem().csr, {});
  EXPECT_GT(compact::census_of(*format).patterns, 300);
  EXPECT_GT(compact::patterns_with_hot_values(executor(), *format), 290);
  EXPECT_LT(20 * compact::census_of(*format).exceptions, a.rows);
  EXPECT_EQ(compact::census_of(*format).remainder_rows, 0);
  EXPECT_GT(compact::census_of(*format).constant_rows, a.rows * 9 / 10);
}

// 31 kinds of lines have too many segments for all to be hot.
TEST_P(GpuCompactBlocks, MoreValuesThanAreHot) {
  const Csr    a = saddle_point(80, 155, "many values", of_many_lines);
  const Stored stored(a);
  const auto   format = compact::build_cuda_core(executor(), stored.problem().csr, {});
  const auto   hot = compact::patterns_with_hot_values(executor(), *format);
  EXPECT_GT(hot, 50);
  EXPECT_LT(hot, compact::census_of(*format).patterns - 100);
  expect_all(a, *format);
}

// New values may part patterns that shared theirs, or bring them together, while the rows of each pattern stay together.
TEST_P(GpuCompactBlocks, Refill) {
  const Csr a = saddle_point(80, 150, "the same values", of_place), b = saddle_point(80, 150, "of every third line", of_line),
            c = saddle_point(80, 150, "many values", of_many_lines);
  const Stored from_a(a), from_b(b), from_c(c);
  const auto   format = compact::build_cuda_core(executor(), from_a.problem().csr, {});
  const auto   refill = [&](const Csr &to, const Stored &from) {
    format->refill(executor(), from.problem().csr.values, MemorySpace::host);
    EXPECT_GT(compact::census_of(*format).constant_rows, to.rows * 9 / 10);
    expect_all(to, *format);
    return compact::patterns_with_hot_values(executor(), *format);
  };
  const std::int64_t all = compact::patterns_with_hot_values(executor(), *format);
  EXPECT_GT(refill(b, from_b), all * 9 / 10);
  EXPECT_LT(refill(c, from_c), all);
  EXPECT_EQ(refill(a, from_a), all);
}

TEST_P(GpuCompactBlocks, SameBitsInEveryRun) {
  const Csr                 a = saddle_point(80, 150, "of every third line", of_line);
  const Stored              stored(a);
  const std::vector<double> x = random_vector(a.rows, 5);
  const Call                call{false, 1.0, 0.0, false, false};
  const auto                format = compact::build_cuda_core(executor(), stored.problem().csr, {});
  std::vector<double>       expected(static_cast<std::size_t>(a.rows));
  for (std::size_t i = 0; i < expected.size(); ++i)
    for (auto k = static_cast<std::size_t>(a.offsets[i]); k < static_cast<std::size_t>(a.offsets[i + 1]); ++k)
      expected[i] = std::fma(a.values[k], x[static_cast<std::size_t>(a.columns[k])], expected[i]);
  for (int run = 0; run < 20; ++run) ASSERT_TRUE(same_bits(multiply(*format, call, x, x), expected));
}

// NaN and infinity reach exactly the rows that have the entry.
TEST_P(GpuCompactBlocks, NotFiniteVectors) {
  const Csr           a = saddle_point(80, 100, "the same values", of_place);
  const Stored        stored(a);
  std::vector<double> x = random_vector(a.rows, 6);
  for (std::size_t i = 0; i < x.size(); i += 81) x[i] = i % 2 ? nan_value : infinity;
  const auto format = compact::build_cuda_core(executor(), stored.problem().csr, {});
  expect_near(multiply(*format, {false, 1.0, 0.0, false, false}, x, x), reference(a, false, 1.0, 0.0, x, x));
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuCompactBlocks, testing::Values(find_kernel("spmv/compact/cuda_core")),
                         [](const testing::TestParamInfo<const Kernel *> &) { return std::string("cuda_core"); });

} // namespace

#endif
