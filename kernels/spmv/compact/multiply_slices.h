#pragma once

// Device code of cuda_core.cu: a warp multiplies a slice, two neighbouring rows a lane; a thread an exception. For .cu files only.
//
// All lanes of a warp read the same segment of the same pattern, so a segment of m columns takes m + 1 neighbouring elements of x
// for a lane's two rows, and pairs of them come with one 16-byte load where they are aligned. What bounds a constant slice is the
// rate at which the caches deliver x; what bounds an explicit one is memory.

#include <cstring>
#include <type_traits>

#include "cuda/load_once.h"
#include "section_view.h"

namespace tcbound::compact {
namespace {

struct HotSegments { // hot.h
  ConstantSegment segments[most_hot_segments];
};
struct NoHotSegments {};

template <bool constant> struct Arguments {
  SectionView                                              section;
  const std::int32_t                                      *rest; // numbers of the slices that are in no column, or null for all
  std::int64_t                                             rest_count;
  const double                                            *x;
  std::int64_t                                             columns;
  double                                                   alpha, beta;
  const double                                            *y;
  double                                                  *z;
  std::conditional_t<constant, HotSegments, NoHotSegments> hot;
};

template <bool constant> __device__ double scale(const Arguments<constant> &a, std::int64_t row, double sum) {
  const double result = a.alpha * sum;
  return a.beta != 0.0 ? result + a.beta * a.y[row] : result;
}

// A lane's two rows, those that it has; by a whole warp. Pairs go out together: half-written sectors cost the second-level cache
// as much as whole ones.
template <bool constant>
__device__ void store(const Arguments<constant> &a, std::int64_t row, bool has_first, bool has_second, double first,
                      double second) {
  constexpr unsigned all = 0xffffffffU;
  first = has_first ? scale(a, row, first) : 0.0;
  second = has_second ? scale(a, row + 1, second) : 0.0;
  double *z = a.z + row;
  if (!__all_sync(all, has_first && has_second)) {
    if (has_first) z[0] = first;
    if (has_second) z[1] = second;
  } else if (reinterpret_cast<std::uintptr_t>(z) % 16 == 0) {
    *reinterpret_cast<double2 *>(z) = make_double2(first, second);
  } else { // pairs of a lane's second row and the next lane's first
    const int    lane = static_cast<int>(threadIdx.x % 32);
    const double next = __shfl_down_sync(all, first, 1);
    if (lane == 0) z[0] = first;
    if (lane < 31)
      *reinterpret_cast<double2 *>(z + 1) = make_double2(second, next);
    else
      z[1] = second;
  }
}

template <class T> __device__ T load(const T *from) {
  static_assert(sizeof(T) % 16 == 0 || sizeof(T) == 8);
  if constexpr (sizeof(T) == 8) {
    const int2 words = __ldg(reinterpret_cast<const int2 *>(from));
    T          to;
    memcpy(&to, &words, 8);
    return to;
  } else {
    int4 words[sizeof(T) / 16];
    T    to;
    for (int i = 0; i < static_cast<int>(sizeof(T) / 16); ++i) words[i] = __ldg(reinterpret_cast<const int4 *>(from) + i);
    memcpy(&to, words, sizeof(T));
    return to;
  }
}

__device__ double2 load_pair(const double *x) { return __ldg(reinterpret_cast<const double2 *>(x)); }

// w[i] = x[i] for i <= m.
template <int m, bool aligned> __device__ void load_run(const double *x, double (&w)[longest_run + 1]) {
  if (!aligned) w[0] = __ldg(x);
#pragma unroll
  for (int at = !aligned; at <= m; at += 2) {
    if (at == m) {
      w[at] = __ldg(x + at);
    } else {
      const double2 pair = load_pair(x + at);
      w[at] = pair.x;
      w[at + 1] = pair.y;
    }
  }
}

// The same where some of the elements may lie outside x; the rows of the slice do not need those.
template <int m>
__device__ void load_guarded(const double *x, std::int64_t row, int offset, std::int64_t columns,
                             double (&w)[longest_run + 1]) {
#pragma unroll
  for (int i = 0; i <= m; ++i) w[i] = row + offset + i >= 0 && row + offset + i < columns ? __ldg(x + offset + i) : 0.0;
}

struct Sums {
  double first = 0.0, second = 0.0; // of a lane's two rows
};

// Entries that a lane's two rows have, the next one in bit 0. Only patterns of at most 64 entries have rows that lack some, so
// all that follows the 64th is there.
struct Masks {
  std::uint64_t first, second;

