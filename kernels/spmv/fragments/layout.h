#pragma once

// A matrix in the order in which the lanes of a warp take it to the matrix units of a GPU. No CUDA here.
//
// Rows come in groups, each for one warp. A step gives the warp 128 slots, each for an entry: slot j of lane l lies in slice j of 4.
// A slice is the A operand of m8n8k4 (8 fragment rows of 4 slots, lane l at fragment row l / 4 and slot l % 4), and x at the
// entries' columns is its B operand in the same lanes, so that a lane multiplies what it has loaded itself and the sums stand on
// the diagonal of C. CUDA cores take the same lanes and add up the fragment rows by shuffles.
//
// A row has 2^c slots of a step, c its class by length: 1 slot if it has an entry or none, 2 slots if it has two (several rows
// share a fragment row), else a fragment row of 4, or as many fragment rows as keep the number of steps at most max_steps. Rows
// of more than max_steps * 128 entries are cut into parts of so many, a group each.
//
//   class c             0   1   2   3   4   5   6   7
//   lanes of a row      1   2   4   4   4   8  16  32
//   slots of its lanes  1   1   1   2   4   4   4   4
//   rows of a group   128  64  32  16   8   4   2   1
//
// A lane's slots of a row hold consecutive entries of it. The last step keeps only the first lanes of each row, as many as the
// longest row of the group needs, and rows come sorted by length within windows: nearly nothing is padding.
//
// Where every 2, 3 or 4 consecutive rows have the same columns (the unknowns of a mesh's nodes), they make a node, and what is said
// above of a row holds for nodes: the rows of a node lie in the slices of the same lanes, so that a lane has one column, and
// loads x once, for all its slots (for two with nodes of 2). With nodes of 3 the fourth slot does not exist.
//
//   class c             2   3   4   5
//   lanes of a node     4   8  16  32
//   nodes of a group    8   4   2   1    (twice as many of 2 rows)
//
// Where every 6 or 8 consecutive rows have the same columns, pairs of nodes of 3 or 4 do: siblings. Nothing else changes but that
// both are in the same group, the first at an even place; products with several columns then load x once for both.
//
// Where rows are not in nodes, none is very long and lengths do not differ so much that steps would be mostly empty, all groups are
// ragged: 32 rows of any lengths, the longest first. Row 4 i + j lies in fragment row i of slice j, and each step keeps the lanes that one
// of their four rows needs. The 32 rows follow one another in the matrix, so that they find each other's x in the L1 and the warp writes y
// side by side. Where rows read all over x there is nothing to find, and what counts is how often the L2 is asked, for x and for y: then a
// window of 256 rows makes 8 groups by length, and the block that has the results of a window writes them. For the same reason such groups
// and their columns start at multiples of 128 bytes, and where 16 bits do not reach columns have 24: first the lower 16 of all lanes, then
// the upper 8.
//
// In memory: for each step, slots 0 and 1 of every lane side by side, then slots 2 and 3 (16-byte loads); behind the values the
// columns of each lane's 4 slots side by side (values of 4 and 2 bytes, of lossy products: all 4 slots of a lane side by side, but
// with nodes of 3 as before; columns at a multiple of 16 bytes), as 16-bit distances from the group's least column where its columns span less than
// 65535, else as they are. A slot without an entry has the value 0 and no column: x is not read for it, and what is infinite or
// NaN in x does not come near it.

#include <cstdint>

