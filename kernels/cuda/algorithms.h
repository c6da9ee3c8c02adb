#pragma once

// CUB's device-wide algorithms on an executor's stream, with one scratch allocation that they share. For .cu files only.

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include <cstdint>

#include "error.h"
#include "executor.h"

namespace tcbound {

class Algorithms {
public:
  explicit Algorithms(Executor &executor) : executor_(executor), result_(executor, 1) {}

  cudaStream_t stream() const { return static_cast<cudaStream_t>(executor_.stream()); }

  // out[i] = in[0] + ... + in[i - 1] for i < size; may be done in place.
  template <class T> void exclusive_sum(const T *in, T *out, std::int64_t size) {
    if (size == 0) return;
    with_scratch([&](void *scratch, std::size_t &bytes) {
      return cub::DeviceScan::ExclusiveSum(scratch, bytes, in, out, size, stream());
    });
  }

  // The numbers i < size for which select(i) is true, in order; returns how many.
  template <class F> std::int64_t select_numbers(std::int32_t *out, std::int64_t size, F select) {
    if (size == 0) return 0;
    with_scratch([&](void *scratch, std::size_t &bytes) {
      return cub::DeviceSelect::If(scratch, bytes, thrust::counting_iterator<std::int32_t>(0), out, result_.data(), size,
                                   select, stream());
    });
    return read(result_.data());
  }

  // Stable.
  template <class K, class V> void sort_pairs(const K *keys, K *keys_out, const V *values, V *values_out, std::int64_t size) {
    if (size == 0) return;
    with_scratch([&](void *scratch, std::size_t &bytes) {
      return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, keys_out, values, values_out, size, 0,
                                             static_cast<int>(8 * sizeof(K)), stream());
    });
  }

  template <class K, class V>
  void sort_pairs_descending(const K *keys, K *keys_out, const V *values, V *values_out, std::int64_t size) {
    if (size == 0) return;
    with_scratch([&](void *scratch, std::size_t &bytes) {
      return cub::DeviceRadixSort::SortPairsDescending(scratch, bytes, keys, keys_out, values, values_out, size, 0,
                                                       static_cast<int>(8 * sizeof(K)), stream());
    });
  }

  // Lengths of the runs of equal keys; returns how many runs there are.
  template <class K> std::int64_t run_lengths(const K *keys, K *unique, std::int64_t *lengths, std::int64_t size) {
    if (size == 0) return 0;
    with_scratch([&](void *scratch, std::size_t &bytes) {
      return cub::DeviceRunLengthEncode::Encode(scratch, bytes, keys, unique, lengths, result_.data(), size, stream());
    });
    return read(result_.data());
  }

  // One element of device memory; waits for what comes before in the stream.
  template <class T> T read(const T *from) {
    T value;
    executor_.copy(&value, MemorySpace::host, from, MemorySpace::cuda, sizeof value);
    return value;
  }

private:
  template <class F> void with_scratch(F &&call) {
    std::size_t bytes = 0;
    TCBOUND_CUDA(call(nullptr, bytes));
    if (static_cast<std::int64_t>(bytes) > scratch_.size() || scratch_.size() == 0) {
      executor_.synchronize(); // what is still at work on the old one
      scratch_ = Array<char>();
      scratch_ = Array<char>(executor_, static_cast<std::int64_t>(bytes + bytes / 2 + 1));
    }
    TCBOUND_CUDA(call(scratch_.data(), bytes));
  }

  Executor           &executor_;
  Array<std::int64_t> result_;
  Array<char>         scratch_;
};

} // namespace tcbound
