#pragma once

// For formats on a device whose transpose is a matrix of its own, built when first needed. For .cu files only.

#include <utility>

#include "device_format.h"

namespace tcbound::csr {

// Matrix: a format's, with recover(executor, matrix), its CSR, and bytes().
template <class Matrix> class WithTranspose {
public:
  explicit WithTranspose(Matrix plain) : plain_(std::move(plain)) {}

  const Matrix &plain() const { return plain_; }
  bool          have_transpose() const { return have_transpose_; }
  const Matrix &of(bool transpose) const { return transpose ? transposed_ : plain_; }
  Matrix       &of(bool transpose) { return transpose ? transposed_ : plain_; }
  std::int64_t  bytes() const { return plain_.bytes() + transposed_.bytes() + transposition_.bytes(); }

  // build(CSR of the transpose) makes the matrix, if it is not there yet.
  template <class F> void prepare(Executor &executor, F &&build) {
    if (have_transpose_) return;
    // In two steps, so that the recovered CSR is freed before building takes its memory.
    DeviceArrays csr = transposition_.transpose(executor, recover(executor, plain_));
    transposed_ = build(std::move(csr));
    have_transpose_ = true;
  }

  // refill(matrix, its values in device memory) for each that is there; `values`: of the plain one.
  template <class F> void refill(Executor &executor, const double *values, MemorySpace space, F &&refill) {
    Array<double> copied;
    if (space == MemorySpace::host) {
      copied = Array<double>(executor, plain_.csr.nonzeros);
      executor.copy(copied.data(), MemorySpace::cuda, values, MemorySpace::host, static_cast<std::size_t>(copied.bytes()));
      values = copied.data();
    }
    refill(plain_, values);
    if (have_transpose_) {
      Array<double> gathered(executor, plain_.csr.nonzeros);
      transposition_.gather(executor, values, gathered.data());
      refill(transposed_, gathered.data());
    }
    executor.synchronize(); // the values may change, and the executor may be on another stream when the matrix is used
  }

private:
  Matrix        plain_, transposed_;
  Transposition transposition_;
  bool          have_transpose_ = false;
};

} // namespace tcbound::csr
