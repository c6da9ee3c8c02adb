// spmv/fragments/tensor_core: the products of fragments by MMA instructions, of whose results the diagonal is wanted.
#include <algorithm>

#include "columns.h"
#include "cuda/mma_code.h"
#include "fragment_format.h"
#include "mma.h"
#include "multiply.h"

namespace tcbound {
namespace fragments {
namespace {

// Instruction: one of mma.h.
template <class Instruction> struct TensorCores {
  static constexpr int taken = Instruction::steps; // by one instruction
  // The twin's, but where the unwanted results take registers.
  static constexpr int depth(int node) { return Instruction::rows == 8 && node > 1 ? 4 : std::max(2, taken); }
  static constexpr int min_blocks(int node) { return Instruction::rows == 8 ? (node > 1 ? 5 : 6) : (taken == 4 ? 3 : 4); }

  template <int node> struct Sums { typename Instruction::template Sums<(node > 1)> of[slices / 2]; };

  template <int node, int steps>
  static __device__ void add(Sums<node> &sums, const double (&v)[steps][slices], const double (&w)[steps][slices]) {
#pragma unroll
    for (int first = 0; first < steps; first += taken) {
      double a[taken][2], b[taken][2];
      take<steps>(first, 0, v, w, a, b);
      Instruction::template multiply_add<2>(sums.of[0], a, b);
      take<steps>(first, 1, v, w, a, b);
      Instruction::template multiply_add<values_of_lane(node) - 2>(sums.of[1], a, b);
    }
  }

  // What an instruction takes of a pair of slices, from step `first` on; zeros behind the last step.
  template <int steps>
  static __device__ void take(int first, int pair, const double (&v)[steps][slices], const double (&w)[steps][slices],
                              double (&a)[taken][2], double (&b)[taken][2]) {
#pragma unroll
    for (int u = 0; u < taken; ++u)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const bool in = first + u < steps;
        a[u][j] = in ? v[in ? first + u : 0][2 * pair + j] : 0.0;
        b[u][j] = in ? w[in ? first + u : 0][2 * pair + j] : 0.0;
      }
  }

  // The sum of fragment row lane / 4 of a slice, from the lane that has it.
  template <int node> static __device__ double sum_of_row(const Sums<node> &sums, int slice, int lane) {
    const double mine = Instruction::sum(sums.of[slice / 2], slice % 2, lane / 4 % 2);
    return __shfl_sync(all_lanes, mine, lane / 4 * 4 + lane / 8);
  }

  template <int node> static __device__ double collect(const Sums<node> &sums, int lane) {
    double mine = 0.0;
#pragma unroll
    for (int j = 0; j < values_of_lane(node); ++j) {
      const double of_slice = sum_of_row(sums, j, lane);
      if (lane % 4 == j) mine = of_slice;
    }
    return mine;
  }

  // One instruction for each of the rows that share a fragment row, with zeros in place of the others.
  template <int lanes>
  static __device__ void packed(const double (&v)[slices], const double (&w)[slices], int lane, double (&to)[slices]) {
#pragma unroll
    for (int part = 0; part < 4 / lanes; ++part) {
      const bool in = lane % 4 / lanes == part;
      double     a[1][slices], b[1][slices];
      Sums<1>    sums{};
#pragma unroll
      for (int j = 0; j < slices; ++j) {
        a[0][j] = in ? v[j] : 0.0;
        b[0][j] = in ? w[j] : 0.0;
      }
      add<1, 1>(sums, a, b);
#pragma unroll
      for (int j = 0; j < slices; ++j) {
        const double sum = sum_of_row(sums, j, lane);
        if (in) to[j] = sum;
      }
    }
  }
};

} // namespace
} // namespace fragments

namespace {

class FragmentsTensorCore final : public Kernel {
public:
  FragmentsTensorCore() : Kernel("spmv", "fragments", "tensor_core") {}

  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Problem &problem) const override {
    const std::string why_not = csr::check_device(device, problem.csr);
    return why_not.empty() ? check_mma_code(device, problem.mma) : why_not;
  }

  Work predict(const Problem &problem, bool transpose, bool accumulate) const override {
    return fragments::predict(problem.csr, transpose, accumulate);
  }

  std::unique_ptr<Format> build(Executor &executor, const Problem &problem) const override {
    const std::string why_not = check(executor.device(), problem);
    if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);
    return fragments::build(executor, problem.csr, problem.mma == MmaShape::automatic ? MmaShape::m8n8k4 : problem.mma,
                            fragments::Config{});
  }

  void apply(Executor &executor, Format &format, const Product &product) const override {
    using namespace fragments;
    auto         &of = static_cast<FragmentFormat &>(format);
    DeviceMatrix &m = of.matrix(executor, product.transpose);
    switch (of.shape()) {
    case MmaShape::m16n8k4:
      return launch<TensorCores<M16n8k4>>(executor, m, product, of.rounds());
    case MmaShape::m16n8k8:
      return launch<TensorCores<M16n8k8>>(executor, m, product, of.rounds());
    case MmaShape::m16n8k16:
      return launch<TensorCores<M16n8k16>>(executor, m, product, of.rounds());
    default:
      return launch<TensorCores<M8n8k4>>(executor, m, product, of.rounds());
    }
  }

  void apply_columns(Executor &executor, Format &format, const Product &product, const Columns &columns) const override {
    using namespace fragments;
    auto &of = static_cast<FragmentFormat &>(format);
    if (columns.count <= 1 || !of.has_nodes(executor, product.transpose))
      return Kernel::apply_columns(executor, format, product, columns);
    const double *packed = of.pack(executor, product, columns);
    multiply_columns_by_tensor_cores(executor, of.shape(), of.matrix(executor, product.transpose), packed,
                                     of.inputs(product.transpose), product, columns, of.rounds());
  }
};

} // namespace

const Kernel &spmv_fragments_tensor_core() {
  static const FragmentsTensorCore kernel;
  return kernel;
}

} // namespace tcbound
