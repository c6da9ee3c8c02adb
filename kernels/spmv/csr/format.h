#pragma once

#include <string>

#include "kernel.h"
#include "listed_rows.h"

namespace tcbound::csr {

// y = A x in CSR, each array counted once (x too: what a cache cannot keep and a kernel reads again is traffic, not data):
// 8 + index_bytes for an entry, offset_bytes for a row and one more, 8 for each element of x and of z, and 8 for each of y
// when it is added. auxiliary_bytes: tables that the kernel reads besides the matrix. Where only some rows are stored, each takes
// a number of 4 bytes besides; a transposed product reads x there only, and one in place reads and writes z there only.
struct Size {
  std::int64_t rows = 0, columns = 0, nonzeros = 0; // of the matrix, not of its transpose
  int          offset_bytes = 4, index_bytes = 4;
  std::int64_t listed = all_rows; // rows that are stored (listed_rows.h)

  static constexpr std::int64_t all_rows = -1;
  std::int64_t                  stored() const { return listed == all_rows ? rows : listed; }
};
Work count_work(const Size &size, bool transpose, bool accumulate, std::int64_t auxiliary_bytes);
Work count_work_in_place(const Size &size, bool transpose, std::int64_t auxiliary_bytes);

// `count` products whose work is `one` each, in so many passes through the matrix; vector_bytes: of `one`, those of x, y and z,
// which every product has for itself.
Work count_work_of_columns(const Work &one, std::int64_t vector_bytes, std::int64_t count, std::int64_t passes);

// Bytes of x, y and z that count_work() counts.
std::int64_t vector_bytes(const Size &size, bool transpose, bool accumulate);

// What there is to say of such a matrix, for MatView(): how many of its rows are stored; empty if all are.
std::string describe(const Size &size);

// Throws Error(invalid) when the arrays of a view in host memory contradict its sizes.
void validate(const CsrView &view);

// Format::usual_share() of CSR on a host, beside formats in slices, which keep more loads in flight (an EPYC: 0.6 to 0.9).
constexpr double host_share = 0.85;

// Reads of CSR and of its transpose on the host: the Problem's own arrays, borrowed, but for the offsets of listed rows.
class HostFormat final : public Format {
public:
  explicit HostFormat(const Problem &problem);

  const char    *name() const override { return "csr"; }
  void           refill(Executor &executor, const double *values, MemorySpace space) override;
  void           diagonal(Executor &executor, double *d) override;
  Work           work(bool transpose, bool accumulate) const override;
  Work           work_in_place(bool transpose) const override;
  Work           work_of_columns(bool transpose, bool accumulate, std::int64_t count) const override;
  double         usual_share() const override { return host_share; }
  std::int64_t   stored_bytes() const override { return listed_.bytes(); }
  std::string    describe() const override;
  const CsrView &view() const { return view_; } // of the stored rows
  static Size    size_of(const Problem &problem);

  // What the stored rows stand for; null: they are all rows.
  const std::int32_t *rows() const { return listed_.used() ? listed_.rows().data() : nullptr; }

  // z = beta y in rows that are not stored, unless the product is one in place: what multiply() leaves to do.
  void begin(const Product &product) const;

private:
  static Size size_of(const Problem &problem, std::int64_t listed);

  Size       size_;
  ListedRows listed_;
  CsrView    view_;
};

} // namespace tcbound::csr
