// spmv/csr/host: one thread, any mixture of 32- and 64-bit indices.
#include "arithmetic.h"
#include "format.h"
#include "host_product.h"

namespace tcbound {
namespace {

class CsrHost final : public Kernel {
public:
  CsrHost() : Kernel("spmv", "csr", "host") {}

  MemorySpace space() const override { return MemorySpace::host; }

  std::string check(const Device &device, const Problem &problem) const override {
    if (device.space != MemorySpace::host) return "it runs on the host and the device is " + device.name;
    if (problem.csr.space != MemorySpace::host) return "the matrix lies in device memory";
    if (const std::string why_not = check_fp64(problem); !why_not.empty()) return why_not;
    return {};
  }

  Work predict(const Problem &problem, bool transpose, bool accumulate) const override {
    return csr::count_work(csr::HostFormat::size_of(problem), transpose, accumulate, 0);
  }
  Work predict_in_place(const Problem &problem, bool transpose) const override {
    return csr::count_work_in_place(csr::HostFormat::size_of(problem), transpose, 0);
  }

  std::unique_ptr<Format> build(Executor &executor, const Problem &problem) const override {
    const std::string why_not = check(executor.device(), problem);
    if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);
    return std::make_unique<csr::HostFormat>(problem);
  }

  void apply(Executor &, Format &format, const Product &product) const override {
    const auto    &mine = static_cast<csr::HostFormat &>(format);
    const CsrView &a = mine.view();
    if (product.transpose) {
      csr::begin_transpose(product, a.columns_count);
      csr::add_transpose(a, mine.rows(), product);
    } else {
      mine.begin(product);
      csr::multiply(a, mine.rows(), product);
    }
  }

  void apply_columns(Executor &executor, Format &format, const Product &product, const Columns &columns) const override {
    const auto &mine = static_cast<csr::HostFormat &>(format);
    if (product.transpose) {
      Kernel::apply_columns(executor, format, product, columns);
      return;
    }
    for (std::int64_t k = 0; k < columns.count; ++k) mine.begin(from_column(product, columns, k));
    csr::multiply_columns(mine.view(), mine.rows(), product, columns);
  }
};

} // namespace

const Kernel &spmv_csr_host() {
  static const CsrHost kernel;
  return kernel;
}

} // namespace tcbound
