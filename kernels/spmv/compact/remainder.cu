// Values of the remainder, its CSR again, its diagonal.
#include "remainder.h"

#include <algorithm>

#include "../csr/column_reader.h"
#include "cuda/error.h"
#include "rows.h"

namespace tcbound::compact {
namespace {

constexpr int block = 256;

cudaStream_t stream_of(Executor &executor) { return static_cast<cudaStream_t>(executor.stream()); }

unsigned grid_for(std::int64_t threads) { return static_cast<unsigned>((threads + block - 1) / block); }

unsigned grid_for_entries(std::int64_t entries) { return grid_for(32 * ((entries + warp_entries - 1) / warp_entries)); }

// *inexact becomes 1 if a value is not the same bits once it is a double again.
template <class Offset, class Value>
__global__ void fill(const Offset *offsets, const double *from, const std::int32_t *rows, std::int64_t count,
                     const Offset *begin, Value *to, int *inexact) {
  bool exact = true;
  for_entries<block>(begin, count, [&](std::int64_t i, std::int64_t k) {
    const double value = from[offsets[rows[i]] + (k - begin[i])];
    const auto   stored = static_cast<Value>(value);
    exact = exact && __double_as_longlong(static_cast<double>(stored)) == __double_as_longlong(value);
    to[k] = stored;
  });
  if (sizeof(Value) < sizeof(double) && !exact) *inexact = 1;
}

template <class Offset, class Value>
__global__ void recover(const std::int32_t *rows, std::int64_t count, const Offset *begin,
                        const csr::ColumnReader<Offset> columns, const Value *values, const Offset *offsets,
                        std::int32_t *to_columns, double *to_values) {
  for_entries<block>(begin, count, [&](std::int64_t i, std::int64_t k) {
    const std::int64_t to = offsets[rows[i]] + (k - begin[i]);
    to_columns[to] = columns(i, k);
    to_values[to] = values[k];
  });
}

// One thread a row; columns are sorted.
template <class Offset, class Value>
__global__ void find_diagonal(const std::int32_t *rows, std::int64_t count, const Offset *begin,
                              const csr::ColumnReader<Offset> columns, const Value *values, double *d) {
  const std::int64_t i = global_index<block>();
  if (i >= count) return;
  std::int64_t low = begin[i], high = begin[i + 1];
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (columns(i, middle) < rows[i])
      low = middle + 1;
    else
      high = middle;
  }
  d[rows[i]] = low < begin[i + 1] && columns(i, low) == rows[i] ? values[low] : 0.0;
}

// The first `rows` rows.
template <class Value>
void fill_rows(Executor &executor, const DeviceMatrix &matrix, const double *values, std::int64_t rows, Value *to,
               int *inexact) {
  csr::with_offsets(matrix.csr, matrix.remainder, [&](const auto *offsets, const auto *begin) {
    fill<<<grid_for_entries(matrix.remainder.nonzeros), block, 0, stream_of(executor)>>>(
      offsets, values, matrix.remainder_rows.data(), rows, begin, to, inexact);
    TCBOUND_LAUNCHED();
  });
}

// Of the first `rows` rows. False if a value is not exact in 32 bits.
bool fill_narrow(Executor &executor, DeviceMatrix &matrix, const double *values, std::int64_t rows) {
  Array<int> inexact(executor, 1);
  int        any = 0;
  TCBOUND_CUDA(cudaMemsetAsync(inexact.data(), 0, sizeof(int), stream_of(executor)));
  fill_rows(executor, matrix, values, rows, matrix.narrow_values.data(), inexact.data());
  executor.copy(&any, MemorySpace::host, inexact.data(), MemorySpace::cuda, sizeof any);
  return !any;
}

// Calls f with the remainder's values as const float * or const double *.
template <class F> void with_values(const DeviceMatrix &matrix, F &&f) {
  if (matrix.narrow_values.size() > 0)
    f(matrix.narrow_values.data());
  else
    f(matrix.remainder.values.data());
}

} // namespace

// Values have 32 bits until one is not exact in them; then all have 64 for good. The first rows tell so of most matrices that have one.
void fill_remainder(Executor &executor, DeviceMatrix &matrix, const double *values) {
  csr::DeviceArrays &remainder = matrix.remainder;
  if (remainder.nonzeros == 0) return;
  if (remainder.values.size() == 0) {
    bool narrow = true;
    if (matrix.narrow_values.size() == 0) {
      matrix.narrow_values = Array<float>(executor, remainder.nonzeros);
      narrow = fill_narrow(executor, matrix, values, std::min<std::int64_t>(remainder.rows, 1024));
    }
    if (narrow && fill_narrow(executor, matrix, values, remainder.rows)) return;
    matrix.census.bytes -= matrix.narrow_values.bytes();
    matrix.narrow_values = Array<float>();
    remainder.values = Array<double>(executor, remainder.nonzeros);
    matrix.census.bytes += remainder.values.bytes();
  }
  fill_rows(executor, matrix, values, remainder.rows, remainder.values.data(), nullptr);
}

void recover_remainder(Executor &executor, const DeviceMatrix &matrix, csr::DeviceArrays &to) {
  const std::int64_t rows = matrix.remainder.rows;
  if (matrix.remainder.nonzeros == 0) return; // its rows may all be empty
  csr::with_offsets(matrix.csr, matrix.remainder, [&](const auto *offsets, const auto *begin) {
    with_values(matrix, [&](const auto *values) {
      recover<<<grid_for_entries(matrix.remainder.nonzeros), block, 0, stream_of(executor)>>>(
        matrix.remainder_rows.data(), rows, begin, csr::reader_of(matrix.remainder_product, begin), values, offsets,
        to.columns.data(), to.values.data());
      TCBOUND_LAUNCHED();
    });
  });
}

void diagonal_of_remainder(Executor &executor, const DeviceMatrix &matrix, double *d) {
  const std::int64_t rows = matrix.remainder.rows;
  if (rows == 0) return;
  csr::with_offsets(matrix.remainder, [&](const auto *begin) {
    with_values(matrix, [&](const auto *values) {
      find_diagonal<<<grid_for(rows), block, 0, stream_of(executor)>>>(
        matrix.remainder_rows.data(), rows, begin, csr::reader_of(matrix.remainder_product, begin), values, d);
      TCBOUND_LAUNCHED();
    });
  });
}

} // namespace tcbound::compact
