// Puts constant slices into columns.
#include "build_columns.h"

#include <algorithm>
#include <vector>

#include "cuda/error.h"
#include "rows.h"

namespace tcbound::compact {
namespace {

constexpr int block = 256;
constexpr int fewest_levels = 4; // of a column, to be worth the two planes that it reads beyond its ends
constexpr int most_levels = 16;

unsigned grid_for(std::int64_t threads) { return static_cast<unsigned>((threads + block - 1) / block); }

// Cells: places of columns. Cell c lies at slice c % per_plane of a plane, levels high, from plane (c / per_plane) levels up.
struct Cells {
  std::int64_t per_plane, planes, slices;
  int          levels;

  std::int64_t count() const { return (planes + levels - 1) / levels * per_plane; }
  __device__ std::int64_t slice(std::int64_t cell, int level) const { // -1: beyond the grid
    const std::int64_t plane = cell / per_plane * levels + level, s = plane * per_plane + cell % per_plane;
    return plane < planes && s < slices ? s : -1;
  }
};

// position[s]: where slice s of the cut is among the section's if it may be in a column, else -1.
__global__ void find_eligible(const Slice *slices, const std::int32_t *listed, std::int64_t count, std::int32_t *position) {
  const std::int64_t i = global_index<block>();
  if (i < count && (slices[i].pattern & ~Slice::has_partials) == 0) position[listed[i]] = static_cast<std::int32_t>(i);
}

struct HasEligible {
  Cells               cells;
  const std::int32_t *position;

  __device__ bool operator()(std::int32_t cell) const {
    bool any = false;
    for (int level = 0; level < cells.levels && !any; ++level) {
      const std::int64_t s = cells.slice(cell, level);
      any = s >= 0 && position[s] >= 0;
    }
    return any;
  }
};

struct InNoColumn {
  const std::int32_t *listed, *position;

