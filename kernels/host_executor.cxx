// The host as an executor: plain memory, no stream, work done when a call returns.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "executor.h"

namespace tcbound {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string processor_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos) return line.substr(line.find(": ") + 2);
  return "host";
}

std::string system_name() {
  utsname system;
  return uname(&system) == 0 ? std::string(system.sysname) + ' ' + system.release : std::string();
}

// sysconf answers 0 or -1 where it does not know.
std::size_t known(long value) { return value > 0 ? static_cast<std::size_t>(value) : 0; }

class HostInterval final : public Interval {
public:
  void begin() override { begin_ = Clock::now(); }
  void end() override {
    seconds_ = seconds_since(begin_);
    ended_ = true;
  }
  bool   ready() override { return ended_; }
  double seconds() override { return seconds_; }

private:
  Clock::time_point begin_ = Clock::now();
  double            seconds_ = 0.0;
  bool              ended_ = false;
};

class HostExecutor final : public Executor {
public:
  HostExecutor() {
    device_.name = processor_name();
    device_.driver = system_name();
    device_.l2_bytes = known(sysconf(_SC_LEVEL3_CACHE_SIZE));
  }

  const Device &device() const override { return device_; }

  void *allocate(std::size_t bytes) override {
    const std::size_t line = 64;                   // bytes of a cache line and of the widest vector register
    const std::size_t huge = std::size_t(1) << 21; // bytes of a large page
    const std::size_t unit = bytes >= 2 * huge ? huge : line;
    const std::size_t rounded = (bytes + unit - 1) / unit * unit;
    void             *memory = rounded >= bytes ? std::aligned_alloc(unit, std::max(rounded, unit)) : nullptr;
#ifdef MADV_HUGEPAGE
    // Large arrays in large pages, where the system gives them: they are written for the first time in a third of the time.
    if (memory && unit == huge) madvise(memory, rounded, MADV_HUGEPAGE);
#endif
    if (!memory) {
      const std::size_t available = known(sysconf(_SC_AVPHYS_PAGES)) * known(sysconf(_SC_PAGESIZE));
      throw Error(ErrorCode::out_of_memory, "cannot allocate " + std::to_string(bytes) + " bytes of host memory; " +
                                              std::to_string(available) + " are free");
    }
    return memory;
  }

  void release(void *memory) noexcept override { std::free(memory); }

  void copy(void *to, MemorySpace to_space, const void *from, MemorySpace from_space, std::size_t bytes) override {
    if (to_space != MemorySpace::host || from_space != MemorySpace::host)
      throw Error(ErrorCode::unsupported, "a host executor cannot reach device memory");
    if (bytes > 0) std::memmove(to, from, bytes);
  }

  void  synchronize() override {}
  void  set_stream(void *) override {}
  void *stream() const override { return nullptr; }

  std::unique_ptr<Interval> interval() override { return std::make_unique<HostInterval>(); }

  double measure_bandwidth() override;
  double measure_peak() override;
  double measure_launch() override;

private:
  Device device_;
};

double HostExecutor::measure_bandwidth() {
  const std::size_t mega = std::size_t(1) << 20;
  // A virtual machine may report the whole socket's cache, of which it has a share: 128 MB an array, with every rank of a
  // node measuring at once, is past that and does not take a second to fill.
  const std::size_t  bytes = std::clamp(4 * device_.l2_bytes, 32 * mega, 128 * mega);
  const std::int64_t size = static_cast<std::int64_t>(bytes / sizeof(double));
  Array<double>      from(*this, size), to(*this, size);
  const double      *x = from.data();
  double            *y = to.data();
  std::fill_n(from.data(), size, 1.0);
  std::fill_n(to.data(), size, 0.0); // so that no pass meets a page for the first time
  std::vector<double> times;
  double              spent = 0.0;
  // Seven passes where they fit in 0.1 s, three where the caches are so large that they do not.
  while (times.size() < 3 || (times.size() < 7 && spent < 0.1)) {
    const double q = 1.0 + static_cast<double>(times.size()) / 16; // another factor each pass, or the compiler may skip it
    const auto   start = Clock::now();
    for (std::int64_t i = 0; i < size; ++i) y[i] = q * x[i];
    times.push_back(seconds_since(start));
    spent += times.back();
    volatile double used = y[size / 2];
    (void)used;
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return 2.0 * static_cast<double>(bytes) / times[times.size() / 2];
}

// GCC makes a version per instruction set and the loader picks the one of this processor (the run time of a sanitizer is not up
// yet when it does). A ceiling, and so optimized in debugging builds too.
#if defined(__GNUC__) && !defined(__clang__)
#define TCBOUND_OPTIMIZED optimize("O3"), no_sanitize("address", "undefined")
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define TCBOUND_PEAK __attribute__((TCBOUND_OPTIMIZED, target_clones("default", "arch=haswell", "arch=skylake-avx512")))
#else
#define TCBOUND_PEAK __attribute__((TCBOUND_OPTIMIZED))
#endif
#else
#define TCBOUND_PEAK
#endif

// Independent multiply-adds on as many elements as fill the vector registers.
TCBOUND_PEAK double multiply_adds(int rounds, double a, double b) {
  constexpr int lanes = 64;
  double        sums[lanes];
  for (int i = 0; i < lanes; ++i) sums[i] = i;
  for (int round = 0; round < rounds; ++round)
    for (int i = 0; i < lanes; ++i) sums[i] = sums[i] * a + b;
  double total = 0;
  for (double sum : sums) total += sum;
  return total;
}

double HostExecutor::measure_peak() {
  const int rounds = 50000; // 6.4 MFLOP, below 1 ms
  double    best = 0;
  for (int pass = 0; pass < 9; ++pass) {
    const auto      start = Clock::now();
    volatile double used = multiply_adds(rounds, 0.999, 1e-3 * pass);
    (void)used;
    best = std::max(best, 2.0 * 64 * rounds / seconds_since(start));
  }
  return best;
}

double HostExecutor::measure_launch() {
  std::vector<double> times;
  for (int pass = 0; pass < 101; ++pass) {
    HostInterval interval;
    interval.begin();
    interval.end();
    times.push_back(interval.seconds());
  }
  std::nth_element(times.begin(), times.begin() + 50, times.end());
  return std::max(times[50], 1e-9); // of the clock's resolution at least
}

} // namespace

std::unique_ptr<Executor> make_host_executor() { return std::make_unique<HostExecutor>(); }

} // namespace tcbound
