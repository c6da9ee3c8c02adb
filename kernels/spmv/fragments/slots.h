#pragma once

// Every slot of a group and the entry of the CSR that it holds, for building and reading a matrix. For .cu files only.

#include "layout.h"
#include "numbers.h"

namespace tcbound::fragments {

template <class Offset> struct MatrixView {
  Group              *groups;
  std::int64_t        group_count;
  std::uint8_t       *data;
  const Offset       *offsets;
  const std::int32_t *sorted_nodes;
  const std::int32_t *long_begin;
  Arithmetic          arithmetic;
  int                 width;   // bytes of a value
  std::int64_t        longest; // entries of a row that is not long, and of a part of one that is
};

struct SlotPlace {
  void        *value;
  void        *column;
  std::int64_t entry; // its place in the CSR, or -1: none
  std::int32_t row;
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

__device__ inline std::int32_t column_in(const Group &group, const void *column) {
  return group.wide ? *static_cast<const std::int32_t *>(column)
                    : group.base + static_cast<std::int32_t>(*static_cast<const std::uint16_t *>(column));
}

// The matrix's row that a row of the group is.
template <class Offset> __device__ std::int32_t row_in(const MatrixView<Offset> &m, const Group &group, int node, int row) {
  return group.in_order ? group.row + row : m.sorted_nodes[group.row + row / node] * node + row % node;
}

// Calls f(SlotPlace) for the slots of one lane of group g, which may not have told its place to m.groups yet.
template <class Offset, class F>
__device__ void for_each_slot(const MatrixView<Offset> &m, std::int64_t g, const Group &group, int lane, F &&f) {
  const int          node = node_of(group), share = slices / columns_of_lane(node);
  std::uint8_t      *data = m.data + unit * static_cast<std::int64_t>(group.at);
  std::uint8_t      *columns = data + value_bytes_of(group, node, m.width);
  const int          width = column_bytes(group.wide);
  const bool         part = group.rows == 0;
  const int          rows = part ? 1 : static_cast<int>(group.rows);
  const std::int64_t skipped = part ? (g - m.long_begin[group.row]) * m.longest : 0;
  for (int slice = 0; slice < values_of_lane(node); ++slice) {
    const Slot         slot = slot_of(group.row_class, node, lane, slice);
    const bool         in = slot.row < rows;
    const std::int32_t row = in ? row_in(m, group, node, slot.row) : -1;
    const std::int64_t begin = in ? m.offsets[row] + skipped : 0, end = in ? static_cast<std::int64_t>(m.offsets[row + 1]) : 0;
    const std::int64_t stop = part && begin + m.longest < end ? begin + m.longest : end;
    for (int t = 0; t < static_cast<int>(group.steps); ++t) {
      const Place        place = place_of(group, node, t + 1 == static_cast<int>(group.steps), lane);
      const std::int64_t entry = begin + slot.entry + (static_cast<std::int64_t>(t) << group.row_class);
      if (!place.kept) continue;
      std::uint8_t *value = data + m.width * (t * warp_lanes * values_of_lane(node) + value_index(slice, node, m.width, place));
      std::uint8_t *column = columns + width * ((t * warp_lanes + place.index) * columns_of_lane(node) + slice / share);
      f(SlotPlace{value, column, entry < stop ? entry : -1, row});
    }
  }
}

} // namespace tcbound::fragments
