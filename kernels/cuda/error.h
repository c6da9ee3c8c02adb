#pragma once

#include <cuda_runtime_api.h>
#include <cusparse.h>

#include "../error.h"

namespace tcbound {

// Throw Error with the call, its place and the library's own text; an allocation failure becomes ErrorCode::out_of_memory.
[[noreturn]] void throw_cuda(cudaError_t status, const char *call, const char *file, int line);
[[noreturn]] void throw_cusparse(cusparseStatus_t status, const char *call, const char *file, int line);

inline void check_cuda(cudaError_t status, const char *call, const char *file, int line) {
  if (status != cudaSuccess) throw_cuda(status, call, file, line);
}
inline void check_cusparse(cusparseStatus_t status, const char *call, const char *file, int line) {
  if (status != CUSPARSE_STATUS_SUCCESS) throw_cusparse(status, call, file, line);
}

} // namespace tcbound

#define TCBOUND_CUDA(call) ::tcbound::check_cuda((call), #call, __FILE__, __LINE__)
#define TCBOUND_CUSPARSE(call) ::tcbound::check_cusparse((call), #call, __FILE__, __LINE__)
// After a kernel launch: its configuration errors. Errors of its execution show at the next synchronising call.
#define TCBOUND_LAUNCHED() ::tcbound::check_cuda(cudaGetLastError(), "kernel launch", __FILE__, __LINE__)
