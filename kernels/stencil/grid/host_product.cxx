// Products in host memory: line by line of the first dimension, several consecutive cells at once.
#include "host_product.h"

#include <algorithm>
#include <memory>
#include <utility>

// Everything below is compiled once for each instruction set, by being inlined into a function that has it.
#define TCBOUND_INLINE inline __attribute__((always_inline))

namespace tcbound::grid {
namespace {

// One slot along a line of cells: x of the neighbours of its cell `from` (Line::from), and its coefficients there.
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

// Constant ones first.
struct Terms {
  std::vector<Term> all;
  int               constants = 0;
};

// The line (j, k) as a product walks it: its first cell, and the terms for it, which begin so many cells before that one.
struct Line {
  std::int64_t j = 0, k = 0, first = 0, from = 0;
  const Terms *terms = nullptr;
};

// Of a cell near an end of a line whose neighbours' lines are owned, the terms whose neighbours are, and those whose lie in a layer.
struct End {
  std::vector<int> terms; // the latter last
  std::size_t      owned = 0;
};

// Lines that have the same neighbours, all of which are owned: terms from the first cell of all on, and the cells near the ends.
struct LineKind {
  Terms            terms;
  std::vector<End> ends;
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
TCBOUND_INLINE void multiply_cells(const Line &line, const P &p, std::int64_t i, std::index_sequence<u...>) {
  typedef typename Numbers<lanes>::Vector Vector;
  Vector                                  sums[sizeof...(u)] = {};
  const Term *t = line.terms->all.data(), *const varying = t + line.terms->constants, *const end = t + line.terms->all.size();
  const std::int64_t at = line.from + i;
  for (; t != varying; ++t) (add_term(sums[u], t->constant, t->x + at + u * lanes), ...);
  for (; t != end; ++t) (add_term(sums[u], t->values + at + u * lanes, t->x + at + u * lanes), ...);
  (finish(p, line.first + i + static_cast<std::int64_t>(u * lanes), sums[u]), ...);
}

// The last cells of a run, fewer than four vectors of them, at once.
template <int lanes, class P>
TCBOUND_INLINE std::int64_t multiply_rest(const Line &line, const P &p, std::int64_t i, std::int64_t end) {
  switch ((end - i) / lanes) {
  case 3:
    multiply_cells<lanes>(line, p, i, std::make_index_sequence<3>());
    return i + 3 * lanes;
  case 2:
    multiply_cells<lanes>(line, p, i, std::make_index_sequence<2>());
    return i + 2 * lanes;
  case 1:
    multiply_cells<lanes>(line, p, i, std::make_index_sequence<1>());
    return i + lanes;
  default:
    return i;
  }
}

// As many cells at once as there are: an addition waits for the one before, so several vectors take turns.
template <int lanes, int n, class P> TCBOUND_INLINE void multiply_run(const Line &line, const P &p, Range run) {
  std::int64_t i = run.begin;
  for (; i + n * lanes <= run.end; i += n * lanes) multiply_cells<lanes>(line, p, i, std::make_index_sequence<n>());
  if (n >= 8 && i + n / 2 * lanes <= run.end) {
    multiply_cells<lanes>(line, p, i, std::make_index_sequence<n / 2>());
    i += n / 2 * lanes;
  }
  if (n >= 16 && i + n / 4 * lanes <= run.end) {
    multiply_cells<lanes>(line, p, i, std::make_index_sequence<n / 4>());
    i += n / 4 * lanes;
  }
  i = multiply_rest<lanes>(line, p, i, run.end);
  multiply_rest<1>(line, p, i, run.end);
}

// A cell near an end of its line, where some neighbours do not exist or lie in a layer.
template <class P>
TCBOUND_INLINE void multiply_end(const Stencil &s, const P &p, const double *ghosts, const Line &line, std::int64_t i) {
  const Extents &e = s.extents;
  double         sum = 0.0;
  for (const Term &term : line.terms->all) {
    const int         *offset = s.slots[static_cast<std::size_t>(term.slot)].offset;
    const std::int64_t at = i + offset[0];
    if (at < -e.low[0] || at >= e.n[0] + e.high[0]) continue;
    const bool   here = term.in_ghosts || (at >= 0 && at < e.n[0]);
    const double x = here ? term.x[line.from + i] : *locate(e, p.x, ghosts, at, line.j + offset[1], line.k + offset[2]);
    sum += (term.values ? term.values[line.from + i] : term.constant) * x;
  }
  finish(p, line.first + i, sum);
}

// The same where the neighbours' lines are owned.
template <class P>
TCBOUND_INLINE void multiply_end(const Stencil &s, const P &p, const double *ghosts, const Line &line, const End &end,
                                 std::int64_t i) {
  const std::int64_t at = line.from + i;
  const Term        *terms = line.terms->all.data();
  double             sum = 0.0;
  for (std::size_t k = 0; k < end.owned; ++k) {
    const Term &term = terms[end.terms[k]];
    sum += (term.values ? term.values[at] : term.constant) * term.x[at];
  }
  for (std::size_t k = end.owned; k < end.terms.size(); ++k) {
    const Term &term = terms[end.terms[k]];
    const int  *offset = s.slots[static_cast<std::size_t>(term.slot)].offset;
    sum += (term.values ? term.values[at] : term.constant) *
           *locate(s.extents, p.x, ghosts, i + offset[0], line.j + offset[1], line.k + offset[2]);
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

inline bool has_neighbour_line(const Stencil &s, int slot, const Line &line) {
  Slot in_line = s.slots[static_cast<std::size_t>(slot)];
  in_line.offset[0] = 0;
  return s.exists(in_line, 0, line.j, line.k);
}

// inner: the cells that have all neighbours in the line.
inline LineKind find_kind(const Stencil &s, const double *own, const std::vector<Step> &steps, const Line &line, Range inner) {
  const Extents &e = s.extents;
  LineKind       kind;
  kind.terms.all.reserve(steps.size());
  kind.ends.reserve(static_cast<std::size_t>(e.n[0] - inner.size()));
  for (const Step &step : steps) {
    const auto &array = s.arrays[static_cast<std::size_t>(step.slot)];
    if (!has_neighbour_line(s, step.slot, line)) continue;
    kind.terms.constants += array.empty();
    kind.terms.all.push_back({own + step.distance, array.empty() ? nullptr : array.data(),
                              s.constants[static_cast<std::size_t>(step.slot)], step.slot, false});
  }
  for (std::int64_t i = 0; i < e.n[0]; ++i) {
    if (i >= inner.begin && i < inner.end) continue;
    End end;
    end.terms.reserve(kind.terms.all.size());
    for (const bool owned : {true, false}) {
      for (std::size_t t = 0; t < kind.terms.all.size(); ++t) {
        const std::int64_t at = i + s.slots[static_cast<std::size_t>(kind.terms.all[t].slot)].offset[0];
        if ((at >= 0 && at < e.n[0]) == owned && at >= -e.low[0] && at < e.n[0] + e.high[0])
          end.terms.push_back(static_cast<int>(t));
      }
      if (owned) end.owned = end.terms.size();
    }
    kind.ends.push_back(std::move(end));
  }
  return kind;
}

// Kinds of lines in one dimension: each of those near a side, and all others.
struct Sides {
  std::int64_t low, high, n;

  std::int64_t count() const { return low + 1 + high; }
  std::int64_t of(std::int64_t j) const { return j < low ? j : j >= n - high ? low + 1 + j - (n - high) : low; }
};

// All that there are, each found when the first of its lines comes.
class LineKinds {
public:
  LineKinds(const Stencil &s, const double *own, const std::vector<Step> &steps, Range inner)
    : s_(s), own_(own), steps_(steps),
      inner_(inner), j_{s.reach_low(1), s.reach_high(1), s.extents.n[1]}, k_{s.reach_low(2), s.reach_high(2), s.extents.n[2]},
      kinds_(static_cast<std::size_t>(j_.count() * k_.count())) {}

  const LineKind &of(const Line &line) {
    std::unique_ptr<LineKind> &kind = kinds_[static_cast<std::size_t>(k_.of(line.k) * j_.count() + j_.of(line.j))];
    if (!kind) kind = std::make_unique<LineKind>(find_kind(s_, own_, steps_, line, inner_));
    return *kind;
  }

private:
  const Stencil                         &s_;
  const double                          *own_;
  const std::vector<Step>               &steps_;
  Range                                  inner_;
  Sides                                  j_, k_;
  std::vector<std::unique_ptr<LineKind>> kinds_;
};

// For any other line, from its first cell on; slots without any neighbour there are left out.
inline void find_terms(const Stencil &s, const double *own, const double *ghosts, const std::vector<Step> &steps,
                       const Line &line, Terms &terms) {
  terms.all.clear();
  terms.constants = 0;
  for (const Step &step : steps) {
    const auto   &array = s.arrays[static_cast<std::size_t>(step.slot)];
    const double *values = array.empty() ? nullptr : array.data() + line.first, *x = own + line.first + step.distance;
    const int    *offset = s.slots[static_cast<std::size_t>(step.slot)].offset;
    if (!has_neighbour_line(s, step.slot, line)) continue;
    const std::int64_t j = line.j + offset[1], k = line.k + offset[2];
    const bool         in_ghosts = j < 0 || j >= s.extents.n[1] || k < 0 || k >= s.extents.n[2];
    if (in_ghosts) x = locate(s.extents, own, ghosts, 0, j, k) + offset[0];
    if (!values) ++terms.constants;
    terms.all.push_back({x, values, s.constants[static_cast<std::size_t>(step.slot)], step.slot, in_ghosts});
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
  const std::int64_t      reach_low = std::min<std::int64_t>(s.reach_low(0), e.n[0]);
  const Range             inner = {reach_low, std::max(reach_low, e.n[0] - s.reach_high(0))};
  const Range             wide = {std::max(box.begin[0], inner.begin), std::min(box.end[0], inner.end)};
  const int               low[2] = {s.reach_low(1), s.reach_low(2)}, high[2] = {s.reach_high(1), s.reach_high(2)};
  const auto              width = s.slots.size() * static_cast<std::size_t>(e.dof);
  const std::vector<Step> steps = find_steps(s);
  std::vector<double>     sums(static_cast<std::size_t>(e.dof));
  const bool              layered = e.low[1] + e.high[1] + e.low[2] + e.high[2] > 0;
  LineKinds               kinds(s, p.x, steps, inner);
  Terms                   terms; // of the present line, where neighbours' lines lie in layers
  Line                    line;
  auto                    exception = s.array_count() > 0 ? s.exceptions.end() : s.exceptions.begin();
  for (line.k = box.begin[2]; line.k < box.end[2]; ++line.k)
    for (line.j = box.begin[1]; line.j < box.end[1]; ++line.j) {
      const bool inside = line.j >= low[0] && line.j < e.n[1] - high[0] && line.k >= low[1] && line.k < e.n[2] - high[1];
      line.first = (line.k * e.n[1] + line.j) * e.n[0];
      const LineKind *kind = e.dof == 1 && (inside || !layered) ? &kinds.of(line) : nullptr;
      if (e.dof == 1 && !kind) find_terms(s, p.x, ghosts, steps, line, terms);
      line.terms = kind ? &kind->terms : &terms;
      line.from = kind ? line.first : 0;
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
          } else if (kind) {
            multiply_end(s, p, ghosts, line,
                         kind->ends[static_cast<std::size_t>(i < inner.begin ? i : i - inner.end + inner.begin)], i);
            ++i;
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
