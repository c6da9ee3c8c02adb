// Differential equations on regular grids.
#include <array>
#include <cmath>

#include "rules.h"

namespace tcbound::bench {
namespace {

struct Point {
  std::int64_t x = 0, y = 0, z = 0;
};

struct Grid {
  std::int64_t nx = 1, ny = 1, nz = 1;
  std::int64_t size() const { return nx * ny * nz; }
  std::int64_t number(const Point &p) const { return (p.z * ny + p.y) * nx + p.x; }
  Point        point(std::int64_t i) const { return {i % nx, i / nx % ny, i / nx / ny}; }
  bool         has(const Point &p) const { return p.x >= 0 && p.x < nx && p.y >= 0 && p.y < ny && p.z >= 0 && p.z < nz; }
};

// The points within `radius` of one along each axis, in the order of their numbers; star: only those on an axis.
struct Stencil {
  Stencil(const Grid &grid, std::int64_t radius, bool star) {
    const std::int64_t ry = grid.ny > 1 ? radius : 0, rz = grid.nz > 1 ? radius : 0;
    for (std::int64_t z = -rz; z <= rz; ++z)
      for (std::int64_t y = -ry; y <= ry; ++y)
        for (std::int64_t x = -radius; x <= radius; ++x)
          if (!star || (x != 0) + (y != 0) + (z != 0) <= 1) offsets.push_back({x, y, z});
  }
  std::vector<Point> offsets;
};

// A row has minus coupling(i, j, offset) for each neighbour j and their sum on the diagonal, to which a neighbour outside the
// grid (j = -1) also adds.
template <class Coupling>
Matrix diffusion(std::string name, const Grid &grid, const Stencil &stencil, const Coupling &coupling) {
  return make_matrix(std::move(name), grid.size(), grid.size(), [&](std::int64_t i, Row &row) {
    const Point p = grid.point(i);
    double      sum = 0.0;
    std::size_t diagonal = 0;
    for (const Point &d : stencil.offsets) {
      const Point q{p.x + d.x, p.y + d.y, p.z + d.z};
      if (!grid.has(q)) {
        sum += coupling(i, -1, d);
      } else if (grid.number(q) == i) {
        diagonal = row.size();
        row.add(i, 0.0);
      } else {
        const double c = coupling(i, grid.number(q), d);
        sum += c;
        row.add(grid.number(q), -c);
      }
    }
    row.value(diagonal) = sum;
  });
}

double random_coupling(std::int64_t i, std::int64_t j) { return j < 0 ? 1.0 : 0.5 + uniform_of_pair(11, i, j); }

} // namespace

Matrix poisson(std::int64_t n, int points, bool variable, std::string name) {
  const Grid    grid{n, n, n};
  const Stencil stencil(grid, 1, points == 7);
  if (variable)
    return diffusion(std::move(name), grid, stencil,
                     [](std::int64_t i, std::int64_t j, const Point &) { return random_coupling(i, j); });
  return diffusion(std::move(name), grid, stencil, [](std::int64_t, std::int64_t, const Point &) { return 1.0; });
}

Matrix q2_vertices(std::int64_t n, std::string name) {
  const Grid grid{n, n, n};
  return diffusion(std::move(name), grid, Stencil(grid, 2, false), [](std::int64_t i, std::int64_t j, const Point &d) {
    return random_coupling(i, j) / static_cast<double>(d.x * d.x + d.y * d.y + d.z * d.z);
  });
}

Matrix reaction(std::int64_t n, int species, std::string name) {
  const Grid    grid{n, n, n};
  const Stencil stencil(grid, 1, false);
  return make_matrix(std::move(name), species * grid.size(), species * grid.size(), [&](std::int64_t i, Row &row) {
    const Point p = grid.point(i / species);
    for (const Point &d : stencil.offsets) {
      const Point q{p.x + d.x, p.y + d.y, p.z + d.z};
      if (!grid.has(q)) continue;
      for (std::int64_t j = species * grid.number(q); j < species * (grid.number(q) + 1); ++j)
        row.add(j, (i == j ? 14.0 * species : -0.5) + uniform_of_pair(19, i, j));
    }
  });
}

// The element matrix of (K grad u, grad v) on a square cell, assembled into a stencil, for K = Q diag(1, epsilon) Q^T: mixed
// derivatives go to the corners.
Matrix anisotropic(std::int64_t n, std::string name) {
  const double epsilon = 1e-3, angle = std::acos(-1.0) / 6.0, c = std::cos(angle), s = std::sin(angle);
  const double kxx = c * c + epsilon * s * s, kyy = s * s + epsilon * c * c, kxy = (1.0 - epsilon) * c * s;
  const Grid   grid{n, n, 1};
  return diffusion(std::move(name), grid, Stencil(grid, 1, false), [=](std::int64_t, std::int64_t, const Point &d) {
    if (d.y == 0) return (2.0 * kxx - kyy) / 3.0;
    if (d.x == 0) return (2.0 * kyy - kxx) / 3.0;
    return (kxx + kyy) / 6.0 + (d.x * d.y > 0 ? 0.5 : -0.5) * kxy;
  });
}

Matrix ecology(std::int64_t n, std::string name) {
  const Grid grid{n, n, 1};
  const auto conductance = [&](std::int64_t i) { // of the habitat class of a patch of 8 x 8 cells
    static const double classes[] = {1.0, 2.0, 5.0, 10.0};
    const Point         p = grid.point(i);
    return classes[static_cast<int>(4.0 * uniform_of(13, p.y / 8 * n + p.x / 8))];
  };
  return diffusion(std::move(name), grid, Stencil(grid, 1, true), [&](std::int64_t i, std::int64_t j, const Point &) {
    return j < 0 ? 0.0 : 0.5 * (conductance(i) + conductance(j));
  });
}

namespace {

using Element = std::array<std::array<double, 24>, 24>;

int corner(int a, int direction) { return a >> direction & 1; } // of a cube, at (0 or 1, 0 or 1, 0 or 1)

// The integral over the unit cube of d_c N_a d_d N_b: trilinear shape functions are products of functions of one coordinate, so
// it is a product of three integrals over [0, 1].
double gradient_product(int a, int c, int b, int d) {
  double product = 1.0;
  for (int e = 0; e < 3; ++e) {
    const int    at = corner(a, e), bt = corner(b, e);
    const double slope_a = at ? 1.0 : -1.0, slope_b = bt ? 1.0 : -1.0;
    if (e == c && e == d)
      product *= slope_a * slope_b;
    else if (e == c)
      product *= 0.5 * slope_a;
    else if (e == d)
      product *= 0.5 * slope_b;
    else
      product *= at == bt ? 1.0 / 3.0 : 1.0 / 6.0;
  }
  return product;
}

// Lame's constants for a Young's modulus of 1 and Poisson's ratio 0.3.
Element stiffness() {
  const double ratio = 0.3, lambda = ratio / ((1 + ratio) * (1 - 2 * ratio)), mu = 1.0 / (2 * (1 + ratio));
  Element      k;
  for (int a = 0; a < 8; ++a)
    for (int b = 0; b < 8; ++b)
      for (int c = 0; c < 3; ++c)
        for (int d = 0; d < 3; ++d) {
          double value = lambda * gradient_product(a, c, b, d) + mu * gradient_product(a, d, b, c);
          for (int e = 0; e < 3 && c == d; ++e) value += mu * gradient_product(a, e, b, e);
          k[3 * a + c][3 * b + d] = value;
        }
  return k;
}

// sums[neighbour][d]: the row of component c of node p, from the up to eight elements around it.
void add_elements(const Grid &nodes, const Element &k, const Point &p, int c, double (&sums)[27][3]) {
  const Grid cells{nodes.nx - 1, nodes.ny - 1, nodes.nz - 1};
  for (int a = 0; a < 8; ++a) { // p is corner a of the element
    const Point cell{p.x - corner(a, 0), p.y - corner(a, 1), p.z - corner(a, 2)};
    if (!cells.has(cell)) continue;
    const double modulus = 0.5 + uniform_of(17, cells.number(cell));
    for (int b = 0; b < 8; ++b) {
      const int neighbour =
        (corner(b, 2) - corner(a, 2) + 1) * 9 + (corner(b, 1) - corner(a, 1) + 1) * 3 + corner(b, 0) - corner(a, 0) + 1;
      for (int d = 0; d < 3; ++d) sums[neighbour][d] += modulus * k[3 * a + c][3 * b + d];
    }
  }
}

} // namespace

Matrix elasticity(std::int64_t n, std::string name) {
  const Grid    nodes{n, n, n};
  const Stencil stencil(nodes, 1, false);
  const Element k = stiffness();
  return make_matrix(std::move(name), 3 * nodes.size(), 3 * nodes.size(), [&](std::int64_t i, Row &row) {
    const Point p = nodes.point(i / 3);
    const int   c = static_cast<int>(i % 3);
    double      sums[27][3] = {};
    add_elements(nodes, k, p, c, sums);
    if (p.x == 0) sums[13][c] += 1.0; // a spring
    for (std::size_t s = 0; s < 27; ++s) {
      const Point &d = stencil.offsets[s], q{p.x + d.x, p.y + d.y, p.z + d.z};
      if (!nodes.has(q)) continue;
      for (int e = 0; e < 3; ++e) row.add(3 * nodes.number(q) + e, sums[s][e]);
    }
  });
}

} // namespace tcbound::bench
