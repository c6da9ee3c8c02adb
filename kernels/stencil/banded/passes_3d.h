#pragma once

// Passes of banded_3d.h: one step, or two of a star of radius 1, composed. For .cu files only.

#include "../../cuda/error.h"
#include "../iterated/pass.h"
#include "banded_3d.h"
#include "compose.h"
#include "frame_3d.h"

namespace tcbound::stencil {

template <class P> class PlanesPass : public Pass {
public:
  // made: what the kernel does at once, `depth` steps of the problem.
  PlanesPass(Executor &executor, const Problem &problem, const Problem &made, int depth)
    : weights_(weights_3d(made.shape, made.weights)), depth_(depth), needed_(1.0 * depth * problem.shape.points()) {
    int blocks = 0;
    TCBOUND_CUDA(cudaFuncSetAttribute(advance_planes<P>, cudaFuncAttributeMaxDynamicSharedMemorySize, P::shared_bytes));
    TCBOUND_CUDA(cudaFuncSetAttribute(advance_planes<P>, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
    TCBOUND_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, advance_planes<P>, P::threads, P::shared_bytes));
    plan_ = plan_slabs<P>(problem.grid, std::max(1, blocks * executor.device().multiprocessors));
  }

  int  depth() const override { return depth_; }
  bool same_bits() const override { return false; }

  // Tiles hang over the sides, blocks take planes before and after their own, and zeros in the bands are issued too.
  double redundancy() const override {
    if (plan_.nx == 0 || plan_.ny == 0) return 1.0;
    const double computed = 1.0 * plan_.tiles() * P::columns * P::lines * (1.0 + 2.0 * P::R / plan_.planes_each);
    return computed / (1.0 * plan_.nx * plan_.ny) * P::issued() / needed_;
  }

  void run(Executor &executor, const double *in, double *out) override {
    Slabs slabs = plan_;
    slabs.in = in;
    slabs.out = out;
    slabs.pairs = slabs.nx % 2 == 0 && reinterpret_cast<std::uintptr_t>(in) % 16 == 0;
    advance_planes<P>
      <<<blocks_of(plan_), P::threads, P::shared_bytes, static_cast<cudaStream_t>(executor.stream())>>>(slabs, weights_);
    TCBOUND_LAUNCHED();
  }

private:
  const Weights3d weights_;
  const int       depth_;
  const double    needed_; // multiply-adds of a result
  Slabs           plan_;
};

template <class P> class SingleStep final : public PlanesPass<P> {
public:
  SingleStep(Executor &executor, const Problem &problem) : PlanesPass<P>(executor, problem, problem, 1) {}
};

// Two composed steps of a star of radius 1, and the sides.
template <class P> class TwoSteps final : public PlanesPass<P> {
public:
  TwoSteps(Executor &executor, const Problem &problem)
    : PlanesPass<P>(executor, problem, compose(problem, 2), 2), stencil_(plain_stencil(problem)) {}

  void run(Executor &executor, const double *in, double *out) override {
    PlanesPass<P>::run(executor, in, out);
    const dim3 blocks = side_blocks(stencil_);
    if (blocks.x == 0) return;
    step_sides<7><<<blocks, side_threads, 0, static_cast<cudaStream_t>(executor.stream())>>>(in, out, stencil_);
    TCBOUND_LAUNCHED();
  }

private:
  const PlainStencil stencil_;
};

// As banded_passes(), of three dimensions.
template <Arithmetic arithmetic> std::vector<PassMaker> banded_passes_3d(const Shape &shape) {
  const auto is = [&](const Shape &known) { return shape.offsets == known.offsets; };
  const auto maker = [](int depth, auto *pass) {
    using Made = std::remove_pointer_t<decltype(pass)>;
    return PassMaker{depth, [](Executor &executor, const Problem &p) { return std::make_unique<Made>(executor, p); }};
  };
  if constexpr (arithmetic != Arithmetic::m16n8k4 && arithmetic != Arithmetic::m16n8k8) {
    using Star1 = Banded3d<arithmetic, Kind::star, 1, 8, 4, 2>;
    using Star2 = Banded3d<arithmetic, Kind::star, 2, 8, 2, 3>;
    using Box1 = Banded3d<arithmetic, Kind::box, 1, 8, 2, 2>;
    using Corners = Banded3d<arithmetic, Kind::plane_and_corners, 1, 8, 2, 2>;
    using Faces = Banded3d<arithmetic, Kind::faces_and_edges, 1, 8, 2, 2>;
    using Octahedron = Banded3d<arithmetic, Kind::octahedron, 2, 6, 2, 2>;
    if (is(star(3, 1)))
      return {maker(1, static_cast<SingleStep<Star1> *>(nullptr)), maker(2, static_cast<TwoSteps<Octahedron> *>(nullptr))};
    if (is(star(3, 2))) return {maker(1, static_cast<SingleStep<Star2> *>(nullptr))};
    if (is(box(3, 1))) return {maker(1, static_cast<SingleStep<Box1> *>(nullptr))};
    if (is(find_shape("3d17pt"))) return {maker(1, static_cast<SingleStep<Corners> *>(nullptr))};
    if (is(find_shape("poisson"))) return {maker(1, static_cast<SingleStep<Faces> *>(nullptr))};
  }
  return {};
}

} // namespace tcbound::stencil
