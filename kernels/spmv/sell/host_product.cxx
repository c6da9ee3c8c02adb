// Products in host memory. A slice is computed in vectors across its rows. Elements of x that are not side by side are loaded one by
// one, into vectors of 4: GCC puts 8 together by a chain of masked broadcasts, which was slower (on a Zen 4). Gather instructions
// have not been tried.
#include "host_product.h"

#include <type_traits>
#include <utility>

#include "spmv/csr/host_product.h"

// Everything below is compiled once for each instruction set, by being inlined into a function that has it.
#define TCBOUND_INLINE inline __attribute__((always_inline))

namespace tcbound::sell {
namespace {

constexpr int rows = host_slice_rows;

// Vectors of `size` lanes. Of each size for itself: GCC 12 does not convert vectors whose size depends on a template.
template <int size> struct Vectors;
#define TCBOUND_VECTORS(size) \
  template <> struct Vectors<size> { \
    typedef double        Doubles __attribute__((vector_size(8 * size))); \
    typedef std::int64_t  Longs __attribute__((vector_size(8 * size))); \
    typedef float         Floats __attribute__((vector_size(4 * size))); \
    typedef std::uint32_t Words __attribute__((vector_size(4 * size))); \
    typedef std::uint16_t Halves __attribute__((vector_size(2 * size))); \
  };
TCBOUND_VECTORS(2)
TCBOUND_VECTORS(4)
TCBOUND_VECTORS(8)
#undef TCBOUND_VECTORS

// They are passed by reference: for those wider than the baseline's registers it is not agreed how they are passed by value.
template <int size> struct Lanes {
  using Vector = typename Vectors<size>::Doubles;
  using Mask = typename Vectors<size>::Longs;
  using Floats = typename Vectors<size>::Floats;
  using Words = typename Vectors<size>::Words;
  using Halves = typename Vectors<size>::Halves;
  static constexpr int lanes = size;

  TCBOUND_INLINE static void load(Vector &to, const double *from) { __builtin_memcpy(&to, from, sizeof to); }
  TCBOUND_INLINE static void load(Vector &to, const float *from) {
    Floats narrow;
    __builtin_memcpy(&narrow, from, sizeof narrow);
    to = __builtin_convertvector(narrow, Vector);
  }
  TCBOUND_INLINE static void load(Vector &to, const std::uint16_t *from) { // the upper halves of floats
    Halves halves;
    __builtin_memcpy(&halves, from, sizeof halves);
    const Words words = __builtin_convertvector(halves, Words) << 16;
    Floats      narrow;
    __builtin_memcpy(&narrow, &words, sizeof narrow);
    to = __builtin_convertvector(narrow, Vector);
  }

  // to[l] = at(l)
  template <class At, int... l> TCBOUND_INLINE static void collect(Vector &to, At &&at, std::integer_sequence<int, l...>) {
    to = Vector{at(l)...};
  }
  template <class At> TCBOUND_INLINE static void collect(Vector &to, At &&at) {
    collect(to, at, std::make_integer_sequence<int, size>());
  }
};

// Where a slice's elements of x, or of z where that is transposed, are: at(k, l) for step k and lane l. T: double, or const.
template <class T> struct ByPattern { // rows of one pattern that follow each other
  T                  *x;              // of the first row
  const std::int32_t *distances;

  TCBOUND_INLINE T &at(int k, int l) const { return x[std::ptrdiff_t(distances[k]) + l]; }
};
template <class T, int stride> struct ByPatternInSteps { // ... or of that stride
  T                  *x;
  const std::int32_t *distances;

  TCBOUND_INLINE T &at(int k, int l) const { return (x + distances[k])[l * stride]; }
};
template <class T> struct ByPatternOfRows {
  T                  *x;
  const std::int64_t *numbers; // of the rows
  const std::int32_t *distances;

  TCBOUND_INLINE T &at(int k, int l) const { return (x + distances[k])[numbers[l]]; }
};
template <class T, class Index> struct ByColumns {
  T           *x; // of the base
  const Index *columns;

  TCBOUND_INLINE T &at(int k, int l) const { return x[columns[rows * k + l]]; }
};
template <class T> struct BySteps {
  T                   *x;
  const std::int32_t  *bases;
  const std::uint16_t *columns;

  TCBOUND_INLINE T &at(int k, int l) const { return (x + bases[k])[columns[rows * k + l]]; }
};

template <class Elements> constexpr bool is_whole = false; // elements that are loaded as a vector
template <class T> constexpr bool        is_whole<ByPattern<T>> = true;

// Those of step k from lane `first` on.
template <class L, class Elements>
TCBOUND_INLINE void load_elements(typename L::Vector &to, const Elements &elements, int k, int first) {
  if constexpr (is_whole<Elements>)
    L::load(to, &elements.at(k, first));
  else
    L::collect(
      to, [&](int l) __attribute__((always_inline)) { return elements.at(k, first + l); });
}

// Calls f with a slice's elements of x.
template <class T, class F> TCBOUND_INLINE void with_elements(const HostSliceView &view, T *x, F &&f) {
  const HostSlice &slice = view.slice;
  switch (slice.coding) {
  case Coding::pattern:
    if (slice.stride == 1) {
      f(ByPattern<T>{x + slice.first_row, view.bases});
    } else if (slice.stride == 2) {
      f(ByPatternInSteps<T, 2>{x + slice.first_row, view.bases});
    } else if (slice.stride == 3) {
      f(ByPatternInSteps<T, 3>{x + slice.first_row, view.bases});
    } else {
      std::int64_t numbers[rows];
      for (int l = 0; l < rows; ++l) numbers[l] = view.row(l);
      f(ByPatternOfRows<T>{x, numbers, view.bases});
    }
    break;
  case Coding::narrow:
    f(ByColumns<T, std::uint16_t>{x + slice.base, static_cast<const std::uint16_t *>(view.columns)});
    break;
  case Coding::stepped:
    f(BySteps<T>{x, view.bases, static_cast<const std::uint16_t *>(view.columns)});
    break;
  case Coding::wide:
    f(ByColumns<T, std::int32_t>{x, static_cast<const std::int32_t *>(view.columns)});
    break;
  }
}

// Adds up the entries of all rows of a slice, one vector for each u. No loop over u: GCC would keep the sums in memory for it.
template <class L, class Value, class Elements, class Sums, int... u>
TCBOUND_INLINE void add_up(const HostSliceView &view, const Value *values, const Elements &elements, Sums &sums,
                           std::integer_sequence<int, u...>) {
  const auto add = [&](typename L::Vector & sum, int k, int first) __attribute__((always_inline)) {
    typename L::Vector element, value;
    load_elements<L>(element, elements, k, first);
    L::load(value, values + std::ptrdiff_t(rows) * k + first);
    sum += value * element;
  };
  for (int k = 0; k < view.slice.full; ++k) (add(sums[u], k, u * L::lanes), ...);
  if (!view.lengths) return;
  // A lane without an entry reads an element of x all the same, but its sum stays: 0 times that element may be no number.
  typename L::Mask lengths[sizeof...(u)];
  for (int l = 0; l < rows; ++l) lengths[l / L::lanes][l % L::lanes] = view.lengths[l];
  const auto add_some = [&](typename L::Vector & sum, const typename L::Mask &length, int k, int first)
    __attribute__((always_inline)) {
    typename L::Vector more = sum;
    add(more, k, first);
    sum = length > std::int64_t(k) ? more : sum;
  };
  for (int k = view.slice.full; k < view.slice.steps; ++k) (add_some(sums[u], lengths[u], k, u * L::lanes), ...);
}

TCBOUND_INLINE void finish(const Product &p, std::int64_t row, double sum) {
  double z = p.alpha * sum;
  if (p.beta != 0.0) z += p.beta * p.y[row];
  p.z[row] = z;
}

template <class L, class Value, class Elements>
TCBOUND_INLINE void multiply_slice(const HostSliceView &view, const Value *values, const Elements &elements, const Product &p) {
  constexpr int      n = rows / L::lanes;
  typename L::Vector sums[n] = {};
  add_up<L>(view, values, elements, sums, std::make_integer_sequence<int, n>());
  if (view.slice.stride != 1 || view.slice.lanes < rows) {
    double one_by_one[rows];
    for (int u = 0; u < n; ++u) __builtin_memcpy(one_by_one + u * L::lanes, &sums[u], sizeof sums[u]);
    for (int l = 0; l < view.slice.lanes; ++l) finish(p, view.row(l), one_by_one[l]);
    return;
  }
  for (int u = 0; u < n; ++u) {
    const std::int64_t row = view.slice.first_row + u * L::lanes;
    typename L::Vector z = p.alpha * sums[u];
    if (p.beta != 0.0) {
      typename L::Vector y;
      L::load(y, p.y + row);
      z += p.beta * y;
    }
    __builtin_memcpy(p.z + row, &z, sizeof z);
  }
}

// Whole: what elements that are loaded as a vector are computed in.
template <class L, class Whole, class Value>
TCBOUND_INLINE void multiply_slices(const HostArrays &arrays, const Value *values, const Product &product) {
  const Product       p = product; // a copy that no store to z can change
  const std::uint8_t *stream = arrays.stream.data();
  for (const HostSlice &slice : arrays.slices) {
    const HostSliceView view = take(arrays, slice, stream);
    with_elements(
      view, p.x, [&](const auto &elements) __attribute__((always_inline)) {
        using Vectors = std::conditional_t<is_whole<std::decay_t<decltype(elements)>>, Whole, L>;
        multiply_slice<Vectors>(view, values, elements, p);
      });
    values += std::ptrdiff_t(rows) * slice.steps;
  }
}

double value_of(double stored) { return stored; }
double value_of(float stored) { return stored; }
double value_of(std::uint16_t stored) {
  const std::uint32_t bits = std::uint32_t(stored) << 16;
  float               value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// z += alpha transpose(A) x, slice by slice, row by row.
template <class Value> void add_transposed_slices(const HostArrays &arrays, const Value *values, const Product &p) {
  for_each_slice(arrays, [&](const HostSliceView &view, std::int64_t first) {
    with_elements(view, p.z, [&](const auto &elements) {
      for (int l = 0; l < view.slice.lanes; ++l) {
        const double scaled = p.alpha * p.x[view.row(l)];
        const Value *value = values + first + l;
        for (int k = 0, end = view.length(l); k < end; ++k) elements.at(k, l) += value_of(value[rows * k]) * scaled;
      }
    });
  });
}

// Calls f with the values in their type.
template <class F> TCBOUND_INLINE void with_values(const HostArrays &arrays, F &&f) {
  const void *values = arrays.values.data();
  if (arrays.value_bytes == 8)
    f(static_cast<const double *>(values));
  else if (arrays.value_bytes == 4)
    f(static_cast<const float *>(values));
  else
    f(static_cast<const std::uint16_t *>(values));
}

template <class L, class Whole> TCBOUND_INLINE void multiply(const HostArrays &a, const Product &p) {
  if (p.transpose) {
    csr::begin_transpose(p, a.columns);
    with_values(a, [&](const auto *values) { add_transposed_slices(a, values, p); });
    csr::add_transpose(a.long_csr(), a.long_rows.data(), p);
  } else {
    with_values(
      a, [&](const auto *values) __attribute__((always_inline)) { multiply_slices<L, Whole>(a, values, p); });
    csr::multiply(a.long_csr(), a.long_rows.data(), p);
  }
}

void multiply_baseline(const HostArrays &a, const Product &p) { multiply<Lanes<2>, Lanes<2>>(a, p); }

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void multiply_avx2(const HostArrays &a, const Product &p) {
  multiply<Lanes<4>, Lanes<4>>(a, p);
}

__attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma"))) void multiply_avx512(const HostArrays &a,
                                                                                            const Product    &p) {
  multiply<Lanes<4>, Lanes<8>>(a, p);
}
#endif

std::vector<HostVariant> find_variants() {
  std::vector<HostVariant> found;
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw"))
    found.push_back({"avx512", multiply_avx512});
  if (avx2) found.push_back({"avx2", multiply_avx2});
#endif
  found.push_back({"baseline", multiply_baseline});
  return found;
}

} // namespace

const std::vector<HostVariant> &host_variants() {
  static const std::vector<HostVariant> variants = find_variants();
  return variants;
}

} // namespace tcbound::sell
