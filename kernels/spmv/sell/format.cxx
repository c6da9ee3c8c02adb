#include "format.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace tcbound::sell {
int bytes_of_value(double value) {
  const auto    narrow = static_cast<float>(value);
  const double  again = narrow;
  std::uint32_t bits;
  if (std::memcmp(&again, &value, sizeof value) != 0) return 8;
  std::memcpy(&bits, &narrow, sizeof bits);
  return (bits & 0xffffU) == 0 ? 2 : 4;
}

namespace {

// The least bytes that a value can take: what the first values in host memory tell, since one inexact value widens all.
int least_value_bytes(const CsrView &view) {
  int bytes = 2;
  if (view.space != MemorySpace::host || !view.values) return bytes;
  const std::int64_t looked_at = std::min<std::int64_t>(view.nonzeros, 1024);
  for (std::int64_t k = 0; k < looked_at; ++k) bytes = std::max(bytes, bytes_of_value(view.values[k]));
  return bytes;
}

} // namespace

Work count_work(const Census &census, bool accumulate) {
  Work work = work_of_matrix(census.nonzeros, census.bytes, census.rows, census.columns, accumulate);
  if (census.entries() > census.nonzeros) work.padded_flops = 2 * census.entries();
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
                8 * census.value_bytes,
                100.0 * static_cast<double>(census.entries() - census.nonzeros) / static_cast<double>(census.entries()),
                static_cast<long long>(census.permuted),
                static_cast<long long>(census.slices[0] + census.slices[1] + census.slices[2] + census.slices[3]));
  text += part;
  if (census.renumbered) text += "; renumbered";
  if (census.long_rows > 0 && census.parts == 0)
    text += "; " + std::to_string(census.long_rows) + " long rows as CSR";
  else if (census.long_rows > 0)
    text += "; " + std::to_string(census.long_rows) + " long rows in " + std::to_string(census.parts) + " parts";
  return text;
}

} // namespace tcbound::sell
