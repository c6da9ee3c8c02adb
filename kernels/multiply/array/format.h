#pragma once

// Elementwise products of two arrays, w = x y.

#include "vector.h"

namespace tcbound {

inline Work multiply_work(const Elementwise &call) {
  Work work;
  work.useful_flops = work.issued_flops = call.length;
  work.bytes = work.compulsory_bytes = 24 * call.length;
  return work;
}

// Throws unless the call is one.
inline void check_multiply(const Kernel &kernel, const Elementwise &call) {
  if (call.terms != 2 || call.scale != 0.0)
    throw Error(ErrorCode::invalid, kernel.name() + " computes w = x y: two factors, and w is not read");
}

} // namespace tcbound
