// Shapes of stencils, checks and work counts that all backends share.
#include <algorithm>
#include <cstdlib>

#include "iterated.h"

namespace tcbound::stencil {
namespace {

template <class Keep> Shape shape_of(const std::string &name, int dimensions, int radius, Keep &&keep) {
  Shape     shape = {name, dimensions, radius, {}};
  const int depth = dimensions == 3 ? radius : 0;
  for (int z = -depth; z <= depth; ++z)
    for (int y = -radius; y <= radius; ++y)
      for (int x = -radius; x <= radius; ++x)
        if (keep(std::abs(x), std::abs(y), std::abs(z))) shape.offsets.push_back({x, y, z});
  return shape;
}

Shape named(Shape shape, const std::string &name) {
  shape.name = name;
  return shape;
}

// Of a 27-point stencil the plane of a cell and the corners: AN5D's j3d17pt.
Shape plane_and_corners() {
  return shape_of("3d17pt", 3, 1, [](int x, int y, int z) { return z == 0 || (x == 1 && y == 1); });
}

// Of a 27-point stencil all but the corners: the fourth-order Laplacian that EBISU and AN5D call poisson.
Shape faces_and_edges() {
  return shape_of("poisson", 3, 1, [](int x, int y, int z) { return x + y + z < 3; });
}

std::string kind(const char *word, int dimensions, int radius) {
  return word + std::to_string(dimensions) + "d" + std::to_string(radius) + "r";
}

} // namespace

Shape star(int dimensions, int radius) {
  return shape_of(kind("star", dimensions, radius), dimensions, radius,
                  [](int x, int y, int z) { return (x != 0) + (y != 0) + (z != 0) <= 1; });
}

Shape box(int dimensions, int radius) {
  return shape_of(kind("box", dimensions, radius), dimensions, radius, [](int, int, int) { return true; });
}

const std::vector<Shape> &shapes() {
  static const std::vector<Shape> all = {named(star(2, 1), "2d5pt"), named(star(2, 2), "2ds9pt"),
                                         named(box(2, 1), "2d9pt"),  named(box(2, 2), "2d25pt"),
                                         named(box(2, 3), "2d49pt"), star(2, 3),
                                         named(star(3, 1), "3d7pt"), named(star(3, 2), "3d13pt"),
                                         plane_and_corners(),        named(box(3, 1), "3d27pt"),
                                         faces_and_edges()};
  return all;
}

const Shape &find_shape(const std::string &name) {
  std::string names;
  for (const Shape &shape : shapes()) {
    if (shape.name == name) return shape;
    names += (names.empty() ? "" : ", ") + shape.name;
  }
  throw Error(ErrorCode::invalid, "there is no stencil " + name + "; the stencils are " + names);
}

int Shape::centre() const {
  const auto at = std::find(offsets.begin(), offsets.end(), std::array<int, 3>{0, 0, 0});
  return at == offsets.end() ? -1 : static_cast<int>(at - offsets.begin());
}

std::int64_t Grid::changing(int dimensions) const {
  std::int64_t cells = 1;
  for (int d = 0; d < dimensions; ++d) cells *= std::max<std::int64_t>(0, extent[d] - 2 * ring);
  return cells;
}

void check_problem(const Problem &problem) {
  const Shape &shape = problem.shape;
  const Grid  &grid = problem.grid;
  const auto   fail = [](const std::string &what) { throw Error(ErrorCode::invalid, "stencil: " + what); };
  if (shape.dimensions < 2 || shape.dimensions > 3) fail("2 or 3 dimensions, not " + std::to_string(shape.dimensions));
  if (problem.weights.size() != shape.offsets.size() || shape.offsets.empty())
    fail(std::to_string(problem.weights.size()) + " weights for " + std::to_string(shape.points()) + " points");
  for (const auto &offset : shape.offsets)
    for (int d = 0; d < 3; ++d)
      if (std::abs(offset[d]) > (d < shape.dimensions ? shape.radius : 0)) fail("an offset is farther than the radius");
  if (grid.ring != 0 && grid.ring != shape.radius)
    fail("the ring is 0 or the radius " + std::to_string(shape.radius) + " wide, not " + std::to_string(grid.ring));
  for (int d = 0; d < 3; ++d)
    if (grid.extent[d] < 0 || grid.extent[d] > (1 << 30) || (d >= shape.dimensions && grid.extent[d] != 1))
      fail("an extent of " + std::to_string(grid.extent[d]));
  if (grid.pitch != 0 && (grid.pitch < grid.extent[0] || grid.pitch > (1 << 30)))
    fail("lines of " + std::to_string(grid.extent[0]) + " cells in a pitch of " + std::to_string(grid.pitch));
  if (shape.dimensions == 3 && grid.line() * grid.extent[1] > (std::int64_t(1) << 31) - 1)
    fail("planes of " + std::to_string(grid.line() * grid.extent[1]) + " cells; 2147483647 at most");
}

Work sweep_work(const Problem &problem, int steps, int depth, double issued_per_step) {
  const std::int64_t cells = problem.grid.changing(problem.shape.dimensions), passes = (steps + depth - 1) / depth;
  Work               work;
  work.useful_flops = 2 * problem.shape.points() * cells * steps;
  work.issued_flops = static_cast<std::int64_t>(issued_per_step * static_cast<double>(cells) * steps);
  work.bytes = work.compulsory_bytes = 16 * problem.grid.size() * passes;
  return work;
}

} // namespace tcbound::stencil
