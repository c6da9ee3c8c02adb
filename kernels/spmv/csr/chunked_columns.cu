#include "chunked_columns.h"

#include "chunk_kernel.h"
#include "pack_rows.h"

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

// Pairs of columns that are taken at a time.
int pairs_of(std::int64_t columns) { return columns <= 2 ? 1 : columns <= 4 ? 2 : 4; }

std::int64_t padded(std::int64_t columns) {
  const std::int64_t at_a_time = 2 * pairs_of(columns);
  return (columns + at_a_time - 1) / at_a_time * at_a_time;
}

// One of L P threads of a row: every L-th of its entries with one pair of columns.
template <int L, int P, class Staged> __device__ double2 multiply_row(const Staged &staged, const double2 *x, int k, int end) {
  constexpr int in_flight = batch / 2; // 16-byte loads
  double2       sum = {0.0, 0.0};
  for (; k < end; k += in_flight * L) {
    double  v[in_flight];
    double2 w[in_flight];
#pragma unroll
    for (int j = 0; j < in_flight; ++j) {
      const bool in = k + j * L < end;
      w[j] = in ? __ldg(x + static_cast<std::int64_t>(staged.columns[k + j * L]) * P) : double2{0.0, 0.0};
      v[j] = in ? staged.values[k + j * L] : 0.0;
    }
#pragma unroll
    for (int j = 0; j < in_flight; ++j) {
      sum.x = fma(v[j], w[j].x, sum.x);
      sum.y = fma(v[j], w[j].y, sum.y);
    }
  }
  return sum;
}

template <int L, int P, class Arguments, class Staged>
__device__ void sum_rows(const Arguments &a, const double *packed, std::int64_t inputs, const Columns &by, const Chunk &chunk,
                         const Staged &staged) {
  constexpr int lanes = L * P;
  const int     thread = static_cast<int>(threadIdx.x), rows = chunk.rows, step = static_cast<int>(blockDim.x) / lanes;
  const int     pair = thread % P, lane = thread % lanes / P;
  for (std::int64_t first = 0; first < by.count; first += 2 * P) {
    const double2 *x = reinterpret_cast<const double2 *>(packed + first * inputs) + pair;
    // A warp goes on while its first row is one of the chunk's: shuffles need all its lanes.
    for (int row = thread / lanes; row - thread % 32 / lanes < rows; row += step) {
      const Range range = load_range(a.offsets, chunk, staged.origin, row);
      double2     sum = multiply_row<L, P>(staged, x, range.begin + lane, range.end);
#pragma unroll
      for (int distance = lanes / 2; distance >= P; distance /= 2) {
        sum.x += __shfl_xor_sync(all_lanes, sum.x, distance);
        sum.y += __shfl_xor_sync(all_lanes, sum.y, distance);
      }
      if (lane != 0 || row >= rows) continue;
      for (int q = 0; q < 2; ++q) {
        const std::int64_t column = first + 2 * pair + q;
        if (column >= by.count) break;
        Scaling scaling = a.scaling;
        scaling.z += column * by.z;
        scaling.y += column * by.y;
        store(scaling, chunk.row + row, q ? sum.y : sum.x);
      }
    }
  }
}

template <int P, class Offset>
__global__ void __launch_bounds__(max_threads, min_blocks)
  multiply_columns(const Arguments<Offset, PlainColumns, double> a, const double *packed, std::int64_t inputs,
                   const Columns by) {
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
    switch (chunk.log2_lanes) {
    case 0:
      return sum_rows<1, P>(a, packed, inputs, by, chunk, staged);
    case 1:
      return sum_rows<2, P>(a, packed, inputs, by, chunk, staged);
    case 2:
      return sum_rows<4, P>(a, packed, inputs, by, chunk, staged);
    default:
      return sum_rows<8, P>(a, packed, inputs, by, chunk, staged);
    }
  });
}

template <int P, class Offset>
void launch_columns(Executor &executor, const Arguments<Offset, PlainColumns, double> &arguments, std::int64_t inputs,
                    Array<double> &packed, const Columns &columns, int threads, std::size_t shared) {
  const auto stream = static_cast<cudaStream_t>(executor.stream());
  if (packed.size() < padded(columns.count) * inputs) packed = Array<double>(executor, padded(columns.count) * inputs);
  pack_rows(executor, arguments.x, inputs, columns, 2 * P, padded(columns.count), packed.data());
  const auto kernel = csr::multiply_columns<P, Offset>;
  TCBOUND_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
  kernel<<<static_cast<unsigned>(arguments.chunk_count), static_cast<unsigned>(threads), shared, stream>>>(
    arguments, packed.data(), inputs, columns);
  TCBOUND_LAUNCHED();
}

} // namespace

std::int64_t ChunkedColumns::packed_bytes(std::int64_t inputs, std::int64_t columns) {
  return static_cast<std::int64_t>(sizeof(double)) * padded(columns) * inputs;
}

void ChunkedColumns::multiply(Executor &executor, const DeviceArrays &a, const ChunkTable &table, const CudaCoreConfig &config,
                              const Product &p, const Columns &columns, const std::int32_t *rows) {
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
                                                               {p.alpha, p.beta, p.y, p.z, rows}};
    if (pairs_of(columns.count) == 1)
      launch_columns<1>(executor, arguments, a.columns_count, packed_, columns, config.threads, shared);
    else if (pairs_of(columns.count) == 2)
      launch_columns<2>(executor, arguments, a.columns_count, packed_, columns, config.threads, shared);
    else
      launch_columns<4>(executor, arguments, a.columns_count, packed_, columns, config.threads, shared);
  });
}

} // namespace tcbound::csr
