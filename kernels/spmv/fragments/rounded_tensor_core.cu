// TF32 and BF16 products by MMA instructions with FP32 sums.
#include "by_tensor_cores.h"
#include "rounded.h"

namespace tcbound::fragments {

void multiply_rounded_by_tensor_cores(Executor &executor, DeviceMatrix &m, const Product &product, int rounds) {
  if (m.arithmetic == Arithmetic::tf32)
    launch<TensorCores<M16n8k4Tf32>>(executor, m, product, rounds);
  else
    launch<TensorCores<M16n8k8Bf16>>(executor, m, product, rounds);
}

} // namespace tcbound::fragments
