#pragma once

// For tests: stencil/grid/cuda_core with its choices laid open. A format built here is multiplied by the registered kernel. No CUDA
// here.

#include <memory>

#include "format.h"

namespace tcbound::grid {

struct CudaCoreChoices {
  bool march = true; // near neighbours have kernels of their own; false: all rows are gathered
  int  columns = 0;  // of a tile of a march in 3D: 32 or 64; 0: what suits the grid
  int  planes = 0;   // that a block marches through; 0: as many as fill the device
};

std::unique_ptr<Format> build_cuda_core(Executor &executor, const Stencil &stencil, const CudaCoreChoices &choices);

} // namespace tcbound::grid
