#pragma once

#include <vector>

#include "../../kernels/kernel.h"

namespace tcbound {

// A kernel that passed check(), where it would run, and the work of one application.
struct Candidate {
  const Kernel *kernel;
  Executor     *executor;
  Work          work;
};

// The candidate of a non-empty list with the least predicted time. SpMV is memory-bound everywhere (its arithmetic
// intensity is below 1/4 FLOP/byte), so on one memory the fewest bytes win; a device's memory is an order of magnitude
// faster than a host's, so device kernels come first. Ties go to the earlier row of list.def.
inline const Candidate &select(const std::vector<Candidate> &candidates) {
  const Candidate *best = &candidates.front();
  for (const Candidate &c : candidates) {
    const bool c_device = c.kernel->space() == MemorySpace::cuda, best_device = best->kernel->space() == MemorySpace::cuda;
    if (c_device != best_device ? c_device : c.work.bytes < best->work.bytes) best = &c;
  }
  return *best;
}

} // namespace tcbound
