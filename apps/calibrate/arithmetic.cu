// Peaks of the arithmetic units: loops of one instruction on registers, with enough independent chains and warps that its
// latency does not show. Operands are random numbers; every sum is written out.
#include <algorithm>
#include <type_traits>

#include "cuda_launch.h"
#include "device.h"
#include "mma_shapes.h"
#include "timing.h"

namespace tcbound::calibrate {
namespace {

constexpr int    repeats = 15, threads = 256;
constexpr double pass_seconds = 5e-3;

// Of a place in a thread's registers.
__device__ std::uint32_t random_at(std::uint32_t place) {
  return random_of(place * 0x9e3779b9U + blockIdx.x * blockDim.x + threadIdx.x);
}

constexpr int fma_chains = 8, fma_rounds = 32; // 256 FMAs an iteration: its loop costs about 1 % of the issue slots

template <class T> __device__ T fma_loop(T factor, T summand, int iterations) {
  T r[fma_chains];
#pragma unroll
  for (int k = 0; k < fma_chains; ++k) r[k] = T(random_at(static_cast<std::uint32_t>(k))) * T(0x1p-32);
#pragma unroll 1
  for (int n = 0; n < iterations; ++n) {
#pragma unroll
    for (int round = 0; round < fma_rounds; ++round)
#pragma unroll
      for (int k = 0; k < fma_chains; ++k) r[k] = fma(r[k], factor, summand);
  }
  T sum = 0;
#pragma unroll
  for (int k = 0; k < fma_chains; ++k) sum += r[k];
  return sum;
}

template <class T> __global__ void __launch_bounds__(threads) fused_multiply_add(T *out, T factor, T summand, int iterations) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = fma_loop(factor, summand, iterations);
}

// Clock cycles and nanoseconds of one block's loop while all SMs run it.
__global__ void __launch_bounds__(threads)
  count_cycles(double *out, long long *cycles, long long *nanoseconds, int iterations) {
  long long begin, end;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  const long long first = clock64();
  out[blockIdx.x * blockDim.x + threadIdx.x] = fma_loop(1.0 - 1e-7, 1e-7, iterations);
  const long long last = clock64();
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(end));
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    *cycles = last - first;
    *nanoseconds = end - begin;
  }
}

constexpr int mma_rounds = 8; // instructions an iteration: so many times the chains

