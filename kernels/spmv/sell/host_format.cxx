#include "host_format.h"

#include <algorithm>

#include "spmv/compact/host_rows.h"
#include "spmv/csr/host_product.h"

namespace tcbound::sell {
namespace {

std::int64_t bytes_of(const HostArrays &a) {
  const auto of_vector = [](const auto &v) { return static_cast<std::int64_t>(v.size() * sizeof(v[0])); };
  const auto of_long = of_vector(a.long_rows) + of_vector(a.long_offsets) + a.long_columns.bytes() + a.long_values.bytes();
  return of_vector(a.slices) + of_vector(a.distances) + of_vector(a.stream) + a.values.bytes() +
         (a.long_rows.empty() ? 0 : of_long);
}

} // namespace

Census count(const HostArrays &a) {
  Census census;
  census.rows = a.rows;
  census.columns = a.columns;
  census.nonzeros = a.nonzeros;
  for (const HostSlice &slice : a.slices) {
    ++census.slices[static_cast<int>(slice.coding)];
    census.stored[static_cast<int>(slice.coding)] += std::int64_t(host_slice_rows) * slice.steps;
    census.permuted += slice.stride != 1;
  }
  census.long_rows = static_cast<std::int64_t>(a.long_rows.size());
  census.apart = a.long_columns.size();
  census.bytes = bytes_of(a);
  census.value_bytes = a.value_bytes;
  return census;
}

HostFormat::HostFormat(Executor &executor, const CsrView &view)
  : view_(view), arrays_(build_host(executor, view)), census_(count(arrays_)) {}

void HostFormat::refill(Executor &executor, const double *values, MemorySpace space) {
  if (space != MemorySpace::host)
    throw Error(ErrorCode::unsupported, "a format in host memory takes its values from there, and these lie in device memory");
  view_.values = values;
  fill_values(executor, arrays_, view_);
  census_ = count(arrays_);
}

// By the matrix's own CSR, which is there.
void HostFormat::diagonal(Executor &, double *d) { csr::diagonal(view_, nullptr, d); }

Work HostFormat::work(bool transpose, bool accumulate) const {
  Census census = census_;
  if (transpose) std::swap(census.rows, census.columns);
  return count_work(census, accumulate);
}

} // namespace tcbound::sell
