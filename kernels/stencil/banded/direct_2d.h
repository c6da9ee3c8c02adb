#pragma once

// Device code: one step in two dimensions without shared memory or barriers. A warp reads all rows that a few rows of results depend on
// into registers at once, then computes by the arithmetic of banded_2d.h; what lanes need of each other comes by shuffles. For .cu files
// only.

#include "../../cuda/error.h"
#include "../iterated/pass.h"
#include "banded_2d.h"

namespace tcbound::stencil {

struct DirectPlan {
  const double *in;
  double       *out;
  int           nx, ny, pitch, ring;
  int           blocks_x, blocks_y;
};

namespace banded {

// Two neighbouring cells of a row, 0 where there are none. x: the first one's column, even. pairs: rows begin at multiples of 16
// bytes.
template <bool pairs> __device__ __forceinline__ double2 load_two(const double *cells, int x, int nx, bool wanted) {
  double2 two = make_double2(0.0, 0.0);
  if (pairs && wanted && x >= 0 && x + 1 < nx) return __ldg(reinterpret_cast<const double2 *>(cells));
  if (wanted && x >= 0 && x < nx) two.x = __ldg(cells);
  if (wanted && x >= 0 && x + 1 < nx) two.y = __ldg(cells + 1);
  return two;
}

// Stores results of columns x and x + 1, or what the cells of the ring had. all_fixed: the whole row is of the ring.
template <bool pairs>
__device__ __forceinline__ void store_two(const DirectPlan &g, std::int64_t cell, int x, bool all_fixed, double2 two) {
  const auto fixed = [&](int column) { return all_fixed || column < g.ring || column >= g.nx - g.ring; };
  if (fixed(x) || fixed(x + 1)) { // read again: to keep them all for that would take registers
    const double2 own = load_two<pairs>(g.in + cell, x, g.nx, true);
    if (fixed(x)) two.x = own.x;
    if (fixed(x + 1)) two.y = own.y;
  }
  double    *to = g.out + cell;
  const bool first = unsigned(x) < unsigned(g.nx), second = unsigned(x + 1) < unsigned(g.nx);
  if (pairs && second) {
    *reinterpret_cast<double2 *>(to) = two;
  } else {
    if (first) to[0] = two.x;
    if (second) to[1] = two.y;
  }
}

} // namespace banded

// Results of a warp in a few rows of 128 columns.
template <class Engine_, int rows_, int warps_, int resident_> struct DirectRows {
  using Engine = Engine_;

  static constexpr int R = Engine::R, columns = 128, rows = rows_, warps = warps_, resident = resident_;

  // How far row q of those that are read is used to the sides.
  static constexpr int reach_of_row(int q) {
    const int dy = q < R ? R - q : (q < R + rows ? 0 : q - R - rows + 1); // to the nearest result
    return half_width(Engine::outline, R, dy);
  }

  template <bool pairs>
  __device__ static __forceinline__ void step(const DirectPlan &g, const Weights2d &w, int x_first, int y_first) {
    constexpr int all = rows + 2 * R;
    const int     lane = threadIdx.x % 32, x = x_first + 2 * lane, beside = lane < 16 ? 128 : -64; // of lanes 0, 1; 30, 31
    const double *from = g.in + static_cast<std::int64_t>(y_first - R) * g.pitch + x;              // may not exist
    double2       own[all][2], sides[all];
#pragma unroll
    for (int q = 0; q < all; ++q, from += g.pitch) {
      const bool exists = unsigned(y_first - R + q) < unsigned(g.ny);
#pragma unroll
      for (int h = 0; h < 2; ++h) own[q][h] = banded::load_two<pairs>(from + 64 * h, x + 64 * h, g.nx, exists);
      if (reach_of_row(q) > 0)
        sides[q] = banded::load_two<pairs>(from + beside, x + beside, g.nx, exists && (lane < 2 || lane >= 30));
    }
    typename Engine::State state(w, lane);
    std::int64_t           cell = static_cast<std::int64_t>(y_first) * g.pitch + x;
#pragma unroll
    for (int q = 0; q < all; ++q) {
      const double2 left[2] = {sides[q], own[q][0]}, right[2] = {own[q][1], sides[q]};
      double        done[4];
      banded::advance<Engine, -1>(state, done, typename Engine::Operands(own[q], left, right, reach_of_row(q), lane), w);
      const int y = y_first + q - 2 * R;
      if (q < 2 * R || y >= g.ny) continue;
      const bool fixed = y < g.ring || y >= g.ny - g.ring;
#pragma unroll
      for (int h = 0; h < 2; ++h)
        banded::store_two<pairs>(g, cell + 64 * h, x + 64 * h, fixed, make_double2(done[2 * h], done[2 * h + 1]));
      cell += g.pitch;
    }
  }
};

// Of a star a warp has two rows of 64 columns at a time: a line's 16 windows, as banded_2d.h cuts them, are 8 of each. Sums do not wait for
// rows to come, and a lane has half as many cells of a row: for wide stars, of which a warp reads many rows.
template <class Engine_, int rows_, int warps_, int resident_> struct DirectStarRows {
  using Engine = Engine_;

  static constexpr int R = Engine::R, columns = 64, rows = rows_, warps = warps_, resident = resident_;

  static_assert(Engine::outline == Outline::star && rows % 2 == 0);

  template <bool pairs>
  __device__ static __forceinline__ void step(const DirectPlan &g, const Weights2d &w, int x_first, int y_first) {
    constexpr int all = rows + 2 * R;
    const int     lane = threadIdx.x % 32, x = x_first + 2 * lane, beside = lane < 16 ? 64 : -64; // of lanes 0, 1; 30, 31
    const double *from = g.in + static_cast<std::int64_t>(y_first - R) * g.pitch + x;             // may not exist
    double2       cells[all], sides[rows];
#pragma unroll
    for (int q = 0; q < all; ++q, from += g.pitch) {
      const bool exists = unsigned(y_first - R + q) < unsigned(g.ny);
      cells[q] = banded::load_two<pairs>(from, x, g.nx, exists);
      if (q >= R && q < R + rows)
        sides[q - R] = banded::load_two<pairs>(from + beside, x + beside, g.nx, exists && (lane < 2 || lane >= 30));
    }
    typename Engine::State state(w, lane);
    std::int64_t           cell = static_cast<std::int64_t>(y_first) * g.pitch + x;
#pragma unroll
    for (int r = 0; r < rows; r += 2) {
      double     sums[4]; // of row r + j / 2
      const auto add = [&](int dy) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const double2 two = cells[r + j / 2 + R + dy];
          const double  value = j % 2 == 0 ? two.x : two.y, weight = w.at[dy + R][R];
          sums[j] = dy == -R ? weight * value : fma(weight, value, sums[j]);
        }
      };
#pragma unroll
      for (int dy = -R; dy < 0; ++dy) add(dy);
      const double2 own[2] = {cells[r + R], cells[r + R + 1]}, ends[2] = {sides[r], sides[r + 1]};
      Engine::template add<0>(sums, typename Engine::Operands(own, ends, ends, R, lane), state, w);
#pragma unroll
      for (int dy = 1; dy <= R; ++dy) add(dy);
#pragma unroll
      for (int h = 0; h < 2; ++h, cell += g.pitch) {
        const int y = y_first + r + h;
        if (y < g.ny)
          banded::store_two<pairs>(g, cell, x, y < g.ring || y >= g.ny - g.ring, make_double2(sums[2 * h], sums[2 * h + 1]));
      }
    }
  }
};

