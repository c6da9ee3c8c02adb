#include <string>

#include "error.h"

namespace tcbound {
namespace {

std::string place(const char *call, const char *file, int line) {
  return std::string(call) + " at " + file + ":" + std::to_string(line) + ": ";
}

} // namespace

void throw_cuda(cudaError_t status, const char *call, const char *file, int line) {
  cudaGetLastError(); // the failure is reported here; a later check must not meet it again
  const ErrorCode code = status == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::device;
  throw Error(code, place(call, file, line) + cudaGetErrorName(status) + " (" + cudaGetErrorString(status) + ")");
}

void throw_cusparse(cusparseStatus_t status, const char *call, const char *file, int line) {
  const bool memory = status == CUSPARSE_STATUS_ALLOC_FAILED || status == CUSPARSE_STATUS_INSUFFICIENT_RESOURCES;
  throw Error(memory ? ErrorCode::out_of_memory : ErrorCode::device,
              place(call, file, line) + cusparseGetErrorName(status) + " (" + cusparseGetErrorString(status) + ")");
}

} // namespace tcbound
