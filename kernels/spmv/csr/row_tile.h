#pragma once

// Entries of a warp's rows, as many of each row as a tile is wide: read row by row, as they lie in memory, and then there for every
// lane to take those of its own row. For .cu files only.

#include <cstdint>

namespace tcbound::csr {

class RowTile {
public:
  static constexpr int width = 8;

  // Replaces what the tile holds by entries 0 to `count` - 1, but at most `width`, of each lane's row: entry(k) for entry k of a
  // row is what `read` returns when called with what that row's lane gave as `row` and k.
  template <class Row, class F> __device__ void load(const Row &row, int count, F &&read) {
    constexpr unsigned all = 0xffffffffU;
    constexpr int      rows = 32 / width; // at a time
    const int          lane = static_cast<int>(threadIdx.x % 32), k = lane % width;
    __syncwarp(); // all lanes have taken what was there before
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const int  source = i * rows + lane / width, entries = __shfl_sync(all, count, source);
      const auto from = __shfl_sync(all, row, source);
      at_[source][k] = k < entries ? read(from, k) : 0.0;
    }
    __syncwarp();
  }

  // Of the lane's row.
  __device__ double operator()(int k) const { return at_[threadIdx.x % 32][k]; }

private:
  double at_[32][width + 1];
};

} // namespace tcbound::csr
