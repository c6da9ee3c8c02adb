// spmv/sell/host: one thread, in vectors across the rows of a slice.
#include <limits>

#include "arithmetic.h"
#include "host_format.h"
#include "host_product.h"

namespace tcbound {
namespace {

class SellHost final : public Kernel {
public:
  SellHost() : Kernel("spmv", "sell", "host") {}

  MemorySpace space() const override { return MemorySpace::host; }

  std::string check(const Device &device, const Problem &problem) const override {
    const std::int64_t most = std::numeric_limits<std::int32_t>::max();
    if (device.space != MemorySpace::host) return "it runs on the host and the device is " + device.name;
    if (problem.csr.space != MemorySpace::host) return "the matrix lies in device memory";
    if (const std::string why_not = check_fp64(problem); !why_not.empty()) return why_not;
    if (problem.csr.rows > most) return "there are " + std::to_string(problem.csr.rows) + " rows and it counts rows in 32 bits";
    if (problem.csr.columns_count > most)
      return "there are " + std::to_string(problem.csr.columns_count) + " columns and it stores column indices in 32 bits";
    return {};
  }

  Work predict(const Problem &problem, bool transpose, bool accumulate) const override {
    return sell::least_work(problem.csr, transpose, accumulate);
  }

  std::unique_ptr<Format> build(Executor &executor, const Problem &problem) const override {
    const std::string why_not = check(executor.device(), problem);
    if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);
    return std::make_unique<sell::HostFormat>(executor, problem.csr);
  }

  void apply(Executor &, Format &format, const Product &product) const override {
    sell::host_variants().front().multiply(static_cast<sell::HostFormat &>(format).arrays(), product);
  }
};

} // namespace

const Kernel &spmv_sell_host() {
  static const SellHost kernel;
  return kernel;
}

} // namespace tcbound
