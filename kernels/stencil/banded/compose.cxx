#include "compose.h"

#include <map>

namespace tcbound::stencil {

Problem compose(const Problem &problem, int steps) {
  std::map<std::array<int, 3>, long double> product{{{0, 0, 0}, 1.0L}}; // by (z, y, x), the order of Shape::offsets
  for (int step = 0; step < steps; ++step) {
    std::map<std::array<int, 3>, long double> next;
    for (const auto &[at, weight] : product)
      for (int p = 0; p < problem.shape.points(); ++p) {
        const auto &o = problem.shape.offsets[p];
        next[{at[0] + o[2], at[1] + o[1], at[2] + o[0]}] += weight * problem.weights[p];
      }
    product = next;
  }
  Problem composed;
  composed.grid = problem.grid;
  composed.shape = {problem.shape.name + " composed", problem.shape.dimensions, problem.shape.radius * steps, {}};
  for (const auto &[at, weight] : product) {
    composed.shape.offsets.push_back({at[2], at[1], at[0]});
    composed.weights.push_back(static_cast<double>(weight));
  }
  return composed;
}

} // namespace tcbound::stencil
