// Reductions on a host core: eight sums side by side, so that they fit vector registers, added up in a fixed order.
#include <algorithm>
#include <cmath>

#include "format.h"

namespace tcbound {
namespace {

constexpr std::int64_t lanes = 8;

// The sum of term(i) for i < length.
template <class Term> double add_up(std::int64_t length, Term term) {
  double       sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= length; i += lanes)
    for (std::int64_t k = 0; k < lanes; ++k) sums[k] += term(i + k);
  for (std::int64_t k = 0; i < length; ++i, ++k) sums[k] += term(i);
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

double largest_magnitude(const double *x, std::int64_t length) {
  double largest = 0.0;
  for (std::int64_t i = 0; i < length; ++i) {
    const double size = std::abs(x[i]);
    if (!(size <= largest)) largest = size; // a NaN comes in, and then all is NaN
    if (std::isnan(largest)) break;
  }
  return largest;
}

class ReduceArrayHost final : public ReductionKernel {
public:
  ReduceArrayHost() : ReductionKernel("reduce", "array", "host") {}

  MemorySpace space() const override { return MemorySpace::host; }

  std::string check_vectors(const Device &device, std::int64_t, MmaShape) const override {
    return device.space == MemorySpace::host ? "" : "it runs on the host only";
  }

  Work work(const Reduction &call) const override { return reduce::count_work(call); }

  void start(Executor &, ReductionSpace &, const Reduction &call) const override { reduce::check_call(*this, call); }

  void finish(Executor &, ReductionSpace &, const Reduction &call, double *results) const override {
    const double *x = call.x;
    const double  factor = call.factor;
    std::fill_n(results, call.results(), 0.0);
    if (call.sum == Sum::maximum) {
      results[0] = largest_magnitude(x, call.length);
      return;
    }
    // Stretch by stretch, so that x stays in the L1 while all its sums are made.
    for (std::int64_t at = 0; at < call.length; at += stretch, x += stretch) {
      const std::int64_t n = std::min(stretch, call.length - at);
      switch (call.sum) {
      case Sum::dots:
        add_dots(call, x, at, n, results);
        break;
      case Sum::squares:
        results[0] += add_up(n, [=](std::int64_t i) { return (factor * x[i]) * (factor * x[i]); });
        break;
      case Sum::magnitudes:
        results[0] += add_up(n, [=](std::int64_t i) { return std::abs(x[i]); });
        break;
      case Sum::both:
        results[0] += add_up(n, [=](std::int64_t i) { return std::abs(x[i]); });
        results[1] += dot(x, x, n);
        break;
      case Sum::dot_and_squares:
        results[0] += dot(x, call.y[0] + at, n);
        results[1] += dot(call.y[0] + at, call.y[0] + at, n);
        break;
      case Sum::maximum:
        break;
      }
    }
  }

private:
  static constexpr std::int64_t stretch = 8192; // 64 KiB of x

  // Four at a time, which read x once; their sums fit the registers of any processor.
  static void add_dots(const Reduction &call, const double *x, std::int64_t at, std::int64_t n, double *results) {
    constexpr std::int64_t few = 4;
    int                    k = 0;
    for (; k + 4 <= call.terms; k += 4) {
      const double *y[4];
      double        sums[4][few] = {};
      for (int j = 0; j < 4; ++j) y[j] = call.y[k + j] + at;
      std::int64_t i = 0;
      for (; i + few <= n; i += few)
        for (int j = 0; j < 4; ++j)
          for (std::int64_t l = 0; l < few; ++l) sums[j][l] += x[i + l] * y[j][i + l];
      for (int j = 0; j < 4; ++j) {
        for (std::int64_t l = 0; i + l < n; ++l) sums[j][l] += x[i + l] * y[j][i + l];
        results[k + j] += (sums[j][0] + sums[j][2]) + (sums[j][1] + sums[j][3]);
      }
    }
    for (; k < call.terms; ++k) results[k] += dot(x, call.y[k] + at, n);
  }

  static double dot(const double *x, const double *y, std::int64_t n) {
    return add_up(n, [=](std::int64_t i) { return x[i] * y[i]; });
  }
};

} // namespace

const Kernel &reduce_array_host() {
  static const ReduceArrayHost kernel;
  return kernel;
}

} // namespace tcbound
