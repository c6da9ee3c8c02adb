#pragma once

// Matrices, a reference and guarded vectors for the tests of spmv kernels.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernel.h"

namespace tcbound::test {

struct Csr {
  std::string               name;
  std::int64_t              rows = 0, columns_count = 0;
  std::vector<std::int64_t> offsets = {0}, columns;
  std::vector<double>       values;

  std::int64_t nonzeros() const { return static_cast<std::int64_t>(columns.size()); }
};

// Columns spread over the whole width, sorted, each drawn from a stretch of its own.
inline Csr from_lengths(const std::string &name, std::int64_t columns_count, const std::vector<std::int64_t> &lengths) {
  std::mt19937_64                        random(17);
  std::uniform_real_distribution<double> value(-1.0, 1.0);
  Csr                                    a;
  a.name = name;
  a.rows = static_cast<std::int64_t>(lengths.size());
  a.columns_count = columns_count;
  for (const std::int64_t length : lengths) {
    const std::int64_t stretch = length > 0 ? columns_count / length : 0;
    for (std::int64_t k = 0; k < length; ++k) {
      a.columns.push_back(k * stretch + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(stretch)));
      a.values.push_back(value(random));
    }
    a.offsets.push_back(a.nonzeros());
  }
  return a;
}

inline Csr uniform(std::int64_t rows, std::int64_t columns, std::int64_t length) {
  return from_lengths(std::to_string(rows) + "x" + std::to_string(columns) + " with " + std::to_string(length) + " a row",
                      columns, std::vector<std::int64_t>(static_cast<std::size_t>(rows), std::min(length, columns)));
}

// 0 to `longest` entries a row, at random.
inline Csr irregular(std::int64_t rows, std::int64_t columns, std::int64_t longest) {
  std::mt19937_64           random(23);
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(rows));
  for (std::int64_t &length : lengths)
    length = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(std::min(longest, columns) + 1));
  return from_lengths("irregular " + std::to_string(rows) + "x" + std::to_string(columns), columns, lengths);
}

// One row of `length` entries at place `at` among rows of 3.
inline Csr one_long_row(std::int64_t rows, std::int64_t length, std::int64_t at) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(rows), 3);
  lengths[static_cast<std::size_t>(at)] = length;
  return from_lengths("row " + std::to_string(at) + " of " + std::to_string(rows) + " has " + std::to_string(length),
                      std::max<std::int64_t>(length, 1000), lengths);
}

// Rows of very different lengths one after the other: several long ones may meet in a chunk or follow each other.
inline Csr ragged() {
  const std::vector<std::int64_t> cycle = {0, 1, 2000, 0,  3,  700, 700,  700,  9000, 4100,
                                           0, 0, 31,   32, 33, 5,   2048, 2049, 511,  513};
  std::vector<std::int64_t>       lengths;
  for (int repeat = 0; repeat < 4; ++repeat) lengths.insert(lengths.end(), cycle.begin(), cycle.end());
  return from_lengths("ragged", 10000, lengths);
}

inline std::vector<Csr> small_matrices() {
  std::vector<Csr> all;
  for (const std::int64_t n : {1, 31, 32, 33, 127, 128, 129, 255, 256, 257, 1000}) {
    all.push_back(uniform(n, n, 1));
    all.push_back(uniform(n, n, 7));
    all.push_back(irregular(n, n, 20));
  }
  for (const std::int64_t length : {2, 4, 8, 16, 27, 31, 32, 33, 64, 81, 100}) all.push_back(uniform(777, 900, length));
  for (const std::int64_t rows : {2039, 2048, 4097}) all.push_back(uniform(rows, 1000, 7));
  all.push_back(uniform(60013, 1000, 7)); // 5 MB: the host kernel prefetches
  all.push_back(uniform(1, 70000, 65536));
  all.push_back(uniform(5000, 5000, 0));
  all.push_back(uniform(70001, 3, 0));
  all.push_back(irregular(50, 3000, 300));
  all.push_back(irregular(3000, 50, 12));
  all.push_back(uniform(0, 0, 0));
  all.push_back(uniform(0, 17, 0));
  all.push_back(uniform(17, 0, 0));
  return all;
}

inline std::vector<Csr> long_row_matrices() {
  std::vector<Csr> all;
  for (const std::int64_t length : {300, 1000, 2500, 5000, 46500, 300000})
    for (const std::int64_t at : {0, 1, 499, 998, 999}) all.push_back(one_long_row(1000, length, at));
  all.push_back(ragged());
  all.push_back(from_lengths("empty rows around long ones", 40000, {0, 0, 30000, 0, 0, 0, 30000, 30000, 0, 1, 0}));
  return all;
}

inline std::vector<double> random_vector(std::int64_t size, unsigned seed) {
  std::mt19937_64                        random(seed);
  std::uniform_real_distribution<double> value(-1.0, 1.0);
  std::vector<double>                    x(static_cast<std::size_t>(size));
  for (double &element : x) element = value(random);
  return x;
}

// What a product must be and, per element, how far rounding may take it from there.
struct Expected {
  std::vector<long double> value, tolerance;
};

