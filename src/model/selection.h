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

// Bytes at the memory's bandwidth, of which as many and `gathered` ones have to pass the second-level cache.
inline double bytes_moved(std::int64_t bytes, double gathered) {
  return std::max(static_cast<double>(bytes), (static_cast<double>(bytes) + gathered) / cache_over_memory);
}

// What a product, or one in place, costs in bytes moved at full bandwidth. SpMV is memory-bound everywhere (its arithmetic intensity
// is below 1/4 FLOP/byte, or, where a format stores next to nothing, limited by the vectors). gathered: the bytes that loading x takes
// of the second-level cache, where a format does so row by row.
inline double cost(const Format &format, bool in_place, double gathered = 0.0) {
  const Work work = in_place ? format.work_in_place(false) : format.work(false, false);
  return bytes_moved(work.bytes, format.gathers() ? gathered : 0.0) / format.usual_share();
}

// The least that it can come to, before the format is built.
inline Work promised_work(const Kernel &kernel, const Problem &problem) {
  return problem.in_place ? kernel.predict_in_place(problem, false) : kernel.predict(problem, false, false);
}

// Brings candidates into the order of what they promise, the fewest bytes first. A device's memory is an order of magnitude faster
// than a host's, so device kernels come first. Ties go to the earlier row of list.def.
inline void rank(std::vector<Candidate> &candidates) {
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate &a, const Candidate &b) {
    const bool a_device = a.kernel->space() == MemorySpace::cuda, b_device = b.kernel->space() == MemorySpace::cuda;
    return a_device != b_device ? a_device : a.work.bytes < b.work.bytes;
  });
}

// Whether a candidate may cost less than a format that costs `best`: what it promises is the least that can come of it.
inline bool worth_building(const Candidate &candidate, double best, double gathered = 0.0) {
  return bytes_moved(candidate.work.bytes, candidate.kernel->gathers() ? gathered : 0.0) < best;
}

// Leaves out kernels on tensor cores, unless there is nothing else: their twins on CUDA cores move the same bytes, and nothing is gained
// where bytes decide. They are there to be asked for by name, or found by measuring.
inline void leave_out_tensor_cores(std::vector<Candidate> &candidates) {
  const auto on_tensor_cores = [](const Candidate &one) { return one.kernel->backend() == "tensor_core"; };
  if (!std::all_of(candidates.begin(), candidates.end(), on_tensor_cores))
    candidates.erase(std::remove_if(candidates.begin(), candidates.end(), on_tensor_cores), candidates.end());
}

} // namespace tcbound
