#include "format.h"

#include "host_product.h"

namespace tcbound::csr {

Work count_work(const Size &size, bool transpose, bool accumulate, std::int64_t auxiliary_bytes) {
  const std::int64_t rows_stored = size.rows + 1;
  Work               work;
  work.useful_flops = 2 * size.nonzeros; // a multiplication and an addition; scaling by alpha and beta is not counted
  work.issued_flops = work.useful_flops;
  work.compulsory_bytes =
    (8 + size.index_bytes) * size.nonzeros + size.offset_bytes * rows_stored + vector_bytes(size, transpose, accumulate);
  work.bytes = work.compulsory_bytes + auxiliary_bytes;
  return work;
}

std::int64_t vector_bytes(const Size &size, bool transpose, bool accumulate) {
  const std::int64_t outputs = transpose ? size.columns : size.rows, inputs = transpose ? size.rows : size.columns;
  return 8 * inputs + (accumulate ? 16 : 8) * outputs;
}

Work count_work_of_columns(const Work &one, std::int64_t vector_bytes, std::int64_t count, std::int64_t passes) {
  Work work = count * one;
  work.bytes = passes * (one.bytes - vector_bytes) + count * vector_bytes;
  work.compulsory_bytes = one.compulsory_bytes - vector_bytes + count * vector_bytes;
  return work;
}

void validate(const CsrView &view) {
  if (view.rows < 0 || view.columns_count < 0 || view.nonzeros < 0)
    throw Error(ErrorCode::invalid, "a matrix has a negative number of rows, columns or entries");
  if (view.space != MemorySpace::host || view.rows == 0) return;
  const std::int64_t first = view.row_offsets[0], last = view.row_offsets[view.rows];
  if (first != 0 || last != view.nonzeros)
    throw Error(ErrorCode::invalid, "the row offsets run from " + std::to_string(first) + " to " + std::to_string(last) +
                                      ", but the matrix has " + std::to_string(view.nonzeros) + " entries");
}

HostFormat::HostFormat(const CsrView &view) : view_(view) { validate(view); }

void HostFormat::refill(Executor &, const double *values, MemorySpace space) {
  if (space != MemorySpace::host)
    throw Error(ErrorCode::unsupported, "the host's CSR borrows its values, and these lie in device memory");
  view_.values = values;
}

void HostFormat::diagonal(Executor &, double *d) { csr::diagonal(view_, nullptr, d); }

Size HostFormat::size_of(const CsrView &view) {
  return {view.rows, view.columns_count, view.nonzeros, view.row_offsets.bytes, view.columns.bytes};
}

Work HostFormat::work(bool transpose, bool accumulate) const { return count_work(size_of(view_), transpose, accumulate, 0); }

Work HostFormat::work_of_columns(bool transpose, bool accumulate, std::int64_t count) const {
  return count_work_of_columns(work(transpose, accumulate), vector_bytes(size_of(view_), transpose, accumulate), count,
                               transpose ? count : passes_of_columns(count));
}

} // namespace tcbound::csr
