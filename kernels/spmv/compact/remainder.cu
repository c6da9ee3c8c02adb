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

unsigned grid_for_warps(std::int64_t warps) { return static_cast<unsigned>((32 * warps + block - 1) / block); }

// One warp a row. *inexact becomes 1 if a value is not the same bits once it is a double again.
template <class Offset, class Value>
__global__ void fill(const Offset *offsets, const double *from, const std::int32_t *rows, std::int64_t count,
                     const Offset *begin, Value *to, int *inexact) {
  const std::int64_t i = global_index<block>() / 32;
  if (i >= count) return;
  const std::int64_t start = offsets[rows[i]], length = begin[i + 1] - begin[i];
  bool               exact = true;
  for (std::int64_t k = threadIdx.x % 32; k < length; k += 32) {
    const double value = from[start + k];
    const auto   stored = static_cast<Value>(value);
    exact = exact && __double_as_longlong(static_cast<double>(stored)) == __double_as_longlong(value);
    to[begin[i] + k] = stored;
  }
  if (sizeof(Value) < sizeof(double) && !exact) *inexact = 1;
}

// One warp a row.
template <class Offset, class Value>
__global__ void recover(const std::int32_t *rows, std::int64_t count, const Offset *begin,
                        const csr::ColumnReader<Offset> columns, const Value *values, const Offset *offsets,
                        std::int32_t *to_columns, double *to_values) {
  const std::int64_t i = global_index<block>() / 32;
  if (i >= count) return;
  const std::int64_t to = offsets[rows[i]], length = begin[i + 1] - begin[i];
  for (std::int64_t k = threadIdx.x % 32; k < length; k += 32) {
    to_columns[to + k] = columns(i, begin[i] + k);
    to_values[to + k] = values[begin[i] + k];
  }
}

// One warp a row.
template <class Offset, class Value>
__global__ void find_diagonal(const std::int32_t *rows, std::int64_t count, const Offset *begin,
                              const csr::ColumnReader<Offset> columns, const Value *values, double *d) {
  const std::int64_t i = global_index<block>() / 32;
  if (i >= count) return;
  double found = 0.0;
  bool   any = false;
  for (std::int64_t k = begin[i] + threadIdx.x % 32; k < begin[i + 1]; k += 32)
    if (columns(i, k) == rows[i]) {
      found = values[k];
      any = true;
    }
  const unsigned finders = __ballot_sync(0xffffffffU, any);
  found = __shfl_sync(0xffffffffU, found, finders ? __ffs(static_cast<int>(finders)) - 1 : 0);
  if (threadIdx.x % 32 == 0) d[rows[i]] = finders ? found : 0.0;
}

// The first `rows` rows.
template <class Value>
void fill_rows(Executor &executor, const DeviceMatrix &matrix, const double *values, std::int64_t rows, Value *to,
               int *inexact) {
  csr::with_offsets(matrix.csr, matrix.remainder, [&](const auto *offsets, const auto *begin) {
    fill<<<grid_for_warps(rows), block, 0, stream_of(executor)>>>(offsets, values, matrix.remainder_rows.data(), rows, begin,
                                                                  to, inexact);
    TCBOUND_LAUNCHED();
  });
}

// False if a value is not exact in 32 bits. The first rows tell so of most matrices that have one.
bool fill_narrow(Executor &executor, DeviceMatrix &matrix, const double *values) {
  const std::int64_t rows = matrix.remainder.rows;
  Array<int>         inexact(executor, 1);
  int                any = 0;
  TCBOUND_CUDA(cudaMemsetAsync(inexact.data(), 0, sizeof(int), stream_of(executor)));
  for (const std::int64_t count : {std::min<std::int64_t>(rows, 1024), rows}) {
    fill_rows(executor, matrix, values, count, matrix.narrow_values.data(), inexact.data());
    executor.copy(&any, MemorySpace::host, inexact.data(), MemorySpace::cuda, sizeof any);
    if (any) return false;
  }
  return true;
}

// Calls f with the remainder's values as const float * or const double *.
template <class F> void with_values(const DeviceMatrix &matrix, F &&f) {
  if (matrix.narrow_values.size() > 0)
    f(matrix.narrow_values.data());
  else
    f(matrix.remainder.values.data());
}

} // namespace

// Values have 32 bits until one is not exact in them; then all have 64 for good.
void fill_remainder(Executor &executor, DeviceMatrix &matrix, const double *values) {
  csr::DeviceArrays &remainder = matrix.remainder;
  if (remainder.nonzeros == 0) return;
  if (remainder.values.size() == 0) {
    if (matrix.narrow_values.size() == 0) matrix.narrow_values = Array<float>(executor, remainder.nonzeros);
    if (fill_narrow(executor, matrix, values)) return;
    matrix.census.bytes -= matrix.narrow_values.bytes();
    matrix.narrow_values = Array<float>();
    remainder.values = Array<double>(executor, remainder.nonzeros);
    matrix.census.bytes += remainder.values.bytes();
  }
  fill_rows(executor, matrix, values, remainder.rows, remainder.values.data(), nullptr);
}

void recover_remainder(Executor &executor, const DeviceMatrix &matrix, csr::DeviceArrays &to) {
  const std::int64_t rows = matrix.remainder.rows;
  if (rows == 0) return;
  csr::with_offsets(matrix.csr, matrix.remainder, [&](const auto *offsets, const auto *begin) {
    with_values(matrix, [&](const auto *values) {
      recover<<<grid_for_warps(rows), block, 0, stream_of(executor)>>>(matrix.remainder_rows.data(), rows, begin,
                                                                       csr::reader_of(matrix.remainder_product, begin), values,
                                                                       offsets, to.columns.data(), to.values.data());
      TCBOUND_LAUNCHED();
    });
  });
}

void diagonal_of_remainder(Executor &executor, const DeviceMatrix &matrix, double *d) {
  const std::int64_t rows = matrix.remainder.rows;
  if (rows == 0) return;
  csr::with_offsets(matrix.remainder, [&](const auto *begin) {
    with_values(matrix, [&](const auto *values) {
      find_diagonal<<<grid_for_warps(rows), block, 0, stream_of(executor)>>>(
        matrix.remainder_rows.data(), rows, begin, csr::reader_of(matrix.remainder_product, begin), values, d);
      TCBOUND_LAUNCHED();
    });
  });
}

} // namespace tcbound::compact
