#pragma once

#include "results.h"
#include "stencil/iterated/iterated.h"

namespace tcbound::bench {

// relaxes: damped sweeps of S x = b instead of steps.
struct StencilCase {
  std::string      name;
  stencil::Problem problem;
  bool             relaxes = false;
};

struct StencilOptions {
  std::vector<std::string> kernels; // empty: all
  std::vector<int>         depths;  // empty: all
  int                      repeats = 0;
  Provenance               provenance;
};

// One kernel at one depth; time of a pass. Of relaxations also four sweeps in the passes that the kernel chooses, depth 0.
struct StencilOutcome {
  std::string kernel, mma;
  int         depth = 1, steps = 1;
  bool        from_zero = false;
  double      time_us = 0.0, gcells = 0.0; // gcells: 1e9 cells a second, each step counted
  double      plain_time_us = 0.0;         // the same by the baseline
  Work        work;
  bool        same_bits = true;

  double ratio() const { return plain_time_us / time_us; }
};

struct StencilResult {
  std::string                 name;
  int                         repeats = 0;
  double                      plain_time_us = 0.0; // a step of the baseline, the plain kernel, from cells
  std::string                 baseline;
  std::vector<StencilOutcome> outcomes;
  std::vector<std::string>    failures;
};

// Checks every kernel at every depth on all cells, then times it.
StencilResult measure(const StencilCase &one, Executor &executor, const StencilOptions &options);

} // namespace tcbound::bench
