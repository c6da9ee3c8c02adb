// What is done with a compact matrix in device memory besides building and multiplying: new values, the CSR again, its diagonal.
#include <algorithm>
#include <cmath>

#include "../csr/row_tile.h"
#include "cuda/error.h"
#include "device_matrix.h"
#include "hot.h"
#include "remainder.h"
#include "rows.h"
#include "section_view.h"

namespace tcbound::compact {
namespace {

constexpr int block = 256;
constexpr int block_warps = block / 32;

cudaStream_t stream_of(Executor &executor) { return static_cast<cudaStream_t>(executor.stream()); }

unsigned grid_for(std::int64_t threads) { return static_cast<unsigned>((threads + block - 1) / block); }

std::int64_t blocks_of(const Section &section) {
  return (section.slices.size() + section.depth * block_slices - 1) / (section.depth * block_slices);
}

// One warp a slice: values from CSR order to column-major order.
template <class Offset>
__global__ void __launch_bounds__(block)
  fill_slices(const Offset *offsets, const double *from, std::int64_t rows, const SectionView section, double *to) {
  __shared__ csr::RowTile tiles[block_warps];
  csr::RowTile           &tile = tiles[threadIdx.x / 32];
  const std::int64_t      s = blockIdx.x * static_cast<std::int64_t>(block_warps) + threadIdx.x / 32;
  if (s >= section.count) return;
  const Slice slice = section.slices[s];
  const auto  at_row = [&](std::int64_t r) { return static_cast<std::int64_t>(offsets[max(std::int64_t(0), min(r, rows))]); };
  const auto  entries = static_cast<int>((section.value_begin[s + 1] - section.value_begin[s]) / slice_rows);
  for (int r = static_cast<int>(threadIdx.x % 32); r < slice_rows; r += 32) {
    const std::int64_t end = at_row(slice.first_row + std::int64_t(r) + 1);
    std::int64_t       at = at_row(slice.first_row + std::int64_t(r));
    const RowEntries   mine = row_of(section, s, slice, r);
    double            *put = to + section.value_begin[s] + r;
    for (int first = 0; first < entries; first += csr::RowTile::width) {
      int taken = 0;
      tile.load(at, static_cast<int>(min(end - at, static_cast<std::int64_t>(csr::RowTile::width))),
                [&](std::int64_t begin, int k) { return from[begin + k]; });
#pragma unroll
      for (int j = 0; j < csr::RowTile::width; ++j) {
        if (first + j >= entries) break;
        const bool has = mine.has(first + j) && at + taken < end;
        put[static_cast<std::int64_t>(first + j) * slice_rows] = has ? tile(taken) : 0.0;
        taken += has;
      }
      at += taken;
    }
  }
}

// `lanes` neighbouring threads, all in one warp, call it for one row: whether their part of its values is the same bits as what the
// pattern's representative has for the row's entries.
template <class Offset>
__device__ bool same_values(const Offset *offsets, const double *values, std::int64_t row, const RowEntries &entries,
                            std::int64_t representative, int pattern_entries, int lanes) {
  const double *mine = values + offsets[row], *theirs = values + representative;
  bool          same = true;
  for (int k = static_cast<int>(threadIdx.x) % lanes; k < pattern_entries; k += lanes) {
    if (!entries.has(k)) continue;
    const int place = ~entries.entries ? __popcll(entries.entries & ((std::uint64_t(1) << k) - 1)) : k;
    same = same && __double_as_longlong(mine[place]) == __double_as_longlong(theirs[k]);
  }
  return same;
}

// One warp a slice, `lanes` threads a row; all threads share the exceptions.
template <class Offset>
__global__ void __launch_bounds__(block)
  find_parted(const Offset *offsets, const double *values, const SectionView section, int lanes, int *parted) {
  const std::int64_t s = global_index<block>() / 32, threads = gridDim.x * static_cast<std::int64_t>(block);
  bool               same = true;
  if (s < section.count) {
    const Slice        slice = section.slices[s];
    const Pattern      pattern = section.patterns[number_of(slice)];
    const std::int64_t representative = offsets[pattern.representative];
#pragma unroll 2
    for (int r = static_cast<int>(threadIdx.x % 32) / lanes; r < slice_rows; r += 32 / lanes) {
      const RowEntries row = row_of(section, s, slice, r);
      if (row.present)
        same = same_values(offsets, values, slice.first_row + r, row, representative, pattern.entries, lanes) && same;
    }
  }
  for (std::int64_t e = global_index<block>() / lanes; e < section.exception_count; e += threads / lanes) {
    const Pattern pattern = section.patterns[section.exceptions[e].pattern];
    same = same_values(offsets, values, section.exceptions[e].row, RowEntries{true, ~std::uint64_t(0)},
                       static_cast<std::int64_t>(offsets[pattern.representative]), pattern.entries, lanes) &&
           same;
  }
  if (!same) *parted = 1;
}

// One warp a pattern.
template <class Offset>
__global__ void __launch_bounds__(block)
  update_dictionary(const Offset *offsets, const double *values, const Pattern *patterns, std::int64_t count,
                    ConstantSegment *segments, const Renewed *renewed) {
  constexpr unsigned all = 0xffffffffU;
  const std::int64_t p = global_index<block>() / 32;
  const int          lane = static_cast<int>(threadIdx.x % 32);
  if (p >= count || renewed->parted) return;
  const Pattern pattern = patterns[p];
  std::int64_t  begin = offsets[pattern.representative];
  for (int first = 0; first < pattern.segments; first += 32) {
    const std::int64_t i = pattern.first_segment + first + lane;
    const int          size = first + lane < pattern.segments ? segments[i].count : 0;
    int                upto = size; // entries of this and the lanes before
    for (int distance = 1; distance < 32; distance *= 2) {
      const int before = __shfl_up_sync(all, upto, distance);
      if (lane >= distance) upto += before;
    }
    for (int j = 0; j < size; ++j) segments[i].values[j] = values[begin + upto - size + j];
    begin += __shfl_sync(all, upto, 31);
  }
}

// Calls f(number of the entry in its row, offset, value) for the entries of a row; `at`: of an explicit row's first value.
template <class F>
__device__ void for_each_entry(const SectionView &section, std::int32_t number, std::uint64_t entries, std::int64_t at, F &&f) {
  const Pattern pattern = section.patterns[number];
  const bool    constant = section.constant_segments != nullptr;
  int           k = 0, found = 0;
  for (std::int64_t i = pattern.first_segment; i < pattern.first_segment + pattern.segments; ++i) {
    const Segment segment =
      constant ? Segment{section.constant_segments[i].offset, section.constant_segments[i].count} : section.segments[i];
    for (int j = 0; j < segment.count; ++j, ++k) {
      if (!RowEntries{true, entries}.has(k)) continue;
      const double value =
        constant ? section.constant_segments[i].values[j] : section.values[at + static_cast<std::int64_t>(k) * slice_rows];
      f(found++, segment.offset + j, value);
    }
  }
}

// Calls f(row, pattern, its entries, place of its first value) for every row of a section; a block's threads share its slices
// and exceptions.
template <class F> __device__ void for_each_row(const SectionView &section, F &&f) {
  const std::int64_t first = blockIdx.x * static_cast<std::int64_t>(section.depth * block_slices);
  for (int i = static_cast<int>(threadIdx.x); i < section.depth * block_slices * slice_rows; i += block) {
    const std::int64_t s = first + i / slice_rows;
    const int          r = i % slice_rows;
    if (s >= section.count) break;
    const Slice      slice = section.slices[s];
    const RowEntries row = row_of(section, s, slice, r);
    if (row.present)
      f(static_cast<std::int64_t>(slice.first_row) + r, number_of(slice), row.entries,
        section.value_begin ? section.value_begin[s] + r : 0);
  }
  for (std::int64_t e = global_index<block>(); e < section.exception_count; e += gridDim.x * static_cast<std::int64_t>(block))
    f(section.exceptions[e].row, section.exceptions[e].pattern, ~std::uint64_t(0),
      section.exception_values ? section.exception_values[e] : 0);
}

template <class Offset>
__global__ void recover_rows(const SectionView section, const Offset *offsets, std::int32_t *columns, double *values) {
  for_each_row(section, [&](std::int64_t row, std::int32_t pattern, std::uint64_t entries, std::int64_t at) {
    const std::int64_t begin = offsets[row];
    for_each_entry(section, pattern, entries, at, [&](int k, std::int32_t offset, double value) {
      columns[begin + k] = static_cast<std::int32_t>(row) + offset;
      values[begin + k] = value;
    });
  });
}

__global__ void find_diagonal(const SectionView section, double *d) {
  for_each_row(section, [&](std::int64_t row, std::int32_t pattern, std::uint64_t entries, std::int64_t at) {
    double found = 0.0;
    for_each_entry(section, pattern, entries, at, [&](int, std::int32_t offset, double value) {
      if (offset == 0) found = value;
    });
    d[row] = found;
  });
}

} // namespace

std::int64_t Section::read_bytes() const {
  // A march reads nothing that is stored; in columns, slices have no pattern number to look up.
  const std::int64_t whole = marched.marcher ? marched.rest.size() : columns.count() > 0 ? columns.rest.size() : slices.size();
  const std::int64_t single = marched.marcher ? marched.exceptions.bytes() : exceptions.bytes();
  const std::int64_t numbers = marched.marcher ? marched.rest.bytes() : columns.bytes();
  if (whole == 0 && single == 0 && columns.count() == 0) return 0;
  return numbers + whole * static_cast<std::int64_t>(sizeof(Slice)) +
         (partials.size() > 0 ? whole * static_cast<std::int64_t>(sizeof(std::int32_t)) + partials.bytes() : 0) +
         patterns.bytes() + segments.bytes() + constant_segments.bytes() + single + value_begin.bytes() +
         exception_values.bytes() + values.bytes();
}

std::int64_t Section::bytes() const {
  return columns.bytes() + marched.bytes() + slices.bytes() + partial_begin.bytes() + partials.bytes() + patterns.bytes() +
         segments.bytes() + constant_segments.bytes() + exceptions.bytes() + value_begin.bytes() + exception_values.bytes() +
         values.bytes() + renewed.bytes();
}

void fill_values(Executor &executor, DeviceMatrix &matrix, const double *values) {
  Section &section = matrix.explicit_;
  if (section.slices.size() > 0)
    csr::with_offsets(matrix.csr, [&](const auto *offsets) {
      fill_slices<<<grid_for(32 * section.slices.size()), block, 0, stream_of(executor)>>>(
        offsets, values, matrix.csr.rows, view_of(section), section.values.data());
      TCBOUND_LAUNCHED();
    });
  fill_remainder(executor, matrix, values);
}

// The segments of the most frequent pattern come first.
void renew_columns(Section &section) {
  if (section.columns.stencil.shape < 0) return;
  int k = 0;
  for (std::size_t i = 0; k < section.columns.entries; ++i)
    for (int j = 0; j < section.hot_segments[i].count; ++j, ++k)
      section.columns.values[section.columns.stencil.slot[static_cast<std::size_t>(k)]] = section.hot_segments[i].values[j];
  const auto &values = section.columns.values;
  section.columns.finite = std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

// False: rows that share a pattern would have to part. Only waits for the device once.
static bool refill_dictionary(Executor &executor, const csr::DeviceArrays &csr, Section &section, const double *values) {
  const cudaStream_t stream = stream_of(executor);
  const int          lanes = lanes_of_row(csr.rows, csr.nonzeros);
  int               *parted = &section.renewed.data()->parted;
  csr::with_offsets(csr, [&](const auto *offsets) {
    find_parted<<<grid_for(32 * section.slices.size()), block, 0, stream>>>(offsets, values, view_of(section), lanes, parted);
    TCBOUND_LAUNCHED();
    update_dictionary<<<grid_for(32 * section.patterns.size()), block, 0, stream>>>(
      offsets, values, section.patterns.data(), section.patterns.size(), section.constant_segments.data(),
      section.renewed.data());
    TCBOUND_LAUNCHED();
  });
  if (!renew_hot_segments(executor, section)) return false;
  renew_columns(section);
  return true;
}

bool refill(Executor &executor, DeviceMatrix &matrix, const double *values) {
  if (matrix.constant.slices.size() > 0) {
    if (!refill_dictionary(executor, matrix.csr, matrix.constant, values)) return false;
    renew_march(executor, matrix.constant);
    matrix.count_bytes();
  }
  fill_values(executor, matrix, values);
  return true;
}

csr::DeviceArrays recover(Executor &executor, const DeviceMatrix &matrix) {
  csr::DeviceArrays to;
  to.rows = matrix.csr.rows;
  to.columns_count = matrix.csr.columns_count;
  to.nonzeros = matrix.csr.nonzeros;
  to.wide = matrix.csr.wide;
  to.columns = Array<std::int32_t>(executor, to.nonzeros);
  to.values = Array<double>(executor, to.nonzeros);
  const auto copy_offsets = [&](auto &copy, const auto &from) {
    copy = std::decay_t<decltype(copy)>(executor, from.size());
    executor.copy(copy.data(), MemorySpace::cuda, from.data(), MemorySpace::cuda, static_cast<std::size_t>(from.bytes()));
  };
  copy_offsets(to.narrow_offsets, matrix.csr.narrow_offsets);
  copy_offsets(to.wide_offsets, matrix.csr.wide_offsets);
  csr::with_offsets(matrix.csr, [&](const auto *offsets) {
    for (const Section *section : {&matrix.constant, &matrix.explicit_}) {
      if (section->slices.size() == 0) continue;
      recover_rows<<<static_cast<unsigned>(blocks_of(*section)), block, 0, stream_of(executor)>>>(
        view_of(*section), offsets, to.columns.data(), to.values.data());
      TCBOUND_LAUNCHED();
    }
  });
  recover_remainder(executor, matrix, to);
  return to;
}

void diagonal(Executor &executor, const DeviceMatrix &matrix, double *d) {
  for (const Section *section : {&matrix.constant, &matrix.explicit_}) {
    if (section->slices.size() == 0) continue;
    find_diagonal<<<static_cast<unsigned>(blocks_of(*section)), block, 0, stream_of(executor)>>>(view_of(*section), d);
    TCBOUND_LAUNCHED();
  }
  diagonal_of_remainder(executor, matrix, d);
}

} // namespace tcbound::compact
