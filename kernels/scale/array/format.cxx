#include "format.h"

namespace tcbound::scale {

Work count_work(std::int64_t length) {
  Work work;
  work.useful_flops = work.issued_flops = length;
  work.bytes = work.compulsory_bytes = 16 * length; // x read, z written
  return work;
}

Work count_work(std::int64_t length, MmaShape shape) {
  Work work = count_work(length);
  work.padded_flops = (length + warp_elements - 1) / warp_elements * warp_elements;
  work.issued_flops = work.padded_flops * rho_of(shape);
  return work;
}

void check_call(const Kernel &kernel, const Elementwise &call) {
  if (call.terms != 1 || call.scale != 0.0)
    throw Error(ErrorCode::invalid, kernel.name() + " computes z = q x: one term, and z is not read");
}

} // namespace tcbound::scale
