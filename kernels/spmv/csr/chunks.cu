// Cuts a matrix into chunks on the device and plans how each is summed.
#include "chunks.h"

#include <algorithm>
#include <cmath>

#include "cuda/error.h"

namespace tcbound::csr {
namespace {

// What the host must know of a finished table.
struct Summary {
  std::int32_t capacity;
  std::int32_t any_split;
};

// Rough costs in clock cycles on an H200; only their ratios matter, and only for which way of summing is cheaper.
constexpr int gather_cycles = 600; // eight loads of x in flight at once, from L2 under load
constexpr int pass_cycles = 50;    // a pass over rows: its offsets, its store
constexpr int shuffle_cycles = 30; // a halving of the lanes of a row
constexpr int add_cycles = 8;      // one product added from shared memory
constexpr int batch = 8;           // loads in flight a thread

struct Plan {
  int  log2_lanes, cost;
  bool stream;
};

__device__ int ceil_divide(int a, int b) { return (a + b - 1) / b; }

// The cheapest number of lanes a row for a chunk of `rows` rows with `entries` entries, at most `longest` in one.
__device__ Plan choose_plan(int rows, int entries, int longest, int threads, ChunkMode mode) {
  Plan      best = {0, INT32_MAX, mode == ChunkMode::stream};
  const int mean = rows > 0 ? entries / rows : 0;
  for (int log2_lanes = 0; log2_lanes <= 5; ++log2_lanes) {
    const int lanes = 1 << log2_lanes, passes = ceil_divide(rows * lanes, threads);
    const int overhead = passes * (pass_cycles + log2_lanes * shuffle_cycles);
    const int by_rows = overhead + (passes - 1) * ceil_divide(mean, batch * lanes) * gather_cycles +
                        ceil_divide(longest, batch * lanes) * gather_cycles;
    const int by_stream = overhead + ceil_divide(entries, batch * threads) * gather_cycles + 2 * pass_cycles +
                          ((passes - 1) * ceil_divide(mean, lanes) + ceil_divide(longest, lanes)) * add_cycles;
    if (mode != ChunkMode::stream && by_rows < best.cost) best = {log2_lanes, by_rows, false};
    if (mode != ChunkMode::rows && by_stream < best.cost) best = {log2_lanes, by_stream, true};
  }
  return best;
}

// The first row whose key is not below `key`.
template <class Offset> __device__ std::int32_t first_row(const Offset *offsets, std::int32_t rows, std::int64_t key) {
  std::int32_t low = 0, high = rows;
  while (low < high) {
    const std::int32_t middle = low + (high - low) / 2;
    if (static_cast<std::int64_t>(offsets[middle]) + middle < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// The chunk of the last key of a row, its last entry's or, of an empty row, its own.
template <class Offset> __device__ std::int64_t last_chunk_of(const Offset *offsets, std::int32_t row, std::int64_t span) {
  return (static_cast<std::int64_t>(offsets[row + 1]) + row) / span;
}

__device__ int warp_maximum(int value) {
  for (int distance = 16; distance > 0; distance /= 2) value = max(value, __shfl_xor_sync(0xffffffffU, value, distance));
  return value;
}

// One warp a chunk.
template <class Offset>
__global__ void plan_chunks(const Offset *offsets, std::int32_t rows, Cut cut, int threads, ChunkMode mode, Chunk *chunks,
                            Summary *summary) {
  const std::int64_t c = (blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x) / 32;
  const int          lane = static_cast<int>(threadIdx.x % 32);
  if (c >= cut.chunks) return;
  const std::int32_t first = first_row(offsets, rows, c * cut.span), end = first_row(offsets, rows, (c + 1) * cut.span);
  Chunk              chunk = {};
  if (first > 0) {
    const std::int64_t owner = (static_cast<std::int64_t>(offsets[first - 1]) + first - 1) / cut.span;
    const std::int64_t last = last_chunk_of(offsets, first - 1, cut.span);
    chunk.tail = last >= owner + 2 && last >= c;
  }
  if (end > first) {
    const std::int64_t next_key = static_cast<std::int64_t>(offsets[end]) + end;
    chunk.apart = next_key - (c + 1) * cut.span > cut.span / 4;
    chunk.split = chunk.apart && last_chunk_of(offsets, end - 1, cut.span) >= c + 2;
  }
  const std::int32_t shared_end = end - static_cast<std::int32_t>(chunk.apart);
  int                longest = 0;
  for (std::int32_t r = first + lane; r < shared_end; r += 32)
    longest = max(longest, static_cast<int>(offsets[r + 1] - offsets[r]));
  longest = warp_maximum(longest);
  if (lane != 0) return;
  const std::int64_t entry = offsets[first];
  const int          entries = static_cast<int>(offsets[shared_end] - entry);
  const Plan         plan = choose_plan(shared_end - first, entries, longest, threads, mode);
  chunk.entry = static_cast<std::uint64_t>(entry);
  chunk.log2_lanes = static_cast<unsigned>(plan.log2_lanes);
  chunk.stream = plan.stream;
  chunk.row = first;
  chunk.rows = static_cast<std::uint16_t>(shared_end - first);
  chunk.entries = static_cast<std::uint16_t>(entries);
  chunks[c] = chunk;
  // Copies start at a multiple of 4 entries and have a multiple of 4: 16 bytes of column indices.
  atomicMax(&summary->capacity, static_cast<int>(entry % 4 + entries + 3) / 4 * 4);
  if (chunk.split) atomicOr(&summary->any_split, 1);
}

} // namespace

Cut choose_cut(const CudaCoreConfig &config, std::int64_t rows, std::int64_t nonzeros) {
  Cut cut;
  if (rows == 0) return cut;
  // Rows that a chunk should have so that, at a power of two of lanes each, they fill whole passes of the block's threads.
  const double mean = static_cast<double>(nonzeros) / static_cast<double>(rows);
  const double wanted = config.entries / std::max(mean, 1.0);
  double       in_chunk;
  if (wanted >= config.threads)
    in_chunk = config.threads * std::round(wanted / config.threads);
  else
    in_chunk = std::max(1.0, config.threads / std::exp2(std::round(std::log2(config.threads / wanted))));
  // Rows of more than twice the wanted entries are better split than staged.
  const std::int64_t most = std::min<std::int64_t>(max_span, 2 * std::max(config.entries, config.threads));
  cut.span = std::clamp<std::int64_t>(std::llround(in_chunk * (mean + 1.0)), config.threads, most);
  cut.chunks = (rows + nonzeros + cut.span - 1) / cut.span;
  return cut;
}

ChunkTable cut_into_chunks(Executor &executor, const DeviceArrays &a, const CudaCoreConfig &config) {
  ChunkTable table;
  table.cut = choose_cut(config, a.rows, a.nonzeros);
  if (table.cut.chunks == 0) return table;
  const auto stream = static_cast<cudaStream_t>(executor.stream());
  table.chunks = Array<Chunk>(executor, table.cut.chunks);
  Array<Summary> device_summary(executor, 1);
  Summary        summary;
  TCBOUND_CUDA(cudaMemsetAsync(device_summary.data(), 0, sizeof(Summary), stream));
  const int      block = 128;
  const unsigned grid = static_cast<unsigned>((32 * table.cut.chunks + block - 1) / block);
  with_offsets(a, [&](const auto *offsets) {
    plan_chunks<<<grid, block, 0, stream>>>(offsets, static_cast<std::int32_t>(a.rows), table.cut, config.threads, config.mode,
                                            table.chunks.data(), device_summary.data());
    TCBOUND_LAUNCHED();
  });
  executor.copy(&summary, MemorySpace::host, device_summary.data(), MemorySpace::cuda, sizeof summary);
  table.capacity = summary.capacity;
  if (summary.any_split) {
    table.parts = Array<double>(executor, 2 * table.cut.chunks);
    table.arrivals = Array<std::uint32_t>(executor, table.cut.chunks);
    TCBOUND_CUDA(cudaMemsetAsync(table.arrivals.data(), 0, static_cast<std::size_t>(table.arrivals.bytes()), stream));
    executor.synchronize(); // the executor may be on another stream when the table is used
  }
  return table;
}

} // namespace tcbound::csr
