#include "varying.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

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

template <class V> class VaryingOf final : public Marcher {
public:
  VaryingOf(const Stencil &s, const Values &values, const double *from, dim3 block) : block_(block) {
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

private:
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
  dim3            block_;
};

} // namespace

bool has_varying_kernel(const Stencil &s) {
  const std::int64_t *n = s.extents.n;
  if (s.extents.dof != 1 || s.array_count() == 0) return false;
  for (int d = 0; d < 3; ++d)
    if (std::max(s.reach_low(d), s.reach_high(d)) > (n[d] > 1 ? 1 : 0)) return false;
  return divide_up(n[1], 4) <= 65535 && divide_up(n[2], 2) <= 65535; // blocks in the second and third dimension
}

std::unique_ptr<Marcher> make_varying(const Stencil &s, const Values &layout, const double *values) {
  const std::int64_t *n = s.extents.n;
  const int           count = s.array_count() == s.slot_count() ? s.slot_count() : 0; // if all vary
  const dim3          block = n[2] > 1 ? dim3(32, 4, 2) : n[1] > 1 ? dim3(32, 8) : dim3(256);
  const auto          make = [&](auto kernel, dim3 tile) -> std::unique_ptr<Marcher> {
    return std::make_unique<VaryingOf<decltype(kernel)>>(s, layout, values, tile);
  };
  if (count == 27) return make(Varying<27>(), dim3(32, 4, 4)); // a tile for the L1
  if (count == 7) return make(Varying<7>(), block);
  if (count == 9) return make(Varying<9>(), block);
  if (count == 5) return make(Varying<5>(), block);
  return make(Varying<0>(), block);
}

} // namespace tcbound::grid
