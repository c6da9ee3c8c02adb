#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tcbound {

// Which calls on a device are timed: the first ones all, then one in each group of so many, at a place that looks random but is
// the same in every run, so that what an application does in turns is met in fair shares. A timed call costs two events, which
// keep the device from starting the next kernel early: 8 us on an H200, where a small product takes 6.
class CallSample {
public:
  static constexpr std::int64_t all = 32, one_in = 128;

  static bool takes(std::int64_t call) {
    if (call < all) return true;
    const std::int64_t group = (call - all) / one_in, place = (call - all) % one_in;
    return place == (group == 0 ? 0 : static_cast<std::int64_t>(mix(static_cast<std::uint64_t>(group)) % one_in));
  }

private:
  // SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
  static std::uint64_t mix(std::uint64_t z) {
    z *= 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
};

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
    if (count_ > CallSample::all) late_ += seconds;
    minimum_ = std::min(minimum_, seconds);
  }

  std::int64_t count() const { return count_; }
  double       total() const { return total_; }

  // Of so many calls in all, of which these were timed: the others count as the mean of those timed after the first, which
  // often are slower (code is loaded, a library settles).
  double total(std::int64_t calls) const {
    const std::int64_t late = count_ - CallSample::all;
    return total_ + (late > 0 && calls > count_ ? late_ / static_cast<double>(late) * static_cast<double>(calls - count_) : 0);
  }

  double      minimum() const { return minimum_; } // infinite without samples
  std::size_t kept() const { return kept_.size(); }

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
  double              late_ = 0; // of calls after the first CallSample::all
  double              minimum_ = std::numeric_limits<double>::infinity();
};

} // namespace tcbound