  __device__ void advance(int entries) {
    const std::uint64_t more = ~std::uint64_t(0) << (64 - entries);
    first = first >> entries | more;
    second = second >> entries | more;
  }
};

struct FromTable {
  const ConstantSegment     *at;
  __device__ ConstantSegment next() { return load(at++); }
};

struct HotSegment {
  std::int32_t offset, count;
  const double (&values)[longest_run];
};

struct FromParameters {
  const HotSegments    &hot;
  int                   at;
  __device__ HotSegment next() {
    const ConstantSegment &segment = hot.segments[at++];
    return {segment.offset, segment.count, segment.values};
  }
};

// Each lane has the offset of one segment.
struct FromLanes {
  const HotSegments    &hot;
  int                   at, lane;
  std::int32_t          offset;
  __device__ HotSegment next() {
    const ConstantSegment &segment = hot.segments[at++];
    return {__shfl_sync(0xffffffffU, offset, lane++), segment.count, segment.values};
  }
};

// Where the segments of a slice's pattern and a lane's matrix values come from.
template <class From> struct ConstantSource {
  From from;

  __device__ auto                           next() { return from.next(); }
  template <int m, class S> __device__ void values(const S &segment, double2 (&v)[m]) {
#pragma unroll
    for (int j = 0; j < m; ++j) v[j] = make_double2(segment.values[j], segment.values[j]);
  }
};

// Matrix values are read once: they pass by the first-level cache and leave the second first. Those of the next segment are on
// their way while one is used, so that a warp always has something to wait for.
struct ExplicitSource {
  const Segment *at;
  const double  *from;
  int            left; // segments not yet loaded
  std::uint64_t  policy;
  Segment        ahead = {0, 0};
  double2        ready[longest_run], now[longest_run];

