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
constexpr int columns_per_multiprocessor = 60; // 24 at a time
constexpr int bits_of_block = 3;               // that tell a block's slices apart
static_assert(block_slices == 1 << bits_of_block);

unsigned grid_for(std::int64_t threads) { return static_cast<unsigned>((threads + block - 1) / block); }

// Places of slices, counted up the grid: place p is at level p % levels of cell p / levels, and cells are counted through a plane
// before the next `levels` planes.
struct Places {
  std::int64_t per_plane, planes, slices;
  int          levels;

  std::int64_t count() const { return (planes + levels - 1) / levels * per_plane * levels; }
  // The slice of the cut at a place, or -1 beyond the grid.
  __device__ std::int64_t slice(std::int64_t place) const {
    const std::int64_t cell = place / levels, plane = cell / per_plane * levels + place % levels;
    const std::int64_t s = plane * per_plane + cell % per_plane;
    return plane < planes && s < slices ? s : -1;
  }
};

// What building columns looks at.
struct Candidates {
  Places              places;
  const std::int32_t *position; // of each slice of the cut among the section's if it may be in a column, else -1
  const Slice        *slices;
  const std::int32_t *partial_begin;
  const Partial      *partials;

  __device__ std::int32_t at(std::int64_t place) const {
    const std::int64_t s = places.slice(place);
    return s >= 0 ? position[s] : -1;
  }
  __device__ bool alike(std::int32_t a, std::int32_t b) const {
    const std::int32_t from_a = partial_begin[a], from_b = partial_begin[b], count = partial_begin[a + 1] - from_a;
    bool               same = slices[a].rows == slices[b].rows && count == partial_begin[b + 1] - from_b;
    for (std::int32_t i = 0; same && i < count; ++i)
      same =
        partials[from_a + i].rows == partials[from_b + i].rows && partials[from_a + i].entries == partials[from_b + i].entries;
    return same;
  }
  // Levels of the column that starts at a place; 0 when none does.
  __device__ int height(std::int64_t place) const {
    const std::int32_t first = at(place);
    const int          level = static_cast<int>(place % places.levels);
    if (first < 0) return 0;
    if (level > 0) {
      const std::int32_t before = at(place - 1);
      if (before >= 0 && alike(before, first)) return 0;
    }
    int levels = 1;
    for (; level + levels < places.levels; ++levels) {
      const std::int32_t next = at(place + levels);
      if (next < 0 || !alike(next, first)) break;
    }
    return levels;
  }
};

__global__ void find_eligible(const Slice *slices, const std::int32_t *listed, std::int64_t count, std::int64_t of_cut,
                              std::int32_t *position) {
  const std::int64_t i = global_index<block>();
  if (i < count && listed[i] < of_cut && (slices[i].pattern & ~Slice::has_partials) == 0)
    position[listed[i]] = static_cast<std::int32_t>(i);
}

struct StartsColumn {
  Candidates candidates;

  __device__ bool operator()(std::int32_t place) const { return candidates.height(place) >= fewest_levels; }
};

struct InNoColumn {
  const std::uint8_t *in_column;

  __device__ bool operator()(std::int32_t i) const { return !in_column[i]; }
};

// Neighbouring lines go to the warps of a block.
struct ColumnOrder {
  Places       places;
  std::int64_t line; // rows, 0: none
  std::int64_t most_y, most_part;
  int          y_bits, part_bits, level_bits, bits;

  ColumnOrder(const Places &all, std::int64_t line_rows, std::int64_t rows_per_plane) : places(all), line(line_rows) {
    most_y = line ? rows_per_plane / line / block_slices + 1 : 0;
    most_part = (line ? line : rows_per_plane) / slice_rows + 1;
    y_bits = bits_of(most_y);
    part_bits = bits_of(most_part);
    level_bits = bits_of(places.levels - 1);
    bits = bits_of(places.count() / places.levels / places.per_plane) + y_bits + part_bits + bits_of_block + level_bits;
  }

  __device__ std::uint64_t key(std::int64_t start, const Cut &cut) const {
    const std::int64_t cell = start / places.levels, middle = cut.first_row(cell % places.per_plane) + slice_rows / 2;
    const std::int64_t y = line ? middle / line : 0, part = line ? middle % line / slice_rows : middle / slice_rows;
    std::int64_t       key = cell / places.per_plane;
    key = key << y_bits | min(y / block_slices, most_y);
    key = key << part_bits | min(part, most_part);
    key = key << bits_of_block | y % block_slices;
    return static_cast<std::uint64_t>(key) << level_bits | static_cast<std::uint64_t>(start % places.levels);
  }
};

