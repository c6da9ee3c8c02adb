#pragma once

// Matrices for benchmarks, generated in memory: columns sorted within a row, no duplicates, reproducible from a seed.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "problem.h"

namespace tcbound::bench {

struct Matrix {
  std::string               name;
  std::int64_t              rows = 0, columns_count = 0;
  std::vector<std::int32_t> offsets, columns;
  std::vector<double>       values;

  std::int64_t nonzeros() const { return static_cast<std::int64_t>(columns.size()); }

  CsrView view() const {
    CsrView view;
    view.rows = rows;
    view.columns_count = columns_count;
    view.nonzeros = nonzeros();
    view.row_offsets = {offsets.data(), 4};
    view.columns = {columns.data(), 4};
    view.values = values.data();
    return view;
  }
};

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014): one multiply-xorshift chain a number,
// and the same numbers on every standard library.
class Random {
public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(n)); }
  double       uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; } // in [0, 1)

private:
  std::uint64_t state_;
};

inline std::vector<double> random_vector(std::int64_t size, std::uint64_t seed) {
  Random              random(seed);
  std::vector<double> x(static_cast<std::size_t>(size));
  for (double &value : x) value = 2.0 * random.uniform() - 1.0;
  return x;
}

namespace detail {

inline void reserve(Matrix &a, std::int64_t rows, std::int64_t columns, double entries) {
  if (entries > 2147483647.0) throw std::invalid_argument(a.name + " would have 2^31 entries or more");
  a.rows = rows;
  a.columns_count = columns;
  a.offsets.reserve(static_cast<std::size_t>(rows) + 1);
  a.columns.reserve(static_cast<std::size_t>(entries));
  a.values.reserve(static_cast<std::size_t>(entries));
  a.offsets.push_back(0);
}

inline void end_row(Matrix &a) { a.offsets.push_back(static_cast<std::int32_t>(a.columns.size())); }

// Cells of the 3 x 3 x 3 neighbourhood of a cell of an n^3 grid, in the order of their numbers; star: the 7 on the axes.
template <class F> void for_neighbours(std::int64_t n, std::int64_t i, std::int64_t j, std::int64_t k, bool star, F &&f) {
  for (std::int64_t c = std::max<std::int64_t>(k - 1, 0); c <= std::min(k + 1, n - 1); ++c)
    for (std::int64_t b = std::max<std::int64_t>(j - 1, 0); b <= std::min(j + 1, n - 1); ++b)
      for (std::int64_t a = std::max<std::int64_t>(i - 1, 0); a <= std::min(i + 1, n - 1); ++a) {
        if (star && std::abs(a - i) + std::abs(b - j) + std::abs(c - k) > 1) continue;
        f((c * n + b) * n + a);
      }
}

template <class F> void for_cells(std::int64_t n, F &&f) {
  for (std::int64_t k = 0; k < n; ++k)
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < n; ++i) f(i, j, k);
}

} // namespace detail

// Poisson's equation on an n^3 grid with the 7- or the 27-point stencil, Dirichlet boundary: points - 1 on the diagonal, else
// -1.
inline Matrix poisson(std::int64_t n, int points) {
  Matrix a;
  a.name = "poisson" + std::to_string(points) + "-" + std::to_string(n);
  detail::reserve(a, n * n * n, n * n * n, static_cast<double>(points * n * n * n));
  detail::for_cells(n, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
    const std::int64_t cell = (k * n + j) * n + i;
    detail::for_neighbours(n, i, j, k, points == 7, [&](std::int64_t other) {
      a.columns.push_back(static_cast<std::int32_t>(other));
      a.values.push_back(other == cell ? points - 1.0 : -1.0);
    });
    detail::end_row(a);
  });
  return a;
}

// Like displacements on an n^3 mesh of trilinear bricks: each node couples to its 27 neighbours with a full 3 x 3 block of
// random values.
inline Matrix elasticity(std::int64_t n) {
  Matrix a;
  Random random(3);
  a.name = "elasticity-" + std::to_string(n);
  detail::reserve(a, 3 * n * n * n, 3 * n * n * n, static_cast<double>(243 * n * n * n));
  detail::for_cells(n, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
    for (int component = 0; component < 3; ++component) {
      detail::for_neighbours(n, i, j, k, false, [&](std::int64_t other) {
        for (int c = 0; c < 3; ++c) {
          a.columns.push_back(static_cast<std::int32_t>(3 * other + c));
          a.values.push_back(2.0 * random.uniform() - 1.0);
        }
      });
      detail::end_row(a);
    }
  });
  return a;
}

// 3 to 22 entries a row at random columns.
inline Matrix random_rows(std::int64_t n) {
  Matrix                    a;
  Random                    random(5);
  std::vector<std::int32_t> row;
  a.name = "random-" + std::to_string(n);
  detail::reserve(a, n, n, 12.6 * static_cast<double>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    row.resize(static_cast<std::size_t>(3 + random.below(20)));
    for (std::int32_t &column : row) column = static_cast<std::int32_t>(random.below(n));
    std::sort(row.begin(), row.end());
    row.erase(std::unique(row.begin(), row.end()), row.end());
    for (const std::int32_t column : row) {
      a.columns.push_back(column);
      a.values.push_back(2.0 * random.uniform() - 1.0);
    }
    detail::end_row(a);
  }
  return a;
}

// The power-law graph of Graph500 (R-MAT, Chakrabarti, Zhan, Faloutsos 2004; 0.57, 0.19, 0.19, 0.05) with 2^scale rows and
// `degree` edges a row on average; an edge drawn more than once adds up to one entry.
inline Matrix rmat(int scale, int degree) {
  Matrix                     a;
  Random                     random(7);
  const std::int64_t         n = std::int64_t(1) << scale;
  std::vector<std::uint64_t> edges(static_cast<std::size_t>(n * degree));
  a.name = "rmat-" + std::to_string(scale);
  for (std::uint64_t &edge : edges) {
    std::uint64_t row = 0, column = 0;
    for (int level = 0; level < scale; ++level) {
      const double u = random.uniform();
      row = 2 * row + (u >= 0.76);
      column = 2 * column + ((u >= 0.57 && u < 0.76) || u >= 0.95);
    }
    edge = row << 32 | column;
  }
  std::sort(edges.begin(), edges.end());
  detail::reserve(a, n, n, static_cast<double>(edges.size()));
  std::size_t e = 0;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(n); ++i) {
    while (e < edges.size() && edges[e] >> 32 == i) {
      const std::size_t first = e;
      while (e < edges.size() && edges[e] == edges[first]) ++e;
      a.columns.push_back(static_cast<std::int32_t>(edges[first] & 0xffffffffU));
      a.values.push_back(static_cast<double>(e - first));
    }
    detail::end_row(a);
  }
  return a;
}

// The cases by name; n <= 0 takes the size that the measured facts use.
inline const std::vector<std::string> &case_names() {
  static const std::vector<std::string> names = {"poisson7", "poisson27", "random", "rmat", "elasticity"};
  return names;
}

inline Matrix make_case(const std::string &name, std::int64_t n) {
  if (name == "poisson7") return poisson(n > 0 ? n : 256, 7);
  if (name == "poisson27") return poisson(n > 0 ? n : 160, 27);
  if (name == "random") return random_rows(n > 0 ? n : 1500000);
  if (name == "rmat") return rmat(static_cast<int>(n > 0 ? n : 20), 16);
  if (name == "elasticity") return elasticity(n > 0 ? n : 45);
  throw std::invalid_argument("there is no case " + name);
}

} // namespace tcbound::bench
