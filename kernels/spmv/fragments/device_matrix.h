#pragma once

#include <array>

#include "arithmetic.h"
#include "layout.h"
#include "spmv/csr/device_format.h"
#include "tuning.h"

namespace tcbound::fragments {

// What was built, counted.
struct Counts {
  // Groups by the number of their steps: of class 0, of class 1, of the others.
  std::array<std::array<std::int64_t, max_step_count + 1>, 3> groups{};
  std::int64_t                                                wide_groups = 0;
  std::int64_t                                                medium_groups = 0; // with 24-bit columns
  std::int64_t                                                listed_nodes = 0;  // of groups whose rows are not in order
  std::int64_t                                                long_rows = 0;
  std::int64_t                                                long_parts = 0;

  std::int64_t steps() const; // of all groups
};

// One matrix in device memory in the order of layout.h.
class DeviceMatrix {
public:
  DeviceMatrix() = default;

  // Takes the offsets of `a`, whose columns and values are not needed any more.
  // Lossy arithmetic rounds the values to its type.
  DeviceMatrix(Executor &executor, csr::DeviceArrays &a, const Config &config, Arithmetic arithmetic);

  void refill(Executor &executor, const double *values); // in device memory, in the order of the CSR

  // The CSR it was built from, bit for bit but for values that were rounded.
  csr::DeviceArrays recover(Executor &executor) const;

  void diagonal(Executor &executor, double *d) const;

  // What a product reads of the matrix.
  std::int64_t product_bytes() const;
  std::int64_t stored_bytes() const;

  Arithmetic           arithmetic = Arithmetic::fp64;
  std::int64_t         rows = 0, columns_count = 0, nonzeros = 0;
  int                  max_steps = 1;
  int                  node = 1;     // rows that share their columns, 1 to 4
  int                  siblings = 1; // nodes that do
  csr::DeviceArrays    offsets;      // no columns, no values
  Array<std::int32_t>  sorted_nodes; // by their numbers; of 1 row: rows
  Array<Group>         groups;
  int                  ragged_sorted = 0; // rows that are sorted by themselves where groups are ragged
  Array<RaggedLengths> ragged;            // then, of each group
  Array<std::uint8_t>  ragged_places;     // and of each row (ragged_row())
  Array<std::uint8_t>  data;
  Array<std::int32_t> long_begin; // first group of each long row, and of what comes behind; these are the first rows and groups
  Array<double>       parts;      // of long rows, one a group
  Array<unsigned>     arrivals;   // of parts; 0 between products
  Counts              counts;
};

} // namespace tcbound::fragments
