// The generators of the benchmark: figures that the SuiteSparse collection lists for the same matrices, and what every rule
// promises.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "cases.h"
#include "rules.h"

namespace tcbound::bench {
namespace {

std::int64_t length(const Matrix &a, std::int64_t i) { return a.offsets[i + 1] - a.offsets[i]; }

const double *find(const Matrix &a, std::int64_t i, std::int64_t j) {
  const auto begin = a.columns.begin() + a.offsets[i], end = a.columns.begin() + a.offsets[i + 1];
  const auto at = std::lower_bound(begin, end, j);
  return at != end && *at == j ? &a.values[at - a.columns.begin()] : nullptr;
}

// What a collection says of a matrix.
struct Facts {
  std::int64_t rows = 0, nonzeros = 0, diagonal = 0, lower = 0, upper = 0, shortest = 0, longest = 0;
  double       pattern_symmetry = 0.0, numeric_symmetry = 0.0; // share of the off-diagonal entries with a partner, an equal one
};

Facts facts_of(const Matrix &a) {
  Facts        f;
  std::int64_t matched = 0, equal = 0;
  f.rows = a.rows;
  f.nonzeros = a.nonzeros();
  f.shortest = a.columns_count;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    f.shortest = std::min(f.shortest, length(a, i));
    f.longest = std::max(f.longest, length(a, i));
    for (std::int64_t k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      const std::int64_t j = a.columns[k];
      f.lower = std::max(f.lower, i - j);
      f.upper = std::max(f.upper, j - i);
      f.diagonal += i == j;
      if (i == j || a.rows != a.columns_count) continue;
      const double *partner = find(a, j, i);
      matched += partner != nullptr;
      equal += partner && *partner == a.values[k];
    }
  }
  const double off = static_cast<double>(std::max<std::int64_t>(f.nonzeros - f.diagonal, 1));
  f.pattern_symmetry = static_cast<double>(matched) / off;
  f.numeric_symmetry = static_cast<double>(equal) / off;
  return f;
}

void expect_valid(const Matrix &a) {
  ASSERT_EQ(static_cast<std::int64_t>(a.offsets.size()), a.rows + 1);
  ASSERT_EQ(a.offsets[0], 0);
  ASSERT_EQ(a.offsets[a.rows], a.nonzeros());
  ASSERT_EQ(a.columns.size(), a.values.size());
  for (std::int64_t i = 0; i < a.rows; ++i) {
    ASSERT_LE(a.offsets[i], a.offsets[i + 1]);
    for (std::int64_t k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      ASSERT_GE(a.columns[k], 0);
      ASSERT_LT(a.columns[k], a.columns_count);
      ASSERT_TRUE(k == a.offsets[i] || a.columns[k - 1] < a.columns[k]) << a.name << ", row " << i;
      ASSERT_TRUE(std::isfinite(a.values[k]));
    }
  }
}

// The collection's figures (SuiteSparse index: rows, nonzeros, diagonal entries, bandwidths, pattern symmetry).
void expect_facts(const Matrix &a, const Facts &listed) {
  const Facts f = facts_of(a);
  EXPECT_EQ(f.rows, listed.rows);
  EXPECT_EQ(f.nonzeros, listed.nonzeros);
  EXPECT_EQ(f.diagonal, listed.diagonal);
  EXPECT_EQ(f.lower, listed.lower);
  EXPECT_EQ(f.upper, listed.upper);
  EXPECT_NEAR(f.pattern_symmetry, listed.pattern_symmetry, 5e-4);
}

TEST(BenchMatrices, Mc2depiIsThatOfTheCollection) {
  const Matrix a = epidemic(1025, 256, "mc2depi");
  expect_valid(a);
  expect_facts(a, {525825, 2100225, 525825, 513, 257, 0, 0, 0.0, 0.0});
  for (const double value : a.values) ASSERT_TRUE(value == std::floor(value) && value >= -3559 && value <= 2025);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    double sum = 0.0;
    for (std::int64_t k = a.offsets[i]; k < a.offsets[i + 1]; ++k) sum += a.values[k];
    ASSERT_EQ(sum, 0.0);
  }
}

TEST(BenchMatrices, NlpkktHasTheCountsOfTheCollection) {
  const Matrix a = nlpkkt(80, "nlpkkt80");
  EXPECT_EQ(a.rows, 1062400);
  EXPECT_EQ(a.nonzeros(), 28192672);
  const Facts f = facts_of(nlpkkt(9, "nlpkkt"));
  const auto  n = 9, primal = n * n * (n + 6);
  EXPECT_EQ(f.diagonal, primal);
  EXPECT_EQ(f.lower, primal + n + 1); // 550,481 for nlpkkt80
  EXPECT_EQ(f.upper, f.lower);
  EXPECT_EQ(f.pattern_symmetry, 1.0);
  EXPECT_EQ(f.numeric_symmetry, 1.0);
}

