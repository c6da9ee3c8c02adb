#pragma once

// CUPTI's range profiler, opened by name when counters are asked for: nothing links it, and a machine without it runs all else.
// Its headers have the range profiler since CUDA 12.6.

#include <cuda.h>

#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include "../error.h"

namespace tcbound {

#define TCBOUND_CUPTI_FUNCTIONS(function) \
  function(GetResultString) function(DeviceGetChipName) function(ProfilerInitialize) function(ProfilerDeInitialize) \
    function(ProfilerDeviceSupported) function(ProfilerGetCounterAvailability) function(ProfilerHostInitialize) \
      function(ProfilerHostDeinitialize) function(ProfilerHostGetMetricProperties) function(ProfilerHostConfigAddMetrics) \
        function(ProfilerHostGetConfigImageSize) function(ProfilerHostGetConfigImage) function(ProfilerHostGetNumOfPasses) \
          function(ProfilerHostEvaluateToGpuValues) function(RangeProfilerEnable) function(RangeProfilerDisable) \
            function(RangeProfilerGetCounterDataSize) function(RangeProfilerCounterDataImageInitialize) \
              function(RangeProfilerSetConfig) function(RangeProfilerStart) function(RangeProfilerStop) \
                function(RangeProfilerPushRange) function(RangeProfilerPopRange) function(RangeProfilerDecodeData)

struct Cupti {
#define TCBOUND_CUPTI_MEMBER(name) decltype(&cupti##name) name = nullptr;
  TCBOUND_CUPTI_FUNCTIONS(TCBOUND_CUPTI_MEMBER)
#undef TCBOUND_CUPTI_MEMBER

  // Throws Error(unsupported) where there is none; found once in a process.
  static const Cupti &get();

  // Throws Error(unsupported) with the call and what CUPTI says of it.
  void check(CUptiResult status, const char *call) const;
};

} // namespace tcbound

// A structure of arguments as CUPTI wants it: zeros, and its size.
#define TCBOUND_CUPTI_ARGUMENTS(type, name) \
  CUpti_##type##_Params name{}; \
  name.structSize = CUpti_##type##_Params_STRUCT_SIZE
