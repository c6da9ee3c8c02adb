// Structures of matrices of the SuiteSparse collection (Davis, Hu 2011), rebuilt from their published descriptions. Sizes,
// numbers of entries, bandwidths and pattern symmetry equal the collection's; values are made up, as each rule says.
#include "rules.h"

namespace tcbound::bench {

// Williams/mc2depi, "2D Markov model of epidemic" (Williams and others 2007): with s susceptible and i infected, the moves
// (s+1, i), (s, i-1) and (s-1, i+1). In levels of equal s - i a birth or a recovery goes to the next level and an infection
// back by two; s + i, in 0 ... 2 width, has the parity of the level, so levels of width + 1 and of width states alternate,
// `pairs` of each. That this is the numbering follows from the collection's counts and bandwidths, all of which it gives. Rates
// are made up: integers that grow with the level and the place in it; rows sum to 0.
Matrix epidemic(std::int64_t pairs, std::int64_t width, std::string name) {
  const std::int64_t pair = 2 * width + 1, n = pairs * pair;
  return make_matrix(std::move(name), n, n, [=](std::int64_t i, Row &row) {
    const bool         odd = i % pair > width;
    const std::int64_t level = 2 * (i / pair) + odd, j = i % pair - (odd ? width + 1 : 0);
    const bool         last = level == 2 * pairs - 1;
    const double       infection = level < 2 ? 0.0 : static_cast<double>(1 + level * 7 / 8);
    const double       recovery = last || (!odd && j == 0) ? 0.0 : static_cast<double>(1 + 2 * j);
    const double       birth = last || (!odd && j == width) ? 0.0 : static_cast<double>(1 + width - j);
    if (infection > 0.0) row.add(i - pair, infection);
    row.add(i, -infection - recovery - birth);
    if (recovery > 0.0) row.add(i + width, recovery);
    if (birth > 0.0) row.add(i + width + 1, birth);
  });
}

namespace {

// The (n + 2)^3 points of a cube less its edges and corners: n^3 inside and n^2 on each face, in lexicographic order.
class CubeWithFaces {
public:
  explicit CubeWithFaces(std::int64_t n) : n_(n) {}
  std::int64_t size() const { return n_ * n_ * (n_ + 6); }
  bool         outer(std::int64_t x) const { return x == 0 || x == n_ + 1; }
  bool         has(std::int64_t x, std::int64_t y, std::int64_t z) const { return outer(x) + outer(y) + outer(z) <= 1; }
  bool         inside(std::int64_t x, std::int64_t y, std::int64_t z) const { return outer(x) + outer(y) + outer(z) == 0; }
  std::int64_t number(std::int64_t x, std::int64_t y, std::int64_t z) const {
    if (z == 0) return (y - 1) * n_ + x - 1;
    const std::int64_t plane = n_ * n_ + (z - 1) * n_ * (n_ + 4);
    if (z == n_ + 1) return plane + (y - 1) * n_ + x - 1;
    if (y == 0) return plane + x - 1;
    return plane + n_ + (y - 1) * (n_ + 2) + (y == n_ + 1 ? x - 1 : x);
  }
  void point(std::int64_t i, std::int64_t *x, std::int64_t *y, std::int64_t *z) const {
    const std::int64_t face = n_ * n_, plane = n_ * (n_ + 4);
    const bool         low = i < face, high = i >= face + n_ * plane;
    if (low || high) { // a face across z
      const std::int64_t k = low ? i : i - face - n_ * plane;
      *x = k % n_ + 1, *y = k / n_ + 1, *z = low ? 0 : n_ + 1;
      return;
    }
    const std::int64_t k = (i - face) % plane, in_rows = k - n_;
    *z = (i - face) / plane + 1;
    if (k < n_)
      *x = k + 1, *y = 0;
    else if (in_rows < n_ * (n_ + 2))
      *x = in_rows % (n_ + 2), *y = in_rows / (n_ + 2) + 1;
    else
      *x = in_rows - n_ * (n_ + 2) + 1, *y = n_ + 1;
  }

private:
  std::int64_t n_;
};

// For an offset of a 27-point stencil: in the range of the original's values, and they sum to 0.
double stencil_weight(std::int64_t dx, std::int64_t dy, std::int64_t dz) {
  static const double weights[] = {200.0, -16.0, -6.0, -4.0};
  return weights[(dx != 0) + (dy != 0) + (dz != 0)];
}

} // namespace

// Schenk/nlpkkt80 (Schenk, Waechter, Weiser 2008): the KKT matrix [H A'; A 0] of a control problem with a 3D differential
// equation. The unknowns are the state inside a cube and the control on its faces, together in lexicographic order, then a
// multiplier for each inner point; A is a 27-point stencil and H is diagonal. This too is what the collection's counts and
// bandwidth leave. Its file also stores zeros on the diagonal of the multipliers; they are left out here as they are in its
// count of nonzeros.
Matrix nlpkkt(std::int64_t n, std::string name) {
  const CubeWithFaces cube(n);
  const std::int64_t  primal = cube.size(), size = primal + n * n * n;
  return make_matrix(std::move(name), size, size, [=](std::int64_t i, Row &row) {
    const std::int64_t dual = i - primal;
    std::int64_t       x = dual % n + 1, y = dual / n % n + 1, z = dual / n / n + 1;
    if (dual < 0) {
      cube.point(i, &x, &y, &z);
      row.add(i, cube.inside(x, y, z) ? 1.0 : 0.01);
    }
    for (std::int64_t c = std::max<std::int64_t>(z - 1, 0); c <= std::min(z + 1, n + 1); ++c) {
      for (std::int64_t b = std::max<std::int64_t>(y - 1, 0); b <= std::min(y + 1, n + 1); ++b) {
        for (std::int64_t a = std::max<std::int64_t>(x - 1, 0); a <= std::min(x + 1, n + 1); ++a) {
          const double weight = stencil_weight(a - x, b - y, c - z);
          if (dual < 0 && cube.inside(a, b, c)) row.add(primal + ((c - 1) * n + b - 1) * n + a - 1, weight);
          if (dual >= 0 && cube.has(a, b, c)) row.add(cube.number(a, b, c), weight);
        }
      }
    }
  });
}

namespace {

using Point4 = std::int64_t[4];

std::int64_t site_number(const Point4 &p, std::int64_t n) { return ((p[3] * n + p[2]) * n + p[1]) * n + p[0]; }

// Couples spin and colour of one row to the site one step along `axis`: 1 - gamma or 1 + gamma, of which each row has the spin
// itself and one other, times a 3 x 3 link matrix, transposed when the step is back. In time gamma is diagonal, so that half of
// the spins have no entry there and the others only themselves.
void add_neighbour(Row &row, const Point4 &here, std::int64_t n, int axis, bool forward, int spin, int colour) {
  static const int other_spin[] = {3, 3, 2}; // exclusive or with the spin: gamma 1, 2, 3 in Dirac's basis
  if (axis == 3 && forward != (spin < 2)) return;
  Point4 there = {here[0], here[1], here[2], here[3]};
  there[axis] = (there[axis] + (forward ? 1 : n - 1)) % n;
  const std::int64_t to = site_number(there, n), link = 4 * (forward ? site_number(here, n) : to) + axis;
  const double       sign = forward ? -1.0 : 1.0;
  for (int c = 0; c < 3; ++c) {
    const int    entry = forward ? 3 * colour + c : 3 * c + colour;
    const double u = 2.0 * uniform_of(59, 9 * link + entry) - 1.0;
    row.add(12 * to + 3 * spin + c, axis == 3 ? 2.0 * u : u);
    if (axis < 3) row.add(12 * to + 3 * (spin ^ other_spin[axis]) + c, sign * (spin < 2 ? u : -u));
  }
}

} // namespace

// QCD/conf5_4-8x8-05: the hopping matrix of Wilson's fermions on a periodic sites^4 lattice, 4 spins and 3 colours a site, time
// the slowest: 39 entries a row and none on the diagonal. Real random numbers stand for the complex links.
Matrix wilson_dirac(std::int64_t sites, std::string name) {
  const std::int64_t size = 12 * sites * sites * sites * sites;
  return make_matrix(std::move(name), size, size, [=](std::int64_t i, Row &row) {
    const std::int64_t site = i / 12;
    const Point4       here = {site % sites, site / sites % sites, site / sites / sites % sites, site / sites / sites / sites};
    for (int axis = 0; axis < 4; ++axis)
      for (bool forward : {false, true})
        add_neighbour(row, here, sites, axis, forward, static_cast<int>(i % 12 / 3), static_cast<int>(i % 3));
    row.sort();
  });
}

} // namespace tcbound::bench
