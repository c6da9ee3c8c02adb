#pragma once

// Passes of banded_2d.h and banded_3d.h by marches (march.h) or directly (direct_2d.h): one step of a stencil, or several of a narrow one,
// composed. For .cu files only.

#include "../../cuda/error.h"
#include "../iterated/pass.h"
#include "banded_2d.h"
#include "banded_3d.h"
#include "compose.h"
#include "direct_2d.h"
#include "frame.h"
#include "frame_3d.h"

namespace tcbound::stencil {

template <class P> class BandedPass : public Pass {
public:
  BandedPass(Executor &executor, const Problem &problem, int depth)
    : depth_(depth), needed_(1.0 * depth * problem.shape.points()),
      weights_(weights_of(depth > 1 ? compose(problem, depth) : problem)) {
    int blocks = 0;
    TCBOUND_CUDA(cudaFuncSetAttribute(advance_planes<P>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
    TCBOUND_CUDA(cudaFuncSetAttribute(advance_planes<P>, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
    TCBOUND_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, advance_planes<P>, P::threads, shared_bytes));
    plan_ = plan_slabs<P>(problem.grid, problem.shape.dimensions, std::max(1, blocks * executor.device().multiprocessors));
  }

  int  depth() const override { return depth_; }
  bool same_bits() const override { return P::twin && depth_ == 1; }

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
    slabs.pairs = slabs.nx % 2 == 0 && slabs.pitch % 2 == 0 && reinterpret_cast<std::uintptr_t>(in) % 16 == 0;
    advance_planes<P>
      <<<blocks_of(plan_), P::threads, shared_bytes, static_cast<cudaStream_t>(executor.stream())>>>(slabs, weights_);
    TCBOUND_LAUNCHED();
  }

private:
  static constexpr int shared_bytes = banded::Buffers<P>::bytes;

  static typename P::Weights weights_of(const Problem &p) { return points_of<typename P::Weights>(p.shape, p.weights); }

  const int                 depth_;
  const double              needed_; // multiply-adds of a result
  const typename P::Weights weights_;
  Slabs                     plan_;
};

// T composed steps, and what composed weights are wrong for: the frame or the sides.
template <class P, int points, int T> class ComposedPass final : public BandedPass<P> {
public:
  ComposedPass(Executor &executor, const Problem &problem)
    : BandedPass<P>(executor, problem, T), stencil_(plain_stencil(problem)) {}

  void run(Executor &executor, const double *in, double *out) override {
    const auto stream = static_cast<cudaStream_t>(executor.stream());
    BandedPass<P>::run(executor, in, out);
    if constexpr (P::reach_y == 0) {
      step_frame<points, T, P::R / T><<<frame_blocks(stencil_), frame_threads, 0, stream>>>(in, out, stencil_);
    } else {
      static_assert(T == 2 && P::R == T);
      const dim3 blocks = side_blocks(stencil_);
      if (blocks.x == 0) return;
      step_sides<points><<<blocks, side_threads, 0, stream>>>(in, out, stencil_);
    }
    TCBOUND_LAUNCHED();
  }

private:
  const PlainStencil stencil_;
};

template <class P> PassMaker single_step() {
  return {1, [](Executor &executor, const Problem &p) { return std::make_unique<BandedPass<P>>(executor, p, 1); }};
}

template <class D> PassMaker direct_step() {
  return {1, [](Executor &executor, const Problem &p) { return std::make_unique<DirectPass<D>>(executor, p); }};
}

template <class P, int points, int T> PassMaker composed_steps() {
  return {T, [](Executor &executor, const Problem &p) { return std::make_unique<ComposedPass<P, points, T>>(executor, p); }};
}

// Passes of that arithmetic for a shape; none if it is no shape that they know. After the radius: warps of a block (in 3D in x and in
// y), blocks of a multiprocessor, rows or planes on their way, and of a march; of direct steps rows of a warp, warps of a block and blocks
// of a multiprocessor: those that took the least time on an H200.
template <Arithmetic arithmetic> std::vector<PassMaker> banded_passes(const Shape &shape) {
  constexpr bool short_steps = arithmetic == Arithmetic::m16n8k4 || arithmetic == Arithmetic::m16n8k8; // take more registers
  const auto is = [&](const Shape &known) { return shape.dimensions == known.dimensions && shape.offsets == known.offsets; };
  using Box3 = Banded2d<arithmetic, Outline::box, 3, 1, short_steps ? 8 : 12, 4, 64>;
  if (is(box(2, 3))) return {single_step<Box3>()};
  // Of shapes between the least and the most, for which only the instruction matters, one stencil is enough.
  if constexpr (!short_steps) {
    using Diamond3 = Banded2d<arithmetic, Outline::diamond, 3, 4, 3, 4, 64>;
    if (is(star(2, 1)))
      return {direct_step<DirectRows<Banded2d<arithmetic, Outline::star, 1>, 4, 4, 4>>(), composed_steps<Diamond3, 5, 3>()};
    if (is(box(2, 1)))
      return {direct_step<DirectRows<Banded2d<arithmetic, Outline::box, 1>, 4, 2, 8>>(), composed_steps<Box3, 9, 3>()};
    if (is(star(2, 2))) return {direct_step<DirectRows<Banded2d<arithmetic, Outline::star, 2>, 4, 4, 4>>()};
    if (is(star(2, 3))) return {direct_step<DirectStarRows<Banded2d<arithmetic, Outline::star, 3>, 8, 2, 8>>()};
    if (is(box(2, 2))) return {single_step<Banded2d<arithmetic, Outline::box, 2, 4, 4, 4, 24>>()};
    using SolidStar1 = Banded3d<arithmetic, Kind::star, 1, 2, 4, 4, 2, 8>;
    using Octahedron = Banded3d<arithmetic, Kind::octahedron, 2, 1, 6, 2, 2, 48>;
    if (is(star(3, 1))) return {single_step<SolidStar1>(), composed_steps<Octahedron, 7, 2>()};
    if (is(star(3, 2))) return {single_step<Banded3d<arithmetic, Kind::star, 2, 2, 6, 2, 2, 16>>()};
    if (is(box(3, 1))) return {single_step<Banded3d<arithmetic, Kind::box, 1, 1, 5, 4, 2, 16>>()};
    if (is(find_shape("3d17pt"))) return {single_step<Banded3d<arithmetic, Kind::plane_and_corners, 1, 1, 5, 4, 2, 16>>()};
    if (is(find_shape("poisson"))) return {single_step<Banded3d<arithmetic, Kind::faces_and_edges, 1, 1, 5, 4, 2, 16>>()};
  }
  return {};
}

} // namespace tcbound::stencil
