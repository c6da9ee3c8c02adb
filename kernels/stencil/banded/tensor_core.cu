// Stencils on tensor cores: banded matrices times windows of rows (banded_2d.h).
#include "../../cuda/mma_code.h"
#include "passes.h"

namespace tcbound::stencil {
namespace {

class BandedTensorCore final : public PassSweeper {
public:
  using PassSweeper::PassSweeper;
  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Shape &shape) const override {
    const std::string why_not = check_mma(device, MmaShape::automatic);
    if (!why_not.empty()) return why_not;
    return depths(shape, MmaShape::m8n8k4).empty() ? "it has no bands for the stencil " + shape.name : "";
  }

protected:
  std::string check_instruction(const Device &device, MmaShape mma) const override { return check_mma_code(device, mma); }

  // Where a row of the stencil needs fewer columns of its window than the largest shape has, shorter instructions of the same
  // rate take over, so that it wastes nothing more than they do.
  MmaShape mma_for(const Device &device, MmaShape asked) const override {
    if (asked != MmaShape::automatic) return asked;
    return check_mma_code(device, MmaShape::m16n8k16).empty() ? MmaShape::m16n8k16 : MmaShape::m8n8k4;
  }

  std::vector<PassMaker> makers(const Shape &shape, MmaShape mma) const override {
    switch (mma) {
    case MmaShape::m8n8k4:
      return banded_passes<Arithmetic::m8n8k4>(shape);
    case MmaShape::m16n8k4:
      return banded_passes<Arithmetic::m16n8k4>(shape);
    case MmaShape::m16n8k8:
      return banded_passes<Arithmetic::m16n8k8>(shape);
    default:
      return banded_passes<Arithmetic::m16n8k16>(shape);
    }
  }
};

} // namespace

const Sweeper &stencil_banded_tensor_core() {
  static const BandedTensorCore sweeper("banded", "tensor_core");
  return sweeper;
}

} // namespace tcbound::stencil
