#pragma once

// SCALE of an array, z = q x: what its kernels share, and what they cost.

#include "vector.h"

namespace tcbound::scale {

// Elements that a warp takes, on CUDA cores and on tensor cores alike: four a lane, in two 16-byte pieces.
constexpr int warp_elements = 128;

// issued / useful FLOPs of z = q x as MMA. Every output is a sum over all of the shape's k, of which one term is not zero, and each
// useful operation is one multiplication: k products and k additions where one instruction gives all of D (k = 8, and k = 16, half of
// which is idle); with k = 4 two instructions are added up, since D is 8 wide.
constexpr int rho_of(MmaShape shape) { return shape == MmaShape::m16n8k16 ? 32 : 16; }

Work count_work(std::int64_t length);                 // on CUDA cores or a host
Work count_work(std::int64_t length, MmaShape shape); // on tensor cores; the last tile of a warp is filled up

// Throws unless the call is a SCALE.
void check_call(const Kernel &kernel, const Elementwise &call);

} // namespace tcbound::scale
