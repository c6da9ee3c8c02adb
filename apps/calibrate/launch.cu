// What it costs to start a kernel.
#include <chrono>

#include "cuda_launch.h"
#include "device.h"
#include "timing.h"

namespace tcbound::calibrate {
namespace {

__global__ void empty() {}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Measurement measure_back_to_back(Executor &device) {
  const int   launches = 2000, repeats = 15;
  Measurement m("launch_back_to_back", "launch, back to back", "an empty kernel, one of 2000 in a row", Quantity::time);
  for (int i = -1; i < repeats; ++i) {
    const auto start = Clock::now();
    for (int k = 0; k < launches; ++k) empty<<<1, 1, 0, stream_of(device)>>>();
    TCBOUND_LAUNCHED();
    device.synchronize();
    if (i >= 0) m.values.push_back(seconds_since(start) / launches);
  }
  return m;
}

Measurement measure_round_trip(Executor &device) {
  const int   repeats = 300, uncounted = 20;
  Measurement m("launch_and_sync", "launch and sync", "an empty kernel until the host knows that it ended", Quantity::time);
  for (int i = -uncounted; i < repeats; ++i) {
    const auto start = Clock::now();
    empty<<<1, 1, 0, stream_of(device)>>>();
    TCBOUND_LAUNCHED();
    device.synchronize();
    if (i >= 0) m.values.push_back(seconds_since(start));
  }
  return m;
}

Measurement measure_interval(Executor &device) {
  Measurement m("launch_between_events", "launch between events", "an empty kernel as device events time it", Quantity::time);
  m.field = {"launch_seconds"};
  m.values = seconds_of(device, 300, [&] {
    empty<<<1, 1, 0, stream_of(device)>>>();
    TCBOUND_LAUNCHED();
  });
  return m;
}

} // namespace

Measurements measure_launch(Executor &device, const Progress &progress) {
  Measurements all;
  progress("launch latency");
  all.push_back(measure_back_to_back(device));
  all.push_back(measure_round_trip(device));
  all.push_back(measure_interval(device));
  return all;
}

} // namespace tcbound::calibrate
