// What is done with a matrix of format sell in device memory besides building and multiplying: new values, the CSR again, its
// diagonal.
#include <type_traits>

#include "../csr/row_tile.h"
#include "cuda/error.h"
#include "slice_view.h"

namespace tcbound::sell {
namespace {

constexpr int block = 256;

cudaStream_t stream_of(Executor &executor) { return static_cast<cudaStream_t>(executor.stream()); }

unsigned grid_for_slices(std::int64_t slices) { return static_cast<unsigned>((32 * slices + block - 1) / block); }

__device__ std::int64_t warp_number() { return (blockIdx.x * static_cast<std::int64_t>(block) + threadIdx.x) / 32; }

__device__ int lane_number() { return static_cast<int>(threadIdx.x % 32); }

// Two values of neighbouring steps.
template <class Value> struct alignas(2 * sizeof(Value)) Pair { Value first, second; };

// Takes values to a slice, as they are stored, and remembers whether one is not the same bits once it is a double again.
template <class Value> class Writer {
public:
  __device__ Writer(Value *slice, int steps) : slice_(slice), steps_(steps) {}

  // Of a step, or of an even step and the next.
  __device__ void put(int step, double value) { slice_[place_of(step, lane_number(), steps_)] = convert(value); }
  __device__ void put(int step, double first, double second) {
    *reinterpret_cast<Pair<Value> *>(slice_ + place_of(step, lane_number(), steps_)) = {convert(first), convert(second)};
  }
  __device__ bool exact() const { return exact_; }

private:
  __device__ Value convert(double value) {
    const auto stored = static_cast<Value>(value);
    exact_ = exact_ && __double_as_longlong(static_cast<double>(stored)) == __double_as_longlong(value);
    return stored;
  }

  Value *slice_;
  int    steps_;
  bool   exact_ = true;
};

// The values of slice i, which is no part.
template <class Offset, class Value>
__device__ void fill_rows(const SliceView &view, const Offset *offsets, const double *from, std::int32_t i, const Slice &slice,
                          csr::RowTile &tile, Writer<Value> &writer) {
  const std::int32_t row = row_at_place(view, slice, i, lane_number(), load_place(view, slice, i, lane_number()));
  const std::int64_t begin = row < 0 ? 0 : offsets[row];
  const int          length = row < 0 ? 0 : static_cast<int>(offsets[row + 1] - begin);
  for (int first = 0; first < slice.steps; first += csr::RowTile::width) {
    if (view.step_entries)
      tile.load(begin, length - first, [&](std::int64_t at, int k) { return from[at + view.step_entries[at + first + k]]; });
    else
      tile.load(begin + first, length - first, [&](std::int64_t at, int k) { return from[at + k]; });
#pragma unroll
    for (int k = 0; k < csr::RowTile::width; k += 2) {
      const int    step = first + k;
      const double even = k < length - first ? tile(k) : 0.0, odd = k + 1 < length - first ? tile(k + 1) : 0.0;
      if (step + 1 < slice.steps)
        writer.put(step, even, odd);
      else if (step < slice.steps)
        writer.put(step, even);
    }
  }
}

// One warp a slice, as in the kernels below. *inexact becomes 1 if a value is not the same bits once it is a double again.
template <class Offset, class Value>
__global__ void __launch_bounds__(block)
  fill_values(const SliceView view, const Offset *offsets, const double *from, std::int64_t count, Value *to, int *inexact) {
  __shared__ csr::RowTile tiles[block / 32];
  const std::int64_t      i = warp_number();
  if (i >= count) return;
  const Slice   slice = view.slices[i];
  Writer<Value> writer(to + static_cast<std::int64_t>(slice.values) * slice_rows, slice.steps);
  if (i < view.part_count)
    for_entries(
      view, offsets, static_cast<std::int32_t>(i), lane_number(),
      [&](std::int32_t, int step, std::int64_t, std::int64_t entry) { writer.put(step, entry < 0 ? 0.0 : from[entry]); });
  else
    fill_rows(view, offsets, from, static_cast<std::int32_t>(i), slice, tiles[threadIdx.x / 32], writer);
  if (sizeof(Value) < sizeof(double) && !writer.exact()) *inexact = 1;
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
  int any = 0;
  if (matrix.inexact.size() == 0) {
    matrix.inexact = Array<int>(executor, 1);
    TCBOUND_CUDA(cudaMemsetAsync(matrix.inexact.data(), 0, sizeof(int), stream_of(executor)));
  }
  fill<Value>(executor, matrix, values, matrix.inexact.data());
  executor.copy(&any, MemorySpace::host, matrix.inexact.data(), MemorySpace::cuda, sizeof any);
  if (any) matrix.inexact = Array<int>();
  return !any;
}

} // namespace

// Values have as many bits as before; when one is not exact in them, all get more, for good.
void refill(Executor &executor, DeviceMatrix &matrix, const double *values) {
  Census &census = matrix.census;
  if (matrix.entries() == 0) return;
  for (bool filled = false; !filled;) {
    if (matrix.values.size() != census.value_bytes * matrix.entries()) {
      census.bytes -= matrix.values.bytes();
      matrix.values = Array<std::uint8_t>();
      matrix.values = Array<std::uint8_t>(executor, census.value_bytes * matrix.entries());
      census.bytes += matrix.values.bytes();
    }
    switch (census.value_bytes) {
    case 2:
      filled = fill_exactly<Bfloat16>(executor, matrix, values);
      break;
    case 4:
      filled = fill_exactly<float>(executor, matrix, values);
      break;
    default:
      fill<double>(executor, matrix, values, nullptr);
      filled = true;
    }
    if (!filled) census.value_bytes *= 2;
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
