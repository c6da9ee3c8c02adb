// spmv/tiles/cuda_core: the launches of a product's two passes, and the format on a device. What threads do is in multiply.h.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "../csr/with_transpose.h"
#include "../sell/format.h"
#include "cuda/error.h"
#include "inspect.h"
#include "multiply.h"
#include "sample.h"
#include "stored_values.h"

namespace tcbound {
namespace tiles {
namespace {

// The kernels need more shared memory than they get without asking.
void allow_shared() {
  const auto allow = [](auto *kernel, int bytes) {
    TCBOUND_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  };
  allow(sum_segments<Bfloat16>, sum_bytes);
  allow(sum_segments<float>, sum_bytes);
  allow(sum_segments<double>, sum_bytes);
  allow(add_sums, add_bytes);
}

void multiply(Executor &executor, DeviceMatrix &matrix, const Product &p) {
  const auto stream = static_cast<cudaStream_t>(executor.stream());
  if (matrix.census.rows == 0) return;
  if (matrix.items.size() > 0) {
    with_values(matrix, [&](const auto *values) {
      using Value = std::decay_t<decltype(*values)>;
      const SumArguments<Value> a = {matrix.items.data(),
                                     matrix.first_sum.data(),
                                     matrix.columns.data(),
                                     values,
                                     p.x,
                                     static_cast<std::int32_t>(matrix.census.columns),
                                     matrix.sums.data()};
      sum_segments<Value><<<static_cast<unsigned>(matrix.items.size()), sum_threads, sum_bytes, stream>>>(a);
      TCBOUND_LAUNCHED();
    });
  }
  const AddArguments a = {matrix.bins.data(),
                          matrix.runs.data(),
                          static_cast<int>(matrix.census.tiles),
                          matrix.places.data(),
                          matrix.row_sums.data(),
                          matrix.sums.data(),
                          p.alpha,
                          p.beta,
                          p.y,
                          p.z};
  add_sums<<<static_cast<unsigned>(matrix.census.bins), add_threads, add_bytes, stream>>>(a);
  TCBOUND_LAUNCHED();
}

// The transpose is a matrix of its own, built when first needed.
class CudaCoreFormat final : public Format {
public:
  CudaCoreFormat(Executor &executor, const CsrView &view)
    : matrices_(tiles::build(executor, csr::bring_to_device(executor, view, false))) {
    allow_shared();
  }

  const char *name() const override { return "tiles"; }

  void prepare(Executor &executor, bool transpose) override {
    if (transpose) matrices_.prepare(executor, [&](csr::DeviceArrays csr) { return tiles::build(executor, std::move(csr)); });
  }

  void refill(Executor &executor, const double *values, MemorySpace space) override {
    matrices_.refill(executor, values, space,
                     [&](DeviceMatrix &matrix, const double *from) { tiles::refill(executor, matrix, from); });
  }

  void diagonal(Executor &executor, double *d) override { tiles::diagonal(executor, plain(), d); }

  // Of a transpose that is not there yet, the least that it can be.
  Work work(bool transpose, bool accumulate) const override {
    if (!transpose || matrices_.have_transpose()) return count_work(matrices_.of(transpose).census, accumulate);
    CsrView view;
    view.rows = plain().csr.rows;
    view.columns_count = plain().csr.columns_count;
    view.nonzeros = plain().csr.nonzeros;
    return least_work(view, true, accumulate);
  }

  std::int64_t stored_bytes() const override { return matrices_.bytes(); }

  double      usual_share() const override { return tiles::usual_share; }
  bool        gathers() const override { return false; }
  std::string describe() const override { return tiles::describe(plain().census); }

  const DeviceMatrix &plain() const { return matrices_.plain(); }

  void multiply(Executor &executor, const Product &product) {
    prepare(executor, product.transpose);
    tiles::multiply(executor, matrices_.of(product.transpose), product);
  }

private:
  csr::WithTranspose<DeviceMatrix> matrices_;
};

const DeviceMatrix &matrix_of(const Format &format) { return static_cast<const CudaCoreFormat &>(format).plain(); }

} // namespace

const Census &census_of(const Format &format) { return matrix_of(format).census; }

csr::RecoveredCsr recover_cuda_core(Executor &executor, const Format &format) {
  return csr::read_back(executor, recover(executor, matrix_of(format)));
}

} // namespace tiles

namespace {

class TilesCudaCore final : public Kernel {
public:
  TilesCudaCore() : Kernel("spmv", "tiles", "cuda_core") {}

  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Problem &problem) const override {
    const CsrView    &csr = problem.csr;
    const std::string why_not = csr::check_device(device, problem);
    if (!why_not.empty()) return why_not;
    const std::int64_t rows = static_cast<std::int64_t>(tiles::most_tiles) * tiles::width, entries = 1 << 30;
    const int          bytes = std::max(tiles::sum_bytes, tiles::add_bytes);
    if (csr.columns_count > rows || csr.rows > rows) return "it takes up to " + std::to_string(rows) + " rows and columns";
    if (csr.nonzeros > entries)
      return "there are " + std::to_string(csr.nonzeros) + " entries, and it takes up to " + std::to_string(entries);
    if (device.shared_bytes < static_cast<std::size_t>(bytes))
      return "its blocks need " + std::to_string(bytes) + " bytes of shared memory";
    return {};
  }

  Work predict(const Problem &problem, bool transpose, bool accumulate) const override {
    return tiles::least_work(problem.csr, transpose, accumulate);
  }

  bool gathers() const override { return false; }

  double gathered_sectors(Executor &executor, const Problem &problem) const override {
    const tiles::Sample sample = tiles::take_sample(executor, problem.csr);
    return sample.gathers() ? sample.sectors : 0.0;
  }

  bool instead_of_gathering() const override { return true; }

  // Building it takes long: only where an entry, with a value in 64 bits, costs less than it does in format sell with columns in 32.
  bool suits(Executor &executor, const Problem &problem) const override {
    const tiles::Sample sample = tiles::take_sample(executor, problem.csr);
    return sample.gathers() && (8 + 2 + 18 * sample.segments) / tiles::usual_share <
                                 (8 + 4 + 32 * sample.sectors) / (cache_over_memory * sell::usual_share);
  }

  std::unique_ptr<Format> build(Executor &executor, const Problem &problem) const override {
    const std::string why_not = check(executor.device(), problem);
    if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);
    return std::make_unique<tiles::CudaCoreFormat>(executor, problem.csr);
  }

  void apply(Executor &executor, Format &format, const Product &product) const override {
    static_cast<tiles::CudaCoreFormat &>(format).multiply(executor, product);
  }
};

} // namespace

const Kernel &spmv_tiles_cuda_core() {
  static const TilesCudaCore kernel;
  return kernel;
}

} // namespace tcbound
