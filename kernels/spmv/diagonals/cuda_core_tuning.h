#pragma once

// For benchmarks and tests only: spmv/diagonals/cuda_core with every choice it makes laid open, and the CSR back from it. A format
// built here is multiplied by the registered kernel. No CUDA here, so that programs compiled without nvcc may include it.

#include <memory>
#include <vector>

#include "../csr/recovered.h"
#include "choose.h"

namespace tcbound::diagonals {

// The nodes of a block, in the directions of a grid: if only two are seen, the last one counts for the second.
struct Tile {
  int width = 32, height = 4, depth = 4;
  int many = 1; // nodes of a thread: 1 or, of nodes with one row, 2

  constexpr int threads() const { return width * height * depth; }
};

struct CudaCoreConfig {
  BuildChoices build;
  Tile         tile = {0, 0, 0, 1}; // of width 0: by the number of offsets
};
constexpr int most_threads = 512;

struct CudaCoreVariant {
  const char    *name;
  CudaCoreConfig config;
};

const std::vector<CudaCoreVariant> &cuda_core_variants();

std::unique_ptr<Format> build_cuda_core(Executor &executor, const CsrView &view, const CudaCoreConfig &config);

const Census &census_of(const Format &format);

csr::RecoveredCsr recover_cuda_core(Executor &executor, const Format &format);

} // namespace tcbound::diagonals
