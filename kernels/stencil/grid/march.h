#pragma once

// Device code for constant coefficients: a block has a tile of cells across and marches along the last dimension. Each plane of x is
// brought into shared memory once, several planes ahead, and added to the sums of all planes that it is a neighbour of, which stay
// in registers. For .cu files only.

#include "../../cuda/cell_copy.h"
#include "device_view.h"

namespace tcbound::grid {
namespace {

// How a block works: a thread has `side` neighbouring cells in each of `per_thread` rows; there is room for `stages` planes.
template <int columns_, int side_, int per_thread_, int threads_, int blocks_, int stages_> struct MarchTile {
  static constexpr int columns = columns_, side = side_, per_thread = per_thread_, threads = threads_, blocks = blocks_,
                       stages = stages_;
};

// A stencil of three dimensions. box: all neighbours up to `reach` away, else those along the axes.
template <bool box_, int reach_, class T> struct March {
  static constexpr int  dimensions = 3, reach = reach_;
  static constexpr bool box = box_, direct = false;
  static constexpr int  columns = T::columns, side = T::side, per_thread = T::per_thread, threads = T::threads,
                       blocks = T::blocks, stages = T::stages;
  static constexpr int lanes = columns / side, rows = threads / lanes * per_thread;
  static constexpr int lead = 4; // columns on each side: whole sectors of the L2
  static constexpr int pitch = columns + 2 * lead, height = rows + 2 * reach, plane = pitch * height;
  static constexpr int pairs = plane / 2, copies = (pairs + threads - 1) / threads; // of a thread, per plane
  static constexpr int shared_bytes = stages * plane * 8;
  static constexpr int across = 2 * reach + 1, coefficients = across * across * across;

  static_assert(reach <= lead);
  static_assert(threads % lanes == 0 && columns % (2 * side) == 0 && 2 * copies <= 32 && side * per_thread <= 32);

  static constexpr bool has(int dx, int dy, int dz) { return box || (dx != 0) + (dy != 0) + (dz != 0) <= 1; }
  static constexpr int  at(int dx, int dy, int dz) { return dx + reach + across * (dy + reach + across * (dz + reach)); }
};

template <class M> struct MarchCoefficients {
  double values[M::coefficients]; // at M::at()
};

struct MarchPlan {
  int  tiles[2];
  int  chunks, planes;       // of the marching direction, and their length
  bool pairs_from, pairs_to; // lines of x, of z begin at multiples of 16 bytes
};

template <class M> using MarchSums = double[M::across][M::per_thread][M::side];

// Adds a plane to the sums: sums[i] are of the plane `i - reach` after it.
template <class M>
__device__ __forceinline__ void add_plane(const MarchCoefficients<M> &a, const double *plane, MarchSums<M> &sums) {
#pragma unroll
  for (int row = 0; row < M::per_thread + 2 * M::reach; ++row) {
    const double *own = plane + row * M::pitch;
    double        x[M::side + 2 * M::reach]; // what no one needs is not loaded
    if constexpr (M::side == 2) {
      const double2 two = *reinterpret_cast<const double2 *>(own);
      x[M::reach] = two.x;
      x[M::reach + 1] = two.y;
    } else
      x[M::reach] = *own;
#pragma unroll
    for (int c = 1; c <= M::reach; ++c) {
      x[M::reach - c] = own[-c];
      x[M::reach + M::side - 1 + c] = own[M::side - 1 + c];
    }
#pragma unroll
    for (int r = 0; r < M::per_thread; ++r) {
      const int dy = row - M::reach - r;
      if (dy < -M::reach || dy > M::reach) continue;
#pragma unroll
      for (int dz = -M::reach; dz <= M::reach; ++dz)
#pragma unroll
        for (int dx = -M::reach; dx <= M::reach; ++dx)
          if (M::has(dx, dy, dz))
#pragma unroll
            for (int c = 0; c < M::side; ++c)
              sums[M::reach - dz][r][c] = fma(a.values[M::at(dx, dy, dz)], x[M::reach + dx + c], sums[M::reach - dz][r][c]);
    }
  }
}

// What a thread brings of each plane: pairs of cells, where they are in a plane of x (0: anywhere, none of the two exists) and, two
// bits each, whether they exist.
template <class M> struct Sources {
  int      from[M::copies];
  unsigned exist = 0;

  __device__ __forceinline__ Sources(const DeviceGrid &grid, int i0, int j0) {
#pragma unroll
    for (int copy = 0; copy < M::copies; ++copy) {
      const int e = 2 * (copy * M::threads + static_cast<int>(threadIdx.x)), i = i0 - M::lead + e % M::pitch,
                j = j0 - M::reach + e / M::pitch;
      const bool     line = unsigned(j) < unsigned(grid.n[1]) && e < M::plane;
      const unsigned two =
        (line && unsigned(i) < unsigned(grid.n[0]) ? 1U : 0U) | (line && unsigned(i + 1) < unsigned(grid.n[0]) ? 2U : 0U);
      from[copy] = two ? j * grid.pitch + i : 0;
      exist |= two << (2 * copy);
    }
  }
};

// Requests a plane of x; what does not exist becomes 0. pairs: both cells of a pair exist or none, and begin at 16 bytes.
template <class M, bool pairs>
__device__ __forceinline__ void request(const DeviceGrid &grid, const double *x, const Sources<M> &sources, int k, double *to) {
  const bool     there = unsigned(k) < unsigned(grid.n[2]);
  const unsigned exist = there ? sources.exist : 0U;
  const double  *plane = x + (there ? grid.cell(0, 0, k) : 0);
#pragma unroll
  for (int copy = 0; copy < M::copies; ++copy) {
    const int e = copy * M::threads + static_cast<int>(threadIdx.x);
    if (M::pairs % M::threads != 0 && copy == M::copies - 1 && e >= M::pairs) continue;
    const double *from = plane + sources.from[copy];
    const bool    first = exist >> (2 * copy) & 1, second = exist >> (2 * copy + 1) & 1;
    if (pairs) {
      copy_pair_or_zero(to + 2 * e, from, first);
    } else {
      copy_cell_or_zero(to + 2 * e, first ? from : x, first);
      copy_cell_or_zero(to + 2 * e + 1, second ? from + 1 : x, second);
    }
  }
}

// Where a thread's results go.
template <class M> struct Results {
  int      i, j;     // its first cell
  unsigned mine = 0; // bit r * side + c: a cell of the box

  __device__ __forceinline__ Results(const DeviceBox &box, int i_, int j_) : i(i_), j(j_) {
#pragma unroll
    for (int r = 0; r < M::per_thread; ++r)
#pragma unroll
      for (int c = 0; c < M::side; ++c)
        mine |= (i + c >= box.begin[0] && i + c < box.end[0] && j + r < box.end[1] ? 1U : 0U) << (r * M::side + c);
  }

  __device__ __forceinline__ void store(const DeviceGrid &grid, const DeviceProduct &p, bool pairs, std::int64_t first,
                                        unsigned which, const double (&sums)[M::per_thread][M::side]) const {
#pragma unroll
    for (int r = 0; r < M::per_thread; ++r) {
      const std::int64_t row = first + r * grid.pitch;
      const unsigned     bits = which >> (r * M::side);
      if (M::side == 2 && pairs && (bits & 3) == 3) {
        *reinterpret_cast<double2 *>(p.z + row) =
          make_double2(p.result(row, sums[r][0]), p.result(row + 1, sums[r][M::side - 1]));
      } else {
#pragma unroll
        for (int c = 0; c < M::side; ++c)
          if (bits >> c & 1) p.z[row + c] = p.result(row + c, sums[r][c]);
      }
    }
  }

  template <class Where> __device__ __forceinline__ unsigned those(Where &&where) const {
    unsigned found = 0;
#pragma unroll
    for (int r = 0; r < M::per_thread; ++r)
#pragma unroll
      for (int c = 0; c < M::side; ++c)
        found |= (mine >> (r * M::side + c) & 1 && where(i + c, j + r) ? 1U : 0U) << (r * M::side + c);
    return found;
  }

  // The cells of plane k that others do not compute.
  __device__ __forceinline__ void store_plane(const DeviceGrid &grid, const DeviceProduct &p,
                                              const DeviceExceptions &exceptions, bool pairs, int k,
                                              const double (&sums)[M::per_thread][M::side]) const {
    const std::int64_t cell = grid.cell(i, j, k);
    unsigned           which = mine;
    if (exceptions.diagonal_outside)
      which = those([&](int x, int y) { return exceptions.core.has(x, y, k); });
    else if (exceptions.bits)
      which = those([&](int x, int y) { return !exceptions.skips(x, y, k, cell + (y - j) * grid.pitch + x - i); });
    store(grid, p, pairs, cell, which, sums);
  }

  // Those of the diagonal's rows outside of the core, if there are such.
  __device__ __forceinline__ void store_outside(const DeviceGrid &grid, const DeviceProduct &p,
                                                const DeviceExceptions &exceptions, int k,
                                                const double (&scaled)[M::per_thread][M::side]) const {
    if (!exceptions.diagonal_outside) return;
    store(grid, p, false, grid.cell(i, j, k), those([&](int x, int y) { return !exceptions.core.has(x, y, k); }), scaled);
  }
};

template <class M>
__device__ __forceinline__ void march(const DeviceGrid &grid, const MarchCoefficients<M> &a, const DeviceProduct &p,
                                      const DeviceExceptions &exceptions, const DeviceBox &box, const MarchPlan &plan,
                                      int block, double *shared) {
  const int        tile = block % (plan.tiles[0] * plan.tiles[1]), chunk = block / (plan.tiles[0] * plan.tiles[1]);
  const int        i0 = (box.begin[0] & ~1) + tile % plan.tiles[0] * M::columns;
  const int        j0 = box.begin[1] + tile / plan.tiles[0] * M::rows;
  const int        k0 = box.begin[2] + chunk * plan.planes, k1 = min(box.end[2], k0 + plan.planes), last = k1 - 1 + M::reach;
  const int        thread = static_cast<int>(threadIdx.x);
  const Results<M> results(box, i0 + thread % M::lanes * M::side, j0 + thread / M::lanes * M::per_thread);
  const Sources<M> sources(grid, i0, j0);
  MarchSums<M>     sums = {};
  const auto       fetch = [&](int k, int stage) { // always one group of copies, if only an empty one
    double *to = shared + stage * M::plane;
    if (k <= last) {
            if (plan.pairs_from)
        request<M, true>(grid, p.x, sources, k, to);
      else
        request<M, false>(grid, p.x, sources, k, to);
    }
          commit_copies();
  };
  // Of the cells in `shared` the first that this thread has.
  const int own = (M::reach + results.j - j0) * M::pitch + M::lead + results.i - i0;
  for (int s = 0; s < M::stages - 1; ++s) fetch(k0 - M::reach + s, s);
#pragma unroll 1
  for (int k = k0 - M::reach, stage = 0; k <= last; ++k) {
    wait_copies<M::stages - 2>();
    __syncthreads(); // this plane is there, and everyone has read the one whose place is taken next
    fetch(k + M::stages - 1, stage == 0 ? M::stages - 1 : stage - 1);
    const double *plane = shared + stage * M::plane + own;
    add_plane<M>(a, plane - M::reach * M::pitch, sums);
    if (k - M::reach >= k0) results.store_plane(grid, p, exceptions, plan.pairs_to, k - M::reach, sums[0]);
    if (exceptions.diagonal_outside && k >= k0 && k < k1) { // these rows need x of this plane alone
      double scaled[M::per_thread][M::side];
#pragma unroll
      for (int r = 0; r < M::per_thread; ++r)
#pragma unroll
        for (int c = 0; c < M::side; ++c) scaled[r][c] = exceptions.diagonal * plane[r * M::pitch + c];
      results.store_outside(grid, p, exceptions, k, scaled);
    }
#pragma unroll
    for (int r = 0; r < M::per_thread; ++r)
#pragma unroll
      for (int c = 0; c < M::side; ++c) {
#pragma unroll
        for (int s = 0; s + 1 < M::across; ++s) sums[s][r][c] = sums[s + 1][r][c];
        sums[M::across - 1][r][c] = 0.0;
      }
    stage = stage + 1 == M::stages ? 0 : stage + 1;
  }
}

} // namespace
} // namespace tcbound::grid
