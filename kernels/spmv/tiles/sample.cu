// A look at some entries of a matrix, before it is brought into the format.
#include "sample.h"

#include <algorithm>

#include <cub/block/block_radix_sort.cuh>

#include "cuda/algorithms.h"

namespace tcbound::tiles {
namespace {

constexpr int          block = 256, each = 8, stretch = block * each;
constexpr std::int64_t most_stretches = 128, first_level_bytes = 128 << 10;

// A block a stretch.
template <class Column>
__global__ void __launch_bounds__(block)
  count_sectors(const Column *columns, std::int64_t nonzeros, std::int64_t stretches, std::int32_t *found) {
  using Sort = cub::BlockRadixSort<std::uint32_t, block, each>;
  __shared__ union {
    typename Sort::TempStorage storage;
    std::uint32_t              sorted[stretch];
  } shared;
  const std::int64_t first = stretches > 1 ? blockIdx.x * (nonzeros - stretch) / (stretches - 1) : 0;
  const int          count = static_cast<int>(min(static_cast<std::int64_t>(stretch), nonzeros - first));
  std::uint32_t      sectors[each];
  for (int i = 0; i < each; ++i) {
    const int k = static_cast<int>(threadIdx.x) + i * block;
    sectors[i] = k < count ? static_cast<std::uint32_t>(columns[first + k] / 4) : 0xffffffffU;
  }
  Sort(shared.storage).SortBlockedToStriped(sectors);
  __syncthreads();
  for (int i = 0; i < each; ++i) shared.sorted[threadIdx.x + i * block] = sectors[i];
  __syncthreads();
  int different = 0;
  for (int k = static_cast<int>(threadIdx.x); k < count; k += block)
    different += k == 0 || shared.sorted[k] != shared.sorted[k - 1];
  different = __reduce_add_sync(0xffffffffU, different);
  if (threadIdx.x % 32 == 0) atomicAdd(found, different);
}

template <class Column> double look(Executor &executor, const CsrView &view) {
  Algorithms          algorithms(executor);
  Array<std::int32_t> found(executor, 1);
  const std::int64_t  stretches = std::clamp(view.nonzeros / stretch, std::int64_t(1), most_stretches);
  TCBOUND_CUDA(cudaMemsetAsync(found.data(), 0, sizeof(std::int32_t), algorithms.stream()));
  count_sectors<<<static_cast<unsigned>(stretches), block, 0, algorithms.stream()>>>(
    static_cast<const Column *>(view.columns.data), view.nonzeros, stretches, found.data());
  TCBOUND_LAUNCHED();
  const std::int64_t looked_at = stretches > 1 ? stretches * stretch : std::min<std::int64_t>(view.nonzeros, stretch);
  return static_cast<double>(algorithms.read(found.data())) / static_cast<double>(looked_at);
}

} // namespace

double gathered_sectors(Executor &executor, const CsrView &view) {
  if (view.nonzeros == 0 || 8 * view.columns_count <= first_level_bytes) return 0.0;
  return view.columns.bytes == 8 ? look<std::int64_t>(executor, view) : look<std::int32_t>(executor, view);
}

} // namespace tcbound::tiles
