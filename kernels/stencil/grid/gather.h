#pragma once

// Device code for any stencil: a thread has one row, or a few of a plane, and reads their neighbours through the L1. Also computes the
// rows that other kernels leave out. For .cu files only.

#include "device_view.h"
#include "values.h"

namespace tcbound::grid {
namespace {

constexpr int gather_threads = 256;
constexpr int small_slots = 32; // that a launch brings along as arguments, in the constant bank; more lie in memory
constexpr int gather_boxes = 6;

struct DeviceSlot {
  double constant; // of the first component
  int    distance; // of the neighbour's element from the first one of the row's cell, in x
  int    offset[3];
  int    component;

  std::int64_t value; // of a slot that varies: Values::distances
};

// Constant slots first.
template <bool small> struct DeviceSlots {
  DeviceSlot        slots[small ? small_slots : 1];
  const DeviceSlot *more;
  const double     *constants; // [slot][component]
  const double     *values;    // of the others
  ValueLayout       layout;
  int               count, constant;

  __device__ const DeviceSlot &slot(int s) const { return small ? slots[s] : more[s]; }
  __device__ double value(int s, int c, int dof) const { return dof == 1 ? slot(s).constant : __ldg(constants + s * dof + c); }
  // Of slots that vary, the place of element i of a line, less the slot's own distance.
  __device__ const double *place(int i, int j, int k) const {
    return values + (layout.first + k * layout.plane + j * layout.line + i);
  }
};

// A box of cells, cut into blocks of rows plane by plane.
struct GatherBox {
  DeviceBox box;
  unsigned  rows;         // of a plane
  Divisor   width, plane; // rows in a line; blocks in a plane
  unsigned  first_block;
};

struct GatherBoxes {
  GatherBox boxes[gather_boxes];
  int       count;
};

// How far the slots reach.
struct DeviceReach {
  int low[3], high[3];

