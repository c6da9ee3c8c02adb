// The baselines: every way in which cuSPARSE multiplies such a matrix with a vector or with columns of CSR.
#include <algorithm>
#include <limits>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

#include "contender.h"
#include "cuda/error.h"
#include "spmv/csr/format.h"

namespace tcbound::bench {
namespace {

struct Destroy {
  void operator()(cusparseContext *handle) const { cusparseDestroy(handle); }
  void operator()(cusparseSpMatDescr *matrix) const { cusparseDestroySpMat(matrix); }
  void operator()(cusparseDnVecDescr *vector) const { cusparseDestroyDnVec(vector); }
  void operator()(cusparseDnMatDescr *matrix) const { cusparseDestroyDnMat(matrix); }
};
template <class T> using Owned = std::unique_ptr<T, Destroy>;

constexpr int block_size = 256; // threads

unsigned grid_for(std::int64_t size) { return static_cast<unsigned>((size + block_size - 1) / block_size); }

cudaStream_t stream_of(Executor &executor) { return static_cast<cudaStream_t>(executor.stream()); }

__device__ std::int64_t global_index() { return blockIdx.x * static_cast<std::int64_t>(block_size) + threadIdx.x; }

// cusparseSpMV with an algorithm on a matrix that a derived class has described.
class CusparseRunner : public Runner {
public:
  CusparseRunner(Bench &bench, cusparseSpMVAlg_t algorithm) : bench_(bench), algorithm_(algorithm) {
    cusparseHandle_t handle = nullptr;
    TCBOUND_CUSPARSE(cusparseCreate(&handle));
    handle_.reset(handle);
    TCBOUND_CUSPARSE(cusparseSetStream(handle, stream_of(bench.executor)));
    x_ = make_vector(bench.x);
    z_ = make_vector(bench.z);
  }

  void multiply(const double *x, double *z) override {
    const double one = 1.0, zero = 0.0;
    TCBOUND_CUSPARSE(cusparseDnVecSetValues(x_.get(), const_cast<double *>(x)));
    TCBOUND_CUSPARSE(cusparseDnVecSetValues(z_.get(), z));
    TCBOUND_CUSPARSE(cusparseSpMV(handle_.get(), CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix_.get(), x_.get(), &zero,
                                  z_.get(), CUDA_R_64F, algorithm_, buffer_.data()));
  }
  std::int64_t stored_bytes() const override { return buffer_.bytes(); }

protected:
  // Takes the matrix; with `preprocess` cuSPARSE analyses it.
  void start(cusparseSpMatDescr_t matrix, bool preprocess) {
    const double one = 1.0, zero = 0.0;
    std::size_t  bytes = 0;
    matrix_.reset(matrix);
    TCBOUND_CUSPARSE(cusparseSpMV_bufferSize(handle_.get(), CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, x_.get(), &zero,
                                             z_.get(), CUDA_R_64F, algorithm_, &bytes));
    buffer_ = Array<char>(bench_.executor, static_cast<std::int64_t>(std::max<std::size_t>(bytes, 1)));
    if (preprocess)
      TCBOUND_CUSPARSE(cusparseSpMV_preprocess(handle_.get(), CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, x_.get(), &zero,
                                               z_.get(), CUDA_R_64F, algorithm_, buffer_.data()));
    bench_.executor.synchronize();
  }

  Bench &bench_;

private:
  static Owned<cusparseDnVecDescr> make_vector(Array<double> &values) {
    cusparseDnVecDescr_t vector = nullptr;
    TCBOUND_CUSPARSE(cusparseCreateDnVec(&vector, values.size(), values.data(), CUDA_R_64F));
    return Owned<cusparseDnVecDescr>(vector);
  }

