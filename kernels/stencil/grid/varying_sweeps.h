#pragma once

// Device code for two damped Jacobi sweeps in a pass, of 7 points in 3D all of whose coefficients vary. A block marches through the planes of
// a tile, a thread has a cell of each, a warp a line. A plane of x, and what the first sweep makes of it, goes to the neighbours through shared
// memory; the coefficients that it has read stay in registers until, a plane later, the second sweep needs them, and those of the next plane
// are on their way. Of symmetric coefficients a thread reads the stored half, and has the other one from the threads and the plane before.
// The threads at a tile's sides compute first sweeps only, which their neighbouring blocks compute too. For .cu files only.

#include "varying.h"

namespace tcbound::grid {
namespace {

template <int lines_, int blocks_> struct SweepTile {
  static constexpr int columns = 32, lines = lines_, threads = columns * lines, blocks = blocks_;
};

// Where the points but the diagonal have their coefficients: before and after the cell in x, in y, in z.
struct SweepSlots {
  std::int64_t  distances[6];
  const double *values;
  std::int64_t  line, plane;
};

// A cell's row.
struct SweepRow {
  double coefficients[6]; // 0: there is no such neighbour
  double b, inverse;

  __device__ __forceinline__ double result(double factor, double keeps, double own, const double (&others)[6]) const {
    double sum = 0.0;
#pragma unroll
    for (int s = 0; s < 6; ++s) sum = fma(coefficients[s], others[s], sum);
    return fma(factor * inverse, b - sum, keeps * own);
  }
};

// What a thread reads for a plane: 0 where nothing exists.
struct SweepInput {
  double coefficients[6];    // halved: those after the cell
  double b, inverse, x;      // x: of the next plane
  double beside, beyond;     // at the tile's sides, x of the neighbours in the line and in the plane;
  double before_x, before_y; // halved: the coefficients for the cell here of those before the tile
};

// A plane of the tile and what is around it.
template <class T> struct SweepPlane {
  double cells[T::lines + 2][T::columns + 2];

  __device__ __forceinline__ double *at(int lane, int line) { return &cells[line + 1][lane + 1]; }
  static constexpr int               pitch = T::columns + 2;
};

// Of the present plane and the one before, which others may still be reading.
template <class T> struct SweepShared { SweepPlane<T> x[2], before_x[2], before_y[2], results[2]; };

// A thread's cells, one in each plane. whole: all cells of the tile and around it exist.
template <class T, bool halved, bool from_zero, bool whole> struct SweepColumn {
  const DeviceGrid &grid;
  const SweepSlots &a;
  const TwoSweeps  &p;
  std::int64_t      plane, cell, place;             // of the next plane to be read
  int               step, down;                     // at the tile's sides, from the cell to those beside and beyond
  bool              here, left, right, top, bottom; // of the cell; whether it is at a side, with a cell that exists there

  __device__ SweepColumn(const DeviceGrid &g, const SweepSlots &slots, const TwoSweeps &sweeps, int i, int j, int k, int lane,
                         int line)
    : grid(g), a(slots), p(sweeps), plane(static_cast<std::int64_t>(g.pitch) * g.n[1]) {
    here = whole || g.owned(i, j, 0);
    left = here && lane == 0 && i > 0;
    right = here && lane == T::columns - 1 && i < g.n[0] - 1;
    top = here && line == 0 && j > 0;
    bottom = here && line == T::lines - 1 && j < g.n[1] - 1;
    step = lane == 0 ? -1 : 1;
    down = line == 0 ? -g.pitch : g.pitch;
    cell = g.cell(i, j, k);
    place = k * slots.plane + j * slots.line + i;
  }

  // In the plane before the next one.
  __device__ __forceinline__ double x_before() const { return from_zero || !here ? 0.0 : __ldg(p.x + (cell - plane)); }
  __device__ __forceinline__ double upwards() const {
    return halved && here ? __ldg(a.values + (place - a.plane + a.distances[5])) : 0.0;
  }
  __device__ __forceinline__ double x_now() const { return from_zero || !here ? 0.0 : __ldg(p.x + cell); }

  // The next plane, which must exist; more: there is one after it.
  __device__ __forceinline__ SweepInput read(bool more) {
    SweepInput in;
    if (!whole) in = {};
    in.x = 0.0;
    if (here) {
      const double *values = a.values + place;
#pragma unroll
      for (int s = 0; s < 6; ++s)
        if (!halved || s % 2 == 1) in.coefficients[s] = __ldg(values + a.distances[s]);
      in.b = __ldg(p.b + cell);
      in.inverse = __ldg(p.inverse + cell);
      if (!from_zero && more) in.x = __ldg(p.x + (cell + plane));
      if (halved && left) in.before_x = __ldg(values + (a.distances[1] - 1));
      if (halved && top) in.before_y = __ldg(values + (a.distances[3] - a.line));
      if (!from_zero && (left || right)) in.beside = __ldg(p.x + (cell + step));
      if (!from_zero && (top || bottom)) in.beyond = __ldg(p.x + (cell + down));
    }
    cell += plane;
    place += a.plane;
    return in;
  }
};

__device__ __forceinline__ void get_others(const double *at, int pitch, double below, double above, double (&others)[6]) {
  others[0] = at[-1];
  others[1] = at[1];
  others[2] = at[-pitch];
  others[3] = at[pitch];
  others[4] = below;
  others[5] = above;
}

template <class T, bool halved, bool from_zero, bool whole>
__device__ __forceinline__ void sweep_twice(const DeviceGrid &grid, const SweepSlots &a, const TwoSweeps &p,
                                            const DeviceExceptions &exceptions, int begin, int end, SweepShared<T> &shared) {
  constexpr int pitch = SweepPlane<T>::pitch;
  const int     lane = static_cast<int>(threadIdx.x % 32), line = static_cast<int>(threadIdx.x / 32);
  const int     i = static_cast<int>(blockIdx.x) * (T::columns - 2) - 1 + lane;
  const int     j = static_cast<int>(blockIdx.y) * (T::lines - 2) - 1 + line;
  const int     first = max(begin - 1, 0), last = min(end, grid.n[2] - 1);
  const bool    side = lane == 0 || lane == T::columns - 1, edge = line == 0 || line == T::lines - 1;

  SweepColumn<T, halved, from_zero, whole> column(grid, a, p, i, j, first, lane, line);
  const bool                               mine = column.here && !side && !edge;
  double     x_before = first > 0 ? column.x_before() : 0.0, x = column.x_now(), before = 0.0, own = 0.0;
  double     upwards = first > 0 ? column.upwards() : 0.0;
  SweepRow   saved{};
  SweepInput in = column.read(first < grid.n[2] - 1);
  double    *to = p.z + (column.cell - 2 * column.plane);        // of the plane before
  const auto finish = [&](const double *results, double above) { // the second sweep there
    double others[6];
    get_others(results, pitch, before, above, others);
    const double result = saved.result(p.factors[1], p.keeps[1], own, others);
    if (mine) __stcs(to, result);
  };
  for (int k = first; k <= last; ++k) {
    const int now = (k - first) & 1;
    double   *xs = shared.x[now].at(lane, line), *results = shared.results[now].at(lane, line);
    double   *before_x = shared.before_x[now].at(lane, line), *before_y = shared.before_y[now].at(lane, line);
    if (!from_zero) {
      *xs = x;
      if (side) xs[column.step] = in.beside;
      if (edge) xs[line == 0 ? -pitch : pitch] = in.beyond;
    }
    if (halved) {
      before_x[1] = in.coefficients[1];
      before_y[pitch] = in.coefficients[3];
      if (lane == 0) before_x[0] = in.before_x;
      if (line == 0) before_y[0] = in.before_y;
    }
    __syncthreads();
    SweepInput next;
    if (k < last) next = column.read(k + 1 < grid.n[2] - 1);

    SweepRow row;
#pragma unroll
    for (int s = 0; s < 6; ++s) row.coefficients[s] = in.coefficients[s];
    if (halved) {
      row.coefficients[0] = *before_x;
      row.coefficients[2] = *before_y;
      row.coefficients[4] = upwards;
      upwards = in.coefficients[5];
    }
    if (exceptions.bits && column.here && exceptions.skips(i, j, k, grid.cell(i, j, k)))
#pragma unroll
      for (double &c : row.coefficients) c = 0.0;
    row.b = in.b;
    row.inverse = in.inverse;
    double result = p.factors[0] * row.inverse * row.b;
    if (!from_zero) {
      double others[6];
      get_others(xs, pitch, x_before, in.x, others);
      result = row.result(p.factors[0], p.keeps[0], x, others);
    }
    *results = result;
    if (k > begin) finish(shared.results[now ^ 1].at(lane, line), result);
    to += column.plane;
    x_before = x;
    x = in.x;
    before = own;
    own = result;
    saved = row;
    in = next;
  }
  if (last < end) { // the last plane of the grid
    __syncthreads();
    finish(shared.results[(last - first) & 1].at(lane, line), 0.0);
  }
}

// exceptions: rows of the diagonal. planes: that a block marches through.
template <class T, bool halved, bool from_zero>
__global__ void __launch_bounds__(T::threads, T::blocks)
  two_sweeps_kernel(const __grid_constant__ DeviceGrid grid, const __grid_constant__ SweepSlots a,
                    const __grid_constant__ TwoSweeps p, const __grid_constant__ DeviceExceptions exceptions, int planes) {
  __shared__ SweepShared<T> shared;
  const int                 begin = static_cast<int>(blockIdx.z) * planes, end = min(begin + planes, grid.n[2]);
  const int  i = static_cast<int>(blockIdx.x) * (T::columns - 2) - 1, j = static_cast<int>(blockIdx.y) * (T::lines - 2) - 1;
  const bool whole = i > 0 && i + T::columns < grid.n[0] && j > 0 && j + T::lines < grid.n[1];
  if (whole)
    sweep_twice<T, halved, from_zero, true>(grid, a, p, exceptions, begin, end, shared);
  else
    sweep_twice<T, halved, from_zero, false>(grid, a, p, exceptions, begin, end, shared);
}

} // namespace
} // namespace tcbound::grid
