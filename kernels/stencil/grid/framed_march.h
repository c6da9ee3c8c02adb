#pragma once

// Device code for framed grids (framed.h) by marches as in march.h. Tiles are stretches of bands laid end to end. For .cu files only.

#include "../../cuda/cell_copy.h"
#include "framed.h"

namespace tcbound::grid {
namespace {

// across, down: warps of a block along lines and below each other; lines: of which a lane has two columns; resident: blocks of a
// multiprocessor; stages: planes that there is room for; planes: of a march.
template <stencil::Kind kind_, int reach_, int across_, int down_, int lines_, int resident_, int stages_, int planes_>
struct FramedMarch {
  static constexpr stencil::Kind kind = kind_;

  static constexpr int reach = reach_, warps_across = across_, lines = lines_, blocks = resident_, stages = stages_,
                       planes = planes_;
  static constexpr int threads = 32 * across_ * down_, columns = 64 * across_, down = lines_ * down_; // of a tile
  static constexpr int lead = 4; // columns on each side: whole sectors of the L2
  static constexpr int pitch = columns + 2 * lead, height = down + 2 * reach, plane = pitch * height;
  static constexpr int pairs = plane / 2, copies = (pairs + threads - 1) / threads; // of a thread, per plane
  static constexpr int shared_bytes = stages * plane * 8;
  static constexpr int across = 2 * reach + 1, coefficients = across * across * across;

  static constexpr bool marches = true;

  static_assert(reach < lead);

  static constexpr int columns_of_band(int nx, int pitch, bool aligned) { // even
    return aligned ? aligned_band(nx, pitch) : nx + 2 - nx % 2;
  }

  static constexpr int at(int dx, int dy, int dz) { return dx + reach + across * (dy + reach + across * (dz + reach)); }
};

// Column `x` of the band that begins with line `y`; bands lie end to end.
template <class M> struct BandPlace {
  int x, y;

  __device__ __forceinline__ void move(const FramedPlan &plan, int columns) {
    const int length = static_cast<int>(plan.columns.by);
    x += columns;
    if (x < 0) x += length, y -= M::down;
    while (x >= length) x -= length, y += M::down;
  }
};

// What a thread brings of each plane: pairs of places in shared memory, of cells at a multiple of 16 bytes. If not aligned, lines may
// begin at an odd multiple of 8; then their cells are a place further on.
template <class M, bool aligned> struct FramedSources {
  int      from[M::copies];         // cell of a plane for the pair's first place if the line begins at an even one; -1: none
  int      corner[2], corner_at[2]; // as from, and its place, where a plane begins and ends: its pair may not be all in memory
  unsigned first;                   // 1: x begins at an odd multiple of 8

  __device__ __forceinline__ FramedSources(const DeviceGrid &grid, const double *x, const FramedPlan &plan, BandPlace<M> tile)
    : corner{-1, -1}, corner_at{}, first(aligned ? 0 : static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(x) / 8 % 2)) {
    const int last = (grid.n[1] - 1) * grid.pitch + grid.n[0] - 1;
#pragma unroll
    for (int c = 0; c < M::copies; ++c) {
      const int    e = 2 * (c * M::threads + static_cast<int>(threadIdx.x));
      BandPlace<M> place = tile;
      place.move(plan, e % M::pitch - M::lead);
      const int  y = place.y - M::reach + e / M::pitch;
      const bool exists = e < M::plane && y >= 0 && y < grid.n[1] && (!aligned || place.x < grid.n[0]);
      from[c] = exists ? y * grid.pitch + place.x : -1;
      if (aligned || (from[c] != 0 && from[c] < last)) continue;
      if (from[c] == 0) corner[0] = 0, corner_at[0] = e;
      if (from[c] > 0) corner[1] = from[c], corner_at[1] = e;
      from[c] = -1;
    }
  }

