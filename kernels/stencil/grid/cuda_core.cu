// stencil/grid/cuda_core: constant coefficients and near neighbours by march.h, those that vary by varying.h, all else by gather.h.
// Where a grid has layers, rows that need them are gathered.
#include <algorithm>
#include <climits>
#include <memory>

#include "cuda/error.h"
#include "cuda_core_tuning.h"
#include "format.h"
#include "gather.h"
#include "marcher.h"
#include "varying_product.h"

namespace tcbound {
namespace grid {
namespace {

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
  grid.pitch = grid.n[0];
  grid.dof = e.dof;
  return grid;
}

// Constant coefficients of one component.
std::unique_ptr<Marcher> make_marcher(Executor &executor, const Stencil &s, const CudaCoreChoices &choices) {
  if (!choices.march || s.extents.dof != 1 || s.array_count() > 0) return nullptr;
  std::vector<MarchPoint> points;
  for (std::size_t slot = 0; slot < s.slots.size(); ++slot) {
    const int *o = s.slots[slot].offset;
    points.push_back({{o[0], o[1], o[2]}, s.constants[slot]});
  }
  return make_marcher(executor, s.extents.n, points, {choices.columns, choices.planes});
}

bool runs_varying(const Stencil &stencil, const CudaCoreChoices &choices) {
  return choices.march && has_varying_kernel(stencil);
}

bool stores_half(const Stencil &stencil, const CudaCoreChoices &choices) {
  return runs_varying(stencil, choices) && !stencil.mirrors.empty();
}

class CudaCoreFormat final : public GridFormat {
public:
  CudaCoreFormat(Executor &executor, const Stencil &stencil, const CudaCoreChoices &choices)
    : GridFormat(stencil, stores_half(stencil, choices)), grid_(device_grid(stencil.extents)),
      layout_(lay_out_values(stencil, halved(), !runs_varying(stencil, choices))) {
    upload_slots(executor);
    upload_exceptions(executor);
    if (runs_varying(stencil, choices))
      marcher_ = make_varying(executor, stencil, layout_, values_.data());
    else
      marcher_ = make_marcher(executor, stencil, choices);
    executor.synchronize();
  }

  void multiply(Executor &executor, const Product &product, const double *ghosts, Part part) override;
  int  most_sweeps() const override { return marcher_ && !stencil().extents.layered() && marcher_->can_sweep_twice() ? 2 : 1; }
  void relax(Executor &executor, const Relaxation &relaxation, const double *ghosts, Part part) override;
  void diagonal(Executor &executor, double *d) override;

  std::int64_t stored_bytes() const override {
    return slots_.bytes() + constants_.bytes() + values_.bytes() + cells_.bytes() + kinds_.bytes() + patterns_.bytes() +
           bits_.bytes();
  }

private:
  template <class T> static Array<T> upload(Executor &executor, const std::vector<T> &from) {
    Array<T> to(executor, static_cast<std::int64_t>(from.size()));
    executor.copy(to.data(), MemorySpace::cuda, from.data(), MemorySpace::host, from.size() * sizeof(T));
    return to;
  }
  void upload_slots(Executor &executor);
  void upload_exceptions(Executor &executor);
  bool spares_diagonal() const override { return marcher_ && marcher_->spares_diagonal(); }
  template <bool small, int rows, class P>
  void                    launch_gather(cudaStream_t stream, const P &p, const std::vector<Box> &boxes, bool only_exceptions);
  template <class P> void gather(cudaStream_t stream, const P &p, const std::vector<Box> &boxes, bool only_exceptions);
  template <class P, class March> void run(Executor &executor, const P &p, Part part, March &&march);

