// Sweeps as sequences of passes, and the list of backends.
#include <algorithm>
#include <string_view>

#include "pass.h"

namespace tcbound::stencil {
namespace {

class PassSweep final : public Sweep {
public:
  PassSweep(Executor &executor, const Problem &problem, const std::vector<PassMaker> &makers, int depth, std::string mma)
    : problem_(problem), mma_(std::move(mma)) {
    for (const PassMaker &maker : makers)
      if (maker.depth <= depth) passes_.push_back(maker.make(executor, problem));
  }

  int         depth() const override { return passes_.back()->depth(); }
  bool        composed() const override { return passes_.back()->composed(); }
  std::string mma() const override { return mma_; }

  void run(Executor &executor, const double *in, double *out, int steps) override {
    const std::int64_t        size = problem_.grid.size();
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

private:
  std::vector<Pass *> order_of(int steps) const {
    std::vector<Pass *> order;
    for (auto pass = passes_.rbegin(); pass != passes_.rend(); ++pass)
      for (; steps >= (*pass)->depth(); steps -= (*pass)->depth()) order.push_back(pass->get());
    return order;
  }

  Problem                            problem_;
  std::string                        mma_;
  std::vector<std::unique_ptr<Pass>> passes_;
  Array<double>                      scratch_;
};

} // namespace

std::vector<int> depths_of(const std::vector<PassMaker> &makers) {
  std::vector<int> depths;
  for (const PassMaker &maker : makers) depths.push_back(maker.depth);
  return depths;
}

std::unique_ptr<Sweep> make_sweep(Executor &executor, const Problem &problem, const std::vector<PassMaker> &makers, int depth,
                                  const std::string &mma) {
  const std::vector<int> depths = depths_of(makers);
  if (std::find(depths.begin(), depths.end(), depth) == depths.end()) {
    std::string valid;
    for (const int d : depths) valid += (valid.empty() ? "" : ", ") + std::to_string(d);
    throw Error(ErrorCode::unsupported,
                problem.shape.name + " in passes of " + std::to_string(depth) + " steps; there are passes of " + valid);
  }
  return std::make_unique<PassSweep>(executor, problem, makers, depth, mma);
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
  template <bool present> void append_##backend(std::vector<const Sweeper *> &all) { \
    if constexpr (present) all.push_back(&op##_##format##_##backend()); \
  }
#include "../../list.def"

} // namespace

const std::vector<const Sweeper *> &all_sweepers() {
  static const std::vector<const Sweeper *> all = [] {
    std::vector<const Sweeper *> found;
#define TCBOUND_SWEEP(op, format, backend) append_##backend<built(#backend)>(found);
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
