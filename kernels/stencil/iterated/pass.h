#pragma once

// One pass over memory: what sweeps are put together from.

#include <functional>
#include <memory>
#include <vector>

#include "iterated.h"

namespace tcbound::stencil {

class Pass {
public:
  virtual ~Pass() = default;
  virtual void run(Executor &executor, const double *in, double *out) = 0; // advances depth() steps
  virtual int  depth() const = 0;
  // Operations issued over operations needed: cells that neighbouring tiles compute both, and zeros in the operands of MMAs.
  virtual double redundancy() const = 0;
  virtual bool   composed() const { return false; }
};

// How to make a pass of that depth.
struct PassMaker {
  int                                                               depth;
  std::function<std::unique_ptr<Pass>(Executor &, const Problem &)> make;
};

// A sweep of passes: as deep as the deepest as often as that fits, the rest by shallower ones. makers: ascending by depth, the
// first of depth 1. mma: as Sweep::mma().
std::unique_ptr<Sweep> make_sweep(Executor &executor, const Problem &problem, const std::vector<PassMaker> &makers, int depth,
                                  const std::string &mma = {});

// The depths of makers.
std::vector<int> depths_of(const std::vector<PassMaker> &makers);

// Pipelines on CUDA cores for that shape; none if it is no shape that they know.
std::vector<PassMaker> pipelines_2d(const Shape &shape);
std::vector<PassMaker> pipelines_3d(const Shape &shape);

} // namespace tcbound::stencil
