#include "marcher.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "../march_length.h"
#include "cuda/error.h"
#include "direct.h"
#include "framed_march.h"

namespace tcbound::grid {
namespace {

// pairs: of direct kernels.
template <class M, bool pairs>
__global__ void __launch_bounds__(M::threads, M::blocks)
  march_kernel(const __grid_constant__ DeviceGrid grid, const __grid_constant__ MarchCoefficients<M> a,
               const __grid_constant__ DeviceProduct p, const __grid_constant__ DeviceExceptions exceptions,
               const __grid_constant__ DeviceBox area, const __grid_constant__ MarchPlan plan) {
  extern __shared__ double2 shared[];
  const int                 block = static_cast<int>(blockIdx.x);
  if constexpr (M::direct)
    compute_directly<M, pairs>(grid, a, p, exceptions, area, plan, block);
  else
    march<M>(grid, a, p, exceptions, area, plan, block, reinterpret_cast<double *>(shared));
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

bool aligned(const double *p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

template <class M> class MarcherOf final : public Marcher {
public:
  MarcherOf(Executor &executor, const std::vector<MarchPoint> &points, int planes)
    : planes_(planes), multiprocessors_(executor.device().multiprocessors) {
    int       blocks = 0;
    const int carveout = M::direct ? cudaSharedmemCarveoutMaxL1 : cudaSharedmemCarveoutMaxShared;
    for (const auto kernel : {march_kernel<M, false>, march_kernel<M, M::direct>}) {
      TCBOUND_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, M::shared_bytes));
      TCBOUND_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, carveout));
      TCBOUND_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, M::threads, M::shared_bytes));
    }
    resident_ = std::max(1, blocks * multiprocessors_);
    for (const MarchPoint &point : points) {
      const int *o = point.offset;
      coefficients_.values[M::dimensions == 3 ? M::at(o[0], o[1], o[2]) : M::at(o[0], 0, o[1])] = point.value;
    }
  }

  void launch(void *stream, DeviceGrid grid, const DeviceProduct &p, DeviceExceptions exceptions, DeviceBox area) override {
    if (M::dimensions == 2) { // what march.h calls the third dimension is a 2D grid's second
      for (int *triple : {grid.n, grid.low, grid.high, area.begin, area.end, exceptions.core.begin, exceptions.core.end})
        std::swap(triple[1], triple[2]);
    }
    MarchPlan  plan = plan_of(area);
    const bool even = grid.n[0] % 2 == 0 && grid.pitch % 2 == 0;
    plan.pairs_from = even && aligned(p.x);
    plan.pairs_to = even && aligned(p.z);
    const auto kernel = plan.pairs_from && plan.pairs_to ? march_kernel<M, M::direct> : march_kernel<M, false>;
    kernel<<<static_cast<unsigned>(static_cast<std::int64_t>(plan.tiles[0]) * plan.tiles[1] * plan.chunks), M::threads,
             M::shared_bytes, static_cast<cudaStream_t>(stream)>>>(grid, coefficients_, p, exceptions, area, plan);
    TCBOUND_LAUNCHED();
  }

  double redundancy(const std::int64_t (&n)[3]) const override {
    DeviceBox area{};
    for (int d = 0; d < 3; ++d) area.end[d] = static_cast<int>(n[d]);
    if (M::dimensions == 2) std::swap(area.end[1], area.end[2]);
    const MarchPlan plan = plan_of(area);
    const double    columns = M::direct ? 2.0 * M::threads / M::rows : M::columns, beyond = M::direct ? 0.0 : 2.0 * M::reach;
    return plan.tiles[0] * columns / area.end[0] * plan.tiles[1] * M::rows / area.end[1] * plan.chunks *
           (plan.planes + beyond) / area.end[2];
  }

private:
  MarchPlan plan_of(const DeviceBox &area) const {
    MarchPlan plan{};
    plan.tiles[0] = static_cast<int>(divide_up(area.end[0] - (area.begin[0] & ~1), M::columns));
    plan.tiles[1] = static_cast<int>(divide_up(area.end[1] - area.begin[1], M::rows));
    const int          planes = area.end[2] - area.begin[2];
    const std::int64_t tiles = static_cast<std::int64_t>(plan.tiles[0]) * plan.tiles[1];
    if constexpr (M::direct)
      plan.planes = M::block_planes;
    else
      plan.planes = planes_ > 0 ? planes_ : march_length(tiles, planes, M::reach, resident_, 8, multiprocessors_);
    plan.chunks = static_cast<int>(divide_up(planes, plan.planes));
    return plan;
  }

  MarchCoefficients<M> coefficients_{};
  int                  planes_, multiprocessors_, resident_ = 1;
};

