#pragma once

// For tests only: the CSR back from a format that spmv/tiles/cuda_core has built. No CUDA here, so that programs compiled without nvcc
// may include it.

#include "../csr/recovered.h"
#include "format.h"

namespace tcbound::tiles {

const Census &census_of(const Format &format);

csr::RecoveredCsr recover_cuda_core(Executor &executor, const Format &format);

} // namespace tcbound::tiles
