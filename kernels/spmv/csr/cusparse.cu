// spmv/csr/cusparse: NVIDIA's library on the same arrays, the baseline.
//
// cuSPARSE's documentation (cusparseSpMV, "Algorithms") promises bitwise the same result in every run for CSR_ALG2 when the
// product is not transposed, and says of CSR_ALG1 that results may differ slightly between runs. So where reproducible results
// are wanted it is ALG2, else the faster of the two on this matrix. A transposed product is plain on the stored transpose, so
// the promise holds for it too.
#include <algorithm>
#include <limits>
#include <utility>

#include "cuda/error.h"
#include "device_format.h"

namespace tcbound {
namespace csr {
namespace {

struct Destroy {
  void operator()(cusparseContext *handle) const { cusparseDestroy(handle); }
  void operator()(cusparseSpMatDescr *matrix) const { cusparseDestroySpMat(matrix); }
  void operator()(cusparseDnVecDescr *vector) const { cusparseDestroyDnVec(vector); }
  void operator()(cusparseDnMatDescr *matrix) const { cusparseDestroyDnMat(matrix); }
};
template <class T> using Owned = std::unique_ptr<T, Destroy>;

Owned<cusparseContext> make_handle() {
  cusparseHandle_t handle = nullptr;
  TCBOUND_CUSPARSE(cusparseCreate(&handle));
  return Owned<cusparseContext>(handle);
}

Owned<cusparseDnVecDescr> make_vector(std::int64_t size, const double *values) {
  cusparseDnVecDescr_t vector = nullptr;
  TCBOUND_CUSPARSE(cusparseCreateDnVec(&vector, size, const_cast<double *>(values), CUDA_R_64F));
  return Owned<cusparseDnVecDescr>(vector);
}

Owned<cusparseDnMatDescr> make_columns(std::int64_t rows, const Columns &columns, std::int64_t distance, const double *values) {
  cusparseDnMatDescr_t matrix = nullptr;
  TCBOUND_CUSPARSE(cusparseCreateDnMat(&matrix, rows, columns.count, std::max(rows, distance), const_cast<double *>(values),
                                       CUDA_R_64F, CUSPARSE_ORDER_COL));
  return Owned<cusparseDnMatDescr>(matrix);
}

// cuSPARSE does not write to a matrix that it multiplies with, but its descriptor takes pointers to writable arrays.
Owned<cusparseSpMatDescr> make_matrix(const DeviceArrays &a) {
  cusparseSpMatDescr_t matrix = nullptr;
  const auto           writable = [](const auto *data) { return const_cast<void *>(static_cast<const void *>(data)); };
  TCBOUND_CUSPARSE(cusparseCreateCsr(&matrix, a.rows, a.columns_count, a.nonzeros, writable(a.narrow_offsets.data()),
                                     writable(a.columns.data()), writable(a.values.data()), CUSPARSE_INDEX_32I,
                                     CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
  return Owned<cusparseSpMatDescr>(matrix);
}

// What cuSPARSE keeps for the matrix or for its transpose.
struct Operation {
  cusparseSpMVAlg_t         algorithm = CUSPARSE_SPMV_CSR_ALG2;
  Owned<cusparseSpMatDescr> matrix;
  Owned<cusparseDnVecDescr> x, z;
  Array<char>               buffer, columns_buffer; // for one column and for several
};

class CusparseFormat final : public DeviceFormat {
public:
  CusparseFormat(Executor &executor, const Problem &problem)
    : DeviceFormat(executor, problem.csr, false), reproducible_(problem.reproducible), handle_(make_handle()) {}

  std::int64_t stored_bytes() const override {
    std::int64_t bytes = DeviceFormat::stored_bytes();
    for (const Operation &operation : operations_) bytes += operation.buffer.bytes() + operation.columns_buffer.bytes();
    return bytes;
  }

  double usual_share() const override { return 0.58; }

  void prepare(Executor &executor, bool transpose) override {
    const DeviceArrays &a = arrays(executor, transpose);
    if (a.rows == 0 || a.nonzeros == 0 || operations_[transpose].matrix) return;
    TCBOUND_CUSPARSE(cusparseSetStream(handle_.get(), static_cast<cudaStream_t>(executor.stream())));
    // Vectors of no particular content, for the analysis and for timing.
    Array<double> x(executor, a.columns_count), z(executor, a.rows);
    Product       p;
    p.x = x.data();
    p.z = z.data();
    Operation best = analyse(executor, a, p, CUSPARSE_SPMV_CSR_ALG2);
    if (!reproducible_) {
      Operation other = analyse(executor, a, p, CUSPARSE_SPMV_CSR_ALG1);
      if (time(executor, other, p) < time(executor, best, p)) best = std::move(other);
    }
    executor.synchronize(); // before the vectors go
    operations_[transpose] = std::move(best);
  }

  void multiply(Executor &executor, const Product &p) {
    const DeviceArrays &a = arrays(executor, p.transpose);
    const auto          stream = static_cast<cudaStream_t>(executor.stream());
    if (a.rows == 0) return;
    if (a.nonzeros == 0) { // cuSPARSE refuses null arrays
      begin_others(executor, p, a.rows, nullptr, 0);
      return;
    }
    prepare(executor, p.transpose);
    if (p.beta != 0.0 && p.y != p.z)
      executor.copy(p.z, MemorySpace::cuda, p.y, MemorySpace::cuda, static_cast<std::size_t>(a.rows) * sizeof(double));
    TCBOUND_CUSPARSE(cusparseSetStream(handle_.get(), stream));
    run(operations_[p.transpose], p);
  }

  // cuSPARSE's documentation (cusparseSpMM, "Algorithms") promises the same bits in every run for CSR_ALG3 alone.
  void multiply_columns(Executor &executor, const Product &p, const Columns &by) {
    const DeviceArrays &a = arrays(executor, p.transpose);
    prepare(executor, p.transpose);
    if (p.beta != 0.0 && p.y != p.z)
      for (std::int64_t k = 0; k < by.count; ++k)
        executor.copy(p.z + k * by.z, MemorySpace::cuda, p.y + k * by.y, MemorySpace::cuda,
                      static_cast<std::size_t>(a.rows) * sizeof(double));
    Operation  &operation = operations_[p.transpose];
    const auto  algorithm = reproducible_ ? CUSPARSE_SPMM_CSR_ALG3 : CUSPARSE_SPMM_CSR_ALG1;
    const auto  plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
    const auto  x = make_columns(a.columns_count, by, by.x, p.x), z = make_columns(a.rows, by, by.z, p.z);
    std::size_t bytes = 0;
    TCBOUND_CUSPARSE(cusparseSetStream(handle_.get(), static_cast<cudaStream_t>(executor.stream())));
    TCBOUND_CUSPARSE(cusparseSpMM_bufferSize(handle_.get(), plain, plain, &p.alpha, operation.matrix.get(), x.get(), &p.beta,
                                             z.get(), CUDA_R_64F, algorithm, &bytes));
    if (operation.columns_buffer.size() < static_cast<std::int64_t>(bytes))
      operation.columns_buffer = Array<char>(executor, static_cast<std::int64_t>(bytes));
    TCBOUND_CUSPARSE(cusparseSpMM(handle_.get(), plain, plain, &p.alpha, operation.matrix.get(), x.get(), &p.beta, z.get(),
                                  CUDA_R_64F, algorithm, operation.columns_buffer.data()));
  }

  // Whether multiply() knows what to do without cuSPARSE, which refuses null arrays.
  bool empty(Executor &executor, bool transpose) {
    const DeviceArrays &a = arrays(executor, transpose);
    return a.rows == 0 || a.nonzeros == 0;
  }

private:
  Operation analyse(Executor &executor, const DeviceArrays &a, const Product &p, cusparseSpMVAlg_t algorithm) {
    Operation   made;
    std::size_t bytes = 0;
    made.algorithm = algorithm;
    made.matrix = make_matrix(a);
    made.x = make_vector(a.columns_count, p.x);
    made.z = make_vector(a.rows, p.z);
    TCBOUND_CUSPARSE(cusparseSpMV_bufferSize(handle_.get(), CUSPARSE_OPERATION_NON_TRANSPOSE, &p.alpha, made.matrix.get(),
                                             made.x.get(), &p.beta, made.z.get(), CUDA_R_64F, algorithm, &bytes));
    made.buffer = Array<char>(executor, static_cast<std::int64_t>(bytes > 0 ? bytes : 1));
    TCBOUND_CUSPARSE(cusparseSpMV_preprocess(handle_.get(), CUSPARSE_OPERATION_NON_TRANSPOSE, &p.alpha, made.matrix.get(),
                                             made.x.get(), &p.beta, made.z.get(), CUDA_R_64F, algorithm, made.buffer.data()));
    return made;
  }

  void run(Operation &operation, const Product &p) {
    TCBOUND_CUSPARSE(cusparseDnVecSetValues(operation.x.get(), const_cast<double *>(p.x)));
    TCBOUND_CUSPARSE(cusparseDnVecSetValues(operation.z.get(), p.z));
    TCBOUND_CUSPARSE(cusparseSpMV(handle_.get(), CUSPARSE_OPERATION_NON_TRANSPOSE, &p.alpha, operation.matrix.get(),
                                  operation.x.get(), &p.beta, operation.z.get(), CUDA_R_64F, operation.algorithm,
                                  operation.buffer.data()));
  }

  // Seconds of one product: the least of a few, after one that warms up.
  double time(Executor &executor, Operation &operation, const Product &p) {
    const std::unique_ptr<Interval> interval = executor.interval();
    double                          least = std::numeric_limits<double>::max();
    run(operation, p);
    for (int repeat = 0; repeat < 4; ++repeat) {
      interval->begin();
      run(operation, p);
      interval->end();
      least = std::min(least, interval->seconds());
    }
    return least;
  }

  bool                   reproducible_;
  Owned<cusparseContext> handle_;
  Operation              operations_[2]; // of the matrix and of its transpose
};

} // namespace

} // namespace csr

namespace {

class CsrCusparse final : public Kernel {
public:
  CsrCusparse() : Kernel("spmv", "csr", "cusparse") {}

  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Problem &problem) const override {
    if (csr::needs_wide_offsets(problem.csr))
      return "there are " + std::to_string(problem.csr.nonzeros) +
             " entries, which need 64-bit row offsets, and cuSPARSE documents no mixture of those with 32-bit columns";
    return csr::check_device(device, problem);
  }

  Work predict(const Problem &problem, bool transpose, bool accumulate) const override {
    csr::Size size{problem.csr.rows, problem.csr.columns_count, problem.csr.nonzeros, 4, 4};
    if (transpose) std::swap(size.rows, size.columns);
    return csr::count_work(size, false, accumulate, 0);
  }

  std::unique_ptr<Format> build(Executor &executor, const Problem &problem) const override {
    const std::string why_not = check(executor.device(), problem);
    if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);
    return std::make_unique<csr::CusparseFormat>(executor, problem);
  }

  void apply(Executor &executor, Format &format, const Product &product) const override {
    static_cast<csr::CusparseFormat &>(format).multiply(executor, product);
  }

  void apply_columns(Executor &executor, Format &format, const Product &product, const Columns &columns) const override {
    auto &mine = static_cast<csr::CusparseFormat &>(format);
    if (columns.count == 1 || mine.empty(executor, product.transpose))
      Kernel::apply_columns(executor, format, product, columns);
    else
      mine.multiply_columns(executor, product, columns);
  }
};

} // namespace

const Kernel &spmv_csr_cusparse() {
  static const CsrCusparse kernel;
  return kernel;
}

} // namespace tcbound
