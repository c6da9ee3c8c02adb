#pragma once

// CUB's device-wide algorithms on an executor's stream, with one scratch allocation that they share. For .cu files only.

#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include <array>
#include <cstdint>

#include "error.h"
#include "executor.h"

namespace tcbound {

// An integer in device memory.
class NumberAt {
public:
  NumberAt() = default;
  NumberAt(const std::int32_t *at) : at_(at), wide_(false) {}
  NumberAt(const std::int64_t *at) : at_(at), wide_(true) {}

  __device__ std::int64_t read() const {
    return wide_ ? *static_cast<const std::int64_t *>(at_) : *static_cast<const std::int32_t *>(at_);
  }

private:
  const void *at_ = nullptr;
  bool        wide_ = false;
};

constexpr int most_numbers = 8; // that are read at once
struct NumbersAt {
  NumberAt of[most_numbers];
};

inline __global__ void __launch_bounds__(most_numbers) gather_numbers(const NumbersAt from, int count, std::int64_t *to) {
  const auto         i = static_cast<int>(threadIdx.x);
  const std::int64_t number = i < count ? from.of[i].read() : 0;
  __syncthreads(); // a number may be where one before it goes
  if (i < count) to[i] = number;
}

// Sums that one block adds up sooner than the device's algorithm, which takes two launches, starts.
constexpr std::int64_t most_in_one_block = 1 << 14;

template <class T> __global__ void __launch_bounds__(1024) sum_in_one_block(const T *in, T *out, int size) {
  using Scan = cub::BlockScan<T, 1024>;
  constexpr int                         each = 4;
  __shared__ typename Scan::TempStorage storage;
  T                                     before = 0;
  for (int begin = 0; begin < size; begin += 1024 * each) {
    const int first = begin + static_cast<int>(threadIdx.x) * each;
    T         items[each], total;
    for (int i = 0; i < each; ++i) items[i] = first + i < size ? in[first + i] : T(0);
    Scan(storage).ExclusiveSum(items, items, total);
    for (int i = 0; i < each; ++i)
      if (first + i < size) out[first + i] = before + items[i];
    before += total;
    __syncthreads(); // all are done with the storage
  }
}

// Bits that the numbers from 0 to `most` take.
inline int bits_of(std::int64_t most) {
  int bits = 0;
  while (most >> bits) ++bits;
  return bits;
}

class Algorithms {
public:
  explicit Algorithms(Executor &executor) : executor_(executor), result_(executor, most_numbers) {}

  cudaStream_t stream() const { return static_cast<cudaStream_t>(executor_.stream()); }

  // out[i] = in[0] + ... + in[i - 1] for i < size; may be done in place.
  template <class T> void exclusive_sum(const T *in, T *out, std::int64_t size) {
    if (size == 0) return;
    if (size <= most_in_one_block) {
      sum_in_one_block<<<1, 1024, 0, stream()>>>(in, out, static_cast<int>(size));
      TCBOUND_LAUNCHED();
      return;
    }
    with_scratch([&](void *scratch, std::size_t &bytes) {
      return cub::DeviceScan::ExclusiveSum(scratch, bytes, in, out, size, stream());
    });
  }

  // The numbers i < size for which select(i) is true, in order. How many is known only on the device, where the result points to
  // until the next call.
  template <class F> const std::int64_t *list_numbers(std::int32_t *out, std::int64_t size, F select) {
    with_scratch([&](void *scratch, std::size_t &bytes) {
      return cub::DeviceSelect::If(scratch, bytes, thrust::counting_iterator<std::int32_t>(0), out, result_.data(), size,
                                   select, stream());
    });
    return result_.data();
  }

  // The same; returns how many.
  template <class F> std::int64_t select_numbers(std::int32_t *out, std::int64_t size, F select) {
    return size > 0 ? read(list_numbers(out, size, select)) : 0;
  }

  // Stable. Keys have no bits but the lowest `bits`; the fewer, the faster.
  template <class K, class V>
  void sort_pairs(const K *keys, K *keys_out, const V *values, V *values_out, std::int64_t size, int bits = 8 * sizeof(K)) {
    if (size == 0) return;
    with_scratch([&](void *scratch, std::size_t &bytes) {
      return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, keys_out, values, values_out, size, 0, bits, stream());
    });
  }

  template <class K, class V>
  void sort_pairs_descending(const K *keys, K *keys_out, const V *values, V *values_out, std::int64_t size, int bits) {
    if (size == 0) return;
    with_scratch([&](void *scratch, std::size_t &bytes) {
      return cub::DeviceRadixSort::SortPairsDescending(scratch, bytes, keys, keys_out, values, values_out, size, 0, bits,
                                                       stream());
    });
  }

  // Lengths of the runs of equal keys, and on the device how many runs there are.
  template <class K> void run_lengths(const K *keys, K *unique, std::int64_t *lengths, std::int64_t size, std::int64_t *runs) {
    with_scratch([&](void *scratch, std::size_t &bytes) {
      return cub::DeviceRunLengthEncode::Encode(scratch, bytes, keys, unique, lengths, runs, size, stream());
    });
  }

  // One element of device memory; waits for what comes before in the stream.
  template <class T> T read(const T *from) {
    T value;
    executor_.copy(&value, MemorySpace::host, from, MemorySpace::cuda, sizeof value);
    return value;
  }

  // Several integers at once, in the time of one.
  template <class... T> std::array<std::int64_t, sizeof...(T)> read_all(const T *...from) {
    static_assert(sizeof...(T) <= most_numbers);
    std::array<std::int64_t, sizeof...(T)> numbers;
    gather_numbers<<<1, most_numbers, 0, stream()>>>(NumbersAt{{NumberAt(from)...}}, static_cast<int>(sizeof...(T)),
                                                     result_.data());
    TCBOUND_LAUNCHED();
    executor_.copy(numbers.data(), MemorySpace::host, result_.data(), MemorySpace::cuda, sizeof numbers);
    return numbers;
  }

private:
  template <class F> void with_scratch(F &&call) {
    std::size_t bytes = 0;
    TCBOUND_CUDA(call(nullptr, bytes));
    if (static_cast<std::int64_t>(bytes) > scratch_.size() || scratch_.size() == 0) {
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