  // k: of the plane, which begins `cells` times k cells after x.
  __device__ __forceinline__ void request(const double *plane, int k, int cells, double *to) const {
    const unsigned odd_plane = first + static_cast<unsigned>(k) * static_cast<unsigned>(cells);
#pragma unroll
    for (int c = 0; c < M::copies; ++c) {
      const int e = c * M::threads + static_cast<int>(threadIdx.x), odd = aligned ? 0 : (odd_plane + from[c]) % 2;
      if (M::pairs % M::threads != 0 && c == M::copies - 1 && e >= M::pairs) continue;
      if (from[c] >= 0) copy_pair_or_zero(to + 2 * e, plane + from[c] - odd, true);
    }
    if (!aligned && (corner[0] >= 0 || corner[1] >= 0)) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int cell = corner[i / 2] - static_cast<int>((odd_plane + corner[i / 2]) % 2) + i % 2;
        if (corner[i / 2] >= 0 && cell >= 0 && cell < cells) copy_cell(to + corner_at[i / 2] + i % 2, plane + cell);
      }
    }
  }
};

template <class M> using FramedSums = double[M::across][M::lines][2];

// Adds a plane to the sums: sums[i] are of the plane `i - reach` after it. cells[j]: a lane's column j, in buffers of its even lines and
// of its odd ones; if aligned the columns are neighbours. Sums add points in the order of (dz, dy, dx), the first product alone.
template <class M, bool aligned>
__device__ __forceinline__ void add_framed_plane(const MarchCoefficients<M> &a, const double *const (&cells)[2][2],
                                                 FramedSums<M>              &sums) {
  constexpr int R = M::reach;
#pragma unroll
  for (int row = -R; row < M::lines + R; ++row) {
    double x[2][M::across]; // what no one needs is not loaded
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const double *own = cells[j][row & 1] + row * M::pitch;
      if (aligned && j == 0) {
        const double2 two = *reinterpret_cast<const double2 *>(own);
        x[0][R] = two.x;
        x[1][R] = two.y;
      } else if (!aligned) {
        x[j][R] = *own;
      }
#pragma unroll
      for (int dx = 1; dx <= R; ++dx) {
        if (!aligned || j == 0) x[j][R - dx] = own[-dx];
        if (!aligned || j == 1) x[j][R + dx] = own[dx];
      }
    }
    if constexpr (aligned) {
#pragma unroll
      for (int dx = 1; dx <= R; ++dx) {
        x[1][R - dx] = x[0][R - dx + 1];
        x[0][R + dx] = x[1][R + dx - 1];
      }
    }
#pragma unroll
    for (int r = 0; r < M::lines; ++r) {
      const int dy = row - r;
      if (dy < -R || dy > R) continue;
#pragma unroll
      for (int dz = -R; dz <= R; ++dz)
#pragma unroll
        for (int dx = -R; dx <= R; ++dx)
          if (stencil::has_point(M::kind, dz, dy, dx))
#pragma unroll
            for (int j = 0; j < 2; ++j) {
              double      &sum = sums[R - dz][r][j];
              const double coefficient = a.values[M::at(dx, dy, dz)];
              sum = stencil::is_first_point(M::kind, R, dz, dy, dx) ? coefficient * x[j][R + dx]
                                                                    : fma(coefficient, x[j][R + dx], sum);
            }
    }
  }
}

// A lane's two columns: neighbours if aligned, else 32 apart.
template <class M, bool aligned> struct TileColumns {
  int      lines[2], own[2], cell[2]; // lines to store; of the first one its place in a buffer, its cell of a plane
  unsigned odd[2];                    // 1: the first line begins an odd number of cells after its plane
  bool     framed[2];

  __device__ __forceinline__ TileColumns(const DeviceGrid &grid, const DeviceBox &core, const FramedPlan &plan,
                                         BandPlace<M> tile) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, line = warp / M::warps_across * M::lines;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int    column = warp % M::warps_across * 64 + (aligned ? 2 * lane + j : lane + 32 * j);
      BandPlace<M> place = tile;
      place.move(plan, column);
      const int y = place.y + line;
      lines[j] = place.x < grid.n[0] ? core.end[1] - y : 0;
      own[j] = (M::reach + line) * M::pitch + M::lead + column;
      cell[j] = y * grid.pitch + place.x;
      odd[j] = aligned ? 0 : static_cast<unsigned>(y * grid.pitch) % 2;
      framed[j] = place.x < core.begin[0] || place.x >= core.end[0];
    }
  }

  __device__ __forceinline__ void store(const DeviceProduct &p, std::int64_t plane, int pitch, bool in_frame,
                                        double (&sums)[M::lines][2]) const {
#pragma unroll
    for (int r = 0; r < M::lines; ++r) sums[r][0] *= p.alpha, sums[r][1] *= p.alpha;
    if (p.beta != 0.0) {
#pragma unroll
      for (int r = 0; r < M::lines; ++r)
#pragma unroll
        for (int j = 0; j < 2; ++j)
          if (r < lines[j] && framed[j] == in_frame) sums[r][j] = sums[r][j] + p.beta * p.y[plane + (cell[j] + r * pitch)];
    }
    if (aligned && !in_frame && !framed[0] && !framed[1]) {
      double *to = p.z + plane + cell[0];
#pragma unroll
      for (int r = 0; r < M::lines; ++r)
        if (r < lines[0]) *reinterpret_cast<double2 *>(to + r * pitch) = make_double2(sums[r][0], sums[r][1]);
      return;
    }
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int r = 0; r < M::lines; ++r)
        if (r < lines[j] && framed[j] == in_frame) p.z[plane + (cell[j] + r * pitch)] = sums[r][j];
  }
};

