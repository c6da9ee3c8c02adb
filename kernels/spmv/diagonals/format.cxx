#include "format.h"

#include <cstdio>

namespace tcbound::diagonals {

Work count_work(const Census &census, bool accumulate) {
  return work_of_matrix(census.nonzeros, census.bytes, census.rows, census.columns,
                        accumulate); // places without an entry are passed over
}

Work least_work(const CsrView &view, bool transpose, bool accumulate) {
  Census census;
  census.rows = transpose ? view.columns_count : view.rows;
  census.columns = transpose ? view.rows : view.columns_count;
  census.nonzeros = view.nonzeros;
  census.bytes = view.nonzeros;
  return count_work(census, accumulate);
}

double usual_share(const Census &census) {
  if (census.nonzeros == 0) return 1.0;
  const double remainder = static_cast<double>(census.remainder_nonzeros) / static_cast<double>(census.nonzeros);
  return 1.0 / ((1.0 - remainder) / (census.mirrored ? 0.8 : 0.97) + remainder / 0.85);
}

std::string describe(const Census &census) {
  char text[160];
  if (census.rows == census.remainder_rows) return "no regular rows";
  std::snprintf(
    text, sizeof text, "%.4g %% of the rows on %d diagonals%s%s; values in %d bits",
    100.0 * static_cast<double>(census.rows - census.remainder_rows) / static_cast<double>(census.rows), census.offsets,
    census.node > 1 ? (" of blocks " + std::to_string(census.node) + " x " + std::to_string(census.node)).c_str() : "",
    census.mirrored ? ", symmetric: half of them stored" : "", 8 * census.value_bytes);
  return text;
}

} // namespace tcbound::diagonals
