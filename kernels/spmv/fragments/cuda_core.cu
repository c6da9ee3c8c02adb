// spmv/fragments/cuda_core: the twin of tensor_core, by multiply-adds and shuffles.
#include "columns.h"
#include "fragment_format.h"
#include "multiply.h"

namespace tcbound {
namespace fragments {
namespace {

struct CudaCores {
  static constexpr int depth(int node) { return node > 1 ? 4 : 2; }
  static constexpr int min_blocks(int node) { return node > 1 ? 5 : 6; }

  template <int node> struct Sums { double of[slices]; };

  template <int node, int steps>
  static __device__ void add(Sums<node> &sums, const double (&v)[steps][slices], const double (&w)[steps][slices]) {
#pragma unroll
    for (int u = 0; u < steps; ++u)
#pragma unroll
      for (int j = 0; j < values_of_lane(node); ++j) sums.of[j] = fma(v[u][j], w[u][j], sums.of[j]);
  }

  // 4 sums in each of 4 lanes: half of them change hands, then a quarter.
  template <int node> static __device__ double collect(const Sums<node> &sums, int lane) {
    const bool   odd = lane % 2 != 0, upper = lane % 4 >= 2;
    const double low = (odd ? sums.of[1] : sums.of[0]) + __shfl_xor_sync(all_lanes, odd ? sums.of[0] : sums.of[1], 1);
    const double high = (odd ? sums.of[3] : sums.of[2]) + __shfl_xor_sync(all_lanes, odd ? sums.of[2] : sums.of[3], 1);
    return (upper ? high : low) + __shfl_xor_sync(all_lanes, upper ? low : high, 2);
  }

  template <int lanes>
  static __device__ void packed(const double (&v)[slices], const double (&w)[slices], int, double (&sums)[slices]) {
#pragma unroll
    for (int j = 0; j < slices; ++j) {
      sums[j] = v[j] * w[j];
      if (lanes == 2) sums[j] += __shfl_xor_sync(all_lanes, sums[j], 1);
    }
  }
};

} // namespace
} // namespace fragments

namespace {

class FragmentsCudaCore final : public Kernel {
public:
  FragmentsCudaCore() : Kernel("spmv", "fragments", "cuda_core") {}

  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Problem &problem) const override {
    return csr::check_device(device, problem.csr);
  }

  Work predict(const Problem &problem, bool transpose, bool accumulate) const override {
    return fragments::predict(problem.csr, transpose, accumulate);
  }

  std::unique_ptr<Format> build(Executor &executor, const Problem &problem) const override {
    const std::string why_not = check(executor.device(), problem);
    if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);
    return fragments::build(executor, problem.csr, MmaShape::automatic, fragments::Config{});
  }

  void apply(Executor &executor, Format &format, const Product &product) const override {
    auto &of = static_cast<fragments::FragmentFormat &>(format);
    fragments::launch<fragments::CudaCores>(executor, of.matrix(executor, product.transpose), product, of.rounds());
  }

  void apply_columns(Executor &executor, Format &format, const Product &product, const Columns &columns) const override {
    using namespace fragments;
    auto &of = static_cast<FragmentFormat &>(format);
    if (columns.count <= 1 || !of.has_nodes(executor, product.transpose))
      return Kernel::apply_columns(executor, format, product, columns);
    const double *packed = of.pack(executor, product, columns);
    multiply_columns_by_cuda_cores(executor, of.matrix(executor, product.transpose), packed, of.inputs(product.transpose),
                                   product, columns, of.rounds());
  }
};

} // namespace

const Kernel &spmv_fragments_cuda_core() {
  static const FragmentsCudaCore kernel;
  return kernel;
}

} // namespace tcbound
