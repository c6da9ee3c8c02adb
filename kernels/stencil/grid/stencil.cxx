#include "stencil.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace tcbound::grid {
namespace {

// More patterns than that are no longer a few kinds of rows.
constexpr std::size_t most_patterns = 4096;

std::uint64_t bits_of(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Indices in dimension d of cells that have a neighbour `offset` away.
Range existing(const Extents &e, int d, int offset) {
  return {std::max<std::int64_t>(0, -e.low[d] - offset), std::min<std::int64_t>(e.n[d], e.n[d] + e.high[d] - offset)};
}

// The same, with a neighbour among the owned ones.
Range owned(const Extents &e, int d, int offset) {
  return {std::max<std::int64_t>(0, -offset), std::min<std::int64_t>(e.n[d], e.n[d] - offset)};
}

Box whole_of(const Extents &e) {
  Box box;
  std::copy_n(e.n, 3, box.end);
  return box;
}

// Elements of layers that the slots reach; with their corners if any slot has neighbours across one.
std::int64_t ghosts_read(const Stencil &s) {
  const Extents &e = s.extents;
  bool           corners = false;
  std::int64_t   faces = 0, all = 1;
  for (const Slot &slot : s.slots)
    corners = corners || (slot.offset[0] != 0) + (slot.offset[1] != 0) + (slot.offset[2] != 0) > 1;
  for (int d = 0; d < 3; ++d) {
    const std::int64_t layers = std::min(e.low[d], s.reach_low(d)) + std::min(e.high[d], s.reach_high(d));
    if (e.n[d] > 0) faces += layers * (e.cells() / e.n[d]);
    all *= e.n[d] + layers;
  }
  return (corners ? all - e.cells() : faces) * e.dof;
}

// Calls f(cell) for all cells that have the slot's neighbour.
template <class F> void for_existing(const Extents &e, const Slot &slot, F &&f) {
  const Range x = existing(e, 0, slot.offset[0]), y = existing(e, 1, slot.offset[1]), z = existing(e, 2, slot.offset[2]);
  for (std::int64_t k = z.begin; k < z.end; ++k)
    for (std::int64_t j = y.begin; j < y.end; ++j)
      for (std::int64_t i = x.begin; i < x.end; ++i) f((k * e.n[1] + j) * e.n[0] + i);
}

// Whether a slot has the same bits in all rows of a component, and these.
bool find_constant(const Extents &e, const Slot &slot, const std::vector<double> &array, double *values) {
  const auto dof = static_cast<std::size_t>(e.dof);
  bool       first = true, same = true;
  for_existing(e, slot, [&](std::int64_t cell) {
    const double *row = array.data() + static_cast<std::size_t>(cell) * dof;
    if (first) std::copy_n(row, dof, values);
    first = false;
    same = same && std::memcmp(row, values, dof * sizeof(double)) == 0;
  });
  if (first) std::fill_n(values, dof, 0.0); // no cell has that neighbour
  return same;
}

std::string key_of(const double *values, std::size_t size) {
  return std::string(reinterpret_cast<const char *>(values), size * sizeof(double));
}

// Makes the marked cells' rows exceptions; false, with s unchanged, if they are of too many kinds.
bool list_exceptions(Stencil &s, const std::vector<const double *> &arrays, const std::vector<char> &marks) {
  const auto                                    dof = static_cast<std::size_t>(s.extents.dof), width = s.slots.size() * dof;
  std::unordered_map<std::string, std::int32_t> ids;
  std::vector<std::int64_t>                     exceptions;
  std::vector<std::int32_t>                     exception_patterns;
  std::vector<double>                           row(width), patterns;
  for (std::size_t cell = 0; cell < marks.size(); ++cell) {
    if (!marks[cell]) continue;
    const auto         at = static_cast<std::int64_t>(cell);
    const std::int64_t i = at % s.extents.n[0], j = at / s.extents.n[0] % s.extents.n[1],
                       k = at / s.extents.n[0] / s.extents.n[1];
    std::fill(row.begin(), row.end(), 0.0); // whatever is stored for cells that do not exist
    for (std::size_t slot = 0; slot < s.slots.size(); ++slot)
      if (s.exists(s.slots[slot], i, j, k))
        std::copy_n(arrays[slot] ? arrays[slot] + cell * dof : s.constants.data() + slot * dof, dof, row.data() + slot * dof);
    const auto [place, added] = ids.try_emplace(key_of(row.data(), width), static_cast<std::int32_t>(ids.size()));
    if (added) patterns.insert(patterns.end(), row.begin(), row.end());
    if (ids.size() > most_patterns) return false;
    exceptions.push_back(static_cast<std::int64_t>(cell));
    exception_patterns.push_back(place->second);
  }
  s.exceptions = std::move(exceptions);
  s.exception_patterns = std::move(exception_patterns);
  s.patterns = std::move(patterns);
  return true;
}

std::vector<const double *> pointers_of(const std::vector<std::vector<double>> &arrays) {
  std::vector<const double *> pointers;
  for (const auto &array : arrays) pointers.push_back(array.empty() ? nullptr : array.data());
  return pointers;
}

// Keeps the row of the cell in the middle once and those of all others that differ as exceptions; false, with s unchanged, if
// that is no gain.
bool take_exceptions(Stencil &s, const std::vector<std::vector<double>> &arrays) {
  const Extents      &e = s.extents;
  const auto          dof = static_cast<std::size_t>(e.dof), width = s.slots.size() * dof;
  const std::int64_t  cells = e.cells(), middle = ((e.n[2] / 2) * e.n[1] + e.n[1] / 2) * e.n[0] + e.n[0] / 2;
  std::vector<double> constants(width);
  std::vector<char>   differs(static_cast<std::size_t>(cells), 0);
  for (std::size_t slot = 0; slot < s.slots.size(); ++slot) {
    const double *values = arrays[slot].data(), *one = values + static_cast<std::size_t>(middle) * dof;
    std::copy_n(one, dof, constants.data() + slot * dof);
    for_existing(e, s.slots[slot], [&](std::int64_t cell) {
      const auto at = static_cast<std::size_t>(cell);
      if (std::memcmp(values + at * dof, one, dof * sizeof(double)) != 0) differs[at] = 1;
    });
  }
  if (std::count(differs.begin(), differs.end(), 1) > cells / 2 || !list_exceptions(s, pointers_of(arrays), differs))
    return false;
  s.constants = std::move(constants);
  return true;
}

// Elements of arrays that the rows of a box need. halved: those at and before the box; of the latter some may be in a layer.
std::int64_t values_read(const Stencil &s, const Box &box, bool halved) {
  const Extents &e = s.extents;
  std::int64_t   cells = 0;
  for (std::size_t slot = 0; slot < s.slots.size(); ++slot) {
    if (s.arrays[slot].empty() || (halved && !in_stored_half(s.slots[slot]))) continue;
    cells += box.cells();
    if (!halved) continue;
    Box before, both;
    for (int d = 0; d < 3; ++d) {
      before.begin[d] = std::max<std::int64_t>(-e.low[d], box.begin[d] - s.slots[slot].offset[d]);
      before.end[d] = std::min<std::int64_t>(e.n[d] + e.high[d], box.end[d] - s.slots[slot].offset[d]);
      both.begin[d] = std::max(before.begin[d], box.begin[d]);
      both.end[d] = std::min(before.end[d], box.end[d]);
    }
    cells += before.cells() - both.cells();
  }
  return cells * e.dof;
}

// Calls f(cell, other cell, the coefficient of `slot` in the one, that of `mirror` in the other) where slots that are each other's mirror
// images contradict each other. Those of layers are not compared: other ranks' coefficients are not known.
template <class F> void for_contradictions(const Stencil &s, std::size_t slot, std::size_t mirror, F &&f) {
  const Extents &e = s.extents;
  const int     *o = s.slots[slot].offset;
  const Range    x = owned(e, 0, o[0]), y = owned(e, 1, o[1]), z = owned(e, 2, o[2]);
  if (s.arrays[slot].empty() || x.size() == 0) return;
  const std::int64_t distance = (o[2] * e.n[1] + o[1]) * e.n[0] + o[0];
  for (std::int64_t k = z.begin; k < z.end; ++k)
    for (std::int64_t j = y.begin; j < y.end; ++j) {
      const std::int64_t first = (k * e.n[1] + j) * e.n[0];
      const double      *own = s.arrays[slot].data() + first, *other = s.arrays[mirror].data() + first + distance;
      if (std::memcmp(own + x.begin, other + x.begin, static_cast<std::size_t>(x.size()) * sizeof(double)) == 0) continue;
      for (std::int64_t i = x.begin; i < x.end; ++i)
        if (bits_of(own[i]) != bits_of(other[i])) f(first + i, first + i + distance, own[i], other[i]);
    }
}

// Of each slot the one at the opposite offset; empty if one lacks it or has an array where the other is constant.
std::vector<int> opposite_slots(const Stencil &s) {
  std::vector<int> opposite;
  for (std::size_t slot = 0; slot < s.slots.size(); ++slot) {
    const int *o = s.slots[slot].offset;
    const auto found = std::find_if(s.slots.begin(), s.slots.end(), [&](const Slot &at) {
      return at.offset[0] == -o[0] && at.offset[1] == -o[1] && at.offset[2] == -o[2];
    });
    if (found == s.slots.end()) return {};
    const std::size_t other = static_cast<std::size_t>(found - s.slots.begin());
    if (s.arrays[slot].empty() != s.arrays[other].empty()) return {};
    if (s.arrays[slot].empty() && bits_of(s.constants[slot]) != bits_of(s.constants[other])) return {};
    opposite.push_back(static_cast<int>(other));
  }
  return opposite;
}

// Finds out whether the coefficients are symmetric, but for a few rows, which become exceptions. Of two rows that contradict each other
// that one is left out whose entry is 0, as boundary conditions make it, else the one that contradicts more.
void find_mirrors(Stencil &s) {
  if (s.extents.dof != 1 || s.array_count() == 0) return;
  const std::vector<int>    opposite = opposite_slots(s);
  const auto                cells = static_cast<std::size_t>(s.extents.cells()), most = cells / 4;
  std::size_t               contradictions = 0;
  std::vector<char>         marks;
  std::vector<std::int32_t> counts;
  // Calls f(cell, other cell, their entries) for contradictions of rows neither of which is marked, while they may still be few.
  const auto for_open = [&](auto &&f) {
    for (std::size_t slot = 0; slot < opposite.size() && contradictions <= most * s.slots.size(); ++slot)
      if (in_stored_half(s.slots[slot]))
        for_contradictions(s, slot, static_cast<std::size_t>(opposite[slot]),
                           [&](std::int64_t cell, std::int64_t other, double own, double others) {
                             const auto a = static_cast<std::size_t>(cell), b = static_cast<std::size_t>(other);
                             if (marks.empty() || (!marks[a] && !marks[b])) f(a, b, own, others);
                           });
  };
  for_open([&](std::size_t, std::size_t, double, double) { ++contradictions; });
  if (contradictions > most * s.slots.size()) return; // more than that many rows can have
  if (contradictions > 0) {
    marks.resize(cells, 0);
    counts.resize(cells, 0);
    for_open([&](std::size_t a, std::size_t b, double own, double others) {
      if ((own == 0.0) != (others == 0.0)) marks[own == 0.0 ? a : b] = 1;
    });
    for_open([&](std::size_t a, std::size_t b, double, double) {
      ++counts[a];
      ++counts[b];
    });
    for_open([&](std::size_t a, std::size_t b, double, double) { marks[counts[a] >= counts[b] ? a : b] = 1; });
  }
  if (static_cast<std::size_t>(std::count(marks.begin(), marks.end(), 1)) > most) return;
  if (list_exceptions(s, pointers_of(s.arrays), marks)) s.mirrors = opposite;
}

} // namespace

std::int64_t Box::cells() const {
  std::int64_t cells = 1;
  for (int d = 0; d < 3; ++d) cells *= std::max<std::int64_t>(0, end[d] - begin[d]);
  return cells;
}

int Stencil::array_count() const {
  return static_cast<int>(std::count_if(arrays.begin(), arrays.end(), [](const auto &array) { return !array.empty(); }));
}

bool Stencil::exists(const Slot &slot, std::int64_t i, std::int64_t j, std::int64_t k) const {
  const std::int64_t at[3] = {i + slot.offset[0], j + slot.offset[1], k + slot.offset[2]};
  for (int d = 0; d < 3; ++d)
    if (at[d] < -extents.low[d] || at[d] >= extents.n[d] + extents.high[d]) return false;
  return true;
}

double Stencil::coefficient(int s, std::int64_t cell, int c) const {
  const auto slot = static_cast<std::size_t>(s), dof = static_cast<std::size_t>(extents.dof),
             at = slot * dof + static_cast<std::size_t>(c);
  if (!arrays[slot].empty()) return arrays[slot][static_cast<std::size_t>(cell) * dof + static_cast<std::size_t>(c)];
  const auto found = std::lower_bound(exceptions.begin(), exceptions.end(), cell);
  if (found == exceptions.end() || *found != cell) return constants[at];
  const auto pattern = static_cast<std::size_t>(exception_patterns[static_cast<std::size_t>(found - exceptions.begin())]);
  return patterns[pattern * slots.size() * dof + at];
}

int Stencil::reach_low(int d) const {
  int reach = 0;
  for (const Slot &slot : slots) reach = std::max(reach, -slot.offset[d]);
  return reach;
}

int Stencil::reach_high(int d) const {
  int reach = 0;
  for (const Slot &slot : slots) reach = std::max(reach, slot.offset[d]);
  return reach;
}

std::vector<Box> Stencil::boxes(Part part) const {
  Box whole = whole_of(extents), inside = whole;
  for (int d = 0; d < 3; ++d) {
    if (extents.low[d] > 0) inside.begin[d] = std::min<std::int64_t>(reach_low(d), extents.n[d]);
    if (extents.high[d] > 0) inside.end[d] = std::max<std::int64_t>(extents.n[d] - reach_high(d), inside.begin[d]);
  }
  std::vector<Box> boxes;
  const auto       add = [&](const Box &box) {
    if (box.cells() > 0) boxes.push_back(box);
  };
  if (part == Part::all || (part == Part::shell && inside.cells() == 0)) add(whole);
  if (part == Part::interior) add(inside);
  if (part != Part::shell || inside.cells() == 0) return boxes;
  Box rest = whole;
  for (int d = 2; d >= 0; --d) {
    Box side = rest;
    side.end[d] = inside.begin[d];
    add(side);
    side = rest;
    side.begin[d] = inside.end[d];
    add(side);
    rest.begin[d] = inside.begin[d];
    rest.end[d] = inside.end[d];
  }
  return boxes;
}

Box Stencil::core() const {
  const Box  whole = whole_of(extents);
  Box        box = whole;
  const auto inside = [&](std::int64_t cell, const Box &of) {
    const std::int64_t at[3] = {cell % extents.n[0], cell / extents.n[0] % extents.n[1], cell / extents.n[0] / extents.n[1]};
    return at[0] >= of.begin[0] && at[0] < of.end[0] && at[1] >= of.begin[1] && at[1] < of.end[1] && at[2] >= of.begin[2] &&
           at[2] < of.end[2];
  };
  const auto count = [&](const Box &of) {
    return std::count_if(exceptions.begin(), exceptions.end(), [&](std::int64_t cell) { return inside(cell, of); });
  };
  // Layers that are exceptions altogether, on each side for itself, as the ranks at a boundary have them.
  for (int layer = 0; layer < 4; ++layer)
    for (int d = 0; d < 3; ++d)
      for (const bool low : {true, false}) {
        Box side = box;
        if (box.end[d] - box.begin[d] < 2) continue;
        (low ? side.end[d] : side.begin[d]) = low ? box.begin[d] + 1 : box.end[d] - 1;
        if (count(side) == side.cells()) (low ? box.begin[d] : box.end[d]) += low ? 1 : -1;
      }
  if (count(box) == 0) return box;
  // Layers that hold some, the same number on all sides; nothing is left where exceptions are in the middle.
  for (int layers = 1; layers <= 4; ++layers) {
    for (int d = 0; d < 3; ++d) {
      const std::int64_t off = extents.n[d] > 1 ? layers : 0;
      box.begin[d] = std::min<std::int64_t>(off, extents.n[d]);
      box.end[d] = std::max<std::int64_t>(extents.n[d] - off, box.begin[d]);
    }
    if (count(box) == 0) return box;
  }
  return {};
}

bool Stencil::diagonal_exceptions() const {
  if (extents.dof != 1) return exceptions.empty();
  for (std::size_t at = 0; at < patterns.size(); ++at)
    if (patterns[at] != 0.0 && !is_centre(slots[at % slots.size()])) return false;
  return true;
}

bool Stencil::diagonal_outside(const Box &core, double *diagonal) const {
  if (extents.dof != 1 || patterns.size() != slots.size() || !diagonal_exceptions()) return false;
  if (static_cast<std::int64_t>(exceptions.size()) != extents.cells() - core.cells()) return false;
  *diagonal = 0.0;
  for (std::size_t slot = 0; slot < slots.size(); ++slot)
    if (is_centre(slots[slot])) *diagonal = patterns[slot];
  return true;
}

Work Stencil::work(bool accumulate, Part part, bool halved) const {
  std::int64_t rows = 0, entries = 0, values = 0, cells_of_exceptions = 0;
  for (const Box &box : boxes(part)) {
    rows += box.cells() * extents.dof;
    values += values_read(*this, box, halved);
    for (const Slot &slot : slots) {
      std::int64_t cells = 1;
      for (int d = 0; d < 3; ++d) {
        const Range range = existing(extents, d, slot.offset[d]);
        cells *= Range{std::max(range.begin, box.begin[d]), std::min(range.end, box.end[d])}.size();
      }
      entries += cells * extents.dof;
    }
    if (halved || array_count() == 0)
      cells_of_exceptions += std::count_if(exceptions.begin(), exceptions.end(), [&](std::int64_t cell) {
        const std::int64_t at[3] = {cell % extents.n[0], cell / extents.n[0] % extents.n[1],
                                    cell / extents.n[0] / extents.n[1]};
        for (int d = 0; d < 3; ++d)
          if (at[d] < box.begin[d] || at[d] >= box.end[d]) return false;
        return true;
      });
  }
  Work work;
  work.useful_flops = 2 * entries; // a multiplication and an addition; scaling by alpha and beta is not counted
  work.issued_flops = work.useful_flops;
  work.compulsory_bytes = (accumulate ? 24 : 16) * rows + 8 * values + 12 * cells_of_exceptions +
                          (cells_of_exceptions ? 8 * static_cast<std::int64_t>(patterns.size()) : 0);
  if (part != Part::interior) work.compulsory_bytes += 8 * ghosts_read(*this);
  work.bytes = work.compulsory_bytes;
  return work;
}

std::int64_t Stencil::coefficient_bytes(bool halved) const {
  const std::int64_t values = static_cast<std::int64_t>(constants.size()) + values_read(*this, whole_of(extents), halved);
  if (array_count() > 0 && !halved) return 8 * values;
  return 8 * (values + static_cast<std::int64_t>(patterns.size())) + 12 * static_cast<std::int64_t>(exceptions.size());
}

std::string Stencil::describe(bool halved) const {
  std::string text = std::to_string(slots.size()) + " points";
  if (extents.dof > 1) text += " and components";
  const int varying = array_count();
  if (varying == 0)
    text += ", constant";
  else if (varying == slot_count())
    text += ", variable";
  else
    text += ", " + std::to_string(varying) + " of them variable";
  if (halved) text += ", symmetric: half of the arrays";
  if (!exceptions.empty() && (varying == 0 || halved))
    text += " but for " + std::to_string(exceptions.size()) + " cells of " +
            std::to_string(patterns.size() / (slots.size() * static_cast<std::size_t>(extents.dof))) + " kinds";
  return text;
}

std::vector<std::vector<double>> Stencil::expand() const {
  const auto                       dof = static_cast<std::size_t>(extents.dof);
  std::vector<std::vector<double>> all = arrays;
  const std::size_t                listed = array_count() == 0 ? exceptions.size() : 0; // arrays have them
  for (std::size_t s = 0; s < slots.size(); ++s) {
    if (!all[s].empty()) continue;
    all[s].assign(static_cast<std::size_t>(extents.rows()), 0.0);
    for_existing(extents, slots[s], [&](std::int64_t cell) {
      std::copy_n(constants.data() + s * dof, dof, all[s].data() + static_cast<std::size_t>(cell) * dof);
    });
    for (std::size_t x = 0; x < listed; ++x)
      std::copy_n(patterns.data() + (static_cast<std::size_t>(exception_patterns[x]) * slots.size() + s) * dof, dof,
                  all[s].data() + static_cast<std::size_t>(exceptions[x]) * dof);
  }
  return all;
}

Stencil compress(const Extents &extents, const std::vector<Slot> &slots, std::vector<std::vector<double>> arrays) {
  const auto                       dof = static_cast<std::size_t>(extents.dof);
  Stencil                          s;
  std::vector<std::vector<double>> kept;
  std::vector<double>              constants(dof);
  std::vector<char>                constant;
  s.extents = extents;
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    const bool same = find_constant(extents, slots[slot], arrays[slot], constants.data());
    const bool zero =
      same && std::all_of(constants.begin(), constants.end(), [](double value) { return bits_of(value) << 1 == 0; });
    if (zero) continue;
    s.slots.push_back(slots[slot]);
    s.constants.insert(s.constants.end(), constants.begin(), constants.end());
    kept.push_back(std::move(arrays[slot]));
    constant.push_back(same);
  }
  s.arrays.resize(s.slots.size());
  if (std::all_of(constant.begin(), constant.end(), [](char same) { return same; })) return s;
  if (take_exceptions(s, kept)) return s;
  for (std::size_t slot = 0; slot < s.slots.size(); ++slot)
    if (!constant[slot]) {
      s.arrays[slot] = std::move(kept[slot]);
      std::fill_n(s.constants.data() + slot * dof, dof, 0.0);
    }
  find_mirrors(s);
  return s;
}

} // namespace tcbound::grid
