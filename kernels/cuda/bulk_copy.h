#pragma once

// Asynchronous copies of whole pieces of global memory into shared memory that complete on a barrier: one bulk copy (TMA) by
// one thread on compute capability 9 and newer, 16-byte copies by all threads on 8.x. PTX ISA: mbarrier, cp.async,
// cp.async.bulk. Written out rather than taken from cuda::memcpy_async because a bulk copy then carries an L2 eviction hint.

#include <cstdint>

#include <cuda_runtime.h>

namespace tcbound {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define TCBOUND_BULK_COPY 1
#endif

struct CopyBarrier {
  std::uint64_t word;
};

__device__ inline std::uint32_t shared_address(const void *pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// By one thread, before a __syncthreads that all threads pass.
__device__ inline void initialise(CopyBarrier &barrier) {
#ifdef TCBOUND_BULK_COPY
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barrier)) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // the copy engine must see the initialised barrier
#else
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(blockDim.x) : "memory");
#endif
}

// Before the __syncthreads after which shared memory that threads have written is copied over again.
__device__ inline void release_to_copies() {
#ifdef TCBOUND_BULK_COPY
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

#ifdef TCBOUND_BULK_COPY
__device__ inline void bulk_copy(void *to, const void *from, std::uint32_t bytes, CopyBarrier &barrier, std::uint64_t policy) {
  asm volatile(
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
      shared_address(to)),
    "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(&barrier)), "l"(policy)
    : "memory");
}
#else
__device__ inline void block_copy(void *to, const void *from, std::uint32_t bytes) {
  for (std::uint32_t at = 16 * threadIdx.x; at < bytes; at += 16 * blockDim.x)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(static_cast<char *>(to) + at)),
                 "l"(__cvta_generic_to_global(static_cast<const char *>(from) + at))
                 : "memory");
}
#endif

// Starts the copies of two pieces; called by all threads of the block, once per phase of the barrier. Addresses and sizes are
// multiples of 16 bytes. evict_first: the pieces are read once, so they should leave L2 before anything else does.
__device__ inline void copy_two(void *to1, const void *from1, std::uint32_t bytes1, void *to2, const void *from2,
                                std::uint32_t bytes2, CopyBarrier &barrier, bool evict_first) {
#ifdef TCBOUND_BULK_COPY
  if (threadIdx.x == 0) {
    std::uint64_t policy;
    if (evict_first)
      asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    else
      asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes1 + bytes2)
                 : "memory");
    if (bytes1 > 0) bulk_copy(to1, from1, bytes1, barrier, policy);
    if (bytes2 > 0) bulk_copy(to2, from2, bytes2, barrier, policy);
  }
#else
  (void)evict_first;
  block_copy(to1, from1, bytes1);
  block_copy(to2, from2, bytes2);
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(&barrier)) : "memory");
#endif
}

// Waits until the copies of the barrier's phase of that parity (0, 1, 0, ...) have arrived.
__device__ inline void wait(CopyBarrier &barrier, std::uint32_t parity) {
  std::uint32_t done = 0;
  while (!done) {
#ifdef TCBOUND_BULK_COPY
    asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(shared_address(&barrier)), "r"(parity)
                 : "memory");
#else
    asm volatile("{\n .reg .pred p;\n mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(shared_address(&barrier)), "r"(parity)
                 : "memory");
#endif
  }
}

} // namespace tcbound
