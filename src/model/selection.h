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

// Brings candidates into the order of their predicted time. SpMV is memory-bound everywhere (its arithmetic intensity is below
// 1/4 FLOP/byte, or, where a format stores next to nothing, limited by the vectors), so on one memory the fewest bytes win; a
// device's memory is an order of magnitude faster than a host's, so device kernels come first. Ties go to the earlier row of
// list.def.
inline void rank(std::vector<Candidate> &candidates) {
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate &a, const Candidate &b) {
    const bool a_device = a.kernel->space() == MemorySpace::cuda, b_device = b.kernel->space() == MemorySpace::cuda;
    return a_device != b_device ? a_device : a.work.bytes < b.work.bytes;
  });
}

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

// Whether a format that turned out to take `built` should give way to the next candidate: that one may turn out to take more than
// it promises, so it must promise to move 2 % less.
inline bool gives_way(const Candidate &candidate, const Work &built, const Candidate &next) {
  return candidate.kernel->space() == next.kernel->space() &&
         static_cast<double>(next.work.bytes) <= 0.98 * static_cast<double>(built.bytes);
}

} // namespace tcbound
