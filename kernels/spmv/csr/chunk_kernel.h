#pragma once

// The kernel of spmv/csr/cuda_core and its launch, a template over how column indices and values are stored. For .cu files only.
//
// A block copies the entries of its chunk (chunks.h) into shared memory with bulk copies, so that memory always has tens of
// kilobytes a multiprocessor to deliver whatever the rows look like, and then gathers x. With one lane a row, neighbouring
// threads own neighbouring rows, whose columns in a stencil are neighbours too: loads of x coalesce. No atomics on
// floating-point numbers: results are reproducible bit for bit.

#include <string>
#include <type_traits>

#include "cuda/bulk_copy.h"
#include "cuda/error.h"
#include "kernel.h"
#include "packed_columns.h"

namespace tcbound::csr {
namespace {

constexpr int      batch = 8; // loads of x that a thread has in flight
constexpr unsigned all_lanes = 0xffffffffU;
static_assert(max_stages == 2); // `multiply` counts on it
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

template <class T> __device__ T load(const T *table, std::int32_t c) {
  static_assert(sizeof(T) == sizeof(int4));
  const int4 words = __ldg(reinterpret_cast<const int4 *>(table) + c);
  T          record;
  memcpy(&record, &words, sizeof record);
  return record;
}

// Columns: PlainColumns or PackedColumnsView. Value: double, or float where each value is exact in it.
template <class Offset, class Columns, class Value> struct Arguments {
  const Offset  *offsets;
  Columns        columns;
  const Value   *values;
  const double  *x;
  const Chunk   *chunks;
  double        *parts;
  std::uint32_t *arrivals;
  std::int64_t   span;
  std::int32_t   chunk_count;
  int            capacity, stages, group;
  bool           evict_first;
  Scaling        scaling;
};

// A piece of global memory that is copied into shared memory.
struct Piece {
  const void   *from;
  std::uint32_t bytes;
};

template <class Stored, bool based> struct StagedColumns {
  const Stored *at;
  std::int32_t  base;

  __device__ std::int32_t operator[](int k) const { return based ? base + at[k] : at[k]; }
};

// Columns as CSR has them.
struct PlainColumns {
  struct Place {}; // what must be known of a chunk to find its columns
  struct Reader {
    const std::int32_t *at;

    __device__ std::int32_t operator[](int k) const { return __ldcs(at + k); }
  };
  const std::int32_t *columns;

  __device__ Place place_of(std::int32_t) const { return {}; }
  __device__ Piece own(const Place &, const Chunk &, std::int64_t origin, std::uint32_t count) const {
    return {columns + origin, 4 * count};
  }
  __device__ Reader tail(const Place &, const EntryRange &part) const { return {columns + part.begin}; }
  __device__ Reader apart(const Place &, const Chunk &, const EntryRange &part) const { return {columns + part.begin}; }

  // Bytes of shared memory for the columns of a chunk.
  __host__ __device__ int stage_bytes(int capacity) const { return 4 * capacity; }

  // Calls f(staged columns as what they are).
  template <class F> __device__ void with_type(const Place &, const void *staged, F &&f) const {
    f(StagedColumns<std::int32_t, false>{static_cast<const std::int32_t *>(staged), 0});
  }
};

// Columns as packed_columns.h stores them.
struct PackedColumnsView {
  using Place = PackedChunk;
  struct Reader {
    const std::uint8_t *at;
    bool                narrow;
    std::int32_t        base;

    __device__ std::int32_t operator[](int k) const {
      return narrow ? base + __ldcs(reinterpret_cast<const std::uint16_t *>(at) + k)
                    : __ldcs(reinterpret_cast<const std::int32_t *>(at) + k);
    }
  };
  const PackedChunk  *chunks;
  const std::uint8_t *stored;
  int                 longest_own;

