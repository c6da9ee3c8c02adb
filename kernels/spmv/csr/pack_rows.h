#pragma once

#include "kernel.h"

namespace tcbound::csr {

// x anew for loads of whole rows: `at_a_time` (2, 4, 8 or 16) of its columns side by side, row after row, then the next so many.
// Columns from the last one to the `padded`-th, a multiple of at_a_time, are 0. For products with several columns on a device.
void pack_rows(Executor &executor, const double *x, std::int64_t rows, const Columns &by, int at_a_time, std::int64_t padded,
               double *packed);

} // namespace tcbound::csr
