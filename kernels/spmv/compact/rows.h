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

} // namespace tcbound::compact
