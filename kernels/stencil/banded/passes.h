#pragma once

// Passes of banded_2d.h and banded_3d.h: one step of a wide stencil or several of a narrow one, composed. For .cu files only.

#include "banded_2d.h"
#include "compose.h"
#include "frame.h"
#include "passes_3d.h"

namespace tcbound::stencil {

// Zeros in the bands are issued too.
template <class P> class BandedPass : public StripPass<P> {
public:
  BandedPass(Executor &executor, const Problem &problem, int depth)
    : BandedPass(executor, problem, depth > 1 ? compose(problem, depth) : problem, depth) {}

  bool   same_bits() const override { return false; }
  double redundancy() const override { return StripPass<P>::redundancy() * P::issued() / needed_; }

private:
  BandedPass(Executor &executor, const Problem &problem, const Problem &made, int depth)
    : StripPass<P>(executor, problem.grid, made.shape, made.weights, depth), needed_(1.0 * depth * problem.shape.points()) {}

  const double needed_; // multiply-adds of a result
};

// T composed steps, and the frame.
template <class P, int points, int T> class ComposedPass final : public BandedPass<P> {
public:
  ComposedPass(Executor &executor, const Problem &problem)
    : BandedPass<P>(executor, problem, T), stencil_(plain_stencil(problem)) {}

  void run(Executor &executor, const double *in, double *out) override {
    BandedPass<P>::run(executor, in, out);
    step_frame<points, T, P::R / T>
      <<<frame_blocks(stencil_), frame_threads, 0, static_cast<cudaStream_t>(executor.stream())>>>(in, out, stencil_);
    TCBOUND_LAUNCHED();
  }

private:
  const PlainStencil stencil_;
};

// Passes of that arithmetic for a shape; none if it is no shape that they know.
template <Arithmetic arithmetic> std::vector<PassMaker> banded_passes(const Shape &shape) {
  if (shape.dimensions == 3) return banded_passes_3d<arithmetic>(shape);
  const auto is = [&](const Shape &known) { return shape.offsets == known.offsets; };
  const auto single = [](auto *engine) {
    using P = std::remove_pointer_t<decltype(engine)>;
    return PassMaker{1, [](Executor &executor, const Problem &p) { return std::make_unique<BandedPass<P>>(executor, p, 1); }};
  };
  const auto composed = [](auto *engine, auto points) {
    using P = std::remove_pointer_t<decltype(engine)>;
    return PassMaker{3, [](Executor &executor, const Problem &p) {
                       return std::make_unique<ComposedPass<P, decltype(points)::value, 3>>(executor, p);
                     }};
  };
  using Box3 = Banded2d<arithmetic, Outline::box, 3, 8>;
  if (is(box(2, 3))) return {single(static_cast<Box3 *>(nullptr))};
  // Of shapes between the least and the most, for which only the instruction matters, one stencil is enough.
  if constexpr (arithmetic != Arithmetic::m16n8k4 && arithmetic != Arithmetic::m16n8k8) {
    using Box1 = Banded2d<arithmetic, Outline::box, 1, 16>;
    using Box2 = Banded2d<arithmetic, Outline::box, 2, 12>;
    using Star1 = Banded2d<arithmetic, Outline::star, 1, 16>;
    using Star2 = Banded2d<arithmetic, Outline::star, 2, 12>;
    using Star3 = Banded2d<arithmetic, Outline::star, 3, 8>;
    using Diamond3 = Banded2d<arithmetic, Outline::diamond, 3, 8>;
    if (is(star(2, 1)))
      return {single(static_cast<Star1 *>(nullptr)),
              composed(static_cast<Diamond3 *>(nullptr), std::integral_constant<int, 5>())};
    if (is(box(2, 1)))
      return {single(static_cast<Box1 *>(nullptr)), composed(static_cast<Box3 *>(nullptr), std::integral_constant<int, 9>())};
    if (is(star(2, 2))) return {single(static_cast<Star2 *>(nullptr))};
    if (is(star(2, 3))) return {single(static_cast<Star3 *>(nullptr))};
    if (is(box(2, 2))) return {single(static_cast<Box2 *>(nullptr))};
  }
  return {};
}

} // namespace tcbound::stencil
