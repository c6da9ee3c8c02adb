#pragma once

// Stencils of three dimensions as kernels know them: which points, with what weights. For .cu files only.

#include "steps.h"

namespace tcbound::stencil {

struct Weights3d {
  double at[5][5][5]; // [dz + R][dy + R][dx + R]
};

// Which of the points within R count. Of R = 2, octahedron: those that two steps of a star reach.
enum class Kind { star, box, plane_and_corners, faces_and_edges, octahedron };

constexpr bool has_point(Kind kind, int dz, int dy, int dx) {
  const int directions = (dx != 0) + (dy != 0) + (dz != 0);
  switch (kind) {
  case Kind::star:
    return directions <= 1;
  case Kind::box:
    return true;
  case Kind::plane_and_corners:
    return dz == 0 || (dy != 0 && dx != 0);
  case Kind::octahedron:
    return dz * dz + dy * dy + dx * dx <= 2 || (directions == 1 && dz * dz + dy * dy + dx * dx == 4);
  default:
    return directions <= 2;
  }
}

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
