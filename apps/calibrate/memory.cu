// Bandwidths of the device's memories. Arrays hold random numbers: constant data has been seen to run faster (less switching,
// and compressible). What a thread reads it combines and writes out, so that no load can be left out.
#include <algorithm>
#include <cstdio>

#include "cuda_launch.h"
#include "device.h"
#include "timing.h"

namespace tcbound::calibrate {
namespace {

constexpr int repeats = 15;

__device__ std::int64_t global_thread() { return blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; }

__device__ void combine(uint4 &all, const uint4 &word) {
  all.x ^= word.x;
  all.y ^= word.y;
  all.z ^= word.z;
  all.w ^= word.w;
}

__device__ std::uint32_t combined(const uint4 &word) { return word.x ^ word.y ^ word.z ^ word.w; }

// Numbers in [1, 2) with random mantissas.
__global__ void fill(double2 *x, std::int64_t size) {
  const std::int64_t i = global_thread();
  if (i >= size) return;
  const auto seed = static_cast<std::uint32_t>(i);
  x[i] = make_double2(1.0 + random_of(seed) * 0x1p-32, 1.0 + random_of(~seed) * 0x1p-32);
}

// DRAM: one 16-byte element a thread, the launch that reaches the highest copy bandwidth on an H200.

__global__ void scale(const double2 *__restrict__ x, double2 *__restrict__ y, double q, std::int64_t size) {
  const std::int64_t i = global_thread();
  if (i < size) {
    const double2 v = x[i];
    y[i] = make_double2(q * v.x, q * v.y);
  }
}

__global__ void triad(const double2 *__restrict__ x, const double2 *__restrict__ y, double2 *__restrict__ z, double q,
                      std::int64_t size) {
  const std::int64_t i = global_thread();
  if (i < size) {
    const double2 v = x[i], w = y[i];
    z[i] = make_double2(v.x + q * w.x, v.y + q * w.y);
  }
}

__global__ void read_once(const uint4 *__restrict__ x, std::uint32_t *__restrict__ out, std::int64_t size) {
  constexpr int      in_flight = 4; // independent loads
  const std::int64_t threads = gridDim.x * static_cast<std::int64_t>(blockDim.x);
  uint4              all = make_uint4(0, 0, 0, 0);
  for (std::int64_t i = global_thread(); i < size; i += in_flight * threads) {
    uint4 word[in_flight];
#pragma unroll
    for (int k = 0; k < in_flight; ++k) word[k] = i + k * threads < size ? __ldcs(x + i + k * threads) : make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int k = 0; k < in_flight; ++k) combine(all, word[k]);
  }
  out[global_thread()] = combined(all);
}

// L2: every thread strides through a set whose size is a power of two, so that each SM meets all of it. Loads with .cg
// pass by L1.

constexpr int l2_threads = 256;

__global__ void __launch_bounds__(l2_threads)
  read_l2(const uint4 *x, std::uint32_t *out, std::uint32_t mask, std::int64_t iterations) {
  constexpr int       in_flight = 4;
  const std::uint32_t threads = gridDim.x * blockDim.x;
  std::uint32_t       i = blockIdx.x * blockDim.x + threadIdx.x;
  uint4               all = make_uint4(0, 0, 0, 0);
  for (std::int64_t n = 0; n < iterations; ++n) {
    uint4 word[in_flight];
#pragma unroll
    for (int k = 0; k < in_flight; ++k, i += threads) word[k] = __ldcg(x + (i & mask));
#pragma unroll
    for (int k = 0; k < in_flight; ++k) combine(all, word[k]);
  }
  out[global_thread()] = combined(all);
}

__global__ void __launch_bounds__(l2_threads)
  scale_l2(const double2 *x, double2 *y, double q, std::uint32_t mask, std::int64_t iterations) {
  constexpr int       in_flight = 4;
  const std::uint32_t threads = gridDim.x * blockDim.x;
  std::uint32_t       i = blockIdx.x * blockDim.x + threadIdx.x;
  for (std::int64_t n = 0; n < iterations; ++n) {
    double2 v[in_flight];
#pragma unroll
    for (int k = 0; k < in_flight; ++k) v[k] = __ldcg(x + ((i + k * threads) & mask));
#pragma unroll
    for (int k = 0; k < in_flight; ++k, i += threads) __stcg(y + (i & mask), make_double2(q * v[k].x, q * v[k].y));
  }
}

// L1 and shared memory: one block an SM reads its own set over and over. Each round the eight lanes that share 128 bytes swap
// places, because from a place that stays the same the assembler loads only once, whatever the loads are declared as.

// A thread reads so many places of 16 bytes. Shared memory: the 48 KiB that a block gets without asking.
constexpr int near_threads = 1024, l1_places = 4, shared_places = 3;

template <int places> __device__ std::uint32_t read_over_and_over(const uint4 *set, std::int64_t iterations) {
  uint4 all = make_uint4(0, 0, 0, 0);
  for (std::int64_t n = 0; n < iterations; ++n) {
    const uint4 *from = set + (threadIdx.x ^ (static_cast<unsigned>(n) & 7U));
    uint4        word[places];
#pragma unroll
    for (int k = 0; k < places; ++k) word[k] = from[k * near_threads];
#pragma unroll
    for (int k = 0; k < places; ++k) combine(all, word[k]);
  }
  return combined(all);
}

__global__ void __launch_bounds__(near_threads) read_l1(const uint4 *x, std::uint32_t *out, std::int64_t iterations) {
  const uint4 *set = x + blockIdx.x * std::int64_t(near_threads * l1_places);
  out[global_thread()] = read_over_and_over<l1_places>(set, iterations);
}

__global__ void __launch_bounds__(near_threads) read_shared(const uint4 *x, std::uint32_t *out, std::int64_t iterations) {
  __shared__ uint4 set[shared_places * near_threads];
  for (int k = 0; k < shared_places; ++k) set[threadIdx.x + k * near_threads] = x[threadIdx.x + k * near_threads];
  __syncthreads();
  out[global_thread()] = read_over_and_over<shared_places>(set, iterations);
}

unsigned blocks_for(std::int64_t size, int threads) { return static_cast<unsigned>((size + threads - 1) / threads); }

std::string amount(double bytes) {
  char text[32];
  if (bytes >= 1 << 30)
    std::snprintf(text, sizeof(text), "%.3g GiB", bytes / (1 << 30));
  else if (bytes >= 1 << 20)
    std::snprintf(text, sizeof(text), "%.3g MiB", bytes / (1 << 20));
  else
    std::snprintf(text, sizeof(text), "%.3g KiB", bytes / 1024);
  return text;
}

Array<double2> random_array(Executor &device, std::int64_t size) {
  Array<double2> x(device, size);
  fill<<<blocks_for(size, 256), 256, 0, stream_of(device)>>>(x.data(), size);
  TCBOUND_LAUNCHED();
  return x;
}

Measurements measure_dram(Executor &device, const Progress &progress) {
  std::size_t available = 0, total = 0;
  TCBOUND_CUDA(cudaMemGetInfo(&available, &total));
  const std::size_t  most = std::size_t(4) << 30; // bytes an array; 70 times the L2 of an H200
  const std::size_t  bytes = std::min(most, available / 4) / (1 << 20) * (1 << 20);
  const std::int64_t size = static_cast<std::int64_t>(bytes / sizeof(double2));
  if (bytes < 4 * device.device().l2_bytes)
    throw Error(ErrorCode::out_of_memory, device.device().name + " has " + amount(double(available)) +
                                            " of free memory: too little for arrays of four times its L2");
  Array<double2>       x = random_array(device, size), y = random_array(device, size), z(device, size);
  const int            threads = 256, read_threads = 512, read_blocks = 8 * device.device().multiprocessors;
  Array<std::uint32_t> out(device, std::int64_t(read_threads) * read_blocks);
  const cudaStream_t   stream = stream_of(device);
  const std::string    size_text = amount(double(bytes));
  Measurements         all;
  const auto           add = [&](const Measurement &m, const std::function<void()> &launch) {
    progress(m.what);
    all.push_back(m);
    all.back().set_seconds(seconds_of(device, repeats, launch));
  };
  const auto row = [&](const char *key, const char *what, const std::string &how, double moved) {
    return Measurement(key, what, how, Quantity::bandwidth, moved);
  };
  const double one = double(bytes);
  add(row("dram_copy", "DRAM copy", "cudaMemcpyAsync on the device, reads and writes " + size_text, 2 * one),
      [&] { TCBOUND_CUDA(cudaMemcpyAsync(y.data(), x.data(), bytes, cudaMemcpyDeviceToDevice, stream)); });
  Measurement scaled = row("dram_scale", "DRAM scale", "y = q x, reads and writes " + size_text, 2 * one);
  scaled.keep_in(bandwidth_of("dram"));
  add(scaled, [&] {
    scale<<<blocks_for(size, threads), threads, 0, stream>>>(x.data(), y.data(), 1.5, size);
    TCBOUND_LAUNCHED();
  });
  add(row("dram_triad", "DRAM triad", "z = x + q y, reads twice and writes " + size_text, 3 * one), [&] {
    triad<<<blocks_for(size, threads), threads, 0, stream>>>(x.data(), y.data(), z.data(), 1.5, size);
    TCBOUND_LAUNCHED();
  });
  add(row("dram_read", "DRAM read", "reads " + size_text, one + double(out.bytes())), [&] {
    read_once<<<read_blocks, read_threads, 0, stream>>>(reinterpret_cast<const uint4 *>(x.data()), out.data(), size);
    TCBOUND_LAUNCHED();
  });
  return all;
}

// A kernel whose loop runs as long as asked; `moved` bytes an iteration.
Measurement measure_loop(Executor &device, Measurement m, double moved, const std::function<void(std::int64_t)> &launch) {
  const std::int64_t iterations = iterations_for(device, 2e-3, launch);
  m.work = moved * static_cast<double>(iterations);
  m.set_seconds(seconds_of(device, repeats, [&] { launch(iterations); }));
  return m;
}

Measurements measure_l2(Executor &device, const Progress &progress) {
  std::size_t bytes = 1; // a third of the L2 at most: it may be two halves that keep copies of what the other has
  while (2 * bytes <= device.device().l2_bytes / 3) bytes *= 2;
  const std::int64_t size = static_cast<std::int64_t>(bytes / sizeof(double2));
  const unsigned     read_blocks = one_wave(device, read_l2, l2_threads), both_blocks = one_wave(device, scale_l2, l2_threads);
  const double       a_block = 4.0 * 16 * l2_threads; // bytes, of four loads by every thread
  Array<double2>     x = random_array(device, size), y(device, size / 2);
  Array<std::uint32_t> out(device, std::int64_t(l2_threads) * read_blocks);
  Measurement read("l2_read", "L2 read", "reads " + amount(double(bytes)) + " again and again, past L1", Quantity::bandwidth);
  Measurement both("l2_scale", "L2 scale", "y = q x on two times " + amount(double(bytes) / 2) + ", again and again",
                   Quantity::bandwidth);
  both.keep_in(bandwidth_of("l2"));
  read.against = bandwidth_of("l2");
  progress(read.what);
  read = measure_loop(device, read, a_block * read_blocks, [&](std::int64_t iterations) {
    read_l2<<<read_blocks, l2_threads, 0, stream_of(device)>>>(reinterpret_cast<const uint4 *>(x.data()), out.data(),
                                                               static_cast<std::uint32_t>(size - 1), iterations);
    TCBOUND_LAUNCHED();
  });
  progress(both.what);
  both = measure_loop(device, both, 2 * a_block * both_blocks, [&](std::int64_t iterations) {
    scale_l2<<<both_blocks, l2_threads, 0, stream_of(device)>>>(x.data(), y.data(), 1.5,
                                                                static_cast<std::uint32_t>(size / 2 - 1), iterations);
    TCBOUND_LAUNCHED();
  });
  return {read, both};
}

Measurements measure_near(Executor &device, const Progress &progress) {
  const int            blocks = device.device().multiprocessors;
  const std::int64_t   l1_set = std::int64_t(near_threads) * l1_places, shared_set = std::int64_t(near_threads) * shared_places;
  Array<double2>       x = random_array(device, l1_set * blocks);
  Array<std::uint32_t> out(device, std::int64_t(near_threads) * blocks);
  const auto          *words = reinterpret_cast<const uint4 *>(x.data());
  const cudaStream_t   stream = stream_of(device);
  const double         l1_bytes = 16.0 * static_cast<double>(l1_set), shared_bytes = 16.0 * static_cast<double>(shared_set);
  Measurement          l1("l1_read", "L1 read", "every SM reads " + amount(l1_bytes) + " again and again", Quantity::bandwidth);
  Measurement shared("shared_read", "shared memory read", "every SM reads " + amount(shared_bytes) + " again and again",
                     Quantity::bandwidth);
  l1.keep_in(bandwidth_of("l1"));
  shared.against = bandwidth_of("l1");
  progress(l1.what);
  TCBOUND_CUDA(cudaFuncSetAttribute(read_l1, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxL1));
  l1 = measure_loop(device, l1, l1_bytes * blocks, [&](std::int64_t iterations) {
    read_l1<<<blocks, near_threads, 0, stream>>>(words, out.data(), iterations);
    TCBOUND_LAUNCHED();
  });
  progress(shared.what);
  shared = measure_loop(device, shared, shared_bytes * blocks, [&](std::int64_t iterations) {
    read_shared<<<blocks, near_threads, 0, stream>>>(words, out.data(), iterations);
    TCBOUND_LAUNCHED();
  });
  return {l1, shared};
}

} // namespace

Measurements measure_memory(Executor &device, const Progress &progress) {
  Measurements all = measure_dram(device, progress);
  for (const auto &measure : {measure_l2, measure_near})
    for (Measurement &m : measure(device, progress)) all.push_back(std::move(m));
  return all;
}

} // namespace tcbound::calibrate
