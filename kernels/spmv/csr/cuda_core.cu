// spmv/csr/cuda_core: CSR as it is, read once and in whole pieces (chunk_kernel.h).
#include <algorithm>

#include "chunk_kernel.h"
#include "chunked_columns.h"
#include "chunked_product.h"

namespace tcbound {
namespace csr {
namespace {

class CudaCoreFormat final : public DeviceFormat {
public:
  CudaCoreFormat(Executor &executor, const CsrView &view, const CudaCoreConfig &config)
    : DeviceFormat(executor, view, config.wide_offsets || needs_wide_offsets(view)), config_(config), rows_(view.rows),
      columns_(view.columns_count), nonzeros_(view.nonzeros) {
    CudaCoreFormat::prepare(executor, false);
  }

  std::int64_t stored_bytes() const override {
    return DeviceFormat::stored_bytes() + products_[0].table().bytes() + products_[1].table().bytes() + columns_of_[0].bytes() +
           columns_of_[1].bytes();
  }

  Work work_of_columns(bool transpose, bool accumulate, std::int64_t count) const override {
    Work work = DeviceFormat::work_of_columns(transpose, accumulate, count);
    if (count > 1) work.bytes += 2 * ChunkedColumns::packed_bytes(transpose ? rows_ : columns_, count);
    return work;
  }

  void prepare(Executor &executor, bool transpose) override {
    if (!products_[transpose].prepared()) products_[transpose].prepare(executor, arrays(executor, transpose), config_);
  }

  void multiply(Executor &executor, const Product &product) {
    prepare(executor, product.transpose);
    products_[product.transpose].multiply(executor, arrays(executor, product.transpose), product);
  }

  void multiply_columns(Executor &executor, const Product &product, const Columns &columns) {
    prepare(executor, product.transpose);
    columns_of_[product.transpose].multiply(executor, arrays(executor, product.transpose), products_[product.transpose].table(),
                                            config_, product, columns);
  }

protected:
  std::int64_t auxiliary_bytes(bool transpose) const override {
    return choose_cut(config_, transpose ? columns_ : rows_, nonzeros_).table_bytes();
  }

private:
  CudaCoreConfig config_;
  std::int64_t   rows_, columns_, nonzeros_;
  ChunkedProduct products_[2]; // of the matrix and of its transpose
  ChunkedColumns columns_of_[2];
};

} // namespace

void ChunkedProduct::prepare(Executor &executor, const DeviceArrays &a, const CudaCoreConfig &config) {
  config_ = config;
  table_ = cut_into_chunks(executor, a, config);
  allow_shared_bytes<PlainColumns, double>(executor, a.wide, shared_bytes(config, table_, PlainColumns{}));
  prepared_ = true;
}

void ChunkedProduct::multiply(Executor &executor, const DeviceArrays &a, const Product &product, const std::int32_t *rows) {
  launch(executor, a, PlainColumns{a.columns.data()}, a.values.data(), config_, table_, product, rows);
}

const std::vector<CudaCoreVariant> &cuda_core_variants() {
  static const auto make = [](int threads, int entries, int stages, int group, ChunkMode mode, bool evict_first) {
    return CudaCoreConfig{threads, entries, stages, group, mode, evict_first, false};
  };
  const ChunkMode                           rows = ChunkMode::rows, stream = ChunkMode::stream, any = ChunkMode::automatic;
  static const std::vector<CudaCoreVariant> variants = {
    {"t64e896", make(64, 896, 1, 1, any, true)},
    {"t64e1792", make(64, 1792, 1, 1, any, true)},
    {"t128e896", make(128, 896, 1, 1, any, true)},
    {"t128e1792", make(128, 1792, 1, 1, any, true)},
    {"t128e1792-normal", make(128, 1792, 1, 1, any, false)},
    {"t128e1792-rows", make(128, 1792, 1, 1, rows, true)},
    {"t128e1792-stream", make(128, 1792, 1, 1, stream, true)},
    {"t128e2688", make(128, 2688, 1, 1, any, true)},
    {"t128e3584", make(128, 3584, 1, 1, any, true)},
    {"t128e896x2g4", make(128, 896, 2, 4, any, true)},
    {"t128e1792x2g4", make(128, 1792, 2, 4, any, true)},
    {"t128e1792x2g16", make(128, 1792, 2, 16, any, true)},
    {"t256e1792", make(256, 1792, 1, 1, any, true)},
    {"t256e1792-stream", make(256, 1792, 1, 1, stream, true)},
    {"t256e3584", make(256, 3584, 1, 1, any, true)},
    {"t256e3584-stream", make(256, 3584, 1, 1, stream, true)},
    {"t256e1792x2g4", make(256, 1792, 2, 4, any, true)},
    {"t256e3584x2g4", make(256, 3584, 2, 4, any, true)},
  };
  return variants;
}

std::unique_ptr<Format> build_cuda_core(Executor &executor, const CsrView &view, const CudaCoreConfig &config) {
  if (config.threads % 32 != 0 || config.threads < 32 || config.threads > max_threads || config.stages < 1 ||
      config.stages > max_stages || config.group < 1 || config.entries < 1)
    throw Error(ErrorCode::invalid, "spmv/csr/cuda_core: a tuning choice is out of range");
  return std::make_unique<CudaCoreFormat>(executor, view, config);
}

} // namespace csr

namespace {

class CsrCudaCore final : public Kernel {
public:
  CsrCudaCore() : Kernel("spmv", "csr", "cuda_core") {}

  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Problem &problem) const override {
    return csr::check_device(device, problem.csr);
  }

  Work predict(const Problem &problem, bool transpose, bool accumulate) const override {
    const CsrView &a = problem.csr;
    csr::Size      size{a.rows, a.columns_count, a.nonzeros, csr::needs_wide_offsets(a) ? 8 : 4, 4};
    if (transpose) std::swap(size.rows, size.columns);
    const csr::Cut cut = csr::choose_cut(csr::CudaCoreConfig{}, size.rows, size.nonzeros);
    return csr::count_work(size, false, accumulate, cut.table_bytes());
  }

  std::unique_ptr<Format> build(Executor &executor, const Problem &problem) const override {
    const std::string why_not = check(executor.device(), problem);
    if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);
    return csr::build_cuda_core(executor, problem.csr, csr::CudaCoreConfig{});
  }

  void apply(Executor &executor, Format &format, const Product &product) const override {
    static_cast<csr::CudaCoreFormat &>(format).multiply(executor, product);
  }

  void apply_columns(Executor &executor, Format &format, const Product &product, const Columns &columns) const override {
    if (columns.count == 1)
      apply(executor, format, product);
    else
      static_cast<csr::CudaCoreFormat &>(format).multiply_columns(executor, product, columns);
  }
};

} // namespace

const Kernel &spmv_csr_cuda_core() {
  static const CsrCudaCore kernel;
  return kernel;
}

} // namespace tcbound
