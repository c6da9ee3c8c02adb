#pragma once

#include "kernel.h"

namespace tcbound::tiles {

// Kernel::gathered_sectors() of a matrix in the executor's memory, whatever the widths of its indices: how many different sectors
// stretches of entries that follow each other ask for, for an entry; 0 if all of x fits into a first-level cache.
double gathered_sectors(Executor &executor, const CsrView &view);

} // namespace tcbound::tiles
