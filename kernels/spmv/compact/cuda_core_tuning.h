#pragma once

// For tests: spmv/compact/cuda_core with its choices laid open, and the CSR back from it. A format built here is multiplied by
// the registered kernel. No CUDA here.

#include <cstdint>
#include <memory>
#include <vector>

#include "../csr/recovered.h"
#include "format.h"

namespace tcbound::compact {

struct BuildChoices {
  bool allow_constant = true; // slices without values
  int  levels = 0;            // most slices of a column: 1: no columns; 0: as many as suit the device
  bool march = true;          // where rows are a stencil on a box; false: slices, in columns or not
};

std::unique_ptr<Format> build_cuda_core(Executor &executor, const CsrView &view, const BuildChoices &choices);

// How the rows are stored.
const Census &census_of(const Format &format);

// Slices that are multiplied in columns.
std::int64_t slices_in_columns(const Format &format);

// Rows that are multiplied by a march.
std::int64_t marched_rows(const Format &format);

// Row patterns whose values are among the hot segments (hot.h), with or without their offsets.
std::int64_t patterns_with_hot_values(Executor &executor, const Format &format);

csr::RecoveredCsr recover_cuda_core(Executor &executor, const Format &format);

} // namespace tcbound::compact
