// CSR in device memory: conversion from any CsrView, transposition, new values, diagonal.
#include "device_format.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include <cub/device/device_radix_sort.cuh>

#include "arithmetic.h"
#include "cuda/error.h"
#include "lower_bound.h"

namespace tcbound::csr {
namespace {

constexpr int block = 256;

unsigned grid_for(std::int64_t size) { return static_cast<unsigned>((size + block - 1) / block); }

cudaStream_t stream_of(Executor &executor) { return static_cast<cudaStream_t>(executor.stream()); }

__device__ std::int64_t global_index() { return blockIdx.x * static_cast<std::int64_t>(block) + threadIdx.x; }

template <class From, class To> __global__ void convert(const From *from, To *to, std::int64_t size) {
  const std::int64_t i = global_index();
  if (i < size) to[i] = static_cast<To>(from[i]);
}

template <class T> __global__ void count_up(T *to, std::int64_t size) {
  const std::int64_t i = global_index();
  if (i < size) to[i] = static_cast<T>(i);
}

template <class T> __global__ void gather_values(const double *from, const T *positions, double *to, std::int64_t size) {
  const std::int64_t i = global_index();
  if (i < size) to[i] = from[positions[i]];
}

// Row of the plain matrix that each entry of the transpose came from: the last one that starts at or before its position.
template <class T>
__global__ void find_rows(const T *offsets, std::int64_t rows, const T *positions, std::int32_t *to, std::int64_t size) {
  const std::int64_t i = global_index();
  if (i < size) to[i] = static_cast<std::int32_t>(lower_bound(offsets, std::int64_t(0), rows + 1, positions[i] + 1) - 1);
}

template <class T>
__global__ void find_offsets(const std::int32_t *sorted_columns, std::int64_t size, T *offsets, std::int64_t columns) {
  const std::int64_t j = global_index();
  if (j <= columns) offsets[j] = static_cast<T>(lower_bound(sorted_columns, std::int64_t(0), size, j));
}

template <class T>
__global__ void find_diagonal(const T *offsets, const std::int32_t *columns, const double *values, const std::int32_t *listed,
                              double *d, std::int64_t rows) {
  const std::int64_t i = global_index();
  if (i >= rows) return;
  const std::int64_t row = listed ? listed[i] : i, end = offsets[i + 1],
                     k = lower_bound(columns, std::int64_t(offsets[i]), end, row);
  d[row] = k < end && columns[k] == row ? values[k] : 0.0;
}

// From numbers among the listed rows to those of the matrix.
__global__ void number_rows(const std::int32_t *listed, std::int32_t *rows, std::int64_t size) {
  const std::int64_t k = global_index();
  if (k < size) rows[k] = listed[rows[k]];
}

// Each block finds the listed ones among its own rows.
__global__ void begin_other_rows(const double *y, double beta, double *z, std::int64_t size, const std::int32_t *rows,
                                 std::int64_t listed) {
  __shared__ bool    among[block];
  const std::int64_t first = blockIdx.x * static_cast<std::int64_t>(block), i = first + threadIdx.x;
  among[threadIdx.x] = false;
  __syncthreads();
  const std::int64_t k = lower_bound(rows, std::int64_t(0), listed, first) + threadIdx.x;
  if (k < listed && rows[k] < first + block) among[rows[k] - first] = true;
  __syncthreads();
  if (i < size && !among[threadIdx.x]) z[i] = beta == 0.0 ? 0.0 : beta * y[i];
}

// From host memory of another width, in pieces of at most 8 MB of staging.
template <class From, class To> void upload(Executor &executor, const From *from, To *to, std::int64_t size) {
  const std::int64_t piece = std::int64_t(1) << 20;
  std::vector<To>    staging(static_cast<std::size_t>(std::min(size, piece)));
  for (std::int64_t at = 0; at < size; at += piece) {
    const std::int64_t count = std::min(piece, size - at);
    std::transform(from + at, from + at + count, staging.begin(), [](From value) { return static_cast<To>(value); });
    executor.copy(to + at, MemorySpace::cuda, staging.data(), MemorySpace::host, static_cast<std::size_t>(count) * sizeof(To));
  }
}

template <class From, class To>
void copy_indices(Executor &executor, const From *from, MemorySpace space, To *to, std::int64_t size) {
  if (size == 0) return;
  if (std::is_same_v<From, To>) {
    executor.copy(to, MemorySpace::cuda, from, space, static_cast<std::size_t>(size) * sizeof(To));
  } else if (space == MemorySpace::cuda) {
    convert<<<grid_for(size), block, 0, stream_of(executor)>>>(from, to, size);
    TCBOUND_LAUNCHED();
  } else {
    upload(executor, from, to, size);
  }
}

template <class To> Array<To> copy_indices(Executor &executor, const IndexView &from, MemorySpace space, std::int64_t size) {
  Array<To> to(executor, size);
  if (from.bytes == 8)
    copy_indices(executor, static_cast<const std::int64_t *>(from.data), space, to.data(), size);
  else
    copy_indices(executor, static_cast<const std::int32_t *>(from.data), space, to.data(), size);
  return to;
}

// A matrix without rows may come without row offsets.
template <class To> Array<To> copy_offsets(Executor &executor, const CsrView &view) {
  if (view.rows > 0) return copy_indices<To>(executor, view.row_offsets, view.space, view.rows + 1);
  Array<To> zero(executor, 1);
  TCBOUND_CUDA(cudaMemsetAsync(zero.data(), 0, sizeof(To), stream_of(executor)));
  return zero;
}

DeviceArrays to_device(Executor &executor, const CsrView &view, bool wide, bool borrow) {
  DeviceArrays a;
  validate(view);
  a.rows = view.rows;
  a.columns_count = view.columns_count;
  a.nonzeros = view.nonzeros;
  a.wide = wide;
  if (wide)
    a.wide_offsets = copy_offsets<std::int64_t>(executor, view);
  else
    a.narrow_offsets = copy_offsets<std::int32_t>(executor, view);
  if (borrow && view.columns.bytes == sizeof(std::int32_t))
    a.columns = Array<std::int32_t>::borrow(static_cast<const std::int32_t *>(view.columns.data), view.nonzeros);
  else
    a.columns = copy_indices<std::int32_t>(executor, view.columns, view.space, view.nonzeros);
  if (borrow) {
    a.values = Array<double>::borrow(view.values, view.nonzeros);
  } else {
    a.values = Array<double>(executor, view.nonzeros);
    executor.copy(a.values.data(), MemorySpace::cuda, view.values, view.space, static_cast<std::size_t>(a.values.bytes()));
  }
  return a;
}

// Sorts the positions of the entries by column, stably, so that within a column the rows stay in order.
template <class T>
void sort_by_column(Executor &executor, const DeviceArrays &a, Array<std::int32_t> &sorted, Array<T> &positions) {
  if (a.nonzeros == 0) return;
  Array<T> in_order(executor, a.nonzeros);
  count_up<<<grid_for(a.nonzeros), block, 0, stream_of(executor)>>>(in_order.data(), a.nonzeros);
  TCBOUND_LAUNCHED();
  int bits = 1;
  while ((a.columns_count - 1) >> bits) ++bits;
  std::size_t needed = 0;
  const auto  sort = [&](void *temporary) {
    TCBOUND_CUDA(cub::DeviceRadixSort::SortPairs(temporary, needed, a.columns.data(), sorted.data(), in_order.data(),
                                                  positions.data(), a.nonzeros, 0, bits, stream_of(executor)));
  };
  sort(nullptr);
  Array<char> temporary(executor, static_cast<std::int64_t>(std::max<std::size_t>(needed, 1)));
  sort(temporary.data());
}

template <class T>
void transpose_entries(Executor &executor, const DeviceArrays &a, const T *offsets, DeviceArrays &to, Array<T> &to_offsets,
                       Array<T> &positions) {
  const cudaStream_t  stream = stream_of(executor);
  Array<std::int32_t> sorted(executor, a.nonzeros);
  to.columns = Array<std::int32_t>(executor, a.nonzeros);
  positions = Array<T>(executor, a.nonzeros);
  to_offsets = Array<T>(executor, a.columns_count + 1);
  sort_by_column(executor, a, sorted, positions);
  find_offsets<<<grid_for(a.columns_count + 1), block, 0, stream>>>(sorted.data(), a.nonzeros, to_offsets.data(),
                                                                    a.columns_count);
  TCBOUND_LAUNCHED();
  if (a.nonzeros > 0) {
    find_rows<<<grid_for(a.nonzeros), block, 0, stream>>>(offsets, a.rows, positions.data(), to.columns.data(), a.nonzeros);
    TCBOUND_LAUNCHED();
  }
}

} // namespace

std::string check_device(const Device &device, const CsrView &view) {
  const std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (device.space != MemorySpace::cuda) return "it runs on a CUDA device and this is the host";
  if (device.compute_major < 8)
    return "it is compiled for compute capability 8.0 and newer and " + device.name + " has " +
           std::to_string(device.compute_major) + "." + std::to_string(device.compute_minor);
  if (view.columns_count > most)
    return "there are " + std::to_string(view.columns_count) + " columns and it stores column indices in 32 bits";
  if (view.rows > most) return "there are " + std::to_string(view.rows) + " rows and it counts rows in 32 bits";
  return {};
}

std::string check_device(const Device &device, const Problem &problem) {
  const std::string why_not = check_fp64(problem);
  return why_not.empty() ? check_device(device, problem.csr) : why_not;
}

DeviceArrays copy_to_device(Executor &executor, const CsrView &view, bool wide) {
  return to_device(executor, view, wide, false);
}

DeviceArrays bring_to_device(Executor &executor, const CsrView &view, bool wide) {
  return to_device(executor, view, wide, view.space == MemorySpace::cuda);
}

DeviceArrays Transposition::transpose(Executor &executor, const DeviceArrays &a) {
  DeviceArrays to;
  nonzeros_ = a.nonzeros;
  to.rows = a.columns_count;
  to.columns_count = a.rows;
  to.nonzeros = a.nonzeros;
  to.wide = a.wide;
  if (a.wide)
    transpose_entries(executor, a, a.wide_offsets.data(), to, to.wide_offsets, wide_positions_);
  else
    transpose_entries(executor, a, a.narrow_offsets.data(), to, to.narrow_offsets, narrow_positions_);
  to.values = Array<double>(executor, a.nonzeros);
  gather(executor, a.values.data(), to.values.data());
  executor.synchronize(); // the executor may be on another stream when the transpose is used
  return to;
}

void Transposition::gather(Executor &executor, const double *from, double *to) const {
  if (nonzeros_ == 0) return;
  const auto launch = [&](const auto *positions) {
    gather_values<<<grid_for(nonzeros_), block, 0, stream_of(executor)>>>(from, positions, to, nonzeros_);
    TCBOUND_LAUNCHED();
  };
  if (wide_positions_.size() > 0)
    launch(wide_positions_.data());
  else
    launch(narrow_positions_.data());
}

void begin_others(Executor &executor, const Product &p, std::int64_t size, const std::int32_t *rows, std::int64_t listed) {
  if (size == 0) return;
  begin_other_rows<<<grid_for(size), block, 0, stream_of(executor)>>>(p.y, p.beta, p.z, size, rows, listed);
  TCBOUND_LAUNCHED();
}

DeviceFormat::DeviceFormat(Executor &executor, const CsrView &view, bool wide, const ListedRows &listed)
  : size_{view.rows, view.columns_count, view.nonzeros, wide ? 8 : 4, 4},
    plain_(copy_to_device(executor, listed.view_of(view), wide)) {
  if (!listed.used()) return;
  size_.listed = plain_.rows;
  listed_ = Array<std::int32_t>(executor, plain_.rows);
  executor.copy(listed_.data(), MemorySpace::cuda, listed.rows().data(), MemorySpace::host,
                static_cast<std::size_t>(listed_.bytes()));
}

void DeviceFormat::begin(Executor &executor, const Product &product) const {
  if (lists(product.transpose) && !product.in_place())
    begin_others(executor, product, size_.rows, listed_.data(), listed_.size());
}

void DeviceFormat::refill(Executor &executor, const double *values, MemorySpace space) {
  executor.copy(plain_.values.data(), MemorySpace::cuda, values, space, static_cast<std::size_t>(plain_.values.bytes()));
  if (have_transpose_) transposition_.gather(executor, plain_.values.data(), transposed_.values.data());
  executor.synchronize(); // it may be on another stream when they are used
}

void DeviceFormat::diagonal(Executor &executor, double *d) {
  const std::int64_t rows = plain_.rows;
  if (lists(false) && size_.rows > 0)
    TCBOUND_CUDA(cudaMemsetAsync(d, 0, sizeof(double) * static_cast<std::size_t>(size_.rows), stream_of(executor)));
  if (rows == 0) return;
  with_offsets(plain_, [&](const auto *offsets) {
    find_diagonal<<<grid_for(rows), block, 0, stream_of(executor)>>>(offsets, plain_.columns.data(), plain_.values.data(),
                                                                     this->rows(false), d, rows);
    TCBOUND_LAUNCHED();
  });
}

Size DeviceFormat::size_of(bool transpose) const {
  if (!transpose) return size_;
  return {size_.columns, size_.stored(), size_.nonzeros, size_.offset_bytes, size_.index_bytes};
}

Work DeviceFormat::work(bool transpose, bool accumulate) const {
  return count_work(size_of(transpose), false, accumulate, auxiliary_bytes(transpose));
}

Work DeviceFormat::work_in_place(bool transpose) const {
  return count_work_in_place(size_of(transpose), false, auxiliary_bytes(transpose));
}

// Both device kernels read the matrix once for all columns.
Work DeviceFormat::work_of_columns(bool transpose, bool accumulate, std::int64_t count) const {
  return count_work_of_columns(work(transpose, accumulate), vector_bytes(size_of(transpose), false, accumulate), count, 1);
}

std::int64_t DeviceFormat::stored_bytes() const {
  return plain_.bytes() + listed_.bytes() + transposed_.bytes() + transposition_.bytes();
}

const DeviceArrays &DeviceFormat::arrays(Executor &executor, bool transposed) {
  if (!transposed) return plain_;
  if (have_transpose_) return transposed_;
  transposed_ = transposition_.transpose(executor, plain_);
  if (lists(false)) {
    transposed_.columns_count = size_.rows;
    if (size_.nonzeros > 0) {
      number_rows<<<grid_for(size_.nonzeros), block, 0, stream_of(executor)>>>(listed_.data(), transposed_.columns.data(),
                                                                               size_.nonzeros);
      TCBOUND_LAUNCHED();
      executor.synchronize(); // it may be on another stream when the transpose is used
    }
  }
  have_transpose_ = true;
  return transposed_;
}

} // namespace tcbound::csr
