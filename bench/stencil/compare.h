#pragma once

#include "executor.h"

namespace tcbound::bench {

// How many of the first `cells` numbers of each line, which begin `pitch` apart, differ by more than `tolerance`; 0: in any bit.
std::int64_t count_differences(Executor &executor, const double *found, const double *expected, std::int64_t lines,
                               std::int64_t cells, std::int64_t pitch, double tolerance);

} // namespace tcbound::bench