// D: one of the above. `warps` of a block, below each other; `resident` blocks of a multiprocessor, which bounds a lane's registers.
template <class D, bool pairs>
__global__ void __launch_bounds__(32 * D::warps, D::resident)
  step_directly(const DirectPlan g, const __grid_constant__ Weights2d w) {
  const int block = static_cast<int>(blockIdx.x), warp = static_cast<int>(threadIdx.x) / 32;
  const int x = block % g.blocks_x * D::columns, y = (block / g.blocks_x * D::warps + warp) * D::rows;
  if (unsigned(y) < unsigned(g.ny)) D::template step<pairs>(g, w, x, y);
}

template <class D> class DirectPass final : public Pass {
public:
  DirectPass(Executor &, const Problem &p) : needed_(p.shape.points()), weights_(points_of<Weights2d>(p.shape, p.weights)) {
    const auto blocks = [](int cells, int each) { return cells / each + (cells % each != 0); };
    plan_.nx = static_cast<int>(p.grid.extent[0]);
    plan_.ny = static_cast<int>(p.grid.extent[1]);
    plan_.pitch = static_cast<int>(p.grid.line());
    plan_.ring = p.grid.ring;
    plan_.blocks_x = blocks(plan_.nx, D::columns);
    plan_.blocks_y = blocks(plan_.ny, D::rows * D::warps);
  }

  int  depth() const override { return 1; }
  bool same_bits() const override { return D::Engine::twin; }

  // Blocks hang over the sides, and zeros in the bands are issued too.
  double redundancy() const override {
    const double cells = 1.0 * plan_.nx * plan_.ny;
    return cells > 0.0 ? 1.0 * blocks() * D::columns * D::rows * D::warps / cells * D::Engine::issued() / needed_ : 1.0;
  }

  void run(Executor &executor, const double *in, double *out) override {
    const auto at_pairs = [](const double *x) { return reinterpret_cast<std::uintptr_t>(x) % 16 == 0; };
    const bool pairs = plan_.pitch % 2 == 0 && at_pairs(in) && at_pairs(out);
    const auto kernel = pairs ? step_directly<D, true> : step_directly<D, false>;
    DirectPlan plan = plan_;
    plan.in = in;
    plan.out = out;
    if (blocks() == 0) return;
    kernel<<<blocks(), 32 * D::warps, 0, static_cast<cudaStream_t>(executor.stream())>>>(plan, weights_);
    TCBOUND_LAUNCHED();
  }

private:
  unsigned blocks() const { return static_cast<unsigned>(plan_.blocks_x) * static_cast<unsigned>(plan_.blocks_y); }

  const double    needed_;
  const Weights2d weights_;
  DirectPlan      plan_ = {};
};

} // namespace tcbound::stencil
