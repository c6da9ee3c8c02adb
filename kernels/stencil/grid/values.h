#pragma once

// Where device code finds coefficients that vary. Of symmetric ones only those of the points from the cell itself on are there
// (Stencil::mirrors): the coefficient of the point opposite to d is that of d in the cell that it leads to. That cell may lie in a layer, so
// then the layers of the grid have places too. No CUDA here.

#include <vector>

#include "stencil.h"

namespace tcbound::grid {

// Element i of a line (cell times components) of an array is at first + k * plane + j * line + array * pitch + i.
struct ValueLayout {
  std::int64_t first = 0, line = 0, plane = 0, pitch = 0;
  int          arrays = 0;
};

struct Values {
  ValueLayout               layout;
  std::int64_t              size = 0;
  std::vector<std::int64_t> distances; // of each slot, from the cell's line and element: constant slots have 0
};

// by_lines: the arrays' parts of a grid line follow each other, so that code that goes through rows reads one stretch of memory rather
// than a piece of as many arrays as there are.
Values lay_out_values(const Stencil &stencil, bool halved, bool by_lines);

// Entries whose cell does not exist are 0.
std::vector<double> fill_values(const Stencil &stencil, const Values &values, bool halved);

} // namespace tcbound::grid
