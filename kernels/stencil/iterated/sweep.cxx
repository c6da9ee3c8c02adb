// Sweeps as sequences of passes, and the list of backends.
#include <algorithm>
#include <string_view>

#include "relaxation.h"

namespace tcbound::stencil {
namespace {

using Passes = std::vector<std::unique_ptr<Pass>>;

class PassSweep final : public Sweep {
public:
  // passes: by depth; the last one's is the sweep's. why_not: what the error says where the relaxation is empty.
  PassSweep(const Problem &problem, Passes passes, std::string mma, PassRelaxation relaxation, std::string why_not)
    : problem_(problem), mma_(std::move(mma)), why_not_(std::move(why_not)), passes_(std::move(passes)),
      relaxation_(std::move(relaxation)) {}

  int         depth() const override { return passes_.back()->depth(); }
  std::string mma() const override { return mma_; }
  bool        same_bits() const override {
    return std::all_of(passes_.begin(), passes_.end(), [](const auto &pass) { return pass->same_bits(); });
  }

  void run(Executor &executor, const double *in, double *out, int steps) override {
    const std::int64_t        size = problem_.grid.stored();
    const std::vector<Pass *> order = order_of(steps);
    if (size == 0) return;
    if (order.empty())
      executor.copy(out, executor.space(), in, executor.space(), static_cast<std::size_t>(size) * sizeof(double));
    if (order.size() > 1 && scratch_.size() == 0) scratch_ = Array<double>(executor, size);
    for (std::size_t i = 0; i < order.size(); ++i) { // the last one writes to `out`
      double *to = (order.size() - i) % 2 ? out : scratch_.data();
      order[i]->run(executor, in, to);
      in = to;
    }
  }

  Work work(int steps) const override {
    double issued = 0.0;
    Work   work = sweep_work(problem_, steps, 1, 0.0);
    for (const Pass *pass : order_of(steps)) issued += 2.0 * problem_.shape.points() * pass->redundancy() * pass->depth();
    work.issued_flops =
      static_cast<std::int64_t>(issued * static_cast<double>(problem_.grid.changing(problem_.shape.dimensions)));
    work.bytes = work.compulsory_bytes = 16 * problem_.grid.size() * static_cast<std::int64_t>(order_of(steps).size());
    return work;
  }

  bool relaxes() const override { return !relaxation_.empty(); }

  void relax(Executor &executor, const double *in, const double *b, double *out, const Relaxation &relaxation) override {
    must_relax();
    relaxation_.relax(executor, in, b, out, relaxation, scratch_);
  }

  Work work_of_relaxation(int steps, bool zero_start) const override {
    must_relax();
    return relaxation_.work(steps, zero_start);
  }

private:
  void must_relax() const {
    if (!relaxes()) throw Error(ErrorCode::invalid, why_not_);
  }

  std::vector<Pass *> order_of(int steps) const {
    std::vector<Pass *> order;
    for (auto pass = passes_.rbegin(); pass != passes_.rend(); ++pass)
      for (; steps >= (*pass)->depth(); steps -= (*pass)->depth()) order.push_back(pass->get());
    return order;
  }

  const Problem        problem_;
  const std::string    mma_, why_not_;
  const Passes         passes_;
  const PassRelaxation relaxation_;
  Array<double>        scratch_;
};

int cheapest_depth(const Passes &passes, int points, double flops_a_byte) {
  const auto cost = [&](const Pass &pass) {
    return cost_of_step(16.0 / pass.depth(), 2.0 * points * pass.redundancy(), flops_a_byte);
  };
  const auto cheaper = [&](const auto &a, const auto &b) { return cost(*a) < cost(*b); };
  return (*std::min_element(passes.begin(), passes.end(), cheaper))->depth();
}

} // namespace

std::vector<int> PassSweeper::depths(const Shape &shape, MmaShape mma) const {
  std::vector<int> depths;
  for (const PassMaker &maker : makers(shape, mma)) depths.push_back(maker.depth);
  return depths;
}

std::vector<int> PassSweeper::relaxation_depths(const Shape &shape) const {
  std::vector<int> depths;
  if (shape.centre() >= 0)
    for (const RelaxationMaker &maker : relaxation_makers(shape)) depths.push_back(maker.depth);
  return depths;
}

std::string PassSweeper::why_no_relaxation(const Shape &shape) const {
  if (shape.centre() < 0) return "the stencil " + shape.name + " lacks the cell itself";
  return relaxation_makers(shape).empty() ? "it has no relaxation of the stencil " + shape.name : "";
}

std::unique_ptr<Sweep> PassSweeper::build(Executor &executor, const Problem &problem, const Settings &settings) const {
  const Device  &device = executor.device();
  const MmaShape mma = mma_for(device, settings.mma);
  check_problem(problem);
  std::string why_not = check(device, problem.shape);
  if (why_not.empty() && mma != MmaShape::automatic) why_not = check_instruction(device, mma);
  const std::vector<PassMaker> all = makers(problem.shape, mma);
  if (why_not.empty() && all.empty())
    why_not = std::string("there are no ") + facts_of(mma).name + " kernels of the stencil " + problem.shape.name;
  if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);