template <class M, bool pairs>
__global__ void __launch_bounds__(M::threads, M::blocks)
  framed_kernel(const __grid_constant__ DeviceGrid grid, const __grid_constant__ MarchCoefficients<M> a,
                const __grid_constant__ DeviceProduct p, const __grid_constant__ DeviceExceptions exceptions,
                const __grid_constant__ FramedPlan plan) {
  extern __shared__ double2 shared[];
  if constexpr (M::marches)
    march_framed<M, pairs>(grid, a, p, exceptions, plan, reinterpret_cast<double *>(shared));
  else
    compute_framed<M>(grid, a, p, exceptions, plan);
}

// Products of whole grids whose frame has rows of the diagonal; all else is left to another kernel.
template <class M> class FramedMarcher final : public Marcher {
public:
  FramedMarcher(const std::vector<MarchPoint> &points, std::unique_ptr<Marcher> unframed) : unframed_(std::move(unframed)) {
    for (const auto kernel : {framed_kernel<M, !M::marches>, framed_kernel<M, true>}) {
      TCBOUND_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, M::shared_bytes));
      TCBOUND_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                        M::marches ? cudaSharedmemCarveoutMaxShared : cudaSharedmemCarveoutMaxL1));
    }
    for (const MarchPoint &point : points)
      coefficients_.values[M::at(point.offset[0], point.offset[1], point.offset[2])] = point.value;
  }

  void launch(void *stream, DeviceGrid grid, const DeviceProduct &p, DeviceExceptions exceptions, DeviceBox area) override {
    const DeviceBox &core = exceptions.core;
    bool             framed = exceptions.diagonal_outside && core.end[2] - core.begin[2] >= 4;
    for (int d = 0; d < 3; ++d)
      framed = framed && area.begin[d] == 0 && area.end[d] == grid.n[d] && core.begin[d] >= M::reach &&
               core.end[d] <= grid.n[d] - M::reach && core.begin[d] < core.end[d];
    const bool pairs = grid.pitch % 2 == 0 && aligned(p.x) && aligned(p.z); // a last cell's partner may be nobody's
    if (!framed || (!pairs && !M::marches))
      unframed_->launch(stream, grid, p, exceptions, area);
    else if (pairs)
      launch_framed<true>(stream, grid, p, exceptions);
    else
      launch_framed<!M::marches>(stream, grid, p, exceptions);
  }

  double redundancy(const std::int64_t (&n)[3]) const override { return unframed_->redundancy(n); }

private:
  template <bool pairs>
  void launch_framed(void *stream, const DeviceGrid &grid, const DeviceProduct &p, const DeviceExceptions &exceptions) const {
    const DeviceBox   &core = exceptions.core;
    const std::int64_t bands = divide_up(core.end[1] - core.begin[1], M::down);
    FramedPlan         plan{};
    plan.columns = Divisor(static_cast<unsigned>(M::columns_of_band(grid.n[0], grid.pitch, pairs)));
    plan.tiles = Divisor(static_cast<unsigned>(divide_up(bands * plan.columns.by, M::columns)));
    plan.chunks = static_cast<int>(divide_up(core.end[2] - core.begin[2], M::planes));
    const unsigned blocks =
      plan.tiles.by * static_cast<unsigned>(plan.chunks) + static_cast<unsigned>(frame_blocks(grid, core));
    framed_kernel<M, pairs>
      <<<blocks, M::threads, M::shared_bytes, static_cast<cudaStream_t>(stream)>>>(grid, coefficients_, p, exceptions, plan);
    TCBOUND_LAUNCHED();
  }

  std::unique_ptr<Marcher> unframed_;
  MarchCoefficients<M>     coefficients_{};
};

// The smallest of the shapes of radius 1 that has all points.
stencil::Kind kind_of(const std::vector<MarchPoint> &points) {
  using stencil::Kind;
  for (const Kind kind : {Kind::star, Kind::plane_and_corners, Kind::faces_and_edges})
    if (std::all_of(points.begin(), points.end(), [&](const MarchPoint &point) {
          return stencil::has_point(kind, point.offset[2], point.offset[1], point.offset[0]);
        }))
      return kind;
  return Kind::box;
}

