// A look at some slices of a matrix, before all is brought into the format.
#include "sample.h"

#include <algorithm>

#include "cuda/algorithms.h"
#include "cuda/error.h"
#include "votes.h"

namespace tcbound::compact {
namespace {

constexpr std::int64_t most_sampled = 512; // slices, evenly spread

// One warp a slice. *found becomes 1 if most rows of a slice have one pattern, and that not of empty rows.
template <class Offset, class Column>
__global__ void __launch_bounds__(block)
  sample_slices(const Rows<Offset, Column> a, std::int64_t slices, std::int64_t sampled, int lanes, int *found) {
  __shared__ std::uint64_t shared[block_warps][slice_rows];
  const std::int64_t       i = global_index<block>() / 32;
  const int                lane = static_cast<int>(threadIdx.x % 32);
  if (i >= sampled) return;
  const std::int64_t first = i * slices / sampled * slice_rows;
  std::uint64_t     *hashes = shared[threadIdx.x / 32];
  for (int r = lane / lanes; r < slice_rows; r += 32 / lanes) {
    const std::int64_t row = first + r;
    const Hashes       h = hash_row(a, row, lane % lanes, lanes, false);
    const bool         empty = row >= a.count || a.offsets[row] == a.offsets[row + 1];
    if (lane % lanes == 0) hashes[r] = empty ? 0 : h.offsets;
  }
  __syncwarp();
  const Vote main = vote(hashes[lane], hashes[lane + 32]);
  if (lane == 0 && main.rows && is_main(__popcll(main.rows), min(std::int64_t(slice_rows), a.count - first))) *found = 1;
}

template <class Offset, class Column> bool look(Executor &executor, const CsrView &view) {
  Algorithms                 algorithms(executor);
  Array<std::int32_t>        found(executor, 1);
  const std::int64_t         slices = (view.rows + slice_rows - 1) / slice_rows, sampled = std::min(slices, most_sampled);
  const Rows<Offset, Column> rows = {static_cast<const Offset *>(view.row_offsets.data),
                                     static_cast<const Column *>(view.columns.data), view.values, view.rows};
  TCBOUND_CUDA(cudaMemsetAsync(found.data(), 0, sizeof(std::int32_t), algorithms.stream()));
  sample_slices<<<static_cast<unsigned>((32 * sampled + block - 1) / block), block, 0, algorithms.stream()>>>(
    rows, slices, sampled, lanes_of_row(view.rows, view.nonzeros), found.data());
  TCBOUND_LAUNCHED();
  return algorithms.read(found.data()) != 0;
}

} // namespace

bool repeats_patterns(Executor &executor, const CsrView &view) {
  const bool wide_offsets = view.row_offsets.bytes == 8, wide_columns = view.columns.bytes == 8;
  if (view.nonzeros == 0) return true; // all rows are alike
  if (wide_columns)
    return wide_offsets ? look<std::int64_t, std::int64_t>(executor, view) : look<std::int32_t, std::int64_t>(executor, view);
  return wide_offsets ? look<std::int64_t, std::int32_t>(executor, view) : look<std::int32_t, std::int32_t>(executor, view);
}

} // namespace tcbound::compact
