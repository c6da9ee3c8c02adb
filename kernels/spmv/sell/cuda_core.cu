// spmv/sell/cuda_core: the kernel, its launch, and the format on a device. What a warp does is in multiply_slice.h.
#include <cstring>
#include <utility>

#include "cuda/error.h"
#include "multiply_slice.h"

namespace tcbound {
namespace sell {
namespace {

constexpr int most_threads = 256;

// Blocks of most_threads that a multiprocessor must be able to hold.
constexpr int least_blocks(int batch) { return batch == 2 ? 5 : 4; }

// First parts of long rows, then slices, `depth` of them a warp. Those of a block are near each other, so that much of their x comes
// from the first-level cache.
template <int batch, bool ahead, class Value>
__global__ void __launch_bounds__(most_threads, least_blocks(batch))
  multiply_slices(const __grid_constant__ Arguments<Value> a, int depth) {
  const int    warps = static_cast<int>(blockDim.x) / 32, lane = static_cast<int>(threadIdx.x % 32);
  std::int32_t i = static_cast<std::int32_t>(blockIdx.x) * warps * depth + static_cast<int>(threadIdx.x) / 32;
#pragma unroll 1
  for (; depth > 0 && i < a.view.slice_count; --depth, i += warps) {
    const bool    part = i < a.view.part_count;
    const LaneSum mine = sum_slice<batch, ahead>(a, i, lane, part);
    if (part)
      finish_part(a, i, lane, mine.sum);
    else if (mine.row >= 0)
      store(a, mine.row, mine.sum);
  }
}

// First parts of long rows, a warp each, then windows, a block each. Rows of a window are in the order of their lengths: results wait
// in shared memory until they can go out in the order of y, because a sector of memory that is written in parts costs as much for
// each.
template <int log2_window, class Value>
__global__ void __launch_bounds__(1 << log2_window, 1536 >> log2_window)
  multiply_windows(const __grid_constant__ Arguments<Value> a, int depth) {
  constexpr int            rows = 1 << log2_window, warps = rows / slice_rows;
  __shared__ double        sums[rows];
  __shared__ unsigned char there[rows];
  const int                thread = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  const std::int32_t       part_blocks = (a.view.part_count + warps - 1) / warps;
  if (block < part_blocks) {
    const std::int32_t i = block * warps + thread / 32;
    if (i < a.view.part_count) finish_part(a, i, thread % 32, sum_slice<2, false>(a, i, thread % 32, true).sum);
    return;
  }
  std::int32_t first = (block - part_blocks) * depth * warps; // slice
#pragma unroll 1
  for (; depth > 0; --depth, first += warps) {
    const std::int32_t i = a.view.part_count + first + thread / 32;
    there[thread] = 0;
    __syncthreads();
    if (i < a.view.slice_count) {
      const LaneSum mine = sum_slice<2, false>(a, i, thread % 32, false);
      if (mine.row >= 0) {
        sums[mine.row % rows] = mine.sum;
        there[mine.row % rows] = 1;
      }
    }
    __syncthreads();
    if (there[thread]) store(a, first * slice_rows + thread, sums[thread]);
  }
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
  const auto         stream = static_cast<cudaStream_t>(executor.stream());
  const std::int64_t parts = matrix.parts.size(), slices = matrix.slices.size();
  // Short rows have less in flight for a warp, but more warps with fewer registers make up for that.
  const int  batch = config.batch > 0 ? config.batch : (matrix.csr.nonzeros <= 12 * matrix.csr.rows ? 2 : 4);
  const int  threads = matrix.staged ? 1 << matrix.log2_window : config.threads, warps = threads / 32;
  const auto blocks = [&](std::int64_t count, int depth) { return (count + warps * depth - 1) / (warps * depth); };
  const auto run = [&](auto kernel) {
    const std::int64_t grid =
      matrix.staged ? blocks(parts, 1) + blocks(slices - parts, config.depth) : blocks(slices, config.depth);
    kernel<<<static_cast<unsigned>(grid), static_cast<unsigned>(threads), 0, stream>>>(arguments, config.depth);
    TCBOUND_LAUNCHED();
  };
  if (matrix.staged)
    run(matrix.log2_window == 8 ? multiply_windows<8, Value> : multiply_windows<9, Value>);
  else if (batch == 4)
    run(config.ahead ? multiply_slices<4, true, Value> : multiply_slices<4, false, Value>);
  else
    run(config.ahead ? multiply_slices<2, true, Value> : multiply_slices<2, false, Value>);
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
  if (matrix.census.narrow_values)
    launch(executor, matrix, matrix.narrow_values.data(), in_order, config);
  else
    launch(executor, matrix, matrix.values.data(), in_order, config);
}

namespace {

// The transpose is a matrix of its own, built when first needed.
class CudaCoreFormat final : public Format {
public:
  CudaCoreFormat(Executor &executor, const CsrView &view, const CudaCoreConfig &config)
    : config_(config),
      plain_(sell::build(executor, csr::copy_to_device(executor, view, csr::needs_wide_offsets(view)), config)) {}

  const char *name() const override { return "sell"; }

  void prepare(Executor &executor, bool transpose) override {
    if (!transpose || have_transpose_) return;
    // In two steps, so that the recovered CSR is freed before building takes its memory.
    csr::DeviceArrays csr = transposition_.transpose(executor, recover(executor, plain_));
    transposed_ = sell::build(executor, std::move(csr), config_);
    have_transpose_ = true;
  }

