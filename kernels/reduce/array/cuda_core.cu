// Reductions on CUDA cores, one launch each: every block leaves its part in device memory, and the block that comes last adds up all
// parts in their order and writes the results into host memory, where the host waits for them: until then there is a NaN that no sum
// gives. Which block comes last makes no difference to the result, so that it is the same in every run.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cuda/elementwise.h"
#include "format.h"

namespace tcbound {
namespace {

constexpr int threads = 256, warps = threads / 32;
constexpr int blocks_per_multiprocessor = 4; // 1024 threads with 64 to 128 bytes under way each fill the memory's queue
constexpr int group = 8;                     // vectors that one block multiplies x with
constexpr int most_terms = 256;              // of one launch: pointers to 256 vectors are 2 KiB of a kernel's arguments
constexpr int unroll_bytes = 128;            // that a thread asks for before it waits

template <int capacity> struct Vectors {
  const double *x;
  const double *y[capacity];
  int           terms;
  double        factor;
};

// The numbers that one thread adds up for `terms` vectors.
template <Sum sum, int terms> struct Sums {
  static constexpr int results = sum == Sum::dots ? terms : sum == Sum::both || sum == Sum::dot_and_squares ? 2 : 1;
  static constexpr int vectors = sum == Sum::dots ? terms : sum == Sum::dot_and_squares ? 1 : 0; // y

  double value[results] = {};

  __device__ void add(double x, const double *y, double factor) {
    if constexpr (sum == Sum::dots) {
#pragma unroll
      for (int k = 0; k < terms; ++k) value[k] = fma(x, y[k], value[k]);
    } else if constexpr (sum == Sum::squares) {
      value[0] = fma(factor * x, factor * x, value[0]);
    } else if constexpr (sum == Sum::dot_and_squares) {
      value[0] = fma(x, y[0], value[0]);
      value[1] = fma(y[0], y[0], value[1]);
    } else {
      merge(value[0], fabs(x));
      if constexpr (sum == Sum::both) value[1] = fma(x, x, value[1]);
    }
  }

  // A maximum keeps NaN.
  __device__ static void merge(double &a, double b) {
    if constexpr (sum == Sum::maximum)
      a = a != a || a > b ? a : b;
    else
      a += b;
  }
  __device__ void merge(const Sums &o) {
#pragma unroll
    for (int k = 0; k < results; ++k) merge(value[k], o.value[k]);
  }
};

// The block's sums, in thread 0.
template <class S> __device__ void reduce_block(S &sums) {
  __shared__ double parts[S::results][warps];
  const int         lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int k = 0; k < S::results; ++k) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
      S::merge(sums.value[k], __shfl_down_sync(0xffffffffU, sums.value[k], distance));
    if (lane == 0) parts[k][warp] = sums.value[k];
  }
  __syncthreads();
  if (threadIdx.x == 0) {
#pragma unroll
    for (int k = 0; k < S::results; ++k)
#pragma unroll
      for (int w = 1; w < warps; ++w) S::merge(sums.value[k], parts[k][w]);
  }
}

// What stands in place of a result that has not come yet: a signalling NaN, which no operation gives. The kernel writes another NaN.
constexpr std::uint64_t not_yet = 0x7ff4'7cb0'4e07'7e70;

struct Place {
  double   *parts;    // of each result the blocks' parts
  unsigned *arrivals; // of each group of vectors, 0 between launches
  double   *results;  // in host memory
};

// What all threads of the grid find in the pieces of type T (double or double2) from `begin` to `end`, counted from the start of x.
template <class S, class T, int capacity>
__device__ void add_pieces(S &sums, const Vectors<capacity> &v, int first_term, int count, std::int64_t begin,
                           std::int64_t end) {
  constexpr int      each = sizeof(T) / sizeof(double);
  constexpr int      unroll = std::max(1, unroll_bytes / static_cast<int>(sizeof(T)) / (1 + S::vectors));
  const std::int64_t stride = gridDim.x * static_cast<std::int64_t>(threads);
  std::int64_t       piece = blockIdx.x * static_cast<std::int64_t>(threads) + threadIdx.x;
  const std::int64_t pieces = (end - begin) / each;
  S                  other; // of the second element of pairs
  const auto         add = [&](T x, const T *y) {
    double first[S::vectors + 1], second[S::vectors + 1];
#pragma unroll
    for (int k = 0; k < S::vectors; ++k) {
      if constexpr (each == 2)
        first[k] = y[k].x, second[k] = y[k].y;
      else
        first[k] = y[k];
    }
    if constexpr (each == 2) {
      sums.add(x.x, first, v.factor);
      other.add(x.y, second, v.factor);
    } else {
      sums.add(x, first, v.factor);
    }
  };
  for (; piece < pieces; piece += unroll * stride) {
    T x[unroll], y[unroll][S::vectors + 1];
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      const std::int64_t p = piece + u * stride;
      if (p >= pieces) break;
      x[u] = load<T>(v.x, begin + each * p);
#pragma unroll
      for (int k = 0; k < S::vectors; ++k)
        if (k < count) y[u][k] = load<T>(v.y[first_term + k], begin + each * p);
    }
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      if (piece + u * stride >= pieces) break;
      add(x[u], y[u]);
    }
  }
  if constexpr (each == 2) sums.merge(other);
}

