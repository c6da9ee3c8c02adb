#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tcbound::bench {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014): one multiply-xorshift chain a number,
// and the same numbers on every standard library.
inline std::uint64_t mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

class Random {
public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  // The numbers of one row or block: another stream for each.
  Random(std::uint64_t seed, std::int64_t stream) : state_(mix(mix(seed) ^ static_cast<std::uint64_t>(stream))) {}
  std::uint64_t next() {
    const std::uint64_t z = mix(state_);
    state_ += 0x9e3779b97f4a7c15U;
    return z;
  }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(n)); }
  double       uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; } // in [0, 1)

private:
  std::uint64_t state_;
};

// A number in [0, 1) that belongs to an item, or to an unordered pair of them: a coefficient that both rows agree on.
inline double uniform_of(std::uint64_t seed, std::int64_t item) {
  return static_cast<double>(mix(mix(seed) ^ static_cast<std::uint64_t>(item)) >> 11) * 0x1p-53;
}
inline double uniform_of_pair(std::uint64_t seed, std::int64_t i, std::int64_t j) {
  return uniform_of(seed + mix(static_cast<std::uint64_t>(std::min(i, j))), std::max(i, j));
}

// 0 ... size-1 in random order (Fisher and Yates).
std::vector<std::int32_t> random_permutation(std::int64_t size, std::uint64_t seed);

std::vector<double> random_vector(std::int64_t size, std::uint64_t seed); // in [-1, 1)

} // namespace tcbound::bench
