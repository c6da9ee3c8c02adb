// Finds the rows of a section that one march through a box of cells multiplies.
#include <algorithm>
#include <vector>

#include "cuda/algorithms.h"
#include "cuda/error.h"
#include "device_matrix.h"
#include "rows.h"
#include "section_view.h"

namespace tcbound::compact {
namespace {

constexpr int block = 256;

unsigned grid_for(std::int64_t threads) { return static_cast<unsigned>((threads + block - 1) / block); }

// The stencil, entry by entry.
struct Points {
  int          count;
  std::int32_t offset[slots];
  double       value[slots];
  std::int8_t  step[slots][3]; // to the neighbour, in cells
};

struct BoxOfCells {
  int n[3];

  // Which entries of the stencil a row has: those whose neighbours are in the box.
  __device__ std::uint32_t entries(const Points &points, std::int64_t row) const {
    const auto          r = static_cast<unsigned>(row); // fewer than 2^31
    const unsigned      line = r / static_cast<unsigned>(n[0]), plane = line / static_cast<unsigned>(n[1]);
    const int           at[3] = {static_cast<int>(r - line * static_cast<unsigned>(n[0])),
                                 static_cast<int>(line - plane * static_cast<unsigned>(n[1])), static_cast<int>(plane)};
    const std::uint32_t all = (1U << points.count) - 1;
    bool                inner = true;
    for (int d = 0; d < 3; ++d) inner = inner && (n[d] == 1 || (at[d] > 0 && at[d] < n[d] - 1));
    if (inner) return all;
    std::uint32_t found = 0;
    for (int q = 0; q < points.count; ++q) {
      bool inside = true;
      for (int d = 0; d < 3; ++d) inside = inside && unsigned(at[d] + points.step[q][d]) < unsigned(n[d]);
      found |= (inside ? 1U : 0U) << q;
    }
    return found;
  }
};

// Of each pattern, the entries of the stencil that it has; 0 where it has others.
__global__ void compare_patterns(const Pattern *patterns, std::int64_t count, const ConstantSegment *segments,
                                 const Points points, std::uint32_t *entries) {
  const std::int64_t p = global_index<block>();
  if (p >= count) return;
  const Pattern pattern = patterns[p];
  std::uint32_t found = 0;
  int           q = 0;
  bool          same = pattern.entries <= points.count;
  for (std::int64_t i = pattern.first_segment; same && i < pattern.first_segment + pattern.segments; ++i)
    for (int j = 0; same && j < segments[i].count; ++j) {
      while (q < points.count && points.offset[q] != segments[i].offset + j) ++q;
      same = q < points.count && __double_as_longlong(points.value[q]) == __double_as_longlong(segments[i].values[j]);
      if (same) found |= 1U << q;
    }
  entries[p] = same ? found : 0;
}

// Bit k of `some` stands for the k-th bit that is set in `all`.
__device__ std::uint32_t spread(std::uint64_t some, std::uint32_t all) {
  std::uint32_t found = 0;
  for (; all; all &= all - 1, some >>= 1)
    if (some & 1) found |= all & (~all + 1);
  return found;
}

// A warp looks at a slice; its 64 rows are two bits of each lane.
__global__ void compare_slices(const SectionView section, const BoxOfCells box, const Points points,
                               const std::uint32_t *entries, std::uint32_t *others, std::uint8_t *left,
                               unsigned long long *rows) {
  const std::int64_t s = global_index<block>() / 32;
  const int          lane = static_cast<int>(threadIdx.x % 32);
  if (s >= section.count) return;
  const Slice         slice = section.slices[s];
  const std::uint32_t of_pattern = entries[number_of(slice)];
  bool                present[2], fits[2];
  for (int half = 0; half < 2; ++half) {
    const RowEntries   row = row_of(section, s, slice, lane + 32 * half);
    const std::int64_t number = slice.first_row + static_cast<std::int64_t>(lane + 32 * half);
    present[half] = row.present;
    fits[half] = !row.present || (of_pattern != 0 && spread(row.entries, of_pattern) == box.entries(points, number));
  }
  const bool whole = __all_sync(0xffffffffU, fits[0] && fits[1]);
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t here = __ballot_sync(0xffffffffU, present[half]);
    const std::int64_t  first = slice.first_row + 32 * half; // may be -1, which is not present
    if (!whole || here == 0 || lane != 0) continue;
    const int shift = static_cast<int>(first & 31);
    atomicAnd(others + (first >> 5 < 0 ? 0 : first >> 5), first < 0 ? ~(here >> 1) : ~(here << shift));
    if (first >= 0 && shift != 0 && here >> (32 - shift) != 0) atomicAnd(others + (first >> 5) + 1, ~(here >> (32 - shift)));
    atomicAdd(rows, static_cast<unsigned long long>(__popc(here)));
  }
  if (lane == 0) left[s] = !whole;
}

__global__ void compare_exceptions(const Exception *exceptions, std::int64_t count, const BoxOfCells box, const Points points,
                                   const std::uint32_t *entries, std::uint32_t *others, std::uint8_t *left,
                                   unsigned long long *rows) {
  const std::int64_t e = global_index<block>();
  if (e >= count) return;
  const Exception     exception = exceptions[e];
  const std::uint32_t has = entries[exception.pattern];
  left[e] = has == 0 || has != box.entries(points, exception.row);
  if (left[e]) return;
  atomicAnd(others + exception.row / 32, ~(1U << exception.row % 32));
  atomicAdd(rows, 1ULL);
}

__global__ void gather_exceptions(const Exception *from, const std::int32_t *numbers, std::int64_t count, Exception *to) {
  const std::int64_t i = global_index<block>();
  if (i < count) to[i] = from[numbers[i]];
}

struct IsLeft {
  const std::uint8_t *left;

