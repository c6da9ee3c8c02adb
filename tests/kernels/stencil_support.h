#pragma once

// What the tests of iterated stencils share: problems, cells and comparisons.

#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "stencil/iterated/iterated.h"

namespace tcbound::stencil::test {

using Cells = std::vector<double>;

inline Problem random_problem(const Shape &shape, std::array<std::int64_t, 3> extent, int ring, std::uint64_t seed) {
  std::mt19937_64                        random(seed);
  std::uniform_real_distribution<double> weight(-1.0, 1.0);
  Problem                                p;
  if (shape.dimensions == 2) extent[2] = 1;
  p.shape = shape;
  p.grid = {extent, ring};
  for (int i = 0; i < shape.points(); ++i) p.weights.push_back(2.0 * weight(random) / shape.points());
  return p;
}

inline Cells random_cells(std::int64_t size, std::uint64_t seed) {
  std::mt19937_64                        random(seed);
  std::uniform_real_distribution<double> value(-1.0, 1.0);
  Cells                                  cells(static_cast<std::size_t>(size));
  for (double &cell : cells) cell = value(random);
  return cells;
}

// The cells of a dense array with so much between lines, none of it a number; and back.
inline Cells spread(const Grid &grid, const Cells &dense) {
  Cells cells(static_cast<std::size_t>(grid.stored()), std::nan(""));
  for (std::int64_t i = 0; i < grid.size(); ++i) cells[i / grid.extent[0] * grid.line() + i % grid.extent[0]] = dense[i];
  return cells;
}
inline Cells gather(const Grid &grid, const Cells &cells) {
  Cells dense(static_cast<std::size_t>(grid.size()));
  for (std::int64_t i = 0; i < grid.size(); ++i) dense[i] = cells[i / grid.extent[0] * grid.line() + i % grid.extent[0]];
  return dense;
}

inline std::string name_of(const Problem &p) {
  const auto &e = p.grid.extent;
  return p.shape.name + " on " + std::to_string(e[0]) + "x" + std::to_string(e[1]) + "x" + std::to_string(e[2]) + ", ring " +
         std::to_string(p.grid.ring);
}

inline void expect_same_bits(const Problem &p, const Cells &found, const Cells &expected) {
  std::int64_t wrong = 0, first = -1;
  for (std::int64_t i = 0; i < p.grid.size(); ++i)
    if (std::memcmp(&found[i], &expected[i], sizeof(double)) != 0) {
      if (wrong++ == 0) first = i;
    }
  const std::int64_t nx = p.grid.extent[0], ny = p.grid.extent[1];
  if (wrong > 0)
    ADD_FAILURE() << wrong << " cells differ, first (" << first % nx << ", " << first / nx % ny << ", " << first / nx / ny
                  << "): " << found[first] << " instead of " << expected[first];
}

inline const Sweeper &sweeper(const std::string &backend, const std::string &format = "iterated") {
  const Sweeper *found = find_sweeper("stencil/" + format + "/" + backend);
  if (!found) throw std::runtime_error("no backend " + backend);
  return *found;
}

// Narrower than the radius, than a lane's columns, than a strip or a tile; one more and one less than these; tails.
inline const std::vector<std::array<std::int64_t, 3>> plane_sizes = {
  {1, 1, 1},   {2, 3, 1},   {3, 200, 1},   {7, 5, 1},    {33, 40, 1},   {112, 64, 1}, {113, 65, 1},
  {127, 9, 1}, {128, 1, 1}, {129, 131, 1}, {250, 77, 1}, {521, 203, 1}, {0, 5, 1}};
inline const std::vector<std::array<std::int64_t, 3>> solid_sizes = {{1, 1, 1},    {2, 3, 2},   {7, 5, 9},   {33, 40, 12},
                                                                     {60, 44, 20}, {61, 45, 5}, {64, 48, 3}, {65, 49, 33},
                                                                     {129, 97, 8}, {3, 90, 40}, {90, 3, 7},  {0, 5, 5}};

class OnDevice : public ::testing::Test {
protected:
  void SetUp() override {
    std::string why_not;
    if (cuda_device_count(&why_not) == 0) GTEST_SKIP() << why_not;
    device_ = make_cuda_executor(0);
  }
  std::unique_ptr<Executor> device_;
};

} // namespace tcbound::stencil::test
