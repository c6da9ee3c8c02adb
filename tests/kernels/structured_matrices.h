#pragma once

// Matrices whose rows repeat each other, and ways to spoil that: for formats that look for repetition.

#include <cmath>
#include <cstring>

#include "spmv_support.h"

namespace tcbound::test {

enum class Coefficients { constant, variable };

// Appends rows to a Csr. Values are a function of the place in the row, or random.
class RowWriter {
public:
  RowWriter(const std::string &name, std::int64_t columns_count, Coefficients coefficients)
    : variable_(coefficients == Coefficients::variable) {
    a_.name = name + (variable_ ? ", variable" : ", constant");
    a_.columns_count = columns_count;
  }

  // Entries at the given distances from the diagonal, less those outside the matrix. The value depends on the distance's place,
  // so that rows without cut entries are equal.
  void add(const std::vector<std::int64_t> &offsets) {
    for (std::size_t k = 0; k < offsets.size(); ++k) {
      const std::int64_t column = a_.rows + offsets[k];
      if (column >= 0 && column < a_.columns_count)
        entry(column, offsets[k] == 0 ? 26.0 : -1.0 - 0.25 * static_cast<double>(k % 5));
    }
    end_row();
  }

  // Random columns and values: a row like no other.
  void add_odd(std::int64_t length) {
    std::vector<std::int64_t> columns;
    for (std::int64_t k = 0; k < std::min(length, a_.columns_count); ++k)
      columns.push_back(static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(a_.columns_count)));
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    for (const std::int64_t column : columns) entry(column, uniform_(random_));
    end_row();
  }

  // `length` columns from `first` on.
  void add_run(std::int64_t first, std::int64_t length) {
    for (std::int64_t k = 0; k < length; ++k) entry(first + k, 1.0 + static_cast<double>(k % 7));
    end_row();
  }

  std::int64_t rows() const { return a_.rows; }
  Csr          take() { return std::move(a_); }

private:
  void entry(std::int64_t column, double value) {
    a_.columns.push_back(column);
    a_.values.push_back(variable_ ? uniform_(random_) : value);
  }
  void end_row() {
    a_.offsets.push_back(a_.nonzeros());
    ++a_.rows;
  }

  bool                                   variable_;
  std::mt19937_64                        random_{29};
  std::uniform_real_distribution<double> uniform_{-1.0, 1.0};
  Csr                                    a_;
};

inline std::string sizes(std::int64_t rows, std::int64_t columns) {
  return std::to_string(rows) + "x" + std::to_string(columns);
}

// The same distances in every row, as far as they lie in the matrix.
inline Csr banded(std::int64_t rows, std::int64_t columns, const std::vector<std::int64_t> &offsets, Coefficients c) {
  RowWriter a("banded " + sizes(rows, columns) + " with " + std::to_string(offsets.size()), columns, c);
  while (a.rows() < rows) a.add(offsets);
  return a.take();
}

// A grid's stencil of all 3^d neighbours, or of those on the axes (star).
inline Csr stencil(std::int64_t nx, std::int64_t ny, std::int64_t nz, bool star, Coefficients c) {
  RowWriter a("stencil " + sizes(nx, ny) + "x" + std::to_string(nz) + (star ? " star" : " full"), nx * ny * nz, c);
  for (std::int64_t k = 0; k < nz; ++k)
    for (std::int64_t j = 0; j < ny; ++j)
      for (std::int64_t i = 0; i < nx; ++i) {
        std::vector<std::int64_t> offsets;
        for (int dk = -1; dk <= 1; ++dk)
          for (int dj = -1; dj <= 1; ++dj)
            for (int di = -1; di <= 1; ++di)
              if (i + di >= 0 && i + di < nx && j + dj >= 0 && j + dj < ny && k + dk >= 0 && k + dk < nz &&
                  (!star || std::abs(di) + std::abs(dj) + std::abs(dk) <= 1))
                offsets.push_back((dk * ny + dj) * nx + di);
        a.add(offsets);
      }
  return a.take();
}

// A tridiagonal matrix in which the rows that odd(i) names are random ones of `length` entries.
template <class F> Csr tridiagonal_but(const std::string &name, std::int64_t n, std::int64_t length, Coefficients c, F &&odd) {
  RowWriter a(name + " of " + std::to_string(n), n, c);
  while (a.rows() < n)
    if (odd(a.rows()))
      a.add_odd(length);
    else
      a.add({-1, 0, 1});
  return a.take();
}

