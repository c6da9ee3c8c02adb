#pragma once

// What the suite times: a kernel of the registry or a baseline of others, on one matrix.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "arithmetic.h"
#include "cases.h"
#include "kernel.h"

namespace tcbound::bench {

// The matrix as one contender holds it.
class Runner {
public:
  virtual ~Runner() = default;
  virtual void multiply(const double *x, double *z) = 0; // z = A x in the executor's memory, all columns, in stream order
  // New values on the same pattern, also in the executor's memory. False: a baseline that is only measured with what it was
  // built from.
  virtual bool refill(const double *) { return false; }
  // What the products are computed in.
  virtual Arithmetic   arithmetic() const { return Arithmetic::fp64; }
  virtual Work         work() const = 0;
  virtual std::int64_t stored_bytes() const = 0; // memory it occupies beyond the CSR that it was built from
};

struct Contender {
  std::string                              name;
  bool                                     baseline = false;
  std::string                              why_not; // not empty: it cannot run on this matrix
  std::function<std::unique_ptr<Runner>()> build;   // returns with the work done
};

// One matrix on an executor: on a device it lies there before any format is built from it, as PETSc's would after assembly.
struct Bench {
  Bench(const Matrix &a, Executor &e, std::int64_t count);

  template <class T, class A> void upload(Array<T> &to, const std::vector<T, A> &from) {
    executor.copy(to.data(), executor.space(), from.data(), MemorySpace::host, from.size() * sizeof(T));
  }

  const Matrix       &matrix;
  Executor           &executor;
  std::int64_t        count; // columns of x and z, one after the other
  Array<double>       x, z;
  Array<std::int32_t> offsets, columns;
  Array<double>       values, doubled; // doubled: twice the values, to refill with
  Problem             problem;
};

// Kernels of the registry for this matrix, in its order; `variants` adds their tuning choices, `mma` every instruction of those
// on tensor cores, `lossy` those with other arithmetic than FP64.
std::vector<Contender> kernel_contenders(Bench &bench, bool variants, bool mma, bool lossy);

// cuSPARSE's CSR algorithms, its sliced ELL and, where there are blocks, BSR. Only in builds with CUDA, for a device executor.
std::vector<Contender> cusparse_contenders(Bench &bench, int block);

// PETSc's MATSEQAIJ on the host.
Contender petsc_contender(Bench &bench);

} // namespace tcbound::bench