  void refill(Executor &executor, const double *values, MemorySpace space) override {
    Array<double> copied;
    if (space == MemorySpace::host) {
      copied = Array<double>(executor, plain_.csr.nonzeros);
      executor.copy(copied.data(), MemorySpace::cuda, values, MemorySpace::host, static_cast<std::size_t>(copied.bytes()));
      values = copied.data();
    }
    sell::refill(executor, plain_, values, config_.narrow_values);
    if (have_transpose_) {
      Array<double> gathered(executor, plain_.csr.nonzeros);
      transposition_.gather(executor, values, gathered.data());
      sell::refill(executor, transposed_, gathered.data(), config_.narrow_values);
      executor.synchronize();
    }
    executor.synchronize(); // the arrays here are freed on return
  }

  void diagonal(Executor &executor, double *d) override { sell::diagonal(executor, plain_, d); }

  // Of a transpose that is not there yet, the least that it can be.
  Work work(bool transpose, bool accumulate) const override {
    if (!transpose) return count_work(plain_.census, accumulate);
    if (have_transpose_) return count_work(transposed_.census, accumulate);
    CsrView view;
    view.rows = plain_.csr.rows;
    view.columns_count = plain_.csr.columns_count;
    view.nonzeros = plain_.csr.nonzeros;
    return least_work(view, true, accumulate, plain_.census.narrow_values ? 4 : 8);
  }

  std::int64_t stored_bytes() const override { return plain_.bytes() + transposed_.bytes() + transposition_.bytes(); }

  std::string describe() const override { return sell::describe(plain_.census); }

  const DeviceMatrix &plain() const { return plain_; }

  void multiply(Executor &executor, const Product &product) {
    prepare(executor, product.transpose);
    sell::multiply(executor, product.transpose ? transposed_ : plain_, product, config_);
  }

private:
  CudaCoreConfig     config_;
  DeviceMatrix       plain_, transposed_;
  csr::Transposition transposition_;
  bool               have_transpose_ = false;
};

const DeviceMatrix &matrix_of(const Format &format) { return static_cast<const CudaCoreFormat &>(format).plain(); }

} // namespace

const std::vector<CudaCoreVariant> &cuda_core_variants() {
  static const auto make = [](int threads, int batch, bool ahead) {
    CudaCoreConfig config;
    config.threads = threads;
    config.batch = batch;
    config.ahead = ahead;
    return config;
  };
  static const auto ordered = [](Order order, int log2_window, int longest) {
    CudaCoreConfig config;
    config.order = order;
    config.log2_window = log2_window;
    config.longest = longest;
    return config;
  };
  static const auto deep = [](int threads, int depth) {
    CudaCoreConfig config;
    config.threads = threads;
    config.depth = depth;
    return config;
  };
  static const auto renumbered = [](Renumber renumber) {
    CudaCoreConfig config;
    config.renumber = renumber;
    return config;
  };
  static const std::vector<CudaCoreVariant> variants = {
    {"t64", make(64, 0, false)},
    {"t256", make(256, 0, false)},
    {"t128d2", deep(128, 2)},
    {"t128d4", deep(128, 4)},
    {"t256d4", deep(256, 4)},
    {"t256d8", deep(256, 8)},
    {"b2", make(128, 2, false)},
    {"b4", make(128, 4, false)},
    {"b2a", make(128, 2, true)},
    {"b4a", make(128, 4, true)},
    {"natural", ordered(Order::natural, 0, 0)},
    {"length", ordered(Order::by_length, 0, 0)},
    {"pattern", ordered(Order::by_pattern, 0, 0)},
    {"window8", ordered(Order::automatic, 8, 0)},
    {"window9", ordered(Order::automatic, 9, 0)},
    {"window13", ordered(Order::automatic, 13, 0)},
    {"never-renumbered", renumbered(Renumber::never)},
    {"renumbered", renumbered(Renumber::always)},
    {"longest512", ordered(Order::automatic, 0, 512)},
  };
  return variants;
}

std::unique_ptr<Format> build_cuda_core(Executor &executor, const CsrView &view, const CudaCoreConfig &config) {
  const bool batch = config.batch == 0 || config.batch == 2 || config.batch == 4;
  if (config.threads % 32 != 0 || config.threads < 32 || config.threads > most_threads || !batch || config.longest < 0 ||
      config.depth < 1 || config.longest > most_longest || config.part < 1 || config.part > 1 << 20 ||
      (config.log2_window != 0 && config.log2_window < 5) || config.log2_window > 15)
    throw Error(ErrorCode::invalid, "spmv/sell/cuda_core: a tuning choice is out of range");
  return std::make_unique<CudaCoreFormat>(executor, view, config);
}

const Census &census_of(const Format &format) { return matrix_of(format).census; }

RecoveredCsr recover_cuda_core(Executor &executor, const Format &format) {
  const csr::DeviceArrays a = recover(executor, matrix_of(format));
  RecoveredCsr            to;
  const auto              copy = [&](auto &host, const auto &device) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(device.data())>>;
    std::vector<T> read(static_cast<std::size_t>(device.size()));
    executor.copy(read.data(), MemorySpace::host, device.data(), MemorySpace::cuda, static_cast<std::size_t>(device.bytes()));
    host.assign(read.begin(), read.end());
  };
  if (a.wide)
    copy(to.offsets, a.wide_offsets);
  else
    copy(to.offsets, a.narrow_offsets);
  copy(to.columns, a.columns);
  copy(to.values, a.values);
  return to;
}

} // namespace sell

namespace {

class SellCudaCore final : public Kernel {
public:
  SellCudaCore() : Kernel("spmv", "sell", "cuda_core") {}

  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Problem &problem) const override {
    return csr::check_device(device, problem.csr);
  }

  Work predict(const Problem &problem, bool transpose, bool accumulate) const override {
    return sell::least_work(problem.csr, transpose, accumulate);
  }

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
