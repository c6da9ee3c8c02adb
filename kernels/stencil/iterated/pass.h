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

// A step of a relaxation as a sum: x' = weights[p] x of the points p, then + source b; in the ring ring_weight x + ring_source b.
// Without a ring ring_weight is 1 and ring_source 0, so that cells outside the array, computed like the ring's, stay 0.
struct Step {
  std::vector<double> weights;
  double              source, ring_weight, ring_source;
};

std::vector<Step> steps_of(const Problem &problem, const Relaxation &relaxation);

class RelaxationPass {
public:
  virtual ~RelaxationPass() = default;

  // Advances depth() steps. start: null, or the step from 0 that comes first, with `in` == b; only if fuses_start().
  virtual void relax(Executor &executor, const double *in, const double *b, double *out, const Step *steps,
                     const Step *start) = 0;
  virtual void start(Executor &executor, const double *b, double *out, const Step &step) = 0; // the step from 0 alone
  virtual bool fuses_start() const { return true; }

  virtual int    depth() const = 0;
  virtual double redundancy() const = 0; // as Pass's
};

// How to make a pass of that depth. shared_bytes: that a block of it needs, where devices have less.
template <class P> struct Maker {
  int                                                            depth;
  std::function<std::unique_ptr<P>(Executor &, const Problem &)> make;
  int                                                            shared_bytes = 0;
};
using PassMaker = Maker<Pass>;
using RelaxationMaker = Maker<RelaxationPass>;

// Sweeps of passes: as deep as chosen as often as that fits, the rest by shallower ones.
class PassSweeper : public Sweeper {
public:
  using Sweeper::Sweeper;
  std::vector<int>       depths(const Shape &shape, MmaShape mma) const override;
  std::vector<int>       relaxation_depths(const Shape &shape) const override;
  std::string            why_no_relaxation(const Shape &shape) const override;
  std::unique_ptr<Sweep> build(Executor &executor, const Problem &problem, const Settings &settings) const override;

protected:
  // The passes that there are for the shape, ascending by depth from 1; none if it is not known.
  virtual std::vector<PassMaker> makers(const Shape &shape, MmaShape mma) const = 0;
  // Those of relaxations, in the same way; the shape has a centre.
  virtual std::vector<RelaxationMaker> relaxation_makers(const Shape &) const { return {}; }
  virtual MmaShape    mma_for(const Device &, MmaShape asked) const { return asked; } // automatic: without tensor cores
  virtual std::string check_instruction(const Device &device, MmaShape mma) const { return check_mma(device, mma); }
};

// Pipelines on CUDA cores for that shape; none if it is no shape that they know.
std::vector<PassMaker>       pipelines_2d(const Shape &shape);
std::vector<PassMaker>       pipelines_3d(const Shape &shape);
std::vector<RelaxationMaker> relaxations_2d(const Shape &shape);
std::vector<RelaxationMaker> relaxations_3d(const Shape &shape);

// One step, which moves memory faster than a pipeline does: by the kernels of ../grid or, of two wide stencils in two dimensions and where
// no ring frames the grid in three of stencils other than stars, by those of ../banded on CUDA cores.
std::vector<PassMaker> single_steps(const Shape &shape);
std::vector<PassMaker> wide_rows(const Shape &shape); // none: not of that shape
std::vector<PassMaker> marches(const Shape &shape);

} // namespace tcbound::stencil
