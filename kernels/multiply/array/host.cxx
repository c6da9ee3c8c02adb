// Elementwise products, w = x y, on a host core.
#include "format.h"
#include "host_loops.h"

namespace tcbound {
namespace {

class MultiplyArrayHost final : public ElementwiseKernel {
public:
  MultiplyArrayHost() : ElementwiseKernel("multiply", "array", "host") {}

  MemorySpace space() const override { return MemorySpace::host; }

  std::string check_vectors(const Device &device, std::int64_t, MmaShape) const override {
    return device.space == MemorySpace::host ? "" : "it runs on the host only";
  }

  Work work(const Elementwise &call) const override { return multiply_work(call); }

  void run(Executor &, const Elementwise &call) const override {
    check_multiply(*this, call);
    const double      *x = call.v[0], *y = call.v[1];
    double            *w = call.w;
    const std::int64_t n = call.length;
    TCBOUND_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < n; ++i) w[i] = x[i] * y[i];
  }
};

} // namespace

const Kernel &multiply_array_host() {
  static const MultiplyArrayHost kernel;
  return kernel;
}

} // namespace tcbound
