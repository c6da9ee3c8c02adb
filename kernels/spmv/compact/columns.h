#pragma once

// Columns: constant slices one above the other in the grid, multiplied by one warp from the lowest to the highest.
//
// Seen along the last direction of the grid, a stencil is three flat stencils, one below, one at and one above a row. A warp that
// goes up a column loads the x of each plane (in two dimensions: line) once and adds it to the rows above, at and below it, where
// slices one by one would load it three times. The entries of a row are still added from the first to the last.

#include <array>
#include <cstdint>
#include <vector>

#include "executor.h"
#include "format.h"

namespace tcbound::compact {

// A place in a stencil: 9 (plane + 1) + 3 run + (step + 1), for planes and steps -1, 0, 1 and up to three runs of a plane.
constexpr int slots = 27;
constexpr int slot_of(int plane, int run, int step) { return 9 * (plane + 1) + 3 * run + step + 1; }

struct Shape {
  int           runs;  // of a plane
  int           ahead; // planes whose x is loaded before it is needed
  std::uint32_t slots;

  constexpr bool          has(int plane, int run, int step) const { return slots >> slot_of(plane, run, step) & 1; }
  constexpr std::uint32_t with_step(int step) const {
    std::uint32_t found = 0;
    for (int plane = -1; plane <= 1; ++plane)
      for (int run = 0; run < 3; ++run) found |= slots & 1U << slot_of(plane, run, step);
    return found;
  }
};

// The stencils that columns are made for: 27 and 7 points in three dimensions, 9 and 5 in two.
constexpr Shape shapes[] = {
  {3, 0, 0x7ffffff},
  {3, 1,
   1U << slot_of(-1, 1, 0) | 1U << slot_of(0, 0, 0) | 7U << slot_of(0, 1, -1) | 1U << slot_of(0, 2, 0) |
     1U << slot_of(1, 1, 0)},
  {1, 3, 7U << slot_of(-1, 0, -1) | 7U << slot_of(0, 0, -1) | 7U << slot_of(1, 0, -1)},
  {1, 3, 1U << slot_of(-1, 0, 0) | 7U << slot_of(0, 0, -1) | 1U << slot_of(1, 0, 0)},
};
constexpr int shape_count = sizeof(shapes) / sizeof(shapes[0]);

// A row pattern seen as a stencil.
struct Stencil {
  int                                      shape = -1;   // in `shapes`; -1: none of them
  std::int64_t                             stride = 0;   // rows from a plane to the next
  std::array<std::int32_t, 3>              centers = {}; // of the runs of a plane, in rows
  std::array<std::uint8_t, longest_masked> slot = {};    // of each entry

  bool operator==(const Stencil &o) const { return shape == o.shape && stride == o.stride && centers == o.centers; }
};

// Ascending offsets as a stencil on planes of `stride` rows with lines of `line` rows (0 in two dimensions).
Stencil match_stencil(const std::vector<std::int32_t> &offsets, std::int64_t line, std::int64_t stride);

// Slices of which one lies above the other and all of which have the same whole and partial rows.
struct alignas(16) Column {
  std::uint64_t rows;      // that have the whole stencil
  std::int32_t  first_row; // of the lowest slice
  std::int32_t  levels;    // slices
  std::int32_t  partial_begin, partials;
  std::int32_t  unused[2];
};
static_assert(sizeof(Column) == 32);

struct Columns {
  Stencil                   stencil;
  int                       entries = 0; // of the stencil
  std::array<double, slots> values = {};
  bool                      finite = true; // the values
  Array<Column>             columns;
  Array<Partial>            partials; // as the section's, with slots in place of entries
  Array<std::int32_t>       rest;     // numbers of the slices that are in no column

  std::int64_t count() const { return columns.size(); }
  std::int64_t bytes() const { return columns.bytes() + partials.bytes() + rest.bytes(); }
};

} // namespace tcbound::compact
