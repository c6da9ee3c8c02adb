#pragma once

#include "results.h"
#include "stencil/iterated/iterated.h"

namespace tcbound::bench {

struct StencilCase {
  std::string      name;
  stencil::Problem problem;
};

struct StencilOptions {
  std::vector<std::string> kernels; // empty: all
  std::vector<int>         depths;  // empty: all
  int                      repeats = 0;
  Provenance               provenance;
};

// One kernel at one depth; time of a pass.
struct StencilOutcome {
  std::string kernel, mma;
  int         depth = 1;
  double      time_us = 0.0, gcells = 0.0, ratio = 0.0; // gcells: 1e9 cells a second, each step counted; ratio: to plain steps
  Work        work;
  bool        same_bits = true;
};

struct StencilResult {
  std::string                 name;
  int                         repeats = 0;
  double                      plain_time_us = 0.0; // a step of the baseline, the plain kernel
  std::string                 baseline;
  std::vector<StencilOutcome> outcomes;
  std::vector<std::string>    failures;
};

// Checks every kernel at every depth on all cells, then times it.
StencilResult measure(const StencilCase &one, Executor &executor, const StencilOptions &options);

} // namespace tcbound::bench
