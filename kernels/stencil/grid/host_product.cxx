// Products in host memory: line by line of the first dimension, several consecutive cells at once.
#include "host_product.h"

#include <algorithm>
#include <utility>

// Everything below is compiled once for each instruction set, by being inlined into a function that has it.
#define TCBOUND_INLINE inline __attribute__((always_inline))

namespace tcbound::grid {
namespace {

// One slot along a line of cells: x of the neighbours of the line's first cell, and its coefficients there.
struct Term {
  const double *x;
  const double *values; // null: constant
  double        constant;
  int           slot;
  bool          in_ghosts; // the neighbours' line lies in a layer
};

// A slot for all lines whose neighbours' lines are owned: from the line's first cell to x of its neighbour.
struct Step {
  std::int64_t distance;
  int          slot;
};

// The line (j, k) as a product walks it: its first cell, and the terms for it, constant ones first.
struct Line {
  std::int64_t      j = 0, k = 0, first = 0;
  int               constants = 0;
  std::vector<Term> terms;
};

// x of the cell (i, j, k), which may lie in a layer.
TCBOUND_INLINE const double *locate(const Extents &e, const double *x, const double *ghosts, std::int64_t i, std::int64_t j,
                                    std::int64_t k) {
  const bool owned = i >= 0 && i < e.n[0] && j >= 0 && j < e.n[1] && k >= 0 && k < e.n[2];
  if (owned) return x + ((k * e.n[1] + j) * e.n[0] + i) * e.dof;
  return ghosts + (((k + e.low[2]) * e.ghosted(1) + j + e.low[1]) * e.ghosted(0) + i + e.low[0]) * e.dof;
}

// Of one element or a vector of them.
template <class V> TCBOUND_INLINE void load(V &elements, const double *from) {
  __builtin_memcpy(&elements, from, sizeof elements);
}

// What becomes of the sums of one row or of several.
template <class V> TCBOUND_INLINE void finish(const Product &p, std::int64_t row, const V &sum) {
  V z = p.alpha * sum, y;
  if (p.beta != 0.0) {
    load(y, p.y + row);
    z += p.beta * y;
  }
  __builtin_memcpy(p.z + row, &z, sizeof z);
}
template <class V> TCBOUND_INLINE void finish(const Relaxation &p, std::int64_t row, const V &sum) {
  V b, x, inverse;
  load(b, p.b + row);
  load(x, p.x + row);
  V change = p.factors[0] * (b - sum);
  if (p.inverse) {
    load(inverse, p.inverse + row);
    change *= inverse;
  }
  x += change;
  __builtin_memcpy(p.z + row, &x, sizeof x);
}

// The rows of one cell, whichever neighbours it has. pattern: an exception's coefficients, or null.
template <class P>
TCBOUND_INLINE void multiply_cell(const Stencil &s, const P &p, const double *ghosts, std::int64_t i, const Line &line,
                                  const double *pattern) {
  const int          dof = s.extents.dof;
  const std::int64_t cell = line.first + i;
  for (int c = 0; c < dof; ++c) {
    double sum = 0.0;
    for (int slot = 0; slot < s.slot_count(); ++slot) {
      const Slot   &at = s.slots[static_cast<std::size_t>(slot)];
      const auto   &array = s.arrays[static_cast<std::size_t>(slot)];
      const double *constants = pattern ? pattern : s.constants.data();
      const double  value = array.empty() ? constants[slot * dof + c] : array[static_cast<std::size_t>(cell * dof + c)];
      if (pattern && value == 0.0) continue; // most of a boundary's rows
      if (!s.exists(at, i, line.j, line.k)) continue;
      sum +=
        value * locate(s.extents, p.x, ghosts, i + at.offset[0], line.j + at.offset[1], line.k + at.offset[2])[at.component];
    }
    finish(p, cell * dof + c, sum);
  }
}

template <int size> struct Numbers { typedef double Vector __attribute__((vector_size(size * sizeof(double)))); };

template <class V> TCBOUND_INLINE void add_term(V &sum, double value, const double *x) {
  V elements;
  load(elements, x);
  sum += (value - V{}) * elements; // minus, for -0 + 0 is 0
}
template <class V> TCBOUND_INLINE void add_term(V &sum, const double *values, const double *x) {
  V elements, own;
  load(elements, x);
  load(own, values);
  sum += own * elements;
}

// Cells i ... i + n * lanes - 1 of a line, all of whose neighbours exist; the first `constants` terms are constant. No loop over u,
// for which GCC would keep the sums in memory.
template <int lanes, class P, std::size_t... u>
TCBOUND_INLINE void multiply_cells(const Term *terms, int constants, int count, const P &p, std::int64_t first, std::int64_t i,
                                   std::index_sequence<u...>) {
  typedef typename Numbers<lanes>::Vector Vector;
  Vector                                  sums[sizeof...(u)] = {};
  for (const Term *t = terms; t != terms + constants; ++t) (add_term(sums[u], t->constant, t->x + i + u * lanes), ...);
  for (const Term *t = terms + constants; t != terms + count; ++t)
    (add_term(sums[u], t->values + i + u * lanes, t->x + i + u * lanes), ...);
  (finish(p, first + i + static_cast<std::int64_t>(u * lanes), sums[u]), ...);
}

// As many cells at once as there are, down to one: an addition waits for the one before, so several vectors take turns.
template <int lanes, int n, class P> TCBOUND_INLINE void multiply_run(const Line &line, const P &p, Range run) {
  const Term  *terms = line.terms.data();
  const int    constants = line.constants, count = static_cast<int>(line.terms.size());
  std::int64_t i = run.begin;
  for (; i + n * lanes <= run.end; i += n * lanes)
    multiply_cells<lanes>(terms, constants, count, p, line.first, i, std::make_index_sequence<n>());
  if (i + n / 2 * lanes <= run.end) {
    multiply_cells<lanes>(terms, constants, count, p, line.first, i, std::make_index_sequence<n / 2>());
    i += n / 2 * lanes;
  }
  if (i + n / 4 * lanes <= run.end) {
    multiply_cells<lanes>(terms, constants, count, p, line.first, i, std::make_index_sequence<n / 4>());
    i += n / 4 * lanes;
  }
  for (; i + lanes <= run.end; i += lanes)
    multiply_cells<lanes>(terms, constants, count, p, line.first, i, std::make_index_sequence<1>());
  for (; i < run.end; ++i) multiply_cells<1>(terms, constants, count, p, line.first, i, std::make_index_sequence<1>());
}

// A cell near an end of its line, where some neighbours do not exist or lie in a layer.
template <class P>
TCBOUND_INLINE void multiply_end(const Stencil &s, const P &p, const double *ghosts, const Line &line, std::int64_t i) {
  const Extents &e = s.extents;
  double         sum = 0.0;
  for (const Term &term : line.terms) {
    const int         *offset = s.slots[static_cast<std::size_t>(term.slot)].offset;
    const std::int64_t at = i + offset[0];
    if (at < -e.low[0] || at >= e.n[0] + e.high[0]) continue;
    const bool   here = term.in_ghosts || (at >= 0 && at < e.n[0]);
    const double x = here ? term.x[i] : *locate(e, p.x, ghosts, at, line.j + offset[1], line.k + offset[2]);
    sum += (term.values ? term.values[i] : term.constant) * x;
  }
  finish(p, line.first + i, sum);
}

// All slots, constant ones first.
inline std::vector<Step> find_steps(const Stencil &s) {
  std::vector<Step> steps;
  const Extents    &e = s.extents;
  for (const bool constant : {true, false})
    for (std::size_t slot = 0; slot < s.slots.size(); ++slot) {
      const Slot &at = s.slots[slot];
      if (s.arrays[slot].empty() == constant)
        steps.push_back(
          {((at.offset[2] * e.n[1] + at.offset[1]) * e.n[0] + at.offset[0]) * e.dof + at.component, static_cast<int>(slot)});
    }
  return steps;
}

// Of a line of cells of one component; slots without any neighbour there are left out.
inline void find_terms(const Stencil &s, const double *own, const double *ghosts, const std::vector<Step> &steps, bool inside,
                       Line &line) {
  line.terms.clear();
  line.constants = 0;
  for (const Step &step : steps) {
    const auto   &array = s.arrays[static_cast<std::size_t>(step.slot)];
    const double *values = array.empty() ? nullptr : array.data() + line.first, *x = own + line.first + step.distance;
    bool          in_ghosts = false;
    if (!inside) {
      const int *offset = s.slots[static_cast<std::size_t>(step.slot)].offset;
      Slot       in_line = s.slots[static_cast<std::size_t>(step.slot)];
      in_line.offset[0] = 0;
      if (!s.exists(in_line, 0, line.j, line.k)) continue;
      const std::int64_t j = line.j + offset[1], k = line.k + offset[2];
      in_ghosts = j < 0 || j >= s.extents.n[1] || k < 0 || k >= s.extents.n[2];
      if (in_ghosts) x = locate(s.extents, own, ghosts, 0, j, k) + offset[0];
    }
    if (!values) ++line.constants;
    line.terms.push_back({x, values, s.constants[static_cast<std::size_t>(step.slot)], step.slot, in_ghosts});
  }
}

// The rows of a cell of several components, all of whose neighbours are owned.
template <class P>
TCBOUND_INLINE void multiply_components(const Stencil &s, const P &p, const std::vector<Step> &steps, std::int64_t cell,
                                        double *sums) {
  const int dof = s.extents.dof;
  for (int c = 0; c < dof; ++c) sums[c] = 0.0;
  for (const Step &step : steps) {
    const auto   &array = s.arrays[static_cast<std::size_t>(step.slot)];
    const double *values = array.empty() ? s.constants.data() + step.slot * dof : array.data() + cell * dof;
    const double  x = p.x[cell * dof + step.distance];
    for (int c = 0; c < dof; ++c) sums[c] += values[c] * x;
  }
  for (int c = 0; c < dof; ++c) finish(p, cell * dof + c, sums[c]);
}

template <int lanes, int n, class P>
TCBOUND_INLINE void multiply_box(const Stencil &s, const P &product, const double *ghosts, const Box &box) {
  const P                 p = product; // a copy that no store to z can change
  const Extents          &e = s.extents;
  const Range             wide = {std::max<std::int64_t>(box.begin[0], s.reach_low(0)),
                                  std::min<std::int64_t>(box.end[0], e.n[0] - s.reach_high(0))};
  const int               low[2] = {s.reach_low(1), s.reach_low(2)}, high[2] = {s.reach_high(1), s.reach_high(2)};
  const auto              width = s.slots.size() * static_cast<std::size_t>(e.dof);
  const std::vector<Step> steps = find_steps(s);
  std::vector<double>     sums(static_cast<std::size_t>(e.dof));
  Line                    line;
  auto                    exception = s.array_count() > 0 ? s.exceptions.end() : s.exceptions.begin();
  for (line.k = box.begin[2]; line.k < box.end[2]; ++line.k)
    for (line.j = box.begin[1]; line.j < box.end[1]; ++line.j) {
      const bool inside = line.j >= low[0] && line.j < e.n[1] - high[0] && line.k >= low[1] && line.k < e.n[2] - high[1];
      line.first = (line.k * e.n[1] + line.j) * e.n[0];
      if (e.dof == 1) find_terms(s, p.x, ghosts, steps, inside, line);
      while (exception != s.exceptions.end() && *exception < line.first + box.begin[0]) ++exception;
      for (std::int64_t i = box.begin[0]; i < box.end[0];) {
        const std::int64_t next =
          exception != s.exceptions.end() ? std::min(*exception - line.first, box.end[0]) : box.end[0]; // where a run ends
        while (i < next) {
          const bool in_wide = i >= wide.begin && i < wide.end;
          if (e.dof == 1 && in_wide) {
            const Range run = {i, std::min(next, wide.end)};
            multiply_run<lanes, n>(line, p, run);
            i = run.end;
          } else if (e.dof == 1) {
            multiply_end(s, p, ghosts, line, i++);
          } else if (inside && in_wide) {
            multiply_components(s, p, steps, line.first + i++, sums.data());
          } else {
            multiply_cell(s, p, ghosts, i++, line, nullptr);
          }
        }
        if (i < box.end[0]) {
          const auto at = static_cast<std::size_t>(exception - s.exceptions.begin());
          multiply_cell(s, p, ghosts, i++, line,
                        s.patterns.data() + static_cast<std::size_t>(s.exception_patterns[at]) * width);
          ++exception;
        }
      }
    }
}

template <class P> void run_baseline(const Stencil &s, const P &p, const double *ghosts, const Box &box) {
  multiply_box<2, 4>(s, p, ghosts, box);
}

#if defined(__x86_64__)
template <class P>
__attribute__((target("avx2,fma"))) void run_avx2(const Stencil &s, const P &p, const double *ghosts, const Box &box) {
  multiply_box<4, 8>(s, p, ghosts, box);
}
template <class P>
__attribute__((target("avx512f,avx512vl,avx512dq,avx2,fma"))) void run_avx512(const Stencil &s, const P &p,
                                                                              const double *ghosts, const Box &box) {
  multiply_box<4, 16>(s, p, ghosts, box);
}
#endif

std::vector<HostVariant> find_variants() {
  std::vector<HostVariant> found;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    found.push_back({"avx512", run_avx512<Product>, run_avx512<Relaxation>});
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    found.push_back({"avx2", run_avx2<Product>, run_avx2<Relaxation>});
#endif
  found.push_back({"baseline", run_baseline<Product>, run_baseline<Relaxation>});
  return found;
}

} // namespace

const std::vector<HostVariant> &host_variants() {
  static const std::vector<HostVariant> variants = find_variants();
  return variants;
}

void multiply(const Stencil &stencil, const Product &product, const double *ghosts, const Box &box) {
  host_variants().front().multiply(stencil, product, ghosts, box);
}

void relax(const Stencil &stencil, const Relaxation &relaxation, const double *ghosts, const Box &box) {
  host_variants().front().relax(stencil, relaxation, ghosts, box);
}

} // namespace tcbound::grid
