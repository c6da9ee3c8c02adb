#include "format.h"

#include <cstdio>

namespace tcbound::compact {

Work count_work(const Census &census, bool accumulate) {
  return work_of_matrix(census.nonzeros, census.bytes, census.rows, census.columns, accumulate);
}

Work least_work(const CsrView &view, bool transpose, bool accumulate) {
  Census census;
  census.rows = transpose ? view.columns_count : view.rows;
  census.columns = transpose ? view.rows : view.columns_count;
  census.nonzeros = view.nonzeros;
  return count_work(census, accumulate);
}

double usual_share(const Census &census) {
  if (census.nonzeros == 0) return 1.0;
  const double rows = static_cast<double>(census.rows);
  const double exceptions = static_cast<double>(census.exceptions) / rows;
  const double remainder = static_cast<double>(census.remainder_nonzeros) / static_cast<double>(census.nonzeros);
  // A thread that multiplies an exception reads values 512 bytes apart, of which memory delivers 32 each. The remainder's kernel
  // takes longer than that of csr for its fewer bytes.
  return 1.0 / (((1.0 - remainder) + 3.0 * exceptions) / 0.9 + remainder / 0.7);
}

std::string describe(const Census &census) {
  std::string text;
  const auto  add = [&](std::int64_t rows, const char *where) {
    char part[80];
    if (rows == 0) return;
    std::snprintf(part, sizeof part, "%s%.4g %% of the rows %s", text.empty() ? "" : ", ",
                   100.0 * static_cast<double>(rows) / static_cast<double>(census.rows), where);
    text += part;
  };
  add(census.constant_rows, "in constant slices");
  add(census.explicit_rows, "in explicit slices");
  add(census.partial_rows, "partial");
  add(census.exceptions, "exceptions");
  add(census.remainder_rows, "in the remainder");
  add(census.marched_rows, "multiplied as a grid");
  return text + (text.empty() ? "no rows" : "") + "; patterns: " + std::to_string(census.patterns);
}

} // namespace tcbound::compact