  __device__ bool operator()(std::int32_t i) const { return position[listed[i]] != i; }
};

// Neighbouring lines go to the warps of a block.
__global__ void number_cells(const std::int32_t *listed, std::int64_t count, const Cells cells, const Cut cut,
                             std::int64_t line, std::uint64_t *keys) {
  const std::int64_t c = global_index<block>();
  if (c >= count) return;
  const std::int64_t middle = cut.first_row(listed[c] % cells.per_plane) + slice_rows / 2;
  const std::int64_t y = line ? middle / line : 0, part = line ? middle % line / slice_rows : middle / slice_rows;
  std::int64_t       key = listed[c] / cells.per_plane;
  key = key << 20 | min(y / block_slices, (std::int64_t(1) << 20) - 1);
  key = key << 20 | min(part, (std::int64_t(1) << 20) - 1);
  keys[c] = static_cast<std::uint64_t>(key) << 3 | static_cast<std::uint64_t>(y % block_slices);
}

__global__ void write_columns(const std::int32_t *listed, std::int64_t count, const Cells cells, const Cut cut,
                              const std::int32_t *position, const Slice *slices, const std::int32_t *partial_begin,
                              std::int32_t *first_rows, ColumnSlice *to) {
  const std::int64_t i = global_index<block>(), c = i / cells.levels;
  const int          level = static_cast<int>(i % cells.levels);
  if (c >= count) return;
  const std::int64_t s = cells.slice(listed[c], level), p = s >= 0 ? position[s] : -1;
  to[i] =
    p >= 0 ? ColumnSlice{slices[p].rows, partial_begin[p], partial_begin[p + 1] - partial_begin[p]} : ColumnSlice{0, 0, 0};
  if (level == 0) first_rows[c] = static_cast<std::int32_t>(cut.first_row(cells.slice(listed[c], 0)));
}

struct SlotTable {
  std::uint8_t slot[longest_masked];
};

__global__ void write_partials(const Partial *from, std::int64_t count, const SlotTable table, Partial *to) {
  const std::int64_t i = global_index<block>();
  if (i >= count) return;
  Partial partial = {from[i].rows, 0};
  for (std::uint64_t rest = from[i].entries; rest; rest &= rest - 1)
    partial.entries |= std::uint64_t(1) << table.slot[__ffsll(static_cast<long long>(rest)) - 1];
  to[i] = partial;
}

// The offsets of the section's most frequent pattern.
std::vector<std::int32_t> offsets_of_first(Algorithms &algorithms, const Section &section) {
  std::vector<std::int32_t> offsets;
  const Pattern             pattern = algorithms.read(section.patterns.data());
  if (pattern.segments > static_cast<std::int32_t>(section.hot_segments.size())) return offsets;
  for (int i = 0; i < pattern.segments; ++i)
    for (int j = 0; j < section.hot_segments[static_cast<std::size_t>(i)].count; ++j)
      offsets.push_back(section.hot_segments[static_cast<std::size_t>(i)].offset + j);
  return offsets;
}

} // namespace

void build_columns(Executor &executor, Algorithms &algorithms, const Grid &grid, const Cut &cut, const std::int32_t *listed,
                   Section &section) {
  const cudaStream_t stream = algorithms.stream();
  const std::int64_t count = section.slices.size(), stride = grid.stride();
  Columns           &columns = section.columns;
  // A few warps for each place on the device, and still high columns.
  const std::int64_t wanted = 24 * static_cast<std::int64_t>(executor.device().multiprocessors);
  Cells              cells;
  cells.per_plane = cut.stride ? cut.per_plane : (stride ? stride / slice_rows : 0);
  cells.slices = cut.slices();
  cells.levels = static_cast<int>(std::min<std::int64_t>(count / wanted, most_levels));
  if (grid.stencil.shape < 0 || cells.levels < fewest_levels) return;
  const std::vector<std::int32_t> offsets = offsets_of_first(algorithms, section);
  const Stencil                   stencil = match_stencil(offsets, grid.plane != 0 ? grid.line : 0, stride);
  if (!(stencil == grid.stencil)) return; // the row that was looked at is not typical
  cells.planes = (cells.slices + cells.per_plane - 1) / cells.per_plane;

  Array<std::int32_t> position(executor, cells.slices), found(executor, cells.count());
  TCBOUND_CUDA(cudaMemsetAsync(position.data(), 0xff, static_cast<std::size_t>(position.bytes()), stream)); // -1
  find_eligible<<<grid_for(count), block, 0, stream>>>(section.slices.data(), listed, count, position.data());
  TCBOUND_LAUNCHED();
  const std::int64_t size = algorithms.select_numbers(found.data(), cells.count(), HasEligible{cells, position.data()});
  if (size == 0) return;
  Array<std::uint64_t> keys(executor, size), sorted_keys(executor, size);
  Array<std::int32_t>  sorted(executor, size), rest(executor, count);
  number_cells<<<grid_for(size), block, 0, stream>>>(found.data(), size, cells, cut, grid.plane != 0 ? grid.line : 0,
                                                     keys.data());
  TCBOUND_LAUNCHED();
  algorithms.sort_pairs(keys.data(), sorted_keys.data(), found.data(), sorted.data(), size);

  columns.stencil = stencil;
  columns.entries = static_cast<int>(offsets.size());
  columns.levels = cells.levels;
  columns.first_rows = Array<std::int32_t>(executor, size);
  columns.slices = Array<ColumnSlice>(executor, size * cells.levels);
  columns.partials = Array<Partial>(executor, section.partials.size());
  write_columns<<<grid_for(size * cells.levels), block, 0, stream>>>(sorted.data(), size, cells, cut, position.data(),
                                                                     section.slices.data(), section.partial_begin.data(),
                                                                     columns.first_rows.data(), columns.slices.data());
  TCBOUND_LAUNCHED();
  if (section.partials.size() > 0) {
    SlotTable table;
    std::copy(stencil.slot.begin(), stencil.slot.end(), table.slot);
    write_partials<<<grid_for(section.partials.size()), block, 0, stream>>>(section.partials.data(), section.partials.size(),
                                                                            table, columns.partials.data());
    TCBOUND_LAUNCHED();
  }
  const std::int64_t left = algorithms.select_numbers(rest.data(), count, InNoColumn{listed, position.data()});
  columns.rest = Array<std::int32_t>(executor, left);
  executor.copy(columns.rest.data(), MemorySpace::cuda, rest.data(), MemorySpace::cuda,
                static_cast<std::size_t>(columns.rest.bytes()));
  read_hot_segments(executor, section); // fills columns.values
  executor.synchronize();               // the temporary arrays are freed on return
}

} // namespace tcbound::compact
