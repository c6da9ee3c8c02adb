#include "format.h"

#include <algorithm>

#include "host_product.h"

namespace tcbound::csr {

Work count_work(const Size &size, bool transpose, bool accumulate, std::int64_t auxiliary_bytes) {
  Work work;
  work.useful_flops = 2 * size.nonzeros; // a multiplication and an addition; scaling by alpha and beta is not counted
  work.issued_flops = work.useful_flops;
  work.compulsory_bytes = (8 + size.index_bytes) * size.nonzeros + size.offset_bytes * (size.stored() + 1) +
                          (size.listed == Size::all_rows ? 0 : 4 * size.listed) + vector_bytes(size, transpose, accumulate);
  work.bytes = work.compulsory_bytes + auxiliary_bytes;
  return work;
}

Work count_work_in_place(const Size &size, bool transpose, std::int64_t auxiliary_bytes) {
  Work work = count_work(size, transpose, true, auxiliary_bytes);
  if (transpose) return work;
  const std::int64_t untouched = 16 * (size.rows - size.stored());
  work.bytes -= untouched;
  work.compulsory_bytes -= untouched;
  return work;
}

std::int64_t vector_bytes(const Size &size, bool transpose, bool accumulate) {
  const std::int64_t outputs = transpose ? size.columns : size.rows, inputs = transpose ? size.stored() : size.columns;
  return 8 * inputs + (accumulate ? 16 : 8) * outputs;
}

Work count_work_of_columns(const Work &one, std::int64_t vector_bytes, std::int64_t count, std::int64_t passes) {
  Work work = count * one;
  work.bytes = passes * (one.bytes - vector_bytes) + count * vector_bytes;
  work.compulsory_bytes = one.compulsory_bytes - vector_bytes + count * vector_bytes;
  return work;
}

std::string describe(const Size &size) {
  if (size.listed == Size::all_rows) return {};
  return std::to_string(size.listed) + " of " + std::to_string(size.rows) + " rows have entries and are stored";
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

HostFormat::HostFormat(const Problem &problem) {
  validate(problem.csr);
  listed_ = ListedRows(problem, problem.csr.row_offsets.bytes);
  view_ = listed_.view_of(problem.csr);
  size_ = size_of(problem, listed_.count());
}

void HostFormat::refill(Executor &, const double *values, MemorySpace space) {
  if (space != MemorySpace::host)
    throw Error(ErrorCode::unsupported, "the host's CSR borrows its values, and these lie in device memory");
  view_.values = values;
}

void HostFormat::begin(const Product &product) const {
  if (listed_.used() && !product.transpose && !product.in_place())
    begin_others(product, size_.rows, rows(), listed_.rows().size());
}

void HostFormat::diagonal(Executor &, double *d) {
  if (listed_.used()) std::fill_n(d, size_.rows, 0.0);
  csr::diagonal(view_, rows(), d);
}

Size HostFormat::size_of(const Problem &problem) {
  return size_of(problem, ListedRows::count(problem, problem.csr.row_offsets.bytes));
}

Size HostFormat::size_of(const Problem &problem, std::int64_t listed) {
  const CsrView &a = problem.csr;
  return {a.rows, a.columns_count, a.nonzeros, a.row_offsets.bytes, a.columns.bytes, listed};
}

Work HostFormat::work(bool transpose, bool accumulate) const { return count_work(size_, transpose, accumulate, 0); }

Work HostFormat::work_in_place(bool transpose) const { return count_work_in_place(size_, transpose, 0); }

Work HostFormat::work_of_columns(bool transpose, bool accumulate, std::int64_t count) const {
  return count_work_of_columns(work(transpose, accumulate), vector_bytes(size_, transpose, accumulate), count,
                               transpose ? count : passes_of_columns(count));
}

std::string HostFormat::describe() const { return csr::describe(size_); }

} // namespace tcbound::csr