  cusparseSpMVAlg_t         algorithm_;
  Owned<cusparseContext>    handle_;
  Owned<cusparseDnVecDescr> x_, z_;
  Owned<cusparseSpMatDescr> matrix_;
  Array<char>               buffer_;
};

class CsrRunner final : public CusparseRunner {
public:
  CsrRunner(Bench &bench, cusparseSpMVAlg_t algorithm) : CusparseRunner(bench, algorithm) {
    const Matrix        &a = bench.matrix;
    cusparseSpMatDescr_t matrix = nullptr;
    TCBOUND_CUSPARSE(cusparseCreateCsr(&matrix, a.rows, a.columns_count, a.nonzeros(), bench.offsets.data(),
                                       bench.columns.data(), bench.values.data(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                                       CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    start(matrix, true);
  }
  Work work() const override {
    const Matrix &a = bench_.matrix;
    return csr::count_work({a.rows, a.columns_count, a.nonzeros(), 4, 4}, false, false, 0);
  }
};

// Several columns at once, which lie one after the other.
class ColumnsRunner final : public Runner {
public:
  ColumnsRunner(Bench &bench, cusparseSpMMAlg_t algorithm) : bench_(bench), algorithm_(algorithm) {
    const Matrix    &a = bench.matrix;
    const double     one = 1.0, zero = 0.0;
    std::size_t      bytes = 0;
    cusparseHandle_t handle = nullptr;
    TCBOUND_CUSPARSE(cusparseCreate(&handle));
    handle_.reset(handle);
    TCBOUND_CUSPARSE(cusparseSetStream(handle, stream_of(bench.executor)));
    cusparseSpMatDescr_t matrix = nullptr;
    TCBOUND_CUSPARSE(cusparseCreateCsr(&matrix, a.rows, a.columns_count, a.nonzeros(), bench.offsets.data(),
                                       bench.columns.data(), bench.values.data(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                                       CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    matrix_.reset(matrix);
    x_ = make_columns(a.columns_count, bench.count, bench.x);
    z_ = make_columns(a.rows, bench.count, bench.z);
    TCBOUND_CUSPARSE(
      cusparseSpMM_bufferSize(handle, plain, plain, &one, matrix, x_.get(), &zero, z_.get(), CUDA_R_64F, algorithm, &bytes));
    buffer_ = Array<char>(bench.executor, static_cast<std::int64_t>(std::max<std::size_t>(bytes, 1)));
    TCBOUND_CUSPARSE(cusparseSpMM_preprocess(handle, plain, plain, &one, matrix, x_.get(), &zero, z_.get(), CUDA_R_64F,
                                             algorithm, buffer_.data()));
    bench.executor.synchronize();
  }

  void multiply(const double *x, double *z) override {
    const double one = 1.0, zero = 0.0;
    TCBOUND_CUSPARSE(cusparseDnMatSetValues(x_.get(), const_cast<double *>(x)));
    TCBOUND_CUSPARSE(cusparseDnMatSetValues(z_.get(), z));
    TCBOUND_CUSPARSE(cusparseSpMM(handle_.get(), plain, plain, &one, matrix_.get(), x_.get(), &zero, z_.get(), CUDA_R_64F,
                                  algorithm_, buffer_.data()));
  }
  Work work() const override {
    const Matrix   &a = bench_.matrix;
    const csr::Size size = {a.rows, a.columns_count, a.nonzeros(), 4, 4};
    return csr::count_work_of_columns(csr::count_work(size, false, false, 0), csr::vector_bytes(size, false, false),
                                      bench_.count, 1);
  }
  std::int64_t stored_bytes() const override { return buffer_.bytes(); }

private:
  static constexpr cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE;

  static Owned<cusparseDnMatDescr> make_columns(std::int64_t rows, std::int64_t count, Array<double> &values) {
    cusparseDnMatDescr_t matrix = nullptr;
    TCBOUND_CUSPARSE(cusparseCreateDnMat(&matrix, rows, count, rows, values.data(), CUDA_R_64F, CUSPARSE_ORDER_COL));
    return Owned<cusparseDnMatDescr>(matrix);
  }

  Bench                    &bench_;
  cusparseSpMMAlg_t         algorithm_;
  Owned<cusparseContext>    handle_;
  Owned<cusparseDnMatDescr> x_, z_;
  Owned<cusparseSpMatDescr> matrix_;
  Array<char>               buffer_;
};

constexpr int slice = 32; // rows

// The entries that sliced ELL stores for each slice: its longest row, 32 times.
__global__ void slice_sizes(const std::int32_t *offsets, std::int64_t rows, std::int64_t *sizes, std::int64_t slices) {
  const std::int64_t s = global_index();
  if (s >= slices) return;
  std::int32_t longest = 0;
  for (std::int64_t i = s * slice; i < min(rows, (s + 1) * slice); ++i) longest = max(longest, offsets[i + 1] - offsets[i]);
  sizes[s] = static_cast<std::int64_t>(longest) * slice;
}

// Column by column within a slice; cuSPARSE takes the column -1 for padding.
__global__ void fill_slices(const std::int32_t *offsets, const std::int32_t *columns, const double *values, std::int64_t rows,
                            std::int64_t slices, const std::int32_t *slice_offsets, std::int32_t *to_columns,
                            double *to_values) {
  const std::int64_t i = global_index(), s = i / slice;
  if (s >= slices) return;
  const std::int64_t begin = i < rows ? offsets[i] : 0, length = i < rows ? offsets[i + 1] - begin : 0;
  const std::int64_t width = (slice_offsets[s + 1] - slice_offsets[s]) / slice;
  for (std::int64_t k = 0; k < width; ++k) {
    const std::int64_t at = slice_offsets[s] + k * slice + i % slice;
    to_columns[at] = k < length ? columns[begin + k] : -1;
    to_values[at] = k < length ? values[begin + k] : 0.0;
  }
}

// Offsets of the slices of a matrix and the number of entries stored, padding included.
template <class T> std::int64_t scan_slices(Bench &bench, Array<T> &slice_offsets) {
  Executor           &executor = bench.executor;
  const cudaStream_t  stream = stream_of(executor);
  const std::int64_t  slices = (bench.matrix.rows + slice - 1) / slice;
  Array<std::int64_t> sizes(executor, slices);
  T                   total = 0;
  std::size_t         bytes = 0;
  slice_offsets = Array<T>(executor, slices + 1);
  TCBOUND_CUDA(cudaMemsetAsync(slice_offsets.data(), 0, sizeof(T), stream));
  slice_sizes<<<grid_for(slices), block_size, 0, stream>>>(bench.offsets.data(), bench.matrix.rows, sizes.data(), slices);
  TCBOUND_LAUNCHED();
  const auto scan = [&](void *temporary) {
    TCBOUND_CUDA(cub::DeviceScan::InclusiveSum(temporary, bytes, sizes.data(), slice_offsets.data() + 1, slices, stream));
  };
  scan(nullptr);
  Array<char> temporary(executor, static_cast<std::int64_t>(std::max<std::size_t>(bytes, 1)));
  scan(temporary.data());
  executor.copy(&total, MemorySpace::host, slice_offsets.data() + slices, MemorySpace::cuda, sizeof(total));
  return total;
}

// A format with arrays of its own.
class StoredRunner : public CusparseRunner {
public:
  using CusparseRunner::CusparseRunner;
  Work work() const override {
    const Matrix &a = bench_.matrix;
    Work          work = csr::count_work({a.rows, a.columns_count, a.nonzeros(), 4, 4}, false, false, 0);
    work.bytes = columns_.bytes() + values_.bytes() + offsets_.bytes() + 8 * (a.rows + a.columns_count);
    return work;
  }
  std::int64_t stored_bytes() const override {
    return CusparseRunner::stored_bytes() + columns_.bytes() + values_.bytes() + offsets_.bytes();
  }

protected:
  Array<std::int32_t> offsets_, columns_;
  Array<double>       values_;
};

class SellRunner final : public StoredRunner {
public:
  explicit SellRunner(Bench &bench) : StoredRunner(bench, CUSPARSE_SPMV_SELL_ALG1) {
    const Matrix        &a = bench.matrix;
    const std::int64_t   stored = scan_slices(bench, offsets_), slices = offsets_.size() - 1;
    cusparseSpMatDescr_t matrix = nullptr;
    columns_ = Array<std::int32_t>(bench.executor, stored);
    values_ = Array<double>(bench.executor, stored);
    fill_slices<<<grid_for(slices * slice), block_size, 0, stream_of(bench.executor)>>>(
      bench.offsets.data(), bench.columns.data(), bench.values.data(), a.rows, slices, offsets_.data(), columns_.data(),
      values_.data());
    TCBOUND_LAUNCHED();
    TCBOUND_CUSPARSE(cusparseCreateSlicedEll(&matrix, a.rows, a.columns_count, a.nonzeros(), stored, slice, offsets_.data(),
                                             columns_.data(), values_.data(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                                             CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    start(matrix, false);
  }
};

// Not where padding would multiply the matrix: a row of a million entries makes 31 others as long.
std::string why_not_sell(Bench &bench) {
  Array<std::int64_t> offsets;
  const std::int64_t  stored = scan_slices(bench, offsets), most = std::numeric_limits<std::int32_t>::max();
  if (stored <= std::min(4 * bench.matrix.nonzeros(), most)) return {};
  return "sliced ELL would store " + std::to_string(stored) + " entries for " + std::to_string(bench.matrix.nonzeros());
}

#if CUSPARSE_VERSION >= 12600 // CUDA 13: cusparseSpMV takes BSR
// BSR from CSR whose rows come in full blocks: the host makes it, block rows on all cores, since it is no part of any time but
// this baseline's own build.
class BsrRunner final : public StoredRunner {
public:
  BsrRunner(Bench &bench, int block) : StoredRunner(bench, CUSPARSE_SPMV_BSR_ALG1), block_(block) {
    const Matrix             &a = bench.matrix;
    const std::int64_t        rows = a.rows / block, blocks = a.nonzeros() / block / block;
    std::vector<std::int32_t> offsets(static_cast<std::size_t>(rows) + 1);
    Numbers<std::int32_t>     columns(static_cast<std::size_t>(blocks));
    Numbers<double>           values(a.values.size());
    cusparseSpMatDescr_t      matrix = nullptr;
    for (std::int64_t r = 0; r <= rows; ++r) offsets[r] = a.offsets[r * block] / (block * block);
    parallel_for(rows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) fill(a, r, offsets.data(), columns.data(), values.data());
    });
    offsets_ = Array<std::int32_t>(bench.executor, rows + 1);
    columns_ = Array<std::int32_t>(bench.executor, blocks);
    values_ = Array<double>(bench.executor, a.nonzeros());
    bench.upload(offsets_, offsets);
    bench.upload(columns_, columns);
    bench.upload(values_, values);
    TCBOUND_CUSPARSE(cusparseCreateBsr(&matrix, rows, a.columns_count / block, blocks, block, block, offsets_.data(),
                                       columns_.data(), values_.data(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                                       CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F, CUSPARSE_ORDER_ROW));
    start(matrix, false);
  }

private:
  void fill(const Matrix &a, std::int64_t r, const std::int32_t *offsets, std::int32_t *columns, double *values) const {
    for (std::int32_t k = offsets[r]; k < offsets[r + 1]; ++k) {
      for (int i = 0; i < block_; ++i) {
        const std::int64_t at = a.offsets[r * block_ + i] + static_cast<std::int64_t>(k - offsets[r]) * block_;
        columns[k] = a.columns[at] / block_;
        for (int j = 0; j < block_; ++j) values[(static_cast<std::int64_t>(k) * block_ + i) * block_ + j] = a.values[at + j];
      }
    }
  }

  int block_;
};
#endif

} // namespace

std::vector<Contender> cusparse_contenders(Bench &bench, [[maybe_unused]] int block) {
  std::vector<Contender> all;
  const auto             add_columns = [&](const char *name, cusparseSpMMAlg_t algorithm) {
    all.push_back({name, true, "", [&bench, algorithm] { return std::make_unique<ColumnsRunner>(bench, algorithm); }});
  };
  if (bench.count > 1) {
    add_columns("cusparse/csr/spmm-alg1", CUSPARSE_SPMM_CSR_ALG1);
    add_columns("cusparse/csr/spmm-alg2", CUSPARSE_SPMM_CSR_ALG2);
    add_columns("cusparse/csr/spmm-alg3", CUSPARSE_SPMM_CSR_ALG3);
    return all;
  }
  const auto add_csr = [&](const char *name, cusparseSpMVAlg_t algorithm) {
    all.push_back({name, true, "", [&bench, algorithm] { return std::make_unique<CsrRunner>(bench, algorithm); }});
  };
  add_csr("cusparse/csr/alg1", CUSPARSE_SPMV_CSR_ALG1);
  add_csr("cusparse/csr/alg2", CUSPARSE_SPMV_CSR_ALG2);
  add_csr("cusparse/csr/default", CUSPARSE_SPMV_ALG_DEFAULT);
  all.push_back({"cusparse/sell", true, why_not_sell(bench), [&bench] { return std::make_unique<SellRunner>(bench); }});
#if CUSPARSE_VERSION >= 12600
  if (block > 1)
    all.push_back({"cusparse/bsr", true, "", [&bench, block] { return std::make_unique<BsrRunner>(bench, block); }});
#endif
  return all;
}

} // namespace tcbound::bench