  __device__ ExplicitSource(const Segment *segments, int count, const double *values)
    : at(segments), from(values), left(count), policy(once()) {
    load_ahead();
  }
  __device__ void load_ahead() {
    if (left-- <= 0) return;
    ahead = load(at++);
#pragma unroll
    for (int j = 0; j < longest_run; ++j)
      if (j < ahead.count)
        asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v2.f64 {%0, %1}, [%2], %3;"
                     : "=d"(ready[j].x), "=d"(ready[j].y)
                     : "l"(from + j * slice_rows), "l"(policy));
    from += ahead.count * slice_rows;
  }
  __device__ Segment next() {
    const Segment segment = ahead;
#pragma unroll
    for (int j = 0; j < longest_run; ++j) now[j] = ready[j];
    load_ahead();
    return segment;
  }
  template <int m> __device__ void values(const Segment &, double2 (&v)[m]) {
#pragma unroll
    for (int j = 0; j < m; ++j) v[j] = now[j];
  }
};

// A lane's place: x of its first row, whether that is not aligned to 16 bytes, the row, and how long x is.
struct Place {
  const double *x;
  bool          odd;
  std::int64_t  row, columns;
};

template <int m, bool inside, bool masked, class Source, class Segment>
__device__ void add_segment(const Place &place, const Segment &segment, Source &source, Masks &masks, Sums &sums) {
  double  w[longest_run + 1];
  double2 v[m];
  source.values(segment, v);
  if (!inside)
    load_guarded<m>(place.x, place.row, segment.offset, place.columns, w);
  else if (place.odd == (segment.offset & 1))
    load_run<m, true>(place.x + segment.offset, w);
  else
    load_run<m, false>(place.x + segment.offset, w);
#pragma unroll
  for (int j = 0; j < m; ++j) {
    if (!masked || masks.first >> j & 1) sums.first = fma(v[j].x, w[j], sums.first);
    if (!masked || masks.second >> j & 1) sums.second = fma(v[j].y, w[j + 1], sums.second);
  }
  if (masked) masks.advance(m);
}

template <bool inside, bool masked, class Source>
__device__ Sums add_segments(const Place &place, int segments, Source source, Masks masks) {
  Sums sums;
  for (int i = 0; i < segments; ++i) {
    const auto segment = source.next();
    if (segment.count == 3)
      add_segment<3, inside, masked>(place, segment, source, masks, sums);
    else if (segment.count == 1)
      add_segment<1, inside, masked>(place, segment, source, masks, sums);
    else
      add_segment<2, inside, masked>(place, segment, source, masks, sums);
  }
  return sums;
}

// The part of a pattern that a product needs.
struct Stretch {
  std::int64_t first_segment;
  std::int32_t segments;
  std::int16_t hot;
  bool         hot_offsets;
};

template <bool constant> __device__ void multiply_slice(const Arguments<constant> &a, std::int64_t s) {
  const Slice   slice = load(a.section.slices + s);
  const Stretch stretch = load(reinterpret_cast<const Stretch *>(a.section.patterns + number_of(slice)));
  const int     lane = static_cast<int>(threadIdx.x % 32);
  Place         place;
  place.row = slice.first_row + 2 * static_cast<std::int64_t>(lane); // of the last slice it may be more than 32 bits hold
  place.x = a.x + place.row;
  place.odd = (reinterpret_cast<std::uintptr_t>(place.x) / 8) & 1;
  place.columns = a.columns;
  const bool masked = slice.pattern & Slice::has_partials, inside = !(slice.pattern & Slice::reaches_outside);
  RowEntries first = {(slice.rows >> (2 * lane) & 1) != 0, ~std::uint64_t(0)}, second = first;
  second.present = slice.rows >> (2 * lane + 1) & 1;
  if (masked) {
    first = row_of(a.section, s, slice, 2 * lane);
    second = row_of(a.section, s, slice, 2 * lane + 1);
  }
  const auto add = [&](const auto &source) {
    const Masks masks = {first.entries, second.entries};
    if (!inside) return add_segments<false, true>(place, stretch.segments, source, masks);
    return masked ? add_segments<true, true>(place, stretch.segments, source, masks)
                  : add_segments<true, false>(place, stretch.segments, source, masks);
  };
  Sums sums;
  if constexpr (!constant)
    sums = add(ExplicitSource(a.section.segments + stretch.first_segment, stretch.segments,
                              a.section.values + __ldg(a.section.value_begin + s) + 2 * lane));
  else if (stretch.hot_offsets)
    sums = add(ConstantSource<FromParameters>{{a.hot, stretch.hot}});
  else if (stretch.hot >= 0)
    sums = add(ConstantSource<FromLanes>{
      {a.hot, stretch.hot, 0,
       lane < stretch.segments ? __ldg(&a.section.constant_segments[stretch.first_segment + lane].offset) : 0}});
  else
    sums = add(ConstantSource<FromTable>{{a.section.constant_segments + stretch.first_segment}});
  store(a, place.row, first.present, second.present, sums.first, sums.second);
}

template <bool constant> __device__ auto segments_of(const SectionView &section) {
  if constexpr (constant)
    return section.constant_segments;
  else
    return section.segments;
}

// One thread an exception.
template <bool constant> __device__ void multiply_exception(const Arguments<constant> &a, std::int64_t e) {
  const Exception exception = load(a.section.exceptions + e);
  const Stretch   stretch = load(reinterpret_cast<const Stretch *>(a.section.patterns + exception.pattern));
  const double   *values = constant ? nullptr : a.section.values + __ldg(a.section.exception_values + e);
  double          sum = 0.0;
  const auto     *next = segments_of<constant>(a.section) + stretch.first_segment;
  for (std::int32_t left = stretch.segments; left > 0; --left) {
    const auto    segment = load(next++);
    const double *x = a.x + exception.row + segment.offset;
#pragma unroll
    for (int j = 0; j < longest_run; ++j) {
      if (j >= segment.count) continue;
      double v;
      if constexpr (constant)
        v = segment.values[j];
      else
        v = __ldg(values + j * slice_rows);
      sum = fma(v, __ldg(x + j), sum);
    }
    if (!constant) values += segment.count * slice_rows;
  }
  a.z[exception.row] = scale(a, exception.row, sum);
}

} // namespace
} // namespace tcbound::compact
