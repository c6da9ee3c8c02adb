#pragma once

// Values as planes hold them: doubles, or numbers of 32 or 16 bits while all of a matrix are exact in those. For .cu files only.

#include "../sell/bfloat16.h"
#include "device_matrix.h"

namespace tcbound::diagonals {

using sell::Bfloat16;

// Bits of a stored value, and what stands where a row has no entry: of doubles only the upper half tells.
__device__ inline std::uint64_t bits_of(double value) { return static_cast<std::uint64_t>(__double_as_longlong(value)); }
__device__ inline std::uint32_t bits_of(float value) { return __float_as_uint(value); }
__device__ inline std::uint16_t bits_of(Bfloat16 value) { return value.bits; }

__device__ inline bool is_absent(double value) { return static_cast<std::uint32_t>(__double2hiint(value)) == absent_upper; }
__device__ inline bool is_absent(float value) { return __float_as_uint(value) == absent_bits_of_float; }
__device__ inline bool is_absent(Bfloat16 value) { return value.bits == absent_bits_of_bfloat16; }

template <class Value> __device__ Value absent();
template <> __device__ inline double    absent() { return __longlong_as_double(static_cast<long long>(absent_bits)); }
template <> __device__ inline float     absent() { return __uint_as_float(absent_bits_of_float); }
template <> __device__ inline Bfloat16  absent() {
   Bfloat16 value;
   value.bits = absent_bits_of_bfloat16;
   return value;
}

__device__ inline double   load(const double *from) { return __ldg(from); }
__device__ inline float    load(const float *from) { return __ldg(from); }
__device__ inline Bfloat16 load(const Bfloat16 *from) {
  Bfloat16 value;
  value.bits = __ldg(&from->bits);
  return value;
}

// Whether a value can be stored: nothing of it is lost, and it cannot be taken for an absent one.
template <class Value> __device__ bool can_store(double value) {
  const auto stored = static_cast<Value>(value);
  return !is_absent(stored) && bits_of(static_cast<double>(stored)) == bits_of(value);
}

// Calls f with the planes in the type of their values.
template <class F> void with_values(DeviceMatrix &matrix, F &&f) {
  void *values = matrix.values.data();
  if (matrix.census.value_bytes == 2)
    f(static_cast<Bfloat16 *>(values));
  else if (matrix.census.value_bytes == 4)
    f(static_cast<float *>(values));
  else
    f(static_cast<double *>(values));
}
template <class F> void with_values(const DeviceMatrix &matrix, F &&f) {
  with_values(const_cast<DeviceMatrix &>(matrix), [&](const auto *values) { f(values); });
}

} // namespace tcbound::diagonals
