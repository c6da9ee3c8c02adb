// spmv/fragments/tensor_core: the products of fragments by MMA instructions, of whose results the diagonal is wanted.
#include "arithmetic.h"
#include "by_tensor_cores.h"
#include "columns.h"
#include "cuda/mma_code.h"
#include "fragment_format.h"
#include "rounded.h"

namespace tcbound {
namespace {

class FragmentsTensorCore final : public Kernel {
public:
  FragmentsTensorCore() : Kernel("spmv", "fragments", "tensor_core") {}

  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Problem &problem) const override {
    const std::string      why_not = csr::check_device(device, problem.csr);
    const ArithmeticFacts &facts = facts_of(problem.arithmetic);
    if (!why_not.empty()) return why_not;
    if (problem.arithmetic == Arithmetic::fp64) return check_mma_code(device, problem.mma);
    if (problem.mma == MmaShape::automatic || problem.mma == facts.mma)
      return {}; // every device that is not refused above has it
    return std::string("in ") + facts.name + " it takes " + tcbound::facts_of(facts.mma).name;
  }

  Work predict(const Problem &problem, bool transpose, bool accumulate) const override {
    return fragments::predict(problem, transpose, accumulate);
  }

  std::unique_ptr<Format> build(Executor &executor, const Problem &problem) const override {
    const std::string why_not = check(executor.device(), problem);
    if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);
    MmaShape shape = problem.mma;
    if (problem.arithmetic != Arithmetic::fp64)
      shape = facts_of(problem.arithmetic).mma;
    else if (shape == MmaShape::automatic)
      shape = MmaShape::m8n8k4;
    return fragments::build(executor, problem.csr, shape, fragments::Config{}, problem.arithmetic);
  }

  void apply(Executor &executor, Format &format, const Product &product) const override {
    using namespace fragments;
    auto         &of = static_cast<FragmentFormat &>(format);
    DeviceMatrix &m = of.matrix(executor, product.transpose);
    if (m.arithmetic != Arithmetic::fp64) return multiply_rounded_by_tensor_cores(executor, m, product, of.rounds());
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
    if (columns.count <= 1 || !of.takes_columns(executor, product.transpose))
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
