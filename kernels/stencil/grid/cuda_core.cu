// stencil/grid/cuda_core: constant coefficients and near neighbours by march.h, all else by gather.h. Where a grid has layers, rows
// that need them are gathered.
#include <algorithm>
#include <climits>

#include "cuda/error.h"
#include "format.h"
#include "gather.h"
#include "march.h"

namespace tcbound {
namespace grid {
namespace {

template <int dimensions, bool box>
__global__ void __launch_bounds__(March<dimensions, box>::threads)
  march_kernel(const __grid_constant__ DeviceGrid grid, const __grid_constant__ MarchCoefficients a,
               const __grid_constant__ DeviceProduct p, const __grid_constant__ DeviceExceptions exceptions,
               const __grid_constant__ DeviceBox area, const __grid_constant__ MarchPlan plan) {
  extern __shared__ double shared[];
  march<March<dimensions, box>>(grid, a, p, exceptions, area, plan, static_cast<int>(blockIdx.x), shared);
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

DeviceBox device_box(const Box &box) {
  DeviceBox to{};
  for (int d = 0; d < 3; ++d) {
    to.begin[d] = static_cast<int>(box.begin[d]);
    to.end[d] = static_cast<int>(box.end[d]);
  }
  return to;
}

DeviceGrid device_grid(const Extents &e) {
  DeviceGrid grid{};
  for (int d = 0; d < 3; ++d) {
    grid.n[d] = static_cast<int>(e.n[d]);
    grid.low[d] = e.low[d];
    grid.high[d] = e.high[d];
  }
  grid.dof = e.dof;
  return grid;
}

// What march.h calls the third dimension is a 2D grid's second.
template <class Triple> void swap_last(Triple &triple) { std::swap(triple[1], triple[2]); }

class CudaCoreFormat final : public GridFormat {
public:
  CudaCoreFormat(Executor &executor, const Stencil &stencil) : GridFormat(stencil), grid_(device_grid(stencil.extents)) {
    upload_slots(executor);
    upload_exceptions(executor);
    choose_march(executor);
    executor.synchronize();
  }

  void multiply(Executor &executor, const Product &p, const double *ghosts, Part part) override;
  void diagonal(Executor &executor, double *d) override;

  std::int64_t stored_bytes() const override {
    std::int64_t bytes =
      slots_.bytes() + constants_.bytes() + cells_.bytes() + kinds_.bytes() + patterns_.bytes() + bits_.bytes();
    for (const auto &array : arrays_) bytes += array.bytes();
    return bytes;
  }

private:
  template <class T> static Array<T> upload(Executor &executor, const std::vector<T> &from) {
    Array<T> to(executor, static_cast<std::int64_t>(from.size()));
    executor.copy(to.data(), MemorySpace::cuda, from.data(), MemorySpace::host, from.size() * sizeof(T));
    return to;
  }
  void                                     upload_slots(Executor &executor);
  void                                     upload_exceptions(Executor &executor);
  void                                     choose_march(Executor &executor);
  template <int dimensions, bool box> void plan_march(Executor &executor);
  template <int dimensions, bool box>
  void launch_march(cudaStream_t stream, const DeviceProduct &p, const DeviceExceptions &exceptions, const Box &box_of_cells);
  template <bool small>
  void             launch_gather(cudaStream_t stream, const DeviceProduct &p, const std::vector<Box> &boxes,
                                 const std::vector<Box> &exception_boxes);
  void             gather(cudaStream_t stream, const DeviceProduct &p, const std::vector<Box> &boxes,
                          const std::vector<Box> &exception_boxes);
  DeviceExceptions exceptions() const {
    return {cells_.data(), kinds_.data(), patterns_.data(), bits_.data(), cells_.size(), device_box(core_)};
  }

  DeviceGrid                 grid_;
  std::vector<DeviceSlot>    ordered_; // constant ones first
  std::vector<double>        ordered_constants_;
  int                        constant_ = 0;
  std::vector<Array<double>> arrays_;
  Array<DeviceSlot>          slots_;
  Array<double>              constants_, patterns_;
  Array<std::int64_t>        cells_;
  Array<std::int32_t>        kinds_;
  Array<std::uint32_t>       bits_;
  Box                        core_;
  int                        march_dimensions_ = 0; // 0: gather
  bool                       march_box_ = false;
  MarchCoefficients          near_{};
  int                        resident_ = 1; // blocks that the device runs at once
};

void CudaCoreFormat::upload_slots(Executor &executor) {
  const Stencil     &s = stencil();
  const std::int64_t dof = s.extents.dof;
  for (const bool constant : {true, false})
    for (std::size_t slot = 0; slot < s.slots.size(); ++slot) {
      if (s.arrays[slot].empty() != constant) continue;
      const Slot &from = s.slots[slot];
      DeviceSlot  to{};
      to.distance =
        ((from.offset[2] * s.extents.n[1] + from.offset[1]) * s.extents.n[0] + from.offset[0]) * dof + from.component;
      std::copy_n(from.offset, 3, to.offset);
      to.component = from.component;
      if (constant) {
        ++constant_;
      } else {
        arrays_.push_back(upload(executor, s.arrays[slot]));
        to.values = arrays_.back().data();
      }
      ordered_.push_back(to);
      const auto first = s.constants.begin() + static_cast<std::ptrdiff_t>(slot * static_cast<std::size_t>(dof));
      ordered_constants_.insert(ordered_constants_.end(), first, first + dof);
    }
  slots_ = upload(executor, ordered_);
  constants_ = upload(executor, ordered_constants_);
}

void CudaCoreFormat::upload_exceptions(Executor &executor) {
  const Stencil &s = stencil();
  if (s.exceptions.empty()) return;
  std::vector<std::uint32_t> bits(static_cast<std::size_t>(divide_up(s.extents.cells(), 32)), 0);
  for (const std::int64_t cell : s.exceptions) bits[static_cast<std::size_t>(cell / 32)] |= std::uint32_t(1) << (cell % 32);
  cells_ = upload(executor, s.exceptions);
  kinds_ = upload(executor, s.exception_patterns);
  patterns_ = upload(executor, s.patterns);
  bits_ = upload(executor, bits);
  core_ = s.core();
}

// Constant coefficients of one component that are finite (a neighbour that does not exist is multiplied with as 0) and reach one
// cell.
void CudaCoreFormat::choose_march(Executor &executor) {
  const Stencil &s = stencil();
  if (s.extents.dof != 1 || s.array_count() > 0 || s.slots.empty()) return;
  const int dimensions = s.extents.n[2] > 1 ? 3 : s.extents.n[1] > 1 ? 2 : 1;
  if (dimensions == 1 || s.extents.n[0] * s.extents.n[1] > INT_MAX) return; // march.h numbers a plane in 32 bits
  bool box = false;
  for (std::size_t slot = 0; slot < s.slots.size(); ++slot) {
    int offset[3];
    std::copy_n(s.slots[slot].offset, 3, offset);
    if (dimensions == 2) swap_last(offset);
    int axes = 0;
    for (const int o : offset) {
      if (std::abs(o) > 1) return;
      axes += o != 0;
    }
    box = box || axes > 1;
    if (!(std::abs(s.constants[slot]) < std::numeric_limits<double>::infinity())) return;
    near_.values[1 + offset[0] + 3 * (1 + offset[1]) + 9 * (1 + offset[2])] = s.constants[slot];
  }
  march_dimensions_ = dimensions;
  march_box_ = box;
  if (dimensions == 3)
    box ? plan_march<3, true>(executor) : plan_march<3, false>(executor);
  else
    box ? plan_march<2, true>(executor) : plan_march<2, false>(executor);
}

template <int dimensions, bool box> void CudaCoreFormat::plan_march(Executor &executor) {
  using M = March<dimensions, box>;
  int blocks = 0;
  TCBOUND_CUDA(
    cudaFuncSetAttribute(march_kernel<dimensions, box>, cudaFuncAttributeMaxDynamicSharedMemorySize, M::shared_bytes));
  TCBOUND_CUDA(
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, march_kernel<dimensions, box>, M::threads, M::shared_bytes));
  resident_ = std::max(1, blocks * executor.device().multiprocessors);
}

// Chunks of planes so that blocks fill whole waves of the device, and few planes are read by two chunks.
int choose_chunks(int tiles, int planes, int resident) {
  int    best = 1;
  double best_cost = 1e300;
  for (int chunks = 1; chunks <= planes; ++chunks) {
    const int    length = static_cast<int>(divide_up(planes, chunks));
    const double waves = static_cast<double>(divide_up(static_cast<std::int64_t>(tiles) * chunks, resident));
    // Blocks that share a multiprocessor with fewer others are faster, but not by as much as there are fewer.
    const double full = static_cast<double>(tiles) * chunks / resident;
    const double cost = (0.5 * waves + 0.5 * std::max(full, 0.5)) * (length + 2);
    if (cost < best_cost) {
      best_cost = cost;
      best = chunks;
    }
    if (length <= 4) break;
  }
  return best;
}

template <int dimensions, bool box>
void CudaCoreFormat::launch_march(cudaStream_t stream, const DeviceProduct &p, const DeviceExceptions &exceptions,
                                  const Box &box_of_cells) {
  using M = March<dimensions, box>;
  DeviceGrid       grid = grid_;
  DeviceBox        area = device_box(box_of_cells);
  DeviceExceptions e = exceptions;
  MarchPlan        plan{};
  if (dimensions == 2) {
    swap_last(grid.n);
    swap_last(grid.low);
    swap_last(grid.high);
    swap_last(area.begin);
    swap_last(area.end);
    swap_last(e.core.begin);
    swap_last(e.core.end);
  }
  plan.tiles[0] = static_cast<int>(divide_up(area.end[0] - area.begin[0], M::columns));
  plan.tiles[1] = static_cast<int>(divide_up(area.end[1] - area.begin[1], M::rows));
  const int planes = area.end[2] - area.begin[2], tiles = plan.tiles[0] * plan.tiles[1];
  plan.planes = static_cast<int>(divide_up(planes, choose_chunks(tiles, planes, resident_)));
  plan.chunks = static_cast<int>(divide_up(planes, plan.planes));
  march_kernel<dimensions, box>
    <<<static_cast<unsigned>(tiles * plan.chunks), M::threads, M::shared_bytes, stream>>>(grid, near_, p, e, area, plan);
  TCBOUND_LAUNCHED();
}

template <bool small>
void CudaCoreFormat::launch_gather(cudaStream_t stream, const DeviceProduct &p, const std::vector<Box> &boxes,
                                   const std::vector<Box> &exception_boxes) {
  const Stencil     &s = stencil();
  DeviceSlots<small> slots{};
  DeviceReach        reach{};
  slots.more = slots_.data();
  slots.constants = constants_.data();
  slots.count = s.slot_count();
  slots.constant = constant_;
  slots.dof = grid_.dof;
  if (small) {
    std::copy(ordered_.begin(), ordered_.end(), slots.slots);
    if (grid_.dof == 1) std::copy(ordered_constants_.begin(), ordered_constants_.end(), slots.values);
  }
  for (int d = 0; d < 3; ++d) {
    reach.low[d] = s.reach_low(d);
    reach.high[d] = s.reach_high(d);
  }
  const auto launch = [&](const std::vector<Box> &list, std::int64_t exception_blocks, bool rows) {
    DeviceBoxes to{};
    for (const Box &box : list) {
      to.boxes[to.count] = device_box(box);
      to.first_block[to.count + 1] = to.first_block[to.count] + (rows ? divide_up(box.cells() * grid_.dof, gather_threads) : 0);
      ++to.count;
    }
    const std::int64_t blocks = exception_blocks + to.first_block[to.count];
    if (blocks == 0) return;
    grid::gather<small><<<static_cast<unsigned>(blocks), gather_threads, 0, stream>>>(grid_, slots, reach, p, exceptions(), to,
                                                                                      exception_blocks);
    TCBOUND_LAUNCHED();
  };
  const std::int64_t exception_blocks = divide_up(cells_.size() * grid_.dof, gather_threads);
  if (!boxes.empty())
    launch(boxes, exception_blocks, true);
  else if (!exception_boxes.empty() && exception_blocks > 0)
    launch(exception_boxes, exception_blocks, false);
}

void CudaCoreFormat::gather(cudaStream_t stream, const DeviceProduct &p, const std::vector<Box> &boxes,
                            const std::vector<Box> &exception_boxes) {
  if (ordered_.size() <= small_slots)
    launch_gather<true>(stream, p, boxes, exception_boxes);
  else
    launch_gather<false>(stream, p, boxes, exception_boxes);
}

void CudaCoreFormat::multiply(Executor &executor, const Product &p, const double *ghosts, Part part) {
  const auto          stream = static_cast<cudaStream_t>(executor.stream());
  const Stencil      &s = stencil();
  const DeviceProduct to = {p.alpha, p.beta, p.x, ghosts, p.y, p.z};
  const bool          layered = s.extents.layered();
  if (part != Part::shell)
    for (const Box &box : s.boxes(layered ? Part::interior : Part::all)) { // one, or none
      if (march_dimensions_ == 0) {
        gather(stream, to, {box}, {});
        continue;
      }
      if (march_dimensions_ == 3)
        march_box_ ? launch_march<3, true>(stream, to, exceptions(), box)
                   : launch_march<3, false>(stream, to, exceptions(), box);
      else
        march_box_ ? launch_march<2, true>(stream, to, exceptions(), box)
                   : launch_march<2, false>(stream, to, exceptions(), box);
      gather(stream, to, {}, {box});
    }
  if (layered && part != Part::interior) gather(stream, to, s.boxes(Part::shell), {});
}

__global__ void take_diagonal(const double *values, const double *constants, const std::int64_t *cells,
                              const std::int32_t *kinds, const double *patterns, std::int64_t count, int dof, int component,
                              int width, double *d) {
  const std::int64_t at = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
  if (at >= count) return;
  const std::int64_t row = (cells ? cells[at] : at) * dof + component;
  d[row] = cells    ? patterns[static_cast<std::int64_t>(kinds[at]) * width + component]
           : values ? values[row]
                    : constants[component];
}

void CudaCoreFormat::diagonal(Executor &executor, double *d) {
  const auto         stream = static_cast<cudaStream_t>(executor.stream());
  const std::int64_t cells = stencil().extents.cells();
  const int          dof = grid_.dof, width = static_cast<int>(ordered_.size()) * dof;
  TCBOUND_CUDA(cudaMemsetAsync(d, 0, static_cast<std::size_t>(cells * dof) * sizeof(double), stream));
  for (std::size_t s = 0; s < ordered_.size(); ++s) {
    const DeviceSlot &slot = ordered_[s];
    if (slot.offset[0] || slot.offset[1] || slot.offset[2]) continue;
    const auto take = [&](std::int64_t count, const std::int64_t *list) {
      if (count == 0) return;
      take_diagonal<<<static_cast<unsigned>(divide_up(count, 256)), 256, 0, stream>>>(
        slot.values, constants_.data() + s * static_cast<std::size_t>(dof), list, kinds_.data(),
        patterns_.data() + s * static_cast<std::size_t>(dof), count, dof, slot.component, width, d);
      TCBOUND_LAUNCHED();
    };
    take(cells, nullptr);
    take(cells_.size(), cells_.data());
  }
}

class GridCudaCore final : public GridKernel {
public:
  GridCudaCore() : GridKernel("stencil", "grid", "cuda_core") {}

  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Problem &problem) const override {
    const std::string why_not = GridKernel::check(device, problem);
    if (!why_not.empty()) return why_not;
    if (device.compute_major < 8) return device.name + " is older than compute capability 8.0";
    for (const std::int64_t n : problem.stencil->extents.n)
      if (n * problem.stencil->extents.dof > INT_MAX / 2) return "a dimension of the grid is too large for it";
    return {};
  }

  std::unique_ptr<Format> build(Executor &executor, const Problem &problem) const override {
    const std::string why_not = check(executor.device(), problem);
    if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);
    return std::make_unique<CudaCoreFormat>(executor, *problem.stencil);
  }
};

} // namespace
} // namespace grid

const Kernel &stencil_grid_cuda_core() {
  static const grid::GridCudaCore kernel;
  return kernel;
}

} // namespace tcbound
