#pragma once

// What device code sees of a CSR matrix. For .cu files only.

#include <cstdint>

#include "../csr/device_format.h"

namespace tcbound::compact {

template <class Offset, class Column = std::int32_t> struct Rows {
  const Offset *offsets;
  const Column *columns;
  const double *values;
  std::int64_t  count;
};

template <class Offset> Rows<Offset> rows_of(const csr::DeviceArrays &a, const Offset *offsets) {
  return {offsets, a.columns.data(), a.values.data(), a.rows};
}

template <int block> __device__ std::int64_t global_index() {
  return blockIdx.x * static_cast<std::int64_t>(block) + threadIdx.x;
}

__device__ inline std::uint64_t mix(std::uint64_t h) { // the finaliser of splitmix64 (G. L. Steele, D. Lea, C. H. Flood 2014)
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9U;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebU;
  return h ^ (h >> 31);
}

constexpr std::int64_t warp_entries = 1024; // that a warp of for_entries handles

// The last of the rows from `row` to `last` that begins at or before entry k.
template <class Offset>
__device__ std::int64_t row_of_entry(const Offset *begin, std::int64_t row, std::int64_t last, std::int64_t k) {
  while (row < last) {
    const std::int64_t middle = row + (last - row + 1) / 2;
    if (begin[middle] <= k)
      row = middle;
    else
      last = middle - 1;
  }
  return row;
}

// Calls f(row, entry) for all entries of a CSR matrix, each warp for a stretch of them, so that a long row is shared by many.
template <int block, class Offset, class F> __device__ void for_entries(const Offset *begin, std::int64_t rows, F &&f) {
  const std::int64_t at = global_index<block>() / 32 * warp_entries;
  const std::int64_t end = min(at + warp_entries, static_cast<std::int64_t>(begin[rows]));
  if (at >= end) return;
  const int          lane = static_cast<int>(threadIdx.x % 32);
  const std::int64_t found = row_of_entry(begin, std::int64_t(0), rows - 1, lane == 0 ? at : end - 1);
  const std::int64_t first = __shfl_sync(0xffffffffU, found, 0), last = __shfl_sync(0xffffffffU, found, 1);
#pragma unroll 4
  for (std::int64_t k = at + lane; k < end; k += 32) f(row_of_entry(begin, first, last, k), k);
}

// Threads, a power of two, for each row of a matrix: about half its entries on average, so that most have two.
inline int lanes_of_row(std::int64_t rows, std::int64_t nonzeros) {
  int lanes = 2;
  while (lanes < 32 && 4 * lanes * rows <= 2 * nonzeros) lanes *= 2;
  return lanes;
}

} // namespace tcbound::compact
