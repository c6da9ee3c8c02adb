#pragma once

// For benchmarks and tests only: spmv/csr/cuda_core with every choice it makes laid open. A format built here is applied by
// the registered kernel. No CUDA here, so that programs compiled without nvcc may include it.

#include <memory>
#include <string>
#include <vector>

#include "kernel.h"

namespace tcbound::csr {

// How a chunk's rows are summed.
enum class ChunkMode {
  automatic, // whichever the cost model of chunks.cu prefers for that chunk
  rows,      // a few lanes a row multiply and add
  stream,    // all threads multiply entries in stored order, then a few lanes a row add the products
};

struct CudaCoreConfig {
  int       threads = 128;  // of a block, a multiple of 32, at most 256
  int       entries = 1792; // that a chunk should have, about; 12 bytes of shared memory each
  int       stages = 1;     // buffers of a block: with 2 it copies a chunk while it works on another
  int       group = 1;      // chunks that a block works on, one after another
  ChunkMode mode = ChunkMode::automatic;
  bool      evict_first = true;   // matrix entries leave L2 before x does (compute capability 9 and newer)
  bool      wide_offsets = false; // 64-bit row offsets even where 32 bits would do
};

struct CudaCoreVariant {
  const char    *name;
  CudaCoreConfig config;
};

const std::vector<CudaCoreVariant> &cuda_core_variants();

std::unique_ptr<Format> build_cuda_core(Executor &executor, const CsrView &view, const CudaCoreConfig &config);

} // namespace tcbound::csr
