#pragma once

// Linear combinations of arrays, w = scale w + sum c_k v_k, in one pass whatever the number of terms.

#include "vector.h"

namespace tcbound::combine {

inline Work count_work(const Elementwise &call) {
  Work      work;
  const int products = call.terms + (call.scale != 0.0 && call.scale != 1.0 ? 1 : 0);
  const int sums = call.terms - 1 + (call.scale != 0.0 ? 1 : 0);
  const int arrays = call.terms + (call.scale != 0.0 ? 2 : 1);
  work.useful_flops = work.issued_flops = call.length * (products + sums);
  work.bytes = work.compulsory_bytes = 8 * call.length * arrays;
  return work;
}

// Throws unless the call is one.
inline void check_call(const Kernel &kernel, const Elementwise &call) {
  if (call.terms < 1) throw Error(ErrorCode::invalid, kernel.name() + ": there are no terms to add up");
}

} // namespace tcbound::combine
