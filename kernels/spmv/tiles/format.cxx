#include "format.h"

#include <cstdio>

namespace tcbound::tiles {

Work count_work(const Census &census, bool accumulate) {
  Work work = work_of_matrix(census.nonzeros, census.bytes + 16 * census.sums, census.rows, census.columns, accumulate);
  if (census.places > census.nonzeros) work.padded_flops = 2 * census.places;
  return work;
}

Work least_work(const CsrView &view, bool transpose, bool accumulate) {
  Census census;
  census.rows = transpose ? view.columns_count : view.rows;
  census.columns = transpose ? view.rows : view.columns_count;
  census.nonzeros = view.nonzeros;
  census.bytes = 4 * view.nonzeros;
  return count_work(census, accumulate);
}

std::string describe(const Census &census) {
  char text[200];
  if (census.nonzeros == 0) return "no entries";
  std::snprintf(text, sizeof text,
                "%lld tiles of %d columns, %lld bins of rows; %.4g places for partial sums an entry; values in %d bits",
                static_cast<long long>(census.tiles), width, static_cast<long long>(census.bins),
                static_cast<double>(census.sums) / static_cast<double>(census.nonzeros), 8 * census.value_bytes);
  return text;
}

} // namespace tcbound::tiles
