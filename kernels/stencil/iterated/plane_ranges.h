#pragma once

// How blocks that walk through the planes of tiles share them out. No CUDA here.

#include <vector>

namespace tcbound::stencil {

// Planes of tiles that follow each other: plane z of tile t is number t * planes + z.
struct PlaneRange {
  int begin, end;
};

struct TilesToShare {
  int tiles_x, tiles_y, planes;
  int beyond; // planes that a block computes in vain for each tile of which it has some
};

// A range for each of at most `blocks` blocks that all run at once, so that they end together. side_percent: what a plane of a tile
// at the sides of the grid takes, of what others take.
std::vector<PlaneRange> equal_ranges(const TilesToShare &tiles, int blocks, int side_percent);

// Ranges within one tile each, of at most some 64 planes: where there are many, several for each of the blocks that run at once, so
// that some which take longer do not leave the others idle; where there are few, as many as end together the soonest. Ranges that
// follow each other are of neighbouring tiles, which find in the L2 what both read.
std::vector<PlaneRange> short_ranges(const TilesToShare &tiles, int blocks);

// Planes computed over planes needed.
double redundancy(const TilesToShare &tiles, const std::vector<PlaneRange> &ranges);

} // namespace tcbound::stencil