// aligned: lines of x and z begin at multiples of 16 bytes.
template <class M, bool aligned>
__device__ __forceinline__ void march_framed(const DeviceGrid &grid, const MarchCoefficients<M> &a, const DeviceProduct &p,
                                             const DeviceExceptions &exceptions, const FramedPlan &plan, double *shared) {
  constexpr int      R = M::reach, ahead = M::stages - 1;
  const DeviceBox   &core = exceptions.core;
  const int          pitch = grid.pitch;
  const std::int64_t plane = static_cast<std::int64_t>(pitch) * grid.n[1];
  const unsigned     chunk = plan.tiles.divide(blockIdx.x);
  if (chunk >= static_cast<unsigned>(plan.chunks))
    return compute_frame(grid, p, exceptions, static_cast<int>(blockIdx.x - plan.chunks * plan.tiles.by));
  const unsigned     column = (blockIdx.x - chunk * plan.tiles.by) * M::columns, band = plan.columns.divide(column);
  const BandPlace<M> tile = {static_cast<int>(column - band * plan.columns.by),
                             core.begin[1] + static_cast<int>(band) * M::down};
  const FramedSources<M, aligned> sources(grid, p.x, plan, tile);
  const TileColumns<M, aligned>   columns(grid, core, plan, tile);
  const int  k0 = core.begin[2] + static_cast<int>(chunk) * M::planes, k1 = min(core.end[2], k0 + M::planes), last = k1 - 1 + R;
  const auto fetch = [&](int k, int stage) { // always one group of copies, if only an empty one
    if (k <= last) sources.request(p.x + k * plane, k, static_cast<int>(plane), shared + stage * M::plane);
    commit_copies();
  };
#pragma unroll 1
  for (int s = 0; s < ahead; ++s) fetch(k0 - R + s, s);
  FramedSums<M> sums;
  int           stage = 0;
#pragma unroll 1
  for (int k = k0 - R; k <= last; ++k) {
    wait_copies<ahead - 1>();
    __syncthreads(); // this plane is there, and everyone has read the one whose place is taken next
    fetch(k + ahead, stage == 0 ? ahead : stage - 1);
    const double *cells[2][2];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const unsigned shift = aligned ? 0 : (sources.first + columns.odd[j] + static_cast<unsigned>(k * plane)) % 2;
      cells[j][0] = shared + stage * M::plane + columns.own[j] + shift;
      cells[j][1] = cells[j][0] - shift + (aligned ? 0 : (shift + static_cast<unsigned>(pitch)) % 2);
    }
    add_framed_plane<M, aligned>(a, cells, sums);
    if ((columns.framed[0] || columns.framed[1]) && k >= k0 && k < k1) { // these rows need x of this plane alone
      double scaled[M::lines][2];
#pragma unroll
      for (int r = 0; r < M::lines; ++r)
#pragma unroll
        for (int j = 0; j < 2; ++j) scaled[r][j] = exceptions.diagonal * cells[j][r & 1][r * M::pitch];
      columns.store(p, k * plane, pitch, true, scaled);
    }
    if (k - R >= k0) columns.store(p, (k - R) * plane, pitch, false, sums[0]);
#pragma unroll
    for (int r = 0; r < M::lines; ++r)
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int s = 0; s + 1 < M::across; ++s) sums[s][r][j] = sums[s + 1][r][j];
    stage = stage == ahead ? 0 : stage + 1;
  }
}

} // namespace
} // namespace tcbound::grid
