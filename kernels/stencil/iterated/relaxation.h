#pragma once

// Relaxations as sequences of passes: the half of a sweep that solves.

#include "pass.h"

namespace tcbound::stencil {

class PassRelaxation {
public:
  PassRelaxation(Problem problem, const Settings &settings) : problem_(std::move(problem)), settings_(settings) {}

  void add(std::unique_ptr<RelaxationPass> pass); // by depth
  bool empty() const { return passes_.empty(); }

  void relax(Executor &executor, const double *in, const double *b, double *out, const Relaxation &relaxation,
             Array<double> &scratch) const;
  Work work(int steps, bool zero_start) const;

private:
  // A pass: `steps` steps, after the one from 0 if that is part of it. With no steps the one from 0 alone.
  struct Leg {
    RelaxationPass *pass;
    int             steps;
    bool            start;
  };

  std::vector<Leg>              legs(int steps, bool zero_start) const;
  std::vector<RelaxationPass *> order(int steps) const;
  double                        cost(const RelaxationPass &pass) const;

  const Problem                                problem_;
  const Settings                               settings_;
  std::vector<std::unique_ptr<RelaxationPass>> passes_;
};

// Time of a step for each cell, over that of a byte: moving memory and arithmetic, of which the smaller part is hidden but for a
// share.
double cost_of_step(double bytes, double flops, double flops_a_byte);

} // namespace tcbound::stencil
