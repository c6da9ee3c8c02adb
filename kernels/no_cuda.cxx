// Takes the place of kernels/cuda/ in a build without a CUDA toolkit.
#include "counters.h"
#include "executor.h"

namespace tcbound {

int cuda_device_count(std::string *why_not) {
  if (why_not) *why_not = "this library was built without CUDA";
  return 0;
}

std::unique_ptr<Executor> make_cuda_executor(int) {
  throw Error(ErrorCode::unsupported, "this library was built without CUDA");
}

std::unique_ptr<Counters> make_cuda_counters(Executor &) {
  throw Error(ErrorCode::unsupported, "this library was built without CUDA");
}

CounterPlan plan_counters(const std::string &) { throw Error(ErrorCode::unsupported, "this library was built without CUDA"); }

} // namespace tcbound
