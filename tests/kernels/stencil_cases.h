#pragma once

// Stencils on grids: which points, which cells, which coefficients.

#include <cstring>

#include "spmv_fixture.h"
#include "stencil/grid/values.h"

namespace {

using namespace tcbound;
using namespace tcbound::test;
using grid::Extents;
using grid::Part;
using grid::Slot;
using grid::Stencil;

enum class Values {
  constant,
  dirichlet,
  framed,
  faces,
  scattered,
  variable,
  mixed,
  sparse,
  symmetric,
  symmetric_mixed,
  nearly,
  replaced
};

// The kinds that suit all sizes.
constexpr Values all_values[] = {Values::constant,        Values::dirichlet, Values::faces,  Values::scattered,
                                 Values::variable,        Values::mixed,     Values::sparse, Values::symmetric,
                                 Values::symmetric_mixed, Values::nearly};

const char *name_of(Values values) {
  switch (values) {
  case Values::constant:
    return "constant";
  case Values::dirichlet:
    return "constant with rows of the identity at the faces";
  case Values::framed:
    return "constant with rows of the identity as far from the faces as the stencil reaches";
  case Values::faces:
    return "constant with other rows at the faces";
  case Values::scattered:
    return "constant with a few other rows";
  case Values::variable:
    return "variable";
  case Values::mixed:
    return "some slots variable";
  case Values::sparse:
    return "some slots zero";
  case Values::symmetric:
    return "variable and symmetric";
  case Values::symmetric_mixed:
    return "symmetric, some slots constant";
  case Values::nearly:
    return "symmetric but for one bit";
  case Values::replaced:
    return "symmetric with rows of the identity at the faces";
  }
  return "";
}

struct Case {
  Extents extents;
  int     width = 1;
  bool    box = false;
  Values  values = Values::constant;

  std::string describe() const {
    std::string text;
    for (int d = 0; d < 3; ++d)
      text +=
        std::to_string(extents.n[d]) + "(" + std::to_string(extents.low[d]) + "," + std::to_string(extents.high[d]) + ") ";
    return text + "dof " + std::to_string(extents.dof) + (box ? " box " : " star ") + std::to_string(width) + ", " +
           name_of(values);
  }
};

std::vector<Slot> slots_of(const Case &c) {
  std::vector<Slot> slots;
  int               w[3];
  for (int d = 0; d < 3; ++d) w[d] = c.extents.n[d] > 1 ? c.width : 0;
  for (int z = -w[2]; z <= w[2]; ++z)
    for (int y = -w[1]; y <= w[1]; ++y)
      for (int x = -w[0]; x <= w[0]; ++x)
        for (int component = 0; component < c.extents.dof; ++component)
          if (c.box || (x != 0) + (y != 0) + (z != 0) <= 1) slots.push_back({{x, y, z}, component});
  return slots;
}

// What two rows have between them, in either order; a tenth are zeros of one sign or the other.
double coupling(std::uint64_t a, std::uint64_t b) {
  std::uint64_t bits = std::min(a, b) * 0x9e3779b97f4a7c15U + std::max(a, b) * 0xd1342543de82ef95U; // then as splitmix64
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  bits ^= bits >> 31;
  const double value = static_cast<double>(static_cast<std::int64_t>(bits)) * 0x1p-63;
  return bits % 10 ? value : std::copysign(0.0, value);
}

// The number of a slot's neighbour in the grid with its layers.
std::uint64_t number_of(const Extents &e, std::int64_t i, std::int64_t j, std::int64_t k, int component) {
  return static_cast<std::uint64_t>((((k + 4) * (e.ghosted(1) + 8) + j + 4) * (e.ghosted(0) + 8) + i + 4) * e.dof + component);
}

double symmetric_value(const Extents &e, const Slot &slot, std::int64_t i, std::int64_t j, std::int64_t k, int component,
                       bool mixed) {
  const int *o = slot.offset;
  if (mixed && o[1] == 0) return 0.25 * (1 + o[0] * o[0] + o[2] * o[2]) + (component + 1) * (slot.component + 1);
  return coupling(number_of(e, i, j, k, component), number_of(e, i + o[0], j + o[1], k + o[2], slot.component));
}

// Arrays by slot. Where a neighbour does not exist, something that must not be used.
std::vector<std::vector<double>> values_of(const Case &c, const std::vector<Slot> &slots) {
  const Extents                   &e = c.extents;
  std::mt19937_64                  random(41);
  std::uniform_real_distribution<> uniform(-1.0, 1.0);
  Stencil                          shape;
  const int                        deep = c.values == Values::framed ? c.width : 1;
  shape.extents = e;
  std::vector<std::vector<double>> arrays(slots.size(), std::vector<double>(static_cast<std::size_t>(e.rows())));
  for (std::size_t s = 0; s < slots.size(); ++s) {
    std::vector<double> constants(static_cast<std::size_t>(e.dof));
    for (double &value : constants) value = c.values == Values::sparse && s % 3 == 1 ? 0.0 : uniform(random);
    const bool varies = c.values == Values::variable || (c.values == Values::mixed && s % 2 == 0);
    for (std::int64_t cell = 0; cell < e.cells(); ++cell) {
      const std::int64_t i = cell % e.n[0], j = cell / e.n[0] % e.n[1], k = cell / e.n[0] / e.n[1];
      const auto         near_end = [&](std::int64_t at, int d) { return e.n[d] > 1 && (at < deep || at >= e.n[d] - deep); };
      const bool         face = near_end(i, 0) || near_end(j, 1) || near_end(k, 2);
      const bool         other = (c.values == Values::faces && face) || (c.values == Values::scattered && cell % 37 == 5);
      for (int component = 0; component < e.dof; ++component) {
        double &to = arrays[s][static_cast<std::size_t>(cell * e.dof + component)];
        to = varies ? uniform(random) : constants[static_cast<std::size_t>(component)];
        if (c.values == Values::symmetric || c.values == Values::symmetric_mixed || c.values == Values::nearly ||
            c.values == Values::replaced)
          to = symmetric_value(e, slots[s], i, j, k, component, c.values == Values::symmetric_mixed);
        if (c.values == Values::nearly && s == 0 && i == e.n[0] / 2 && j == e.n[1] / 2 && k == e.n[2] / 2)
          to = std::nextafter(to, 7.0);
        if (other) to = s % 2 ? 0.0 : 3.0 + component + static_cast<double>(cell % 3);
        if ((c.values == Values::dirichlet || c.values == Values::framed || c.values == Values::replaced) && face) {
          const bool here =
            !slots[s].offset[0] && !slots[s].offset[1] && !slots[s].offset[2] && slots[s].component == component;
          to = here ? 2.5 : 0.0;
        }
        if (!shape.exists(slots[s], i, j, k))
          to = c.values == Values::dirichlet || c.values == Values::framed ? 0.0 : nan_value;
      }
    }
  }
  return arrays;
}

} // namespace
