#include "chunked_columns.h"

#include "chunk_kernel.h"

namespace tcbound::csr {
namespace {

// What the arguments of a product become for column k. Each column has its own places for parts of split rows.
template <class Arguments> __device__ Arguments from_column(const Arguments &a, const Columns &by, std::int64_t k) {
  Arguments from = a;
  from.x += k * by.x;
  from.scaling.z += k * by.z;
  if (from.scaling.y) from.scaling.y += k * by.y;
  if (from.parts) {
    from.parts += 2 * k * a.chunk_count;
    from.arrivals += k * a.chunk_count;
  }
  return from;
}

// As multiply_row(), for K columns. Columns beyond the last are the last again.
template <int lanes, int K, class Staged>
__device__ void multiply_row(const Staged &staged, const double *const (&x)[K], int k, int end, double (&sum)[K]) {
  constexpr int at_once = 2 * batch / K;
#pragma unroll
  for (int q = 0; q < K; ++q) sum[q] = 0.0;
  for (; k < end; k += at_once * lanes) {
    double v[at_once], w[at_once][K];
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      const bool         in = k + j * lanes < end;
      const std::int32_t column = in ? staged.columns[k + j * lanes] : 0;
      v[j] = in ? staged.values[k + j * lanes] : 0.0;
#pragma unroll
      for (int q = 0; q < K; ++q) w[j][q] = in ? __ldg(x[q] + column) : 0.0;
    }
#pragma unroll
    for (int j = 0; j < at_once; ++j)
#pragma unroll
      for (int q = 0; q < K; ++q) sum[q] = fma(v[j], w[j][q], sum[q]);
  }
}

// All rows of a chunk but one kept apart, for all columns.
template <int lanes, int K, class Arguments, class Staged>
__device__ void sum_rows(const Arguments &a, const Columns &by, const Chunk &chunk, const Staged &staged) {
  const int thread = static_cast<int>(threadIdx.x), rows = chunk.rows, step = static_cast<int>(blockDim.x) / lanes;
  for (std::int64_t first = 0; first < by.count; first += K) {
    const int     live = static_cast<int>(min(static_cast<std::int64_t>(K), by.count - first));
    const double *x[K];
#pragma unroll
    for (int q = 0; q < K; ++q) x[q] = a.x + (first + min(q, live - 1)) * by.x;
    // A warp goes on while its first row is one of the chunk's: shuffles need all its lanes.
    for (int row = thread / lanes; row - thread % 32 / lanes < rows; row += step) {
      const Range range = load_range(a.offsets, chunk, staged.origin, row);
      double      sum[K];
      multiply_row<lanes, K>(staged, x, range.begin + thread % lanes, range.end, sum);
#pragma unroll
      for (int q = 0; q < K; ++q)
#pragma unroll
        for (int distance = lanes / 2; distance > 0; distance /= 2) sum[q] += __shfl_xor_sync(all_lanes, sum[q], distance);
      if (thread % lanes != 0 || row >= rows) continue;
#pragma unroll
      for (int q = 0; q < K; ++q)
        if (q < live) {
          Scaling scaling = a.scaling;
          scaling.z += (first + q) * by.z;
          scaling.y += (first + q) * by.y;
          store(scaling, chunk.row + row, sum[q]);
        }
    }
  }
}

template <int K, class Arguments, class Staged>
__device__ void sum_rows(const Arguments &a, const Columns &by, const Chunk &chunk, const Staged &staged) {
  switch (chunk.log2_lanes) {
  case 0:
    return sum_rows<1, K>(a, by, chunk, staged);
  case 1:
    return sum_rows<2, K>(a, by, chunk, staged);
  case 2:
    return sum_rows<4, K>(a, by, chunk, staged);
  case 3:
    return sum_rows<8, K>(a, by, chunk, staged);
  case 4:
    return sum_rows<16, K>(a, by, chunk, staged);
  default:
    return sum_rows<32, K>(a, by, chunk, staged);
  }
}

template <int K, class Offset>
__global__ void __launch_bounds__(max_threads, 2)
  multiply_columns(const Arguments<Offset, PlainColumns, double> a, const Columns by) {
  __shared__ CopyBarrier arrived;
  const std::int32_t     c = static_cast<std::int32_t>(blockIdx.x);
  if (threadIdx.x == 0) initialise(arrived);
  __syncthreads();
  start_copy(a, c, 0, arrived);
  const Chunk               chunk = load(a.chunks, c);
  const PlainColumns::Place place;
  if (chunk.tail || chunk.split || chunk.apart)
    for (std::int64_t k = 0; k < by.count; ++k) sum_apart(from_column(a, by, k), c, chunk, place);
  wait(arrived, 0);
  a.columns.with_type(place, staged_columns(a, 0), [&](const auto &columns) {
    const Staged<std::decay_t<decltype(columns)>, double> staged = {staged_products(a, 0), staged_values(a, 0), columns,
                                                                    origin_of(chunk)};
    sum_rows<K>(a, by, chunk, staged);
  });
}

template <int K, class Offset>
void launch_columns(Executor &executor, const Arguments<Offset, PlainColumns, double> &arguments, const Columns &columns,
                    int threads, std::size_t shared) {
  const auto kernel = csr::multiply_columns<K, Offset>;
  TCBOUND_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
  kernel<<<static_cast<unsigned>(arguments.chunk_count), static_cast<unsigned>(threads), shared,
           static_cast<cudaStream_t>(executor.stream())>>>(arguments, columns);
  TCBOUND_LAUNCHED();
}

} // namespace

void ChunkedColumns::multiply(Executor &executor, const DeviceArrays &a, const ChunkTable &table, const CudaCoreConfig &config,
                              const Product &p, const Columns &columns) {
  if (a.rows == 0 || columns.count == 0) return;
  if (parts_.size() < columns.count * table.parts.size()) {
    parts_ = Array<double>(executor, columns.count * table.parts.size());
    arrivals_ = Array<std::uint32_t>(executor, columns.count * table.arrivals.size());
    TCBOUND_CUDA(cudaMemsetAsync(arrivals_.data(), 0, static_cast<std::size_t>(arrivals_.bytes()),
                                 static_cast<cudaStream_t>(executor.stream())));
  }
  const std::size_t shared = (sizeof(double) + sizeof(std::int32_t)) * static_cast<std::size_t>(table.capacity);
  with_offsets(a, [&](const auto *offsets) {
    using Offset = std::decay_t<decltype(*offsets)>;
    const Arguments<Offset, PlainColumns, double> arguments = {offsets,
                                                               PlainColumns{a.columns.data()},
                                                               a.values.data(),
                                                               p.x,
                                                               table.chunks.data(),
                                                               parts_.data(),
                                                               arrivals_.data(),
                                                               table.cut.span,
                                                               static_cast<std::int32_t>(table.cut.chunks),
                                                               table.capacity,
                                                               1,
                                                               1,
                                                               config.evict_first,
                                                               {p.alpha, p.beta, p.y, p.z, nullptr}};
    if (columns.count <= 2)
      launch_columns<2>(executor, arguments, columns, config.threads, shared);
    else if (columns.count <= 4)
      launch_columns<4>(executor, arguments, columns, config.threads, shared);
    else
      launch_columns<8>(executor, arguments, columns, config.threads, shared);
  });
}

} // namespace tcbound::csr