  const std::vector<int> relaxing = relaxation_depths(problem.shape);
  bool                   known = settings.depth == 0 || std::count(relaxing.begin(), relaxing.end(), settings.depth) > 0;
  Passes                 passes;
  std::string            valid;
  const auto fits = [&](const auto &maker) { return static_cast<std::size_t>(maker.shared_bytes) <= device.shared_bytes; };
  for (const PassMaker &maker : all) {
    if (!fits(maker)) continue;
    passes.push_back(maker.make(executor, problem));
    valid += (valid.empty() ? "" : ", ") + std::to_string(maker.depth);
    known = known || maker.depth == settings.depth;
  }
  if (!known || passes.empty())
    throw Error(ErrorCode::unsupported, problem.shape.name + " in passes of " + std::to_string(settings.depth) +
                                          " steps; there are passes of " + (valid.empty() ? "none" : valid));
  const bool wide = mma != MmaShape::automatic && facts_of(mma).m > 8; // instructions of twice the rate
  const int  depth =
    settings.depth ? settings.depth : cheapest_depth(passes, problem.shape.points(), (wide ? 2.0 : 1.0) * settings.balance);
  while (passes.back()->depth() > depth) passes.pop_back();

  PassRelaxation relaxation(problem, settings);
  std::string    why_no_relaxation = this->why_no_relaxation(problem.shape);
  if (why_no_relaxation.empty()) {
    const std::vector<RelaxationMaker> relaxations = relaxation_makers(problem.shape);
    if (!fits(relaxations.front())) // without single steps, not every number of them can be made
      why_no_relaxation = "the device has too little shared memory to relax";
    else
      for (const RelaxationMaker &maker : relaxations)
        if (fits(maker)) relaxation.add(maker.make(executor, problem));
  }
  return std::make_unique<PassSweep>(problem, std::move(passes), mma == MmaShape::automatic ? "" : facts_of(mma).name,
                                     std::move(relaxation), name() + ": " + why_no_relaxation);
}

#define TCBOUND_KERNEL(op, format, backend)
#define TCBOUND_SWEEP(op, format, backend) const Sweeper &op##_##format##_##backend();
#include "../../list.def"

namespace {

// Of the backends, only "host" is compiled without a CUDA toolkit.
constexpr bool built([[maybe_unused]] std::string_view backend) {
#ifdef TCBOUND_HAVE_CUDA
  return true;
#else
  return backend == "host";
#endif
}

// Templates, so that what was not compiled is not referred to.
#define TCBOUND_SWEEP(op, format, backend) \
  template <bool present> void append_##format##_##backend(std::vector<const Sweeper *> &all) { \
    if constexpr (present) all.push_back(&op##_##format##_##backend()); \
  }
#include "../../list.def"

} // namespace

const std::vector<const Sweeper *> &all_sweepers() {
  static const std::vector<const Sweeper *> all = [] {
    std::vector<const Sweeper *> found;
#define TCBOUND_SWEEP(op, format, backend) append_##format##_##backend<built(#backend)>(found);
#include "../../list.def"
    return found;
  }();
  return all;
}

const Sweeper *find_sweeper(const std::string &name) {
  for (const Sweeper *sweeper : all_sweepers())
    if (sweeper->name() == name) return sweeper;
  return nullptr;
}

} // namespace tcbound::stencil
