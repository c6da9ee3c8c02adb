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
  virtual bool   same_bits() const { return true; } // as Sweep's
};

// How to make a pass of that depth.
struct PassMaker {
  int                                                               depth;
  std::function<std::unique_ptr<Pass>(Executor &, const Problem &)> make;
};

// Sweeps of passes: as deep as chosen as often as that fits, the rest by shallower ones.
class PassSweeper : public Sweeper {
public:
  using Sweeper::Sweeper;
  std::vector<int>       depths(const Shape &shape, MmaShape mma) const override;
  std::unique_ptr<Sweep> build(Executor &executor, const Problem &problem, const Settings &settings) const override;

protected:
  // The passes that there are for the shape, ascending by depth from 1; none if it is not known.
  virtual std::vector<PassMaker> makers(const Shape &shape, MmaShape mma) const = 0;
  virtual MmaShape mma_for(const Device &, MmaShape asked) const { return asked; } // automatic: without tensor cores
};

// Pipelines on CUDA cores for that shape; none if it is no shape that they know.
std::vector<PassMaker> pipelines_2d(const Shape &shape);
std::vector<PassMaker> pipelines_3d(const Shape &shape);

// One step by multiply-adds as the twin of ../banded makes it, which moves memory faster; none where a pipeline is as fast.
std::vector<PassMaker> marches(const Shape &shape);

} // namespace tcbound::stencil
