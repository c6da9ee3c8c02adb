#pragma once

// Device code of cuda_core.cu: one warp multiplies a column of slices, two neighbouring rows a lane. For .cu files only.

#include "columns.h"

namespace tcbound::compact {
namespace {

struct ColumnsView {
  std::int64_t        count;
  int                 levels;
  const std::int32_t *first_rows;
  const ColumnSlice  *slices;
  const Partial      *partials;
  std::int64_t        stride;
  std::int32_t        centers[3];
  double              values[slots];
};

ColumnsView view_of(const Columns &columns) {
  ColumnsView view = {columns.first_rows.size(),
                      columns.levels,
                      columns.first_rows.data(),
                      columns.slices.data(),
                      columns.partials.data(),
                      columns.stencil.stride,
                      {},
                      {}};
  std::copy(columns.stencil.centers.begin(), columns.stencil.centers.end(), view.centers);
  std::copy(columns.values.begin(), columns.values.end(), view.values);
  return view;
}

// How a lane's first row lies in x: at a multiple of 16 bytes in all planes and runs, in none, or now so, now so.
enum class Parity { even, odd, mixed };

// A lane's two rows in one slice of its column: their sums so far and the slots that they have.
struct Level {
  static constexpr std::uint32_t present = 1U << 31; // the slice has the row

  double        first = 0.0, second = 0.0;
  std::uint32_t first_slots = 0, second_slots = 0;
  bool          any = false, full = false; // of the slice's rows: the warp has one; all have the whole stencil
};

__device__ inline std::uint32_t slots_of_row(const ColumnsView &a, const ColumnSlice &slice, int r, std::uint32_t whole) {
  if (slice.rows >> r & 1) return whole;
  for (std::int32_t i = slice.partial_begin; i < slice.partial_begin + slice.partials; ++i)
    if (a.partials[i].rows >> r & 1) return static_cast<std::uint32_t>(a.partials[i].entries) | Level::present;
  return 0;
}

template <int shape> __device__ Level enter_level(const ColumnsView &a, std::int64_t column, int level) {
  Level made;
  if (level >= a.levels) return made;
  const int4  words = __ldg(reinterpret_cast<const int4 *>(a.slices + column * a.levels + level));
  ColumnSlice slice;
  memcpy(&slice, &words, sizeof slice);
  made.full = slice.rows == ~std::uint64_t(0);
  made.any = slice.rows != 0 || slice.partials != 0;
  if (!made.any) return made;
  const std::uint32_t whole = shapes[shape].slots | Level::present;
  const int           lane = static_cast<int>(threadIdx.x % 32);
  made.first_slots = made.full ? whole : slots_of_row(a, slice, 2 * lane, whole);
  made.second_slots = made.full ? whole : slots_of_row(a, slice, 2 * lane + 1, whole);
  return made;
}

// w[i] = x[i - 1] around a lane's two rows, x[0] and x[1]; the outer two only if `wide`.
template <Parity parity> __device__ void load_around(const double *x, bool wide, double (&w)[4]) {
  if (parity == Parity::odd && wide) {
    const double2 low = __ldg(reinterpret_cast<const double2 *>(x - 1)), high = __ldg(reinterpret_cast<const double2 *>(x + 1));
    w[0] = low.x;
    w[1] = low.y;
    w[2] = high.x;
    w[3] = high.y;
    return;
  }
  if (parity == Parity::even) {
    const double2 middle = __ldg(reinterpret_cast<const double2 *>(x));
    w[1] = middle.x;
    w[2] = middle.y;
  } else {
    w[1] = __ldg(x);
    w[2] = __ldg(x + 1);
  }
  if (!wide) return;
  w[0] = __ldg(x - 1);
  w[3] = __ldg(x + 2);
}

// What the plane `plane` places from a level adds to it.
template <int shape, int plane, bool full>
__device__ void add_plane(const ColumnsView &a, const double (&w)[3][4], Level &level) {
#pragma unroll
  for (int run = 0; run < shapes[shape].runs; ++run)
#pragma unroll
    for (int step = -1; step <= 1; ++step) {
      constexpr Shape stencil = shapes[shape];
      const int       slot = slot_of(plane, run, step);
      if (!stencil.has(plane, run, step)) continue;
      if (full || level.first_slots >> slot & 1) level.first = fma(a.values[slot], w[run][1 + step], level.first);
      if (full || level.second_slots >> slot & 1) level.second = fma(a.values[slot], w[run][2 + step], level.second);
    }
}

template <int shape, Parity parity>
__device__ void pass_plane(const ColumnsView &a, const double *x, Level &below, Level &here, Level &above) {
  constexpr Shape stencil = shapes[shape];
  double          w[3][4] = {};
  if (below.full && here.full && above.full) {
#pragma unroll
    for (int run = 0; run < stencil.runs; ++run) load_around<parity>(x + a.centers[run], stencil.wide(run), w[run]);
    add_plane<shape, 1, true>(a, w, below);
    add_plane<shape, 0, true>(a, w, here);
    add_plane<shape, -1, true>(a, w, above);
    return;
  }
  // Only what a level needs is sure to lie inside x.
#pragma unroll
  for (int run = 0; run < stencil.runs; ++run) {
    const auto needs = [&](int step) {
      return (stencil.has(1, run, step) && below.any) || (stencil.has(0, run, step) && here.any) ||
             (stencil.has(-1, run, step) && above.any);
    };
    if (needs(0)) load_around<parity>(x + a.centers[run], needs(1), w[run]);
  }
  add_plane<shape, 1, false>(a, w, below);
  add_plane<shape, 0, false>(a, w, here);
  add_plane<shape, -1, false>(a, w, above);
}

// store(row, sum) for every row of the column that it has.
template <int shape, Parity parity, class Store>
__device__ void climb(const ColumnsView &a, const double *x, std::int64_t column, Store &&store) {
  const std::int64_t row = __ldg(a.first_rows + column) + 2 * static_cast<std::int64_t>(threadIdx.x % 32);
  Level              below, here, above = enter_level<shape>(a, column, 0);
  for (int plane = -1; plane <= a.levels; ++plane) {
    const std::int64_t at = row + plane * a.stride;
    if (below.any || here.any || above.any) pass_plane<shape, parity>(a, x + at, below, here, above);
    if (below.first_slots) store(at - a.stride, below.first);
    if (below.second_slots) store(at - a.stride + 1, below.second);
    below = here;
    here = above;
    above = enter_level<shape>(a, column, plane + 2);
  }
}

template <int shape, class Store>
__device__ void climb(const ColumnsView &a, const double *x, std::int64_t column, Store &&store) {
  const bool odd = (reinterpret_cast<std::uintptr_t>(x + __ldg(a.first_rows + column)) / 8) & 1;
  if ((a.stride | a.centers[2]) & 1)
    climb<shape, Parity::mixed>(a, x, column, store);
  else if (odd)
    climb<shape, Parity::odd>(a, x, column, store);
  else
    climb<shape, Parity::even>(a, x, column, store);
}

} // namespace
} // namespace tcbound::compact
