#pragma once

// What device code sees of a section. For .cu files only.

#include "device_matrix.h"

namespace tcbound::compact {

struct SectionView {
  const Slice           *slices;
  std::int64_t           count; // of slices
  int                    depth;
  const std::int32_t    *partial_begin;
  const Partial         *partials;
  const Pattern         *patterns;
  const Segment         *segments;
  const ConstantSegment *constant_segments;
  const Exception       *exceptions;
  std::int64_t           exception_count;
  const std::int64_t    *value_begin;
  const std::int64_t    *exception_values;
  const double          *values;
};

inline SectionView view_of(const Section &section) {
  return {section.slices.data(),
          section.slices.size(),
          section.depth,
          section.partial_begin.data(),
          section.partials.data(),
          section.patterns.data(),
          section.segments.data(),
          section.constant_segments.data(),
          section.exceptions.data(),
          section.exceptions.size(),
          section.value_begin.data(),
          section.exception_values.data(),
          section.values.data()};
}

__device__ inline std::int32_t number_of(const Slice &slice) { return slice.pattern & ~Slice::flags; }

// Row first_row + r of slice s: whether the slice has it and which entries of the pattern it has, all by default.
struct RowEntries {
  bool          present;
  std::uint64_t entries;

  __device__ bool has(int k) const { return k >= longest_masked || (entries >> k & 1); }
};

__device__ inline RowEntries row_of(const SectionView &section, std::int64_t s, const Slice &slice, int r) {
  if (slice.rows >> r & 1) return {true, ~std::uint64_t(0)};
  if (slice.pattern & Slice::has_partials)
    for (std::int32_t i = section.partial_begin[s]; i < section.partial_begin[s + 1]; ++i)
      if (section.partials[i].rows >> r & 1) return {true, section.partials[i].entries};
  return {false, ~std::uint64_t(0)};
}

} // namespace tcbound::compact
