// What is done with a matrix of format tiles in device memory besides building and multiplying: new values, the CSR again, its diagonal.
#include "../csr/row_subset.h"
#include "../sell/bfloat16.h"
#include "cuda/error.h"
#include "stored_values.h"

namespace tcbound::tiles {
namespace {

constexpr int block = 256;
static_assert(block == chunk);

cudaStream_t stream_of(Executor &executor) { return static_cast<cudaStream_t>(executor.stream()); }

unsigned grid_of(const DeviceMatrix &matrix) { return static_cast<unsigned>(matrix.tile_of.size()); }

template <class Value> __device__ int own_place() { return place_of_stored(static_cast<int>(threadIdx.x), sizeof(Value)); }

// A block a chunk, as in the kernels below. *inexact becomes 1 if a value is not the same bits once it is a double again; then nothing
// more need be done.
template <class Value>
__global__ void __launch_bounds__(block) write_values(const std::int32_t *order, const double *from, Value *to, int *inexact) {
  constexpr bool     narrow = sizeof(Value) < sizeof(double);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * chunk;
  if (narrow && *static_cast<volatile int *>(inexact)) return;
  const std::int32_t entry = order[first + own_place<Value>()];
  const double       value = entry >= 0 ? from[entry] : 0.0;
  const auto         stored = static_cast<Value>(value);
  if (narrow && __double_as_longlong(static_cast<double>(stored)) != __double_as_longlong(value)) *inexact = 1;
  to[first + threadIdx.x] = stored;
}

__device__ std::int32_t column_at(const std::uint16_t *columns, const std::int32_t *tile_of, std::int64_t place) {
  return tile_of[place / chunk] * width + column_of(columns[place]);
}

template <class Value>
__global__ void __launch_bounds__(block)
  recover_entries(const std::int32_t *order, const std::uint16_t *columns, const std::int32_t *tile_of, const Value *values,
                  std::int32_t *to_columns, double *to_values) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * chunk;
  const int          i = own_place<Value>();
  const std::int32_t entry = order[first + i];
  if (entry < 0) return;
  to_columns[entry] = column_at(columns, tile_of, first + i);
  to_values[entry] = static_cast<double>(values[first + threadIdx.x]);
}

// Elements are zeros before.
template <class Value>
__global__ void __launch_bounds__(block)
  find_diagonal(const std::int32_t *order, const std::uint16_t *columns, const std::int32_t *tile_of, const Value *values,
                const std::int32_t *offsets, std::int64_t rows, double *d) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * chunk;
  const int          i = own_place<Value>();
  const std::int32_t entry = order[first + i];
  if (entry < 0) return;
  const std::int32_t column = column_at(columns, tile_of, first + i);
  if (column < rows && offsets[column] <= entry && entry < offsets[column + 1])
    d[column] = static_cast<double>(values[first + threadIdx.x]);
}

// False if a value is not exact in that type.
template <class Value> bool write(Executor &executor, DeviceMatrix &matrix, const double *values) {
  int any = 0;
  if (sizeof(Value) < sizeof(double)) {
    if (matrix.inexact.size() == 0) matrix.inexact = Array<int>(executor, 1);
    TCBOUND_CUDA(cudaMemsetAsync(matrix.inexact.data(), 0, sizeof(int), stream_of(executor)));
  }
  write_values<<<grid_of(matrix), block, 0, stream_of(executor)>>>(
    matrix.order.data(), values, reinterpret_cast<Value *>(matrix.values.data()), matrix.inexact.data());
  TCBOUND_LAUNCHED();
  if (sizeof(Value) < sizeof(double))
    executor.copy(&any, MemorySpace::host, matrix.inexact.data(), MemorySpace::cuda, sizeof any);
  return !any;
}

} // namespace

// Values have as many bits as before; when one is not exact in them, all get more, for good.
void refill(Executor &executor, DeviceMatrix &matrix, const double *values) {
  Census &census = matrix.census;
  if (census.places == 0) return;
  for (bool written = false; !written;) {
    if (matrix.values.size() != census.value_bytes * census.places) {
      census.bytes -= matrix.values.bytes();
      matrix.values = Array<std::uint8_t>();
      matrix.values = Array<std::uint8_t>(executor, census.value_bytes * census.places);
      census.bytes += matrix.values.bytes();
    }
    written = census.value_bytes == 2   ? write<sell::Bfloat16>(executor, matrix, values)
              : census.value_bytes == 4 ? write<float>(executor, matrix, values)
                                        : write<double>(executor, matrix, values);
    if (!written) census.value_bytes *= 2;
  }
}

csr::DeviceArrays recover(Executor &executor, const DeviceMatrix &matrix) {
  const csr::DeviceArrays &from = matrix.csr;
  csr::DeviceArrays        to;
  to.rows = from.rows;
  to.columns_count = from.columns_count;
  to.nonzeros = from.nonzeros;
  to.narrow_offsets = csr::copy_of(executor, from.narrow_offsets);
  to.columns = Array<std::int32_t>(executor, from.nonzeros);
  to.values = Array<double>(executor, from.nonzeros);
  if (matrix.census.places == 0) return to;
  with_values(matrix, [&](const auto *values) {
    recover_entries<<<grid_of(matrix), block, 0, stream_of(executor)>>>(
      matrix.order.data(), matrix.columns.data(), matrix.tile_of.data(), values, to.columns.data(), to.values.data());
    TCBOUND_LAUNCHED();
  });
  return to;
}

void diagonal(Executor &executor, const DeviceMatrix &matrix, double *d) {
  const std::int64_t rows = matrix.csr.rows;
  if (rows == 0) return;
  TCBOUND_CUDA(cudaMemsetAsync(d, 0, sizeof(double) * static_cast<std::size_t>(rows), stream_of(executor)));
  if (matrix.census.places == 0) return;
  with_values(matrix, [&](const auto *values) {
    find_diagonal<<<grid_of(matrix), block, 0, stream_of(executor)>>>(
      matrix.order.data(), matrix.columns.data(), matrix.tile_of.data(), values, matrix.csr.narrow_offsets.data(), rows, d);
    TCBOUND_LAUNCHED();
  });
}

} // namespace tcbound::tiles
