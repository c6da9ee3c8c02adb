// Sweeps on CUDA cores: pipelines of T steps in registers (pipeline_2d.h, pipeline_3d.h).
#include "cuda/error.h"
#include "pass.h"

namespace tcbound::stencil {
namespace {

class CudaCoreSweeper final : public Sweeper {
public:
  using Sweeper::Sweeper;
  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Shape &shape) const override {
    if (device.space != MemorySpace::cuda) return "it needs a CUDA device";
    if (device.compute_major < 8) return "asynchronous copies need compute capability 8.0";
    return makers(shape).empty() ? "it has no pipeline for the stencil " + shape.name : "";
  }

  std::vector<int> depths(const Shape &shape) const override { return depths_of(makers(shape)); }

  std::unique_ptr<Sweep> build(Executor &executor, const Problem &problem, int depth) const override {
    check_problem(problem);
    const std::string why_not = check(executor.device(), problem.shape);
    if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);
    return make_sweep(executor, problem, makers(problem.shape), depth > 0 ? depth : depths(problem.shape).back());
  }

private:
  static std::vector<PassMaker> makers(const Shape &shape) {
    return shape.dimensions == 2 ? pipelines_2d(shape) : pipelines_3d(shape);
  }
};

} // namespace

const Sweeper &stencil_iterated_cuda_core() {
  static const CudaCoreSweeper sweeper("cuda_core");
  return sweeper;
}

} // namespace tcbound::stencil
