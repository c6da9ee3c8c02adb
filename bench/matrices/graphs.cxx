// Graphs and networks.
#include <stdexcept>

#include "rules.h"

namespace tcbound::bench {
namespace {

// One edge of R-MAT: at each level one of four quadrants, by 16 bits of a random number (probabilities to 2^-16).
void draw_edge(Random &random, int scale, std::uint32_t *row, std::uint32_t *column) {
  const unsigned a = 37356, b = 49807, c = 62259; // 0.57, 0.57 + 0.19, 0.57 + 0.19 + 0.19, times 2^16
  std::uint64_t  bits = 0;
  *row = *column = 0;
  for (int level = 0; level < scale; ++level) {
    bits = level % 4 ? bits >> 16 : random.next();
    const unsigned u = bits & 0xffff;
    *row = 2 * *row + (u >= b);
    *column = 2 * *column + ((u >= a && u < b) || u >= c);
  }
}

} // namespace

Matrix rmat(int scale, int degree, std::string name) {
  const std::int64_t         n = std::int64_t(1) << scale, edges = n * degree;
  Numbers<std::uint32_t>     from(static_cast<std::size_t>(edges)), to(from.size()), by_row(from.size());
  std::vector<std::uint32_t> first(static_cast<std::size_t>(n) + 1);
  if (edges >= std::int64_t(1) << 32) throw std::invalid_argument(name + " would have 2^32 edges or more");
  parallel_for(edges, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t e = begin; e < end; ++e) {
      Random random(7, e);
      draw_edge(random, scale, &from[e], &to[e]);
    }
  });
  // Sorted by row here, by column within a row below.
  for (const std::uint32_t row : from) ++first[row + 1];
  for (std::int64_t i = 0; i < n; ++i) first[i + 1] += first[i];
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (std::int64_t e = 0; e < edges; ++e) by_row[next[from[e]]++] = to[e];
  parallel_for(n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) std::sort(&by_row[0] + first[i], &by_row[0] + first[i + 1]);
  });
  return make_matrix(std::move(name), n, n, [&](std::int64_t i, Row &row) {
    for (std::uint32_t e = first[i]; e < first[i + 1];) {
      const std::uint32_t begin = e;
      while (e < first[i + 1] && by_row[e] == by_row[begin]) ++e;
      row.add(by_row[begin], e - begin);
    }
  });
}

Matrix uniform_rows(std::int64_t n, std::string name) {
  return make_matrix(std::move(name), n, n, [=](std::int64_t i, Row &row) {
    Random random(5, i);
    for (std::int64_t k = 3 + random.below(20); k > 0; --k) {
      const std::int64_t column = random.below(n);
      row.add(column, 2.0 * random.uniform() - 1.0);
    }
    row.sort();
  });
}

namespace {

// Crossings numbered tile by tile, inside a tile at random, each tile in its own way.
class Streets {
public:
  explicit Streets(std::int64_t tiles) : tiles_(tiles), order_(random_permutation(area, 29)), place_(order_.size()) {
    for (std::int32_t i = 0; i < area; ++i) place_[order_[i]] = i;
  }

  std::int64_t size() const { return tiles_ * tiles_ * area; }
  std::int64_t number(std::int64_t x, std::int64_t y) const {
    const std::int64_t tile = y / side * tiles_ + x / side, place = y % side * side + x % side;
    return tile * area + order_[(place + turn(tile)) % area];
  }
  void position(std::int64_t i, std::int64_t *x, std::int64_t *y) const {
    const std::int64_t tile = i / area, place = (place_[i % area] + area - turn(tile)) % area;
    *x = tile % tiles_ * side + place % side;
    *y = tile / tiles_ * side + place / side;
  }
  bool has(std::int64_t x, std::int64_t y) const { return x >= 0 && y >= 0 && x < tiles_ * side && y < tiles_ * side; }

private:
  static constexpr std::int64_t side = 64, area = side * side;
  static std::int64_t           turn(std::int64_t tile) { return static_cast<std::int64_t>(area * uniform_of(31, tile)); }

  std::int64_t              tiles_;
  std::vector<std::int32_t> order_, place_;
};

} // namespace

Matrix roads(std::int64_t tiles, std::string name) {
  const Streets streets(tiles);
  return make_matrix(std::move(name), streets.size(), streets.size(), [&](std::int64_t i, Row &row) {
    std::int64_t x, y;
    streets.position(i, &x, &y);
    for (int direction = 0; direction < 4; ++direction) {
      const std::int64_t a = x + (direction == 0) - (direction == 1), b = y + (direction == 2) - (direction == 3);
      if (!streets.has(a, b)) continue;
      const std::int64_t j = streets.number(a, b);
      if (uniform_of_pair(37, i, j) < 0.7) row.add(j, uniform_of_pair(41, i, j));
    }
    row.sort();
  });
}

// Node i is wired to i + d with a probability for each distance d, and, rarely, to i with some bits of its number flipped: both
// ends find the same wire.
Matrix circuit(int scale, std::string name) {
  struct Wire {
    std::int64_t distance;
    double       probability;
  };
  static const Wire         near[] = {{1, 0.7}, {2, 0.4}, {9, 0.3}, {64, 0.3}, {701, 0.2}};
  const std::int64_t        n = std::int64_t(1) << scale, rails[] = {n / 3, n / 3 * 2};
  static const std::int64_t masks[] = {0x2a5d1b, 0x3c3a97, 0x15b2c5};
  const auto                on_rail = [=](int r, std::int64_t i) { return i != rails[r] && uniform_of(43 + r, i) < 0.1; };
  return make_matrix(std::move(name), n, n, [=](std::int64_t i, Row &row) {
    double     sum = 1e-3;
    const auto wire = [&](std::int64_t j, double probability) {
      if (j < 0 || j >= n || j == i || uniform_of_pair(47, i, j) >= probability) return;
      const double c = 0.1 + uniform_of_pair(53, i, j);
      sum += c;
      row.add(j, -c);
    };
    for (const Wire &w : near) {
      wire(i - w.distance, w.probability);
      wire(i + w.distance, w.probability);
    }
    for (const std::int64_t mask : masks) wire(i ^ (mask & (n - 1)), 0.15);
    for (int r = 0; r < 2; ++r) {
      if (i == rails[r]) {
        for (std::int64_t j = 0; j < n; ++j)
          if (on_rail(r, j)) wire(j, 1.0);
      } else if (on_rail(r, i)) {
        wire(rails[r], 1.0);
      }
    }
    row.add(i, sum);
    row.sort();
  });
}

} // namespace tcbound::bench
