// Products in host memory. A slice is computed in vectors across its rows: entry k of consecutive rows of one pattern meets
// consecutive elements of x.
#include "host_product.h"

#include <utility>

#include "spmv/csr/host_product.h"

// Everything below is compiled once for each instruction set, by being inlined into a function that has it.
#define TCBOUND_INLINE inline __attribute__((always_inline))

namespace tcbound::compact {
namespace {

// Consecutive rows computed at once, one in each number of a vector. Vectors are passed by reference: for those wider than the
// baseline's registers it is not agreed how they are passed by value.
template <int size> struct Rows {
  typedef double       Vector __attribute__((vector_size(size * sizeof(double))));
  static constexpr int lanes = size;

  TCBOUND_INLINE static void load(Vector &to, const double *from) { __builtin_memcpy(&to, from, sizeof to); }
  TCBOUND_INLINE static void repeat(Vector &to, double value) { to = value - Vector{}; } // minus, for -0 + 0 is 0
};

// One row, in a vector all the same, with a zero beside it: were it a scalar, the compiler would decide anew what it fuses, and a
// row's result would depend on where it is stored.
template <> struct Rows<1> {
  typedef double       Vector __attribute__((vector_size(16)));
  static constexpr int lanes = 1;

  TCBOUND_INLINE static void load(Vector &to, const double *from) { to = Vector{*from, 0.0}; }
  TCBOUND_INLINE static void repeat(Vector &to, double value) { to = Vector{value, 0.0}; }
};

template <class R> TCBOUND_INLINE void add_entry(typename R::Vector &sum, const typename R::Vector &values, const double *x) {
  typename R::Vector elements;
  R::load(elements, x);
  sum += values * elements;
}
template <class R> TCBOUND_INLINE void add_entry(typename R::Vector &sum, const double *values, const double *x) {
  typename R::Vector own;
  R::load(own, values);
  add_entry<R>(sum, own, x);
}

// Adds up the entries of consecutive rows of one pattern, one vector for each u. x points to the element with the number of the
// first of these rows, values to that row's first value. No loop over u: GCC would keep the sums in memory for it, and move
// their additions away from the multiplications.
template <class R, class Sums, std::size_t... u>
TCBOUND_INLINE void add_up(const ConstantSegment *segment, const ConstantSegment *end, const double *, const double *x,
                           Sums &sums, std::index_sequence<u...>) {
  for (; segment != end; ++segment) {
    const double *from = x + segment->offset;
    for (int k = 0; k < segment->count; ++k, ++from) {
      typename R::Vector value;
      R::repeat(value, segment->values[k]);
      (add_entry<R>(sums[u], value, from + u * R::lanes), ...);
    }
  }
}

template <class R, class Sums, std::size_t... u>
TCBOUND_INLINE void add_up(const Segment *segment, const Segment *end, const double *values, const double *x, Sums &sums,
                           std::index_sequence<u...>) {
  for (; segment != end; ++segment) {
    const double *from = x + segment->offset;
    for (int k = 0; k < segment->count; ++k, ++from, values += slice_rows)
      (add_entry<R>(sums[u], values + u * R::lanes, from + u * R::lanes), ...);
  }
}

TCBOUND_INLINE void finish(const Product &p, std::int64_t row, double sum) {
  double z = p.alpha * sum;
  if (p.beta != 0.0) z += p.beta * p.y[row];
  p.z[row] = z;
}

// Of the rows from `row` on, those whose bits are set.
template <class R>
TCBOUND_INLINE void finish(const Product &p, std::int64_t row, std::uint64_t bits, const typename R::Vector &sums) {
  const std::uint64_t all = (std::uint64_t(1) << R::lanes) - 1;
  if ((bits & all) == all) {
    typename R::Vector z = p.alpha * sums;
    if (p.beta != 0.0) {
      typename R::Vector y;
      R::load(y, p.y + row);
      z += p.beta * y;
    }
    __builtin_memcpy(p.z + row, &z, sizeof z);
  } else {
    for (int i = 0; i < R::lanes; ++i)
      if (bits >> i & 1) finish(p, row + i, sums[i]);
  }
}

template <class S>
TCBOUND_INLINE void multiply_row(const S *segment, const S *end, const double *values, const Product &p, std::int64_t row) {
  typename Rows<1>::Vector sum[1] = {};
  add_up<Rows<1>>(segment, end, values, p.x + row, sum, std::make_index_sequence<1>());
  finish(p, row, sum[0][0]);
}

// Where the values of a slice's row i begin; constant slices have none.
TCBOUND_INLINE const double *values_at(const double *values, int i) { return values ? values + i : nullptr; }

template <class R, int n, class S>
TCBOUND_INLINE void multiply_slice(const Slice &slice, const S *segment, const S *end, const double *values, const Product &p) {
  for (int i = 0; i < slice_rows; i += n * R::lanes) {
    const std::int64_t row = std::int64_t(slice.first_row) + i;
    typename R::Vector sums[n] = {};
    add_up<R>(segment, end, values_at(values, i), p.x + row, sums, std::make_index_sequence<n>());
    for (int u = 0; u < n; ++u) finish<R>(p, row + u * R::lanes, slice.rows >> (i + u * R::lanes), sums[u]);
  }
}

// The exceptions of a slice follow it at once, while its part of x is in the cache.
template <class R, int n, class S>
TCBOUND_INLINE void multiply_slices(const Patterned<S> &a, const HostArrays &arrays, const Product &product) {
  const Product    p = product; // a copy that no store to z can change
  const Exception *exception = a.exceptions.data(), *last = exception + a.exceptions.size();
  for (std::size_t s = 0; s < a.slices.size(); ++s) {
    const Slice   slice = a.slices[s];
    const Pattern pattern = a.patterns[static_cast<std::size_t>(slice.pattern)];
    const S      *segment = a.first_segment(pattern), *end = segment + pattern.segments;
    const double *values = sizeof(S) == sizeof(Segment) ? arrays.values.data() + arrays.first_value[s] : nullptr;
    // All rows at once read what x holds for each, also for rows that have another pattern or do not exist.
    const std::int64_t low = std::int64_t(slice.first_row) + pattern.low;
    const std::int64_t high = std::int64_t(slice.first_row) + slice_rows - 1 + pattern.high;
    if (low >= 0 && high < arrays.columns) {
      multiply_slice<R, n>(slice, segment, end, values, p);
    } else {
      for (std::uint64_t rows = slice.rows; rows; rows &= rows - 1) {
        const int i = __builtin_ctzll(rows);
        multiply_row(segment, end, values_at(values, i), p, std::int64_t(slice.first_row) + i);
      }
    }
    for (; exception != last && exception->row - slice.first_row < slice_rows; ++exception) {
      const Pattern &own = a.patterns[static_cast<std::size_t>(exception->pattern)];
      const S       *first = a.first_segment(own);
      multiply_row(first, first + own.segments, values_at(values, exception->row - slice.first_row), p, exception->row);
    }
  }
}

// z += alpha transpose(A) x for consecutive rows of one pattern: entry k of these rows meets consecutive elements of z.
TCBOUND_INLINE void add_scaled(double *__restrict z, double value, const double *__restrict scaled, int size) {
  for (int i = 0; i < size; ++i) z[i] += value * scaled[i];
}
TCBOUND_INLINE void add_scaled(double *__restrict z, const double *__restrict values, const double *__restrict scaled,
                               int size) {
  for (int i = 0; i < size; ++i) z[i] += values[i] * scaled[i];
}

TCBOUND_INLINE void scatter(const ConstantSegment *segment, const ConstantSegment *end, const double *, double *z,
                            const double *scaled, int size) {
  for (; segment != end; ++segment)
    for (int k = 0; k < segment->count; ++k) add_scaled(z + segment->offset + k, segment->values[k], scaled, size);
}
TCBOUND_INLINE void scatter(const Segment *segment, const Segment *end, const double *values, double *z, const double *scaled,
                            int size) {
  for (; segment != end; ++segment)
    for (int k = 0; k < segment->count; ++k, values += slice_rows) add_scaled(z + segment->offset + k, values, scaled, size);
}

template <class S>
TCBOUND_INLINE void scatter_rows(const S *segment, const S *end, const double *values, const Product &p, std::int64_t row,
                                 int size) {
  double scaled[slice_rows];
  for (int i = 0; i < size; ++i) scaled[i] = p.alpha * p.x[row + i];
  scatter(segment, end, values, p.z + row, scaled, size);
}

template <class S>
TCBOUND_INLINE void add_transposed_slices(const Patterned<S> &a, const HostArrays &arrays, const Product &product) {
  const Product    p = product;
  const Exception *exception = a.exceptions.data(), *last = exception + a.exceptions.size();
  for (std::size_t s = 0; s < a.slices.size(); ++s) {
    const Slice   slice = a.slices[s];
    const Pattern pattern = a.patterns[static_cast<std::size_t>(slice.pattern)];
    const S      *segment = a.first_segment(pattern), *end = segment + pattern.segments;
    const double *values = sizeof(S) == sizeof(Segment) ? arrays.values.data() + arrays.first_value[s] : nullptr;
    for (std::uint64_t rows = slice.rows; rows;) { // stretches of rows that have the pattern
      const int           i = __builtin_ctzll(rows);
      const std::uint64_t gaps = ~(rows >> i);
      const int           size = gaps ? __builtin_ctzll(gaps) : slice_rows;
      scatter_rows(segment, end, values_at(values, i), p, std::int64_t(slice.first_row) + i, size);
      rows = i + size < slice_rows ? rows & (~std::uint64_t(0) << (i + size)) : 0;
    }
    for (; exception != last && exception->row - slice.first_row < slice_rows; ++exception) {
      const Pattern &own = a.patterns[static_cast<std::size_t>(exception->pattern)];
      const S       *first = a.first_segment(own);
      scatter_rows(first, first + own.segments, values_at(values, exception->row - slice.first_row), p, exception->row, 1);
    }
  }
}

// z = beta y, and then, each in ascending order of slices with the exceptions of a slice after its other rows: constant slices,
// explicit slices, the remainder. Within a slice the entries of its rows are added entry by entry. So an element of z is summed
// in an order that only the matrix decides.
template <class R, int n> TCBOUND_INLINE void multiply(const HostArrays &a, const Product &p) {
  if (p.transpose) {
    csr::begin_transpose(p, a.columns);
    add_transposed_slices(a.constant, a, p);
    add_transposed_slices(a.varying, a, p);
    csr::add_transpose(a.remainder, a.remainder_rows.data(), p);
  } else {
    multiply_slices<R, n>(a.constant, a, p);
    multiply_slices<R, slice_rows / R::lanes>(a.varying, a, p);
    csr::multiply(a.remainder, a.remainder_rows.data(), p);
  }
}

void multiply_baseline(const HostArrays &a, const Product &p) { multiply<Rows<2>, 8>(a, p); }

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void multiply_avx2(const HostArrays &a, const Product &p) { multiply<Rows<4>, 8>(a, p); }

__attribute__((target("avx512f,avx512vl,avx512dq,avx2,fma"))) void multiply_avx512(const HostArrays &a, const Product &p) {
  multiply<Rows<4>, 16>(a, p);
}
#endif

std::vector<HostVariant> find_variants() {
  std::vector<HostVariant> found;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    found.push_back({"avx512", multiply_avx512});
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back({"avx2", multiply_avx2});
#endif
  found.push_back({"baseline", multiply_baseline});
  return found;
}

} // namespace

const std::vector<HostVariant> &host_variants() {
  static const std::vector<HostVariant> variants = find_variants();
  return variants;
}

} // namespace tcbound::compact
