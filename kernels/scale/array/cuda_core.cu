// SCALE on CUDA cores: the twin of tensor_core.cu.
#include "device_scale.h"

namespace tcbound {
namespace {

struct CudaCore {
  __device__ static void multiply(double (&r)[scale::lane_elements], double q, const double (&v)[scale::lane_elements], int) {
#pragma unroll
    for (int k = 0; k < scale::lane_elements; ++k) r[k] = q * v[k];
  }
};

class ScaleArrayCudaCore final : public ElementwiseKernel {
public:
  ScaleArrayCudaCore() : ElementwiseKernel("scale", "array", "cuda_core") {}

  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check_vectors(const Device &device, std::int64_t length, MmaShape) const override {
    return device.space == MemorySpace::cuda ? scale::check_length(length) : "it runs on a CUDA device only";
  }

  Work work(const Elementwise &call) const override { return scale::count_work(call.length); }

  void run(Executor &executor, const Elementwise &call) const override {
    scale::check_call(*this, call);
    scale::launch<CudaCore>(executor, call);
  }
};

} // namespace

const Kernel &scale_array_cuda_core() {
  static const ScaleArrayCudaCore kernel;
  return kernel;
}

} // namespace tcbound
