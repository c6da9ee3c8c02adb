#include "columns.h"

#include <cstdlib>

namespace tcbound::compact {
namespace {

// Nearest multiple of `unit`, in units.
std::int64_t nearest(std::int64_t offset, std::int64_t unit) {
  return (offset >= 0 ? offset + unit / 2 : offset - unit / 2) / unit;
}

} // namespace

Stencil match_stencil(const std::vector<std::int32_t> &offsets, std::int64_t line, std::int64_t stride) {
  Stencil       stencil;
  std::uint32_t found = 0;
  if (stride < 4 || (line != 0 && (line < 4 || stride < 4 * line)) || offsets.size() > longest_masked) return {};
  stencil.stride = stride;
  if (line != 0) stencil.centers = {static_cast<std::int32_t>(-line), 0, static_cast<std::int32_t>(line)};
  for (std::size_t k = 0; k < offsets.size(); ++k) {
    const std::int64_t plane = nearest(offsets[k], stride), in_plane = offsets[k] - plane * stride;
    const std::int64_t run = line != 0 ? nearest(in_plane, line) : 0, step = in_plane - run * line;
    if (std::abs(plane) > 1 || std::abs(run) > 1 || std::abs(step) > 1) return {};
    const int slot = slot_of(static_cast<int>(plane), static_cast<int>(line != 0 ? run + 1 : 0), static_cast<int>(step));
    found |= 1U << slot;
    stencil.slot[k] = static_cast<std::uint8_t>(slot);
  }
  for (int shape = 0; shape < shape_count; ++shape)
    if (found == shapes[shape].slots) stencil.shape = shape;
  return stencil.shape >= 0 ? stencil : Stencil();
}

} // namespace tcbound::compact
