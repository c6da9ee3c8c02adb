#pragma once

// Every slot of a group and the entry of the CSR that it holds, for building and reading a matrix. For .cu files only.

#include "layout.h"
#include "numbers.h"

namespace tcbound::fragments {

template <class Offset> struct MatrixView {
  Group               *groups;
  std::int64_t         group_count;
  std::uint8_t        *data;
  const Offset        *offsets;
  const std::int32_t  *sorted_nodes;
  const std::int32_t  *long_begin;
  const RaggedLengths *ragged; // of each group; null: they are not ragged
  const std::uint8_t  *ragged_places;
  int                  ragged_sorted;
  Arithmetic           arithmetic;
  int                  width;   // bytes of a value
  std::int64_t         longest; // entries of a row that is not long, and of a part of one that is
};

struct SlotPlace {
  void         *value;
  std::uint8_t *column, *high; // high: where its upper 8 bits are, if they are by themselves
  std::int64_t  entry;         // its place in the CSR, or -1: none
  std::int32_t  row;
};

__device__ inline double value_in(int width, const void *value) {
  if (width == 8) return *static_cast<const double *>(value);
  if (width == 4) return *static_cast<const float *>(value);
  return __uint_as_float(static_cast<unsigned>(*static_cast<const std::uint16_t *>(value)) << 16);
}

// Rounded to the nearest number that is stored, ties to even.
__device__ inline void put_value(Arithmetic arithmetic, void *to, double value) {
  if (arithmetic == Arithmetic::fp64)
    *static_cast<double *>(to) = value;
  else if (arithmetic == Arithmetic::tf32)
    *static_cast<float *>(to) = rounded<Tf32::digits>(value);
  else
    *static_cast<std::uint16_t *>(to) = static_cast<std::uint16_t>(__float_as_uint(rounded<Bf16::digits>(value)) >> 16);
}

__device__ inline std::int32_t column_in(const Group &group, const SlotPlace &slot) {
  if (group.wide) return *reinterpret_cast<const std::int32_t *>(slot.column);
  const std::int32_t low = *reinterpret_cast<const std::uint16_t *>(slot.column);
  return group.base + low + (slot.high ? *slot.high << 16 : 0);
}

// column: -1 if there is none.
__device__ inline void put_column(const Group &group, const SlotPlace &slot, std::int32_t column) {
  if (group.wide) {
    *reinterpret_cast<std::int32_t *>(slot.column) = column < 0 ? no_wide_column : column;
    return;
  }
  const std::int32_t distance = column < 0 ? no_medium_column : column - group.base; // its lower half is no_narrow_column
  *reinterpret_cast<std::uint16_t *>(slot.column) = static_cast<std::uint16_t>(distance);
  if (slot.high) *slot.high = static_cast<std::uint8_t>(distance >> 16);
}

// The matrix's row that a row of the group is.
template <class Offset> __device__ std::int32_t row_in(const MatrixView<Offset> &m, const Group &group, int node, int row) {
  if (group.in_order) return group.row + row;
  if (m.ragged) return ragged_row(group, m.ragged_sorted, m.ragged_places[group.row + row]);
  return m.sorted_nodes[group.row + row / node] * node + row % node;
}

// Calls f(SlotPlace) for the slots of one lane of group g, which may not have told its place to m.groups yet.
template <class Offset, class F>
__device__ void for_each_slot(const MatrixView<Offset> &m, std::int64_t g, const Group &group, int lane, F &&f) {
  const int           node = node_of(group), share = slices / columns_of_lane(node), steps = static_cast<int>(group.steps);
  const RaggedLengths lengths = m.ragged ? m.ragged[g] : 0;
  const int           lanes = m.ragged ? ragged_lanes(lengths, steps) : stored_lanes(group, node);
  const int           width = m.ragged ? static_cast<int>(group.lanes) : column_bytes(group.wide);
  const RaggedPlan    plan = {m.ragged_sorted, lanes, width, m.width};
  std::uint8_t       *data = m.data + unit * static_cast<std::int64_t>(group.at);
  std::uint8_t       *columns = data + (m.ragged ? plan.columns() : value_bytes_of(lanes, node, m.width));
  const bool          part = group.rows == 0;
  const int           rows = part ? 1 : static_cast<int>(group.rows);
  const std::int64_t  skipped = part ? (g - m.long_begin[group.row]) * m.longest : 0;
  for (int slice = 0; slice < values_of_lane(node); ++slice) {
    const Slot         slot = m.ragged ? slot_of_ragged(lane, slice) : slot_of(group.row_class, node, lane, slice);
    const bool         in = slot.row < rows;
    const std::int32_t row = in ? row_in(m, group, node, slot.row) : -1;
    const std::int64_t begin = in ? m.offsets[row] + skipped : 0, end = in ? static_cast<std::int64_t>(m.offsets[row + 1]) : 0;
    const std::int64_t stop = part && begin + m.longest < end ? begin + m.longest : end;
    for (int t = 0; t < steps; ++t) {
      const RaggedPlace at_step =
        m.ragged ? place_of_ragged(lengths, t, lane) : RaggedPlace{place_of(group, node, t + 1 == steps, lane), t * warp_lanes};
      const Place       &place = at_step.place;
      const int          before = at_step.before; // lanes of the steps before
      const std::int64_t entry = begin + slot.entry + (static_cast<std::int64_t>(t) << group.row_class);
      if (!place.kept) continue;
      std::uint8_t *value = data + m.width * (before * values_of_lane(node) + value_index(slice, node, m.width, place));
      const int     at = (before + place.index) * columns_of_lane(node) + slice / share;
      const bool    split = width == 3;
      f(SlotPlace{value, columns + (split ? 2 : width) * at, split ? data + plan.high_columns() + at : nullptr,
                  entry < stop ? entry : -1, row});
    }
  }
}

} // namespace tcbound::fragments
