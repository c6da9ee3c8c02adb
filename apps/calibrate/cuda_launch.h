#pragma once

#include "../../kernels/cuda/error.h"
#include "../../kernels/executor.h"

// What the .cu files share.

namespace tcbound::calibrate {

inline cudaStream_t stream_of(Executor &device) { return static_cast<cudaStream_t>(device.stream()); }

// As many blocks as the device holds at once: all run from the first to the last cycle.
template <class Kernel> unsigned one_wave(Executor &device, Kernel kernel, int threads) {
  int blocks_per_sm = 0;
  TCBOUND_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_sm, kernel, threads, 0));
  return static_cast<unsigned>(blocks_per_sm * device.device().multiprocessors);
}

// A random number for an index ("lowbias32" of C. Wellons).
__device__ inline std::uint32_t random_of(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352dU;
  x = (x ^ (x >> 15)) * 0x846ca68bU;
  return x ^ (x >> 16);
}

} // namespace tcbound::calibrate
