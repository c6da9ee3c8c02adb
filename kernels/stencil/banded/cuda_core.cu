// The twin of tensor_core.cu: the same buffers, loads, stores, launches and lanes, with multiply-adds on CUDA cores. Some of its passes are
// the single steps of stencil/iterated/cuda_core, and some there have rows that suit CUDA cores alone.
#include "passes.h"

namespace tcbound::stencil {
namespace {

class BandedTwin final : public PassSweeper {
public:
  using PassSweeper::PassSweeper;
  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Shape &shape) const override {
    if (device.space != MemorySpace::cuda) return "it needs a CUDA device";
    if (device.compute_major < 8) return "asynchronous copies need compute capability 8.0";
    return depths(shape, MmaShape::automatic).empty() ? "it has no bands for the stencil " + shape.name : "";
  }

protected:
  std::vector<PassMaker> makers(const Shape &shape, MmaShape) const override {
    return banded_passes<Arithmetic::multiply_add>(shape);
  }
};

} // namespace

std::vector<PassMaker> marches(const Shape &shape) {
  std::vector<PassMaker> all = banded_passes<Arithmetic::multiply_add>(shape);
  all.resize(all.empty() ? 0 : 1);
  return all;
}

std::vector<PassMaker> wide_rows(const Shape &shape) {
  constexpr Arithmetic multiply_add = Arithmetic::multiply_add;
  if (shape.offsets == star(2, 3).offsets)
    return {direct_step<DirectRows<Banded2d<multiply_add, Outline::star, 3>, 7, 4, 3>>()};
  if (shape.offsets == box(2, 2).offsets) return {direct_step<DirectRows<Banded2d<multiply_add, Outline::box, 2>, 7, 4, 3>>()};
  return {};
}

const Sweeper &stencil_banded_cuda_core() {
  static const BandedTwin sweeper("banded", "cuda_core");
  return sweeper;
}

} // namespace tcbound::stencil
