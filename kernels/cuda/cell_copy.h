#pragma once

// Asynchronous copies of single numbers from global into shared memory by the threads that wait for them (PTX ISA: cp.async).
// For .cu files only.

#include <cuda_runtime.h>

namespace tcbound {

__device__ __forceinline__ void copy_cell(double *to, const double *from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(__cvta_generic_to_global(from))
               : "memory");
}

// Ends a group of copies of this thread.
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Until all groups of this thread but the last `pending` have arrived; other threads see them after a barrier.
template <int pending> __device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

} // namespace tcbound