// Slices of equal rows, one of each length, and the same lengths row by row.
inline Csr every_length(std::int64_t longest, bool by_slices, Coefficients c) {
  const std::int64_t repeat = by_slices ? 67 : 1, rows = repeat * (longest + 1);
  RowWriter          a(by_slices ? "every length by slices" : "every length by rows", rows + longest, c);
  for (std::int64_t length = 0; length <= longest; ++length)
    for (std::int64_t i = 0; i < repeat; ++i) a.add_run(a.rows(), length);
  return a.take();
}

// Rows in nodes of `node`, of which each has the columns that a row of `one` has.
inline Csr in_nodes(int node, const Csr &one) {
  const std::vector<double> values = random_vector(node * one.nonzeros(), 9);
  Csr                       a;
  a.name = one.name + " in nodes of " + std::to_string(node);
  a.columns_count = one.columns_count;
  for (std::int64_t i = 0; i < node * one.rows; ++i) {
    for (auto k = one.offsets[static_cast<std::size_t>(i / node)]; k < one.offsets[static_cast<std::size_t>(i / node) + 1]; ++k)
      a.columns.push_back(one.columns[static_cast<std::size_t>(k)]);
    a.offsets.push_back(a.nonzeros());
    ++a.rows;
  }
  a.values = values;
  return a;
}

