#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "error.h"
#include "problem.h"

namespace tcbound {

struct ArithmeticFacts {
  Arithmetic  arithmetic;
  const char *name;
  int         value_bytes; // that a value is stored in
  int         digits;      // bits of significand that values and x are rounded to
  MmaShape    mma;         // the instruction that tensor cores take; automatic: one of several
};

// Of the shapes that a lossy one has, the one that multiplies the fewest columns past the end of a row: all have 16 rows and 8 columns.
inline constexpr std::array<ArithmeticFacts, 3> arithmetics = {{
  {Arithmetic::fp64, "fp64", 8, 53, MmaShape::automatic},
  {Arithmetic::tf32, "tf32", 4, 11, MmaShape::m16n8k4},
  {Arithmetic::bf16, "bf16", 2, 8, MmaShape::m16n8k8},
}};

inline const ArithmeticFacts &facts_of(Arithmetic arithmetic) { return arithmetics[static_cast<std::size_t>(arithmetic)]; }

inline Arithmetic arithmetic_named(const std::string &name) {
  for (const ArithmeticFacts &facts : arithmetics)
    if (name == facts.name) return facts.arithmetic;
  throw Error(ErrorCode::invalid, "there is no arithmetic " + name);
}

// The products that lossy kernels as they choose to be built add up in FP32, at most: 24 steps of 4 (spmv/fragments/tuning.h).
constexpr std::int64_t summed_in_fp32 = 96;

// What adding up costs a lossy product of a row with so many entries, over sum |a_ij x_j| and to first order: FP32 sums, each of at most
// `chain` products, where every product may cost two roundings by cutting off. Numbers and sums below 2^-126 may besides count as zero.
inline double lossy_sum_error(std::int64_t entries, std::int64_t chain) {
  return static_cast<double>(2 * std::min(entries, chain) + 8) * 0x1p-23;
}

// How far the product may be from the exact one of what was not rounded: values and x are off by 2^-digits each.
inline double lossy_error(Arithmetic arithmetic, std::int64_t entries, std::int64_t chain) {
  const double u = std::ldexp(1.0, -facts_of(arithmetic).digits);
  return 2 * u + u * u + lossy_sum_error(entries, chain);
}

// Of kernels that know no other: empty, or why not, as a clause.
inline std::string check_fp64(const Problem &problem) {
  if (problem.arithmetic == Arithmetic::fp64) return {};
  return std::string("it multiplies in fp64 only, not in ") + facts_of(problem.arithmetic).name;
}

} // namespace tcbound
