#pragma once

// For benchmarks and tests only: spmv/sell/cuda_core with every choice it makes laid open, and the CSR back from it. A format built
// here is multiplied by the registered kernel. No CUDA here, so that programs compiled without nvcc may include it.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../csr/recovered.h"
#include "format.h"

namespace tcbound::sell {

enum class Order { automatic, natural, by_length, by_pattern };
enum class Renumber { automatic, never, always };

struct CudaCoreConfig {
  int      longest = 0;                    // entries of a row that is not cut into parts, at most most_longest; 0: by the mean
  int      part = 2048;                    // entries of a part, about
  int      log2_window = 13;               // of the rows of one; 5 to 15
  Order    order = Order::automatic;       // of the rows of a window
  int      threads = 128;                  // of a block
  int      batch = 0;                      // pairs of steps that a lane has in flight: 2 or 4; 0: by the length of the rows
  bool     narrow_values = true;           // where all are exact in 16 or 32 bits
  Renumber renumber = Renumber::automatic; // rows and columns
};
constexpr int most_longest = 4000;

struct CudaCoreVariant {
  const char    *name;
  CudaCoreConfig config;
};

const std::vector<CudaCoreVariant> &cuda_core_variants();

std::unique_ptr<Format> build_cuda_core(Executor &executor, const CsrView &view, const CudaCoreConfig &config);

const Census &census_of(const Format &format);

csr::RecoveredCsr recover_cuda_core(Executor &executor, const Format &format);

} // namespace tcbound::sell
