#pragma once

// Stencils of three dimensions as kernels know them: which points, with what weights. For .cu files only.

#include "../kind.h"
#include "steps.h"

namespace tcbound::stencil {

struct Weights3d {
  double at[5][5][5]; // [dz + R][dy + R][dx + R]
};

template <> inline Weights3d points_of<Weights3d>(const Shape &shape, const std::vector<double> &weights) {
  Weights3d w = {};
  const int r = shape.radius;
  for (int p = 0; p < shape.points(); ++p) {
    const auto &o = shape.offsets[p];
    w.at[o[2] + r][o[1] + r][o[0] + r] = weights[p];
  }
  return w;
}

} // namespace tcbound::stencil
