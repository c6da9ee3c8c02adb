#include "format.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace tcbound::sell {
namespace {

bool exact_in_32_bits(double value) {
  const double again = static_cast<float>(value);
  return std::memcmp(&again, &value, sizeof value) == 0;
}

// The least bytes that a value can take: what the first values in host memory tell, since one inexact value widens all.
int least_value_bytes(const CsrView &view) {
  if (view.space != MemorySpace::host || !view.values) return 4;
  const std::int64_t looked_at = std::min<std::int64_t>(view.nonzeros, 1024);
  return std::all_of(view.values, view.values + looked_at, exact_in_32_bits) ? 4 : 8;
}

} // namespace

Work count_work(const Census &census, bool accumulate) {
  Work work;
  work.useful_flops = 2 * census.nonzeros;
  work.issued_flops = work.useful_flops;
  if (census.entries() > census.nonzeros) work.padded_flops = 2 * census.entries();
  work.bytes = census.bytes + 8 * census.columns + (accumulate ? 16 : 8) * census.rows;
  work.compulsory_bytes = work.bytes;
  return work;
}

Work least_work(const CsrView &view, bool transpose, bool accumulate) {
  return least_work(view, transpose, accumulate, least_value_bytes(view));
}

Work least_work(const CsrView &view, bool transpose, bool accumulate, int value_bytes) {
  Census census;
  census.rows = transpose ? view.columns_count : view.rows;
  census.columns = transpose ? view.rows : view.columns_count;
  census.nonzeros = view.nonzeros;
  census.bytes = value_bytes * view.nonzeros;
  return count_work(census, accumulate);
}

std::string describe(const Census &census) {
  static const char *const names[] = {"by patterns", "in 16 bits", "in 16 bits by steps", "in 32 bits"};
  std::string              text;
  char                     part[120];
  if (census.entries() == 0) return "no entries";
  for (int c = 0; c < codings; ++c) {
    if (census.stored[c] == 0) continue;
    std::snprintf(part, sizeof part, "%s%.4g %% of the columns %s", text.empty() ? "" : ", ",
                  100.0 * static_cast<double>(census.stored[c]) / static_cast<double>(census.entries()), names[c]);
    text += part;
  }
  std::snprintf(part, sizeof part, "; values in %d bits; %.4g %% of them fill up; %lld of %lld slices permuted",
                census.narrow_values ? 32 : 64,
                100.0 * static_cast<double>(census.entries() - census.nonzeros) / static_cast<double>(census.entries()),
                static_cast<long long>(census.permuted), static_cast<long long>((census.rows + slice_rows - 1) / slice_rows));
  text += part;
  if (census.renumbered) text += "; renumbered";
  if (census.long_rows > 0)
    text += "; " + std::to_string(census.long_rows) + " long rows in " + std::to_string(census.parts) + " parts";
  return text;
}

} // namespace tcbound::sell
