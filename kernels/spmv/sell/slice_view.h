#pragma once

// What device code sees of a matrix of format sell. For .cu files only.

#include "bfloat16.h"
#include "device_matrix.h"

namespace tcbound::sell {

struct SliceView {
  const Slice         *slices;
  const Part          *parts;
  const std::uint16_t *places;
  const std::int32_t  *lane_rows; // null unless renumbered, as the next
  const std::int32_t  *column_order;
  const std::uint16_t *step_entries; // null unless renumbered
  const std::uint8_t  *columns;
  std::int32_t         part_count, slice_count; // parts are slices, too
  std::int32_t         rows;
  int                  log2_window; // of the rows of one
};

inline SliceView view_of(const DeviceMatrix &matrix) {
  return {matrix.slices.data(),
          matrix.parts.data(),
          matrix.places.data(),
          matrix.rows.data(),
          matrix.column_order.data(),
          matrix.step_entries.data(),
          matrix.columns.data(),
          static_cast<std::int32_t>(matrix.parts.size()),
          static_cast<std::int32_t>(matrix.slices.size()),
          static_cast<std::int32_t>(matrix.csr.rows),
          matrix.log2_window};
}

// Calls f(values) with the values in their type.
template <class F> void with_values(const DeviceMatrix &matrix, F &&f) {
  const void *values = matrix.values.data();
  switch (matrix.census.value_bytes) {
  case 2:
    return f(static_cast<const Bfloat16 *>(values));
  case 4:
    return f(static_cast<const float *>(values));
  default:
    return f(static_cast<const double *>(values));
  }
}

// The row of a lane of slice i, which is no part, in two steps, so that a load need not be waited for at once: what a table says of
// it, and the row, -1: none.
__device__ inline std::int32_t load_place(const SliceView &view, const Slice &slice, std::int32_t i, int lane) {
  const std::int64_t at = static_cast<std::int64_t>(i - view.part_count) * slice_rows + lane;
  if (view.lane_rows) return __ldg(view.lane_rows + at);
  return slice.permuted ? __ldg(view.places + at) : 0;
}

__device__ inline std::int32_t row_at_place(const SliceView &view, const Slice &slice, std::int32_t i, int lane,
                                            std::int32_t place) {
  const std::int64_t at = static_cast<std::int64_t>(i - view.part_count) * slice_rows + lane;
  if (view.lane_rows) return place;
  if (!slice.permuted) return at < view.rows ? static_cast<std::int32_t>(at) : -1;
  return place == no_place ? -1 : static_cast<std::int32_t>(at >> view.log2_window << view.log2_window) + place;
}

// Calls f(row, step, place of the entry in its slice, number of the entry in the CSR or -1 where the slice is filled up) for the
// entries of a lane of slice i.
template <class Offset, class F>
__device__ void for_entries(const SliceView &view, const Offset *offsets, std::int32_t i, int lane, F &&f) {
  const Slice slice = view.slices[i];
  if (i < view.part_count) {
    const Part         part = view.parts[i];
    const std::int64_t row_begin = offsets[part.row], row_end = offsets[part.row + 1];
    const std::int64_t length = part_length(row_end - row_begin, part.count);
    const std::int64_t begin = row_begin + (i - part.first) * length, end = min(begin + length, row_end);
    for (int k = 0; k < slice.steps; ++k) {
      const std::int64_t place = place_of(k, lane, slice.steps);
      f(part.row, k, place, begin + place < end ? begin + place : std::int64_t(-1));
    }
  } else {
    const std::int32_t row = row_at_place(view, slice, i, lane, load_place(view, slice, i, lane));
    const std::int64_t begin = row < 0 ? 0 : offsets[row], end = row < 0 ? 0 : offsets[row + 1];
#pragma unroll 4
    for (int k = 0; k < slice.steps; ++k) {
      const bool there = begin + k < end;
      f(row, k, place_of(k, lane, slice.steps),
        there ? begin + (view.step_entries ? view.step_entries[begin + k] : k) : std::int64_t(-1));
    }
  }
}

// Where the 16-bit columns of a slice are among the bytes of its columns.
__device__ inline std::int64_t distances_at(const Slice &slice) {
  return slice.coding == Coding::stepped ? column_bytes(Coding::pattern, slice.steps) : 0;
}

// The column of an entry that is there.
__device__ inline std::int32_t column_of(const SliceView &view, const Slice &slice, std::int32_t row, int step,
                                         std::int64_t place) {
  const std::uint8_t *at = view.columns + static_cast<std::int64_t>(slice.columns) * column_unit;
  const auto         *words = reinterpret_cast<const std::int32_t *>(at);
  std::int32_t        column;
  if (slice.coding == Coding::pattern) return row + words[step];
  if (slice.coding == Coding::wide)
    column = words[place];
  else
    column = (slice.coding == Coding::stepped ? words[step] : slice.base) +
             reinterpret_cast<const std::uint16_t *>(at + distances_at(slice))[place];
  return view.column_order ? view.column_order[column] : column;
}

} // namespace tcbound::sell
