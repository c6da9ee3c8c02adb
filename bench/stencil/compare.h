#pragma once

#include "executor.h"

namespace tcbound::bench {

// How many of `size` numbers differ by more than `tolerance`; 0: in any bit.
std::int64_t count_differences(Executor &executor, const double *found, const double *expected, std::int64_t size,
                               double tolerance);

} // namespace tcbound::bench
