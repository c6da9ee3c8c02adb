#pragma once

// Device code of cuda_core.cu: the two passes of a product. For .cu files only.

#include "../sell/bfloat16.h"
#include "cuda/bulk_copy.h"
#include "cuda/load_once.h"
#include "device_matrix.h"

namespace tcbound::tiles {
namespace {

using sell::Bfloat16;

constexpr unsigned all_lanes = 0xffffffffU;
constexpr int      batch = 4; // elements of x that a lane reads at once
constexpr int      sum_threads = 32 * sum_warps, add_threads = 512;
constexpr int      sum_bytes = 8 * (width + sum_threads / 32 * chunk), add_bytes = (8 + 2) * capacity;

// ---- Entries of a lane ----

// Matrix entries are read once: they pass by the first-level cache, too.
__device__ uint4 load_once(const void *from, std::uint64_t policy) {
  uint4 to;
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(to.x), "=r"(to.y), "=r"(to.z), "=r"(to.w)
               : "l"(from), "l"(policy));
  return to;
}

__device__ double value_in(const uint4 &w, int i, double) {
  return i == 0 ? __hiloint2double(static_cast<int>(w.y), static_cast<int>(w.x))
                : __hiloint2double(static_cast<int>(w.w), static_cast<int>(w.z));
}
__device__ double value_in(const uint4 &w, int i, float) {
  return __uint_as_float(i == 0 ? w.x : i == 1 ? w.y : i == 2 ? w.z : w.w);
}
__device__ double value_in(const uint4 &w, int i, Bfloat16) {
  const unsigned both = i / 2 == 0 ? w.x : i / 2 == 1 ? w.y : i / 2 == 2 ? w.z : w.w;
  return __uint_as_float(i % 2 == 0 ? both << 16 : both & 0xffff0000U);
}

// The entries of a lane in a chunk.
template <class Value> struct Entries {
  static constexpr int together = 16 / static_cast<int>(sizeof(Value)), loads = entries_of_lane / together;

  uint4 columns, values[loads];

  __device__ void load(const std::uint16_t *all_columns, const Value *all_values, std::int64_t c, int lane,
                       std::uint64_t policy) {
    columns = load_once(all_columns + c * chunk + lane * entries_of_lane, policy);
#pragma unroll
    for (int k = 0; k < loads; ++k) values[k] = load_once(all_values + c * chunk + (k * 32 + lane) * together, policy);
  }
  __device__ double value(int e) const { return value_in(values[e / together], e % together, Value()); }
  __device__ std::uint32_t two_columns(int e) const {
    return e / 2 == 0 ? columns.x : e / 2 == 1 ? columns.y : e / 2 == 2 ? columns.z : columns.w;
  }
  __device__ std::uint32_t bytes_to_x(int e) const { return (e % 2 == 0 ? two_columns(e) : two_columns(e) >> 16) & 0xfff8U; }
  __device__ bool          ends_at(int e) const { return two_columns(e) & (e % 2 == 0 ? ends : ends << 16); }
  __device__ int           ends_here() const {
              constexpr unsigned two = ends << 16 | ends;
              return __popc(columns.x & two) + __popc(columns.y & two) + __popc(columns.z & two) + __popc(columns.w & two);
  }
};

// ---- The first pass ----

template <class Value> struct SumArguments {
  const Item          *items;
  const std::int32_t  *first_sum;
  const std::uint16_t *columns;
  const Value         *values;
  const double        *x;
  std::int32_t         x_size;
  double              *sums;
};

// Where a warp's sum waits in shared memory that would have its turn `bytes` after a multiple of 512: so lanes that have eight each do not
// meet in a bank.
__device__ std::uint32_t waiting_place(std::uint32_t bytes) { return bytes ^ (bytes >> 3 & 0x38); }

__device__ int sum_of_lanes_before(int own, int lane) {
  int sum = own;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const int other = __shfl_up_sync(all_lanes, sum, d);
    if (lane >= d) sum += other;
  }
  return sum - own;
}

// Of each lane, the sum of what lanes have left open, from the last one at which a sum ended, to this one.
__device__ double sum_since_end(double open, bool ended, int lane) {
  const unsigned before = __ballot_sync(all_lanes, ended) & (all_lanes >> (31 - lane));
  const int      since = before ? 31 - __clz(static_cast<int>(before)) : 0;
  for (int d = 1; __any_sync(all_lanes, lane - d >= since); d *= 2) {
    const double other = __shfl_up_sync(all_lanes, open, d);
    if (lane - d >= since) open = other + open;
  }
  return open;
}

