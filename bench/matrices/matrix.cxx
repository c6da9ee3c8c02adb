#include "matrix.h"

#include <limits>
#include <numeric>
#include <stdexcept>

namespace tcbound::bench {

void Row::sort() {
  pairs_.clear();
  for (std::size_t k = 0; k < size(); ++k) pairs_.emplace_back(columns_[k], values_[k]);
  std::stable_sort(pairs_.begin(), pairs_.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  pairs_.erase(std::unique(pairs_.begin(), pairs_.end(), [](const auto &a, const auto &b) { return a.first == b.first; }),
               pairs_.end());
  clear();
  for (const auto &[column, value] : pairs_) add(column, value);
}

void make_room(Matrix &a) {
  std::int64_t sum = 0;
  a.offsets[0] = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    sum += a.offsets[i + 1];
    if (sum > std::numeric_limits<std::int32_t>::max())
      throw std::invalid_argument(a.name + " would have 2^31 entries or more");
    a.offsets[i + 1] = static_cast<std::int32_t>(sum);
  }
  a.columns.resize(static_cast<std::size_t>(sum));
  a.values.resize(static_cast<std::size_t>(sum));
}

Matrix transpose(const Matrix &a, std::string name) {
  Matrix t;
  t.name = std::move(name);
  t.rows = a.columns_count;
  t.columns_count = a.rows;
  t.offsets.assign(static_cast<std::size_t>(t.rows) + 1, 0);
  for (const std::int32_t column : a.columns) ++t.offsets[column + 1];
  make_room(t);
  std::vector<std::int32_t> next(t.offsets.begin(), t.offsets.end() - 1);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int32_t k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      const std::int32_t at = next[a.columns[k]]++;
      t.columns[at] = static_cast<std::int32_t>(i);
      t.values[at] = a.values[k];
    }
  }
  return t;
}

std::vector<std::int32_t> random_permutation(std::int64_t size, std::uint64_t seed) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(size));
  Random                    random(seed);
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t i = size - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
  return order;
}

std::vector<double> random_vector(std::int64_t size, std::uint64_t seed) {
  std::vector<double> x(static_cast<std::size_t>(size));
  parallel_for(size, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) x[i] = 2.0 * uniform_of(seed, i) - 1.0;
  });
  return x;
}

} // namespace tcbound::bench
