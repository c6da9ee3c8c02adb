#pragma once

// The device kernel of elementwise operations on vectors at any alignment to 8 bytes. For .cu files only.

#include "error.h"
#include "vector.h"

namespace tcbound {

inline bool is_odd(const double *p) { return reinterpret_cast<std::uintptr_t>(p) % 16 != 0; }

// One or two neighbouring elements.
__device__ inline double  multiply_add(double a, double x, double y) { return fma(a, x, y); }
__device__ inline double2 multiply_add(double a, double2 x, double2 y) {
  return make_double2(fma(a, x.x, y.x), fma(a, x.y, y.y));
}
__device__ inline double  multiply(double a, double x) { return a * x; }
__device__ inline double2 multiply(double a, double2 x) { return make_double2(a * x.x, a * x.y); }
__device__ inline double2 multiply(double2 a, double2 x) { return make_double2(a.x * x.x, a.y * x.y); }

template <class T> __device__ inline T load(const double *p, std::int64_t at) { return *reinterpret_cast<const T *>(p + at); }

constexpr int elementwise_threads = 256;
constexpr int elementwise_lane_pairs = 2; // of a thread
constexpr int elementwise_block = 2 * elementwise_lane_pairs * elementwise_threads;

// w[i] = operation.at<double>(i). With T = double2 every array has the same place within 16 bytes, and `skip` is 1 where pairs
// begin at the element before the first one.
template <class Operation, class T>
__global__ void __launch_bounds__(elementwise_threads)
  elementwise(double *w, const __grid_constant__ Operation operation, std::int64_t length, int skip) {
  constexpr int      each = sizeof(T) / sizeof(double), pieces = 2 * elementwise_lane_pairs / each;
  const std::int64_t first = blockIdx.x * static_cast<std::int64_t>(elementwise_block) - skip;
  if (first >= 0 && first + elementwise_block <= length) {
    T results[pieces];
#pragma unroll
    for (int k = 0; k < pieces; ++k)
      results[k] = operation.template at<T>(first + each * (k * elementwise_threads + static_cast<int>(threadIdx.x)));
#pragma unroll
    for (int k = 0; k < pieces; ++k)
      *reinterpret_cast<T *>(w + first + each * (k * elementwise_threads + static_cast<int>(threadIdx.x))) = results[k];
  } else {
    for (int k = 0; k < elementwise_block / elementwise_threads; ++k) {
      const std::int64_t i = first + k * elementwise_threads + static_cast<int>(threadIdx.x);
      if (i >= 0 && i < length) w[i] = operation.template at<double>(i);
    }
  }
}

// aligned: w and all that the operation reads have the same place within 16 bytes.
template <class Operation>
void launch_elementwise(Executor &executor, double *w, const Operation &operation, std::int64_t length, bool aligned) {
  if (length == 0) return;
  const int    skip = aligned && is_odd(w) ? 1 : 0;
  const auto   blocks = static_cast<unsigned>((length + skip + elementwise_block - 1) / elementwise_block);
  cudaStream_t stream = static_cast<cudaStream_t>(executor.stream());
  if (aligned)
    elementwise<Operation, double2><<<blocks, elementwise_threads, 0, stream>>>(w, operation, length, skip);
  else
    elementwise<Operation, double><<<blocks, elementwise_threads, 0, stream>>>(w, operation, length, skip);
  TCBOUND_LAUNCHED();
}

// Of every kernel that has a thread for so many elements; grids have up to 2^31 - 1 blocks.
inline std::string check_elementwise(const Device &device, std::int64_t length) {
  const std::int64_t most = ((std::int64_t(1) << 31) - 2) * elementwise_block;
  if (device.space != MemorySpace::cuda) return "it runs on a CUDA device only";
  return length <= most ? "" : "there are more than " + std::to_string(most) + " elements";
}

} // namespace tcbound
