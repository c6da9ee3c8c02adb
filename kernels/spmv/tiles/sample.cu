// A look at some entries of a matrix, before it is brought into the format.
#include "sample.h"

#include <algorithm>

#include <cub/block/block_radix_sort.cuh>

#include "cuda/algorithms.h"
#include "format.h"

namespace tcbound::tiles {
namespace {

constexpr int          block = 256, each = 8, stretch = block * each;
constexpr std::int64_t most_stretches = 128, first_level_bytes = 128 << 10;

// A block a stretch.
template <class Column>
__global__ void __launch_bounds__(block)
  look_at_stretches(const Column *columns, std::int64_t nonzeros, std::int64_t stretches, std::int32_t *found) {
  using Sort = cub::BlockRadixSort<std::uint32_t, block, each>;
  __shared__ union {
    typename Sort::TempStorage storage;
    std::uint32_t              sorted[stretch];
  } shared;
  const std::int64_t first = stretches > 1 ? blockIdx.x * (nonzeros - stretch) / (stretches - 1) : 0;
  const int          count = static_cast<int>(min(static_cast<std::int64_t>(stretch), nonzeros - first));
  std::uint32_t      sectors[each];
  int                segments = 0;
  for (int i = 0; i < each; ++i) {
    const int k = static_cast<int>(threadIdx.x) + i * block;
    sectors[i] = k < count ? static_cast<std::uint32_t>(columns[first + k] / 4) : 0xffffffffU;
    segments += k > 0 && k < count && columns[first + k] >> log2_width != columns[first + k - 1] >> log2_width;
  }
  Sort(shared.storage).SortBlockedToStriped(sectors);
  __syncthreads();
  for (int i = 0; i < each; ++i) shared.sorted[threadIdx.x + i * block] = sectors[i];
  __syncthreads();
  int different = 0;
  for (int k = static_cast<int>(threadIdx.x); k < count; k += block)
    different += k == 0 || shared.sorted[k] != shared.sorted[k - 1];
  different = __reduce_add_sync(0xffffffffU, different);
  segments = __reduce_add_sync(0xffffffffU, segments);
  if (threadIdx.x % 32 != 0) return;
  atomicAdd(found, different);
  atomicAdd(found + 1, segments);
}

template <class Column> Sample look(Executor &executor, const CsrView &view) {
  Algorithms          algorithms(executor);
  Array<std::int32_t> found(executor, 2);
  const std::int64_t  stretches = std::clamp(view.nonzeros / stretch, std::int64_t(1), most_stretches);
  TCBOUND_CUDA(cudaMemsetAsync(found.data(), 0, static_cast<std::size_t>(found.bytes()), algorithms.stream()));
  look_at_stretches<<<static_cast<unsigned>(stretches), block, 0, algorithms.stream()>>>(
    static_cast<const Column *>(view.columns.data), view.nonzeros, stretches, found.data());
  TCBOUND_LAUNCHED();
  const auto looked_at = static_cast<double>(stretches * std::min<std::int64_t>(view.nonzeros, stretch));
  const auto [sectors, segments] = algorithms.read_all(found.data(), found.data() + 1);
  return {static_cast<double>(sectors) / looked_at, static_cast<double>(segments) / looked_at};
}

} // namespace

Sample take_sample(Executor &executor, const CsrView &view) {
  if (view.nonzeros == 0 || 8 * view.columns_count <= first_level_bytes) return {};
  return view.columns.bytes == 8 ? look<std::int64_t>(executor, view) : look<std::int32_t>(executor, view);
}

} // namespace tcbound::tiles
