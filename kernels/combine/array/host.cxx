// Linear combinations on a host core. A stretch of w stays in the L1 while all terms are added to it.
#include <algorithm>

#include "format.h"

namespace tcbound {
namespace {

class CombineArrayHost final : public ElementwiseKernel {
public:
  CombineArrayHost() : ElementwiseKernel("combine", "array", "host") {}

  MemorySpace space() const override { return MemorySpace::host; }

  std::string check_vectors(const Device &device, std::int64_t, MmaShape) const override {
    return device.space == MemorySpace::host ? "" : "it runs on the host only";
  }

  Work work(const Elementwise &call) const override { return combine::count_work(call); }

  void run(Executor &, const Elementwise &call) const override {
    combine::check_call(*this, call);
    for (std::int64_t at = 0; at < call.length; at += stretch) add_up(call, at, std::min(stretch, call.length - at));
  }

private:
  static constexpr std::int64_t stretch = 1024; // 8 KiB of the sum, and of the term that is being added

  // In a buffer, because w may be one of v.
  static void add_up(const Elementwise &call, std::int64_t at, std::int64_t count) {
    double        sum[stretch];
    const double *v = call.v[0] + at;
    const double  c = call.coefficients[0], scale = call.scale;
    double       *w = call.w + at;
    if (scale == 0.0)
      for (std::int64_t i = 0; i < count; ++i) sum[i] = c * v[i];
    else if (scale == 1.0)
      for (std::int64_t i = 0; i < count; ++i) sum[i] = w[i] + c * v[i];
    else
      for (std::int64_t i = 0; i < count; ++i) sum[i] = scale * w[i] + c * v[i];
    for (int k = 1; k < call.terms; ++k) {
      const double *next = call.v[k] + at;
      const double  factor = call.coefficients[k];
      for (std::int64_t i = 0; i < count; ++i) sum[i] += factor * next[i];
    }
    std::copy_n(sum, count, w);
  }
};

} // namespace

const Kernel &combine_array_host() {
  static const CombineArrayHost kernel;
  return kernel;
}

} // namespace tcbound
