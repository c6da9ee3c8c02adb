#pragma once

#include <array>
#include <string>

#include "executor.h"

namespace tcbound {

// The FP64 matrix instructions (PTX: mma.sync). `automatic` leaves the choice to the kernel.
enum class MmaShape { automatic, m8n8k4, m16n8k4, m16n8k8, m16n8k16 };

// What is to be said of an FP64 matrix instruction beyond its name.
struct MmaShapeFacts {
  MmaShape    shape;
  const char *name;
  int         m, n, k;
  int         compute; // the least compute capability, times 10, that has it
};

inline constexpr std::array<MmaShapeFacts, 4> mma_shapes = {{
  {MmaShape::m8n8k4, "m8n8k4", 8, 8, 4, 80},
  {MmaShape::m16n8k4, "m16n8k4", 16, 8, 4, 90},
  {MmaShape::m16n8k8, "m16n8k8", 16, 8, 8, 90},
  {MmaShape::m16n8k16, "m16n8k16", 16, 8, 16, 90},
}};

inline const MmaShapeFacts &facts_of(MmaShape shape) {
  for (const MmaShapeFacts &facts : mma_shapes)
    if (facts.shape == shape) return facts;
  throw Error(ErrorCode::invalid, "an MMA shape that is left to choose has no facts");
}

// Empty when the device has the instruction, else why not, as a clause. `automatic` asks for any of them.
inline std::string check_mma(const Device &device, MmaShape shape) {
  if (device.space != MemorySpace::cuda) return "it runs on a CUDA device only";
  const MmaShapeFacts &facts = facts_of(shape == MmaShape::automatic ? MmaShape::m8n8k4 : shape);
  const int            compute = 10 * device.compute_major + device.compute_minor;
  if (compute >= facts.compute) return {};
  return std::string("the FP64 matrix instruction ") + facts.name + " needs compute capability " +
         std::to_string(facts.compute / 10) + "." + std::to_string(facts.compute % 10) + ", and " + device.name + " has " +
         std::to_string(device.compute_major) + "." + std::to_string(device.compute_minor);
}

} // namespace tcbound