inline Expected reference(const Csr &a, bool transpose, double alpha, double beta, const std::vector<double> &x,
                          const std::vector<double> &y) {
  const auto                size = static_cast<std::size_t>(transpose ? a.columns_count : a.rows);
  std::vector<long double>  sum(size, 0.0L), magnitude(size, 0.0L);
  std::vector<std::int64_t> length(size, 0);
  Expected                  expected{std::vector<long double>(size), std::vector<long double>(size)};
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = a.offsets[static_cast<std::size_t>(i)]; k < a.offsets[static_cast<std::size_t>(i) + 1]; ++k) {
      const std::int64_t j = a.columns[static_cast<std::size_t>(k)];
      const auto         out = static_cast<std::size_t>(transpose ? j : i), in = static_cast<std::size_t>(transpose ? i : j);
      const long double  term = static_cast<long double>(a.values[static_cast<std::size_t>(k)]) * x[in];
      sum[out] += term;
      magnitude[out] += std::abs(term);
      ++length[out];
    }
  for (std::size_t i = 0; i < size; ++i) {
    expected.value[i] = alpha * sum[i];
    long double size_of_terms = std::abs(alpha) * magnitude[i];
    if (beta != 0.0) {
      expected.value[i] += static_cast<long double>(beta) * y[i];
      size_of_terms += std::abs(static_cast<long double>(beta) * y[i]);
    }
    const long double roundings = 4.0L * static_cast<long double>(length[i] + 2);
    expected.tolerance[i] = roundings * (std::numeric_limits<double>::epsilon() * size_of_terms +
                                         std::numeric_limits<double>::denorm_min()); // products may underflow
  }
  return expected;
}

// A CsrView of a Csr with the wanted index widths, in host memory or in an executor's.
class Stored {
public:
  Stored(const Csr &a, int offset_bytes, int index_bytes)
    : offsets32_(a.offsets.begin(), a.offsets.end()), columns32_(a.columns.begin(), a.columns.end()), offsets64_(a.offsets),
      columns64_(a.columns), values_(a.values) {
    view_.rows = a.rows;
    view_.columns_count = a.columns_count;
    view_.nonzeros = a.nonzeros();
    view_.row_offsets.bytes = offset_bytes;
    view_.columns.bytes = index_bytes;
    view_.row_offsets.data = offset_bytes == 4 ? static_cast<const void *>(offsets32_.data()) : offsets64_.data();
    view_.columns.data = index_bytes == 4 ? static_cast<const void *>(columns32_.data()) : columns64_.data();
    view_.values = values_.data();
  }
  explicit Stored(const Csr &a) : Stored(a, 4, 4) {}
  Stored(const Stored &) = delete;
  Stored &operator=(const Stored &) = delete;

  Problem problem() const {
    Problem problem;
    problem.csr = view_;
    return problem;
  }

  // The same view with the arrays in the executor's memory.
  Problem on(Executor &executor) {
    Problem problem;
    problem.csr = view_;
    problem.csr.space = executor.space();
    problem.csr.row_offsets.data = upload(executor, view_.row_offsets.data, (view_.rows + 1) * view_.row_offsets.bytes);
    problem.csr.columns.data = upload(executor, view_.columns.data, view_.nonzeros * view_.columns.bytes);
    problem.csr.values = reinterpret_cast<const double *>(upload(executor, view_.values, view_.nonzeros * 8));
    return problem;
  }

private:
  const char *upload(Executor &executor, const void *from, std::int64_t bytes) {
    uploaded_.emplace_back(executor, bytes);
    executor.copy(uploaded_.back().data(), executor.space(), from, MemorySpace::host, static_cast<std::size_t>(bytes));
    return uploaded_.back().data();
  }

  CsrView                   view_;
  std::vector<std::int32_t> offsets32_, columns32_;
  std::vector<std::int64_t> offsets64_, columns64_;
  std::vector<double>       values_;
  std::vector<Array<char>>  uploaded_;
};

// A vector in an executor's memory between two stretches that nothing may write to. `misaligned` puts it at an odd multiple of
// 8 bytes.
class Guarded {
public:
  Guarded(Executor &executor, const std::vector<double> &values, bool misaligned)
    : executor_(executor), size_(values.size()), at_(misaligned ? guard + 1 : guard),
      memory_(executor, static_cast<std::int64_t>(values.size() + 2 * guard + 1)) {
    std::vector<double> all(static_cast<std::size_t>(memory_.size()), canary);
    std::copy(values.begin(), values.end(), all.begin() + static_cast<std::ptrdiff_t>(at_));
    executor.copy(memory_.data(), executor.space(), all.data(), MemorySpace::host, static_cast<std::size_t>(memory_.bytes()));
  }

  double *data() { return memory_.data() + at_; }

  // The elements; `intact` says whether the guards are.
  std::vector<double> read(bool &intact) {
    std::vector<double> all(static_cast<std::size_t>(memory_.size()));
    executor_.copy(all.data(), MemorySpace::host, memory_.data(), executor_.space(), static_cast<std::size_t>(memory_.bytes()));
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(at_), end = begin + static_cast<std::ptrdiff_t>(size_);
    const auto is_canary = [](double value) { return value == canary; };
    intact = std::all_of(all.begin(), begin, is_canary) && std::all_of(end, all.end(), is_canary);
    return std::vector<double>(begin, end);
  }

private:
  static constexpr std::size_t guard = 32; // doubles
  static constexpr double      canary = -7.5e99;

  Executor     &executor_;
  std::size_t   size_, at_;
  Array<double> memory_;
};

} // namespace tcbound::test
