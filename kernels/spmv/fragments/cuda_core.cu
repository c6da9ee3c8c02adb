// spmv/fragments/cuda_core: the twin of tensor_core, by multiply-adds and shuffles.
#include "by_cuda_cores.h"
#include "columns.h"
#include "fragment_format.h"
#include "rounded.h"
#include "sharing.h"
#include "spmv/tiles/sample.h"

namespace tcbound {
namespace {

class FragmentsCudaCore final : public Kernel {
public:
  FragmentsCudaCore() : Kernel("spmv", "fragments", "cuda_core") {}

  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Problem &problem) const override {
    return csr::check_device(device, problem.csr);
  }

  Work predict(const Problem &problem, bool transpose, bool accumulate) const override {
    return fragments::predict(problem, transpose, accumulate);
  }

  // Other formats take fewer bytes but of rows in nodes whose values do not repeat, and ask the L2 more often where x is gathered.
  bool suits(Executor &executor, const Problem &problem) const override {
    return tiles::take_sample(executor, problem.csr).gathers() ||
           fragments::seem_to_share(executor, problem.csr, fragments::Config{}.max_steps);
  }

  std::unique_ptr<Format> build(Executor &executor, const Problem &problem) const override {
    const std::string why_not = check(executor.device(), problem);
    if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);
    return fragments::build(executor, problem.csr, MmaShape::automatic, fragments::Config{}, problem.arithmetic);
  }

  void apply(Executor &executor, Format &format, const Product &product) const override {
    using namespace fragments;
    auto         &of = static_cast<FragmentFormat &>(format);
    DeviceMatrix &m = of.matrix(executor, product.transpose);
    if (m.arithmetic != Arithmetic::fp64) return multiply_rounded_by_cuda_cores(executor, m, product, of.rounds());
    launch<CudaCores<Fp64>>(executor, m, product, of.rounds());
  }

  void apply_columns(Executor &executor, Format &format, const Product &product, const Columns &columns) const override {
    using namespace fragments;
    auto &of = static_cast<FragmentFormat &>(format);
    if (columns.count <= 1 || !of.takes_columns(executor, product.transpose))
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