inline double with_payload(std::uint64_t payload) {
  const std::uint64_t bits = 0x7ff8000000000000U | payload;
  double              value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Rows that are equal but for the sign of zeros or the payload of NaNs, in turns of 100 rows and one by one.
inline Csr nearly_equal(double one, double other, const std::string &name) {
  Csr a = banded(1000, 1000, {-2, 0, 1, 2}, Coefficients::constant);
  a.name = name;
  for (std::size_t i = 10; i < 990; ++i)
    a.values[static_cast<std::size_t>(a.offsets[i]) + 1] = (i / 100) % 2 != (i % 9 == 0) ? one : other;
  return a;
}

inline void add_odd_rows(std::vector<Csr> &all, Coefficients c) {
  const auto middle = [](std::int64_t i) { return i == 321; };
  all.push_back(tridiagonal_but("one odd row", 640, 40, c, middle));
  all.push_back(tridiagonal_but("one very long row", 47000, 46500, c, middle));
  all.push_back(tridiagonal_but("an odd row in every slice", 1000, 9, c, [](std::int64_t i) { return i % 64 == 7; }));
  all.push_back(tridiagonal_but("15 odd rows in every slice", 1000, 9, c, [](std::int64_t i) { return i % 64 < 15; }));
  all.push_back(tridiagonal_but("16 odd rows in every slice", 1000, 9, c, [](std::int64_t i) { return i % 64 < 16; }));
  all.push_back(tridiagonal_but("17 odd rows in every slice", 1000, 9, c, [](std::int64_t i) { return i % 64 < 17; }));
  all.push_back(tridiagonal_but("odd rows every other", 1000, 9, c, [](std::int64_t i) { return i % 2 == 0; }));
  all.push_back(tridiagonal_but("odd slices every other", 1000, 9, c, [](std::int64_t i) { return i / 64 % 2 == 0; }));
  all.push_back(tridiagonal_but("odd rows in the last slice", 1000, 9, c, [](std::int64_t i) { return i >= 970; }));
}

// Two patterns in turns, exceptions longer and shorter than their slice's pattern, and empty rows.
inline void add_mixtures(std::vector<Csr> &all, Coefficients c) {
  const std::vector<std::int64_t> none, few = {-1, 0, 1}, many = {-9, -8, -3, -1, 0, 1, 2, 3, 4, 70}, other = {-2, 0, 5};
  RowWriter                       dofs("two patterns in turns", 1000, c), turns("two patterns in turns of 100", 1000, c);
  RowWriter                       longer("longer exceptions", 1000, c), shorter("shorter exceptions", 1000, c);
  RowWriter                       holes("empty rows here and there", 1000, c), halves("empty stretches", 1000, c);
  for (std::int64_t i = 0; i < 1000; ++i) {
    dofs.add(i % 2 == 0 ? few : other);
    turns.add(i / 100 % 2 == 0 ? few : many);
    longer.add(i % 20 == 3 ? many : few);
    shorter.add(i % 20 == 3 ? few : (i % 33 == 0 ? none : many));
    holes.add(i % 10 == 4 ? none : few);
    halves.add(i / 70 % 2 == 0 ? none : few);
  }
  for (RowWriter *a : {&dofs, &turns, &longer, &shorter, &holes, &halves}) all.push_back(a->take());
}

inline void add_lengths(std::vector<Csr> &all, Coefficients c) {
  for (const bool by_slices : {false, true}) all.push_back(every_length(300, by_slices, c));
  for (const std::int64_t length : {1023, 1024, 1025}) { // around the longest row that may have a pattern
    RowWriter a("rows of " + std::to_string(length), 1500, c);
    while (a.rows() < 130) a.add_run(a.rows(), length);
    all.push_back(a.take());
  }
}

// The 27-point stencil with `dofs` unknowns at each node, all coupled.
inline Csr nodes(std::int64_t nx, std::int64_t ny, std::int64_t nz, int dofs) {
  RowWriter a("nodes of " + std::to_string(dofs) + " on " + sizes(nx, ny) + "x" + std::to_string(nz), nx * ny * nz * dofs,
              Coefficients::variable);
  for (std::int64_t node = 0; node < nx * ny * nz; ++node)
    for (int dof = 0; dof < dofs; ++dof) {
      const std::int64_t        i = node % nx, j = node / nx % ny, k = node / (nx * ny);
      std::vector<std::int64_t> offsets;
      for (int n = 0; n < 27; ++n) {
        const std::int64_t di = n % 3 - 1, dj = n / 3 % 3 - 1, dk = n / 9 - 1;
        if (i + di < 0 || i + di >= nx || j + dj < 0 || j + dj >= ny || k + dk < 0 || k + dk >= nz) continue;
        for (int other = 0; other < dofs; ++other) offsets.push_back((di + nx * (dj + ny * dk)) * dofs + other - dof);
      }
      a.add(offsets);
    }
  return a.take();
}

inline std::vector<Csr> structured_matrices() {
  std::vector<Csr> all;
  for (const Coefficients c : {Coefficients::constant, Coefficients::variable}) {
    for (const std::int64_t n : {1, 2, 3, 15, 16, 17, 48, 62, 63, 64, 65, 66, 127, 128, 129, 191, 192, 193, 1000})
      all.push_back(banded(n, n, {-1, 0, 1}, c));
    for (const std::int64_t rows : {64, 100, 200})
      for (const std::int64_t columns : {50, 64, 100, 130, 200}) {
        all.push_back(banded(rows, columns, {-3, 0, 1, 2, 3, 4, 5, 40}, c));
        all.push_back(banded(rows, columns, {columns - rows - 1, columns - rows, columns - 1}, c));
        all.push_back(banded(rows, columns, {1 - rows, 0}, c));
      }
    all.push_back(banded(300, 5000, {4000, 4001, 4002, 4003, 4004}, c));
    all.push_back(banded(5000, 300, {-4500, -4000, -299, 0, 1}, c));
    all.push_back(stencil(70, 40, 1, true, c));
    all.push_back(stencil(130, 9, 1, false, c));
    all.push_back(stencil(64, 33, 1, false, c));
    all.push_back(stencil(20, 11, 9, true, c));
    all.push_back(stencil(66, 5, 4, false, c));
    all.push_back(stencil(130, 6, 5, true, c));
    add_odd_rows(all, c);
    add_mixtures(all, c);
    add_lengths(all, c);
  }
  all.push_back(nearly_equal(0.0, -0.0, "equal but for the sign of zero"));
  all.push_back(nearly_equal(with_payload(1), with_payload(2), "equal but for the payload of NaN"));
  return all;
}

// Values that 32 bits hold exactly.
inline Csr with_short_values(Csr a) {
  for (double &value : a.values) value = static_cast<float>(value);
  a.name += ", short values";
  return a;
}

// Values that bfloat16 holds exactly.
inline Csr with_shorter_values(Csr a) {
  for (double &value : a.values) {
    int          exponent;
    const double fraction = std::frexp(value, &exponent);
    value = std::ldexp(std::round(fraction * 256), exponent - 8);
  }
  a.name += ", shorter values";
  return a;
}

} // namespace tcbound::test
