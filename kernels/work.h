#pragma once

#include <cstdint>

namespace tcbound {

// What one application of a kernel costs.
struct Work {
  std::int64_t useful_flops = 0;     // W: floating-point operations that the result needs
  std::int64_t issued_flops = 0;     // operations that the kernel really issues; issued/useful is rho
  std::int64_t bytes = 0;            // Q: bytes that the kernel's stored arrays and vectors occupy, each counted once
  std::int64_t compulsory_bytes = 0; // the least that any kernel on this format must move
  std::int64_t padded_flops = 0;     // useful ones and those on zeros that only fill tiles; 0: there are no such zeros

  bool operator==(const Work &o) const {
    return useful_flops == o.useful_flops && issued_flops == o.issued_flops && bytes == o.bytes &&
           compulsory_bytes == o.compulsory_bytes && padded_flops == o.padded_flops;
  }
};

// Of z = A x, or of z = A x + y, with a matrix that takes `bytes` to read: each element of the vectors is counted once.
inline Work work_of_matrix(std::int64_t nonzeros, std::int64_t bytes, std::int64_t rows, std::int64_t columns,
                           bool accumulate) {
  Work work;
  work.useful_flops = 2 * nonzeros;
  work.issued_flops = work.useful_flops;
  work.bytes = bytes + 8 * columns + (accumulate ? 16 : 8) * rows;
  work.compulsory_bytes = work.bytes;
  return work;
}

inline Work operator*(std::int64_t times, const Work &work) {
  return {times * work.useful_flops, times * work.issued_flops, times * work.bytes, times * work.compulsory_bytes,
          times * work.padded_flops};
}

} // namespace tcbound
