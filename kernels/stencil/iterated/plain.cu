// Sweeps by the plain kernel: a pass a step.
#include "cuda/error.h"
#include "pass.h"
#include "plain.h"

namespace tcbound::stencil {
namespace {

dim3 plain_blocks(const PlainStencil &s) {
  const int most = 65535; // blocks of a grid in y and z
  return dim3(static_cast<unsigned>((s.extent[0] + plain_threads - 1) / plain_threads), std::min(s.extent[1], most),
              std::min(s.extent[2], most));
}

template <int points, int dimensions> class PlainPass final : public Pass {
public:
  PlainPass(Executor &, const Problem &problem) : stencil_(plain_stencil(problem)) {}

  int    depth() const override { return 1; }
  double redundancy() const override { return 1.0; }

  void run(Executor &executor, const double *in, double *out) override {
    step_plainly<points, dimensions, false>
      <<<plain_blocks(stencil_), plain_threads, 0, static_cast<cudaStream_t>(executor.stream())>>>(in, nullptr, out, stencil_);
    TCBOUND_LAUNCHED();
  }

private:
  const PlainStencil stencil_;
};

template <int points, int dimensions> class PlainRelaxation final : public RelaxationPass {
public:
  PlainRelaxation(Executor &, const Problem &problem) : problem_(problem), stencil_(plain_stencil(problem)) {}

  int    depth() const override { return 1; }
  double redundancy() const override { return 1.0; }
  bool   fuses_start() const override { return false; }

  void relax(Executor &executor, const double *in, const double *b, double *out, const Step *steps, const Step *) override {
    set_step(stencil_, *steps);
    step_plainly<points, dimensions, true>
      <<<plain_blocks(stencil_), plain_threads, 0, static_cast<cudaStream_t>(executor.stream())>>>(in, b, out, stencil_);
    TCBOUND_LAUNCHED();
  }
  void start(Executor &executor, const double *b, double *out, const Step &step) override {
    start_plainly(executor, problem_, b, out, step);
  }

private:
  const Problem problem_;
  PlainStencil  stencil_;
};

__global__ void __launch_bounds__(plain_threads)
  start_cells(const double *__restrict__ b, double *__restrict__ out, const PlainStencil s, int dimensions) {
  const int  x = blockIdx.x * plain_threads + threadIdx.x, planes = s.extent[2], ring_z = dimensions == 3 ? s.ring : 0;
  const auto in_ring = [](int at, int extent, int ring) { return at < ring || at >= extent - ring; };
  if (x >= s.extent[0]) return;
  for (int z = blockIdx.z; z < planes; z += gridDim.z)
    for (int y = blockIdx.y; y < s.extent[1]; y += gridDim.y) {
      const bool ring = in_ring(x, s.extent[0], s.ring) || in_ring(y, s.extent[1], s.ring) || in_ring(z, planes, ring_z);
      const std::int64_t i = (static_cast<std::int64_t>(z) * s.extent[1] + y) * s.pitch + x;
      out[i] = (ring ? s.ring_source : s.source) * b[i];
    }
}

class PlainSweeper final : public PassSweeper {
public:
  using PassSweeper::PassSweeper;
  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Shape &shape) const override {
    if (device.space != MemorySpace::cuda) return "it needs a CUDA device";
    return makers(shape, MmaShape::automatic).empty() ? "no plain kernel has " + std::to_string(shape.points()) + " points"
                                                      : "";
  }

protected:
  std::vector<PassMaker> makers(const Shape &shape, MmaShape) const override {
    return of_points(shape, [](auto points, auto dimensions) {
      return make<Pass, PlainPass<decltype(points)::value, decltype(dimensions)::value>>();
    });
  }
  std::vector<RelaxationMaker> relaxation_makers(const Shape &shape) const override {
    return of_points(shape, [](auto points, auto dimensions) {
      return make<RelaxationPass, PlainRelaxation<decltype(points)::value, decltype(dimensions)::value>>();
    });
  }

private:
  template <class P, class Made> static std::vector<Maker<P>> make() {
    return {{1, [](Executor &executor, const Problem &problem) { return std::make_unique<Made>(executor, problem); }}};
  }

  // What `make` makes for the points of a shape, if there is a kernel of so many.
  template <class Make>
  static auto of_points(const Shape &shape, Make &&make)
    -> decltype(make(std::integral_constant<int, 5>(), std::integral_constant<int, 2>())) {
    const std::integral_constant<int, 2> two;
    const std::integral_constant<int, 3> three;
    switch (100 * shape.dimensions + shape.points()) {
    case 205:
      return make(std::integral_constant<int, 5>(), two);
    case 209:
      return make(std::integral_constant<int, 9>(), two);
    case 213:
      return make(std::integral_constant<int, 13>(), two);
    case 225:
      return make(std::integral_constant<int, 25>(), two);
    case 249:
      return make(std::integral_constant<int, 49>(), two);
    case 307:
      return make(std::integral_constant<int, 7>(), three);
    case 313:
      return make(std::integral_constant<int, 13>(), three);
    case 317:
      return make(std::integral_constant<int, 17>(), three);
    case 319:
      return make(std::integral_constant<int, 19>(), three);
    case 327:
      return make(std::integral_constant<int, 27>(), three);
    default:
      return {};
    }
  }
};

} // namespace

void start_plainly(Executor &executor, const Problem &problem, const double *b, double *out, const Step &step) {
  PlainStencil s = plain_stencil(problem);
  set_step(s, step);
  start_cells<<<plain_blocks(s), plain_threads, 0, static_cast<cudaStream_t>(executor.stream())>>>(b, out, s,
                                                                                                   problem.shape.dimensions);
  TCBOUND_LAUNCHED();
}

const Sweeper &stencil_iterated_plain() {
  static const PlainSweeper sweeper("iterated", "plain");
  return sweeper;
}

} // namespace tcbound::stencil
