#pragma once

// What the offsets of one row tell about the grid that a matrix comes from. Only speed depends on the guess.

#include <cstdint>
#include <vector>

namespace tcbound::compact {

struct Grid {
  std::int64_t line = 0;  // rows from a row to its neighbour in the second direction; 0: not seen
  std::int64_t plane = 0; // in the third; 0: not seen
  int          shift = 0; // slices start at rows 64 s - shift: 0 or 1, so that most runs of x start at multiples of 16 bytes
  int          depth = 1; // planes of the tile that a block multiplies
};

Grid guess_grid(const std::vector<std::int32_t> &offsets);

} // namespace tcbound::compact
