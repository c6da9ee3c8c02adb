#pragma once

#include <cstring>
#include <limits>

#include "format.h"

namespace tcbound::compact {

// The rows of a CSR in host memory, compared by their patterns.
template <class Offset, class Index> class HostRows {
public:
  explicit HostRows(const CsrView &view)
    : offsets_(static_cast<const Offset *>(view.row_offsets.data)), columns_(static_cast<const Index *>(view.columns.data)),
      values_(view.values) {}

  std::int64_t  begin(std::int64_t row) const { return offsets_[row]; }
  std::int64_t  length(std::int64_t row) const { return offsets_[row + 1] - offsets_[row]; }
  const Index  *columns(std::int64_t row) const { return columns_ + offsets_[row]; }
  const double *values(std::int64_t row) const { return values_ + offsets_[row]; }

  // Whether the row may have a pattern: it is not too long, and its distances from the diagonal fit in 32 bits.
  bool patterned(std::int64_t row) const {
    const std::int64_t n = length(row);
    if (n > longest_patterned) return false;
    if (sizeof(Index) == 4 || n == 0) return true; // rows are fewer than 2^31, too
    const std::int64_t low = columns(row)[0] - row, high = columns(row)[n - 1] - row;
    return low >= std::numeric_limits<std::int32_t>::min() && high <= std::numeric_limits<std::int32_t>::max();
  }

  bool same_offsets(std::int64_t a, std::int64_t b) const {
    const std::int64_t n = length(a);
    if (length(b) != n) return false;
    if (n == 0) return true;
    const Index *p = columns(a), *q = columns(b), shift = static_cast<Index>(a - b);
    if (p[0] - q[0] != shift || p[n - 1] - q[n - 1] != shift) return false;
    Index different = 0; // without a way out of the loop it runs in vectors
    for (std::int64_t k = 0; k < n; ++k) different |= (p[k] - q[k]) ^ shift;
    return different == 0;
  }

  // Bitwise: the sign of a zero and the payload of a NaN count.
  bool same_values(std::int64_t a, std::int64_t b, std::int64_t n) const {
    return n == 0 || std::memcmp(values(a), values(b), static_cast<std::size_t>(n) * sizeof(double)) == 0;
  }

  std::uint64_t hash_offsets(std::int64_t row) const {
    std::uint64_t hash = 0;
    for (std::int64_t k = 0, n = length(row); k < n; ++k) hash = mix(hash, static_cast<std::uint64_t>(columns(row)[k] - row));
    return hash;
  }

  std::uint64_t hash_values(std::int64_t row) const {
    std::uint64_t hash = 0;
    for (std::int64_t k = 0, n = length(row); k < n; ++k) {
      std::uint64_t bits;
      std::memcpy(&bits, values(row) + k, sizeof bits);
      hash = mix(hash, bits);
    }
    return hash;
  }

private:
  // A multiply-xorshift step with a constant of SplitMix64.
  static std::uint64_t mix(std::uint64_t hash, std::uint64_t next) {
    hash = (hash ^ next) * 0xbf58476d1ce4e5b9U;
    return hash ^ (hash >> 29);
  }

  const Offset *offsets_;
  const Index  *columns_;
  const double *values_;
};

// Calls f with the rows of a view, whatever the widths of its indices. A matrix without rows has none to call with.
template <class F> void with_rows(const CsrView &view, F &&f) {
  if (view.rows == 0) return;
  const bool wide_offsets = view.row_offsets.bytes == 8, wide_columns = view.columns.bytes == 8;
  if (wide_offsets && wide_columns)
    f(HostRows<std::int64_t, std::int64_t>(view));
  else if (wide_offsets)
    f(HostRows<std::int64_t, std::int32_t>(view));
  else if (wide_columns)
    f(HostRows<std::int32_t, std::int64_t>(view));
  else
    f(HostRows<std::int32_t, std::int32_t>(view));
}

} // namespace tcbound::compact