// In three dimensions, stencils of reach 1 and stars of reach 2.
std::unique_ptr<Marcher> make_framed(const std::vector<MarchPoint> &points, int reach, std::unique_ptr<Marcher> unframed) {
  using stencil::Kind;
  const auto make = [&](auto framed) -> std::unique_ptr<Marcher> {
    return std::make_unique<FramedMarcher<decltype(framed)>>(points, std::move(unframed));
  };
  if (reach == 2) return make(FramedMarch<Kind::star, 2, 1, 4, 4, 3, 4, 8>());
  switch (kind_of(points)) {
  case Kind::star:
    return make(Framed<Kind::star, 4, 8, 2>());
  case Kind::plane_and_corners:
    return make(FramedMarch<Kind::plane_and_corners, 1, 2, 4, 4, 2, 3, 8>());
  case Kind::faces_and_edges:
    return make(FramedMarch<Kind::faces_and_edges, 1, 2, 4, 4, 2, 3, 8>());
  default:
    return make(FramedMarch<Kind::box, 1, 2, 4, 4, 2, 3, 8>());
  }
}

} // namespace

bool Marcher::relax(void *, DeviceGrid, const DeviceRelaxation &, DeviceExceptions, DeviceBox) { return false; }

void Marcher::sweep_twice(void *, DeviceGrid, const TwoSweeps &, DeviceExceptions) {
  throw Error(ErrorCode::unsupported, "there is no kernel for two sweeps of this stencil");
}

std::unique_ptr<Marcher> make_marcher(Executor &executor, const std::int64_t (&n)[3], const std::vector<MarchPoint> &points,
                                      const MarchChoices &choices) {
  if (points.empty()) return nullptr;
  const int dimensions = choices.dimensions > 0 ? choices.dimensions : n[2] > 1 ? 3 : n[1] > 1 ? 2 : 1;
  int       reach = 1;
  bool      box = false;
  for (const MarchPoint &point : points) {
    const int *o = point.offset;
    if (!choices.any_values && !std::isfinite(point.value)) return nullptr;
    for (int d = 0; d < 3; ++d) {
      if (d >= dimensions && o[d] != 0) return nullptr;
      reach = std::max(reach, std::abs(o[d]));
    }
    box = box || (o[0] != 0) + (o[1] != 0) + (o[2] != 0) > 1;
  }
  // A march of 64 columns reads longer stretches; of 32 where that leaves fewer threads without cells.
  const auto wasted = [&](std::int64_t columns) { return divide_up(n[0], columns) * columns; };
  const auto make = [&](auto march) -> std::unique_ptr<Marcher> {
    return std::make_unique<MarcherOf<decltype(march)>>(executor, points, choices.planes);
  };
  const auto frame = [&](std::unique_ptr<Marcher> unframed) {
    return choices.columns > 0 || choices.planes > 0 ? std::move(unframed) : make_framed(points, reach, std::move(unframed));
  };
  if (dimensions == 3 && reach == 1) {
    const int columns = choices.columns > 0 ? choices.columns : wasted(64) > wasted(32) ? 32 : 64;
    if (!box) return frame(make(Direct<3, false, 1, 3, 1, 4, 6>()));
    if (columns == 64) return frame(make(March<true, 1, MarchTile<64, 2, 4, 128, 4, 3>>()));
    return frame(make(March<true, 1, MarchTile<32, 2, 4, 128, 4, 4>>()));
  }
  if (dimensions == 3 && reach == 2)
    return box ? make(March<true, 2, MarchTile<32, 1, 2, 256, 3, 4>>()) : frame(make(Direct<3, false, 2, 4, 1, 4, 4>()));
  if (dimensions == 3 && reach == 3 && !box) return make(March<false, 3, MarchTile<32, 1, 4, 256, 2, 4>>());
  if (dimensions == 2 && reach == 1)
    return box ? make(Direct<2, true, 1, 6, 8, 1, 3>()) : make(Direct<2, false, 1, 6, 8, 1, 3>());
  if (dimensions == 2 && reach == 2)
    return box ? make(Direct<2, true, 2, 8, 2, 2, 5>()) : make(Direct<2, false, 2, 8, 1, 4, 5>());
  if (dimensions == 2 && reach == 3)
    return box ? make(Direct<2, true, 3, 7, 2, 2, 4>()) : make(Direct<2, false, 3, 6, 1, 4, 5>());
  return nullptr;
}

} // namespace tcbound::grid
