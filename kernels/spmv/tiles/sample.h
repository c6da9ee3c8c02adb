#pragma once

#include "kernel.h"

namespace tcbound::tiles {

// What stretches of a matrix's entries that follow each other tell, for each entry: how many different sectors of 32 bytes of x they are
// in, and how many segments begin, but for those that begin with a row. Of no entries, or if all of x fits into a first-level cache: 0.
struct Sample {
  double sectors = 0.0, segments = 0.0;

  // Else what is asked for comes from the first-level cache as a rule.
  bool gathers() const { return sectors >= 0.5; }
};

// Of a matrix in the executor's memory, whatever the widths of its indices.
Sample take_sample(Executor &executor, const CsrView &view);

} // namespace tcbound::tiles
