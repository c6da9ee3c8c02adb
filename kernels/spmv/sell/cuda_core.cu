// spmv/sell/cuda_core: the kernel, its launch, and the format on a device. What a warp does is in multiply_slice.h.
#include <cstring>
#include <utility>

#include "../csr/with_transpose.h"
#include "cuda/error.h"
#include "multiply_slice.h"

namespace tcbound {
namespace sell {
namespace {

constexpr int most_threads = 256;

// First parts of long rows, then slices, a warp each. Short rows have fewer entries in flight for a warp, which more warps with fewer
// registers make up for.
template <int batch, class Value>
__global__ void __launch_bounds__(most_threads, batch == 2 ? 5 : 4)
  multiply_slices(const __grid_constant__ Arguments<Value> a) {
  const std::int64_t i = (blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x) / 32;
  const int          lane = static_cast<int>(threadIdx.x % 32);
  if (i >= a.view.slice_count) return;
  const bool    part = i < a.view.part_count;
  const LaneSum mine = sum_slice<batch>(a, static_cast<std::int32_t>(i), lane, part);
  if (part)
    finish_part(a, static_cast<std::int32_t>(i), lane, mine.sum);
  else if (mine.row >= 0)
    store(a, mine.row, mine.sum);
}

__global__ void __launch_bounds__(most_threads)
  take_in_order(const double *x, const std::int32_t *order, std::int64_t size, double *to) {
  const std::int64_t i = blockIdx.x * static_cast<std::int64_t>(most_threads) + threadIdx.x;
  if (i < size) to[i] = __ldg(x + __ldcs(order + i));
}

template <class Value>
void launch(Executor &executor, DeviceMatrix &matrix, const Value *values, const Product &p, const CudaCoreConfig &config) {
  const Arguments<Value> arguments = {
    view_of(matrix), values, matrix.sums.data(), matrix.arrivals.data(), p.x, p.alpha, p.beta, p.y, p.z};
  const auto     stream = static_cast<cudaStream_t>(executor.stream());
  const int      batch = config.batch > 0 ? config.batch : (matrix.csr.nonzeros <= 24 * matrix.csr.rows ? 2 : 4);
  const int      warps = config.threads / 32;
  const unsigned grid = static_cast<unsigned>((matrix.slices.size() + warps - 1) / warps);
  const auto     kernel = batch == 2 ? multiply_slices<2, Value> : multiply_slices<4, Value>;
  kernel<<<grid, static_cast<unsigned>(config.threads), 0, stream>>>(arguments);
  TCBOUND_LAUNCHED();
}

} // namespace

void multiply(Executor &executor, DeviceMatrix &matrix, const Product &product, const CudaCoreConfig &config) {
  Product in_order = product;
  if (matrix.slices.size() == 0) return;
  if (matrix.census.renumbered) {
    const std::int64_t size = matrix.renumbered_x.size();
    take_in_order<<<static_cast<unsigned>((size + most_threads - 1) / most_threads), most_threads, 0,
                    static_cast<cudaStream_t>(executor.stream())>>>(product.x, matrix.column_order.data(), size,
                                                                    matrix.renumbered_x.data());
    TCBOUND_LAUNCHED();
    in_order.x = matrix.renumbered_x.data();
  }
  with_values(matrix, [&](const auto *values) { launch(executor, matrix, values, in_order, config); });
}

namespace {

// The transpose is a matrix of its own, built when first needed.
class CudaCoreFormat final : public Format {
public:
  CudaCoreFormat(Executor &executor, const CsrView &view, const CudaCoreConfig &config)
    : config_(config),
      matrices_(sell::build(executor, csr::bring_to_device(executor, view, csr::needs_wide_offsets(view)), config)) {}

  const char *name() const override { return "sell"; }

  void prepare(Executor &executor, bool transpose) override {
    if (transpose)
      matrices_.prepare(executor, [&](csr::DeviceArrays csr) { return sell::build(executor, std::move(csr), config_); });
  }

  void refill(Executor &executor, const double *values, MemorySpace space) override {
    matrices_.refill(executor, values, space,
                     [&](DeviceMatrix &matrix, const double *from) { sell::refill(executor, matrix, from); });
  }

  void diagonal(Executor &executor, double *d) override { sell::diagonal(executor, plain(), d); }

