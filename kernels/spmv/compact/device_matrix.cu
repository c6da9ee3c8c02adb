// What is done with a compact matrix in device memory besides building and multiplying: new values, the CSR again, its diagonal.
#include <algorithm>
#include <cmath>

#include "cuda/error.h"
#include "device_matrix.h"
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

// One warp a slice: values from CSR order to column-major order, two neighbouring rows a lane.
template <class Offset>
__global__ void __launch_bounds__(block)
  fill_slices(const Offset *offsets, const double *from, std::int64_t rows, const SectionView section, double *to) {
  const std::int64_t s = blockIdx.x * static_cast<std::int64_t>(block_warps) + threadIdx.x / 32;
  const int          lane = static_cast<int>(threadIdx.x % 32);
  if (s >= section.count) return;
  const Slice        slice = section.slices[s];
  const std::int64_t row = slice.first_row + 2 * static_cast<std::int64_t>(lane);
  const auto   at_row = [&](std::int64_t r) { return static_cast<std::int64_t>(offsets[max(std::int64_t(0), min(r, rows))]); };
  std::int64_t first = at_row(row), second = at_row(row + 1);
  const std::int64_t first_end = second, second_end = at_row(row + 2);
  const std::int64_t entries = (section.value_begin[s + 1] - section.value_begin[s]) / slice_rows;
  double2           *at = reinterpret_cast<double2 *>(to + section.value_begin[s]) + lane;
  const RowEntries   mine = row_of(section, s, slice, 2 * lane), next = row_of(section, s, slice, 2 * lane + 1);
#pragma unroll 4
  for (int k = 0; k < entries; ++k, at += slice_rows / 2) {
    const bool has_first = mine.has(k) && first < first_end, has_second = next.has(k) && second < second_end;
    *at = make_double2(has_first ? from[first] : 0.0, has_second ? from[second] : 0.0);
    first += has_first;
    second += has_second;
  }
}

// Whether a row's values are those that its pattern's representative has for the row's entries. By a warp.
template <class Offset>
__device__ bool same_values(const Offset *offsets, const double *values, std::int64_t row, const RowEntries &entries,
                            const Pattern &pattern) {
  const double *mine = values + offsets[row], *theirs = values + offsets[pattern.representative];
  bool          same = true;
  for (int k = static_cast<int>(threadIdx.x % 32); k < pattern.entries; k += 32) {
    if (!entries.has(k)) continue;
    const int place = ~entries.entries ? __popcll(entries.entries & ((std::uint64_t(1) << k) - 1)) : k;
    same = same && __double_as_longlong(mine[place]) == __double_as_longlong(theirs[k]);
  }
  return __all_sync(0xffffffffU, same);
}

// One warp a slice; a block's warps share its exceptions.
template <class Offset>
__global__ void __launch_bounds__(32 * block_slices)
  find_parted(const Offset *offsets, const double *values, const SectionView section, int *parted) {
  const std::int64_t warp = threadIdx.x / 32, first = blockIdx.x * static_cast<std::int64_t>(section.depth * block_slices);
  bool               same = true;
  for (std::int64_t s = first + warp; s < min(section.count, first + section.depth * block_slices); s += block_slices) {
    const Slice   slice = section.slices[s];
    const Pattern pattern = section.patterns[number_of(slice)];
    for (int r = 0; r < slice_rows && same; ++r) {
      const RowEntries row = row_of(section, s, slice, r);
      if (row.present) same = same_values(offsets, values, slice.first_row + r, row, pattern);
    }
  }
  for (std::int64_t e = blockIdx.x * static_cast<std::int64_t>(block_slices) + warp; e < section.exception_count;
       e += gridDim.x * static_cast<std::int64_t>(block_slices))
    same = same && same_values(offsets, values, section.exceptions[e].row, RowEntries{true, ~std::uint64_t(0)},
                               section.patterns[section.exceptions[e].pattern]);
  if (!same && threadIdx.x % 32 == 0) *parted = 1;
}

template <class Offset>
__global__ void update_dictionary(const Offset *offsets, const double *values, const Pattern *patterns, std::int64_t count,
                                  ConstantSegment *segments) {
  const std::int64_t p = global_index<block>();
  if (p >= count) return;
  const Pattern pattern = patterns[p];
  std::int64_t  k = offsets[pattern.representative];
  for (std::int64_t i = pattern.first_segment; i < pattern.first_segment + pattern.segments; ++i)
    for (int j = 0; j < segments[i].count; ++j, ++k) segments[i].values[j] = values[k];
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
         values.bytes();
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

void read_hot_segments(Executor &executor, Section &section) {
  section.hot_segments.resize(
    static_cast<std::size_t>(std::min<std::int64_t>(most_hot_segments, section.constant_segments.size())));
  executor.copy(section.hot_segments.data(), MemorySpace::host, section.constant_segments.data(), MemorySpace::cuda,
                section.hot_segments.size() * sizeof(ConstantSegment));
  if (section.columns.stencil.shape < 0) return;
  // Columns are of the most frequent pattern, whose segments come first.
  int k = 0;
  for (std::size_t i = 0; k < section.columns.entries; ++i)
    for (int j = 0; j < section.hot_segments[i].count; ++j, ++k)
      section.columns.values[section.columns.stencil.slot[static_cast<std::size_t>(k)]] = section.hot_segments[i].values[j];
  const auto &values = section.columns.values;
  section.columns.finite = std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

bool refill(Executor &executor, DeviceMatrix &matrix, const double *values) {
  Section &section = matrix.constant;
  if (section.slices.size() > 0) {
    Array<int> parted(executor, 1);
    int        any = 0;
    TCBOUND_CUDA(cudaMemsetAsync(parted.data(), 0, sizeof(int), stream_of(executor)));
    csr::with_offsets(matrix.csr, [&](const auto *offsets) {
      find_parted<<<static_cast<unsigned>(blocks_of(section)), 32 * block_slices, 0, stream_of(executor)>>>(
        offsets, values, view_of(section), parted.data());
      TCBOUND_LAUNCHED();
    });
    executor.copy(&any, MemorySpace::host, parted.data(), MemorySpace::cuda, sizeof any);
    if (any) return false;
    csr::with_offsets(matrix.csr, [&](const auto *offsets) {
      update_dictionary<<<grid_for(section.patterns.size()), block, 0, stream_of(executor)>>>(
        offsets, values, section.patterns.data(), section.patterns.size(), section.constant_segments.data());
      TCBOUND_LAUNCHED();
    });
    read_hot_segments(executor, section);
    renew_march(executor, section);
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
