#pragma once

#include "kernel.h"

namespace tcbound::compact {

// Whether rows repeat offset patterns in any of some slices of a matrix in the executor's memory, whatever the widths of its indices.
// If not, next to nothing of it would come into constant or explicit slices.
bool repeats_patterns(Executor &executor, const CsrView &view);

} // namespace tcbound::compact
