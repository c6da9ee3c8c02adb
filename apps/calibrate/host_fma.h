#pragma once

#include <cstdint>
#include <vector>

// Loops of FP64 multiply-adds on vector registers.

namespace tcbound::calibrate {

struct FmaLoop {
  const char *name;  // of the instructions
  double      flops; // of one iteration
  // The result depends on every operation.
  double (*run)(std::int64_t iterations, double factor, double summand);
};

std::vector<FmaLoop> fma_loops(); // that this processor can run

} // namespace tcbound::calibrate
