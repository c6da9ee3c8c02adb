#pragma once

// A matrix of format tiles in device memory.

#include "../csr/device_format.h"
#include "format.h"

namespace tcbound::tiles {

constexpr int sum_warps = 16, sum_blocks = 2; // of a block of the first pass; of a multiprocessor

// What a block of the first pass does: consecutive strips of a tile, at most as many as it has warps.
struct alignas(16) Item {
  std::int32_t tile, first_strip, first_chunk;
  std::int32_t chunks;
};
static_assert(sizeof(Item) == 16);

// Rows of the second pass.
struct alignas(8) Bin {
  std::int32_t row, rows;
  std::int32_t first; // where the list of its sums' places starts
  std::int32_t sums_before, sums;
  std::int32_t lanes; // of a row
};
static_assert(sizeof(Bin) == 24);

// The partial sums of a bin's rows in a tile.
struct alignas(8) Run {
  std::int32_t  start; // among all sums; even
  std::uint16_t at;    // among the bin's; even
  std::uint16_t count; // even
};
static_assert(sizeof(Run) == 8);

struct DeviceMatrix {
  csr::DeviceArrays    csr;       // sizes and row offsets; columns and values are released once the rest is built
  Array<std::uint8_t>  values;    // census.value_bytes each, in the order of place_of_stored()
  Array<std::uint16_t> columns;   // of each place: stored_column(), and whether a sum ends there
  Array<std::int32_t>  order;     // of each place: the number of its entry in the CSR, -1: none
  Array<std::int32_t>  tile_of;   // each chunk
  Array<std::int32_t>  first_sum; // of each strip
  Array<Item>          items;
  Array<Bin>           bins;
  Array<Run>           runs;     // of each bin, one a tile
  Array<std::int32_t>  row_sums; // how many sums rows before this one have; rows + 1 elements
  Array<std::uint16_t>
                places; // of rows' sums among their bin's, from the first row's first one on; bins start at multiples of 8
  Array<double> sums;
  Array<int>    inexact; // 0; 1 once a new value is not exact in its few bits; only of narrow values
  Census        census;

  std::int64_t bytes() const {
    return csr.bytes() + values.bytes() + columns.bytes() + order.bytes() + tile_of.bytes() + first_sum.bytes() +
           items.bytes() + bins.bytes() + runs.bytes() + row_sums.bytes() + places.bytes() + sums.bytes() + inexact.bytes();
  }
};

// `csr` is consumed.
DeviceMatrix build(Executor &executor, csr::DeviceArrays csr);

// New values in the order of the CSR, in device memory.
void refill(Executor &executor, DeviceMatrix &matrix, const double *values);

// The CSR, bit for bit.
csr::DeviceArrays recover(Executor &executor, const DeviceMatrix &matrix);

void diagonal(Executor &executor, const DeviceMatrix &matrix, double *d);

} // namespace tcbound::tiles
