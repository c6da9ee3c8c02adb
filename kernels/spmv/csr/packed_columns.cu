// Packs the columns of a matrix that is cut into chunks.
#include "packed_columns.h"

#include <limits>

#include "cuda/algorithms.h"
#include "cuda/error.h"

namespace tcbound::csr {
namespace {

constexpr int      block = 128;
constexpr unsigned all_lanes = 0xffffffffU;

unsigned grid_for_warps(std::int64_t warps) { return static_cast<unsigned>((32 * warps + block - 1) / block); }

__device__ std::int64_t warp_number() { return (blockIdx.x * static_cast<std::int64_t>(block) + threadIdx.x) / 32; }

__device__ int lane_number() { return static_cast<int>(threadIdx.x % 32); }

// One warp a chunk: its width and base, where its own part starts in its stretch, and how long the stretch is.
template <class Offset>
__global__ void __launch_bounds__(block)
  measure_chunks(const Offset *offsets, const std::int32_t *columns, Cut cut, const Chunk *chunks, PackedChunk *packed,
                 std::int64_t *lengths, int *longest_own) {
  const std::int64_t c = warp_number();
  if (c > cut.chunks) return;
  if (c == cut.chunks) {
    if (lane_number() == 0) lengths[c] = 0;
    return;
  }
  const Chunk      chunk = chunks[c];
  const ChunkParts parts = parts_of(chunk, c, cut.span, offsets);
  std::int32_t     least = std::numeric_limits<std::int32_t>::max(), greatest = 0;
  for (const EntryRange &part : {parts.tail, parts.own, parts.apart})
#pragma unroll 4
    for (std::int64_t k = part.begin + lane_number(); k < part.end; k += 32) {
      const std::int32_t column = columns[k];
      least = min(least, column);
      greatest = max(greatest, column);
    }
  greatest = __reduce_max_sync(all_lanes, greatest);
  least = min(greatest, __reduce_min_sync(all_lanes, least)); // 0 and 0 of a chunk without entries
  if (lane_number() != 0) return;
  const std::int32_t width = width_of_columns(least, greatest);
  const std::int64_t tail = round_up_to(copy_bytes, width * parts.tail.size()), own = own_bytes(chunk, width);
  packed[c] = {tail, width == 2 ? least : 0, width};
  lengths[c] = tail + own + round_up_to(copy_bytes, width * parts.apart.size());
  atomicMax(longest_own, static_cast<int>(own));
}

template <class Stored>
__device__ void store(const std::int32_t *columns, const EntryRange &part, std::int32_t base, Stored *to) {
  const int size = static_cast<int>(part.size()); // less than two spans
  columns += part.begin;
#pragma unroll 4
  for (int k = lane_number(); k < size; k += 32) to[k] = static_cast<Stored>(columns[k] - base);
}

template <class Stored>
__device__ void store(const std::int32_t *columns, const ChunkParts &parts, const Chunk &chunk, std::int32_t base,
                      std::uint8_t *own) {
  auto *to = reinterpret_cast<Stored *>(own);
  store(columns, parts.tail, base, to - parts.tail.size());
  store(columns, parts.own, base, to + (parts.own.begin - origin_of(chunk)));
  store(columns, parts.apart, base, reinterpret_cast<Stored *>(own + own_bytes(chunk, sizeof(Stored))));
}

// One warp a chunk, whose stretch starts at begin[c].
template <class Offset>
__global__ void __launch_bounds__(block, 12)
  store_columns(const Offset *offsets, const std::int32_t *columns, Cut cut, const Chunk *chunks, const std::int64_t *begin,
                PackedChunk *packed, std::uint8_t *stored) {
  const std::int64_t c = warp_number();
  if (c >= cut.chunks) return;
  const Chunk        chunk = chunks[c];
  const PackedChunk  mine = packed[c];
  const std::int64_t own = begin[c] + mine.own;
  const ChunkParts   parts = parts_of(chunk, c, cut.span, offsets);
  if (mine.width == 2)
    store<std::uint16_t>(columns, parts, chunk, mine.base, stored + own);
  else
    store<std::int32_t>(columns, parts, chunk, mine.base, stored + own);
  __syncwarp(); // all lanes have read the chunk's record
  if (lane_number() == 0) packed[c].own = own;
}

} // namespace

PackedColumns pack_columns(Executor &executor, const DeviceArrays &a, const ChunkTable &table) {
  PackedColumns to;
  const Cut     cut = table.cut;
  if (cut.chunks == 0) return to;
  Algorithms          algorithms(executor);
  const cudaStream_t  stream = algorithms.stream();
  Array<std::int64_t> begin(executor, cut.chunks + 1);
  Array<std::int32_t> longest_own(executor, 1);
  to.chunks = Array<PackedChunk>(executor, cut.chunks);
  TCBOUND_CUDA(cudaMemsetAsync(longest_own.data(), 0, sizeof(int), stream));
  with_offsets(a, [&](const auto *offsets) {
    measure_chunks<<<grid_for_warps(cut.chunks + 1), block, 0, stream>>>(offsets, a.columns.data(), cut, table.chunks.data(),
                                                                         to.chunks.data(), begin.data(), longest_own.data());
    TCBOUND_LAUNCHED();
  });
  algorithms.exclusive_sum(begin.data(), begin.data(), cut.chunks + 1);
  const auto [bytes, longest] = algorithms.read_all(begin.data() + cut.chunks, longest_own.data());
  to.stored = Array<std::uint8_t>(executor, bytes);
  to.longest_own = static_cast<int>(longest);
  if (to.stored.size() > 0) // what pads the parts
    TCBOUND_CUDA(cudaMemsetAsync(to.stored.data(), 0, static_cast<std::size_t>(to.stored.bytes()), stream));
  with_offsets(a, [&](const auto *offsets) {
    store_columns<<<grid_for_warps(cut.chunks), block, 0, stream>>>(offsets, a.columns.data(), cut, table.chunks.data(),
                                                                    begin.data(), to.chunks.data(), to.stored.data());
    TCBOUND_LAUNCHED();
  });
  return to;
}

} // namespace tcbound::csr
