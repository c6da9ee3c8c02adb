// Passes of pipeline_2d.h: which depths of which shapes are compiled, and how they are launched.
#include "cuda/error.h"
#include "pass.h"
#include "pipeline_2d.h"

namespace tcbound::stencil {
namespace {

Weights2d weights_of(const Problem &problem) {
  Weights2d w = {};
  const int r = problem.shape.radius;
  for (int p = 0; p < problem.shape.points(); ++p)
    w.at[problem.shape.offsets[p][1] + r][problem.shape.offsets[p][0] + r] = problem.weights[p];
  return w;
}

template <class P> class Pass2d final : public Pass {
public:
  Pass2d(Executor &executor, const Problem &problem)
    : plan_(plan_strips<P>(problem.grid, executor.device().multiprocessors)), weights_(weights_of(problem)) {
    TCBOUND_CUDA(cudaFuncSetAttribute(advance_strips<P>, cudaFuncAttributeMaxDynamicSharedMemorySize, P::shared_bytes));
    TCBOUND_CUDA(cudaFuncSetAttribute(advance_strips<P>, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
  }

  int depth() const override { return P::T; }

  // A segment of a strip takes margins on both sides in both directions.
  double redundancy() const override {
    if (plan_.nx == 0 || plan_.ny == 0) return 1.0;
    const double computed = 1.0 * plan_.strips * P::columns * plan_.segments * (plan_.segment_rows + 2 * P::margin);
    return computed / (1.0 * plan_.nx * plan_.ny);
  }

  void run(Executor &executor, const double *in, double *out) override {
    Strips strips = plan_;
    strips.in = in;
    strips.out = out;
    advance_strips<P><<<static_cast<unsigned>(plan_.strips) * plan_.segments, 32, P::shared_bytes,
                        static_cast<cudaStream_t>(executor.stream())>>>(strips, weights_);
    TCBOUND_LAUNCHED();
  }

private:
  const Strips    plan_;
  const Weights2d weights_;
};

template <class P> PassMaker maker() {
  return {P::T, [](Executor &executor, const Problem &problem) { return std::make_unique<Pass2d<P>>(executor, problem); }};
}

// Radius, box or star, steps, columns of a lane, warps of a multiprocessor. Deeper ones would need more registers than there are.
template <int R, bool box, int T, int W, int resident> PassMaker maker() { return maker<Pipeline2d<R, box, T, W, resident>>(); }

} // namespace

std::vector<PassMaker> pipelines_2d(const Shape &shape) {
  const auto is = [&](const Shape &known) { return shape.dimensions == 2 && shape.offsets == known.offsets; };
  if (is(star(2, 1)))
    return {maker<1, false, 1, 4, 16>(), maker<1, false, 2, 4, 16>(), maker<1, false, 4, 4, 16>(), maker<1, false, 6, 4, 12>(),
            maker<1, false, 8, 4, 8>()};
  if (is(star(2, 2))) return {maker<2, false, 1, 4, 16>(), maker<2, false, 2, 4, 16>(), maker<2, false, 3, 4, 12>()};
  if (is(star(2, 3))) return {maker<3, false, 1, 4, 16>(), maker<3, false, 2, 4, 12>()};
  if (is(box(2, 1)))
    return {maker<1, true, 1, 4, 16>(), maker<1, true, 2, 4, 16>(), maker<1, true, 4, 4, 16>(), maker<1, true, 6, 4, 12>()};
  if (is(box(2, 2))) return {maker<2, true, 1, 4, 16>(), maker<2, true, 2, 4, 16>(), maker<2, true, 3, 4, 12>()};
  if (is(box(2, 3))) return {maker<3, true, 1, 4, 16>(), maker<3, true, 2, 4, 12>()};
  return {};
}

} // namespace tcbound::stencil
