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
                to_values[entry] = static_cast<double>(from[place]);
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
                if (entry >= 0 && column_of(view, slice, row, step, place) == row) d[row] = static_cast<double>(from[place]);
              });
}

// *bytes becomes at least what each value takes if nothing of it is to be lost.
__global__ void __launch_bounds__(block) find_width(const double *values, std::int64_t count, int *bytes) {
  const std::int64_t k = blockIdx.x * static_cast<std::int64_t>(block) + threadIdx.x;
  if (k >= count) return;
  const auto same = [&](auto stored) {
    return __double_as_longlong(static_cast<double>(stored)) == __double_as_longlong(values[k]);
  };
  if (same(Bfloat16(values[k]))) return;
  atomicMax(bytes, same(static_cast<float>(values[k])) ? 4 : 8);
}

// What the first values tell of it: most matrices that have a wide one have it there.
int least_width(Executor &executor, const double *values, std::int64_t count) {
  const auto looked_at = static_cast<unsigned>(std::min<std::int64_t>(count, 1 << 14));
  int        bytes = 2;
  Array<int> found(executor, 1);
  executor.copy(found.data(), MemorySpace::cuda, &bytes, MemorySpace::host, sizeof bytes);
  find_width<<<(looked_at + block - 1) / block, block, 0, stream_of(executor)>>>(values, looked_at, found.data());
  TCBOUND_LAUNCHED();
  executor.copy(&bytes, MemorySpace::host, found.data(), MemorySpace::cuda, sizeof bytes);
  return bytes;
}

// *inexact, of a type that doubles may not fit, becomes 1 if one does not.
template <class Value> void fill(Executor &executor, DeviceMatrix &matrix, const double *values, int *inexact) {
  const std::int64_t slices = matrix.slices.size();
  csr::with_offsets(matrix.csr, [&](const auto *offsets) {
    fill_values<<<grid_for_slices(slices), block, 0, stream_of(executor)>>>(
      view_of(matrix), offsets, values, slices, reinterpret_cast<Value *>(matrix.values.data()), inexact);
    TCBOUND_LAUNCHED();
  });
}

// Values of that narrow type; false if one is not exact in it.
template <class Value> bool fill_exactly(Executor &executor, DeviceMatrix &matrix, const double *values) {
  Array<int> inexact(executor, 1);
  int        any = 0;
  TCBOUND_CUDA(cudaMemsetAsync(inexact.data(), 0, sizeof(int), stream_of(executor)));
  fill<Value>(executor, matrix, values, inexact.data());
  executor.copy(&any, MemorySpace::host, inexact.data(), MemorySpace::cuda, sizeof any);
  return !any;
}

} // namespace

// Values have as few bits as the first ones need; when one is not exact in them, all get more, for good.
void refill(Executor &executor, DeviceMatrix &matrix, const double *values, bool allow_narrow) {
  Census &census = matrix.census;
  if (matrix.entries() == 0) return;
  const int before = matrix.values.size() > 0 ? census.value_bytes : 2; // at least so wide they stay
  int       bytes = 8;
  if (allow_narrow && before < 8) bytes = std::max(before, least_width(executor, values, matrix.csr.nonzeros));
  for (bool filled = false; !filled; bytes *= 2) {
    if (matrix.values.size() != bytes * matrix.entries()) {
      census.bytes -= matrix.values.bytes();
      matrix.values = Array<std::uint8_t>();
      matrix.values = Array<std::uint8_t>(executor, bytes * matrix.entries());
      census.bytes += matrix.values.bytes();
      census.value_bytes = bytes;
    }
    filled = bytes == 8;
    if (filled)
      fill<double>(executor, matrix, values, nullptr);
    else
      filled = bytes == 2 ? fill_exactly<Bfloat16>(executor, matrix, values) : fill_exactly<float>(executor, matrix, values);
  }
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