// A block some strips of a tile, a warp one of them.
template <class Value>
__global__ void __launch_bounds__(sum_threads, sum_blocks) sum_segments(const __grid_constant__ SumArguments<Value> a) {
  extern __shared__ double2 shared[];
  const int                 lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const auto                own_bytes = static_cast<std::uint32_t>(8 * (width + warp * chunk)); // where the warp's sums wait
  const auto                at = [](std::uint32_t bytes) -> double                &{
    return *reinterpret_cast<double *>(reinterpret_cast<char *>(shared) + bytes);
  };
  const Item          item = a.items[blockIdx.x];
  const std::uint64_t policy = once();
  int                 c = warp * chunks_of_strip; // of the item
  const int           end = min(c + chunks_of_strip, item.chunks);
  Entries<Value>      entries;
  const auto          load = [&] { entries.load(a.columns, a.values, item.first_chunk + c, lane, policy); };
  if (c < end) load();
  std::int32_t       to = c < end ? __ldg(a.first_sum + item.first_strip + warp) : 0;
  const std::int64_t first = static_cast<std::int64_t>(item.tile) * width;
#pragma unroll 8
  for (int i = static_cast<int>(threadIdx.x); i < width; i += sum_threads)
    at(stored_column(i)) = first + i < a.x_size ? __ldg(a.x + first + i) : 0.0;
  __syncthreads();
  double open = 0.0; // of the chunk before
  while (c < end) {
    const int mine = entries.ends_here(), rank = sum_of_lanes_before(mine, lane),
              count = __shfl_sync(all_lanes, rank + mine, 31);
    const std::uint32_t head = own_bytes + 8 * static_cast<std::uint32_t>(rank);
    std::uint32_t       waiting = head;
    double              sum = lane == 0 ? open : 0.0;
#pragma unroll
    for (int e = 0; e < entries_of_lane; e += batch) {
      double x[batch]; // read before a sum is written: for all that the compiler knows it may be written there
#pragma unroll
      for (int i = 0; i < batch; ++i) x[i] = at(entries.bytes_to_x(e + i));
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        sum = fma(entries.value(e + i), x[i], sum);
        if (entries.ends_at(e + i)) {
          at(waiting_place(waiting)) = sum;
          waiting += 8;
          sum = 0.0;
        }
      }
    }
    if (++c < end) load();
    sum = sum_since_end(sum, mine > 0, lane);
    const double before = __shfl_up_sync(all_lanes, sum, 1);
    open = __shfl_sync(all_lanes, sum, 31);
    if (mine > 0 && lane > 0) at(waiting_place(head)) += before;
    __syncwarp();
#pragma unroll 2
    for (int i = lane; i < count; i += 32) a.sums[to + i] = at(waiting_place(own_bytes + 8 * static_cast<std::uint32_t>(i)));
    __syncwarp();
    to += count;
  }
}

// ---- The second pass ----

struct AddArguments {
  const Bin           *bins;
  const Run           *runs;
  int                  tiles;
  const std::uint16_t *places;
  const std::int32_t  *row_sums;
  const double        *sums;
  double               alpha, beta;
  const double        *y;
  double              *z;
};

// Starts the copies of the sums in `count` runs, and of a list of places. Called by all threads, after initialise().
__device__ void copy_runs(const AddArguments &a, const Run *runs, int count, double *to_sums, const std::uint16_t *places,
                          int place_bytes, std::uint16_t *to_places, CopyBarrier &barrier) {
  const int base = runs[0].at;
#ifdef TCBOUND_BULK_COPY
  const std::uint64_t policy = once();
  if (threadIdx.x == 0) {
    const Run      last = runs[count - 1];
    const unsigned bytes = 8U * (last.at + last.count - base) + static_cast<unsigned>(place_bytes);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes)
                 : "memory");
    if (place_bytes > 0) bulk_copy(to_places, places, static_cast<unsigned>(place_bytes), barrier, policy);
  }
  for (int t = static_cast<int>(threadIdx.x); t < count; t += add_threads) {
    const Run run = runs[t];
    if (run.count > 0) bulk_copy(to_sums + run.at - base, a.sums + run.start, 8U * run.count, barrier, policy);
  }
