#pragma once

// A matrix of format sell in device memory.

#include "../csr/device_format.h"
#include "cuda_core_tuning.h"
#include "format.h"

namespace tcbound::sell {

struct DeviceMatrix {
  csr::DeviceArrays csr;             // sizes and row offsets; columns and values are released once the rest is built
  int               log2_window = 0; // of the rows of one
  Array<Slice>      slices;          // first the parts of long rows, then the windows' slices
  Array<Part>       parts;
  // In its window, of the row of each lane of each slice that is no part; empty if none is permuted.
  Array<std::uint16_t> places;
  Array<std::uint8_t>  columns;
  Array<std::uint8_t>  values;   // census.value_bytes each: of bfloat16, float or double, as narrow as all are exact in
  Array<int>           inexact;  // 0; 1 once a new value is not exact in so many; only of narrow values
  Array<double>        sums;     // of parts
  Array<std::uint32_t> arrivals; // of sums, for each long row; 0 between products
  // Of a renumbered matrix: the row of each lane, -1: none, in place of `places`; what number its column i has without; which entry
  // of its row comes at each step; x in the new order.
  Array<std::int32_t>  rows, column_order;
  Array<std::uint16_t> step_entries;
  Array<double>        renumbered_x;
  Census               census;

  std::int64_t entries() const { return census.entries(); }
  std::int64_t bytes() const {
    return csr.bytes() + slices.bytes() + parts.bytes() + places.bytes() + rows.bytes() + column_order.bytes() +
           step_entries.bytes() + renumbered_x.bytes() + columns.bytes() + values.bytes() + inexact.bytes() + sums.bytes() +
           arrivals.bytes();
  }
};

// `csr` is consumed.
DeviceMatrix build(Executor &executor, csr::DeviceArrays csr, const CudaCoreConfig &config);

// New values in the order of the CSR, in device memory.
void refill(Executor &executor, DeviceMatrix &matrix, const double *values);

// The CSR, bit for bit.
csr::DeviceArrays recover(Executor &executor, const DeviceMatrix &matrix);

void diagonal(Executor &executor, const DeviceMatrix &matrix, double *d);

// z = alpha A x + beta y (product.transpose is not looked at).
void multiply(Executor &executor, DeviceMatrix &matrix, const Product &product, const CudaCoreConfig &config);

} // namespace tcbound::sell