  __device__ bool inside(const DeviceGrid &grid, int i, int j, int k) const {
    return i >= low[0] && i < grid.n[0] - high[0] && j >= low[1] && j < grid.n[1] - high[1] && k >= low[2] &&
           k < grid.n[2] - high[2];
  }
};

// The row of any cell, exceptional or not. Zeros of an exception, of which most of a boundary's rows consist, are passed over.
template <bool small, class P>
__device__ double gather_anywhere(const DeviceGrid &grid, const DeviceSlots<small> &slots, const P &p, int i, int j, int k,
                                  int c, const double *pattern) {
  const double *values = slots.place(i * grid.dof + c, j, k);
  double        sum = 0.0;
  for (int s = 0; s < slots.count; ++s) {
    const DeviceSlot &slot = slots.slot(s);
    const int         at[3] = {i + slot.offset[0], j + slot.offset[1], k + slot.offset[2]};
    if (!grid.exists(at[0], at[1], at[2])) continue;
    const double value = pattern              ? __ldg(pattern + s * grid.dof + c)
                         : s < slots.constant ? slots.value(s, c, grid.dof)
                                              : __ldg(values + slot.value);
    if (pattern && value == 0.0) continue;
    const double *from = grid.owned(at[0], at[1], at[2]) ? p.x + grid.cell(at[0], at[1], at[2]) * grid.dof
                                                         : p.ghosts + grid.ghost(at[0], at[1], at[2]) * grid.dof;
    sum = fma(value, __ldg(from + slot.component), sum);
  }
  return sum;
}

template <bool small, class P>
__device__ void gather_exceptions(const DeviceGrid &grid, const DeviceSlots<small> &slots, const P &p,
                                  const DeviceExceptions &exceptions, const GatherBoxes &boxes, unsigned block) {
  const std::int64_t at = static_cast<std::int64_t>(block) * gather_threads + threadIdx.x;
  if (at >= exceptions.count * grid.dof) return;
  const std::int64_t e = at / grid.dof, cell = __ldg(exceptions.cells + e), line = cell / grid.n[0];
  const int          i = static_cast<int>(cell - line * grid.n[0]), k = static_cast<int>(line / grid.n[1]);
  const int j = static_cast<int>(line - static_cast<std::int64_t>(k) * grid.n[1]), c = static_cast<int>(at - e * grid.dof);
  bool      here = false;
  for (int b = 0; b < boxes.count; ++b) here = here || boxes.boxes[b].box.has(i, j, k);
  if (!here) return;
  const double *pattern = exceptions.patterns + static_cast<std::int64_t>(__ldg(exceptions.kinds + e)) * slots.count * grid.dof;
  p.store(cell * grid.dof + c, gather_anywhere(grid, slots, p, i, j, k, c, pattern));
}

// The thread's rows, all of whose neighbours are owned. values: of the first one, as place() gives them.
template <bool small, int rows, class P>
__device__ void gather_inside(const DeviceSlots<small> &slots, const P &p, int dof, const double *values,
                              const std::int64_t (&cells)[rows], const int (&components)[rows], double (&sums)[rows]) {
  const double *x[rows];
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    x[r] = p.x + cells[r] * dof;
    sums[r] = 0.0;
  }
#pragma unroll 4
  for (int s = 0; s < slots.constant; ++s) {
    const int distance = slots.slot(s).distance;
#pragma unroll
    for (int r = 0; r < rows; ++r) sums[r] = fma(slots.value(s, components[r], dof), __ldg(x[r] + distance), sums[r]);
  }
  if constexpr (rows == 1) { // as where any slot varies
#pragma unroll 7
    for (int s = slots.constant; s < slots.count; ++s)
      sums[0] = fma(__ldcs(values + slots.slot(s).value), __ldg(x[0] + slots.slot(s).distance), sums[0]);
  }
}

// An exception's row is not stored, unless it is computed in passing.
template <class P>
__device__ inline void store_row(const DeviceExceptions &exceptions, const P &p, int i, int j, int k, std::int64_t cell,
                                 int dof, int component, double sum) {
  if (exceptions.diagonal_outside && !exceptions.core.has(i, j, k))
    sum = p.sum_of_diagonal(exceptions.diagonal * __ldg(p.x + cell * dof + component));
  else if (exceptions.skips(i, j, k, cell))
    return;
  p.store(cell * dof + component, sum);
}

template <bool small, int rows, class P>
__device__ void gather_box(const DeviceGrid &grid, const DeviceSlots<small> &slots, const DeviceReach &reach, const P &p,
                           const DeviceExceptions &exceptions, const GatherBox &box, unsigned block) {
  const unsigned plane = box.plane.divide(block), first = (block - plane * box.plane.by) * (rows * gather_threads);
  const int      k = box.box.begin[2] + static_cast<int>(plane);
  int            i[rows], j[rows], c[rows];
  std::int64_t   cells[rows];
  double         sums[rows];
  bool           inside = true;
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    const unsigned row = first + r * gather_threads + threadIdx.x, line = box.width.divide(row);
    const int      in_line = static_cast<int>(row - line * box.width.by);
    i[r] = box.box.begin[0] + (grid.dof == 1 ? in_line : in_line / grid.dof);
    c[r] = grid.dof == 1 ? 0 : in_line % grid.dof;
    j[r] = box.box.begin[1] + static_cast<int>(line);
    cells[r] = grid.cell(i[r], j[r], k);
    inside = inside && row < box.rows && reach.inside(grid, i[r], j[r], k);
  }
  if (__all_sync(0xffffffffU, inside)) {
    gather_inside(slots, p, grid.dof, slots.place(i[0] * grid.dof + c[0], j[0], k), cells, c, sums);
#pragma unroll
    for (int r = 0; r < rows; ++r) store_row(exceptions, p, i[r], j[r], k, cells[r], grid.dof, c[r], sums[r]);
    return;
  }
  for (unsigned row = first + threadIdx.x; row < min(box.rows, first + rows * gather_threads); row += gather_threads) {
    const unsigned     line = box.width.divide(row);
    const int          in_line = static_cast<int>(row - line * box.width.by), component = in_line % grid.dof;
    const int          at_i = box.box.begin[0] + in_line / grid.dof, at_j = box.box.begin[1] + static_cast<int>(line);
    const std::int64_t cell = grid.cell(at_i, at_j, k);
    store_row(exceptions, p, at_i, at_j, k, cell, grid.dof, component,
              gather_anywhere(grid, slots, p, at_i, at_j, k, component, nullptr));
  }
}

// Blocks: first those of the exceptions, then the boxes'.
template <bool small, int rows, class P>
__global__ void __launch_bounds__(gather_threads, rows > 1 ? 3 : 4)
  gather_kernel(const __grid_constant__ DeviceGrid grid, const __grid_constant__ DeviceSlots<small> slots,
                const __grid_constant__ DeviceReach reach, const __grid_constant__ P p,
                const __grid_constant__ DeviceExceptions exceptions, const __grid_constant__ GatherBoxes boxes,
                unsigned exception_blocks) {
  if (blockIdx.x < exception_blocks) {
    gather_exceptions(grid, slots, p, exceptions, boxes, blockIdx.x);
    return;
  }
  const unsigned block = blockIdx.x - exception_blocks;
  int            b = boxes.count - 1;
  while (block < boxes.boxes[b].first_block) --b;
  gather_box<small, rows, P>(grid, slots, reach, p, exceptions, boxes.boxes[b], block - boxes.boxes[b].first_block);
}

} // namespace
} // namespace tcbound::grid
