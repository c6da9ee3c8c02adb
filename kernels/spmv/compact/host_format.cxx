#include "host_format.h"

#include <algorithm>

#include "host_rows.h"
#include "spmv/csr/format.h"
#include "spmv/csr/host_product.h"

namespace tcbound::compact {
namespace {

template <class T> std::int64_t bytes_of(const std::vector<T> &v) { return static_cast<std::int64_t>(v.size() * sizeof(T)); }

template <class S> std::int64_t bytes_of(const Patterned<S> &a) {
  return bytes_of(a.patterns) + bytes_of(a.segments) + bytes_of(a.slices) + bytes_of(a.exceptions);
}

template <class S> std::int64_t rows_in(const Patterned<S> &a) {
  std::int64_t rows = 0;
  for (const Slice &slice : a.slices) rows += __builtin_popcountll(slice.rows);
  return rows;
}

// Calls f(row, pattern, values) for each row that has a pattern, slice by slice; explicit values start at `values` and are
// slice_rows apart. They are null in constant slices, whose values stand in the segments.
template <class S, class F> void for_each_row(const Patterned<S> &a, const HostArrays &arrays, F &&f) {
  std::size_t e = 0;
  for (std::size_t s = 0; s < a.slices.size(); ++s) {
    const Slice  &slice = a.slices[s];
    const double *values = sizeof(S) == sizeof(Segment) ? arrays.values.data() + arrays.first_value[s] : nullptr;
    const auto    call = [&](std::int32_t row, std::int32_t pattern) {
      f(row, a.patterns[static_cast<std::size_t>(pattern)], values ? values + (row - slice.first_row) : nullptr);
    };
    for (std::uint64_t rows = slice.rows; rows; rows &= rows - 1) call(slice.first_row + __builtin_ctzll(rows), slice.pattern);
    for (; e < a.exceptions.size() && a.exceptions[e].row - slice.first_row < slice_rows; ++e)
      call(a.exceptions[e].row, a.exceptions[e].pattern);
  }
}

double value_of(const ConstantSegment &segment, int k, const double *, int) { return segment.values[k]; }
double value_of(const Segment &, int, const double *values, int entry) { return values[std::ptrdiff_t(slice_rows) * entry]; }

// Calls f(offset, value) for the entries of a row in stored order.
template <class S, class F> void for_each_entry(const Patterned<S> &a, const Pattern &pattern, const double *values, F &&f) {
  const S *segment = a.first_segment(pattern);
  for (int s = 0, entry = 0; s < pattern.segments; ++s, ++segment)
    for (int k = 0; k < segment->count; ++k, ++entry) f(segment->offset + k, value_of(*segment, k, values, entry));
}

template <class S> void diagonal_of(const Patterned<S> &a, const HostArrays &arrays, double *d) {
  for_each_row(a, arrays, [&](std::int32_t row, const Pattern &pattern, const double *values) {
    d[row] = 0.0;
    if (pattern.low > 0 || pattern.high < 0) return;
    for_each_entry(a, pattern, values, [&](std::int32_t offset, double value) {
      if (offset == 0) d[row] = value;
    });
  });
}

} // namespace

Census count(const HostArrays &a) {
  Census census;
  census.rows = a.rows;
  census.columns = a.columns;
  census.nonzeros = a.nonzeros;
  census.constant_rows = rows_in(a.constant);
  census.explicit_rows = rows_in(a.varying);
  census.exceptions = static_cast<std::int64_t>(a.constant.exceptions.size() + a.varying.exceptions.size());
  census.remainder_rows = a.remainder.rows;
  census.remainder_nonzeros = a.remainder.nonzeros;
  census.patterns = static_cast<std::int64_t>(a.constant.patterns.size() + a.varying.patterns.size());
  census.bytes = bytes_of(a.constant) + bytes_of(a.varying) + a.values.bytes() + bytes_of(a.remainder_rows) +
                 a.remainder_offsets.bytes() + a.remainder_columns.bytes() + a.remainder_values.bytes();
  if (!a.varying.slices.empty()) census.bytes += bytes_of(a.first_value);
  return census;
}

Recovered recover(const HostArrays &a) {
  Recovered csr;
  csr.offsets.assign(static_cast<std::size_t>(a.rows) + 1, 0);
  const auto count_row = [&](std::int64_t row, std::int64_t length) {
    csr.offsets[static_cast<std::size_t>(row) + 1] = length;
  };
  const auto count_rows = [&](const auto &part) {
    for_each_row(part, a, [&](std::int32_t row, const Pattern &pattern, const double *) { count_row(row, pattern.entries); });
  };
  count_rows(a.constant);
  count_rows(a.varying);
  const CsrView &rest = a.remainder;
  for (std::int64_t i = 0; i < rest.rows; ++i)
    count_row(a.remainder_rows[static_cast<std::size_t>(i)], rest.row_offsets[i + 1] - rest.row_offsets[i]);
  for (std::size_t i = 1; i < csr.offsets.size(); ++i) csr.offsets[i] += csr.offsets[i - 1];
  csr.columns.resize(static_cast<std::size_t>(csr.offsets.back()));
  csr.values.resize(csr.columns.size());
  const auto copy_rows = [&](const auto &part) {
    for_each_row(part, a, [&](std::int32_t row, const Pattern &pattern, const double *values) {
      auto at = static_cast<std::size_t>(csr.offsets[static_cast<std::size_t>(row)]);
      for_each_entry(part, pattern, values, [&](std::int32_t offset, double value) {
        csr.columns[at] = std::int64_t(row) + offset;
        csr.values[at++] = value;
      });
    });
  };
  copy_rows(a.constant);
  copy_rows(a.varying);
  for (std::int64_t i = 0; i < rest.rows; ++i) {
    auto at = static_cast<std::size_t>(csr.offsets[static_cast<std::size_t>(a.remainder_rows[static_cast<std::size_t>(i)])]);
    for (std::int64_t k = rest.row_offsets[i]; k < rest.row_offsets[i + 1]; ++k, ++at) {
      csr.columns[at] = rest.columns[k];
      csr.values[at] = rest.values[k];
    }
  }
  return csr;
}

HostFormat::HostFormat(Executor &executor, const CsrView &view)
  : view_(view), arrays_(build_host(executor, view)), census_(count(arrays_)) {}

void HostFormat::refill(Executor &executor, const double *values, MemorySpace space) {
  if (space != MemorySpace::host)
    throw Error(ErrorCode::unsupported, "a format in host memory takes its values from there, and these lie in device memory");
  view_.values = values;
  if (constants_hold(arrays_, view_)) {
    fill_values(arrays_, view_);
  } else {
    options_.constant = false;
    arrays_ = build_host(executor, view_, options_);
    census_ = count(arrays_);
  }
}

void HostFormat::diagonal(Executor &, double *d) {
  diagonal_of(arrays_.constant, arrays_, d);
  diagonal_of(arrays_.varying, arrays_, d);
  csr::diagonal(arrays_.remainder, arrays_.remainder_rows.data(), d);
}

// The remainder is multiplied as CSR.
double HostFormat::usual_share() const {
  if (census_.nonzeros == 0) return 1.0;
  const double remainder = static_cast<double>(census_.remainder_nonzeros) / static_cast<double>(census_.nonzeros);
  return 1.0 / ((1.0 - remainder) + remainder / csr::host_share);
}

Work HostFormat::work(bool transpose, bool accumulate) const {
  Census census = census_;
  if (transpose) std::swap(census.rows, census.columns);
  return count_work(census, accumulate);
}

} // namespace tcbound::compact