namespace tcbound::fragments {

constexpr int warp_lanes = 32;
constexpr int slices = 4;
constexpr int step_slots = warp_lanes * slices;
constexpr int classes = 8;
constexpr int longest_class = classes - 1; // a row has a group of its own
constexpr int least_fragment_class = 2;    // from it on a row fills fragment rows; below, they share one

constexpr std::int64_t  unit = 32; // bytes; groups start at multiples of it
constexpr std::uint16_t no_narrow_column = 0xffff;
constexpr std::int32_t  no_medium_column = 0xffffff; // of ragged groups
constexpr std::int32_t  no_wide_column = -1;

// All of these are powers of 2, and kernels shift where dividing would take them tens of instructions.
constexpr int log2_lanes_of(int row_class) { return row_class <= 2 ? row_class : (row_class <= 4 ? 2 : row_class - 2); }
constexpr int lanes_of(int row_class) { return 1 << log2_lanes_of(row_class); }
constexpr int log2_slots_of_lane(int row_class) { return row_class - log2_lanes_of(row_class); }
constexpr int slots_of_lane(int row_class) { return 1 << log2_slots_of_lane(row_class); }
constexpr int rows_of(int row_class) { return step_slots >> row_class; }

constexpr int most_node = 4;
constexpr int longest_node_class = 5; // there are no parts of nodes: rows that would need any are not put into nodes
constexpr int most_siblings = 2;
constexpr int longest_sibling_class = 4; // a group of the next one has one node

constexpr int log2_lanes_of(int row_class, int node) { return node == 1 ? log2_lanes_of(row_class) : row_class; }
constexpr int values_of_lane(int node) { return node == 3 ? 3 : slices; }
constexpr int columns_of_lane(int node) { return node == 1 ? slices : (node == 2 ? 2 : 1); }
// Nodes (of 1: rows) of a full group.
constexpr int nodes_of(int row_class, int node) {
  return node == 1 ? rows_of(row_class) : (warp_lanes >> row_class) * (node == 2 ? 2 : 1);
}

// Entries that a row of that class may have.
constexpr std::int64_t most_entries(int row_class, int max_steps) {
  return row_class < least_fragment_class ? row_class + 1 : static_cast<std::int64_t>(max_steps) << row_class;
}

// For a row of at most max_steps * 128 entries.
constexpr int class_of(std::int64_t entries, int max_steps) {
  int row_class = 0;
  while (row_class < longest_class && entries > most_entries(row_class, max_steps)) ++row_class;
  return row_class;
}

// The same for the rows of nodes.
constexpr int class_of_node(std::int64_t entries, int max_steps) {
  int row_class = least_fragment_class;
  while (row_class < longest_node_class && entries > most_entries(row_class, max_steps)) ++row_class;
  return row_class;
}

// Read by the group's warp with one 16-byte load.
struct alignas(16) Group {
  std::uint64_t at : 37;       // where its values start, in units
  std::uint64_t steps : 6;     // 0: its rows have no entries
  std::uint64_t lanes : 6;     // of a row, that the last step keeps
  std::uint64_t row_class : 3; // of its rows
  std::uint64_t wide : 1;      // columns have 32 bits
  std::uint64_t in_order : 1;  // its rows follow one another in the matrix, `row` being the first
  std::uint64_t rows : 8;      // how many; 0: a part of a long row
  std::uint64_t node : 2;      // rows of a node, less 1
  std::int32_t  base;          // what narrow columns are counted from; 0 where they are wide
  std::int32_t  row;           // place of its first node in the table of sorted nodes, where they do not follow one another
};
static_assert(sizeof(Group) == 16);

constexpr int max_step_count = 63;

constexpr int node_of(const Group &g) { return static_cast<int>(g.node) + 1; }

// In what follows `node` is the group's; kernels know it beforehand.
// Lanes whose slots the last step keeps, all rows of the group together.
constexpr int last_step_lanes(const Group &g, int node) {
  return (warp_lanes >> log2_lanes_of(g.row_class, node)) * static_cast<int>(g.lanes);
}

// Lanes of all steps.
constexpr int stored_lanes(const Group &g, int node) {
  return g.steps == 0 ? 0 : warp_lanes * (static_cast<int>(g.steps) - 1) + last_step_lanes(g, node);
}

constexpr int column_bytes(bool wide) { return wide ? 4 : 2; }
// Bytes of the values of so many lanes. `width`: of a value.
constexpr int value_bytes_of(int lanes, int node, int width) {
  const int bytes = lanes * values_of_lane(node) * width;
  return width == 8 ? bytes : (bytes + 15) / 16 * 16;
}

// Bytes of a group's data, a multiple of the unit. lanes: of all its steps.
constexpr std::int64_t bytes_of(const Group &g, int lanes, int width) {
  const int node = node_of(g), of_columns = lanes * columns_of_lane(node) * column_bytes(g.wide);
  return (value_bytes_of(lanes, node, width) + of_columns + unit - 1) / unit * unit;
}

// Ragged groups: a byte for each fragment row, the lowest for the first, with the length of the longest of its rows. Group::lanes tells
// the bytes of a column.
using RaggedLengths = std::uint64_t;
constexpr int ragged_rows = 32, ragged_window = 256, ragged_class = least_fragment_class, longest_ragged = 255;

constexpr int ragged_length(RaggedLengths lengths, int fragment_row) {
  return static_cast<int>(lengths >> 8 * fragment_row & 0xff);
}

// Lanes of the first `steps` steps.
constexpr int ragged_lanes(RaggedLengths lengths, int steps) {
  int lanes = 0;
  for (int row = 0; row < warp_lanes / 4; ++row) {
    const int length = ragged_length(lengths, row);
    lanes += length < 4 * steps ? length : 4 * steps;
  }
  return lanes;
}

// Where a lane finds its slots in a step.
struct Place {
  int  lanes; // that the step keeps
  int  index; // the lane's number among them
  bool kept;  // whether it is one of them
};
constexpr Place place_of(const Group &g, int node, bool last_step, int lane) {
  const int log2 = log2_lanes_of(g.row_class, node), in_row = lane & ((1 << log2) - 1), lanes = static_cast<int>(g.lanes);
  if (!last_step) return {warp_lanes, lane, true};
  return {last_step_lanes(g, node), (lane >> log2) * lanes + in_row, in_row < lanes};
}

// Where the parts of a ragged group's data begin, in bytes. sorted: rows that are sorted by themselves.
struct RaggedPlan {
  int sorted, lanes, of_column, width; // lanes of all steps; bytes of a column and of a value

