#pragma once

// What device code sees of the CSR that a matrix of format sell is built from. For .cu files only.

#include <limits>

#include "../csr/device_format.h"
#include "format.h"

namespace tcbound::sell {

template <class Offset> struct Rows {
  const Offset       *offsets;
  const std::int32_t *columns;
  std::int64_t        count;
  std::int32_t        longest; // entries of a row that is not cut
  std::int32_t        sorted;  // entries of a row whose columns are certain to be in order

  __device__ std::int64_t length(std::int64_t row) const { return static_cast<std::int64_t>(offsets[row + 1]) - offsets[row]; }
};

template <class Offset> Rows<Offset> rows_of(const csr::DeviceArrays &a, const Offset *offsets, std::int32_t longest) {
  return {offsets, a.columns.data(), a.rows, longest, std::numeric_limits<std::int32_t>::max()};
}

namespace {

constexpr int      block = 256;
constexpr unsigned all_lanes = 0xffffffffU;

unsigned grid_for(std::int64_t threads) { return static_cast<unsigned>((threads + block - 1) / block); }

__device__ std::int64_t global_index() { return blockIdx.x * static_cast<std::int64_t>(block) + threadIdx.x; }

__device__ int lane_number() { return static_cast<int>(threadIdx.x % 32); }

} // namespace
} // namespace tcbound::sell
