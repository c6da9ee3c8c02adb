// SCALE on tensor cores: D = A B with the vector's elements in A and q in a permutation of a diagonal matrix B. The permutation is
// chosen so that D(., 2 t) and D(., 2 t + 1) are the columns of A that the same lane holds: each lane's results come out where its
// elements went in, nothing is exchanged between lanes, and memory is accessed as on CUDA cores. Every element of D is the sum of
// one product and of zeros, so that it is the rounded product whatever the order of summation (device_scale.h: special values).
#include "cuda/mma.h"
#include "cuda/mma_code.h"
#include "device_scale.h"

namespace tcbound {
namespace {

using scale::lane_elements;

// A lane's elements of B: `even` maps columns t of A to columns 2 t of D, `odd` to 2 t + 1.
struct Diagonal {
  __device__ Diagonal(double q, int lane)
    : even(lane / 4 == 2 * (lane % 4) ? q : 0.0), odd(lane / 4 == 2 * (lane % 4) + 1 ? q : 0.0) {}
  double even, odd;
};

struct M8n8k4 {
  __device__ static void multiply(double (&r)[lane_elements], double q, const double (&v)[lane_elements], int lane) {
    const Diagonal b(q, lane);
#pragma unroll
    for (int k = 0; k < lane_elements; k += 2) {
      double d[2] = {0.0, 0.0};
      mma_m8n8k4(d, v[k], b.even);
      mma_m8n8k4(d, v[k + 1], b.odd);
      r[k] = d[0], r[k + 1] = d[1];
    }
  }
};

struct M16n8k4 {
  __device__ static void multiply(double (&r)[lane_elements], double q, const double (&v)[lane_elements], int lane) {
    const Diagonal b(q, lane);
    r[0] = r[1] = r[2] = r[3] = 0.0;
    mma_m16n8k4(r, {v[0], v[2]}, b.even);
    mma_m16n8k4(r, {v[1], v[3]}, b.odd);
  }
};

struct M16n8k8 {
  __device__ static void multiply(double (&r)[lane_elements], double q, const double (&v)[lane_elements], int lane) {
    const Diagonal b(q, lane);
    r[0] = r[1] = r[2] = r[3] = 0.0;
    mma_m16n8k8(r, {v[0], v[2], v[1], v[3]}, {b.even, b.odd});
  }
};

// D has half as many elements as A: one half of A and of B is zero.
struct M16n8k16 {
  __device__ static void multiply(double (&r)[lane_elements], double q, const double (&v)[lane_elements], int lane) {
    const Diagonal b(q, lane);
    r[0] = r[1] = r[2] = r[3] = 0.0;
    mma_m16n8k16(r, {v[0], v[2], v[1], v[3], 0.0, 0.0, 0.0, 0.0}, {b.even, b.odd, 0.0, 0.0});
  }
};

// Of the shapes with the greatest peak the one that issues least.
MmaShape choose(const Device &device, MmaShape wanted) {
  if (wanted != MmaShape::automatic) return wanted;
  return check_mma_code(device, MmaShape::m16n8k8).empty() ? MmaShape::m16n8k8 : MmaShape::m8n8k4;
}

template <class Shape> void launch(Executor &executor, const Elementwise &call) { scale::launch<Shape>(executor, call); }

class ScaleArrayTensorCore final : public ElementwiseKernel {
public:
  ScaleArrayTensorCore() : ElementwiseKernel("scale", "array", "tensor_core") {}

  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check_vectors(const Device &device, std::int64_t length, MmaShape mma) const override {
    const std::string why_not = check_mma_code(device, mma);
    return why_not.empty() ? scale::check_length(length) : why_not;
  }

  // The shapes that `automatic` chooses from issue alike.
  Work work(const Elementwise &call) const override { return scale::count_work(call.length, call.mma); }

  std::string mma(const Device &device, MmaShape shape) const override { return facts_of(choose(device, shape)).name; }

  void run(Executor &executor, const Elementwise &call) const override {
    scale::check_call(*this, call);
    const MmaShape    shape = choose(executor.device(), call.mma);
    const std::string why_not = check_mma_code(executor.device(), shape);
    if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);
    switch (shape) {
    case MmaShape::m8n8k4:
      return launch<M8n8k4>(executor, call);
    case MmaShape::m16n8k4:
      return launch<M16n8k4>(executor, call);
    case MmaShape::m16n8k8:
      return launch<M16n8k8>(executor, call);
    default:
      return launch<M16n8k16>(executor, call);
    }
  }
};

} // namespace

const Kernel &scale_array_tensor_core() {
  static const ScaleArrayTensorCore kernel;
  return kernel;
}

} // namespace tcbound
