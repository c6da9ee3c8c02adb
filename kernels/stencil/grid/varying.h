#pragma once

// Device code for coefficients that vary, of one component and stencils of width 1: a thread has the row of a cell. Of symmetric
// coefficients half are stored (values.h); those of the other half are loaded a second time, where a neighbour has them. A block's cells
// are a tile of the grid, and points come in pairs of opposite ones, so most of those loads follow or go before the first ones closely and
// find them in the L1, as those of x do; at the tile's sides the L2 has them. For .cu files only.

#include <type_traits>

#include "gather.h"

namespace tcbound::grid {
namespace {

// As a thread needs a slot: how far its coefficient is from the cell's own place, and x from the cell's own.
struct VaryingSlot {
  std::int64_t value;
  std::int32_t x;
  std::int8_t  neighbour; // number of the cell it leads to; of padding one that never exists
  bool         varies;
  double       constant;
};

constexpr int neighbour_number(int dx, int dy, int dz) { return dx + 1 + 3 * (dy + 1) + 9 * (dz + 1); }
constexpr int no_neighbour = 31;

// count: of slots, all of which vary; 0: any number, padded to whole batches, some of which may be constant. A thread loads a batch of
// slots at a time, all if they are known.
template <int count_> struct Varying {
  static constexpr int  count = count_, batch = count > 0 ? count : 4, most = count > 0 ? count : 28;
  static constexpr bool all = count > 0;

  static_assert(most % batch == 0);
};

template <class V> struct VaryingSlots {
  VaryingSlot   slots[V::most]; // in the order in which they are added up
  int           count;
  std::int64_t  reach; // of the slots in x
  const double *values;
  std::int64_t  line, plane; // in `values`, from one to the next
};

// What is known of a block: all neighbours of its cells exist; some do not, but x and coefficients may be read at their distance all the
// same; nothing.
enum class Around { there, readable, unknown };

struct VaryingCell {
  std::int64_t cell, place; // and where its coefficients are
  unsigned     exist;       // bits by neighbour_number()
};

// skipped: so many of the batch's slots are left out.
template <class V, Around around, int skipped>
__device__ __forceinline__ double add_slots(const VaryingSlots<V> &a, const double *x, int first, const VaryingCell &of,
                                            double sum) {
  double values[V::batch], others[V::batch];
#pragma unroll
  for (int u = skipped; u < V::batch; ++u) {
    const VaryingSlot &slot = a.slots[first + u];
    const bool         reads = around != Around::unknown || (of.exist >> slot.neighbour & 1);
    values[u] = V::all ? 0.0 : slot.constant;
    if ((V::all || slot.varies) && reads) values[u] = __ldg(a.values + (of.place + slot.value));
    others[u] = reads ? __ldg(x + (of.cell + slot.x)) : 0.0;
  }
#pragma unroll
  for (int u = skipped; u < V::batch; ++u)
    if (around == Around::there || (of.exist >> a.slots[first + u].neighbour & 1)) sum = fma(values[u], others[u], sum);
  return sum;
}

template <class V, Around around, int skipped>
__device__ __forceinline__ double add_all_slots(const VaryingSlots<V> &a, const double *x, const VaryingCell &of) {
  double sum = 0.0;
#pragma unroll 1
  for (int s = 0; s < (V::all ? 1 : a.count); s += V::batch) sum = add_slots<V, around, skipped>(a, x, s, of, sum);
  return sum;
}

// Neighbours of a cell, of those in the grid.
__device__ __forceinline__ unsigned existing_neighbours(const DeviceGrid &grid, int i, int j, int k) {
  unsigned exist = 0x7ffffff;
  if (i == 0) exist &= ~0x1249249U; // every third, from the first one on
  if (i == grid.n[0] - 1) exist &= ~(0x1249249U << 2);
  if (j == 0) exist &= ~0x1c0e07U; // three in nine
  if (j == grid.n[1] - 1) exist &= ~(0x1c0e07U << 6);
  if (k == 0) exist &= ~0x1ffU;
  if (k == grid.n[2] - 1) exist &= ~(0x1ffU << 18);
  return exist;
}

// P: DeviceProduct, or DeviceRelaxation, whose sums lack the first slot if all are known: the diagonal.
template <class V, class P>
__global__ void __launch_bounds__(512)
  varying_kernel(const __grid_constant__ DeviceGrid grid, const __grid_constant__ VaryingSlots<V> a,
                 const __grid_constant__ P p, const __grid_constant__ DeviceExceptions exceptions,
                 const __grid_constant__ DeviceBox area) {
  const int first[3] = {area.begin[0] + static_cast<int>(blockIdx.x * blockDim.x),
                        area.begin[1] + static_cast<int>(blockIdx.y * blockDim.y),
                        area.begin[2] + static_cast<int>(blockIdx.z * blockDim.z)};
  const int last[3] = {first[0] + static_cast<int>(blockDim.x) - 1, first[1] + static_cast<int>(blockDim.y) - 1,
                       first[2] + static_cast<int>(blockDim.z) - 1};
  const int i = first[0] + static_cast<int>(threadIdx.x), j = first[1] + static_cast<int>(threadIdx.y),
            k = first[2] + static_cast<int>(threadIdx.z);
  if (i >= area.end[0] || j >= area.end[1] || k >= area.end[2]) return;
  const VaryingCell mine = {grid.cell(i, j, k), k * a.plane + j * a.line + i, existing_neighbours(grid, i, j, k)};
  bool              inside = V::all; // padding never exists
#pragma unroll
  for (int d = 0; d < 3; ++d) inside = inside && (grid.n[d] == 1 || (first[d] > 0 && last[d] < grid.n[d] - 1));
  constexpr int skipped = V::all && std::is_same_v<P, DeviceRelaxation> ? 1 : 0;
  double        sum;
  if (inside)
    sum = add_all_slots<V, Around::there, skipped>(a, p.x, mine);
  else if (grid.cell(first[0], first[1], first[2]) >= a.reach &&
           grid.cell(last[0], last[1], last[2]) + a.reach < grid.cell(0, 0, grid.n[2]))
    sum = add_all_slots<V, Around::readable, skipped>(a, p.x, mine);
  else
    sum = add_all_slots<V, Around::unknown, skipped>(a, p.x, mine);
  store_row(exceptions, p, i, j, k, mine.cell, 1, 0, sum);
}

} // namespace
} // namespace tcbound::grid
