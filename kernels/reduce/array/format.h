#pragma once

// Sums and maxima over arrays.

#include "vector.h"

namespace tcbound::reduce {

inline Work count_work(const Reduction &call) {
  Work work;
  int  flops = 2, arrays = 1; // of an element; taking an absolute value or a maximum counts as none and one
  switch (call.sum) {
  case Sum::dots:
    flops = 2 * call.terms;
    arrays = call.terms + (call.terms == 1 && call.y[0] == call.x ? 0 : 1);
    break;
  case Sum::magnitudes:
  case Sum::maximum:
    flops = 1;
    break;
  case Sum::both:
    flops = 3;
    break;
  case Sum::dot_and_squares:
    flops = 4;
    arrays = 2;
    break;
  case Sum::squares:
    break;
  }
  work.useful_flops = work.issued_flops = flops * call.length;
  work.bytes = work.compulsory_bytes = 8 * call.length * arrays;
  return work;
}

// Throws unless the call is one.
inline void check_call(const Kernel &kernel, const Reduction &call) {
  if (call.results() < 1) throw Error(ErrorCode::invalid, kernel.name() + ": there are no vectors to multiply with");
}

} // namespace tcbound::reduce
