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
// In memory: for each step, slots 0 and 1 of every lane side by side, then slots 2 and 3 (16-byte loads); behind the values the
// columns of each lane's 4 slots side by side, as 16-bit distances from the group's least column where its columns span less than
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
constexpr std::int32_t  no_wide_column = -1;

// All of these are powers of 2, and kernels shift where dividing would take them tens of instructions.
constexpr int log2_lanes_of(int row_class) { return row_class <= 2 ? row_class : (row_class <= 4 ? 2 : row_class - 2); }
constexpr int lanes_of(int row_class) { return 1 << log2_lanes_of(row_class); }
constexpr int log2_slots_of_lane(int row_class) { return row_class - log2_lanes_of(row_class); }
constexpr int slots_of_lane(int row_class) { return 1 << log2_slots_of_lane(row_class); }
constexpr int rows_of(int row_class) { return step_slots >> row_class; }

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

// Read by the group's warp with one 16-byte load.
struct alignas(16) Group {
  std::uint64_t at : 37;       // where its values start, in units
  std::uint64_t steps : 6;     // 0: its rows have no entries
  std::uint64_t lanes : 6;     // of a row, that the last step keeps
  std::uint64_t row_class : 3; // of its rows
  std::uint64_t wide : 1;      // columns have 32 bits
  std::uint64_t in_order : 1;  // its rows follow one another in the matrix, `row` being the first
  std::uint64_t rows : 8;      // how many; 0: a part of a long row
  std::int32_t  base;          // what narrow columns are counted from; 0 where they are wide
  std::int32_t  row;           // place of its first row in the table of sorted rows, where they do not follow one another
};
static_assert(sizeof(Group) == 16);

constexpr int max_step_count = 63;

// Lanes whose slots the last step keeps, all rows of the group together.
constexpr int last_step_lanes(const Group &g) { return (warp_lanes >> log2_lanes_of(g.row_class)) * static_cast<int>(g.lanes); }

// Lanes of all steps.
constexpr int stored_lanes(const Group &g) {
  return g.steps == 0 ? 0 : warp_lanes * (static_cast<int>(g.steps) - 1) + last_step_lanes(g);
}

constexpr int column_bytes(bool wide) { return wide ? 4 : 2; }
constexpr int value_bytes_of(const Group &g) { return stored_lanes(g) * slices * 8; }

// Bytes of a group's data, a multiple of the unit.
constexpr std::int64_t bytes_of(const Group &g) {
  return (value_bytes_of(g) + stored_lanes(g) * slices * column_bytes(g.wide) + unit - 1) / unit * unit;
}

// Where a lane finds its slots in a step.
struct Place {
  int  lanes; // that the step keeps
  int  index; // the lane's number among them
  bool kept;  // whether it is one of them
};
constexpr Place place_of(const Group &g, bool last_step, int lane) {
  const int log2 = log2_lanes_of(g.row_class), in_row = lane & ((1 << log2) - 1), lanes = static_cast<int>(g.lanes);
  if (!last_step) return {warp_lanes, lane, true};
  return {last_step_lanes(g), (lane >> log2) * lanes + in_row, in_row < lanes};
}

// The row, counted from the group's first, and the entry of it that slot `slice` of a lane holds in step 0; in step t the entry
// is t * 2^c further.
struct Slot {
  int row, entry;
};
constexpr Slot slot_of(int row_class, int lane, int slice) {
  const int of_row = log2_lanes_of(row_class), of_lane = log2_slots_of_lane(row_class);
  return {(lane >> of_row) + (warp_lanes >> of_row) * (slice >> of_lane),
          ((lane & ((1 << of_row) - 1)) << of_lane) + (slice & ((1 << of_lane) - 1))};
}

// After the sums of the fragment rows have been spread over the lanes, lane 4 i + j has fragment row i of slice j. Those of a row
// are neighbours: 2^(c - 2) lanes, of which the first stores the result of this row of the group.
constexpr int lanes_of_sum(int row_class) { return 1 << (row_class - least_fragment_class); }
constexpr int row_of_sum(int row_class, int lane) {
  return row_class >= 4 ? lane >> (row_class - least_fragment_class) : (lane >> 2) + 8 * ((lane & 3) >> (row_class - 2));
}

} // namespace tcbound::fragments
