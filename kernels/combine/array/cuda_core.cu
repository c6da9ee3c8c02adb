// Linear combinations on CUDA cores: a fused multiply-add a term, in the order of the terms.
#include "cuda/elementwise.h"
#include "format.h"

namespace tcbound {
namespace {

// Terms of one launch; more are added up in several, which then read w again. 128 are 2 KiB of a kernel's arguments.
constexpr int most_terms = 128;

template <int capacity> struct Terms {
  const double *v[capacity];
  double        c[capacity];
};

template <int terms, bool keep> struct Few {
  const double *w;
  double        scale;
  Terms<terms>  t;

  template <class T> __device__ T at(std::int64_t i) const {
    T v[terms];
#pragma unroll
    for (int k = 0; k < terms; ++k) v[k] = load<T>(t.v[k], i);
    T sum;
    if constexpr (keep)
      sum = multiply_add(t.c[0], v[0], multiply(scale, load<T>(w, i)));
    else
      sum = multiply(t.c[0], v[0]);
#pragma unroll
    for (int k = 1; k < terms; ++k) sum = multiply_add(t.c[k], v[k], sum);
    return sum;
  }
};

template <bool keep> struct Many {
  const double     *w;
  double            scale;
  Terms<most_terms> t;
  int               terms; // at least 4

  template <class T> __device__ T at(std::int64_t i) const {
    T sum;
    if constexpr (keep)
      sum = multiply_add(t.c[0], load<T>(t.v[0], i), multiply(scale, load<T>(w, i)));
    else
      sum = multiply(t.c[0], load<T>(t.v[0], i));
#pragma unroll 4
    for (int k = 1; k < terms; ++k) sum = multiply_add(t.c[k], load<T>(t.v[k], i), sum);
    return sum;
  }
};

template <int capacity> void fill(Terms<capacity> &t, const Elementwise &call, int first, int count) {
  for (int k = 0; k < count; ++k) {
    t.v[k] = call.v[first + k];
    t.c[k] = call.coefficients[first + k];
  }
}

template <int terms, bool keep> void few(Executor &executor, const Elementwise &call, bool aligned, double scale, int first) {
  Few<terms, keep> operation{call.w, scale, {}};
  fill(operation.t, call, first, terms);
  launch_elementwise(executor, call.w, operation, call.length, aligned);
}

template <bool keep> void part(Executor &executor, const Elementwise &call, bool aligned, double scale, int first, int count) {
  if (count == 1) return few<1, keep>(executor, call, aligned, scale, first);
  if (count == 2) return few<2, keep>(executor, call, aligned, scale, first);
  if (count == 3) return few<3, keep>(executor, call, aligned, scale, first);
  Many<keep> operation{call.w, scale, {}, count};
  fill(operation.t, call, first, count);
  launch_elementwise(executor, call.w, operation, call.length, aligned);
}

class CombineArrayCudaCore final : public ElementwiseKernel {
public:
  CombineArrayCudaCore() : ElementwiseKernel("combine", "array", "cuda_core") {}

  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check_vectors(const Device &device, std::int64_t length, MmaShape) const override {
    return check_elementwise(device, length);
  }

  Work work(const Elementwise &call) const override { return combine::count_work(call); }

  void run(Executor &executor, const Elementwise &call) const override {
    combine::check_call(*this, call);
    bool aligned = true;
    for (int k = 0; k < call.terms; ++k) aligned = aligned && is_odd(call.v[k]) == is_odd(call.w);
    double scale = call.scale;
    for (int first = 0; first < call.terms; first += most_terms, scale = 1.0) {
      const int count = std::min(call.terms - first, most_terms);
      if (scale == 0.0)
        part<false>(executor, call, aligned, scale, first, count);
      else
        part<true>(executor, call, aligned, scale, first, count);
    }
  }
};

} // namespace

const Kernel &combine_array_cuda_core() {
  static const CombineArrayCudaCore kernel;
  return kernel;
}

} // namespace tcbound
