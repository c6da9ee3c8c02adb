// Sweeps by the plain kernel: a pass a step.
#include "cuda/error.h"
#include "pass.h"
#include "plain.h"

namespace tcbound::stencil {
namespace {

template <int points, int dimensions> class PlainPass final : public Pass {
public:
  explicit PlainPass(const Problem &problem) : stencil_(plain_stencil(problem)) {}

  int    depth() const override { return 1; }
  double redundancy() const override { return 1.0; }

  void run(Executor &executor, const double *in, double *out) override {
    const auto ceil_divide = [](int a, int b) { return static_cast<unsigned>((a + b - 1) / b); };
    const int  most = 65535; // blocks of a grid in y and z
    const dim3 blocks(ceil_divide(stencil_.extent[0], plain_threads), std::min(stencil_.extent[1], most),
                      std::min(stencil_.extent[2], most));
    step_plainly<points, dimensions>
      <<<blocks, plain_threads, 0, static_cast<cudaStream_t>(executor.stream())>>>(in, out, stencil_);
    TCBOUND_LAUNCHED();
  }

private:
  const PlainStencil stencil_;
};

template <int points, int dimensions> std::unique_ptr<Pass> make(Executor &, const Problem &problem) {
  return std::make_unique<PlainPass<points, dimensions>>(problem);
}

class PlainSweeper final : public PassSweeper {
public:
  using PassSweeper::PassSweeper;
  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Shape &shape) const override {
    if (device.space != MemorySpace::cuda) return "it needs a CUDA device";
    return maker(shape) ? "" : "no plain kernel has " + std::to_string(shape.points()) + " points";
  }

protected:
  std::vector<PassMaker> makers(const Shape &shape, MmaShape) const override {
    return maker(shape) ? std::vector<PassMaker>{{1, maker(shape)}} : std::vector<PassMaker>();
  }

private:
  using Make = std::unique_ptr<Pass> (*)(Executor &, const Problem &);

  static Make maker(const Shape &shape) {
    switch (100 * shape.dimensions + shape.points()) {
    case 205:
      return make<5, 2>;
    case 209:
      return make<9, 2>;
    case 213:
      return make<13, 2>;
    case 225:
      return make<25, 2>;
    case 249:
      return make<49, 2>;
    case 307:
      return make<7, 3>;
    case 313:
      return make<13, 3>;
    case 317:
      return make<17, 3>;
    case 319:
      return make<19, 3>;
    case 327:
      return make<27, 3>;
    default:
      return nullptr;
    }
  }
};

} // namespace

const Sweeper &stencil_iterated_plain() {
  static const PlainSweeper sweeper("iterated", "plain");
  return sweeper;
}

} // namespace tcbound::stencil