TEST(BenchMatrices, WilsonDiracIsThatOfTheCollection) {
  const Matrix a = wilson_dirac(8, "conf5_4-8x8-05"), b = wilson_dirac(4, "conf5_0-4x4-10");
  expect_facts(a, {49152, 1916928, 0, 43010, 43010, 0, 0, 0.923, 0.0});
  expect_facts(b, {3072, 119808, 0, 2306, 2306, 0, 0, 0.923, 0.0});
  const Facts f = facts_of(a);
  EXPECT_EQ(f.shortest, 39);
  EXPECT_EQ(f.longest, 39);
}

TEST(BenchMatrices, Ecology1IsThatOfTheCollection) {
  const Matrix a = ecology(1000, "ecology1");
  expect_facts(a, {1000000, 4996000, 1000000, 1000, 1000, 0, 0, 1.0, 0.0});
  for (const double value : a.values) ASSERT_TRUE(value >= -10.0 && value <= 40.0);
}

TEST(BenchMatrices, RowsInsideAndAtTheBoundary) {
  struct Expected {
    Matrix       matrix;
    std::int64_t nonzeros, shortest, longest;
  };
  const auto     cube = [](std::int64_t k) { return k * k * k; };
  const Expected all[] = {
    {poisson(9, 7, false, "7"), 7 * cube(9) - 6 * 81, 4, 7},
    {poisson(9, 27, true, "27"), cube(3 * 9 - 2), 8, 27},
    {q2_vertices(9, "125"), cube(5 * 9 - 6), 27, 125},
    {elasticity(9, "81"), 9 * cube(3 * 9 - 2), 24, 81},
    {reaction(9, 4, "108"), 16 * cube(3 * 9 - 2), 32, 108},
    {anisotropic(9, "9"), (3 * 9 - 2) * (3 * 9 - 2), 4, 9},
    {tetrahedra(9, Numbering::shuffled, "15"), cube(9) + 2 * (3 * 8 * 81 + 3 * 64 * 9 + cube(8)), 5, 15},
    {arrowhead(500, "arrow"), 3 * 500 - 2, 2, 500},
  };
  for (const Expected &one : all) {
    const Facts f = facts_of(one.matrix);
    expect_valid(one.matrix);
    EXPECT_EQ(f.nonzeros, one.nonzeros) << one.matrix.name;
    EXPECT_EQ(f.shortest, one.shortest) << one.matrix.name;
    EXPECT_EQ(f.longest, one.longest) << one.matrix.name;
    EXPECT_EQ(f.numeric_symmetry, 1.0) << one.matrix.name;
  }
}

TEST(BenchMatrices, PoissonHasItsStencil) {
  const Matrix a = poisson(5, 27, false, "27");
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = a.offsets[i]; k < a.offsets[i + 1]; ++k) ASSERT_EQ(a.values[k], a.columns[k] == i ? 26.0 : -1.0);
}

// No strain energy in a translation or a rotation, away from the springs on one face.
TEST(BenchMatrices, ElasticityLeavesRigidMotionsAlone) {
  const std::int64_t n = 5;
  const Matrix       a = elasticity(n, "elasticity");
  for (int motion = 0; motion < 4; ++motion) {
    const auto displacement = [&](std::int64_t j) {
      const std::int64_t node = j / 3, c = j % 3;
      if (motion < 3) return c == motion ? 1.0 : 0.0;
      return c == 0 ? -static_cast<double>(node / n % n) : c == 1 ? static_cast<double>(node % n) : 0.0;
    };
    for (std::int64_t i = 0; i < a.rows; ++i) {
      if (i / 3 % n == 0) continue;
      double sum = 0.0;
      for (std::int64_t k = a.offsets[i]; k < a.offsets[i + 1]; ++k) sum += a.values[k] * displacement(a.columns[k]);
      ASSERT_NEAR(sum, 0.0, 1e-12);
    }
  }
}

