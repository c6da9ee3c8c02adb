// Passes of pipeline_2d.h: which depths of which shapes are compiled, and how they are launched.
#include "pipeline_2d.h"

namespace tcbound::stencil {
namespace {

// Radius, box or star, steps, columns of a lane, warps of a multiprocessor. Deeper ones would need more registers than there are.
template <int R, bool box, int T, int W, int resident> PassMaker maker() {
  return {T, [](Executor &executor, const Problem &p) {
            return std::make_unique<StripPass<Pipeline2d<R, box, T, W, resident>>>(executor, p.grid, p.shape, p.weights, T);
          }};
}

// After these the row buffers of a warp.
template <int R, bool box, int T, int W, int resident, int ahead> RelaxationMaker relaxation() {
  using P = Pipeline2d<R, box, T, W, resident, true, ahead>;
  return {
    T,
    [](Executor &executor, const Problem &p) { return std::make_unique<PipelineRelaxation<P, LaunchStrips<P>>>(executor, p); },
    LaunchStrips<P>::shared_bytes};
}

} // namespace

std::vector<PassMaker> pipelines_2d(const Shape &shape) {
  const auto is = [&](const Shape &known) { return shape.dimensions == 2 && shape.offsets == known.offsets; };
  if (is(star(2, 1)))
    return {maker<1, false, 2, 4, 16>(), maker<1, false, 4, 4, 16>(), maker<1, false, 6, 4, 12>(), maker<1, false, 8, 4, 8>()};
  if (is(star(2, 2))) return {maker<2, false, 2, 4, 12>(), maker<2, false, 3, 4, 12>(), maker<2, false, 4, 4, 8>()};
  if (is(star(2, 3))) return {maker<3, false, 2, 4, 12>(), maker<3, false, 3, 4, 8>()};
  if (is(box(2, 1))) return {maker<1, true, 2, 4, 16>(), maker<1, true, 4, 4, 16>(), maker<1, true, 6, 4, 12>()};
  if (is(box(2, 2))) return {maker<2, true, 2, 4, 16>(), maker<2, true, 3, 4, 12>()};
  if (is(box(2, 3))) return {maker<3, true, 2, 4, 8>()};
  return {};
}

std::vector<RelaxationMaker> relaxations_2d(const Shape &shape) {
  const auto is = [&](const Shape &known) { return shape.dimensions == 2 && shape.offsets == known.offsets; };
  if (is(star(2, 1)))
    return {relaxation<1, false, 1, 4, 16, 4>(), relaxation<1, false, 2, 4, 16, 4>(), relaxation<1, false, 3, 4, 16, 4>(),
            relaxation<1, false, 4, 4, 12, 5>()};
  if (is(box(2, 1)))
    return {relaxation<1, true, 1, 4, 16, 4>(), relaxation<1, true, 2, 4, 16, 4>(), relaxation<1, true, 3, 4, 16, 4>(),
            relaxation<1, true, 4, 4, 12, 5>()};
  return {};
}

} // namespace tcbound::stencil
