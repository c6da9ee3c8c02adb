#pragma once

// What kernels that relax take for each of the T steps of a pass. For .cu files only.

#include <cuda_runtime.h>

#include "plain.h"

namespace tcbound::stencil {

// Beside the weights of the points: as in Step.
struct Sources {
  double source = 0.0, ring_weight = 1.0, ring_source = 0.0;
};

template <class Weights> struct StepWeights {
  const Weights &points;
  Sources        sources;
};

// starts: the input is b, which the step from 0 multiplies with start or, in the ring, with ring_start.
template <class Weights, int T> struct RelaxationWeights {
  Weights points[T];
  Sources sources[T];
  double  start, ring_start;
  bool    starts;
};

// Those of step s: engines that do not relax have the same for all.
template <class Weights> __device__ __forceinline__ StepWeights<Weights> weights_of_step(const Weights &w, int) {
  return {w, {}};
}
template <class Weights, int T>
__device__ __forceinline__ StepWeights<Weights> weights_of_step(const RelaxationWeights<Weights, T> &w, int s) {
  return {w.points[s], w.sources[s]};
}

// The slot of row or plane `at`, none of which is below -64 n, among n that are taken in turns.
template <int n> __device__ __forceinline__ int slot_of(int at) {
  return static_cast<int>(static_cast<unsigned>(at + 64 * n) % n);
}

// The weights of a shape's points as a kernel takes them.
template <class Weights> Weights points_of(const Shape &shape, const std::vector<double> &weights);

// Relaxations by an engine P; Launch knows its tiles and starts its kernel.
template <class P, class Launch> class PipelineRelaxation final : public RelaxationPass {
public:
  PipelineRelaxation(Executor &executor, const Problem &problem) : launch_(executor, problem.grid), problem_(problem) {}

  int    depth() const override { return P::T; }
  double redundancy() const override { return launch_.redundancy(); }

  void relax(Executor &executor, const double *in, const double *b, double *out, const Step *steps,
             const Step *start) override {
    typename P::Weights w = {};
    for (int s = 0; s < P::T; ++s) {
      w.points[s] = points_of<typename P::Points>(problem_.shape, steps[s].weights);
      w.sources[s] = {steps[s].source, steps[s].ring_weight, steps[s].ring_source};
    }
    w.starts = start != nullptr;
    w.start = start ? start->source : 1.0;
    w.ring_start = start ? start->ring_source : 1.0;
    launch_(executor, in, b, out, w);
  }
  void start(Executor &executor, const double *b, double *out, const Step &step) override {
    start_plainly(executor, problem_, b, out, step);
  }

private:
  const Launch  launch_;
  const Problem problem_;
};

} // namespace tcbound::stencil
