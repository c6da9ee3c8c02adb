#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "executor.h"

namespace tcbound {

// What a device's hardware counters say of one piece of work. NaN where the chip has no such counter.
struct Counts {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

  double dram_read_bytes = unknown, dram_write_bytes = unknown;
  double l2_bytes = unknown;                               // asked of L2: reads, writes and atomics of all kinds
  double fma = unknown, add = unknown, multiply = unknown; // FP64 instructions of CUDA cores, each thread's counted
  double mma_instructions = unknown, mma_flops = unknown;  // FP64 tensor cores: instructions of warps, and their operations

  double dram_bytes() const { return dram_read_bytes + dram_write_bytes; }
  double flops() const { return 2 * fma + add + multiply + (mma_flops == mma_flops ? mma_flops : 0); }
};

class Counters {
public:
  virtual ~Counters() = default;
  virtual MemorySpace space() const = 0; // whose kernels it counts

  // Runs `work` once so that caches and libraries are as in a long run, and then once for every pass that the counters need: it
  // must do the same each time. Everything that the device does meanwhile is counted, so that it is waited for before and after.
  virtual Counts measure(const std::function<void()> &work) = 0;

  // What the device or its library cannot count, in sentences; more may be known after a measurement.
  virtual std::vector<std::string> missing() const = 0;
};

// Of the executor's device. Error(unsupported) says why there are none: no library, a driver that forbids them.
std::unique_ptr<Counters> make_cuda_counters(Executor &executor);

// The counters' names on a chip as its library calls it (GH100), and the passes that they take together; needs the library but
// no device.
struct CounterPlan {
  std::vector<std::string> metrics, missing;
  std::size_t              passes = 0;
};
CounterPlan plan_counters(const std::string &chip);

} // namespace tcbound
