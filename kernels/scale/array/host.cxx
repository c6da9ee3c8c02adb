// SCALE on a host core.
#include "format.h"
#include "host_loops.h"

namespace tcbound {
namespace {

class ScaleArrayHost final : public ElementwiseKernel {
public:
  ScaleArrayHost() : ElementwiseKernel("scale", "array", "host") {}

  MemorySpace space() const override { return MemorySpace::host; }

  std::string check_vectors(const Device &device, std::int64_t, MmaShape) const override {
    return device.space == MemorySpace::host ? "" : "it runs on the host only";
  }

  Work work(const Elementwise &call) const override { return scale::count_work(call.length); }

  void run(Executor &, const Elementwise &call) const override {
    scale::check_call(*this, call);
    const double       q = call.coefficients[0];
    const double      *x = call.v[0];
    double            *z = call.w;
    const std::int64_t n = call.length;
    TCBOUND_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < n; ++i) z[i] = q * x[i];
  }
};

} // namespace

const Kernel &scale_array_host() {
  static const ScaleArrayHost kernel;
  return kernel;
}

} // namespace tcbound
