#pragma once

#include "cuda/algorithms.h"
#include "cuda_core_tuning.h"
#include "device_matrix.h"
#include "grid.h"

namespace tcbound::compact {

// Puts the constant slices of a section that have its most frequent pattern into columns, if that is a stencil of columns.h and
// the columns are worth it. listed: the number of each slice in the cut.
void build_columns(Executor &executor, Algorithms &algorithms, const Grid &grid, const Cut &cut, const std::int32_t *listed,
                   const BuildChoices &choices, Section &section);

} // namespace tcbound::compact
