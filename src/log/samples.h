#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tcbound {

// Durations of many calls in bounded memory: count, total and minimum over all of them, the median over every stride-th,
// where the stride doubles whenever the store is full. Systematic thinning keeps slow drifts and needs no random numbers.
class Samples {
public:
  static constexpr std::size_t capacity = 4096; // even, so that thinning keeps the phase of what follows

  void add(double seconds) {
    if (count_ % stride_ == 0) {
      if (kept_.size() == capacity) thin();
      kept_.push_back(seconds);
    }
    ++count_;
    total_ += seconds;
    minimum_ = std::min(minimum_, seconds);
  }

  std::int64_t count() const { return count_; }
  double       total() const { return total_; }
  double       minimum() const { return minimum_; } // infinite without samples
  std::size_t  kept() const { return kept_.size(); }

  // 0 without samples; the mean of the middle two for an even number.
  double median() const {
    if (kept_.empty()) return 0;
    std::vector<double> v = kept_;
    const auto          upper = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
    std::nth_element(v.begin(), upper, v.end());
    if (v.size() % 2) return *upper;
    return 0.5 * (*upper + *std::max_element(v.begin(), upper));
  }

private:
  void thin() {
    for (std::size_t i = 0; i < capacity / 2; ++i) kept_[i] = kept_[2 * i];
    kept_.resize(capacity / 2);
    stride_ *= 2;
  }

  std::vector<double> kept_;
  std::int64_t        count_ = 0;
  std::int64_t        stride_ = 1;
  double              total_ = 0;
  double              minimum_ = std::numeric_limits<double>::infinity();
};

} // namespace tcbound
