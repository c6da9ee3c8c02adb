#pragma once

#include <cstdint>
#include <functional>

#include "../../kernels/executor.h"

// Timing of work on an executor.

namespace tcbound::calibrate {

// Seconds of each of `repeats` calls; two calls before them are not counted.
inline std::vector<double> seconds_of(Executor &executor, int repeats, const std::function<void()> &launch) {
  const int           uncounted = 2;
  const auto          interval = executor.interval();
  std::vector<double> seconds;
  for (int i = 0; i < uncounted + repeats; ++i) {
    interval->begin();
    launch();
    interval->end();
    const double s = interval->seconds();
    if (i >= uncounted) seconds.push_back(s);
  }
  return seconds;
}

// The number of iterations of a loop on the device that take about that long. Launch latency (some 5 us) is to stay far
// below the time of a pass on every device from a small to a large one.
inline std::int64_t iterations_for(Executor &executor, double seconds, const std::function<void(std::int64_t)> &launch) {
  std::int64_t iterations = 16;
  for (;;) {
    const double spent = seconds_of(executor, 1, [&] { launch(iterations); }).front();
    if (spent > 0.25 * seconds || iterations > (std::int64_t(1) << 28))
      return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(iterations) * seconds / spent));
    iterations *= 4;
  }
}

} // namespace tcbound::calibrate
