#if __has_include(<cupti_range_profiler.h>)
#include "cupti.h"

#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <vector>

#include "error.h"

namespace tcbound {
namespace {

// The folder of a function's library, with the slash.
std::string folder_of(const void *function) {
  Dl_info info;
  if (!dladdr(function, &info) || !info.dli_fname) return {};
  const std::string file = info.dli_fname;
  return file.substr(0, file.rfind('/') + 1);
}

// The loader's own path, the toolkit that the environment names, beside the CUDA runtime in use (a toolkit or NVIDIA's Python
// packages, which keep both in one folder since CUDA 13 and in two before), and the usual place.
std::vector<std::string> folders() {
  std::vector<std::string> all{""}, toolkits;
  for (const char *name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *home = std::getenv(name)) toolkits.push_back(std::string(home) + '/');
  const std::string runtime = folder_of(reinterpret_cast<const void *>(&cudaGetDeviceCount));
  if (!runtime.empty()) {
    all.push_back(runtime);
    all.push_back(runtime + "../../cuda_cupti/lib/");
    toolkits.push_back(runtime + "../");
    toolkits.push_back(runtime + "../../../"); // of targets/x86_64-linux/lib
  }
  toolkits.push_back("/usr/local/cuda/");
  for (const std::string &toolkit : toolkits) {
    all.push_back(toolkit + "lib64/");
    all.push_back(toolkit + "extras/CUPTI/lib64/");
  }
  return all;
}

Cupti load() {
  const std::string soname = "libcupti.so." + std::to_string(CUDART_VERSION / 1000);
  void             *library = nullptr;
  for (const std::string &folder : folders())
    if (!library) library = dlopen((folder + soname).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw Error(ErrorCode::unsupported, "there is no " + soname + " on this machine (part of the CUDA toolkit)");
  Cupti cupti;
#define TCBOUND_CUPTI_FIND(name) \
  cupti.name = reinterpret_cast<decltype(cupti.name)>(dlsym(library, "cupti" #name)); \
  if (!cupti.name) throw Error(ErrorCode::unsupported, soname + " is too old: it has no cupti" #name);
  TCBOUND_CUPTI_FUNCTIONS(TCBOUND_CUPTI_FIND)
#undef TCBOUND_CUPTI_FIND
  return cupti;
}

} // namespace

const Cupti &Cupti::get() {
  static const Cupti cupti = load();
  return cupti;
}

void Cupti::check(CUptiResult status, const char *call) const {
  if (status == CUPTI_SUCCESS) return;
  const char *text = nullptr;
  if (GetResultString(status, &text) != CUPTI_SUCCESS || !text) text = "an unknown error";
  std::string what = std::string("cupti") + call + " says " + text;
  if (status == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES || status == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES)
    what = "the driver lets only an administrator read hardware counters (" + std::string(text) +
           "; its option NVreg_RestrictProfilingToAdminUsers=0 lets everybody)";
  throw Error(ErrorCode::unsupported, what);
}

} // namespace tcbound
#endif
