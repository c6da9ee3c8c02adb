// What is done with a matrix of format sell in device memory besides building and multiplying: new values, the CSR again, its
// diagonal.
#include <algorithm>

#include "cuda/error.h"
#include "slice_view.h"

namespace tcbound::sell {
namespace {

constexpr int block = 256;

cudaStream_t stream_of(Executor &executor) { return static_cast<cudaStream_t>(executor.stream()); }

unsigned grid_for_slices(std::int64_t slices) { return static_cast<unsigned>((32 * slices + block - 1) / block); }

__device__ std::int64_t warp_number() { return (blockIdx.x * static_cast<std::int64_t>(block) + threadIdx.x) / 32; }

__device__ int lane_number() { return static_cast<int>(threadIdx.x % 32); }

// One warp a slice, as in the kernels below. *inexact becomes 1 if a value is not the same bits once it is a double again.
template <class Offset, class Value>
__global__ void __launch_bounds__(block)
  fill_values(const SliceView view, const Offset *offsets, const double *from, std::int64_t count, Value *to, int *inexact) {
  const std::int64_t i = warp_number();
  if (i >= count) return;
  Value *at = to + static_cast<std::int64_t>(view.slices[i].values) * slice_rows;
  bool   exact = true;
  for_entries(view, offsets, static_cast<std::int32_t>(i), lane_number(),
              [&](std::int32_t, int, std::int64_t place, std::int64_t entry) {
                const double value = entry < 0 ? 0.0 : from[entry];
                const auto   stored = static_cast<Value>(value);
                exact = exact && __double_as_longlong(static_cast<double>(stored)) == __double_as_longlong(value);
                at[place] = stored;
              });
  if (sizeof(Value) < sizeof(double) && !exact) *inexact = 1;
}

template <class Offset, class Value>
__global__ void __launch_bounds__(block) recover_entries(const SliceView view, const Offset *offsets, const Value *values,
                                                         std::int32_t *to_columns, double *to_values) {
  const std::int64_t i = warp_number();
  if (i >= view.slice_count) return;
  const Slice  slice = view.slices[i];
  const Value *from = values + static_cast<std::int64_t>(slice.values) * slice_rows;
  for_entries(view, offsets, static_cast<std::int32_t>(i), lane_number(),
              [&](std::int32_t row, int step, std::int64_t place, std::int64_t entry) {
                if (entry < 0) return;
                to_columns[entry] = column_of(view, slice, row, step, place);
                to_values[entry] = from[place];
              });
}

// Elements are zeros before. Columns of a row are distinct, so at most one lane writes to each.
template <class Offset, class Value>
__global__ void __launch_bounds__(block)
  find_diagonal(const SliceView view, const Offset *offsets, const Value *values, double *d) {
  const std::int64_t i = warp_number();
  if (i >= view.slice_count) return;
  const Slice  slice = view.slices[i];
  const Value *from = values + static_cast<std::int64_t>(slice.values) * slice_rows;
  for_entries(view, offsets, static_cast<std::int32_t>(i), lane_number(),
              [&](std::int32_t row, int step, std::int64_t place, std::int64_t entry) {
                if (entry >= 0 && column_of(view, slice, row, step, place) == row) d[row] = from[place];
              });
}

// False if a value is not exact in 32 bits. The first slices tell so of most matrices that have one.
bool fill_narrow(Executor &executor, DeviceMatrix &matrix, const double *values) {
  const std::int64_t slices = matrix.slices.size();
  Array<int>         inexact(executor, 1);
  int                any = 0;
  TCBOUND_CUDA(cudaMemsetAsync(inexact.data(), 0, sizeof(int), stream_of(executor)));
  for (const std::int64_t count : {std::min<std::int64_t>(slices, 64), slices}) {
    csr::with_offsets(matrix.csr, [&](const auto *offsets) {
      fill_values<<<grid_for_slices(count), block, 0, stream_of(executor)>>>(view_of(matrix), offsets, values, count,
                                                                             matrix.narrow_values.data(), inexact.data());
      TCBOUND_LAUNCHED();
    });
    executor.copy(&any, MemorySpace::host, inexact.data(), MemorySpace::cuda, sizeof any);
    if (any) return false;
  }
  return true;
}

// Calls f(values) with whichever array they are in.
template <class F> void with_values(const DeviceMatrix &matrix, F &&f) {
  if (matrix.census.narrow_values)
    f(matrix.narrow_values.data());
  else
    f(matrix.values.data());
}

} // namespace

// Values have 32 bits until one is not exact in them; then all have 64 for good.
void refill(Executor &executor, DeviceMatrix &matrix, const double *values, bool allow_narrow) {
  Census &census = matrix.census;
  if (matrix.entries() == 0) return;
  if (matrix.values.size() == 0 && allow_narrow) {
    if (!census.narrow_values) {
      matrix.narrow_values = Array<float>(executor, matrix.entries());
      census.narrow_values = true;
      census.bytes += matrix.narrow_values.bytes();
    }
    if (fill_narrow(executor, matrix, values)) return;
    census.bytes -= matrix.narrow_values.bytes();
    census.narrow_values = false;
    matrix.narrow_values = Array<float>();
  }
  if (matrix.values.size() == 0) {
    matrix.values = Array<double>(executor, matrix.entries());
    census.bytes += matrix.values.bytes();
  }
  csr::with_offsets(matrix.csr, [&](const auto *offsets) {
    fill_values<<<grid_for_slices(matrix.slices.size()), block, 0, stream_of(executor)>>>(
      view_of(matrix), offsets, values, matrix.slices.size(), matrix.values.data(), nullptr);
    TCBOUND_LAUNCHED();
  });
}

csr::DeviceArrays recover(Executor &executor, const DeviceMatrix &matrix) {
  const csr::DeviceArrays &from = matrix.csr;
  csr::DeviceArrays        to;
  const auto               copy = [&](auto &target, const auto &source) {
    target = std::decay_t<decltype(target)>(executor, source.size());
    executor.copy(target.data(), MemorySpace::cuda, source.data(), MemorySpace::cuda, static_cast<std::size_t>(source.bytes()));
  };
  to.rows = from.rows;
  to.columns_count = from.columns_count;
  to.nonzeros = from.nonzeros;
  to.wide = from.wide;
  if (from.wide)
    copy(to.wide_offsets, from.wide_offsets);
  else
    copy(to.narrow_offsets, from.narrow_offsets);
  to.columns = Array<std::int32_t>(executor, from.nonzeros);
  to.values = Array<double>(executor, from.nonzeros);
  if (matrix.entries() == 0) return to;
  csr::with_offsets(from, [&](const auto *offsets) {
    with_values(matrix, [&](const auto *values) {
      recover_entries<<<grid_for_slices(matrix.slices.size()), block, 0, stream_of(executor)>>>(
        view_of(matrix), offsets, values, to.columns.data(), to.values.data());
      TCBOUND_LAUNCHED();
    });
  });
  return to;
}

void diagonal(Executor &executor, const DeviceMatrix &matrix, double *d) {
  if (matrix.csr.rows == 0) return;
  TCBOUND_CUDA(cudaMemsetAsync(d, 0, sizeof(double) * static_cast<std::size_t>(matrix.csr.rows), stream_of(executor)));
  if (matrix.entries() == 0) return;
  csr::with_offsets(matrix.csr, [&](const auto *offsets) {
    with_values(matrix, [&](const auto *values) {
      find_diagonal<<<grid_for_slices(matrix.slices.size()), block, 0, stream_of(executor)>>>(view_of(matrix), offsets, values,
                                                                                              d);
      TCBOUND_LAUNCHED();
    });
  });
}

} // namespace tcbound::sell
