#include "format.h"

#include <cstdio>

namespace tcbound::compact {

Work count_work(const Census &census, bool accumulate) {
  Work work;
  work.useful_flops = 2 * census.nonzeros;
  work.issued_flops = work.useful_flops;
  work.bytes = census.bytes + 8 * census.columns + (accumulate ? 16 : 8) * census.rows;
  work.compulsory_bytes = work.bytes;
  return work;
}

Work least_work(const CsrView &view, bool transpose, bool accumulate) {
  Census census;
  census.rows = transpose ? view.columns_count : view.rows;
  census.columns = transpose ? view.rows : view.columns_count;
  census.nonzeros = view.nonzeros;
  return count_work(census, accumulate);
}

std::string describe(const Census &census) {
  char       text[256];
  const auto percent = [&](std::int64_t rows) {
    return census.rows > 0 ? 100.0 * static_cast<double>(rows) / static_cast<double>(census.rows) : 0.0;
  };
  std::snprintf(
    text, sizeof text,
    "%.4g %% of the rows in constant slices, %.4g %% in explicit slices, %.4g %% partial, %.4g %% exceptions, %.4g %% in the "
    "remainder; "
    "%lld patterns",
    percent(census.constant_rows), percent(census.explicit_rows), percent(census.partial_rows), percent(census.exceptions),
    percent(census.remainder_rows), static_cast<long long>(census.patterns));
  return text;
}

} // namespace tcbound::compact
