// Passes of pipeline_3d.h: which depths of which shapes are compiled, and how they are launched.
#include "cuda/error.h"
#include "pass.h"
#include "pipeline_3d.h"

namespace tcbound::stencil {
namespace {

template <class P> class Pass3d final : public Pass {
public:
  explicit Pass3d(const Problem &problem)
    : plan_(plan_tiles<P>(problem.grid)), weights_(weights_3d(problem.shape, problem.weights)) {
    TCBOUND_CUDA(cudaFuncSetAttribute(advance_tiles<P>, cudaFuncAttributeMaxDynamicSharedMemorySize, P::shared_bytes));
    TCBOUND_CUDA(cudaFuncSetAttribute(advance_tiles<P>, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
  }

  int depth() const override { return P::T; }

  // A tile takes margins on its sides; a block takes planes before and after its own.
  double redundancy() const override {
    if (plan_.nx == 0 || plan_.ny == 0) return 1.0;
    const double computed = 1.0 * plan_.tiles_x * P::columns * plan_.tiles_y * P::tile;
    return computed / (1.0 * plan_.nx * plan_.ny) * (1.0 + 2.0 * P::margin / plan_.planes_each);
  }

  void run(Executor &executor, const double *in, double *out) override {
    Tiles tiles = plan_;
    tiles.in = in;
    tiles.out = out;
    advance_tiles<P>
      <<<blocks_of(plan_), P::threads, P::shared_bytes, static_cast<cudaStream_t>(executor.stream())>>>(tiles, weights_);
    TCBOUND_LAUNCHED();
  }

private:
  const Tiles     plan_;
  const Weights3d weights_;
};

template <class P> PassMaker maker() {
  return {P::T, [](Executor &, const Problem &problem) { return std::make_unique<Pass3d<P>>(problem); }};
}

// Radius, kind, steps, lines of a lane, warps of a block, blocks of a multiprocessor.
template <int R, Kind kind, int T, int lines, int warps, int resident> PassMaker maker() {
  return maker<Pipeline3d<R, kind, T, 2, lines, warps, resident>>();
}

} // namespace

std::vector<PassMaker> pipelines_3d(const Shape &shape) {
  const auto is = [&](const Shape &known) { return shape.dimensions == 3 && shape.offsets == known.offsets; };
  if (is(star(3, 1))) return {maker<1, Kind::star, 2, 4, 12, 1>(), maker<1, Kind::star, 3, 4, 8, 1>()};
  if (is(star(3, 2))) return {maker<2, Kind::star, 2, 4, 8, 1>()};
  if (is(box(3, 1))) return {maker<1, Kind::box, 2, 4, 8, 1>(), maker<1, Kind::box, 3, 4, 8, 1>()};
  if (is(find_shape("3d17pt"))) return {maker<1, Kind::plane_and_corners, 2, 4, 8, 1>()};
  if (is(find_shape("poisson"))) return {maker<1, Kind::faces_and_edges, 2, 4, 8, 1>()};
  return {};
}

} // namespace tcbound::stencil
