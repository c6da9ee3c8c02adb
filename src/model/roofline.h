#pragma once

#include <limits>

// The roofline model of S. Williams, A. Waterman and D. Patterson, "Roofline: an insightful visual performance model for
// multicore architectures", Communications of the ACM 52(4), 2009: a kernel that does W operations on Q bytes runs at most
// at min(peak, I B), I = W / Q its intensity and B the bandwidth of the memory that holds its data. Below the ridge I B
// decides, so that the share of B that a kernel reaches is the share of its roof.
// A figure that is undefined (nothing moved, no time passed, nothing measured) is NaN.

namespace tcbound {

inline double quotient_or_nan(double numerator, double denominator) {
  return denominator > 0 ? numerator / denominator : std::numeric_limits<double>::quiet_NaN();
}

// I = W / Q, in FLOP per byte ("operational intensity" in the paper).
inline double arithmetic_intensity(double flops, double bytes) { return quotient_or_nan(flops, bytes); }

// Bytes per second.
inline double achieved_bandwidth(double bytes, double seconds) { return quotient_or_nan(bytes, seconds); }

// Where 1 is the roof. Above 1 a cache served part of the bytes.
inline double ceiling_share(double bandwidth, double ceiling) { return quotient_or_nan(bandwidth, ceiling); }

} // namespace tcbound
