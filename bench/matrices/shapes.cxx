// Shapes that a kernel can collapse on.
#include "rules.h"

namespace tcbound::bench {

Matrix crews(std::int64_t crew_count, std::int64_t trips, std::string name) {
  return make_matrix(std::move(name), crew_count, trips, [=](std::int64_t i, Row &row) {
    Random random(61, i);
    for (std::int64_t runs = 1 + random.below(3); runs > 0; --runs) {
      std::int64_t trip = random.below(trips);
      for (std::int64_t k = 3 + random.below(5); k > 0 && trip < trips; --k) {
        row.add(trip, random.below(10) ? 1.0 : -1.0);
        trip += 1 + random.below(6);
      }
    }
    row.sort();
  });
}

Matrix arrowhead(std::int64_t n, std::string name) {
  return make_matrix(std::move(name), n, n, [=](std::int64_t i, Row &row) {
    if (i > 0) {
      row.add(0, uniform_of(67, i));
      row.add(i, 2.0 + uniform_of(71, i));
    } else {
      row.add(0, static_cast<double>(n));
      for (std::int64_t j = 1; j < n; ++j) row.add(j, uniform_of(67, j));
    }
  });
}

Matrix banded_with_empty_rows(std::int64_t n, std::string name) {
  return make_matrix(std::move(name), n, n, [=](std::int64_t i, Row &row) {
    if (uniform_of(73, i) < 0.01) return;
    for (std::int64_t j = std::max<std::int64_t>(i - 5, 0); j <= std::min(i + 5, n - 1); ++j)
      row.add(j, 2.0 * uniform_of(79, 11 * i + j) - 1.0);
  });
}

} // namespace tcbound::bench
