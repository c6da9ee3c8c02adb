#pragma once

#include "kernel.h"
#include "mma_shape.h"

namespace tcbound {

// An elementwise operation on vectors. Operation
//   scale:    w = coefficients[0] v[0]
//   combine:  w = scale w + sum of coefficients[k] v[k], k < terms, added up in this order; w is not read when scale is 0
//   multiply: w = v[0] v[1]
// w may be one of v. Pointers to elements lie in the executor's memory and are aligned to 8 bytes, no more; v and coefficients lie
// on the host and may be reused at once.
struct Elementwise {
  std::int64_t         length = 0;
  double              *w = nullptr;
  double               scale = 0.0;
  int                  terms = 1;
  const double *const *v = nullptr;
  const double        *coefficients = nullptr;
  MmaShape             mma = MmaShape::automatic; // of kernels on tensor cores
};

// What a reduction adds up; each gives one number or `results` of them.
enum class Sum {
  dots,            // x y[k] for k < terms
  squares,         // (factor x)^2
  magnitudes,      // |x|
  both,            // |x|, then x^2
  dot_and_squares, // x y[0], then y[0]^2
  maximum,         // of |x|; NaN if there is one
};

struct Reduction {
  Sum                  sum = Sum::dots;
  std::int64_t         length = 0;
  const double        *x = nullptr;
  int                  terms = 1;
  const double *const *y = nullptr;
  double               factor = 1.0;

  int results() const { return sum == Sum::dots ? terms : sum == Sum::both || sum == Sum::dot_and_squares ? 2 : 1; }
};

// A kernel that works on vectors and stores no matrix: what a Kernel does with one is an error here.
class VectorKernel : public Kernel {
public:
  using Kernel::Kernel;

  // Empty when the kernel can run on vectors of that length on this device, else the reason why not, as check() words it.
  virtual std::string check_vectors(const Device &device, std::int64_t length, MmaShape mma) const = 0;

  std::string             check(const Device &, const Problem &) const final { return "it works on vectors"; }
  Work                    predict(const Problem &, bool, bool) const final { throw no_matrix(); }
  std::unique_ptr<Format> build(Executor &, const Problem &) const final { throw no_matrix(); }
  void                    apply(Executor &, Format &, const Product &) const final { throw no_matrix(); }

private:
  Error no_matrix() const { return Error(ErrorCode::unsupported, name() + " works on vectors and stores no matrix"); }
};

class ElementwiseKernel : public VectorKernel {
public:
  using VectorKernel::VectorKernel;

  // In stream order.
  virtual void run(Executor &executor, const Elementwise &call) const = 0;

  virtual Work work(const Elementwise &call) const = 0;

  // The instruction that a call on this device runs on, such as m16n8k8; empty without tensor cores.
  virtual std::string mma(const Device &, MmaShape) const { return {}; }
};

// Memory that reductions of one executor share. One reduction at a time.
class ReductionSpace {
public:
  virtual ~ReductionSpace() = default;
};

// Results are the same bits in every run on the same device with the same alignment.
class ReductionKernel : public VectorKernel {
public:
  using VectorKernel::VectorKernel;

  virtual std::unique_ptr<ReductionSpace> make_space(Executor &) const { return std::make_unique<ReductionSpace>(); }

  // start() queues the reduction, finish() waits for it and gives its results to the host.
  virtual void start(Executor &executor, ReductionSpace &space, const Reduction &call) const = 0;
  virtual void finish(Executor &executor, ReductionSpace &space, const Reduction &call, double *results) const = 0;

  virtual Work work(const Reduction &call) const = 0;
};

} // namespace tcbound
