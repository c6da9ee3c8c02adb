#pragma once

#include <string>

#include "kernel.h"

namespace tcbound::csr {

// y = A x in CSR, each array counted once (x too: what a cache cannot keep and a kernel reads again is traffic, not data):
// 8 + index_bytes for an entry, offset_bytes for a row and one more, 8 for each element of x and of z, and 8 for each of y
// when it is added. auxiliary_bytes: tables that the kernel reads besides the matrix.
struct Size {
  std::int64_t rows = 0, columns = 0, nonzeros = 0; // of the matrix, not of its transpose
  int          offset_bytes = 4, index_bytes = 4;
};
Work count_work(const Size &size, bool transpose, bool accumulate, std::int64_t auxiliary_bytes);

// `count` products whose work is `one` each, in so many passes through the matrix; vector_bytes: of `one`, those of x, y and z,
// which every product has for itself.
Work count_work_of_columns(const Work &one, std::int64_t vector_bytes, std::int64_t count, std::int64_t passes);

// Bytes of x, y and z that count_work() counts.
std::int64_t vector_bytes(const Size &size, bool transpose, bool accumulate);

// Throws Error(invalid) when the arrays of a view in host memory contradict its sizes.
void validate(const CsrView &view);

// Reads of CSR and of its transpose on the host: the Problem's own arrays, borrowed.
class HostFormat final : public Format {
public:
  explicit HostFormat(const CsrView &view);

  const char    *name() const override { return "csr"; }
  void           refill(Executor &executor, const double *values, MemorySpace space) override;
  void           diagonal(Executor &executor, double *d) override;
  Work           work(bool transpose, bool accumulate) const override;
  Work           work_of_columns(bool transpose, bool accumulate, std::int64_t count) const override;
  std::int64_t   stored_bytes() const override { return 0; }
  const CsrView &view() const { return view_; }
  static Size    size_of(const CsrView &view);

private:
  CsrView view_;
};

} // namespace tcbound::csr
