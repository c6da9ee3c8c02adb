#pragma once

// A matrix of format diagonals in device memory.

#include <vector>

#include "../csr/chunked_product.h"
#include "cuda_core_tuning.h"

namespace tcbound::diagonals {

// An offset as a thread needs it: how far from its own node the other one is, and from its own place of the first plane its block's
// first value. If mirrored, the block lies transposed.
struct Offset {
  std::int64_t value;
  std::int32_t other;
  std::int32_t mirrored;
};

struct DeviceMatrix {
  csr::DeviceArrays csr; // sizes and row offsets; columns and values are released once the rest is built
  Table             table;
  std::int64_t      nodes = 0, stride = 0; // of a plane: its values, and how far it is to the next
  std::int64_t      line = 0, plane = 0; // of a grid, in nodes: to the neighbour in the second and third direction; 0: not seen
  std::vector<Offset> offsets;           // in the order in which entries are added up
  Array<std::uint8_t> values;
  Array<std::uint8_t> irregular;      // 1 for each row of the remainder; empty if none are or all
  Array<std::int32_t> remainder_rows; // empty if all are
  csr::DeviceArrays   remainder;      // row i stands for row remainder_rows[i]
  csr::ChunkedProduct remainder_product;
  Census              census;

  std::int64_t bytes() const {
    return csr.bytes() + values.bytes() + irregular.bytes() + remainder_rows.bytes() + remainder.bytes() +
           remainder_product.table().bytes();
  }
};

// Bytes that each of some values in device memory takes if nothing of it is to be lost: 2, 4 or 8.
int value_width(Executor &executor, const double *values, std::int64_t count);

// Chooses the offsets and stores the matrix by them; `csr` is consumed, but where its columns and values are borrowed they are not kept.
DeviceMatrix build(Executor &executor, csr::DeviceArrays csr, bool borrowed, const BuildChoices &choices);

// New values in the order of the CSR, in device memory. Unless `done`, recover() still gives the pattern, with values of no meaning.
enum class Refilled {
  done,
  not_stored,   // some are not exact in as few bits as the old ones, or look like absent ones
  not_symmetric // and the old ones were
};
Refilled refill(Executor &executor, DeviceMatrix &matrix, const double *values);

// The CSR, bit for bit.
csr::DeviceArrays recover(Executor &executor, const DeviceMatrix &matrix);

void diagonal(Executor &executor, const DeviceMatrix &matrix, double *d);

// z = alpha A x + beta y (product.transpose is not looked at).
void multiply(Executor &executor, DeviceMatrix &matrix, const Product &product, const Tile &tile);

// The same with several columns, of values in 64 bits up to 8 a pass through the regular rows; passes_of_columns(): how many passes
// that makes.
void         multiply_columns(Executor &executor, DeviceMatrix &matrix, const Product &product, const Columns &columns,
                              const Tile &tile);
std::int64_t passes_of_columns(const DeviceMatrix &matrix, std::int64_t count);

} // namespace tcbound::diagonals
