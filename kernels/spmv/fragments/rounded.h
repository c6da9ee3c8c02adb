#pragma once

// Products in lossy arithmetic, that of the matrix: its values, of 4 or 2 bytes, were rounded when it was built, x is rounded to FP32
// and then to the same type as it is loaded. The products are exact; a fragment row is added up in FP32 (at most 63 steps of four, of
// 24 as a rule), everything beyond it in FP64.

#include "device_matrix.h"
#include "kernel.h"

namespace tcbound::fragments {

// `rounds`: groups that a warp takes, at most.
void multiply_rounded_by_cuda_cores(Executor &executor, DeviceMatrix &m, const Product &product, int rounds);
void multiply_rounded_by_tensor_cores(Executor &executor, DeviceMatrix &m, const Product &product, int rounds);

} // namespace tcbound::fragments
