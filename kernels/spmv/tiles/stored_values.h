#pragma once

// The values of a matrix of format tiles in their type. For .cu files only.

#include "../sell/bfloat16.h"
#include "device_matrix.h"

namespace tcbound::tiles {

// Calls f(values).
template <class F> void with_values(const DeviceMatrix &matrix, F &&f) {
  const void *values = matrix.values.data();
  switch (matrix.census.value_bytes) {
  case 2:
    return f(static_cast<const sell::Bfloat16 *>(values));
  case 4:
    return f(static_cast<const float *>(values));
  default:
    return f(static_cast<const double *>(values));
  }
}

} // namespace tcbound::tiles
