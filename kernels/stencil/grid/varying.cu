#include "varying_sweeps.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "../march_length.h"
#include "cuda/error.h"
#include "varying_product.h"

namespace tcbound::grid {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t distance_in_x(const Stencil &s, std::size_t slot) {
  const int *o = s.slots[slot].offset;
  return (o[2] * s.extents.n[1] + o[1]) * s.extents.n[0] + o[0];
}

// Opposite slots side by side, those between close cells first.
std::vector<std::size_t> order_of_slots(const Stencil &s) {
  std::vector<std::size_t> order(s.slots.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return std::abs(distance_in_x(s, a)) < std::abs(distance_in_x(s, b)); });
  return order;
}

using Tile = SweepTile<10, 2>;
constexpr int sweep_planes = 24; // that a block marches through on grids that fill the device

template <class V> class VaryingOf final : public Marcher {
public:
  VaryingOf(Executor &executor, const Stencil &s, const Values &values, const double *from, dim3 block)
    : block_(block), halved_(!s.mirrors.empty()), multiprocessors_(executor.device().multiprocessors) {
    for (const std::size_t slot : order_of_slots(s)) {
      VaryingSlot       &to = slots_.slots[slots_.count++];
      const int         *o = s.slots[slot].offset;
      const std::int64_t x = distance_in_x(s, slot);
      to.value = values.distances[slot];
      to.x = static_cast<std::int32_t>(x);
      to.neighbour = static_cast<std::int8_t>(neighbour_number(o[0], o[1], o[2]));
      to.varies = !s.arrays[slot].empty();
      to.constant = s.constants[slot];
      slots_.reach = std::max(slots_.reach, std::abs(x));
    }
    while (slots_.count % V::batch != 0) slots_.slots[slots_.count++].neighbour = no_neighbour;
    slots_.values = from + values.layout.first;
    slots_.line = values.layout.line;
    slots_.plane = values.layout.plane;
    if (V::count == 7) find_neighbours(s);
  }

  void launch(void *stream, DeviceGrid grid, const DeviceProduct &p, DeviceExceptions exceptions, DeviceBox area) override {
    launch_kernel(stream, grid, p, exceptions, area);
  }

  bool spares_diagonal() const override { return V::all && slots_.slots[0].x == 0; }

  bool relax(void *stream, DeviceGrid grid, const DeviceRelaxation &relaxation, DeviceExceptions exceptions,
             DeviceBox area) override {
    DeviceRelaxation p = relaxation;
    if (V::all) {
      if (!spares_diagonal() || !p.inverse) return false;
      p.without_diagonal = true;
      p.keeps = 1.0 - p.factor;
    }
    launch_kernel(stream, grid, p, exceptions, area);
    return true;
  }

  double redundancy(const std::int64_t (&n)[3]) const override {
    const unsigned lengths[3] = {block_.x, block_.y, block_.z};
    double         product = 1.0;
    for (int d = 0; d < 3; ++d)
      product *= static_cast<double>(divide_up(n[d], lengths[d]) * lengths[d]) / static_cast<double>(n[d]);
    return product;
  }

  bool can_sweep_twice() const override { return neighbours_.values; }

  void sweep_twice(void *stream, DeviceGrid grid, const TwoSweeps &p, DeviceExceptions exceptions) override {
    const auto tiles_x = static_cast<unsigned>(divide_up(grid.n[0], Tile::columns - 2)),
               tiles_y = static_cast<unsigned>(divide_up(grid.n[1], Tile::lines - 2));
    const int planes =
      march_length(static_cast<std::int64_t>(tiles_x) * tiles_y, grid.n[2], 1, Tile::blocks * multiprocessors_, sweep_planes);
    const auto kernel = halved_ ? p.x ? two_sweeps_kernel<Tile, true, false> : two_sweeps_kernel<Tile, true, true>
                        : p.x ? two_sweeps_kernel<Tile, false, false>
                                : two_sweeps_kernel<Tile, false, true>;
    kernel<<<dim3(tiles_x, tiles_y, static_cast<unsigned>(divide_up(grid.n[2], planes))), Tile::threads, 0,
             static_cast<cudaStream_t>(stream)>>>(grid, neighbours_, p, exceptions, planes);
    TCBOUND_LAUNCHED();
  }

private:
  // Of a star in 3D whose exceptions, if there are any, are rows of the diagonal; else none are found.
  void find_neighbours(const Stencil &s) {
    if (!s.diagonal_exceptions()) return;
    for (int n = 0; n < 6; ++n) {
      int offset[3] = {0, 0, 0}, found = -1;
      offset[n / 2] = n % 2 ? 1 : -1;
      for (int slot = 0; slot < slots_.count; ++slot)
        if (slots_.slots[slot].neighbour == neighbour_number(offset[0], offset[1], offset[2])) found = slot;
      if (found < 0) return;
      neighbours_.distances[n] = slots_.slots[found].value;
    }
    neighbours_.values = slots_.values;
    neighbours_.line = slots_.line;
    neighbours_.plane = slots_.plane;
  }

  template <class P>
  void launch_kernel(void *stream, const DeviceGrid &grid, const P &p, const DeviceExceptions &exceptions,
                     const DeviceBox &area) {
    const auto blocks = [&](int d, unsigned length) {
      return static_cast<unsigned>(divide_up(area.end[d] - area.begin[d], length));
    };
    varying_kernel<V, P>
      <<<dim3(blocks(0, block_.x), blocks(1, block_.y), blocks(2, block_.z)), block_, 0, static_cast<cudaStream_t>(stream)>>>(
        grid, slots_, p, exceptions, area);
    TCBOUND_LAUNCHED();
  }

  VaryingSlots<V> slots_{};
  SweepSlots      neighbours_{}; // values: null if there are others than those of a star
  dim3            block_;
  bool            halved_;
  int             multiprocessors_;
};

} // namespace

bool has_varying_kernel(const Stencil &s) {
  const std::int64_t *n = s.extents.n;
  if (s.extents.dof != 1 || s.array_count() == 0) return false;
  for (int d = 0; d < 3; ++d)
    if (std::max(s.reach_low(d), s.reach_high(d)) > (n[d] > 1 ? 1 : 0)) return false;
  return divide_up(n[1], 4) <= 65535 && divide_up(n[2], 2) <= 65535; // blocks in the second and third dimension
}

std::unique_ptr<Marcher> make_varying(Executor &executor, const Stencil &s, const Values &layout, const double *values) {
  const std::int64_t *n = s.extents.n;
  const int           count = s.array_count() == s.slot_count() ? s.slot_count() : 0; // if all vary
  const dim3          block = n[2] > 1 ? dim3(32, 4, 2) : n[1] > 1 ? dim3(32, 8) : dim3(256);
  const auto          make = [&](auto kernel, dim3 tile) -> std::unique_ptr<Marcher> {
    return std::make_unique<VaryingOf<decltype(kernel)>>(executor, s, layout, values, tile);
  };
  if (count == 27) return make(Varying<27>(), dim3(32, 4, 4)); // a tile for the L1
  if (count == 7) return make(Varying<7>(), block);
  if (count == 9) return make(Varying<9>(), block);
  if (count == 5) return make(Varying<5>(), block);
  return make(Varying<0>(), block);
}

} // namespace tcbound::grid
