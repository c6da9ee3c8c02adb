// spmv/csr/cuda_core: CSR as it is, read once and in whole pieces.
//
// A block copies the entries of its chunk (chunks.h) into shared memory with bulk copies, so that memory always has tens of
// kilobytes a multiprocessor to deliver whatever the rows look like, and then gathers x. With one lane a row, neighbouring
// threads own neighbouring rows, whose columns in a stencil are neighbours too: loads of x coalesce. No atomics on
// floating-point numbers: results are reproducible bit for bit.
#include <algorithm>

#include "chunked_product.h"
#include "cuda/bulk_copy.h"
#include "cuda/error.h"

namespace tcbound {
namespace csr {
namespace {

constexpr int      batch = 8; // loads of x that a thread has in flight
constexpr unsigned all_lanes = 0xffffffffU;
// Blocks of max_threads that a multiprocessor must be able to hold: registers enough for a batch without spilling.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr int min_blocks = 3;
#else
constexpr int min_blocks = 4;
#endif

struct Scaling {
  double              alpha, beta;
  const double       *y;
  double             *z;
  const std::int32_t *rows; // of y and z that the matrix's rows stand for, or null
};

template <class Offset> struct Arguments {
  const Offset       *offsets;
  const std::int32_t *columns;
  const double       *values;
  const double       *x;
  const Chunk        *chunks;
  double             *parts;
  std::uint32_t      *arrivals;
  std::int64_t        span;
  std::int32_t        chunk_count;
  int                 capacity, stages, group;
  bool                evict_first;
  Scaling             scaling;
};

// A chunk's entries in shared memory, counted from `origin` in the matrix.
struct Staged {
  double             *values;
  const std::int32_t *columns;
  std::int64_t        origin;
};

struct Range {
  int begin, end; // of a row, from the chunk's origin
};

__device__ void store(const Scaling &scaling, std::int32_t row, double sum) {
  double result = scaling.alpha * sum;
  if (scaling.rows) row = __ldg(scaling.rows + row);
  if (scaling.beta != 0.0) result += scaling.beta * scaling.y[row];
  scaling.z[row] = result;
}

__device__ Chunk load(const Chunk *chunks, std::int32_t c) {
  const int4 words = __ldg(reinterpret_cast<const int4 *>(chunks) + c);
  Chunk      chunk;
  memcpy(&chunk, &words, sizeof chunk);
  return chunk;
}

// One of `lanes` threads of a row: every lanes-th of its entries. Up to `batch` loads of x are issued before any is used.
template <int lanes> __device__ double multiply_row(const Staged &staged, const double *x, int k, int end) {
  double sum = 0.0, sum2 = 0.0;
  for (; k < end; k += batch * lanes) {
    double v[batch], w[batch];
#pragma unroll
    for (int j = 0; j < batch; ++j) {
      const bool in = k + j * lanes < end;
      w[j] = in ? __ldg(x + staged.columns[k + j * lanes]) : 0.0;
      v[j] = in ? staged.values[k + j * lanes] : 0.0;
    }
#pragma unroll
    for (int j = 0; j < batch; j += 2) {
      sum = fma(v[j], w[j], sum);
      sum2 = fma(v[j + 1], w[j + 1], sum2);
    }
  }
  return sum + sum2;
}

// The same with products in place of entries.
template <int lanes> __device__ double add_row(const double *products, int k, int end) {
  double sum = 0.0, sum2 = 0.0;
  for (; k + lanes < end; k += 2 * lanes) {
    sum += products[k];
    sum2 += products[k + lanes];
  }
  return (k < end ? sum + products[k] : sum) + sum2;
}

// Replaces each staged value by its product with x.
__device__ void multiply_entries(const Staged &staged, const double *x, int begin, int end) {
  const int threads = static_cast<int>(blockDim.x);
  for (int k = begin + static_cast<int>(threadIdx.x); k < end; k += batch * threads) {
    double w[batch];
#pragma unroll
    for (int j = 0; j < batch; ++j) w[j] = k + j * threads < end ? __ldg(x + staged.columns[k + j * threads]) : 0.0;
#pragma unroll
    for (int j = 0; j < batch; ++j)
      if (k + j * threads < end) staged.values[k + j * threads] *= w[j];
  }
}

template <class Offset> __device__ Range load_range(const Offset *offsets, const Chunk &chunk, std::int64_t origin, int row) {
  if (row >= chunk.rows) return {0, 0};
  const Offset *at = offsets + chunk.row + row;
  return {static_cast<int>(__ldg(at) - origin), static_cast<int>(__ldg(at + 1) - origin)};
}

// All rows of a chunk but one kept apart. Row offsets are on their way while the entries still are.
template <int lanes, bool stream, class Offset>
__device__ void sum_rows(const Arguments<Offset> &a, const Chunk &chunk, const Staged &staged, CopyBarrier &arrived,
                         std::uint32_t parity) {
  const int rows = chunk.rows, step = static_cast<int>(blockDim.x) / lanes, lane = static_cast<int>(threadIdx.x) % lanes;
  int       row = static_cast<int>(threadIdx.x) / lanes;
  Range     range = load_range(a.offsets, chunk, staged.origin, row);
  wait(arrived, parity);
  if (stream) {
    const int begin = static_cast<int>(static_cast<std::int64_t>(chunk.entry) - staged.origin);
    multiply_entries(staged, a.x, begin, begin + chunk.entries);
    __syncthreads();
  }
  // A warp goes on while its first row is one of the chunk's: shuffles need all its lanes.
  for (int first = static_cast<int>(threadIdx.x & ~31U) / lanes; first < rows; first += step) {
    const Range next = load_range(a.offsets, chunk, staged.origin, row + step);
    double      sum = stream ? add_row<lanes>(staged.values, range.begin + lane, range.end)
                             : multiply_row<lanes>(staged, a.x, range.begin + lane, range.end);
#pragma unroll
    for (int distance = lanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(all_lanes, sum, distance);
    if (lane == 0 && row < rows) store(a.scaling, chunk.row + row, sum);
    row += step;
    range = next;
  }
}

template <bool stream, class Offset>
__device__ void sum_rows(const Arguments<Offset> &a, const Chunk &chunk, const Staged &staged, CopyBarrier &arrived,
                         std::uint32_t parity) {
  switch (chunk.log2_lanes) {
  case 0:
    return sum_rows<1, stream>(a, chunk, staged, arrived, parity);
  case 1:
    return sum_rows<2, stream>(a, chunk, staged, arrived, parity);
  case 2:
    return sum_rows<4, stream>(a, chunk, staged, arrived, parity);
  case 3:
    return sum_rows<8, stream>(a, chunk, staged, arrived, parity);
  case 4:
    return sum_rows<16, stream>(a, chunk, staged, arrived, parity);
  default:
    return sum_rows<32, stream>(a, chunk, staged, arrived, parity);
  }
}

// The block's sum, in every thread.
__device__ double sum_block(double value) {
  __shared__ double warps[max_threads / 32];
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(all_lanes, value, distance);
  __syncthreads(); // `warps` may still be read from the sum before
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  double sum = 0.0;
  for (unsigned w = 0; w < blockDim.x / 32; ++w) sum += warps[w];
  return sum;
}

// Entries [begin, end) of one row, from global memory, by the whole block.
template <class Offset> __device__ double multiply_apart(const Arguments<Offset> &a, std::int64_t begin, std::int64_t end) {
  double sum = 0.0;
  for (std::int64_t k = begin + threadIdx.x; k < end; k += batch * blockDim.x) {
    double v[batch], w[batch];
#pragma unroll
    for (int j = 0; j < batch; ++j) {
      const bool in = k + j * blockDim.x < end;
      w[j] = in ? __ldg(a.x + __ldcs(a.columns + k + j * blockDim.x)) : 0.0;
      v[j] = in ? __ldcs(a.values + k + j * blockDim.x) : 0.0;
    }
#pragma unroll
    for (int j = 0; j < batch; ++j) sum = fma(v[j], w[j], sum);
  }
  return sum_block(sum);
}

// Chunk c's part of a row that several chunks sum; the last block to come adds the parts up from the first to the last.
template <class Offset> __device__ void sum_part(const Arguments<Offset> &a, std::int32_t c, std::int32_t row) {
  const std::int64_t begin = a.offsets[row], end = a.offsets[row + 1];
  const std::int64_t key_of_entry_0 = row + 1; // entry k of the matrix, if in this row, has key k + row + 1
  const std::int64_t owner = (begin + row) / a.span, parts = (end + row) / a.span - owner + 1;
  const std::int64_t from = max(begin, c * a.span - key_of_entry_0), to = min(end, (c + 1) * a.span - key_of_entry_0);
  const double       part = multiply_apart(a, from, to);
  __shared__ bool    last;
  if (threadIdx.x == 0) {
    a.parts[2 * static_cast<std::int64_t>(c) + (c == owner)] = part;
    __threadfence(); // the part must be seen before its arrival is
    last = atomicAdd(a.arrivals + owner, 1U) + 1 == parts;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  double sum = threadIdx.x == 0 ? __ldcg(a.parts + 2 * owner + 1) : 0.0;
  for (std::int64_t p = 1 + threadIdx.x; p < parts; p += blockDim.x) sum += __ldcg(a.parts + 2 * (owner + p));
  sum = sum_block(sum);
  if (threadIdx.x == 0) {
    store(a.scaling, row, sum);
    a.arrivals[owner] = 0; // for the next product
  }
}

template <class Offset> __device__ Staged stage(const Arguments<Offset> &a, const Chunk &chunk, int s) {
  extern __shared__ __align__(16) unsigned char shared[];
  auto                                         *values = reinterpret_cast<double *>(shared);
  auto                                         *columns = reinterpret_cast<std::int32_t *>(values + a.stages * a.capacity);
  return {values + s * a.capacity, columns + s * a.capacity, static_cast<std::int64_t>(chunk.entry) & ~std::int64_t(3)};
}

template <class Offset>
__device__ void start_copy(const Arguments<Offset> &a, const Chunk &chunk, int s, CopyBarrier &arrived) {
  const Staged        staged = stage(a, chunk, s);
  const int           skipped = static_cast<int>(static_cast<std::int64_t>(chunk.entry) - staged.origin);
  const std::uint32_t count = chunk.entries == 0 ? 0 : (skipped + chunk.entries + 3U) / 4U * 4U;
  copy_two(staged.values, a.values + staged.origin, 8 * count, const_cast<std::int32_t *>(staged.columns),
           a.columns + staged.origin, 4 * count, arrived, a.evict_first);
}

template <class Offset> __global__ void __launch_bounds__(max_threads, min_blocks) multiply(const Arguments<Offset> a) {
  __shared__ CopyBarrier arrived[max_stages];
  const std::int32_t     first = static_cast<std::int32_t>(blockIdx.x) * a.group, count = min(a.group, a.chunk_count - first);
  if (threadIdx.x == 0)
    for (int s = 0; s < a.stages; ++s) initialise(arrived[s]);
  __syncthreads();
  for (int s = 0; s < min(a.stages, count); ++s) start_copy(a, load(a.chunks, first + s), s, arrived[s]);
  for (int i = 0; i < count; ++i) {
    const int           s = i % a.stages;
    const std::uint32_t parity = (i / a.stages) & 1;
    const Chunk         chunk = load(a.chunks, first + i);
    const std::int32_t  apart = chunk.row + chunk.rows; // the row after those in shared memory
    if (chunk.tail) sum_part(a, first + i, chunk.row - 1);
    if (chunk.split) {
      sum_part(a, first + i, apart);
    } else if (chunk.apart) {
      const double sum = multiply_apart(a, a.offsets[apart], a.offsets[apart + 1]);
      if (threadIdx.x == 0) store(a.scaling, apart, sum);
    }
    if (chunk.stream)
      sum_rows<true>(a, chunk, stage(a, chunk, s), arrived[s], parity);
    else
      sum_rows<false>(a, chunk, stage(a, chunk, s), arrived[s], parity);
    if (i + a.stages < count) {
      release_to_copies();
      __syncthreads(); // all threads are done with this stage
      start_copy(a, load(a.chunks, first + i + a.stages), s, arrived[s]);
    }
  }
}

std::size_t shared_bytes(const CudaCoreConfig &config, const ChunkTable &table) {
  return static_cast<std::size_t>(config.stages) * static_cast<std::size_t>(table.capacity) *
         (sizeof(double) + sizeof(std::int32_t));
}

template <class Offset>
void launch(Executor &executor, const DeviceArrays &a, const Offset *offsets, const CudaCoreConfig &config, ChunkTable &table,
            const Product &p, const std::int32_t *rows) {
  const auto        chunks = static_cast<std::int32_t>(table.cut.chunks);
  Arguments<Offset> arguments = {offsets,
                                 a.columns.data(),
                                 a.values.data(),
                                 p.x,
                                 table.chunks.data(),
                                 table.parts.data(),
                                 table.arrivals.data(),
                                 table.cut.span,
                                 chunks,
                                 table.capacity,
                                 config.stages,
                                 config.group,
                                 config.evict_first,
                                 {p.alpha, p.beta, p.y, p.z, rows}};
  const auto        grid = static_cast<unsigned>((chunks + config.group - 1) / config.group);
  csr::multiply<Offset><<<grid, static_cast<unsigned>(config.threads), shared_bytes(config, table),
                          static_cast<cudaStream_t>(executor.stream())>>>(arguments);
  TCBOUND_LAUNCHED();
}

class CudaCoreFormat final : public DeviceFormat {
public:
  CudaCoreFormat(Executor &executor, const CsrView &view, const CudaCoreConfig &config)
    : DeviceFormat(executor, view, config.wide_offsets || needs_wide_offsets(view)), config_(config), rows_(view.rows),
      columns_(view.columns_count), nonzeros_(view.nonzeros) {
    CudaCoreFormat::prepare(executor, false);
  }

  std::int64_t stored_bytes() const override {
    return DeviceFormat::stored_bytes() + products_[0].table().bytes() + products_[1].table().bytes();
  }

  void prepare(Executor &executor, bool transpose) override {
    if (!products_[transpose].prepared()) products_[transpose].prepare(executor, arrays(executor, transpose), config_);
  }

  void multiply(Executor &executor, const Product &product) {
    prepare(executor, product.transpose);
    products_[product.transpose].multiply(executor, arrays(executor, product.transpose), product);
  }

protected:
  std::int64_t auxiliary_bytes(bool transpose) const override {
    return choose_cut(config_, transpose ? columns_ : rows_, nonzeros_).table_bytes();
  }

private:
  CudaCoreConfig config_;
  std::int64_t   rows_, columns_, nonzeros_;
  ChunkedProduct products_[2]; // of the matrix and of its transpose
};

} // namespace

void ChunkedProduct::prepare(Executor &executor, const DeviceArrays &a, const CudaCoreConfig &config) {
  config_ = config;
  table_ = cut_into_chunks(executor, a, config);
  const auto         kernel = a.wide ? reinterpret_cast<const void *>(csr::multiply<std::int64_t>)
                                     : reinterpret_cast<const void *>(csr::multiply<std::int32_t>);
  cudaFuncAttributes attributes;
  TCBOUND_CUDA(cudaFuncGetAttributes(&attributes, kernel));
  const std::size_t needed = shared_bytes(config, table_), most = executor.device().shared_bytes - attributes.sharedSizeBytes;
  if (needed > most)
    throw Error(ErrorCode::unsupported, "spmv/csr/cuda_core: a block needs " + std::to_string(needed) +
                                          " bytes of shared memory and may have " + std::to_string(most));
  // All that a block may have, whatever this matrix needs: the attribute belongs to the kernel, not to this format.
  TCBOUND_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most)));
  prepared_ = true;
}

void ChunkedProduct::multiply(Executor &executor, const DeviceArrays &a, const Product &product, const std::int32_t *rows) {
  if (a.rows == 0) return;
  with_offsets(a, [&](const auto *offsets) { launch(executor, a, offsets, config_, table_, product, rows); });
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
};

} // namespace

const Kernel &spmv_csr_cuda_core() {
  static const CsrCudaCore kernel;
  return kernel;
}

} // namespace tcbound
