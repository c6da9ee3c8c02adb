#pragma once

// Device code for any stencil: a thread a row, which reads its neighbours through the L1. Also computes the rows that other kernels
// leave out. For .cu files only.

#include "device_view.h"

namespace tcbound::grid {
namespace {

constexpr int gather_threads = 256;
constexpr int small_slots = 40; // that a launch brings along as arguments, in the constant bank; more lie in memory

// Constant slots first.
template <bool small> struct DeviceSlots {
  DeviceSlot        slots[small ? small_slots : 1];
  double            values[small ? small_slots : 1]; // of constant slots of one component
  const DeviceSlot *more;
  const double     *constants; // [slot][component]
  int               count, constant, dof;

  __device__ const DeviceSlot &slot(int s) const { return small ? slots[s] : more[s]; }
  __device__ double value(int s, int c) const { return small && dof == 1 ? values[s] : __ldg(constants + s * dof + c); }
};

// Boxes of cells one after the other, each padded to whole blocks.
struct DeviceBoxes {
  DeviceBox    boxes[6];
  std::int64_t first_block[7]; // of each box; the end
  int          count;
};

// The row of any cell, exceptional or not.
template <bool small>
__device__ double gather_anywhere(const DeviceGrid &grid, const DeviceSlots<small> &slots, const DeviceProduct &p, int i, int j,
                                  int k, int c, const double *pattern) {
  const std::int64_t row = grid.cell(i, j, k) * grid.dof + c;
  double             sum = 0.0;
  for (int s = 0; s < slots.count; ++s) {
    const DeviceSlot &slot = slots.slot(s);
    const int         at[3] = {i + slot.offset[0], j + slot.offset[1], k + slot.offset[2]};
    if (!grid.exists(at[0], at[1], at[2])) continue;
    const double *from = grid.owned(at[0], at[1], at[2]) ? p.x + grid.cell(at[0], at[1], at[2]) * grid.dof
                                                         : p.ghosts + grid.ghost(at[0], at[1], at[2]) * grid.dof;
    const double  value = pattern              ? __ldg(pattern + s * grid.dof + c)
                          : s < slots.constant ? slots.value(s, c)
                                               : __ldg(slot.values + row);
    sum = fma(value, __ldg(from + slot.component), sum);
  }
  return sum;
}

// The row of a cell whose neighbours all exist and are owned.
template <bool small>
__device__ double gather_inside(const DeviceGrid &grid, const DeviceSlots<small> &slots, const DeviceProduct &p,
                                std::int64_t cell, int c) {
  const double *x = p.x + cell * grid.dof;
  double        sum = 0.0;
#pragma unroll 9
  for (int s = 0; s < slots.constant; ++s) sum = fma(slots.value(s, c), __ldg(x + slots.slot(s).distance), sum);
#pragma unroll 7
  for (int s = slots.constant; s < slots.count; ++s) {
    const DeviceSlot &slot = slots.slot(s);
    sum = fma(__ldcs(slot.values + cell * grid.dof + c), __ldg(x + slot.distance), sum);
  }
  return sum;
}

template <bool small>
__device__ void gather_exceptions(const DeviceGrid &grid, const DeviceSlots<small> &slots, const DeviceProduct &p,
                                  const DeviceExceptions &exceptions, const DeviceBoxes &boxes, std::int64_t block) {
  const std::int64_t at = block * gather_threads + threadIdx.x;
  if (at >= exceptions.count * grid.dof) return;
  const std::int64_t e = at / grid.dof, cell = __ldg(exceptions.cells + e), line = cell / grid.n[0];
  const int          i = static_cast<int>(cell - line * grid.n[0]), k = static_cast<int>(line / grid.n[1]);
  const int j = static_cast<int>(line - static_cast<std::int64_t>(k) * grid.n[1]), c = static_cast<int>(at - e * grid.dof);
  bool      here = false;
  for (int b = 0; b < boxes.count; ++b) {
    const DeviceBox &box = boxes.boxes[b];
    here = here ||
           (i >= box.begin[0] && i < box.end[0] && j >= box.begin[1] && j < box.end[1] && k >= box.begin[2] && k < box.end[2]);
  }
  if (!here) return;
  const double *pattern = exceptions.patterns + static_cast<std::int64_t>(__ldg(exceptions.kinds + e)) * slots.count * grid.dof;
  p.store(cell * grid.dof + c, gather_anywhere(grid, slots, p, i, j, k, c, pattern));
}

// How far the slots reach.
struct DeviceReach {
  int low[3], high[3];
};

template <bool small>
__device__ void gather_box(const DeviceGrid &grid, const DeviceSlots<small> &slots, const DeviceReach &reach,
                           const DeviceProduct &p, const DeviceExceptions &exceptions, const DeviceBox &box,
                           std::int64_t block) {
  const std::int64_t row = block * gather_threads + threadIdx.x;
  const int          width = (box.end[0] - box.begin[0]) * grid.dof, height = box.end[1] - box.begin[1];
  const std::int64_t line = row / width;
  const int in_line = static_cast<int>(row - line * width), i = box.begin[0] + in_line / grid.dof, c = in_line % grid.dof;
  const std::int64_t plane = line / height;
  const int          j = box.begin[1] + static_cast<int>(line - plane * height);
  if (plane >= box.end[2] - box.begin[2]) return;
  const int          k = box.begin[2] + static_cast<int>(plane);
  const std::int64_t cell = grid.cell(i, j, k);
  if (exceptions.count > 0 && exceptions.has(i, j, k, cell)) return;
  const bool inside = i >= reach.low[0] && i < grid.n[0] - reach.high[0] && j >= reach.low[1] &&
                      j < grid.n[1] - reach.high[1] && k >= reach.low[2] && k < grid.n[2] - reach.high[2];
  p.store(cell * grid.dof + c,
          inside ? gather_inside(grid, slots, p, cell, c) : gather_anywhere(grid, slots, p, i, j, k, c, nullptr));
}

// Blocks: first those of the exceptions, then the boxes'.
template <bool small>
__global__ void __launch_bounds__(gather_threads)
  gather(const __grid_constant__ DeviceGrid grid, const __grid_constant__ DeviceSlots<small> slots,
         const __grid_constant__ DeviceReach reach, const __grid_constant__ DeviceProduct p,
         const __grid_constant__ DeviceExceptions exceptions, const __grid_constant__ DeviceBoxes boxes,
         std::int64_t exception_blocks) {
  if (blockIdx.x < exception_blocks) {
    gather_exceptions(grid, slots, p, exceptions, boxes, blockIdx.x);
    return;
  }
  const std::int64_t block = blockIdx.x - exception_blocks;
  int                b = 0;
  while (block >= boxes.first_block[b + 1]) ++b;
  gather_box(grid, slots, reach, p, exceptions, boxes.boxes[b], block - boxes.first_block[b]);
}

} // namespace
} // namespace tcbound::grid
