// Sweeps on CUDA cores: pipelines of T steps in registers (pipeline_2d.h, pipeline_3d.h); one step by the kernels of ../grid or, as
// pass.h says, of ../banded.
#include "cuda/error.h"
#include "pass.h"

namespace tcbound::stencil {
namespace {

class CudaCoreSweeper final : public PassSweeper {
public:
  using PassSweeper::PassSweeper;
  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Shape &shape) const override {
    if (device.space != MemorySpace::cuda) return "it needs a CUDA device";
    if (device.compute_major < 8) return "asynchronous copies need compute capability 8.0";
    return depths(shape, MmaShape::automatic).empty() ? "it has no pipeline for the stencil " + shape.name : "";
  }

protected:
  std::vector<PassMaker> makers(const Shape &shape, MmaShape) const override {
    const std::vector<PassMaker> deeper = shape.dimensions == 2 ? pipelines_2d(shape) : pipelines_3d(shape);
    if (deeper.empty()) return {};
    std::vector<PassMaker> all = single_steps(shape);
    all.insert(all.end(), deeper.begin(), deeper.end());
    return all;
  }
  std::vector<RelaxationMaker> relaxation_makers(const Shape &shape) const override {
    return shape.dimensions == 2 ? relaxations_2d(shape) : relaxations_3d(shape);
  }
};

} // namespace

const Sweeper &stencil_iterated_cuda_core() {
  static const CudaCoreSweeper sweeper("iterated", "cuda_core");
  return sweeper;
}

} // namespace tcbound::stencil