TEST(BenchMatrices, TetrahedraInAnyNumberingAreTheSameMatrix) {
  const Matrix a = tetrahedra(8, Numbering::shuffled, "shuffled"), b = tetrahedra(8, Numbering::reverse_cuthill_mckee, "rcm");
  const Facts  fa = facts_of(a), fb = facts_of(b);
  std::vector<double> va(a.values.begin(), a.values.end()), vb(b.values.begin(), b.values.end());
  std::sort(va.begin(), va.end());
  std::sort(vb.begin(), vb.end());
  ASSERT_EQ(va.size(), vb.size());
  for (std::size_t k = 0; k < va.size(); ++k) ASSERT_NEAR(va[k], vb[k], 1e-12); // a diagonal is summed in another order
  EXPECT_LT(3 * fb.lower, fa.lower);
  EXPECT_EQ(fb.pattern_symmetry, 1.0);
}

TEST(BenchMatrices, RmatIsSkewedAndHasAllItsEdges) {
  const Matrix a = rmat(10, 16, "rmat");
  double       edges = 0.0;
  for (const double value : a.values) edges += value;
  expect_valid(a);
  EXPECT_EQ(edges, 16.0 * 1024);
  EXPECT_GT(facts_of(a).longest, 100);
}

TEST(BenchMatrices, RowLengthsOfTheRandomOnes) {
  const Matrix uniform = uniform_rows(20000, "uniform"), streets = roads(2, "roads"),
               band = banded_with_empty_rows(20000, "band");
  const Facts u = facts_of(uniform), r = facts_of(streets);
  EXPECT_GE(u.shortest, 3);
  EXPECT_EQ(u.longest, 22);
  EXPECT_NEAR(static_cast<double>(u.nonzeros) / 20000, 12.5, 0.1);
  EXPECT_NEAR(static_cast<double>(r.nonzeros) / static_cast<double>(r.rows), 2.8, 0.1);
  EXPECT_EQ(r.numeric_symmetry, 1.0);
  EXPECT_EQ(r.diagonal, 0);
  std::int64_t empty = 0;
  for (std::int64_t i = 0; i < band.rows; ++i) empty += length(band, i) == 0;
  EXPECT_NEAR(static_cast<double>(empty), 200.0, 50.0);
}

TEST(BenchMatrices, CircuitHasTwoDenseRowsAndColumns) {
  const Matrix              a = circuit(12, "circuit");
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < a.rows; ++i) lengths.push_back(length(a, i));
  std::sort(lengths.begin(), lengths.end());
  EXPECT_NEAR(static_cast<double>(lengths.end()[-2]), 410.0, 60.0); // a tenth of 4096
  EXPECT_LT(lengths.end()[-3], 30);
  EXPECT_EQ(facts_of(a).numeric_symmetry, 1.0); // so columns too
}

TEST(BenchMatrices, TheTransposeOfATransposeIsTheMatrix) {
  const Matrix a = crews(500, 90, "crews"), t = transpose(a, "t"), b = transpose(t, "b");
  expect_valid(t);
  EXPECT_EQ(t.rows, 90);
  EXPECT_TRUE(a.offsets == b.offsets && a.columns == b.columns && a.values == b.values);
}

TEST(BenchMatrices, EveryCaseIsValidAndTheSameEachTime) {
  std::set<std::string> names;
  for (const MatrixCase &one : matrix_cases()) {
    const Matrix a = one.make(true), b = one.make(true);
    expect_valid(a);
    EXPECT_EQ(a.name, one.name);
    EXPECT_TRUE(names.insert(one.name).second) << one.name << " is there twice";
    EXPECT_TRUE(a.offsets == b.offsets && a.columns == b.columns && a.values == b.values) << one.name;
    EXPECT_TRUE(!one.definite || facts_of(a).numeric_symmetry == 1.0) << one.name;
    for (std::int64_t i = 0; one.block > 1 && i < a.rows; ++i) {
      ASSERT_EQ(length(a, i), length(a, i / one.block * one.block));
      for (std::int64_t k = a.offsets[i]; k < a.offsets[i + 1]; ++k)
        ASSERT_EQ((a.columns[k] - (k - a.offsets[i])) % one.block, 0) << one.name;
    }
  }
}

TEST(BenchMatrices, AnUnknownCaseNamesTheValidOnes) {
  for (const MatrixCase &one : find_cases({})) EXPECT_FALSE(one.on_demand) << one.name;
  EXPECT_EQ(find_cases({"rmat-20"}).size(), 1U);
  EXPECT_LT(find_cases({}).size(), matrix_cases().size());
  EXPECT_EQ(find_cases({"mc2depi", "roads"})[1].name, "roads");
  try {
    find_cases({"poisson"});
    FAIL();
  } catch (const std::invalid_argument &error) {
    EXPECT_NE(std::string(error.what()).find("poisson; the cases are poisson7-64, "), std::string::npos);
  }
}

} // namespace
} // namespace tcbound::bench
