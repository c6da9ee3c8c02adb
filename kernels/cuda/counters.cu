// Hardware counters of a CUDA device by CUPTI's range profiler.
#include "../counters.h"

#if __has_include(<cupti_range_profiler.h>)
#include "cupti.h"
#endif
#include "error.h"

#include <algorithm>
#include <exception>

namespace tcbound {

#if __has_include(<cupti_range_profiler.h>)
namespace {

using Count = double Counts::*;

struct Counter {
  Count                     value;
  std::vector<const char *> names; // the first that the chip knows
  const char               *meaning;
};

// The kernels' own instructions are counted by instrumented code, in a pass of its own that must not disturb the others.
const std::vector<std::vector<Counter>> &counter_groups() {
  static const std::vector<std::vector<Counter>> groups = {
    {
      {&Counts::dram_read_bytes, {"dram__bytes_read.sum"}, "bytes read from DRAM"},
      {&Counts::dram_write_bytes, {"dram__bytes_write.sum"}, "bytes written to DRAM"},
      {&Counts::l2_bytes, {"lts__t_bytes.sum"}, "bytes asked of L2"},
      {&Counts::mma_instructions,
       {"sm__inst_executed_pipe_tensor_op_dmma.sum", "sm__inst_executed_pipe_tensor_subpipe_dmma.sum",
        "sm__inst_executed_pipe_fp64_op_dmma.sum"},
       "FP64 tensor-core instructions"},
      {&Counts::mma_flops, {"sm__ops_path_tensor_src_fp64.sum"}, "operations of FP64 tensor cores"},
    },
    {
      {&Counts::fma, {"sm__sass_thread_inst_executed_op_dfma_pred_on.sum"}, "FP64 multiply-adds"},
      {&Counts::add, {"sm__sass_thread_inst_executed_op_dadd_pred_on.sum"}, "FP64 additions"},
      {&Counts::multiply, {"sm__sass_thread_inst_executed_op_dmul_pred_on.sum"}, "FP64 multiplications"},
    },
  };
  return groups;
}

// What the host's side of CUPTI knows of a chip; no device is needed.
class Chip {
public:
  // availability: what this very device's driver offers; empty: all that such chips have.
  Chip(const std::string &name, const std::vector<std::uint8_t> &availability) : name_(name), availability_(availability) {
    TCBOUND_CUPTI_ARGUMENTS(Profiler_Host_Initialize, arguments);
    arguments.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    arguments.pChipName = name_.c_str();
    arguments.pCounterAvailabilityImage = availability_.empty() ? nullptr : availability_.data();
    cupti_.check(cupti_.ProfilerHostInitialize(&arguments), "ProfilerHostInitialize");
    host_ = arguments.pHostObject;
  }
  Chip(const Chip &) = delete;
  Chip &operator=(const Chip &) = delete;
  ~Chip() {
    TCBOUND_CUPTI_ARGUMENTS(Profiler_Host_Deinitialize, arguments);
    arguments.pHostObject = host_;
    cupti_.ProfilerHostDeinitialize(&arguments);
  }

  bool has(const char *metric) const {
    TCBOUND_CUPTI_ARGUMENTS(Profiler_Host_GetMetricProperties, arguments);
    arguments.pHostObject = host_;
    arguments.pMetricName = metric;
    return cupti_.ProfilerHostGetMetricProperties(&arguments) == CUPTI_SUCCESS;
  }

  // Schedules the metrics; for each object once.
  std::vector<std::uint8_t> configure(std::vector<const char *> &metrics) const {
    TCBOUND_CUPTI_ARGUMENTS(Profiler_Host_ConfigAddMetrics, add);
    add.pHostObject = host_;
    add.ppMetricNames = metrics.data();
    add.numMetrics = metrics.size();
    cupti_.check(cupti_.ProfilerHostConfigAddMetrics(&add), "ProfilerHostConfigAddMetrics");
    TCBOUND_CUPTI_ARGUMENTS(Profiler_Host_GetConfigImageSize, size);
    size.pHostObject = host_;
    cupti_.check(cupti_.ProfilerHostGetConfigImageSize(&size), "ProfilerHostGetConfigImageSize");
    std::vector<std::uint8_t> image(size.configImageSize);
    TCBOUND_CUPTI_ARGUMENTS(Profiler_Host_GetConfigImage, get);
    get.pHostObject = host_;
    get.configImageSize = image.size();
    get.pConfigImage = image.data();
    cupti_.check(cupti_.ProfilerHostGetConfigImage(&get), "ProfilerHostGetConfigImage");
    return image;
  }

