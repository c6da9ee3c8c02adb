#pragma once

// How kernels that march through planes cut their way into pieces. No CUDA here.

#include <algorithm>
#include <cstdint>

namespace tcbound {

/*
  How many planes a block marches through. Short marches in many waves keep neighbouring blocks close to each other, so that what
  they share is still in the L2 (H200: 8 planes in 3D, 16 lines in 2D; on grids that fill the device a few times over a third less
  time than one wave of long marches). Small grids are cut so that blocks fill whole waves, and few planes are read by two.
  resident: blocks that run at once; best: planes of a march on grids that fill the device. multiprocessors: 0, or for blocks of which
  two keep a multiprocessor busy: then the planes that the busiest multiprocessor reads decide.
*/
inline int march_length(std::int64_t tiles, int planes, int reach, int resident, int best, int multiprocessors = 0) {
  const auto divide_up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  if (tiles * divide_up(planes, best) >= 3 * static_cast<std::int64_t>(resident)) return best;
  int    least = planes;
  double least_cost = 1e300;
  for (int chunks = 1; chunks <= planes; ++chunks) {
    const int    length = static_cast<int>(divide_up(planes, chunks));
    const double waves = static_cast<double>(divide_up(tiles * chunks, resident));
    // Blocks that share a multiprocessor with fewer others are faster, but not by as much as there are fewer.
    const double full = static_cast<double>(tiles) * chunks / resident;
    const double busiest = multiprocessors > 0
                             ? std::max(2.0, static_cast<double>(divide_up(tiles * divide_up(planes, length), multiprocessors)))
                             : 0.0;
    const double cost = (multiprocessors > 0 ? busiest : 0.5 * waves + 0.5 * std::max(full, 0.5)) * (length + 2 * reach);
    if (cost < least_cost) {
      least_cost = cost;
      least = length;
    }
    if (length <= 4) break;
  }
  return least;
}

} // namespace tcbound
