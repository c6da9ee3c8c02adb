#include "values.h"

#include <algorithm>

namespace tcbound::grid {
namespace {

std::int64_t whole_sectors(std::int64_t elements) { return (elements + 3) / 4 * 4; }

bool is_stored(const Stencil &s, std::size_t slot, bool halved) {
  return !s.arrays[slot].empty() && (!halved || in_stored_half(s.slots[slot]));
}

// The cells of a line that have the slot's neighbour; none if the line has no such.
Range with_neighbour(const Stencil &s, const Slot &slot, std::int64_t j, std::int64_t k) {
  const Extents &e = s.extents;
  Slot           in_line = slot;
  in_line.offset[0] = 0;
  if (!s.exists(in_line, 0, j, k)) return {};
  return {std::max<std::int64_t>(0, -e.low[0] - slot.offset[0]), std::min(e.n[0], e.n[0] + e.high[0] - slot.offset[0])};
}

// Of an array that stands for its mirror image too, what the cells of layers have: by symmetry the coefficients of owned cells.
void fill_layers(const Stencil &s, std::size_t slot, const ValueLayout &layout, double *to) {
  const Extents             &e = s.extents;
  const auto                 mirror = static_cast<std::size_t>(s.mirrors[slot]);
  const int                 *o = s.slots[mirror].offset; // leads from an owned cell into a layer
  const std::vector<double> &from = s.arrays[mirror];
  std::int64_t               cell = 0;
  for (std::int64_t k = 0; k < e.n[2]; ++k)
    for (std::int64_t j = 0; j < e.n[1]; ++j, cell += e.n[0]) {
      const std::int64_t at[2] = {j + o[1], k + o[2]};
      const Range        line = with_neighbour(s, s.slots[mirror], j, k);
      const bool         whole = at[0] < 0 || at[0] >= e.n[1] || at[1] < 0 || at[1] >= e.n[2];
      double            *own = to + at[1] * layout.plane + at[0] * layout.line + o[0];
      for (std::int64_t i = line.begin; i < line.end; ++i) {
        if (!whole && i + o[0] >= 0 && i + o[0] < e.n[0]) i = std::min(line.end, e.n[0] - o[0]); // what is between is owned
        if (i < line.end) own[i] = from[static_cast<std::size_t>(cell + i)];
      }
    }
}

// An exception's own coefficients are not those that its neighbours' rows find in its places.
void replace_exceptions(const Stencil &s, std::size_t slot, const ValueLayout &layout, double *to) {
  const Extents             &e = s.extents;
  const int                 *o = s.slots[slot].offset;
  const std::vector<double> &from = s.arrays[static_cast<std::size_t>(s.mirrors[slot])];
  for (const std::int64_t cell : s.exceptions) {
    const std::int64_t i = cell % e.n[0], j = cell / e.n[0] % e.n[1], k = cell / e.n[0] / e.n[1];
    const std::int64_t at[3] = {i + o[0], j + o[1], k + o[2]};
    bool               owned = true;
    for (int d = 0; d < 3; ++d) owned = owned && at[d] >= 0 && at[d] < e.n[d];
    if (owned)
      to[k * layout.plane + j * layout.line + i] = from[static_cast<std::size_t>((at[2] * e.n[1] + at[1]) * e.n[0] + at[0])];
  }
}

} // namespace

Values lay_out_values(const Stencil &s, bool halved, bool by_lines) {
  const Extents            &e = s.extents;
  Values                    values;
  ValueLayout              &l = values.layout;
  std::vector<std::int64_t> number(s.slots.size(), 0); // of its array
  std::int64_t              low[3] = {0, 0, 0}, high[3] = {0, 0, 0};
  for (int d = 0; halved && d < 3; ++d) {
    low[d] = e.low[d];
    high[d] = e.high[d];
  }
  for (std::size_t slot = 0; slot < s.slots.size(); ++slot)
    if (is_stored(s, slot, halved)) number[slot] = l.arrays++;
  const std::int64_t lead = whole_sectors(low[0] * e.dof), lines = low[1] + e.n[1] + high[1];
  const std::int64_t width = whole_sectors(lead + (e.n[0] + high[0]) * e.dof), planes = low[2] + e.n[2] + high[2];
  l.line = by_lines ? l.arrays * width : width;
  l.plane = lines * l.line;
  l.pitch = by_lines ? width : planes * l.plane;
  l.first = low[2] * l.plane + low[1] * l.line + lead;
  values.size = l.arrays * planes * lines * width;
  for (std::size_t slot = 0; slot < s.slots.size(); ++slot) {
    std::int64_t distance = 0;
    if (!s.arrays[slot].empty()) {
      const int *o = s.slots[slot].offset;
      if (is_stored(s, slot, halved))
        distance = number[slot] * l.pitch;
      else
        distance = number[static_cast<std::size_t>(s.mirrors[slot])] * l.pitch + o[2] * l.plane + o[1] * l.line + o[0];
    }
    values.distances.push_back(distance);
  }
  return values;
}

std::vector<double> fill_values(const Stencil &s, const Values &values, bool halved) {
  const Extents      &e = s.extents;
  const ValueLayout  &l = values.layout;
  std::vector<double> filled(static_cast<std::size_t>(values.size), 0.0);
  for (std::size_t slot = 0; slot < s.slots.size(); ++slot) {
    if (!is_stored(s, slot, halved)) continue;
    double       *to = filled.data() + l.first + values.distances[slot];
    const double *from = s.arrays[slot].data();
    for (std::int64_t k = 0; k < e.n[2]; ++k)
      for (std::int64_t j = 0; j < e.n[1]; ++j, from += e.n[0] * e.dof) {
        const Range line = with_neighbour(s, s.slots[slot], j, k);
        if (line.size() > 0)
          std::copy(from + line.begin * e.dof, from + line.end * e.dof, to + k * l.plane + j * l.line + line.begin * e.dof);
      }
    if (halved) replace_exceptions(s, slot, l, to);
    if (halved && e.layered()) fill_layers(s, slot, l, to);
  }
  return filled;
}

} // namespace tcbound::grid
