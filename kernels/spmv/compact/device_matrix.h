#pragma once

// A matrix of format compact in device memory.

#include <vector>

#include "../csr/packed_product.h"
#include "columns.h"
#include "cuda_core_tuning.h"
#include "format.h"
#include "hot.h"
#include "marched.h"

namespace tcbound::compact {

constexpr int block_slices = 8; // that a thread block multiplies at a time, one a warp

// What the host needs of a dictionary.
struct Renewed {
  ConstantSegment hot[most_hot_segments];
  int             hot_count;
  int             parted; // rows that share a pattern do not share their values any more: nothing is new
};

// All slices of one kind, with their dictionary and exceptions.
struct Section {
  int                          depth = 1; // times block_slices slices are a block's
  Array<Slice>                 slices;
  Array<std::int32_t>          partial_begin; // of each slice's partial rows, and where the last slice's end
  Array<Partial>               partials;
  Array<Pattern>               patterns;
  Array<Segment>               segments;           // of offset patterns
  Array<ConstantSegment>       constant_segments;  // of row patterns
  std::vector<ConstantSegment> hot_segments;       // of frequent patterns, the most frequent one first, on the host (hot.h)
  int                          first_segments = 0; // of the most frequent pattern
  Array<Renewed>               renewed;            // of constant slices, with `parted` 0
  Array<Exception>             exceptions;
  Array<std::int64_t>          value_begin;      // of each explicit slice's values
  Array<std::int64_t>          exception_values; // where each exception's first value is; its next is slice_rows further on
  Array<double>                values;
  Columns                      columns; // that constant slices are multiplied by, if any are
  Marched                      marched; // constant rows that are multiplied by a march, if any are

  // Of the arrays that a product reads, and of all.
  std::int64_t read_bytes() const;
  std::int64_t bytes() const;
};

struct DeviceMatrix {
  csr::DeviceArrays   csr; // sizes and row offsets; columns and values are released once the rest is built
  Section             constant, explicit_;
  Array<std::int32_t> remainder_rows;
  csr::DeviceArrays   remainder; // row i stands for row remainder_rows[i]; its columns are packed in remainder_product
  csr::PackedProduct  remainder_product;
  Array<float>        narrow_values; // of the remainder, in place of remainder.values while each is exact in 32 bits
  Census              census;

  void count_bytes() { // once all else is there
    census.marched_rows = constant.marched.marcher ? constant.marched.rows : 0;
    census.bytes = constant.read_bytes() + explicit_.read_bytes() + remainder_rows.bytes() + remainder.bytes() +
                   narrow_values.bytes() + remainder_product.bytes();
  }
  std::int64_t bytes() const {
    return csr.bytes() + constant.bytes() + explicit_.bytes() + remainder_rows.bytes() + remainder.bytes() +
           remainder_product.bytes() + narrow_values.bytes();
  }
};

// Finds the patterns and stores the matrix by them; `csr` is consumed.
DeviceMatrix build(Executor &executor, csr::DeviceArrays csr, const BuildChoices &choices);

// New values in the order of the CSR, in device memory. False, with the matrix unchanged, when rows that share a row pattern
// would have to part.
bool refill(Executor &executor, DeviceMatrix &matrix, const double *values);

// The CSR, bit for bit.
csr::DeviceArrays recover(Executor &executor, const DeviceMatrix &matrix);

void diagonal(Executor &executor, const DeviceMatrix &matrix, double *d);

// z = alpha A x + beta y (product.transpose is not looked at).
void multiply(Executor &executor, DeviceMatrix &matrix, const Product &product);

// Takes the values that the host has of the most frequent pattern to the columns, if there are any.
void renew_columns(Section &section);

// Writes the values of the explicit slices and of the remainder, and nothing else.
void fill_values(Executor &executor, DeviceMatrix &matrix, const double *values);

} // namespace tcbound::compact
