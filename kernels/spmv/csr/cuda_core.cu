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
  CudaCoreFormat(Executor &executor, const CsrView &view, const CudaCoreConfig &config, const ListedRows &listed)
    : DeviceFormat(executor, view, config.wide_offsets || needs_wide_offsets(view), listed), config_(config), rows_(view.rows),
      columns_(view.columns_count) {
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

  double usual_share() const override { return 0.83; }

  void prepare(Executor &executor, bool transpose) override {
    if (!products_[transpose].prepared()) products_[transpose].prepare(executor, arrays(executor, transpose), config_);
  }

  void multiply(Executor &executor, const Product &product) {
    prepare(executor, product.transpose);
    begin(executor, product);
    products_[product.transpose].multiply(executor, arrays(executor, product.transpose), product, rows(product.transpose));
  }

  void multiply_columns(Executor &executor, const Product &product, const Columns &columns) {
    prepare(executor, product.transpose);
    for (std::int64_t k = 0; k < columns.count; ++k) begin(executor, from_column(product, columns, k));
    columns_of_[product.transpose].multiply(executor, arrays(executor, product.transpose), products_[product.transpose].table(),
                                            config_, product, columns, rows(product.transpose));
  }

protected:
  std::int64_t auxiliary_bytes(bool transpose) const override {
    const Size size = size_of(transpose);
    return choose_cut(config_, size.stored(), size.nonzeros).table_bytes();
  }

private:
  CudaCoreConfig config_;
  std::int64_t   rows_, columns_;
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
  return std::make_unique<CudaCoreFormat>(executor, view, config, ListedRows());
}

namespace {

// Chunks of a small matrix have fewer entries, so that all multiprocessors of a large device have a few (measured on an H200: up
// to 2.6 times as fast with 50 000 rows of one entry, 1.3 with 9).
CudaCoreConfig config_of(const Size &size) {
  CudaCoreConfig config;
  while (config.entries > 256 && size.stored() + size.nonzeros < 768 * std::int64_t(config.entries)) config.entries /= 2;
  return config;
}

int offset_bytes(const CsrView &a) { return needs_wide_offsets(a) ? 8 : 4; }

Size size_of(const CsrView &a, std::int64_t listed) {
  return {a.rows, a.columns_count, a.nonzeros, offset_bytes(a), 4, listed};
}
Size size_of(const Problem &problem) { return size_of(problem.csr, ListedRows::count(problem, offset_bytes(problem.csr))); }

// Work of a product with a matrix of that size, before it is built: count(size of what the product reads, bytes of the table).
template <class F> Work work_before(const Size &plain, bool transpose, F &&count) {
  const Size size =
    transpose ? Size{plain.columns, plain.stored(), plain.nonzeros, plain.offset_bytes, plain.index_bytes} : plain;
  return count(size, choose_cut(config_of(plain), size.stored(), size.nonzeros).table_bytes());
}

} // namespace

} // namespace csr

namespace {

class CsrCudaCore final : public Kernel {
public:
  CsrCudaCore() : Kernel("spmv", "csr", "cuda_core") {}

  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Problem &problem) const override { return csr::check_device(device, problem); }

  Work predict(const Problem &problem, bool transpose, bool accumulate) const override {
    return csr::work_before(csr::size_of(problem), transpose, [accumulate](const csr::Size &size, std::int64_t table) {
      return csr::count_work(size, false, accumulate, table);
    });
  }
  Work predict_in_place(const Problem &problem, bool transpose) const override {
    return csr::work_before(csr::size_of(problem), transpose, [](const csr::Size &size, std::int64_t table) {
      return csr::count_work_in_place(size, false, table);
    });
  }

  std::unique_ptr<Format> build(Executor &executor, const Problem &problem) const override {
    const std::string why_not = check(executor.device(), problem);
    if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);
    csr::validate(problem.csr); // before its offsets are gone through
    const csr::ListedRows listed(problem, csr::offset_bytes(problem.csr));
    const csr::Size       size = csr::size_of(problem.csr, listed.count());
    return std::make_unique<csr::CudaCoreFormat>(executor, problem.csr, csr::config_of(size), listed);
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