  // Of a transpose that is not there yet, the least that it can be.
  Work work(bool transpose, bool accumulate) const override {
    if (!transpose) return count_work(plain().census, accumulate);
    if (matrices_.have_transpose()) return count_work(matrices_.of(true).census, accumulate);
    CsrView view;
    view.rows = plain().csr.rows;
    view.columns_count = plain().csr.columns_count;
    view.nonzeros = plain().csr.nonzeros;
    return least_work(view, true, accumulate, plain().census.value_bytes);
  }

  std::int64_t stored_bytes() const override { return matrices_.bytes(); }

  double      usual_share() const override { return sell::usual_share; }
  bool        gathers() const override { return !plain().census.renumbered; }
  std::string describe() const override { return sell::describe(plain().census); }

  const DeviceMatrix &plain() const { return matrices_.plain(); }

  void multiply(Executor &executor, const Product &product) {
    prepare(executor, product.transpose);
    sell::multiply(executor, matrices_.of(product.transpose), product, config_);
  }

private:
  CudaCoreConfig                   config_;
  csr::WithTranspose<DeviceMatrix> matrices_;
};

const DeviceMatrix &matrix_of(const Format &format) { return static_cast<const CudaCoreFormat &>(format).plain(); }

} // namespace

const std::vector<CudaCoreVariant> &cuda_core_variants() {
  static const auto make = [](int threads, int batch) {
    CudaCoreConfig config;
    config.threads = threads;
    config.batch = batch;
    return config;
  };
  static const auto ordered = [](Order order, int log2_window, int longest) {
    CudaCoreConfig config;
    config.order = order;
    config.log2_window = log2_window;
    config.longest = longest;
    return config;
  };
  static const auto renumbered = [](Renumber renumber) {
    CudaCoreConfig config;
    config.renumber = renumber;
    return config;
  };
  static const std::vector<CudaCoreVariant> variants = {
    {"t64", make(64, 0)},
    {"t256", make(256, 0)},
    {"b2", make(128, 2)},
    {"b4", make(128, 4)},
    {"natural", ordered(Order::natural, 13, 0)},
    {"length", ordered(Order::by_length, 13, 0)},
    {"pattern", ordered(Order::by_pattern, 13, 0)},
    {"window9", ordered(Order::automatic, 9, 0)},
    {"window12", ordered(Order::automatic, 12, 0)},
    {"window14", ordered(Order::automatic, 14, 0)},
    {"never-renumbered", renumbered(Renumber::never)},
    {"renumbered", renumbered(Renumber::always)},
    {"longest512", ordered(Order::automatic, 13, 512)},
  };
  return variants;
}

std::unique_ptr<Format> build_cuda_core(Executor &executor, const CsrView &view, const CudaCoreConfig &config) {
  const bool batch = config.batch == 0 || config.batch == 2 || config.batch == 4;
  if (config.threads % 32 != 0 || config.threads < 32 || config.threads > most_threads || !batch || config.longest < 0 ||
      config.longest > most_longest || config.part < 1 || config.part > 1 << 20 || config.log2_window < 5 ||
      config.log2_window > 15)
    throw Error(ErrorCode::invalid, "spmv/sell/cuda_core: a tuning choice is out of range");
  return std::make_unique<CudaCoreFormat>(executor, view, config);
}

const Census &census_of(const Format &format) { return matrix_of(format).census; }

csr::RecoveredCsr recover_cuda_core(Executor &executor, const Format &format) {
  return csr::read_back(executor, recover(executor, matrix_of(format)));
}

} // namespace sell

namespace {

class SellCudaCore final : public Kernel {
public:
  SellCudaCore() : Kernel("spmv", "sell", "cuda_core") {}

  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Problem &problem) const override { return csr::check_device(device, problem); }

  Work predict(const Problem &problem, bool transpose, bool accumulate) const override {
    return sell::least_work(problem.csr, transpose, accumulate);
  }

  bool gathers() const override { return false; } // it may renumber

  std::unique_ptr<Format> build(Executor &executor, const Problem &problem) const override {
    const std::string why_not = check(executor.device(), problem);
    if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);
    return sell::build_cuda_core(executor, problem.csr, {});
  }

  void apply(Executor &executor, Format &format, const Product &product) const override {
    static_cast<sell::CudaCoreFormat &>(format).multiply(executor, product);
  }
};

} // namespace

const Kernel &spmv_sell_cuda_core() {
  static const SellCudaCore kernel;
  return kernel;
}

} // namespace tcbound