  __device__ bool operator()(std::int32_t i) const { return left[i] != 0; }
};

Points points_of(const Section &section) {
  Points points = {};
  for (std::size_t i = 0; points.count < section.marched.entries; ++i)
    for (int j = 0; j < section.hot_segments[i].count; ++j, ++points.count) {
      const int slot = section.marched.stencil.slot[static_cast<std::size_t>(points.count)];
      const int step[3] = {slot % 3 - 1, slot / 3 % 3 - 1, slot / 9 - 1};
      points.offset[points.count] = section.hot_segments[i].offset + j;
      points.value[points.count] = section.hot_segments[i].values[j];
      points.step[points.count][0] = static_cast<std::int8_t>(step[0]);
      // In two dimensions the second direction is the one that stencils are stacked in.
      points.step[points.count][1] = static_cast<std::int8_t>(section.marched.n[2] > 1 ? step[1] : step[2]);
      points.step[points.count][2] = static_cast<std::int8_t>(section.marched.n[2] > 1 ? step[2] : 0);
    }
  return points;
}

template <class T> Array<T> first_of(Executor &executor, const Array<T> &from, std::int64_t count) {
  Array<T> to(executor, count);
  executor.copy(to.data(), MemorySpace::cuda, from.data(), MemorySpace::cuda, static_cast<std::size_t>(to.bytes()));
  return to;
}

void find_rows(Executor &executor, Algorithms &algorithms, Section &section) {
  Marched           &m = section.marched;
  const Points       points = points_of(section);
  const cudaStream_t stream = algorithms.stream();
  const std::int64_t slices = section.slices.size(), exceptions = section.exceptions.size(), all = m.n[0] * m.n[1] * m.n[2];
  const BoxOfCells   box = {{static_cast<int>(m.n[0]), static_cast<int>(m.n[1]), static_cast<int>(m.n[2])}};
  std::vector<grid::MarchPoint> list;
  for (int q = 0; q < points.count; ++q)
    list.push_back({{points.step[q][0], points.step[q][1], points.step[q][2]}, points.value[q]});
  m.rows = 0;
  m.marcher = grid::make_marcher(executor, m.n, list, {});

  Array<std::uint32_t>      entries(executor, section.patterns.size());
  Array<std::uint8_t>       slice_left(executor, slices), exception_left(executor, exceptions);
  Array<unsigned long long> rows(executor, 1);
  m.others = Array<std::uint32_t>(executor, (all + 31) / 32);
  TCBOUND_CUDA(cudaMemsetAsync(m.others.data(), 0xff, static_cast<std::size_t>(m.others.bytes()), stream));
  TCBOUND_CUDA(cudaMemsetAsync(rows.data(), 0, sizeof(unsigned long long), stream));
  compare_patterns<<<grid_for(section.patterns.size()), block, 0, stream>>>(
    section.patterns.data(), m.marcher ? section.patterns.size() : 0, section.constant_segments.data(), points, entries.data());
  TCBOUND_LAUNCHED();
  if (!m.marcher) TCBOUND_CUDA(cudaMemsetAsync(entries.data(), 0, static_cast<std::size_t>(entries.bytes()), stream));
  compare_slices<<<grid_for(32 * slices), block, 0, stream>>>(view_of(section), box, points, entries.data(), m.others.data(),
                                                              slice_left.data(), rows.data());
  TCBOUND_LAUNCHED();
  if (exceptions > 0) {
    compare_exceptions<<<grid_for(exceptions), block, 0, stream>>>(
      section.exceptions.data(), exceptions, box, points, entries.data(), m.others.data(), exception_left.data(), rows.data());
    TCBOUND_LAUNCHED();
  }
  m.rows = static_cast<std::int64_t>(algorithms.read(rows.data()));

  Array<std::int32_t> numbers(executor, std::max(slices, exceptions));
  m.rest = first_of(executor, numbers, algorithms.select_numbers(numbers.data(), slices, IsLeft{slice_left.data()}));
  const std::int64_t left = algorithms.select_numbers(numbers.data(), exceptions, IsLeft{exception_left.data()});
  m.exceptions = Array<Exception>(executor, left);
  if (left > 0) {
    gather_exceptions<<<grid_for(left), block, 0, stream>>>(section.exceptions.data(), numbers.data(), left,
                                                            m.exceptions.data());
    TCBOUND_LAUNCHED();
  }
  if (m.rows == all) m.others = Array<std::uint32_t>();
}

// Whether most rows are marched through: the march writes the others, too.
bool worth_it(const Marched &marched) { return 4 * marched.rows >= 3 * marched.n[0] * marched.n[1] * marched.n[2]; }

} // namespace

