#include "mma_code.h"

#include <limits>

#include <cuda_runtime.h>

namespace tcbound {
namespace {

__global__ void nothing() {}

// The compute capability, times 10, that this library's code on the present device was written for. Without a device no code is
// missing.
int compiled_for() {
  static const int compute = [] {
    cudaFuncAttributes attributes;
    if (cudaFuncGetAttributes(&attributes, nothing) == cudaSuccess) return attributes.ptxVersion;
    cudaGetLastError();
    return std::numeric_limits<int>::max();
  }();
  return compute;
}

} // namespace

std::string check_mma_code(const Device &device, MmaShape shape) {
  const std::string why_not = check_mma(device, shape);
  if (!why_not.empty() || shape == MmaShape::automatic) return why_not;
  const MmaShapeFacts &facts = facts_of(shape);
  if (compiled_for() >= facts.compute) return {};
  return std::string("this build has no code with the FP64 matrix instruction ") + facts.name + " for " + device.name +
         " (TCBOUND_CUDA_ARCHITECTURES)";
}

} // namespace tcbound
