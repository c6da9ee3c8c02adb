// stencil/grid/host: one thread, in vectors along the first dimension.
#include <algorithm>

#include "format.h"
#include "host_product.h"

namespace tcbound {
namespace {

class HostFormat final : public grid::GridFormat {
public:
  using GridFormat::GridFormat;

  void multiply(Executor &, const Product &product, const double *ghosts, grid::Part part) override {
    for (const grid::Box &box : stencil().boxes(part)) grid::multiply(stencil(), product, ghosts, box);
  }

  void relax(Executor &, const grid::Relaxation &relaxation, const double *ghosts, grid::Part part) override {
    for (const grid::Box &box : stencil().boxes(part)) grid::relax(stencil(), relaxation, ghosts, box);
  }

  void diagonal(Executor &, double *d) override {
    const grid::Stencil &s = stencil();
    const int            dof = s.extents.dof;
    std::fill_n(d, s.extents.rows(), 0.0);
    for (int slot = 0; slot < s.slot_count(); ++slot) {
      const grid::Slot &at = s.slots[static_cast<std::size_t>(slot)];
      if (!grid::is_centre(at)) continue;
      for (std::int64_t cell = 0; cell < s.extents.cells(); ++cell)
        d[cell * dof + at.component] = s.coefficient(slot, cell, at.component);
    }
  }

  std::int64_t stored_bytes() const override { return 0; } // all borrowed
};

class GridHost final : public grid::GridKernel {
public:
  GridHost() : GridKernel("stencil", "grid", "host") {}

  MemorySpace space() const override { return MemorySpace::host; }

  std::unique_ptr<Format> build(Executor &executor, const Problem &problem) const override {
    const std::string why_not = check(executor.device(), problem);
    if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);
    return std::make_unique<HostFormat>(*problem.stencil);
  }
};

} // namespace

const Kernel &stencil_grid_host() {
  static const GridHost kernel;
  return kernel;
}

} // namespace tcbound