std::vector<std::int32_t> offsets_of_first(const Section &section) {
  std::vector<std::int32_t> offsets;
  if (section.first_segments > static_cast<int>(section.hot_segments.size())) return offsets;
  for (int i = 0; i < section.first_segments; ++i)
    for (int j = 0; j < section.hot_segments[static_cast<std::size_t>(i)].count; ++j)
      offsets.push_back(section.hot_segments[static_cast<std::size_t>(i)].offset + j);
  return offsets;
}

bool find_march(Executor &executor, Algorithms &algorithms, const Grid &grid, std::int64_t rows, std::int64_t columns,
                Section &section) {
  const Stencil &stencil = grid.stencil;
  if (stencil.shape < 0 || rows != columns || rows % grid.stride() != 0 || grid.stride() % grid.line != 0) return false;
  Marched m;
  m.stencil = stencil;
  m.n[0] = grid.line;
  m.n[1] = grid.plane != 0 ? grid.plane / grid.line : rows / grid.line;
  m.n[2] = grid.plane != 0 ? rows / grid.plane : 1;
  const std::vector<std::int32_t> offsets = offsets_of_first(section);
  if (!(match_stencil(offsets, grid.plane != 0 ? grid.line : 0, grid.stride()) == stencil))
    return false; // the row that was looked at is not typical
  m.entries = static_cast<int>(offsets.size());
  section.marched = std::move(m);
  find_rows(executor, algorithms, section);
  if (worth_it(section.marched)) return true;
  section.marched = Marched();
  return false;
}

// Without a marcher the slices have all rows, until new values make it worth while again.
void renew_march(Executor &executor, Section &section) {
  if (section.marched.n[0] == 0) return;
  Algorithms algorithms(executor);
  find_rows(executor, algorithms, section);
  if (!worth_it(section.marched)) section.marched.marcher.reset();
}

} // namespace tcbound::compact
