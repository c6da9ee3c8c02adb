#pragma once

// Asynchronous copies of single numbers, or of two, from global into shared memory by the threads that wait for them (PTX ISA: cp.async).
// For .cu files only.

#include <cuda_runtime.h>

namespace tcbound {

__device__ __forceinline__ void copy_cell(double *to, const double *from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(__cvta_generic_to_global(from))
               : "memory");
}

// Zeros where nothing exists; `from` must be the address of a number all the same. Pairs: at multiples of 16 bytes; the L2 brings all of the
// 128 bytes that they are in, which tiles share.
__device__ __forceinline__ void copy_cell_or_zero(double *to, const double *from, bool exists) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(__cvta_generic_to_global(from)), "r"(exists ? 8 : 0)
               : "memory");
}

__device__ __forceinline__ void copy_pair_or_zero(double *to, const double *from, bool exists) {
  asm volatile(
    "cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
    "l"(__cvta_generic_to_global(from)), "r"(exists ? 16 : 0)
    : "memory");
}

// Ends a group of copies of this thread.
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Until all groups of this thread but the last `pending` have arrived; other threads see them after a barrier.
template <int pending> __device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

} // namespace tcbound
