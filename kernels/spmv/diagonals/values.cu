// What is done with a matrix of format diagonals in device memory besides building and multiplying: new values, the CSR again, its
// diagonal. Which entries a regular row has is read from its places.
#include <algorithm>

#include "../csr/row_subset.h"
#include "cuda/error.h"
#include "row_kernels.h"

namespace tcbound::diagonals {
namespace {

constexpr int block = 256;

unsigned grid_for(std::int64_t threads) { return static_cast<unsigned>((threads + block - 1) / block); }

cudaStream_t stream_of(Executor &executor) { return static_cast<cudaStream_t>(executor.stream()); }

struct Planes {
  const std::uint8_t *irregular; // or null
  std::int64_t        nodes, stride;
};

Planes planes_of(const DeviceMatrix &matrix) { return {matrix.irregular.data(), matrix.nodes, matrix.stride}; }

__device__ bool is_irregular(const Planes &a, std::int64_t row) { return a.irregular && a.irregular[row]; }

// Calls f(row, place, index in the planes, column, number of the entry in the row) for the entries of a thread's row, if it is regular.
// Neighbouring threads have rows of neighbouring nodes, so that what they read of planes is side by side.
template <class Value, class F> __device__ void for_entries(const Planes &a, const Table &table, const Value *values, F &&f) {
  const std::int64_t i = blockIdx.x * static_cast<std::int64_t>(block) + threadIdx.x;
  const std::int64_t p = i % a.nodes, row = p * table.node + i / a.nodes;
  const int          c = static_cast<int>(i / a.nodes);
  if (i >= a.nodes * table.node || is_irregular(a, row)) return;
  int found = 0;
  for (int k = 0; k < offset_count(table); ++k) {
    const std::int64_t other = p + offset_of(table, k);
    if (other < 0 || other >= a.nodes) continue;
    for (int d = 0; d < table.node; ++d) {
      const Place        place = place_of(table, k, c, d);
      const std::int64_t index = index_of(place, a.stride, p, other);
      if (!is_absent(values[index])) f(row, place, index, other * table.node + d, found++);
    }
  }
}

// Writes a row's own values, and those that it shares with a row of the remainder. *clash becomes 1 if one cannot be stored.
template <class Offset, class Value>
__global__ void __launch_bounds__(block) write_values(const Planes a, const __grid_constant__ Table table,
                                                      const Offset *offsets, const double *from, Value *to, int *clash) {
  for_entries(a, table, to, [&](std::int64_t row, const Place &place, std::int64_t index, std::int64_t column, int k) {
    if (place.mirrored && !is_irregular(a, column)) return;
    const double value = from[offsets[row] + k];
    if (can_store<Value>(value))
      to[index] = static_cast<Value>(value);
    else
      *clash = 1;
  });
}

// *clash becomes 1 if a row's mirrored values are not those of its mirror image.
template <class Offset, class Value>
__global__ void __launch_bounds__(block)
  compare_values(const Planes a, const __grid_constant__ Table table, const Offset *offsets, const double *from,
                 const Value *values, int *clash) {
  bool same = true;
  for_entries(a, table, values, [&](std::int64_t row, const Place &place, std::int64_t index, std::int64_t, int k) {
    if (place.mirrored) same = same && bits_of(from[offsets[row] + k]) == bits_of(static_cast<double>(values[index]));
  });
  if (!same) *clash = 1;
}

template <class Offset, class Value>
__global__ void __launch_bounds__(block)
  recover_rows(const Planes a, const __grid_constant__ Table table, const Offset *offsets, const Value *values,
               std::int32_t *to_columns, double *to_values) {
  for_entries(a, table, values, [&](std::int64_t row, const Place &, std::int64_t index, std::int64_t column, int k) {
    to_columns[offsets[row] + k] = static_cast<std::int32_t>(column);
    to_values[offsets[row] + k] = static_cast<double>(values[index]);
  });
}

// Elements are zeros before.
template <class Value>
__global__ void __launch_bounds__(block)
  find_diagonal(const Planes a, const __grid_constant__ Table table, const Value *values, double *d) {
  for_entries(a, table, values, [&](std::int64_t row, const Place &, std::int64_t index, std::int64_t column, int) {
    if (column == row) d[row] = static_cast<double>(values[index]);
  });
}

// *bytes becomes at least what each value takes if nothing of it is to be lost.
__global__ void __launch_bounds__(block) find_width(const double *values, std::int64_t count, int *bytes) {
  const std::int64_t k = blockIdx.x * static_cast<std::int64_t>(block) + threadIdx.x;
  if (k >= count || can_store<Bfloat16>(values[k])) return;
  const int own = can_store<float>(values[k]) ? 4 : 8;
  if (*bytes < own) atomicMax(bytes, own);
}

} // namespace

int value_width(Executor &executor, const double *values, std::int64_t count) {
  Array<int> found(executor, 1);
  int        bytes = 2;
  executor.copy(found.data(), MemorySpace::cuda, &bytes, MemorySpace::host, sizeof bytes);
  for (const std::int64_t looked_at :
       {std::min<std::int64_t>(count, 1 << 14), count}) { // the first ones tell it of most matrices
    if (looked_at == 0 || bytes == 8) break;
    find_width<<<grid_for(looked_at), block, 0, stream_of(executor)>>>(values, looked_at, found.data());
    TCBOUND_LAUNCHED();
    executor.copy(&bytes, MemorySpace::host, found.data(), MemorySpace::cuda, sizeof bytes);
  }
  return bytes;
}

Refilled refill(Executor &executor, DeviceMatrix &matrix, const double *values) {
  if (all_remainder(matrix.table)) {
    executor.copy(matrix.remainder.values.data(), MemorySpace::cuda, values, MemorySpace::cuda,
                  static_cast<std::size_t>(matrix.remainder.values.bytes()));
    return Refilled::done;
  }
  const unsigned grid = grid_for(matrix.csr.rows);
  Array<int>     clashes(executor, 2); // values that cannot be stored, that are not symmetric
  int            any[2];
  TCBOUND_CUDA(cudaMemsetAsync(clashes.data(), 0, sizeof any, stream_of(executor)));
  csr::with_offsets(matrix.csr, [&](const auto *offsets) {
    with_values(matrix, [&](auto *planes) {
      write_values<<<grid, block, 0, stream_of(executor)>>>(planes_of(matrix), matrix.table, offsets, values, planes,
                                                            clashes.data());
      TCBOUND_LAUNCHED();
      if (!matrix.table.mirrored) return;
      compare_values<<<grid, block, 0, stream_of(executor)>>>(planes_of(matrix), matrix.table, offsets, values, planes,
                                                              clashes.data() + 1);
      TCBOUND_LAUNCHED();
    });
  });
  csr::refill_rows(executor, matrix.remainder, matrix.remainder_rows, matrix.csr, values);
  executor.copy(any, MemorySpace::host, clashes.data(), MemorySpace::cuda, sizeof any);
  return any[0] ? Refilled::not_stored : any[1] ? Refilled::not_symmetric : Refilled::done;
}

csr::DeviceArrays recover(Executor &executor, const DeviceMatrix &matrix) {
  const csr::DeviceArrays &from = all_remainder(matrix.table) ? matrix.remainder : matrix.csr;
  csr::DeviceArrays        to;
  to.rows = from.rows;
  to.columns_count = from.columns_count;
  to.nonzeros = from.nonzeros;
  to.wide = from.wide;
  to.narrow_offsets = csr::copy_of(executor, from.narrow_offsets);
  to.wide_offsets = csr::copy_of(executor, from.wide_offsets);
  if (all_remainder(matrix.table)) {
    to.columns = csr::copy_of(executor, from.columns);
    to.values = csr::copy_of(executor, from.values);
    return to;
  }
  to.columns = Array<std::int32_t>(executor, to.nonzeros);
  to.values = Array<double>(executor, to.nonzeros);
  csr::with_offsets(to, [&](const auto *offsets) {
    with_values(matrix, [&](const auto *planes) {
      recover_rows<<<grid_for(to.rows), block, 0, stream_of(executor)>>>(planes_of(matrix), matrix.table, offsets, planes,
                                                                         to.columns.data(), to.values.data());
      TCBOUND_LAUNCHED();
    });
  });
  csr::put_back(executor, matrix.remainder, matrix.remainder_rows, to);
  return to;
}

void diagonal(Executor &executor, const DeviceMatrix &matrix, double *d) {
  if (!all_remainder(matrix.table)) {
    TCBOUND_CUDA(cudaMemsetAsync(d, 0, sizeof(double) * static_cast<std::size_t>(matrix.csr.rows), stream_of(executor)));
    with_values(matrix, [&](const auto *planes) {
      find_diagonal<<<grid_for(matrix.csr.rows), block, 0, stream_of(executor)>>>(planes_of(matrix), matrix.table, planes, d);
      TCBOUND_LAUNCHED();
    });
  }
  csr::diagonal_of_rows(executor, matrix.remainder, matrix.remainder_rows, d);
}

} // namespace tcbound::diagonals