  std::size_t passes(std::vector<std::uint8_t> &image) const {
    TCBOUND_CUPTI_ARGUMENTS(Profiler_Host_GetNumOfPasses, arguments);
    arguments.configImageSize = image.size();
    arguments.pConfigImage = image.data();
    cupti_.check(cupti_.ProfilerHostGetNumOfPasses(&arguments), "ProfilerHostGetNumOfPasses");
    return arguments.numOfPasses;
  }

  // Of the first range.
  std::vector<double> evaluate(const std::vector<std::uint8_t> &data, std::vector<const char *> &metrics) const {
    std::vector<double> values(metrics.size());
    TCBOUND_CUPTI_ARGUMENTS(Profiler_Host_EvaluateToGpuValues, arguments);
    arguments.pHostObject = host_;
    arguments.pCounterDataImage = data.data();
    arguments.counterDataImageSize = data.size();
    arguments.rangeIndex = 0;
    arguments.ppMetricNames = metrics.data();
    arguments.numMetrics = metrics.size();
    arguments.pMetricValues = values.data();
    cupti_.check(cupti_.ProfilerHostEvaluateToGpuValues(&arguments), "ProfilerHostEvaluateToGpuValues");
    return values;
  }

private:
  const Cupti                    &cupti_ = Cupti::get();
  const std::string               name_;
  const std::vector<std::uint8_t> availability_;
  CUpti_Profiler_Host_Object     *host_ = nullptr;
};

// A group as a chip can count it.
struct Group {
  std::unique_ptr<Chip>     chip;
  std::vector<Count>        values;
  std::vector<const char *> metrics;
  std::vector<std::string>  meanings;
  std::vector<std::uint8_t> image;
  std::size_t               passes = 0;
  bool                      failed = false;
};

std::vector<Group> make_groups(const std::string &chip, const std::vector<std::uint8_t> &availability,
                               std::vector<std::string> &missing) {
  std::vector<Group> groups;
  for (const std::vector<Counter> &counters : counter_groups()) {
    Group group;
    group.chip = std::make_unique<Chip>(chip, availability);
    for (const Counter &counter : counters) {
      const char *name = nullptr;
      for (const char *candidate : counter.names)
        if (!name && group.chip->has(candidate)) name = candidate;
      if (name) {
        group.values.push_back(counter.value);
        group.metrics.push_back(name);
        group.meanings.push_back(counter.meaning);
      } else {
        missing.push_back(counter.meaning);
      }
    }
    if (group.metrics.empty()) continue;
    group.image = group.chip->configure(group.metrics);
    group.passes = group.chip->passes(group.image);
    groups.push_back(std::move(group));
  }
  return groups;
}

// The profiler switched on for the current context, for as long as the object lives.
class Session {
public:
  explicit Session(CUcontext context) {
    TCBOUND_CUPTI_ARGUMENTS(RangeProfiler_Enable, arguments);
    arguments.ctx = context;
    cupti_.check(cupti_.RangeProfilerEnable(&arguments), "RangeProfilerEnable");
    profiler_ = arguments.pRangeProfilerObject;
  }
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;
  ~Session() {
    TCBOUND_CUPTI_ARGUMENTS(RangeProfiler_Disable, arguments);
    arguments.pRangeProfilerObject = profiler_;
    cupti_.RangeProfilerDisable(&arguments);
  }

  std::vector<double> run(Group &group, const std::function<void()> &work) {
    std::vector<std::uint8_t> data = counter_data(group);
    configure(group, data);
    for (bool all = false; !all;) all = pass(work);
    TCBOUND_CUPTI_ARGUMENTS(RangeProfiler_DecodeData, decode);
    decode.pRangeProfilerObject = profiler_;
    cupti_.check(cupti_.RangeProfilerDecodeData(&decode), "RangeProfilerDecodeData");
    if (decode.numOfRangeDropped > 0) throw Error(ErrorCode::unsupported, "CUPTI lost what it had counted");
    return group.chip->evaluate(data, group.metrics);
  }

private:
  std::vector<std::uint8_t> counter_data(Group &group) {
    TCBOUND_CUPTI_ARGUMENTS(RangeProfiler_GetCounterDataSize, size);
    size.pRangeProfilerObject = profiler_;
    size.pMetricNames = group.metrics.data();
    size.numMetrics = group.metrics.size();
    size.maxNumOfRanges = 1;
    size.maxNumRangeTreeNodes = 1;
    cupti_.check(cupti_.RangeProfilerGetCounterDataSize(&size), "RangeProfilerGetCounterDataSize");
    std::vector<std::uint8_t> data(size.counterDataSize);
    TCBOUND_CUPTI_ARGUMENTS(RangeProfiler_CounterDataImage_Initialize, initialize);
    initialize.pRangeProfilerObject = profiler_;
    initialize.counterDataSize = data.size();
    initialize.pCounterData = data.data();
    cupti_.check(cupti_.RangeProfilerCounterDataImageInitialize(&initialize), "RangeProfilerCounterDataImageInitialize");
    return data;
  }

