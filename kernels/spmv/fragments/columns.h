#pragma once

// Products of fragments with several columns, where rows come in nodes.

#include "device_matrix.h"
#include "kernel.h"
#include "mma_shape.h"

namespace tcbound::fragments {

// Columns of x that are taken at a time, of so many: 8 by CUDA cores, else as many as an instruction has rows or two of them have.
constexpr int columns_at_a_time(MmaShape mma, std::int64_t count) {
  if (mma == MmaShape::automatic) return 8;
  return mma == MmaShape::m8n8k4 && count <= 8 ? 8 : 16;
}

// Columns of x as they are written for it, so many side by side (csr/pack_rows.h).
constexpr std::int64_t padded_columns(MmaShape mma, std::int64_t count) {
  const int at_a_time = columns_at_a_time(mma, count);
  return (count + at_a_time - 1) / at_a_time * at_a_time;
}

// `packed`: padded_columns() columns of x, of `inputs` rows. `rounds`: groups that a warp takes, at most.
void multiply_columns_by_cuda_cores(Executor &executor, DeviceMatrix &m, const double *packed, std::int64_t inputs,
                                    const Product &product, const Columns &by, int rounds);
void multiply_columns_by_tensor_cores(Executor &executor, MmaShape mma, DeviceMatrix &m, const double *packed,
                                      std::int64_t inputs, const Product &product, const Columns &by, int rounds);

} // namespace tcbound::fragments
