#include "plane_ranges.h"

#include <algorithm>

namespace tcbound::stencil {
namespace {

constexpr int worthwhile = 4; // planes for which a block begins another tile

int ceil_divide(int a, int b) { return (a + b - 1) / b; }

// What plane of a tile takes, in percent.
int cost_of_plane(const TilesToShare &tiles, int tile, int side_percent) {
  const int  x = tile % tiles.tiles_x, y = tile / tiles.tiles_x;
  const bool side = x == 0 || y == 0 || x == tiles.tiles_x - 1 || y == tiles.tiles_y - 1;
  return side ? side_percent : 100;
}

// Fills one block after the other up to a cost.
std::vector<PlaneRange> fill(const TilesToShare &tiles, long long most, int side_percent) {
  std::vector<PlaneRange> ranges;
  long long               left = 0;
  for (int tile = 0; tile < tiles.tiles_x * tiles.tiles_y; ++tile) {
    const long long cost = cost_of_plane(tiles, tile, side_percent);
    const auto      fit = [&] { return static_cast<int>(std::min<long long>(left / cost - tiles.beyond, tiles.planes)); };
    for (int z = 0; z < tiles.planes;) {
      const int begin = tile * tiles.planes + z;
      if (ranges.empty() || fit() < std::min(worthwhile, tiles.planes - z)) {
        ranges.push_back({begin, begin});
        left = most;
      }
      const int taken = std::min(std::max(1, fit()), tiles.planes - z);
      ranges.back().end = begin + taken;
      left -= cost * (taken + tiles.beyond);
      z += taken;
    }
  }
  return ranges;
}

} // namespace

std::vector<PlaneRange> equal_ranges(const TilesToShare &tiles, int blocks, int side_percent) {
  const long long dearest = std::max(100, side_percent);
  long long       too_little = 0, enough = dearest * tiles.tiles_x * tiles.tiles_y * (tiles.planes + tiles.beyond);
  while (too_little + 1 < enough) {
    const long long middle = (too_little + enough) / 2;
    (static_cast<int>(fill(tiles, middle, side_percent).size()) <= blocks ? enough : too_little) = middle;
  }
  return fill(tiles, enough, side_percent);
}

std::vector<PlaneRange> short_ranges(const TilesToShare &tiles, int blocks) {
  const int  most = 64, count = tiles.tiles_x * tiles.tiles_y, fewest = ceil_divide(tiles.planes, most);
  const auto turns = [&](int segments) {
    return ceil_divide(count * segments, blocks) * (ceil_divide(tiles.planes, segments) + tiles.beyond);
  };
  int best = fewest;
  for (int segments = fewest; segments <= tiles.planes && count * segments <= 4 * blocks; ++segments)
    if (turns(segments) < turns(best)) best = segments;
  std::vector<PlaneRange> ranges;
  const int               each = ceil_divide(tiles.planes, std::max(1, best));
  for (int z = 0; z < tiles.planes; z += each)
    for (int tile = 0; tile < count; ++tile)
      ranges.push_back({tile * tiles.planes + z, tile * tiles.planes + std::min(z + each, tiles.planes)});
  return ranges;
}

double redundancy(const TilesToShare &tiles, const std::vector<PlaneRange> &ranges) {
  const double needed = 1.0 * tiles.tiles_x * tiles.tiles_y * tiles.planes;
  double       computed = 0.0;
  for (const PlaneRange &range : ranges) {
    const int of_tiles = (range.end - 1) / tiles.planes - range.begin / tiles.planes + 1;
    computed += range.end - range.begin + 1.0 * of_tiles * tiles.beyond;
  }
  return needed > 0.0 ? computed / needed : 1.0;
}

} // namespace tcbound::stencil
