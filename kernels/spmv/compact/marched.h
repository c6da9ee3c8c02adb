#pragma once

// Constant rows that are those of a stencil on a box of cells, with exactly the neighbours that the box has: they are multiplied by
// the kernels that march through such boxes (../../stencil/grid/marcher.h), which look at nothing that is stored. No CUDA here.

#include <cstdint>
#include <memory>
#include <vector>

#include "../../stencil/grid/marcher.h"
#include "format.h"
#include "grid.h"

namespace tcbound {
class Algorithms;
}

namespace tcbound::compact {

struct Section;

struct Marched {
  std::int64_t                   n[3] = {0, 0, 0}; // cells; 0: there is no box
  Stencil                        stencil;          // of the section's first pattern
  int                            entries = 0;      // that it has
  std::int64_t                   rows = 0;         // that are marched through
  std::unique_ptr<grid::Marcher> marcher;          // null: none are
  Array<std::uint32_t>           others;           // a bit for each row: not marched through. Empty: all are
  Array<std::int32_t>            rest;             // slices some of whose rows, and exceptions that are not
  Array<Exception>               exceptions;

  std::int64_t bytes() const { return others.bytes() + rest.bytes() + exceptions.bytes(); }
};

// The offsets of the section's most frequent pattern, if it has no more segments than the host knows.
std::vector<std::int32_t> offsets_of_first(const Section &section);

// Looks whether a section's most frequent pattern is a stencil on a box that has a cell for every row and column, and whether enough
// rows are the box's.
bool find_march(Executor &executor, Algorithms &algorithms, const Grid &grid, std::int64_t rows, std::int64_t columns,
                Section &section);

// The same again for new values.
void renew_march(Executor &executor, Section &section);

} // namespace tcbound::compact
