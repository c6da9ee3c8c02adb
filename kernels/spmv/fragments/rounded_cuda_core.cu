// The twin of rounded_tensor_core.cu, by FP32 multiply-adds.
#include "by_cuda_cores.h"
#include "rounded.h"

namespace tcbound::fragments {

void multiply_rounded_by_cuda_cores(Executor &executor, DeviceMatrix &m, const Product &product, int rounds) {
  if (m.arithmetic == Arithmetic::tf32)
    launch<CudaCores<Tf32>>(executor, m, product, rounds);
  else
    launch<CudaCores<Bf16>>(executor, m, product, rounds);
}

} // namespace tcbound::fragments