  constexpr int aligned(int bytes) const {
    const int to = sorted == ragged_window ? 128 : static_cast<int>(unit);
    return (bytes + to - 1) / to * to;
  }
  constexpr int columns() const { return aligned(lanes * slices * width); }
  constexpr int high_columns() const { return columns() + aligned(lanes * slices * 2); } // of 24 bits the upper 8
  constexpr int end() const {
    return of_column == 3 ? high_columns() + aligned(lanes * slices) : columns() + aligned(lanes * slices * of_column);
  }
};
// span: from the least column of a group to the greatest.
constexpr int ragged_column_bytes(std::int64_t span, int sorted) {
  if (span < no_narrow_column) return 2;
  return sorted == ragged_window && span < no_medium_column ? 3 : 4;
}

// As Place, with the lanes of the steps before.
struct RaggedPlace {
  Place place;
  int   before;
};
constexpr RaggedPlace place_of_ragged(RaggedLengths lengths, int step, int lane) {
  RaggedPlace to = {{0, lane % 4, 4 * step + lane % 4 < ragged_length(lengths, lane / 4)}, 0};
  for (int row = 0; row < warp_lanes / 4; ++row) {
    const int length = ragged_length(lengths, row), left = length - 4 * step, kept = left < 0 ? 0 : (left < 4 ? left : 4);
    to.before += length < 4 * step ? length : 4 * step;
    to.place.lanes += kept;
    if (row < lane / 4) to.place.index += kept;
  }
  return to;
}

// Where a step keeps the value of a slot of the lane at that place: pairs of slots, then what is left of them; or all of the lane.
constexpr bool lanes_side_by_side(int node, int width) { return width < 8 && node != 3; }
constexpr int  value_index(int slice, int node, int width, const Place &place) {
   if (lanes_side_by_side(node, width)) return slices * place.index + slice;
  const bool single = node == 3 && slice == 2;
   return slice / 2 * 2 * place.lanes + (single ? place.index : 2 * place.index + slice % 2);
}

// The row, counted from the group's first, and the entry of it that slot `slice` of a lane holds in step 0; in step t the entry
// is t * 2^c further. Nodes of 3 have no slice 3.
struct Slot {
  int row, entry;
};
constexpr Slot slot_of(int row_class, int node, int lane, int slice) {
  if (node == 2)
    return {2 * ((lane >> row_class) + (warp_lanes >> row_class) * (slice >> 1)) + (slice & 1), lane & ((1 << row_class) - 1)};
  if (node > 2) return {node * (lane >> row_class) + slice, lane & ((1 << row_class) - 1)};
  const int of_row = log2_lanes_of(row_class), of_lane = log2_slots_of_lane(row_class);
  return {(lane >> of_row) + (warp_lanes >> of_row) * (slice >> of_lane),
          ((lane & ((1 << of_row) - 1)) << of_lane) + (slice & ((1 << of_lane) - 1))};
}

// The matrix's row at a place from the first of those that a ragged group's rows are sorted with.
constexpr std::int32_t ragged_row(const Group &g, int sorted, int place) { return g.row / sorted * sorted + place; }
constexpr Slot         slot_of_ragged(int lane, int slice) { return {lane / 4 * slices + slice, lane % 4}; }

// After the sums of the fragment rows have been spread over the lanes, lane 4 i + j has fragment row i of slice j. Those of a row
// are neighbours: 2^(c - 2) lanes (of nodes: as many, at a distance of 4), of which the first stores the result of this row of
// the group.
constexpr int lanes_of_sum(int row_class) { return 1 << (row_class - least_fragment_class); }
constexpr int sum_distance(int node) { return node == 1 ? 1 : slices; }
constexpr int row_of_sum(int row_class, int node, int lane) {
  if (node > 1) return slot_of(row_class, node, lane & ~3, lane & 3).row;
  return row_class >= 4 ? lane >> (row_class - least_fragment_class) : (lane >> 2) + 8 * ((lane & 3) >> (row_class - 2));
}

} // namespace tcbound::fragments
