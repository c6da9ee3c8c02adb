// Passes of pipeline_3d.h: which depths of which shapes are compiled, and how they are launched.
#include "cuda/error.h"
#include "pass.h"
#include "pipeline_3d.h"

namespace tcbound::stencil {
namespace {

// The tiles of a grid, and how they are launched.
template <class P> class Launch3d {
public:
  Launch3d(Executor &executor, const Grid &grid) : plan_(plan_tiles<P>(grid)) {
    TCBOUND_CUDA(cudaFuncSetAttribute(advance_tiles<P>, cudaFuncAttributeMaxDynamicSharedMemorySize, P::shared_bytes));
    TCBOUND_CUDA(cudaFuncSetAttribute(advance_tiles<P>, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
    if (grid.size() == 0) return;
    const std::vector<PlaneRange> ranges = share_planes<P>(plan_, executor.device().multiprocessors);
    // A tile takes margins on its sides; a block takes planes before and after its own.
    redundancy_ = 1.0 * plan_.tiles_x * P::columns * plan_.tiles_y * P::tile / (1.0 * plan_.nx * plan_.ny) *
                  stencil::redundancy({plan_.tiles_x, plan_.tiles_y, plan_.nz, 2 * P::margin}, ranges);
    ranges_ = Array<PlaneRange>(executor, static_cast<std::int64_t>(ranges.size()));
    executor.copy(ranges_.data(), MemorySpace::cuda, ranges.data(), MemorySpace::host, ranges.size() * sizeof(PlaneRange));
    executor.synchronize();
  }

  double redundancy() const { return redundancy_; }

  void operator()(Executor &executor, const double *in, const double *b, double *out,
                  const typename P::Weights &weights) const {
    Tiles tiles = plan_;
    tiles.in = in;
    tiles.out = out;
    tiles.ranges = ranges_.data();
    if (P::relaxes)
      tiles.to_b = (reinterpret_cast<std::intptr_t>(b) - reinterpret_cast<std::intptr_t>(in)) /
                     static_cast<std::intptr_t>(sizeof(double)) -
                   P::R * plan_.plane;
    advance_tiles<P>
      <<<static_cast<unsigned>(ranges_.size()), P::threads, P::shared_bytes, static_cast<cudaStream_t>(executor.stream())>>>(
        tiles, weights);
    TCBOUND_LAUNCHED();
  }

private:
  const Tiles       plan_;
  double            redundancy_ = 1.0;
  Array<PlaneRange> ranges_;
};

template <class P> class Pass3d final : public Pass {
public:
  Pass3d(Executor &executor, const Problem &p)
    : launch_(executor, p.grid), weights_(points_of<Weights3d>(p.shape, p.weights)) {}

  int    depth() const override { return P::T; }
  double redundancy() const override { return launch_.redundancy(); }
  void   run(Executor &executor, const double *in, double *out) override { launch_(executor, in, nullptr, out, weights_); }

private:
  const Launch3d<P> launch_;
  const Weights3d   weights_;
};

// Radius, kind, steps, lines of a lane, warps of a block, blocks of a multiprocessor; the rest as Pipeline3d has it.
template <int R, Kind kind, int T, int lines, int warps, int resident, int ahead = 4, int sides = 0> PassMaker maker() {
  using P = Pipeline3d<R, kind, T, 2, lines, warps, resident, false, ahead, sides>;
  return {T, [](Executor &executor, const Problem &p) { return std::make_unique<Pass3d<P>>(executor, p); }, P::shared_bytes};
}

template <int R, Kind kind, int T, int lines, int warps, int resident, int ahead> RelaxationMaker relaxation() {
  using P = Pipeline3d<R, kind, T, 2, lines, warps, resident, true, ahead>;
  return {
    T, [](Executor &executor, const Problem &p) { return std::make_unique<PipelineRelaxation<P, Launch3d<P>>>(executor, p); },
    P::shared_bytes};
}

} // namespace

std::vector<PassMaker> pipelines_3d(const Shape &shape) {
  const auto is = [&](const Shape &known) { return shape.dimensions == 3 && shape.offsets == known.offsets; };
  if (is(star(3, 1)))
    return {maker<1, Kind::star, 2, 4, 8, 1>(), maker<1, Kind::star, 3, 4, 8, 1>(), maker<1, Kind::star, 4, 4, 8, 1, 3, 120>()};
  if (is(star(3, 2))) return {maker<2, Kind::star, 2, 5, 8, 1, 3, 110>()};
  if (is(box(3, 1))) return {maker<1, Kind::box, 2, 4, 8, 1, 4, 110>(), maker<1, Kind::box, 3, 4, 8, 1, 4, 115>()};
  if (is(find_shape("3d17pt")))
    return {maker<1, Kind::plane_and_corners, 2, 4, 8, 1>(), maker<1, Kind::plane_and_corners, 3, 4, 8, 1, 4, 120>()};
  if (is(find_shape("poisson")))
    return {maker<1, Kind::faces_and_edges, 2, 4, 8, 1>(), maker<1, Kind::faces_and_edges, 3, 4, 8, 1, 4, 120>()};
  return {};
}

std::vector<RelaxationMaker> relaxations_3d(const Shape &shape) {
  const auto is = [&](const Shape &known) { return shape.dimensions == 3 && shape.offsets == known.offsets; };
  if (is(star(3, 1)))
    return {relaxation<1, Kind::star, 1, 4, 8, 2, 3>(), relaxation<1, Kind::star, 2, 4, 6, 2, 3>(),
            relaxation<1, Kind::star, 3, 4, 8, 1, 3>()};
  if (is(box(3, 1))) return {relaxation<1, Kind::box, 1, 4, 8, 1, 4>(), relaxation<1, Kind::box, 2, 4, 8, 1, 3>()};
  return {};
}

} // namespace tcbound::stencil