  void configure(const Group &group, std::vector<std::uint8_t> &data) {
    TCBOUND_CUPTI_ARGUMENTS(RangeProfiler_SetConfig, arguments);
    arguments.pRangeProfilerObject = profiler_;
    arguments.configSize = group.image.size();
    arguments.pConfig = group.image.data();
    arguments.counterDataImageSize = data.size();
    arguments.pCounterDataImage = data.data();
    arguments.range = CUPTI_UserRange;       // all that the work launches is one range,
    arguments.replayMode = CUPTI_UserReplay; // and runs again for each pass
    arguments.maxRangesPerPass = 1;
    arguments.numNestingLevels = 1;
    arguments.minNestingLevel = 1;
    arguments.passIndex = 0;
    arguments.targetNestingLevel = 1;
    cupti_.check(cupti_.RangeProfilerSetConfig(&arguments), "RangeProfilerSetConfig");
  }

  // Whether it was the last. Also when the work fails the profiler must not stay in the midst of it.
  bool pass(const std::function<void()> &work) {
    TCBOUND_CUPTI_ARGUMENTS(RangeProfiler_Start, start);
    start.pRangeProfilerObject = profiler_;
    cupti_.check(cupti_.RangeProfilerStart(&start), "RangeProfilerStart");
    TCBOUND_CUPTI_ARGUMENTS(RangeProfiler_PushRange, push);
    push.pRangeProfilerObject = profiler_;
    push.pRangeName = "tcbound";
    cupti_.check(cupti_.RangeProfilerPushRange(&push), "RangeProfilerPushRange");
    std::exception_ptr failure;
    try {
      work();
      TCBOUND_CUDA(cudaDeviceSynchronize());
    } catch (...) {
      failure = std::current_exception();
    }
    TCBOUND_CUPTI_ARGUMENTS(RangeProfiler_PopRange, pop);
    pop.pRangeProfilerObject = profiler_;
    const CUptiResult popped = cupti_.RangeProfilerPopRange(&pop);
    TCBOUND_CUPTI_ARGUMENTS(RangeProfiler_Stop, stop);
    stop.pRangeProfilerObject = profiler_;
    const CUptiResult stopped = cupti_.RangeProfilerStop(&stop);
    if (failure) std::rethrow_exception(failure);
    cupti_.check(popped, "RangeProfilerPopRange");
    cupti_.check(stopped, "RangeProfilerStop");
    return stop.isAllPassSubmitted;
  }

