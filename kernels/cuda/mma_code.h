#pragma once

#include <string>

#include "mma_shape.h"

namespace tcbound {

// As check_mma(), and why not where this build has no code with the instruction that the present device could run: code for compute
// capability 9.0 with its special features (90a) is for that alone, so that newer devices take what was compiled for older ones.
std::string check_mma_code(const Device &device, MmaShape shape);

} // namespace tcbound