  DeviceGrid               grid_;
  Values                   layout_;
  std::unique_ptr<Marcher> marcher_; // null: all rows are gathered
  std::vector<DeviceSlot>  ordered_; // constant ones first
  int                      constant_ = 0;
  Array<DeviceSlot>        slots_;
  Array<double>            constants_, patterns_, values_;
  Array<std::int64_t>      cells_;
  Array<std::int32_t>      kinds_;
  Array<std::uint32_t>     bits_;
  DeviceExceptions         exceptions_{};
};

void CudaCoreFormat::upload_slots(Executor &executor) {
  const Stencil      &s = stencil();
  const std::int64_t  dof = s.extents.dof;
  std::vector<double> constants;
  for (const bool constant : {true, false})
    for (std::size_t slot = 0; slot < s.slots.size(); ++slot) {
      if (s.arrays[slot].empty() != constant) continue;
      const Slot &from = s.slots[slot];
      DeviceSlot  to{};
      const auto  first = s.constants.begin() + static_cast<std::ptrdiff_t>(slot * static_cast<std::size_t>(dof));
      to.distance = static_cast<int>(
        ((from.offset[2] * s.extents.n[1] + from.offset[1]) * s.extents.n[0] + from.offset[0]) * dof + from.component);
      std::copy_n(from.offset, 3, to.offset);
      to.component = from.component;
      to.constant = *first;
      to.value = layout_.distances[slot];
      constant_ += constant;
      ordered_.push_back(to);
      constants.insert(constants.end(), first, first + dof);
    }
  slots_ = upload(executor, ordered_);
  constants_ = upload(executor, constants);
  values_ = upload(executor, fill_values(s, layout_, halved()));
}

void CudaCoreFormat::upload_exceptions(Executor &executor) {
  const Stencil &s = stencil();
  if (s.exceptions.empty() || (s.array_count() > 0 && !halved())) return;
  std::vector<std::uint32_t> bits(static_cast<std::size_t>(divide_up(s.extents.cells(), 32)), 0);
  for (const std::int64_t cell : s.exceptions) bits[static_cast<std::size_t>(cell / 32)] |= std::uint32_t(1) << (cell % 32);
  bits_ = upload(executor, bits);
  cells_ = upload(executor, s.exceptions);
  kinds_ = upload(executor, s.exception_patterns);
  std::vector<double> patterns; // slots in the order of ordered_
  const auto          dof = static_cast<std::ptrdiff_t>(s.extents.dof), width = dof * s.slot_count();
  for (auto kind = s.patterns.begin(); kind != s.patterns.end(); kind += width)
    for (const bool constant : {true, false})
      for (std::ptrdiff_t slot = 0; slot < s.slot_count(); ++slot)
        if (s.arrays[static_cast<std::size_t>(slot)].empty() == constant)
          patterns.insert(patterns.end(), kind + slot * dof, kind + (slot + 1) * dof);
  patterns_ = upload(executor, patterns);
  const Box core = s.core();
  exceptions_ = {cells_.data(), kinds_.data(), patterns_.data(), bits_.data(), cells_.size(), device_box(core), false, 0.0};
  exceptions_.diagonal_outside = s.diagonal_outside(core, &exceptions_.diagonal);
}

template <bool small, int rows, class P>
void CudaCoreFormat::launch_gather(cudaStream_t stream, const P &p, const std::vector<Box> &boxes, bool only_exceptions) {
  const Stencil     &s = stencil();
  DeviceSlots<small> slots{};
  DeviceReach        reach{};
  GatherBoxes        to{};
  unsigned           blocks = 0;
  slots.more = slots_.data();
  slots.constants = constants_.data();
  slots.values = values_.data();
  slots.layout = layout_.layout;
  slots.count = s.slot_count();
  slots.constant = constant_;
  if (small) std::copy(ordered_.begin(), ordered_.end(), slots.slots);
  for (int d = 0; d < 3; ++d) {
    reach.low[d] = s.reach_low(d);
    reach.high[d] = s.reach_high(d);
  }
  for (const Box &box : boxes) {
    GatherBox &add = to.boxes[to.count++];
    add.box = device_box(box);
    const int width = (add.box.end[0] - add.box.begin[0]) * grid_.dof;
    add.rows = static_cast<unsigned>(width) * static_cast<unsigned>(add.box.end[1] - add.box.begin[1]);
    add.width = Divisor(static_cast<unsigned>(width));
    add.plane = Divisor(static_cast<unsigned>(divide_up(add.rows, rows * gather_threads)));
    add.first_block = blocks;
    if (!only_exceptions) blocks += add.plane.by * static_cast<unsigned>(add.box.end[2] - add.box.begin[2]);
  }
  const unsigned exception_blocks =
    exceptions_.diagonal_outside ? 0 : static_cast<unsigned>(divide_up(cells_.size() * grid_.dof, gather_threads));
  if (blocks + exception_blocks == 0) return;
  gather_kernel<small, rows, P>
    <<<blocks + exception_blocks, gather_threads, 0, stream>>>(grid_, slots, reach, p, exceptions_, to, exception_blocks);
  TCBOUND_LAUNCHED();
}

template <class P>
void CudaCoreFormat::gather(cudaStream_t stream, const P &p, const std::vector<Box> &boxes, bool only_exceptions) {
  if (boxes.empty()) return;
  const bool small = ordered_.size() <= small_slots;
  if (values_.size() > 0)
    small ? launch_gather<true, 1>(stream, p, boxes, only_exceptions)
          : launch_gather<false, 1>(stream, p, boxes, only_exceptions);
  else
    small ? launch_gather<true, 4>(stream, p, boxes, only_exceptions)
          : launch_gather<false, 4>(stream, p, boxes, only_exceptions);
}

// march(stream, box): whether it has computed the box, which needs no layers, but for listed exceptions.
template <class P, class March> void CudaCoreFormat::run(Executor &executor, const P &p, Part part, March &&march) {
  const auto stream = static_cast<cudaStream_t>(executor.stream());
  const bool layered = stencil().extents.layered();
  if (part != Part::shell)
    for (const Box &box : stencil().boxes(layered ? Part::interior : Part::all)) // one, or none
      gather(stream, p, {box}, marcher_ && march(stream, device_box(box)));
  if (layered && part != Part::interior) gather(stream, p, stencil().boxes(Part::shell), false);
}

void CudaCoreFormat::multiply(Executor &executor, const Product &p, const double *ghosts, Part part) {
  const DeviceProduct to = {p.alpha, p.beta, p.x, ghosts, p.y, p.z};
  DeviceExceptions    exceptions = exceptions_;
  if (p.beta == 0.0 || p.y != p.z) exceptions.bits = nullptr; // what is written there is overwritten next
  run(executor, to, part, [&](cudaStream_t stream, const DeviceBox &box) {
    marcher_->launch(stream, grid_, to, exceptions, box);
    return true;
  });
}

void CudaCoreFormat::relax(Executor &executor, const Relaxation &p, const double *ghosts, Part part) {
  if (p.sweeps == 2) {
    if (most_sweeps() < 2 || part != Part::all || !p.inverse) throw Error(ErrorCode::invalid, "these sweeps run one by one");
    const TwoSweeps to = {{p.factors[0], p.factors[1]}, {1.0 - p.factors[0], 1.0 - p.factors[1]}, p.x, p.b, p.inverse, p.z};
    marcher_->sweep_twice(executor.stream(), grid_, to, exceptions_);
    return;
  }
  const DeviceRelaxation to = {p.factors[0], 1.0, false, p.x, ghosts, p.b, p.inverse, p.z};
  DeviceExceptions       exceptions = exceptions_;
  exceptions.bits = nullptr;
  run(executor, to, part,
      [&](cudaStream_t stream, const DeviceBox &box) { return marcher_->relax(stream, grid_, to, exceptions, box); });
}

// The diagonal entries of one component: of all cells, or of the listed exceptions. values: null if constant.
__global__ void take_diagonal(const DeviceSlot slot, const double *constants, const DeviceExceptions exceptions, bool listed,
                              const double *values, const ValueLayout layout, const DeviceGrid grid, std::int64_t count,
                              int width, double *d) {
  const std::int64_t at = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
  if (at >= count) return;
  const std::int64_t cell = listed ? exceptions.cells[at] : at, line = cell / grid.n[0], k = line / grid.n[1];
  const std::int64_t i = cell - line * grid.n[0], j = line - k * grid.n[1];
  double            &to = d[cell * grid.dof + slot.component];
  if (listed)
    to = exceptions.patterns[static_cast<std::int64_t>(exceptions.kinds[at]) * width + slot.component];
  else if (values)
    to = values[layout.first + k * layout.plane + j * layout.line + i * grid.dof + slot.component + slot.value];
  else
    to = constants[slot.component];
}

void CudaCoreFormat::diagonal(Executor &executor, double *d) {
  const auto         stream = static_cast<cudaStream_t>(executor.stream());
  const std::int64_t cells = stencil().extents.cells();
  const int          dof = grid_.dof, width = static_cast<int>(ordered_.size()) * dof;
  TCBOUND_CUDA(cudaMemsetAsync(d, 0, static_cast<std::size_t>(cells * dof) * sizeof(double), stream));
  for (std::size_t s = 0; s < ordered_.size(); ++s) {
    const DeviceSlot &slot = ordered_[s];
    if (slot.offset[0] || slot.offset[1] || slot.offset[2]) continue;
    for (const bool listed : {false, true}) {
      const std::int64_t count = listed ? cells_.size() : cells;
      DeviceExceptions   exceptions = exceptions_;
      if (count == 0) continue;
      exceptions.patterns += s * static_cast<std::size_t>(dof); // of this slot
      take_diagonal<<<static_cast<unsigned>(divide_up(count, 256)), 256, 0, stream>>>(
        slot, constants_.data() + s * static_cast<std::size_t>(dof), exceptions, listed,
        static_cast<int>(s) < constant_ ? nullptr : values_.data(), layout_.layout, grid_, count, width, d);
      TCBOUND_LAUNCHED();
    }
  }
}

} // namespace

std::unique_ptr<Format> build_cuda_core(Executor &executor, const Stencil &stencil, const CudaCoreChoices &choices) {
  return std::make_unique<CudaCoreFormat>(executor, stencil, choices);
}

namespace {

class GridCudaCore final : public GridKernel {
public:
  GridCudaCore() : GridKernel("stencil", "grid", "cuda_core") {}

  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Problem &problem) const override {
    const std::string why_not = GridKernel::check(device, problem);
    if (!why_not.empty()) return why_not;
    if (device.compute_major < 8) return device.name + " is older than compute capability 8.0";
    for (const std::int64_t n : problem.stencil->extents.n)
      if (n > INT_MAX / 8) return "a dimension of the grid is too long for it";
    // Rows of a plane and distances of neighbours are 32-bit numbers.
    const Extents &e = problem.stencil->extents;
    if (e.n[0] * e.n[1] * e.dof > INT_MAX / 8) return "a plane of the grid has too many rows for it";
    return {};
  }

  Work predict(const Problem &problem, bool, bool accumulate) const override {
    return problem.stencil->work(accumulate, Part::all, stores_half(*problem.stencil, {}));
  }

  std::unique_ptr<Format> build(Executor &executor, const Problem &problem) const override {
    const std::string why_not = check(executor.device(), problem);
    if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);
    return build_cuda_core(executor, *problem.stencil, {});
  }
};

} // namespace
} // namespace grid

const Kernel &stencil_grid_cuda_core() {
  static const grid::GridCudaCore kernel;
  return kernel;
}

} // namespace tcbound
