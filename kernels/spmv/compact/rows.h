#pragma once

// What device code sees of a CSR matrix. For .cu files only.

#include <cstdint>

#include "../csr/device_format.h"

namespace tcbound::compact {

template <class Offset> struct Rows {
  const Offset       *offsets;
  const std::int32_t *columns;
  const double       *values;
  std::int64_t        count;
};

template <class Offset> Rows<Offset> rows_of(const csr::DeviceArrays &a, const Offset *offsets) {
  return {offsets, a.columns.data(), a.values.data(), a.rows};
}

template <int block> __device__ std::int64_t global_index() {
  return blockIdx.x * static_cast<std::int64_t>(block) + threadIdx.x;
}

constexpr std::int64_t warp_entries = 1024; // that a warp of for_entries handles

// Calls f(row, entry) for all entries of a CSR matrix, each warp for a stretch of them, so that a long row is shared by many.
template <int block, class Offset, class F> __device__ void for_entries(const Offset *begin, std::int64_t rows, F &&f) {
  std::int64_t       at = global_index<block>() / 32 * warp_entries;
  const std::int64_t end = min(at + warp_entries, static_cast<std::int64_t>(begin[rows]));
  std::int64_t       row = 0, high = rows; // the last row that begins at or before `at`
  while (at < end && high - row > 1) {
    const std::int64_t middle = row + (high - row) / 2;
    (begin[middle] <= at ? row : high) = middle;
  }
  for (; at < end; ++row) {
    const std::int64_t row_end = min(end, static_cast<std::int64_t>(begin[row + 1]));
    for (std::int64_t k = at + threadIdx.x % 32; k < row_end; k += 32) f(row, k);
    at = max(at, row_end);
  }
}

} // namespace tcbound::compact
