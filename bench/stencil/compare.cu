#include "compare.h"

#include "cuda/error.h"

namespace tcbound::bench {
namespace {

__device__ bool differ(double a, double b, double tolerance) {
  return tolerance > 0.0 ? !(fabs(a - b) <= tolerance) : __double_as_longlong(a) != __double_as_longlong(b);
}

__global__ void count(const double *found, const double *expected, std::int64_t lines, std::int64_t cells, std::int64_t pitch,
                      double tolerance, unsigned long long *differences) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  unsigned long long own = 0;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < lines * pitch; i += stride)
    own += i % pitch < cells && differ(found[i], expected[i], tolerance);
  if (own > 0) atomicAdd(differences, own);
}

} // namespace

std::int64_t count_differences(Executor &executor, const double *found, const double *expected, std::int64_t lines,
                               std::int64_t cells, std::int64_t pitch, double tolerance) {
  Array<unsigned long long> differences(executor, 1);
  unsigned long long        result = 0;
  executor.copy(differences.data(), executor.space(), &result, MemorySpace::host, sizeof result);
  count<<<1024, 256, 0, static_cast<cudaStream_t>(executor.stream())>>>(found, expected, lines, cells, pitch, tolerance,
                                                                        differences.data());
  TCBOUND_LAUNCHED();
  executor.copy(&result, MemorySpace::host, differences.data(), executor.space(), sizeof result);
  return static_cast<std::int64_t>(result);
}

} // namespace tcbound::bench
