#pragma once

// A stencil operator on one process's part of a regular grid: what op "stencil" multiplies with. Coefficients only, no indices.

#include <cstdint>
#include <string>
#include <vector>

#include "work.h"

namespace tcbound::grid {

// The cells that a process owns, n[0] x n[1] x n[2] with the first dimension fastest (dimensions not in use have one cell), and how
// many layers of further cells the stencil may read on each side: those of other processes or, where the grid is periodic, of the
// other end. Every cell has dof rows, which follow each other.
struct Extents {
  std::int64_t n[3] = {1, 1, 1};
  int          low[3] = {0, 0, 0}, high[3] = {0, 0, 0};
  int          dof = 1;

  std::int64_t cells() const { return n[0] * n[1] * n[2]; }
  std::int64_t rows() const { return cells() * dof; }
  std::int64_t ghosted(int d) const { return low[d] + n[d] + high[d]; }
  std::int64_t ghosted_cells() const { return ghosted(0) * ghosted(1) * ghosted(2); }
  bool         layered() const { return low[0] + low[1] + low[2] + high[0] + high[1] + high[2] > 0; }
};

// One entry of a row: component `component` of the cell that lies `offset` cells away.
struct Slot {
  int offset[3] = {0, 0, 0};
  int component = 0;
};

struct Range {
  std::int64_t begin = 0, end = 0;

  std::int64_t size() const { return end > begin ? end - begin : 0; }
};

// Cells begin[d] <= i[d] < end[d] of the owned ones.
struct Box {
  std::int64_t begin[3] = {0, 0, 0}, end[3] = {0, 0, 0};

  std::int64_t cells() const;
};

// Which cells a product computes: all, those whose rows need no layer, or the others. The interior can run while layers are under
// way.
enum class Part { all, interior, shell };

inline bool is_centre(const Slot &slot) { return !slot.offset[0] && !slot.offset[1] && !slot.offset[2]; }

// Whether the slot is at the cell itself or after it: of two slots that are each other's mirror images, the one that is stored.
inline bool in_stored_half(const Slot &slot) {
  const int *o = slot.offset;
  return o[2] != 0 ? o[2] > 0 : o[1] != 0 ? o[1] > 0 : o[0] >= 0;
}

/*
  The coefficient of slot s in row `row` (component c) of a cell is
    of a slot with an array   arrays[s][row],
    of an exception   patterns[(pattern * slots + s) * dof + c],
    else   constants[s * dof + c].
  Entries whose cell does not exist (outside of all layers) are not there, whatever is stored for them. Where slots have arrays,
  exceptions are the rows that are not symmetric if all others are; arrays have their coefficients too.
*/
struct Stencil {
  Extents                          extents;
  std::vector<Slot>                slots;
  std::vector<double>              constants;
  std::vector<std::vector<double>> arrays;     // empty: the slot is constant
  std::vector<std::int64_t>        exceptions; // cells, ascending
  std::vector<std::int32_t>        exception_patterns;
  std::vector<double>              patterns;
  // If the coefficients are symmetric but for exceptions, of each slot the one that is its mirror image; else empty. Both have arrays, or
  // both are constant. One component only.
  std::vector<int> mirrors;

  int  slot_count() const { return static_cast<int>(slots.size()); }
  int  array_count() const;
  bool exists(const Slot &slot, std::int64_t i, std::int64_t j, std::int64_t k) const;
  // The coefficient of slot s in a row, as stored.
  double coefficient(int s, std::int64_t cell, int c) const;

  // How far the slots reach below (negative) and above a cell.
  int reach_low(int d) const;
  int reach_high(int d) const;
  // The cells of a part, as boxes without cells in common; none is empty.
  std::vector<Box> boxes(Part part) const;
  // The largest part in the middle that has no exceptions, found by taking layers off the sides.
  Box core() const;
  // Whether all exceptions have an entry on the diagonal only.
  bool diagonal_exceptions() const;
  // Whether the exceptions are all cells outside of the core, and all of one kind that has an entry on the diagonal only: rows of a
  // multiple of the identity, as Dirichlet's conditions make them.
  bool diagonal_outside(const Box &core, double *diagonal) const;

  // Of the rows of a part; layers belong to the shell. halved: of symmetric coefficients only one half is read.
  Work         work(bool accumulate, Part part = Part::all, bool halved = false) const;
  std::int64_t coefficient_bytes(bool halved = false) const;
  std::string  describe(bool halved = false) const;

  // All slots' coefficients row by row.
  std::vector<std::vector<double>> expand() const;
};

// The coefficients of all rows, one array of extents.rows() per slot, stored as briefly as they allow without loss: slots that are
// 0 in every row are left out, those that are the same bits in every row are kept once; where most cells' rows are the same, rows
// that differ become exceptions. Entries whose cell does not exist do not count.
Stencil compress(const Extents &extents, const std::vector<Slot> &slots, std::vector<std::vector<double>> arrays);

} // namespace tcbound::grid
