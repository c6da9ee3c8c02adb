#pragma once

// Which of the points within a radius a stencil of three dimensions has.

namespace tcbound::stencil {

// Of radius 2, octahedron: those that two steps of a star reach.
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

// Whether no point comes before this one in the order of (dz, dy, dx).
constexpr bool is_first_point(Kind kind, int radius, int dz, int dy, int dx) {
  const bool centre = kind == Kind::star || kind == Kind::octahedron; // of the first plane alone
  return dz == -radius && dy == (centre ? 0 : -radius) && dx == (centre || kind == Kind::faces_and_edges ? 0 : -radius);
}

} // namespace tcbound::stencil