template <class Shape>
__global__ void __launch_bounds__(threads) multiply_accumulate(typename Shape::Sum *out, int iterations) {
  typename Shape::Operand a[Shape::a], b[Shape::b];
  typename Shape::Sum     c[Shape::chains][Shape::c];
#pragma unroll
  for (int i = 0; i < Shape::a; ++i) a[i] = Shape::Type::operand(random_at(static_cast<std::uint32_t>(i)));
#pragma unroll
  for (int i = 0; i < Shape::b; ++i) b[i] = Shape::Type::operand(random_at(static_cast<std::uint32_t>(16 + i)));
#pragma unroll
  for (int k = 0; k < Shape::chains; ++k)
#pragma unroll
    for (int i = 0; i < Shape::c; ++i) c[k][i] = typename Shape::Sum(k + i);
#pragma unroll 1
  for (int n = 0; n < iterations; ++n) {
#pragma unroll
    for (int round = 0; round < mma_rounds; ++round)
#pragma unroll
      for (int k = 0; k < Shape::chains; ++k) Shape::multiply(c[k], a, b);
  }
  typename Shape::Sum sum = 0;
#pragma unroll
  for (int k = 0; k < Shape::chains; ++k)
#pragma unroll
    for (int i = 0; i < Shape::c; ++i) sum += c[k][i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

template <class Launch> Measurement measure_loop(Executor &device, Measurement m, double flops, Launch launch) {
  const std::int64_t most = 1 << 30; // iterations are an int on the device
  const std::int64_t iterations =
    std::min(most, iterations_for(device, pass_seconds, [&](std::int64_t n) { launch(static_cast<int>(n)); }));
  m.work = flops * static_cast<double>(iterations);
  m.set_seconds(seconds_of(device, repeats, [&] { launch(static_cast<int>(iterations)); }));
  return m;
}

template <class T> Measurement measure_fma(Executor &device, const Progress &progress) {
  const bool        wide = std::is_same_v<T, double>;
  const std::string type = wide ? "fp64" : "fp32";
  const unsigned    blocks = one_wave(device, fused_multiply_add<T>, threads);
  Array<T>          out(device, std::int64_t(threads) * blocks);
  Measurement       m(type + "_fma", (wide ? "FP64" : "FP32") + std::string(" FMA"), "FMA on CUDA cores", Quantity::arithmetic);
  m.keep_in({"peaks_flops_per_s", "cuda_core", type});
  progress(m.what);
  return measure_loop(device, m, 2.0 * fma_chains * fma_rounds * threads * blocks, [&](int iterations) {
    fused_multiply_add<T><<<blocks, threads, 0, stream_of(device)>>>(out.data(), T(1) - T(0x1p-24), T(0x1p-24), iterations);
    TCBOUND_LAUNCHED();
  });
}

template <class Shape> Measurement measure_mma(Executor &device, const Progress &progress) {
  const std::string shape = "m" + std::to_string(Shape::m) + "n" + std::to_string(Shape::n) + "k" + std::to_string(Shape::k);
  const std::string type = Shape::Type::type;
  Measurement       m(type + "_mma_" + shape, Shape::Type::label + std::string(" MMA ") + shape, "mma.sync of one warp",
                      Quantity::arithmetic);
  m.field = {"mma_peaks_flops_per_s", shape, type};
  m.against = {"peaks_flops_per_s", "tensor_core", type};
  progress(m.what);
  const Device &d = device.device();
  if (10 * d.compute_major + d.compute_minor < Shape::compute) {
    m.why_not = "needs compute capability " + std::to_string(Shape::compute / 10) + ".0";
    return m;
  }
  cudaFuncAttributes attributes;
  TCBOUND_CUDA(cudaFuncGetAttributes(&attributes, multiply_accumulate<Shape>));
  if (attributes.ptxVersion < Shape::compute) {
    m.why_not = "this build has no code of compute capability " + std::to_string(Shape::compute / 10) + ".0 for this device";
    return m;
  }
  const unsigned             blocks = one_wave(device, multiply_accumulate<Shape>, threads);
  Array<typename Shape::Sum> out(device, std::int64_t(threads) * blocks);
  const double               an_instruction = 2.0 * Shape::m * Shape::n * Shape::k;
  const double               an_iteration = an_instruction * Shape::chains * mma_rounds * (threads / 32) * blocks;
  return measure_loop(device, m, an_iteration, [&](int iterations) {
    multiply_accumulate<Shape><<<blocks, threads, 0, stream_of(device)>>>(out.data(), iterations);
    TCBOUND_LAUNCHED();
  });
}

Measurement measure_clock(Executor &device, const Progress &progress) {
  const unsigned   blocks = one_wave(device, count_cycles, threads);
  Array<double>    out(device, std::int64_t(threads) * blocks);
  Array<long long> counts(device, 2);
  Measurement      m("sm_clock", "SM clock", "cycles over time while all SMs run FP64 FMA", Quantity::clock);
  progress(m.what);
  const auto launch = [&](std::int64_t iterations) {
    count_cycles<<<blocks, threads, 0, stream_of(device)>>>(out.data(), counts.data(), counts.data() + 1,
                                                            static_cast<int>(iterations));
    TCBOUND_LAUNCHED();
  };
  const std::int64_t iterations = iterations_for(device, pass_seconds, launch);
  for (int i = 0; i < repeats; ++i) {
    long long cycles_and_ns[2];
    launch(iterations);
    device.copy(cycles_and_ns, MemorySpace::host, counts.data(), MemorySpace::cuda, sizeof(cycles_and_ns));
    m.values.push_back(1e9 * static_cast<double>(cycles_and_ns[0]) / static_cast<double>(cycles_and_ns[1]));
  }
  return m;
}

} // namespace

void warm_up(Executor &device) {
  const unsigned blocks = one_wave(device, fused_multiply_add<float>, threads);
  Array<float>   out(device, std::int64_t(threads) * blocks);
  const auto     launch = [&](std::int64_t iterations) {
    fused_multiply_add<float><<<blocks, threads, 0, stream_of(device)>>>(out.data(), 0.5F, 1.0F, static_cast<int>(iterations));
    TCBOUND_LAUNCHED();
  };
  seconds_of(device, 50, [&, iterations = iterations_for(device, 1e-2, launch)] { launch(iterations); }); // half a second
}

Measurements measure_arithmetic(Executor &device, const Progress &progress) {
  Measurements all;
  for (const auto &measure :
       {measure_clock, measure_fma<double>, measure_fma<float>, measure_mma<Fp64M8n8k4>, measure_mma<Fp64M16n8k4>,
        measure_mma<Fp64M16n8k8>, measure_mma<Fp64M16n8k16>, measure_mma<Tf32M16n8k4>, measure_mma<Tf32M16n8k8>,
        measure_mma<Fp16M16n8k16>, measure_mma<Bf16M16n8k8>, measure_mma<Bf16M16n8k16>})
    all.push_back(measure(device, progress));
  return all;
}

} // namespace tcbound::calibrate
