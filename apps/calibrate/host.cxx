#include "host.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <sched.h>
#include <set>
#include <thread>
#include <unistd.h>

#include "../../kernels/executor.h"
#include "host_fma.h"

namespace tcbound::calibrate {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<int> usable_cores() {
  std::vector<int> cores;
  cpu_set_t        set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

// Each thread stays on a core of its own, so that the pages it touches first stay near it.
void stay_on(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof(set), &set); // only the speed depends on it
}

// Where all threads wait for each other. They yield, for there may be more of them than cores.
class Barrier {
public:
  explicit Barrier(int threads) : threads_(threads) {}
  void wait() {
    const int round = round_.load();
    if (waiting_.fetch_add(1) + 1 == threads_) {
      waiting_.store(0);
      round_.store(round + 1);
    } else {
      while (round_.load() == round) std::this_thread::yield();
    }
  }

private:
  const int        threads_;
  std::atomic<int> waiting_{0}, round_{0};
};

// Calls work(thread) on all threads at once, again and again, and gives the seconds of each pass but the first: of the slowest
// thread, from when all are ready.
template <class Work> std::vector<double> seconds_of_passes(int threads, int passes, double most_seconds, const Work &work) {
  const std::vector<int>   cores = usable_cores();
  Barrier                  barrier(threads);
  std::vector<double>      seconds;
  std::atomic<bool>        more{true};
  std::vector<std::thread> team;
  const auto               member = [&](int thread) {
    if (threads <= static_cast<int>(cores.size())) stay_on(cores[static_cast<std::size_t>(thread)]);
    double spent = 0;
    for (int pass = 0; more; ++pass) {
      barrier.wait();
      const auto start = Clock::now();
      work(thread);
      barrier.wait();
      if (thread == 0) {
        const double s = std::chrono::duration<double>(Clock::now() - start).count();
        if (pass > 0) seconds.push_back(s);
        spent += s;
        more = pass < passes && (pass < 5 || spent < most_seconds);
      }
      barrier.wait(); // before anyone reads `more`
    }
  };
  for (int thread = 0; thread < threads; ++thread) team.emplace_back(member, thread);
  for (std::thread &t : team) t.join();
  return seconds;
}

struct Cache {
  int    level;
  double bytes;
};

// The caches of cores, each once however many of them share it (Linux, Documentation/ABI: sysfs-devices-system-cpu).
std::vector<Cache> caches_of(const std::vector<int> &cores) {
  std::map<std::pair<int, std::string>, double> found; // by level and the cores that share it
  for (const int core : cores)
    for (int index = 0;; ++index) {
      const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(core) + "/cache/index" + std::to_string(index);
      int               level = 0;
      std::string       type, shared, size;
      if (!(std::ifstream(folder + "/level") >> level)) break;
      std::ifstream(folder + "/type") >> type;
      std::ifstream(folder + "/shared_cpu_list") >> shared;
      std::ifstream(folder + "/size") >> size; // "32768K"
      if (type != "Instruction" && !size.empty()) found[{level, shared}] = 1024 * std::atof(size.c_str());
    }
  std::vector<Cache> caches;
  for (const auto &[key, bytes] : found) caches.push_back({key.first, bytes});
  return caches;
}

// Of the cores that so many threads run on: the bytes of all caches of the last level, and of the level before it.
struct CacheSizes {
  double last = 0, before_last = 0;
};
CacheSizes cache_sizes(int threads) {
  std::vector<int> cores = usable_cores();
  cores.resize(std::min(cores.size(), static_cast<std::size_t>(threads)));
  const std::vector<Cache> caches = caches_of(cores);
  int                      last = 0;
  CacheSizes               sizes;
  for (const Cache &c : caches) last = std::max(last, c.level);
  for (const Cache &c : caches) {
    if (c.level == last) sizes.last += c.bytes;
    if (c.level == last - 1) sizes.before_last += c.bytes;
  }
  if (sizes.last == 0) sizes.last = static_cast<double>(std::max(0L, sysconf(_SC_LEVEL3_CACHE_SIZE)));
  return sizes;
}

struct Slice {
  double      *x, *y, *z;
  std::int64_t size;
};

// Three arrays of `size` numbers, each thread's part touched first by that thread.
class Arrays {
public:
  Arrays(Executor &host, std::int64_t size, int threads)
    : threads_(threads), part_(size / threads / 8 * 8), x_(host, size), y_(host, size), z_(host, size) {
    seconds_of_passes(threads, 0, 0, [&](int thread) {
      const Slice s = slice(thread);
      for (std::int64_t i = 0; i < s.size; ++i) {
        s.x[i] = 1.0 + 1e-9 * static_cast<double>(i);
        s.y[i] = 2.0 - 1e-9 * static_cast<double>(i);
        s.z[i] = 0.0;
      }
    });
  }
  Slice slice(int thread) {
    const std::int64_t first = thread * part_;
    return {x_.data() + first, y_.data() + first, z_.data() + first, part_};
  }
  double bytes() const { return 8.0 * static_cast<double>(part_) * threads_; } // of one array

private:
  int           threads_;
  std::int64_t  part_;
  Array<double> x_, y_, z_;
};

[[gnu::noinline]] void copy(const Slice &s, double) {
  std::memcpy(s.z, s.x, static_cast<std::size_t>(s.size) * sizeof(double));
}

[[gnu::noinline]] void scale(const Slice &s, double q) {
  const double *__restrict__ x = s.x;
  double *__restrict__ z = s.z;
  for (std::int64_t i = 0; i < s.size; ++i) z[i] = q * x[i];
}

[[gnu::noinline]] void triad(const Slice &s, double q) {
  const double *__restrict__ x = s.x;
  const double *__restrict__ y = s.y;
  double *__restrict__ z = s.z;
  for (std::int64_t i = 0; i < s.size; ++i) z[i] = x[i] + q * y[i];
}

// On bits, whose combination the compiler may reorder into vectors.
[[gnu::noinline]] void read(const Slice &s, double) {
  std::uint64_t all = 0;
  for (std::int64_t i = 0; i < s.size; ++i) {
    std::uint64_t word;
    std::memcpy(&word, s.x + i, sizeof(word));
    all ^= word;
  }
  std::memcpy(s.z, &all, sizeof(all));
}

using Kernel = void (*)(const Slice &, double);

std::string mebibytes(double bytes) { return std::to_string(static_cast<long>(bytes / (1 << 20) + 0.5)) + " MiB"; }

constexpr int    passes = 15;
constexpr double most_seconds = 0.4; // of one step; five passes at least

Measurement measure_stream(Arrays &arrays, int threads, Kernel kernel, double arrays_moved, Measurement m, int rounds = 1) {
  m.work = arrays_moved * arrays.bytes() * rounds;
  m.set_seconds(seconds_of_passes(threads, passes, most_seconds, [&](int thread) {
    for (int r = 0; r < rounds; ++r) kernel(arrays.slice(thread), 1.0 + 0.125 * r);
  }));
  return m;
}

Measurements measure_streams(Executor &host, int threads, const Progress &progress) {
  const double mebi = 1 << 20;
  const double free_bytes = static_cast<double>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  // 1 GiB at most: a pass of one thread takes long enough as it is.
  const double      bytes = std::min(std::clamp(4 * cache_sizes(threads).last, 64 * mebi, 1024 * mebi), free_bytes / 8);
  Arrays            arrays(host, static_cast<std::int64_t>(bytes / sizeof(double)), threads);
  const std::string size = mebibytes(arrays.bytes());
  Measurements      all;
  const auto        add = [&](const char *key, const char *what, const std::string &how, Kernel kernel, double arrays_moved) {
    progress(std::string("host: ") + what);
    all.push_back(measure_stream(arrays, threads, kernel, arrays_moved, {key, what, how, Quantity::bandwidth}));
  };
  add("dram_copy", "DRAM copy", "memcpy, reads and writes " + size, copy, 2);
  add("dram_scale", "DRAM scale", "y = q x, reads and writes " + size, scale, 2);
  all.back().field = bandwidth_of("dram");
  add("dram_triad", "DRAM triad", "z = x + q y, reads twice and writes " + size, triad, 3);
  add("dram_read", "DRAM read", "reads " + size, read, 1);
  return all;
}

// y = q x on arrays of so many bytes together, as often as takes 10 ms.
Measurement measure_scale_within(Executor &host, int threads, double bytes, Measurement m) {
  Arrays arrays(host, static_cast<std::int64_t>(bytes / 2 / sizeof(double)), threads);
  m.how = "y = q x on two times " + mebibytes(arrays.bytes()) + ", again and again";
  const double a_round = measure_stream(arrays, threads, scale, 2, m).median(); // bytes/s
  const int    rounds = static_cast<int>(std::clamp(1e-2 * a_round / (2 * arrays.bytes()), 1.0, 1e6));
  return measure_stream(arrays, threads, scale, 2, m, rounds);
}

// Of the last-level cache: the bandwidth of a working set of a quarter of it, and as capacity the largest of 1, 1/2 and 1/4 of
// what the system reports at which the bandwidth is nearer to that than to the memory's. A virtual machine may report the cache
// of a whole socket, of which it has a share.
Measurements measure_cache(Executor &host, int threads, double memory_bandwidth, const Progress &progress) {
  const CacheSizes sizes = cache_sizes(threads);
  Measurement      m("cache_scale", "cache scale", "y = q x inside the last-level cache", Quantity::bandwidth);
  Measurement      capacity("cache_capacity", "cache capacity", "", Quantity::capacity);
  m.keep_in(bandwidth_of("l2"));
  capacity.keep_in({"levels", "l2", "capacity_bytes"});
  progress("host: " + m.what);
  if (sizes.last / 4 <= 2 * sizes.before_last) { // also where nothing is known
    m.why_not = capacity.why_not = "a quarter of the last-level cache (" + mebibytes(sizes.last) +
                                   ") is not well past the level before it (" + mebibytes(sizes.before_last) + ")";
    return {m, capacity};
  }
  m = measure_scale_within(host, threads, sizes.last / 4, m);
  progress("host: " + capacity.what);
  for (const double part : {1.0, 0.5, 0.25}) {
    const double bandwidth = part > 0.25 ? measure_scale_within(host, threads, part * sizes.last, m).median() : m.median();
    if (bandwidth * bandwidth < m.median() * memory_bandwidth) continue;
    capacity.values = {part * sizes.last};
    capacity.how = "of the reported " + mebibytes(sizes.last) + " so much is nearer to the cache's speed than to DRAM's";
    return {m, capacity};
  }
  m.why_not = capacity.why_not =
    "a quarter of what the system reports (" + mebibytes(sizes.last) + ") is no faster than memory";
  m.values.clear();
  return {m, capacity};
}

Measurement measure_fma(int threads, const Progress &progress) {
  Measurement best("fp64_fma", "FP64 FMA", "", Quantity::arithmetic);
  progress("host: " + best.what);
  for (const FmaLoop &loop : fma_loops()) {
    Measurement m("fp64_fma", "FP64 FMA", loop.name, Quantity::arithmetic);
    const auto  time = [&](std::int64_t iterations, int times) {
      std::vector<double> sums(static_cast<std::size_t>(threads) * 8); // a line of cache for each thread
      return seconds_of_passes(threads, times, most_seconds, [&](int thread) {
        sums[static_cast<std::size_t>(thread) * 8] += loop.run(iterations, 1 - 1e-7, 1e-7);
      });
    };
    std::int64_t iterations = 1 << 16;
    iterations =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(iterations) * 2e-2 / time(iterations, 1)[0]));
    m.work = loop.flops * static_cast<double>(iterations) * threads;
    m.set_seconds(time(iterations, passes));
    if (!best.measured() || m.median() > best.median()) best = m;
  }
  best.field = {"peaks_flops_per_s", "host", "fp64"};
  return best;
}

} // namespace

int host_cores() { return std::max(1, static_cast<int>(usable_cores().size())); }

std::vector<int> thread_counts(int most) {
  std::vector<int> counts;
  for (int n = 1; n < most; n *= 2) counts.push_back(n);
  counts.push_back(most);
  return counts;
}

Measurements measure_host(int threads, const Progress &progress) {
  const auto   host = make_host_executor();
  Measurements all = measure_streams(*host, threads, progress); // copy, scale, ...
  for (const Measurement &m : measure_cache(*host, threads, all[1].median(), progress)) all.push_back(m);
  all.push_back(measure_fma(threads, progress));
  return all;
}

} // namespace tcbound::calibrate
