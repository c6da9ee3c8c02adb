#include "marcher.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "../march_length.h"
#include "cuda/error.h"
#include "direct.h"
#include "march.h"

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
    MarchPlan plan = plan_of(area);
    plan.pairs_from = grid.n[0] % 2 == 0 && aligned(p.x);
    plan.pairs_to = grid.n[0] % 2 == 0 && aligned(p.z);
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

} // namespace

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
  if (dimensions == 3 && reach == 1 && !box) return make(Direct<3, false, 1, 3, 1, 4, 6>());
  if (dimensions == 3 && reach == 1) {
    const int columns = choices.columns > 0 ? choices.columns : wasted(64) > wasted(32) ? 32 : 64;
    if (columns == 64) return make(March<true, 1, MarchTile<64, 2, 4, 128, 4, 3>>());
    return make(March<true, 1, MarchTile<32, 2, 4, 128, 4, 4>>());
  }
  if (dimensions == 3 && reach == 2)
    return box ? make(March<true, 2, MarchTile<32, 1, 2, 256, 3, 4>>()) : make(Direct<3, false, 2, 4, 1, 4, 4>());
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