#else
  constexpr int together = 8; // threads of a run
  for (int t = static_cast<int>(threadIdx.x) / together; t < count; t += add_threads / together) {
    const Run run = runs[t];
    for (int i = 2 * (static_cast<int>(threadIdx.x) % together); i < run.count; i += 2 * together)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to_sums + run.at - base + i)),
                   "l"(__cvta_generic_to_global(a.sums + run.start + i))
                   : "memory");
  }
  block_copy(to_places, places, static_cast<unsigned>(place_bytes));
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(&barrier)) : "memory");
#endif
}

__device__ void store(const AddArguments &a, std::int32_t row, double sum) {
  double result = a.alpha * sum;
  if (a.beta != 0.0) result += a.beta * a.y[row];
  a.z[row] = result;
}

// A row that has a bin to itself: half of the tiles after the other, by all threads.
__device__ void add_heavy_row(const AddArguments &a, std::int32_t row, int count, const Run *runs,
                              const std::uint16_t *global_places, int place_bytes, double *sums, std::uint16_t *places,
                              CopyBarrier &arrived) {
  __shared__ double of_warps[add_threads / 32];
  const int         half = (a.tiles + 1) / 2;
  double            sum = 0.0;
  for (int turn = 0; turn * half < a.tiles; ++turn) {
    const int first = turn * half, tiles = min(half, a.tiles - first);
    const Run last = runs[first + tiles - 1];
    const int base = runs[first].at, end = last.at + last.count;
    copy_runs(a, runs + first, tiles, sums, global_places, turn == 0 ? place_bytes : 0, places, arrived);
    wait(arrived, static_cast<std::uint32_t>(turn & 1));
    for (int k = static_cast<int>(threadIdx.x); k < count; k += add_threads)
      if (places[k] >= base && places[k] < end) sum += sums[places[k] - base];
    release_to_copies();
    __syncthreads();
  }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(all_lanes, sum, d);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  sum = 0.0;
  for (const double one : of_warps) sum += one;
  store(a, row, sum);
}

__global__ void __launch_bounds__(add_threads, 3) add_sums(const __grid_constant__ AddArguments a) {
  extern __shared__ double2 shared[];
  __shared__ CopyBarrier    arrived;
  double *const             sums = reinterpret_cast<double *>(shared);
  std::uint16_t *const      places = reinterpret_cast<std::uint16_t *>(sums + capacity);
  const Bin                 bin = a.bins[blockIdx.x];
  const Run *const          runs = a.runs + static_cast<std::int64_t>(blockIdx.x) * a.tiles;
  const std::int32_t       *row_sums = a.row_sums + bin.row, before = bin.sums_before;
  const int                 place_bytes = static_cast<int>(round_up_to(16, 2 * bin.sums));
  if (threadIdx.x == 0) initialise(arrived);
  __syncthreads();
  if (bin.rows == 1) return add_heavy_row(a, bin.row, bin.sums, runs, a.places + bin.first, place_bytes, sums, places, arrived);
  copy_runs(a, runs, a.tiles, sums, a.places + bin.first, place_bytes, places, arrived);
  const int  lane = static_cast<int>(threadIdx.x) % bin.lanes, rows_at_once = add_threads / bin.lanes;
  int        row = static_cast<int>(threadIdx.x) / bin.lanes, begin = 0, end = 0;
  const auto load_range = [&](int of) {
    begin = of < bin.rows ? __ldg(row_sums + of) - before : 0;
    end = of < bin.rows ? __ldg(row_sums + of + 1) - before : 0;
  };
  load_range(row);
  wait(arrived, 0);
  // A warp goes on while its first row is one of the bin's: shuffles need all its lanes.
  for (int first = (static_cast<int>(threadIdx.x) & ~31) / bin.lanes; first < bin.rows; first += rows_at_once) {
    const int mine = row, stop = end;
    int       k = begin + lane;
    double    sum = 0.0;
    row += rows_at_once;
    load_range(row);
#pragma unroll 4
    for (; k < stop; k += bin.lanes) sum += sums[places[k]];
    for (int d = bin.lanes / 2; d > 0; d /= 2) sum += __shfl_xor_sync(all_lanes, sum, d);
    if (lane == 0 && mine < bin.rows) store(a, bin.row + mine, sum);
  }
}

} // namespace
} // namespace tcbound::tiles
