// Linear combinations on a host core: up to four terms at once, each a stream of its own; more in stretches, the sum of which stays in
// the cache meanwhile.
#include <algorithm>

#include "format.h"
#include "host_loops.h"

namespace tcbound {
namespace {

constexpr int together = 4;

// sum[i] = start(i) + c[0] v[0][i] + ... for i < n, where every array is either sum or apart from it.
template <int terms, class Start>
void add_terms(double *sum, Start start, const double *const *v, const double *c, std::int64_t at, std::int64_t n) {
  const double *v0 = v[0] + at, *v1 = terms > 1 ? v[1] + at : v0, *v2 = terms > 2 ? v[2] + at : v0,
               *v3 = terms > 3 ? v[3] + at : v0;
  const double c0 = c[0], c1 = terms > 1 ? c[1] : 0.0, c2 = terms > 2 ? c[2] : 0.0, c3 = terms > 3 ? c[3] : 0.0;
  TCBOUND_INDEPENDENT_TURNS
  for (std::int64_t i = 0; i < n; ++i) {
    double s = start(i) + c0 * v0[i];
    if constexpr (terms > 1) s += c1 * v1[i];
    if constexpr (terms > 2) s += c2 * v2[i];
    if constexpr (terms > 3) s += c3 * v3[i];
    sum[i] = s;
  }
}

template <class Start>
void add_up_to_four(int terms, double *sum, Start start, const double *const *v, const double *c, std::int64_t at,
                    std::int64_t n) {
  switch (terms) {
  case 1:
    return add_terms<1>(sum, start, v, c, at, n);
  case 2:
    return add_terms<2>(sum, start, v, c, at, n);
  case 3:
    return add_terms<3>(sum, start, v, c, at, n);
  default:
    return add_terms<4>(sum, start, v, c, at, n);
  }
}

// -0 + x is x, of either sign.
void first_terms(const Elementwise &call, int terms, double *sum, std::int64_t at, std::int64_t n) {
  const double *w = call.w + at;
  const double  scale = call.scale;
  if (scale == 0.0)
    add_up_to_four(
      terms, sum, [](std::int64_t) { return -0.0; }, call.v, call.coefficients, at, n);
  else if (scale == 1.0)
    add_up_to_four(
      terms, sum, [=](std::int64_t i) { return w[i]; }, call.v, call.coefficients, at, n);
  else
    add_up_to_four(
      terms, sum, [=](std::int64_t i) { return scale * w[i]; }, call.v, call.coefficients, at, n);
}

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
    if (call.terms <= together) return first_terms(call, call.terms, call.w, 0, call.length);
    for (std::int64_t at = 0; at < call.length; at += stretch) add_many(call, at, std::min(stretch, call.length - at));
  }

private:
  static constexpr std::int64_t stretch = 4096; // 32 KiB of the sum

  // In a buffer, because w may be one of v.
  static void add_many(const Elementwise &call, std::int64_t at, std::int64_t n) {
    double sum[stretch];
    first_terms(call, together, sum, at, n);
    for (int k = together; k < call.terms; k += together)
      add_up_to_four(
        std::min(call.terms - k, together), sum, [&sum](std::int64_t i) { return sum[i]; }, call.v + k, call.coefficients + k,
        at, n);
    std::copy_n(sum, n, call.w + at);
  }
};

} // namespace

const Kernel &combine_array_host() {
  static const CombineArrayHost kernel;
  return kernel;
}

} // namespace tcbound
