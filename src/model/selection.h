#pragma once

#include <algorithm>
#include <vector>

#include "../../kernels/kernel.h"

namespace tcbound {

// A kernel that passed check(), where it would run, and the work of one application: the least that it can be, for a kernel that
// knows it only when the format is built.
struct Candidate {
  const Kernel *kernel;
  Executor     *executor;
  Work          work;
};

// What a product costs, in bytes moved at full bandwidth. SpMV is memory-bound everywhere (its arithmetic intensity is below 1/4
// FLOP/byte, or, where a format stores next to nothing, limited by the vectors).
inline double cost(const Format &format) { return static_cast<double>(format.work(false, false).bytes) / format.usual_share(); }

// Brings candidates into the order of what they promise, the fewest bytes first. A device's memory is an order of magnitude faster
// than a host's, so device kernels come first. Ties go to the earlier row of list.def.
inline void rank(std::vector<Candidate> &candidates) {
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate &a, const Candidate &b) {
    const bool a_device = a.kernel->space() == MemorySpace::cuda, b_device = b.kernel->space() == MemorySpace::cuda;
    return a_device != b_device ? a_device : a.work.bytes < b.work.bytes;
  });
}

// Whether a candidate may cost less than a format that costs `best`: what it promises is the least that can come of it.
inline bool worth_building(const Candidate &candidate, double best) { return static_cast<double>(candidate.work.bytes) < best; }

// Leaves out kernels on tensor cores whose twin on CUDA cores is a candidate: it moves the same bytes, and where bytes decide,
// nothing is gained. To be asked for by name, or found by measuring.
inline void leave_out_tensor_twins(std::vector<Candidate> &candidates) {
  const std::vector<Candidate> all = candidates;
  candidates.erase(std::remove_if(candidates.begin(), candidates.end(),
                                  [&](const Candidate &one) {
                                    return one.kernel->backend() == "tensor_core" &&
                                           std::any_of(all.begin(), all.end(), [&](const Candidate &other) {
                                             return other.kernel->backend() == "cuda_core" &&
                                                    other.kernel->op() == one.kernel->op() &&
                                                    other.kernel->format() == one.kernel->format();
                                           });
                                  }),
                   candidates.end());
}

} // namespace tcbound