  __device__ Place place_of(std::int32_t c) const { return load(chunks, c); }
  __device__ Piece own(const Place &place, const Chunk &chunk, std::int64_t, std::uint32_t) const {
    return {stored + place.own, static_cast<std::uint32_t>(own_bytes(chunk, place.width))};
  }
  __device__ Reader tail(const Place &place, const EntryRange &part) const {
    return {stored + place.own - place.width * part.size(), place.width == 2, place.base};
  }
  __device__ Reader apart(const Place &place, const Chunk &chunk, const EntryRange &) const {
    return {stored + place.own + own_bytes(chunk, place.width), place.width == 2, place.base};
  }
  __host__ __device__ int            stage_bytes(int) const { return longest_own; }
  template <class F> __device__ void with_type(const Place &place, const void *staged, F &&f) const {
    if (place.width == 2)
      f(StagedColumns<std::uint16_t, true>{static_cast<const std::uint16_t *>(staged), place.base});
    else
      f(StagedColumns<std::int32_t, false>{static_cast<const std::int32_t *>(staged), 0});
  }
};

// A chunk's entries in shared memory, counted from `origin` in the matrix. Products with x take the place of the values.
template <class Columns, class Value> struct Staged {
  double      *products;
  const Value *values;
  Columns      columns;
  std::int64_t origin;
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

// One of `lanes` threads of a row: every lanes-th of its entries. Up to `batch` loads of x are issued before any is used.
template <int lanes, class Staged> __device__ double multiply_row(const Staged &staged, const double *x, int k, int end) {
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

// threadIdx.x, read anew where it is used: what follows from it for each number of lanes would otherwise be computed ahead of the
// loop over chunks, and registers would not do for all of it.
__device__ unsigned thread_number() {
  unsigned number;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(number));
  return number;
}

// Replaces each staged value by its product with x.
template <class Columns>
__device__ void multiply_entries(const Staged<Columns, double> &staged, const double *x, int begin, int end) {
  const int threads = static_cast<int>(blockDim.x);
  for (int k = begin + static_cast<int>(threadIdx.x); k < end; k += batch * threads) {
    double w[batch];
#pragma unroll
    for (int j = 0; j < batch; ++j) w[j] = k + j * threads < end ? __ldg(x + staged.columns[k + j * threads]) : 0.0;
#pragma unroll
    for (int j = 0; j < batch; ++j)
      if (k + j * threads < end) staged.products[k + j * threads] *= w[j];
  }
}

// The same where values have 32 bits and lie in the second half of the place for products: the products of entries below k cover
// no value of an entry from k on. So a batch of entries is read by all threads before products are written.
template <class Columns>
__device__ void multiply_entries(const Staged<Columns, float> &staged, const double *x, int begin, int end) {
  const int threads = static_cast<int>(blockDim.x);
  for (int first = begin; first < end; first += batch * threads) {
    const int k = first + static_cast<int>(threadIdx.x);
    double    w[batch];
#pragma unroll
    for (int j = 0; j < batch; ++j) w[j] = k + j * threads < end ? __ldg(x + staged.columns[k + j * threads]) : 0.0;
#pragma unroll
    for (int j = 0; j < batch; ++j)
      if (k + j * threads < end) w[j] *= staged.values[k + j * threads];
    __syncthreads();
#pragma unroll
    for (int j = 0; j < batch; ++j)
      if (k + j * threads < end) staged.products[k + j * threads] = w[j];
  }
}

template <class Offset> __device__ Range load_range(const Offset *offsets, const Chunk &chunk, std::int64_t origin, int row) {
  if (row >= chunk.rows) return {0, 0};
  const Offset *at = offsets + chunk.row + row;
  return {static_cast<int>(__ldg(at) - origin), static_cast<int>(__ldg(at + 1) - origin)};
}

// All rows of a chunk but one kept apart. Row offsets are on their way while the entries still are.
template <int lanes, bool stream, class Arguments, class Staged>
__device__ void sum_rows(const Arguments &a, const Chunk &chunk, const Staged &staged, CopyBarrier &arrived,
                         std::uint32_t parity) {
  const unsigned thread = thread_number();
  const int      rows = chunk.rows, step = static_cast<int>(blockDim.x) / lanes, lane = static_cast<int>(thread % lanes);
  int            row = static_cast<int>(thread / lanes);
  Range          range = load_range(a.offsets, chunk, staged.origin, row);
  wait(arrived, parity);
  if (stream) {
    const int begin = static_cast<int>(static_cast<std::int64_t>(chunk.entry) - staged.origin);
    multiply_entries(staged, a.x, begin, begin + chunk.entries);
    __syncthreads();
  }
  // A warp goes on while its first row is one of the chunk's: shuffles need all its lanes.
  for (int first = static_cast<int>(thread & ~31U) / lanes; first < rows; first += step) {
    const Range next = load_range(a.offsets, chunk, staged.origin, row + step);
    double      sum = stream ? add_row<lanes>(staged.products, range.begin + lane, range.end)
                             : multiply_row<lanes>(staged, a.x, range.begin + lane, range.end);
#pragma unroll
    for (int distance = lanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(all_lanes, sum, distance);
    if (lane == 0 && row < rows) store(a.scaling, chunk.row + row, sum);
    row += step;
    range = next;
  }
}

template <bool stream, class Arguments, class Staged>
__device__ void sum_rows(const Arguments &a, const Chunk &chunk, const Staged &staged, CopyBarrier &arrived,
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

// Entries of one row, from global memory, by the whole block.
template <class Arguments, class Reader>
__device__ double multiply_apart(const Arguments &a, const EntryRange &part, const Reader &columns) {
  const auto *values = a.values + part.begin;
  // A chunk has less than two spans of them.
  const int size = static_cast<int>(part.size()), threads = static_cast<int>(blockDim.x);
  double    sum = 0.0;
  for (int k = static_cast<int>(threadIdx.x); k < size; k += batch * threads) {
    double v[batch], w[batch];
#pragma unroll
    for (int j = 0; j < batch; ++j) {
      const bool in = k + j * threads < size;
      w[j] = in ? __ldg(a.x + columns[k + j * threads]) : 0.0;
      v[j] = in ? __ldcs(values + k + j * threads) : 0.0;
    }
#pragma unroll
    for (int j = 0; j < batch; ++j) sum = fma(v[j], w[j], sum);
  }
  return sum_block(sum);
}

// Chunk c's part of a row that several chunks sum; the last block to come adds the parts up from the first to the last.
template <class Arguments, class Place>
__device__ void sum_part(const Arguments &a, std::int32_t c, const Chunk &chunk, const Place &place, std::int32_t row) {
  const EntryRange   entries = {a.offsets[row], a.offsets[row + 1]}, mine = part_of_row(entries, row, c, a.span);
  const std::int64_t owner = (entries.begin + row) / a.span, parts = (entries.end + row) / a.span - owner + 1;
  const double part = multiply_apart(a, mine, c == owner ? a.columns.apart(place, chunk, mine) : a.columns.tail(place, mine));
  __shared__ bool last;
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

template <class Arguments> __device__ double *staged_products(const Arguments &a, int s) {
  extern __shared__ __align__(16) unsigned char shared[];
  return reinterpret_cast<double *>(shared) + s * a.capacity;
}

// In the place for products, at its end.
template <class Offset, class Columns, class Value>
__device__ Value *staged_values(const Arguments<Offset, Columns, Value> &a, int s) {
  return reinterpret_cast<Value *>(staged_products(a, s)) + (sizeof(double) / sizeof(Value) - 1) * a.capacity;
}

// Behind the products of all stages.
template <class Arguments> __device__ unsigned char *staged_columns(const Arguments &a, int s) {
  return reinterpret_cast<unsigned char *>(staged_products(a, a.stages)) + s * a.columns.stage_bytes(a.capacity);
}

template <class Arguments> __device__ void start_copy(const Arguments &a, std::int32_t c, int s, CopyBarrier &arrived) {
  const Chunk         chunk = load(a.chunks, c);
  const auto          place = a.columns.place_of(c);
  const std::int64_t  origin = origin_of(chunk);
  const int           skipped = static_cast<int>(static_cast<std::int64_t>(chunk.entry) - origin);
  const std::uint32_t count = chunk.entries == 0 ? 0 : (skipped + chunk.entries + 3U) / 4U * 4U;
  const Piece         columns = a.columns.own(place, chunk, origin, count);
  copy_two(staged_values(a, s), a.values + origin, sizeof(*a.values) * count, staged_columns(a, s), columns.from, columns.bytes,
           arrived, a.evict_first);
}

// What chunk c has of rows apart.
template <class Arguments, class Place>
__device__ void sum_apart(const Arguments &a, std::int32_t c, const Chunk &chunk, const Place &place) {
  const std::int32_t row = chunk.row + chunk.rows; // the row after those in shared memory
  if (chunk.tail) sum_part(a, c, chunk, place, chunk.row - 1);
  if (chunk.split) {
    sum_part(a, c, chunk, place, row);
  } else if (chunk.apart) {
    const EntryRange entries = {a.offsets[row], a.offsets[row + 1]};
    const double     sum = multiply_apart(a, entries, a.columns.apart(place, chunk, entries));
    if (threadIdx.x == 0) store(a.scaling, row, sum);
  }
}

template <class Offset, class Columns, class Value>
__global__ void __launch_bounds__(max_threads, min_blocks) multiply(const Arguments<Offset, Columns, Value> a) {
  __shared__ CopyBarrier arrived[max_stages];
  const std::int32_t     first = static_cast<std::int32_t>(blockIdx.x) * a.group, count = min(a.group, a.chunk_count - first);
  if (threadIdx.x == 0)
    for (int s = 0; s < a.stages; ++s) initialise(arrived[s]);
  __syncthreads();
  for (int s = 0; s < min(a.stages, count); ++s) start_copy(a, first + s, s, arrived[s]);
  for (int i = 0; i < count; ++i) {
    const Chunk chunk = load(a.chunks, first + i);
    const auto  place = a.columns.place_of(first + i);
    sum_apart(a, first + i, chunk, place);
    // One or two stages, so that no division keeps the row offsets waiting.
    const int           s = i & (a.stages - 1);
    const std::uint32_t parity = (i >> (a.stages - 1)) & 1;
    a.columns.with_type(place, staged_columns(a, s), [&](const auto &columns) {
      const Staged<std::decay_t<decltype(columns)>, Value> staged = {staged_products(a, s), staged_values(a, s), columns,
                                                                     origin_of(chunk)};
      if (chunk.stream)
        sum_rows<true>(a, chunk, staged, arrived[s], parity);
      else
        sum_rows<false>(a, chunk, staged, arrived[s], parity);
    });
    if (i + a.stages < count) {
      release_to_copies();
      __syncthreads(); // all threads are done with this stage
      start_copy(a, first + i + a.stages, s, arrived[s]);
    }
  }
}

template <class Columns>
std::size_t shared_bytes(const CudaCoreConfig &config, const ChunkTable &table, const Columns &columns) {
  return static_cast<std::size_t>(config.stages) * (sizeof(double) * static_cast<std::size_t>(table.capacity) +
                                                    static_cast<std::size_t>(columns.stage_bytes(table.capacity)));
}

// Makes the kernel ready for blocks with `needed` bytes of shared memory.
template <class Columns, class Value> void allow_shared_bytes(Executor &executor, bool wide, std::size_t needed) {
  const auto         kernel = wide ? reinterpret_cast<const void *>(csr::multiply<std::int64_t, Columns, Value>)
                                   : reinterpret_cast<const void *>(csr::multiply<std::int32_t, Columns, Value>);
  cudaFuncAttributes attributes;
  TCBOUND_CUDA(cudaFuncGetAttributes(&attributes, kernel));
  const std::size_t most = executor.device().shared_bytes - attributes.sharedSizeBytes;
  if (needed > most)
    throw Error(ErrorCode::unsupported, "spmv/csr/cuda_core: a block needs " + std::to_string(needed) +
                                          " bytes of shared memory and may have " + std::to_string(most));
  // All that a block may have, whatever this matrix needs: the attribute belongs to the kernel, not to this format.
  TCBOUND_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most)));
}

// z = alpha a x + beta y with the entries of `a` as `columns` and `values` store them.
template <class Columns, class Value>
void launch(Executor &executor, const DeviceArrays &a, const Columns &columns, const Value *values,
            const CudaCoreConfig &config, ChunkTable &table, const Product &p, const std::int32_t *rows) {
  if (a.rows == 0) return;
  const auto chunks = static_cast<std::int32_t>(table.cut.chunks);
  const auto grid = static_cast<unsigned>((chunks + config.group - 1) / config.group);
  with_offsets(a, [&](const auto *offsets) {
    using Offset = std::decay_t<decltype(*offsets)>;
    const Arguments<Offset, Columns, Value> arguments = {offsets,
                                                         columns,
                                                         values,
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
    csr::multiply<Offset, Columns, Value><<<grid, static_cast<unsigned>(config.threads), shared_bytes(config, table, columns),
                                            static_cast<cudaStream_t>(executor.stream())>>>(arguments);
    TCBOUND_LAUNCHED();
  });
}

} // namespace
} // namespace tcbound::csr
