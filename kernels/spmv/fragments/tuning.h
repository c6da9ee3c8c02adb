#pragma once

// For benchmarks and tests only: spmv/fragments with every choice it makes laid open. A format built here is applied by the
// registered kernels. No CUDA here, so that programs compiled without nvcc may include it.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernel.h"
#include "mma_shape.h"

namespace tcbound::fragments {

struct Config {
  int          max_steps = 24; // of a group, 1 to 63: rows that would need more take more lanes
  std::int64_t window = 16384; // rows that are sorted by length among themselves, in a matrix of short-ranged rows
  int          rounds = 4;     // groups that a warp takes one after another, at most
  bool         nodes = true;   // rows with the same columns share them, where all rows come in nodes
  bool         wide = false;   // 32-bit columns even where 16 bits would do
  // Whether groups are ragged: where rows suit them or, for tests, wherever they can be.
  enum class Ragged { never, suited, always } ragged = Ragged::suited;
};

struct Variant {
  const char *name;
  Config      config;
};

const std::vector<Variant> &variants();

// Which instruction the products take; `automatic` is for kernels without one.
std::unique_ptr<Format> build(Executor &executor, const CsrView &view, MmaShape mma, const Config &config,
                              Arithmetic arithmetic = Arithmetic::fp64);

} // namespace tcbound::fragments