  const Cupti                &cupti_ = Cupti::get();
  CUpti_RangeProfiler_Object *profiler_ = nullptr;
};

// The plugin does not link the driver's library: the runtime knows its functions.
CUcontext current_context() {
  void                           *function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CUcontext                       context = nullptr;
  TCBOUND_CUDA(cudaFree(nullptr)); // makes the device's context current
  TCBOUND_CUDA(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &function, 4000, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess ||
      reinterpret_cast<decltype(&cuCtxGetCurrent)>(function)(&context) != CUDA_SUCCESS || !context)
    throw Error(ErrorCode::unsupported, "the driver names no current context");
  return context;
}

std::string list(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

class CudaCounters final : public Counters {
public:
  CudaCounters() : context_(current_context()) {
    int device = 0;
    TCBOUND_CUDA(cudaGetDevice(&device));
    TCBOUND_CUPTI_ARGUMENTS(Profiler_Initialize, initialize);
    cupti_.check(cupti_.ProfilerInitialize(&initialize), "ProfilerInitialize");
    try {
      check_supported(device);
      TCBOUND_CUPTI_ARGUMENTS(Device_GetChipName, name);
      name.deviceIndex = static_cast<std::size_t>(device);
      cupti_.check(cupti_.DeviceGetChipName(&name), "DeviceGetChipName");
      std::vector<std::string> lacking;
      groups_ = make_groups(name.pChipName, availability(), lacking);
      if (groups_.empty())
        throw Error(ErrorCode::unsupported, std::string("CUPTI has no counter of ours on ") + name.pChipName);
      if (!lacking.empty()) missing_.push_back("this chip does not count " + list(lacking));
    } catch (...) {
      finish();
      throw;
    }
  }
  ~CudaCounters() override {
    groups_.clear();
    finish();
  }

  MemorySpace space() const override { return MemorySpace::cuda; }

  Counts measure(const std::function<void()> &work) override {
    Counts counts;
    work();
    for (Group &group : groups_) {
      TCBOUND_CUDA(cudaDeviceSynchronize());
      try {
        Session                   session(context_);
        const std::vector<double> values = session.run(group, work);
        for (std::size_t i = 0; i < values.size(); ++i) counts.*group.values[i] = values[i];
      } catch (const Error &e) {
        if (e.code() != ErrorCode::unsupported || &group == &groups_[0]) throw;
        missing_.push_back(list(group.meanings) + " cannot be counted: " + e.what());
        group.failed = true;
      }
    }
    groups_.erase(std::remove_if(groups_.begin(), groups_.end(), [](const Group &group) { return group.failed; }),
                  groups_.end());
    return counts;
  }

  std::vector<std::string> missing() const override { return missing_; }

private:
  void check_supported(int device) const {
    TCBOUND_CUPTI_ARGUMENTS(Profiler_DeviceSupported, arguments);
    arguments.cuDevice = device;
    arguments.api = CUPTI_PROFILER_RANGE_PROFILING;
    cupti_.check(cupti_.ProfilerDeviceSupported(&arguments), "ProfilerDeviceSupported");
    if (arguments.isSupported == CUPTI_PROFILER_CONFIGURATION_SUPPORTED) return;
    const auto  bad = [](CUpti_Profiler_Support_Level level) { return level != CUPTI_PROFILER_CONFIGURATION_SUPPORTED; };
    std::string why = bad(arguments.architecture)          ? "its compute capability is below 7.0"
                      : bad(arguments.sli)                 ? "SLI is on"
                      : bad(arguments.vGpu)                ? "it is a virtual GPU without profiling"
                      : bad(arguments.confidentialCompute) ? "confidential computing is on"
                      : bad(arguments.cmp)                 ? "it is a mining processor"
                      : bad(arguments.wsl)                 ? "the driver is that of WSL"
                                                           : "no reason is given";
    throw Error(ErrorCode::unsupported, "CUPTI cannot read this device's counters: " + why);
  }

  std::vector<std::uint8_t> availability() const {
    TCBOUND_CUPTI_ARGUMENTS(Profiler_GetCounterAvailability, arguments);
    arguments.ctx = context_;
    cupti_.check(cupti_.ProfilerGetCounterAvailability(&arguments), "ProfilerGetCounterAvailability");
    std::vector<std::uint8_t> image(arguments.counterAvailabilityImageSize);
    arguments.pCounterAvailabilityImage = image.data();
    cupti_.check(cupti_.ProfilerGetCounterAvailability(&arguments), "ProfilerGetCounterAvailability");
    return image;
  }

  void finish() const {
    TCBOUND_CUPTI_ARGUMENTS(Profiler_DeInitialize, arguments);
    cupti_.ProfilerDeInitialize(&arguments);
  }

  const Cupti             &cupti_ = Cupti::get();
  CUcontext                context_;
  std::vector<Group>       groups_;
  std::vector<std::string> missing_;
};

} // namespace

std::unique_ptr<Counters> make_cuda_counters(Executor &executor) {
  if (executor.space() != MemorySpace::cuda) throw Error(ErrorCode::unsupported, "hardware counters are those of a device");
  return std::make_unique<CudaCounters>();
}

CounterPlan plan_counters(const std::string &chip) {
  CounterPlan plan;
  for (const Group &group : make_groups(chip, {}, plan.missing)) {
    plan.metrics.insert(plan.metrics.end(), group.metrics.begin(), group.metrics.end());
    plan.passes += group.passes;
  }
  return plan;
}
#else
static const char no_headers[] = "this library was built without CUPTI's range profiler (CUDA 12.6 and newer have its headers)";

std::unique_ptr<Counters> make_cuda_counters(Executor &) { throw Error(ErrorCode::unsupported, no_headers); }
CounterPlan               plan_counters(const std::string &) { throw Error(ErrorCode::unsupported, no_headers); }
#endif

} // namespace tcbound
