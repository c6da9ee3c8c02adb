#pragma once

// Device code of cuda_core.cu: one warp multiplies a column of slices, two neighbouring rows a lane. For .cu files only.

#include <algorithm>

#include "columns.h"

namespace tcbound::compact {
namespace {

struct ColumnsView {
  const Column  *columns;
  std::int64_t   count;
  const Partial *partials;
  std::int64_t   stride;
  std::int32_t   centers[3];
  bool           finite; // the values
  double         values[slots];
};

ColumnsView view_of(const Columns &columns) {
  ColumnsView view = {
    columns.columns.data(), columns.count(), columns.partials.data(), columns.stencil.stride, {}, columns.finite, {}};
  std::copy(columns.stencil.centers.begin(), columns.stencil.centers.end(), view.centers);
  std::copy(columns.values.begin(), columns.values.end(), view.values);
  return view;
}

// How a lane's first row lies in x: at a multiple of 16 bytes in all planes and runs, in none, or now so, now so.
enum class Parity { even, odd, mixed };

// What the rows of a column lack: nothing; steps left or right, the same in all runs and planes, as at the ends of a grid's lines;
// or anything.
enum class Lack { nothing, steps, anything };

// What a lane's two rows have of the stencil, and whether the column has the rows at all.
struct Rows2 {
  std::uint32_t first = 0, second = 0; // slots
  bool          has_first = false, has_second = false;
};

struct Sums2 {
  double first = 0.0, second = 0.0;
};

// x around a lane's two rows in the runs of a plane: w[run][i] = x[center + i - 1].
struct Around {
  double w[3][4];
};

__device__ inline bool find_slots(const ColumnsView &a, const Column &column, int r, std::uint32_t whole,
                                  std::uint32_t &found) {
  found = whole;
  if (column.rows >> r & 1) return true;
  for (std::int32_t i = column.partial_begin; i < column.partial_begin + column.partials; ++i)
    if (a.partials[i].rows >> r & 1) {
      found = static_cast<std::uint32_t>(a.partials[i].entries);
      return true;
    }
  return false; // what is computed for it is not stored
}

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

// What a level needs of the plane `plane` places from it.
template <int shape, Parity parity, int plane> __device__ Around load_plane(const ColumnsView &a, const double *x) {
  constexpr Shape stencil = shapes[shape];
  Around          around;
#pragma unroll
  for (int run = 0; run < stencil.runs; ++run)
    if (stencil.has(plane, run, 0)) load_around<parity>(x + a.centers[run], stencil.has(plane, run, 1), around.w[run]);
  return around;
}

// What the plane `plane` places from a level adds to it.
template <int shape, Lack lack, int plane>
__device__ void add_plane(const ColumnsView &a, const Around &around, const Rows2 &rows, Sums2 &sums) {
  constexpr Shape stencil = shapes[shape];
#pragma unroll
  for (int run = 0; run < stencil.runs; ++run)
#pragma unroll
    for (int step = -1; step <= 1; ++step) {
      if (!stencil.has(plane, run, step)) continue;
      const int slot = slot_of(plane, run, step);
      double    first = around.w[run][1 + step], second = around.w[run][2 + step];
      if (lack == Lack::steps && step != 0) { // any slot of that step tells for all; a zero in place of x leaves the sum
        constexpr std::uint32_t left = stencil.with_step(-1), right = stencil.with_step(1);
        if (!(rows.first & (step < 0 ? left : right))) first = 0.0;
        if (!(rows.second & (step < 0 ? left : right))) second = 0.0;
      }
      if (lack != Lack::anything || rows.first >> slot & 1) sums.first = fma(a.values[slot], first, sums.first);
      if (lack != Lack::anything || rows.second >> slot & 1) sums.second = fma(a.values[slot], second, sums.second);
    }
}

// store(row, sums) for every level. x: of the lane's first row in the lowest one.
template <int shape, Parity parity, Lack lack, class Store>
__device__ void climb(const ColumnsView &a, const double *x, std::int64_t row, int levels, const Rows2 &rows, Store &&store) {
  constexpr int ahead = shapes[shape].ahead;
  Sums2         below, here, above;
  Around        planes[ahead + 1];
#pragma unroll
  for (int i = 0; i < ahead; ++i)
    if (i < levels) planes[i] = load_plane<shape, parity, 0>(a, x + i * a.stride);
  add_plane<shape, lack, -1>(a, load_plane<shape, parity, -1>(a, x - a.stride), rows, here);
  for (int level = 0; level < levels; ++level) {
    if (level + ahead < levels) planes[ahead] = load_plane<shape, parity, 0>(a, x + ahead * a.stride);
    if (level > 0) {
      add_plane<shape, lack, 1>(a, planes[0], rows, below);
      store(row - a.stride, below);
    }
    add_plane<shape, lack, 0>(a, planes[0], rows, here);
    add_plane<shape, lack, -1>(a, planes[0], rows, above); // in vain at the last level
    below = here;
    here = above;
    above = {};
#pragma unroll
    for (int i = 0; i < ahead; ++i) planes[i] = planes[i + 1];
    row += a.stride;
    x += a.stride;
  }
  add_plane<shape, lack, 1>(a, load_plane<shape, parity, 1>(a, x), rows, below);
  store(row - a.stride, below);
}

// store(row, rows, sums) for every level of a column.
template <int shape, Parity parity, class Store>
__device__ void climb(const ColumnsView &a, const double *x, const Column &column, Store &&store) {
  constexpr std::uint32_t whole = shapes[shape].slots, left = shapes[shape].with_step(-1), right = shapes[shape].with_step(1);
  const int               lane = static_cast<int>(threadIdx.x % 32);
  const std::int64_t      row = column.first_row + 2 * static_cast<std::int64_t>(lane);
  Rows2                   rows;
  rows.has_first = find_slots(a, column, 2 * lane, whole, rows.first);
  rows.has_second = find_slots(a, column, 2 * lane + 1, whole, rows.second);
  const auto lacks_steps = [&](std::uint32_t has) {
    return has == ((whole & ~left & ~right) | (has & left ? left : 0) | (has & right ? right : 0));
  };
  const auto go = [&](auto lack) {
    climb<shape, parity, decltype(lack)::value>(a, x + row, row, column.levels, rows,
                                                [&](std::int64_t at, const Sums2 &sums) { store(at, rows, sums); });
  };
  if (__all_sync(0xffffffffU, rows.first == whole && rows.second == whole))
    go(std::integral_constant<Lack, Lack::nothing>());
  else if (a.finite && __all_sync(0xffffffffU, lacks_steps(rows.first) && lacks_steps(rows.second)))
    go(std::integral_constant<Lack, Lack::steps>());
  else
    go(std::integral_constant<Lack, Lack::anything>());
}

template <int shape, class Store>
__device__ void climb(const ColumnsView &a, const double *x, const Column &column, Store &&store) {
  const bool odd = (reinterpret_cast<std::uintptr_t>(x + column.first_row) / 8) & 1;
  if ((a.stride | a.centers[2]) & 1)
    climb<shape, Parity::mixed>(a, x, column, store);
  else if (odd)
    climb<shape, Parity::odd>(a, x, column, store);
  else
    climb<shape, Parity::even>(a, x, column, store);
}

} // namespace
} // namespace tcbound::compact
