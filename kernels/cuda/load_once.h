#pragma once

// For .cu files only.

#include <cstdint>

#include <cuda_runtime.h>

namespace tcbound {

// An eviction policy for what is read once, such as a matrix's entries: it leaves the second-level cache before x does.
__device__ inline std::uint64_t once() {
  std::uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

} // namespace tcbound
