#pragma once

#include <vector>

#include "measurement.h"

// The ceilings of the host, reached by a number of threads at once.

namespace tcbound::calibrate {

int              host_cores();            // that this process may use
std::vector<int> thread_counts(int most); // 1, 2, 4, ... and `most`

// Copy, scale, triad and read on arrays several times the last-level cache; bandwidth and capacity of that cache; FP64 multiply-adds. Bytes are
// those that the program reads and writes, as in STREAM (J. McCalpin): without the lines that a cache reads before it writes.
Measurements measure_host(int threads, const Progress &progress);

} // namespace tcbound::calibrate