template <class S, class T, int capacity>
__global__ void __launch_bounds__(threads) reduce_array(const __grid_constant__ Vectors<capacity> v, std::int64_t length,
                                                        int skip, const __grid_constant__ Place place) {
  constexpr int each = sizeof(T) / sizeof(double);
  const int     first_term = blockIdx.y * group, count = min(v.terms - first_term, S::vectors);
  S             sums;
  add_pieces<S, T>(sums, v, first_term, count, skip, length);
  // Elements that belong to no whole piece: the first, if skipped, and the last.
  const std::int64_t rest = skip + (length - skip) / each * each;
  const std::int64_t at = threadIdx.x == 0 && skip ? 0 : threadIdx.x == 1 && rest < length ? rest : -1;
  if (each == 2 && blockIdx.x == 0 && at >= 0) {
    double y[S::vectors + 1];
    for (int k = 0; k < S::vectors; ++k) y[k] = k < count ? v.y[first_term + k][at] : 0.0;
    sums.add(v.x[at], y, v.factor);
  }
  reduce_block(sums);

  double         *parts = place.parts + static_cast<std::int64_t>(blockIdx.y) * S::results * gridDim.x;
  __shared__ bool last;
  if (threadIdx.x == 0) {
#pragma unroll
    for (int k = 0; k < S::results; ++k) parts[k * gridDim.x + blockIdx.x] = sums.value[k];
    __threadfence();
    last = atomicInc(place.arrivals + blockIdx.y, gridDim.x - 1) == gridDim.x - 1; // which makes it 0 again
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  S total;
  for (unsigned block = threadIdx.x; block < gridDim.x; block += threads) {
    S part;
#pragma unroll
    for (int k = 0; k < S::results; ++k) part.value[k] = __ldcg(parts + k * gridDim.x + block);
    total.merge(part);
  }
  reduce_block(total);
  if (threadIdx.x == 0) {
    volatile double *results = place.results + first_term;
    for (int k = 0; k < (S::vectors > 1 ? count : S::results); ++k)
      results[k] = total.value[k] != total.value[k] ? __longlong_as_double(0x7ff8000000000000LL) : total.value[k];
  }
}

class CudaSpace final : public ReductionSpace {
public:
  static constexpr int most_groups = most_terms / group;

  explicit CudaSpace(Executor &executor)
    : blocks(static_cast<unsigned>(executor.device().multiprocessors) * blocks_per_multiprocessor),
      parts(executor, static_cast<std::int64_t>(most_terms) * blocks), arrivals(executor, most_groups) {
    TCBOUND_CUDA(cudaMemsetAsync(arrivals.data(), 0, static_cast<std::size_t>(arrivals.bytes()),
                                 static_cast<cudaStream_t>(executor.stream())));
    executor.synchronize(); // the next reduction may run in another stream
    void *memory = nullptr;
    TCBOUND_CUDA(cudaHostAlloc(&memory, most_terms * sizeof(double), cudaHostAllocMapped));
    results = static_cast<double *>(memory);
  }
  ~CudaSpace() override { cudaFreeHost(results); }

  unsigned        blocks; // at most, of a group of vectors
  Array<double>   parts;
  Array<unsigned> arrivals;
  double         *results = nullptr;
  bool            awaited = false; // by a start() whose finish() has not come
};

template <Sum sum, int terms, int capacity>
void launch(Executor &executor, CudaSpace &space, const Reduction &call, int first, int count) {
  using S = Sums<sum, terms>;
  Vectors<capacity> v{};
  v.x = call.x;
  v.terms = count;
  v.factor = call.factor;
  bool aligned = true;
  for (int k = 0; k < (S::vectors > 0 ? count : 0); ++k) {
    v.y[k] = call.y[first + k];
    aligned = aligned && is_odd(v.y[k]) == is_odd(v.x);
  }
  const std::int64_t a_block =
    threads * std::max<std::int64_t>(2, unroll_bytes / 8 / (1 + S::vectors)); // elements of one round
  const auto   blocks = static_cast<unsigned>(std::clamp<std::int64_t>((call.length + a_block - 1) / a_block, 1, space.blocks));
  const int    skip = aligned && is_odd(v.x) && call.length > 0 ? 1 : 0;
  cudaStream_t stream = static_cast<cudaStream_t>(executor.stream());
  // What a reduction that nobody has waited for has still to write must not be taken for this one's result.
  if (space.awaited) executor.synchronize();
  space.awaited = true;
  const Place place{space.parts.data(), space.arrivals.data(), space.results};
  const dim3  grid(blocks, static_cast<unsigned>((count + group - 1) / group));
  for (int k = 0; k < (sum == Sum::dots ? count : S::results); ++k) std::memcpy(space.results + k, &not_yet, sizeof not_yet);
  if (aligned)
    reduce_array<S, double2, capacity><<<grid, threads, 0, stream>>>(v, call.length, skip, place);
  else
    reduce_array<S, double, capacity><<<grid, threads, 0, stream>>>(v, call.length, 0, place);
  TCBOUND_LAUNCHED();
}

// Looks at the results without a call of the runtime; every now and then asks whether the kernel has failed.
void wait_for(Executor &executor, CudaSpace &space, int results) {
  for (int k = 0; k < results; ++k) {
    const auto come = [&] {
      const volatile double *place = space.results + k;
      const double           result = *place;
      return std::memcmp(&result, &not_yet, sizeof result) != 0;
    };
    for (std::int64_t looks = 1; !come(); ++looks) {
      if (looks % 4096 != 0) continue;
      const cudaError_t status = cudaStreamQuery(static_cast<cudaStream_t>(executor.stream()));
      if (status == cudaErrorNotReady) continue;
      TCBOUND_CUDA(status);
      if (!come()) throw Error(ErrorCode::device, "reduce/array/cuda_core: a reduction has ended without a result");
    }
  }
  space.awaited = false;
}

class ReduceArrayCudaCore final : public ReductionKernel {
public:
  ReduceArrayCudaCore() : ReductionKernel("reduce", "array", "cuda_core") {}

  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check_vectors(const Device &device, std::int64_t, MmaShape) const override {
    return device.space == MemorySpace::cuda ? "" : "it runs on a CUDA device only";
  }

  std::unique_ptr<ReductionSpace> make_space(Executor &executor) const override {
    return std::make_unique<CudaSpace>(executor);
  }

  Work work(const Reduction &call) const override { return reduce::count_work(call); }

  void start(Executor &executor, ReductionSpace &any, const Reduction &call) const override {
    reduce::check_call(*this, call);
    queue(executor, static_cast<CudaSpace &>(any), call, 0);
  }

  void finish(Executor &executor, ReductionSpace &any, const Reduction &call, double *results) const override {
    auto &space = static_cast<CudaSpace &>(any);
    for (int first = 0; first < call.results(); first += most_terms) {
      if (first > 0) queue(executor, space, call, first);
      const int count = std::min(call.results() - first, most_terms);
      wait_for(executor, space, count);
      std::copy_n(space.results, count, results + first);
    }
  }

private:
  static void queue(Executor &executor, CudaSpace &space, const Reduction &call, int first) {
    const int count = std::min(call.terms - first, most_terms);
    switch (call.sum) {
    case Sum::squares:
      return launch<Sum::squares, 1, 1>(executor, space, call, 0, 1);
    case Sum::magnitudes:
      return launch<Sum::magnitudes, 1, 1>(executor, space, call, 0, 1);
    case Sum::both:
      return launch<Sum::both, 1, 1>(executor, space, call, 0, 1);
    case Sum::maximum:
      return launch<Sum::maximum, 1, 1>(executor, space, call, 0, 1);
    case Sum::dot_and_squares:
      return launch<Sum::dot_and_squares, 1, 1>(executor, space, call, 0, 1);
    case Sum::dots:
      if (count == 1) return launch<Sum::dots, 1, 1>(executor, space, call, first, count);
      if (count == 2) return launch<Sum::dots, 2, 2>(executor, space, call, first, count);
      if (count <= 4) return launch<Sum::dots, 4, 4>(executor, space, call, first, count);
      return launch<Sum::dots, group, most_terms>(executor, space, call, first, count);
    }
  }
};

} // namespace

const Kernel &reduce_array_cuda_core() {
  static const ReduceArrayCudaCore kernel;
  return kernel;
}

} // namespace tcbound
