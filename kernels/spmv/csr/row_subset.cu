// A warp a row throughout: these rows are few, as a rule, and of any length.
#include "row_subset.h"

#include <type_traits>

#include "cuda/algorithms.h"
#include "cuda/error.h"

namespace tcbound::csr {
namespace {

constexpr int block = 256;

unsigned grid_for(std::int64_t threads) { return static_cast<unsigned>((threads + block - 1) / block); }

cudaStream_t stream_of(Executor &executor) { return static_cast<cudaStream_t>(executor.stream()); }

__device__ std::int64_t global_index() { return blockIdx.x * static_cast<std::int64_t>(block) + threadIdx.x; }

template <class Offset>
__global__ void __launch_bounds__(block)
  measure(const Offset *offsets, const std::int32_t *rows, std::int64_t count, Offset *lengths) {
  const std::int64_t i = global_index();
  if (i <= count) lengths[i] = i < count ? offsets[rows[i] + 1] - offsets[rows[i]] : 0;
}

// Calls f(number of the entry among those of the rows taken, number in the whole matrix).
template <class Offset, class F>
__device__ void for_entries(const Offset *offsets, const std::int32_t *rows, std::int64_t count, const Offset *begin, F &&f) {
  const std::int64_t i = global_index() / 32;
  if (i >= count) return;
  for (std::int64_t k = threadIdx.x % 32; k < begin[i + 1] - begin[i]; k += 32) f(begin[i] + k, offsets[rows[i]] + k);
}

template <class Offset, class T>
__global__ void __launch_bounds__(block)
  gather(const Offset *offsets, const std::int32_t *rows, std::int64_t count, const Offset *begin, const T *from, T *to) {
  for_entries(offsets, rows, count, begin, [&](std::int64_t k, std::int64_t whole) { to[k] = from[whole]; });
}

template <class Offset, class T>
__global__ void __launch_bounds__(block)
  scatter(const Offset *offsets, const std::int32_t *rows, std::int64_t count, const Offset *begin, const T *from, T *to) {
  for_entries(offsets, rows, count, begin, [&](std::int64_t k, std::int64_t whole) { to[whole] = from[k]; });
}

template <class Offset>
__global__ void __launch_bounds__(block) find_diagonal(const std::int32_t *rows, std::int64_t count, const Offset *begin,
                                                       const std::int32_t *columns, const double *values, double *d) {
  const std::int64_t i = global_index() / 32;
  if (i >= count) return;
  const std::int64_t row = rows ? rows[i] : i;
  bool               found = false;
  for (std::int64_t k = begin[i] + threadIdx.x % 32; k < begin[i + 1]; k += 32)
    if (columns[k] == row) {
      d[row] = values[k];
      found = true;
    }
  if (!__any_sync(0xffffffffU, found) && threadIdx.x % 32 == 0) d[row] = 0.0;
}

} // namespace

DeviceArrays take_rows(Executor &executor, const DeviceArrays &a, const Array<std::int32_t> &rows) {
  const std::int64_t count = rows.size();
  Algorithms         algorithms(executor);
  DeviceArrays       to;
  to.rows = count;
  to.columns_count = a.columns_count;
  to.wide = a.wide;
  with_offsets(a, [&](const auto *offsets) {
    using Offset = std::remove_const_t<std::remove_pointer_t<decltype(offsets)>>;
    Array<Offset> begin(executor, count + 1);
    measure<<<grid_for(count + 1), block, 0, stream_of(executor)>>>(offsets, rows.data(), count, begin.data());
    TCBOUND_LAUNCHED();
    algorithms.exclusive_sum(begin.data(), begin.data(), count + 1);
    to.nonzeros = algorithms.read(begin.data() + count);
    to.columns = Array<std::int32_t>(executor, to.nonzeros);
    to.values = Array<double>(executor, to.nonzeros);
    if (to.nonzeros > 0) {
      gather<<<grid_for(32 * count), block, 0, stream_of(executor)>>>(offsets, rows.data(), count, begin.data(),
                                                                      a.columns.data(), to.columns.data());
      TCBOUND_LAUNCHED();
    }
    if constexpr (sizeof(Offset) == 8)
      to.wide_offsets = std::move(begin);
    else
      to.narrow_offsets = std::move(begin);
  });
  refill_rows(executor, to, rows, a, a.values.data());
  return to;
}

void refill_rows(Executor &executor, DeviceArrays &taken, const Array<std::int32_t> &rows, const DeviceArrays &of,
                 const double *values) {
  if (taken.nonzeros == 0) return;
  with_offsets(of, taken, [&](const auto *offsets, const auto *begin) {
    gather<<<grid_for(32 * taken.rows), block, 0, stream_of(executor)>>>(offsets, rows.data(), taken.rows, begin, values,
                                                                         taken.values.data());
    TCBOUND_LAUNCHED();
  });
}

void put_back(Executor &executor, const DeviceArrays &taken, const Array<std::int32_t> &rows, DeviceArrays &to) {
  if (taken.nonzeros == 0) return;
  with_offsets(to, taken, [&](const auto *offsets, const auto *begin) {
    const unsigned grid = grid_for(32 * taken.rows);
    scatter<<<grid, block, 0, stream_of(executor)>>>(offsets, rows.data(), taken.rows, begin, taken.columns.data(),
                                                     to.columns.data());
    TCBOUND_LAUNCHED();
    scatter<<<grid, block, 0, stream_of(executor)>>>(offsets, rows.data(), taken.rows, begin, taken.values.data(),
                                                     to.values.data());
    TCBOUND_LAUNCHED();
  });
}

void diagonal_of_rows(Executor &executor, const DeviceArrays &taken, const Array<std::int32_t> &rows, double *d) {
  if (taken.rows == 0) return;
  with_offsets(taken, [&](const auto *begin) {
    find_diagonal<<<grid_for(32 * taken.rows), block, 0, stream_of(executor)>>>(rows.data(), taken.rows, begin,
                                                                                taken.columns.data(), taken.values.data(), d);
    TCBOUND_LAUNCHED();
  });
}

} // namespace tcbound::csr
