#include "host_product.h"

#include <algorithm>

namespace tcbound::csr {
namespace {

constexpr int short_row = 16; // entries

// What a row of at most short_row entries needs: one sum, since the processor works on the next rows meanwhile.
template <class Offset, class Index>
double sum_short(const double *values, const Index *columns, const double *x, Offset k, Offset end) {
  double sum = 0.0;
  for (; k < end; ++k) sum += values[k] * x[columns[k]];
  return sum;
}

// Four sums, so that an addition need not wait for the one before it; their order is fixed, so results are reproducible.
template <class Offset, class Index>
double sum_long(const double *values, const Index *columns, const double *x, Offset k, Offset end) {
  double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
  for (; k + 4 <= end; k += 4) {
    s0 += values[k] * x[columns[k]];
    s1 += values[k + 1] * x[columns[k + 1]];
    s2 += values[k + 2] * x[columns[k + 2]];
    s3 += values[k + 3] * x[columns[k + 3]];
  }
  for (; k < end; ++k) s0 += values[k] * x[columns[k]];
  return (s0 + s1) + (s2 + s3);
}

// far: the matrix comes from memory, not from a cache.
template <bool far, class Offset, class Index>
void multiply(const CsrView &a, const Offset *offsets, const Index *columns, const std::int32_t *rows, const Product &p) {
  const double *values = a.values;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    const Offset begin = offsets[i], end = offsets[i + 1];
    double       sum;
    if (end - begin <= short_row) {
      // Short rows: there the many streams of x crowd out the hardware's own prefetching (7-point Poisson on an EPYC: 1.5 times as
      // fast with this). Not in a function of its own: GCC takes one that only prefetches for free of effects and drops the call.
      if (far) {
        for (std::int64_t ahead = begin; ahead < end; ahead += 8) { // a cache line of values
          __builtin_prefetch(values + std::min(ahead + 256, a.nonzeros), 0, 0);
          __builtin_prefetch(columns + std::min(ahead + 512, a.nonzeros), 0, 0);
        }
      }
      sum = sum_short(values, columns, p.x, begin, end);
    } else {
      sum = sum_long(values, columns, p.x, begin, end);
    }
    const std::int64_t row = rows ? rows[i] : i;
    p.z[row] = p.beta == 0.0 ? p.alpha * sum : p.alpha * sum + p.beta * p.y[row];
  }
}

// K columns at once: the matrix is read once for all of them.
template <int K, class Offset, class Index>
void multiply_columns(const CsrView &a, const Offset *offsets, const Index *columns, const std::int32_t *rows, const Product &p,
                      const Columns &by) {
  for (std::int64_t i = 0; i < a.rows; ++i) {
    double sum[K] = {};
    for (Offset k = offsets[i]; k < offsets[i + 1]; ++k) {
      const double  value = a.values[k];
      const double *x = p.x + columns[k];
      for (int c = 0; c < K; ++c) sum[c] += value * x[c * by.x];
    }
    const std::int64_t row = rows ? rows[i] : i;
    for (int c = 0; c < K; ++c)
      p.z[row + c * by.z] = p.beta == 0.0 ? p.alpha * sum[c] : p.alpha * sum[c] + p.beta * p.y[row + c * by.y];
  }
}

// Whether products find the matrix in a cache: then prefetching costs time, up to a fifth of a 7-point product. 4 MB is about
// what a core has of the last-level cache of a server when all cores are busy. (The operating system is no help: a virtual
// machine may report the whole socket's cache.)
bool fits_cache(const CsrView &a) {
  return a.nonzeros * (8 + a.columns.bytes) + a.rows * a.row_offsets.bytes <= std::int64_t(4) << 20;
}

template <class Offset, class Index>
void add_transpose(const CsrView &a, const Offset *offsets, const Index *columns, const std::int32_t *rows, const Product &p) {
  const double *values = a.values;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    const double scaled = p.alpha * p.x[rows ? rows[i] : i];
    for (Offset k = offsets[i]; k < offsets[i + 1]; ++k) p.z[columns[k]] += values[k] * scaled;
  }
}

// Calls f with both arrays of indices as pointers to their type.
template <class F> void with_indices(const CsrView &a, F &&f) {
  const auto with_offsets = [&](const auto *offsets) {
    if (a.columns.bytes == 8)
      f(offsets, static_cast<const std::int64_t *>(a.columns.data));
    else
      f(offsets, static_cast<const std::int32_t *>(a.columns.data));
  };
  if (a.row_offsets.bytes == 8)
    with_offsets(static_cast<const std::int64_t *>(a.row_offsets.data));
  else
    with_offsets(static_cast<const std::int32_t *>(a.row_offsets.data));
}

} // namespace

void multiply(const CsrView &a, const std::int32_t *rows, const Product &product) {
  with_indices(a, [&](const auto *offsets, const auto *columns) {
    if (fits_cache(a))
      multiply<false>(a, offsets, columns, rows, product);
    else
      multiply<true>(a, offsets, columns, rows, product);
  });
}

namespace {

// Columns that one pass through the matrix takes of those left.
std::int64_t columns_at_once(std::int64_t left) { return left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1; }

} // namespace

void multiply_columns(const CsrView &a, const std::int32_t *rows, const Product &product, const Columns &columns) {
  for (std::int64_t k = 0, step; k < columns.count; k += step) {
    const Product from = from_column(product, columns, k);
    step = columns_at_once(columns.count - k);
    with_indices(a, [&](const auto *offsets, const auto *indices) {
      if (step == 8)
        multiply_columns<8>(a, offsets, indices, rows, from, columns);
      else if (step == 4)
        multiply_columns<4>(a, offsets, indices, rows, from, columns);
      else if (step == 2)
        multiply_columns<2>(a, offsets, indices, rows, from, columns);
    });
    if (step == 1) multiply(a, rows, from);
  }
}

std::int64_t passes_of_columns(std::int64_t count) {
  std::int64_t passes = 0;
  for (; count > 0; count -= columns_at_once(count)) ++passes;
  return passes;
}

void add_transpose(const CsrView &a, const std::int32_t *rows, const Product &product) {
  with_indices(a, [&](const auto *offsets, const auto *columns) { add_transpose(a, offsets, columns, rows, product); });
}

namespace {

void begin_elements(const Product &p, std::int64_t begin, std::int64_t end) {
  for (std::int64_t j = begin; j < end; ++j) p.z[j] = p.beta == 0.0 ? 0.0 : p.beta * p.y[j];
}

} // namespace

void begin_transpose(const Product &p, std::int64_t size) { begin_elements(p, 0, size); }

void begin_others(const Product &p, std::int64_t size, const std::int32_t *rows, std::size_t listed) {
  std::int64_t at = 0;
  for (std::size_t i = 0; i < listed; at = rows[i++] + std::int64_t(1)) begin_elements(p, at, rows[i]);
  begin_elements(p, at, size);
}

void diagonal(const CsrView &a, const std::int32_t *rows, double *d) {
  for (std::int64_t i = 0; i < a.rows; ++i) {
    const std::int64_t row = rows ? rows[i] : i, end = a.row_offsets[i + 1];
    std::int64_t       low = a.row_offsets[i];
    for (std::int64_t high = end; low < high;) { // the first entry with a column of `row` or more
      const std::int64_t middle = low + (high - low) / 2;
      if (a.columns[middle] < row)
        low = middle + 1;
      else
        high = middle;
    }
    d[row] = low < end && a.columns[low] == row ? a.values[low] : 0.0;
  }
}

} // namespace tcbound::csr
