// Elementwise products, w = x y, on CUDA cores.
#include "cuda/elementwise.h"
#include "format.h"

namespace tcbound {
namespace {

struct Multiply {
  const double *x, *y;

  template <class T> __device__ T at(std::int64_t i) const { return multiply(load<T>(x, i), load<T>(y, i)); }
};

class MultiplyArrayCudaCore final : public ElementwiseKernel {
public:
  MultiplyArrayCudaCore() : ElementwiseKernel("multiply", "array", "cuda_core") {}

  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check_vectors(const Device &device, std::int64_t length, MmaShape) const override {
    return check_elementwise(device, length);
  }

  Work work(const Elementwise &call) const override { return multiply_work(call); }

  void run(Executor &executor, const Elementwise &call) const override {
    check_multiply(*this, call);
    const bool aligned = is_odd(call.v[0]) == is_odd(call.w) && is_odd(call.v[1]) == is_odd(call.w);
    launch_elementwise(executor, call.w, Multiply{call.v[0], call.v[1]}, call.length, aligned);
  }
};

} // namespace

const Kernel &multiply_array_cuda_core() {
  static const MultiplyArrayCudaCore kernel;
  return kernel;
}

} // namespace tcbound
