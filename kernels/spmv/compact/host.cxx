// spmv/compact/host: one thread, in vectors across the rows of a slice.
#include <limits>

#include "arithmetic.h"
#include "host_format.h"
#include "host_product.h"

namespace tcbound {
namespace {

class CompactHost final : public Kernel {
public:
  CompactHost() : Kernel("spmv", "compact", "host") {}

  MemorySpace space() const override { return MemorySpace::host; }

  std::string check(const Device &device, const Problem &problem) const override {
    if (device.space != MemorySpace::host) return "it runs on the host and the device is " + device.name;
    if (problem.csr.space != MemorySpace::host) return "the matrix lies in device memory";
    if (const std::string why_not = check_fp64(problem); !why_not.empty()) return why_not;
    if (problem.csr.rows > std::numeric_limits<std::int32_t>::max())
      return "there are " + std::to_string(problem.csr.rows) + " rows and it counts rows in 32 bits";
    return {};
  }

  Work predict(const Problem &problem, bool transpose, bool accumulate) const override {
    return compact::least_work(problem.csr, transpose, accumulate);
  }

  std::unique_ptr<Format> build(Executor &executor, const Problem &problem) const override {
    const std::string why_not = check(executor.device(), problem);
    if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);
    return std::make_unique<compact::HostFormat>(executor, problem.csr);
  }

  void apply(Executor &, Format &format, const Product &product) const override {
    const compact::HostArrays &arrays = static_cast<compact::HostFormat &>(format).arrays();
    compact::host_variants().front().multiply(arrays, product);
  }
};

} // namespace

const Kernel &spmv_compact_host() {
  static const CompactHost kernel;
  return kernel;
}

} // namespace tcbound
