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

// The share of a memory's bandwidth that a kernel's products reach as a rule, on matrices too large for caches and with an x that
// they find in one: medians over the suite on an H200 (bench/results). Only ratios matter, so host kernels may all have 1.
inline double usual_share(const Kernel &kernel) {
  struct Share {
    const char *kernel;
    double      share;
  };
  static constexpr Share shares[] = {{"spmv/sell/cuda_core", 0.95},        {"spmv/compact/cuda_core", 0.9},
                                     {"spmv/csr/cuda_core", 0.83},         {"spmv/fragments/cuda_core", 0.88},
                                     {"spmv/fragments/tensor_core", 0.88}, {"spmv/csr/cusparse", 0.58}};
  for (const Share &one : shares)
    if (kernel.name() == one.kernel) return one.share;
  return 1.0;
}

// What a product costs, in bytes moved at full bandwidth. SpMV is memory-bound everywhere (its arithmetic intensity is below 1/4
// FLOP/byte, or, where a format stores next to nothing, limited by the vectors).
inline double cost(const Kernel &kernel, const Work &work) { return static_cast<double>(work.bytes) / usual_share(kernel); }

// Brings candidates into the order of what they promise. A device's memory is an order of magnitude faster than a host's, so device
// kernels come first. Ties go to the earlier row of list.def.
inline void rank(std::vector<Candidate> &candidates) {
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate &a, const Candidate &b) {
    const bool a_device = a.kernel->space() == MemorySpace::cuda, b_device = b.kernel->space() == MemorySpace::cuda;
    return a_device != b_device ? a_device : cost(*a.kernel, a.work) < cost(*b.kernel, b.work);
  });
}

// Whether a candidate may cost less than a format that costs `best`: what it promises is the least that can come of it.
inline bool worth_building(const Candidate &candidate, double best) { return cost(*candidate.kernel, candidate.work) < best; }

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
