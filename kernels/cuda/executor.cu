// One CUDA device as an executor: device memory, kept for reuse, and a stream.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "../executor.h"
#include "error.h"
#include "memory_pool.h"

namespace tcbound {
namespace {

constexpr std::size_t allocation_slack = 256;                 // bytes beyond the end of what is allocated
constexpr std::size_t staging_bytes = std::size_t(128) << 10; // of host memory that small copies to the host go through
constexpr std::size_t kept_share = 64;                        // so small a part of a device's memory is kept at most

// One element a thread: the launch that measured the copy ceiling of FACTS.md.
__global__ void scale_pairs(const double2 *__restrict__ x, double2 *__restrict__ y, double q, std::int64_t size) {
  const std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
  if (i < size) {
    const double2 v = x[i];
    y[i] = make_double2(q * v.x, q * v.y);
  }
}

// The same many times over, past the L1 (__ldcg), in one launch: one pass over an L2 would take no longer than a launch.
__global__ void scale_pairs_repeatedly(const double2 *x, double2 *y, double q, std::int64_t size, int rounds) {
  const std::int64_t first = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
  const std::int64_t stride = gridDim.x * static_cast<std::int64_t>(blockDim.x);
  for (int round = 0; round < rounds; ++round) {
    for (std::int64_t i = first; i < size; i += stride) {
      const double2 v = __ldcg(x + i);
      y[i] = make_double2(q * v.x, q * v.y);
    }
    q += 1.0;
  }
}

__global__ void empty() {}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  ..." tells the display driver; in some containers only the version
// of CUDA that it supports is known.
std::string driver_version() {
  std::ifstream     file("/proc/driver/nvidia/version");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::smatch       match;
  if (std::regex_search(text, match, std::regex("\\b[0-9]+\\.[0-9.]*[0-9]\\b"))) return match.str();
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) return {};
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

class CudaInterval final : public Interval {
public:
  explicit CudaInterval(Executor &executor) : executor_(executor) {
    TCBOUND_CUDA(cudaEventCreate(&begin_));
    const cudaError_t status = cudaEventCreate(&end_);
    if (status != cudaSuccess) {
      cudaEventDestroy(begin_);
      TCBOUND_CUDA(status);
    }
  }
  ~CudaInterval() override {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  void begin() override {
    ended_ = false;
    TCBOUND_CUDA(cudaEventRecord(begin_, static_cast<cudaStream_t>(executor_.stream())));
  }
  void end() override {
    TCBOUND_CUDA(cudaEventRecord(end_, static_cast<cudaStream_t>(executor_.stream())));
    ended_ = true;
  }
  bool ready() override {
    if (!ended_) return false;
    const cudaError_t status = cudaEventQuery(end_);
    if (status == cudaErrorNotReady) return false;
    TCBOUND_CUDA(status);
    return true;
  }
  double seconds() override {
    float milliseconds = 0.0F;
    TCBOUND_CUDA(cudaEventSynchronize(end_));
    TCBOUND_CUDA(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return 1e-3 * static_cast<double>(milliseconds);
  }

private:
  Executor   &executor_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  bool        ended_ = false;
};

class CudaExecutor final : public Executor {
public:
  explicit CudaExecutor(const cudaDeviceProp &properties) : pool_(properties.totalGlobalMem / kept_share) {
    device_.space = MemorySpace::cuda;
    device_.name = properties.name;
    device_.id.assign(properties.uuid.bytes, sizeof(properties.uuid.bytes));
    device_.driver = driver_version();
    device_.compute_major = properties.major;
    device_.compute_minor = properties.minor;
    device_.multiprocessors = properties.multiProcessorCount;
    device_.memory_bytes = properties.totalGlobalMem;
    device_.l2_bytes = static_cast<std::size_t>(properties.l2CacheSize);
    device_.shared_bytes = properties.sharedMemPerBlockOptin;
  }
  ~CudaExecutor() override {
    if (staging_) cudaFreeHost(staging_);
  }

  const Device &device() const override { return device_; }

  // More than asked for: kernels read whole 16-byte pieces and may so pass the end of an array.
  void *allocate(std::size_t bytes) override {
    const std::size_t padded = bytes + allocation_slack;
    void             *memory = padded > bytes ? pool_.allocate(padded) : nullptr;
    if (!memory) {
      std::size_t available = 0, total = 0;
      cudaMemGetInfo(&available, &total);
      throw Error(ErrorCode::out_of_memory, "cannot allocate " + std::to_string(bytes) + " bytes on " + device_.name + "; " +
                                              std::to_string(available) + " of " + std::to_string(total) + " are free");
    }
    return memory;
  }

  void release(void *memory) noexcept override { pool_.release(memory); }

  void copy(void *to, MemorySpace to_space, const void *from, MemorySpace from_space, std::size_t bytes) override {
    if (bytes == 0) return;
    if (to_space == MemorySpace::host && from_space != MemorySpace::host && bytes <= staging_bytes)
      return copy_small_to_host(to, from, bytes);
    const bool to_host = to_space == MemorySpace::host, from_host = from_space == MemorySpace::host;
    const auto kind = to_host ? (from_host ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost)
                              : (from_host ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice);
    TCBOUND_CUDA(cudaMemcpyAsync(to, from, bytes, kind, stream_));
    if (to_host || from_host) synchronize();
  }

  void synchronize() override { TCBOUND_CUDA(cudaStreamSynchronize(stream_)); }
  // What formats keep between products (counters, copies of vectors) may be in use on the other stream, which may be destroyed by now.
  void set_stream(void *stream) override {
    if (stream != stream_) cudaDeviceSynchronize(); // an error shows at the next call
    stream_ = static_cast<cudaStream_t>(stream);
  }
  void *stream() const override { return stream_; }

  std::unique_ptr<Interval> interval() override { return std::make_unique<CudaInterval>(*this); }

  double measure_bandwidth() override;
  double measure_cache_bandwidth() override;
  double measure_launch() override;

private:
  // By way of memory that the device writes to itself, which is faster than to any other.
  void copy_small_to_host(void *to, const void *from, std::size_t bytes) {
    if (!staging_) TCBOUND_CUDA(cudaMallocHost(&staging_, staging_bytes));
    TCBOUND_CUDA(cudaMemcpyAsync(staging_, from, bytes, cudaMemcpyDeviceToHost, stream_));
    synchronize();
    std::memcpy(to, staging_, bytes);
  }

  Device       device_;
  cudaStream_t stream_ = nullptr;
  void        *staging_ = nullptr;
  MemoryPool   pool_;
};

// Median time of run(), with before() ahead of each in the stream.
template <class Run, class Before>
double median_seconds(CudaExecutor &executor, int passes, const Run &run, const Before &before) {
  CudaInterval        interval(executor);
  std::vector<double> times;
  const int           warm_up = 2;
  for (int pass = 0; pass < warm_up + passes; ++pass) {
    before();
    interval.begin();
    run();
    TCBOUND_LAUNCHED();
    interval.end();
    const double seconds = interval.seconds();
    if (pass >= warm_up) times.push_back(seconds);
  }
  std::nth_element(times.begin(), times.begin() + passes / 2, times.end());
  return times[static_cast<std::size_t>(passes / 2)];
}

template <class Run> double median_seconds(CudaExecutor &executor, int passes, const Run &run) {
  return median_seconds(executor, passes, run, [] {});
}

double CudaExecutor::measure_bandwidth() {
  std::size_t available = 0, total = 0;
  TCBOUND_CUDA(cudaMemGetInfo(&available, &total));
  // 1 GiB an array is 17 times the L2 of an H200; beside a large problem a quarter of what is left has to do.
  const std::size_t  bytes = std::min(std::size_t(1) << 30, available / 4) / sizeof(double2) * sizeof(double2);
  const std::int64_t size = static_cast<std::int64_t>(bytes / sizeof(double2));
  if (size == 0) throw Error(ErrorCode::out_of_memory, "no free memory on " + device_.name + " to measure its bandwidth with");
  Array<double2> x(*this, size), y(*this, size);
  const unsigned threads = 256, blocks = static_cast<unsigned>((size + threads - 1) / threads);
  TCBOUND_CUDA(cudaMemsetAsync(x.data(), 0, bytes, stream_));
  return 2.0 * static_cast<double>(bytes) /
         median_seconds(*this, 7, [&] { scale_pairs<<<blocks, threads, 0, stream_>>>(x.data(), y.data(), 1.5, size); });
}

// Both arrays fill half of the L2.
double CudaExecutor::measure_cache_bandwidth() {
  const std::int64_t size = static_cast<std::int64_t>(device_.l2_bytes / 4 / sizeof(double2));
  const int          rounds = 50;
  const unsigned     threads = 256, blocks = static_cast<unsigned>(device_.multiprocessors) * 8; // all resident
  if (size == 0) return 0;
  Array<double2> x(*this, size), y(*this, size);
  TCBOUND_CUDA(cudaMemsetAsync(x.data(), 0, static_cast<std::size_t>(size) * sizeof(double2), stream_));
  return 2.0 * static_cast<double>(size) * sizeof(double2) * rounds / median_seconds(*this, 7, [&] {
           scale_pairs_repeatedly<<<blocks, threads, 0, stream_>>>(x.data(), y.data(), 1.5, size, rounds);
         });
}

double CudaExecutor::measure_launch() {
  // Behind other work, as in an application whose host runs ahead: else the time that the host takes to submit it counts too.
  std::size_t available = 0, total = 0;
  TCBOUND_CUDA(cudaMemGetInfo(&available, &total));
  Array<char> busy(*this, static_cast<std::int64_t>(std::min(std::size_t(64) << 20, available / 4)));
  return median_seconds(
    *this, 31, [&] { empty<<<1, 1, 0, stream_>>>(); },
    [&] { TCBOUND_CUDA(cudaMemsetAsync(busy.data(), 0, static_cast<std::size_t>(busy.bytes()), stream_)); });
}

} // namespace

int cuda_device_count(std::string *why_not) {
  int               count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return count;
  cudaGetLastError(); // a machine without a device is no error of the next CUDA call
  if (why_not) {
    if (status == cudaSuccess || status == cudaErrorNoDevice) {
      *why_not = "this machine has no CUDA device that this process may use";
    } else if (status == cudaErrorInsufficientDriver) {
      *why_not = "there is no CUDA driver on this machine, or it is older than the CUDA runtime of this library";
    } else {
      *why_not = std::string("CUDA reports: ") + cudaGetErrorString(status);
    }
  }
  return 0;
}

std::unique_ptr<Executor> make_cuda_executor(int device) {
  std::string why_not;
  const int   count = cuda_device_count(&why_not);
  if (count == 0) throw Error(ErrorCode::unsupported, why_not);
  if (device < 0 || device >= count)
    throw Error(ErrorCode::invalid,
                "there is no CUDA device " + std::to_string(device) + ": the devices are 0 to " + std::to_string(count - 1));
  cudaDeviceProp properties;
  TCBOUND_CUDA(cudaSetDevice(device));
  TCBOUND_CUDA(cudaGetDeviceProperties(&properties, device));
  return std::make_unique<CudaExecutor>(properties);
}

} // namespace tcbound