__global__ void number_columns(const std::int32_t *starts, std::int64_t count, const ColumnOrder order, const Cut cut,
                               std::uint64_t *keys) {
  const std::int64_t c = global_index<block>();
  if (c < count) keys[c] = order.key(starts[c], cut);
}

__global__ void write_columns(const std::int32_t *starts, std::int64_t count, const Candidates candidates, Column *columns,
                              std::uint8_t *in_column) {
  const std::int64_t c = global_index<block>();
  if (c >= count) return;
  const std::int32_t first = candidates.at(starts[c]), partial_begin = candidates.partial_begin[first];
  const int          levels = candidates.height(starts[c]);
  columns[c] = {candidates.slices[first].rows,
                candidates.slices[first].first_row,
                levels,
                partial_begin,
                candidates.partial_begin[first + 1] - partial_begin,
                {0, 0}};
  for (int level = 0; level < levels; ++level) in_column[candidates.at(starts[c] + level)] = 1;
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

} // namespace

void build_columns(Executor &executor, Algorithms &algorithms, const Grid &grid, const Cut &cut, const std::int32_t *listed,
                   const BuildChoices &choices, Section &section) {
  const cudaStream_t stream = algorithms.stream();
  const std::int64_t count = section.slices.size(), stride = grid.stride();
  Columns           &columns = section.columns;
  Places             places;
  places.per_plane = cut.stride ? cut.per_plane : stride / slice_rows;
  places.slices = cut.slices();
  // High columns read fewer planes twice; but there must be enough of them to fill a device a few times over.
  const std::int64_t wanted = columns_per_multiprocessor * executor.device().multiprocessors;
  places.levels = choices.levels > 0 ? choices.levels : static_cast<int>(std::min<std::int64_t>(count / wanted, most_levels));
  const bool stacked = cut.stride != 0 || stride % slice_rows == 0; // slices lie one above the other
  if (grid.stencil.shape < 0 || !stacked || places.levels < fewest_levels) return;
  const std::vector<std::int32_t> offsets = offsets_of_first(section);
  const Stencil                   stencil = match_stencil(offsets, grid.plane != 0 ? grid.line : 0, stride);
  if (!(stencil == grid.stencil)) return; // the row that was looked at is not typical
  places.planes = (places.slices + places.per_plane - 1) / places.per_plane;

  Array<std::int32_t> position(executor, places.slices), found(executor, places.count());
  TCBOUND_CUDA(cudaMemsetAsync(position.data(), 0xff, static_cast<std::size_t>(position.bytes()), stream)); // -1
  find_eligible<<<grid_for(count), block, 0, stream>>>(section.slices.data(), listed, count, places.slices, position.data());
  TCBOUND_LAUNCHED();
  const Candidates   candidates = {places, position.data(), section.slices.data(), section.partial_begin.data(),
                                   section.partials.data()};
  const std::int64_t size = algorithms.select_numbers(found.data(), places.count(), StartsColumn{candidates});
  if (size == 0) return;
  Array<std::uint64_t> keys(executor, size), sorted_keys(executor, size);
  Array<std::int32_t>  sorted(executor, size), rest(executor, count);
  Array<std::uint8_t>  in_column(executor, count);
  const ColumnOrder    order(places, grid.plane != 0 ? grid.line : 0, stride);
  number_columns<<<grid_for(size), block, 0, stream>>>(found.data(), size, order, cut, keys.data());
  TCBOUND_LAUNCHED();
  algorithms.sort_pairs(keys.data(), sorted_keys.data(), found.data(), sorted.data(), size, order.bits);

  columns.stencil = stencil;
  columns.entries = static_cast<int>(offsets.size());
  columns.columns = Array<Column>(executor, size);
  columns.partials = Array<Partial>(executor, section.partials.size());
  TCBOUND_CUDA(cudaMemsetAsync(in_column.data(), 0, static_cast<std::size_t>(in_column.bytes()), stream));
  write_columns<<<grid_for(size), block, 0, stream>>>(sorted.data(), size, candidates, columns.columns.data(),
                                                      in_column.data());
  TCBOUND_LAUNCHED();
  if (section.partials.size() > 0) {
    SlotTable table;
    std::copy(stencil.slot.begin(), stencil.slot.end(), table.slot);
    write_partials<<<grid_for(section.partials.size()), block, 0, stream>>>(section.partials.data(), section.partials.size(),
                                                                            table, columns.partials.data());
    TCBOUND_LAUNCHED();
  }
  const std::int64_t left = algorithms.select_numbers(rest.data(), count, InNoColumn{in_column.data()});
  columns.rest = Array<std::int32_t>(executor, left);
  executor.copy(columns.rest.data(), MemorySpace::cuda, rest.data(), MemorySpace::cuda,
                static_cast<std::size_t>(columns.rest.bytes()));
  renew_columns(section);
}

} // namespace tcbound::compact
