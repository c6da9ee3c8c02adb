// One step by the kernels of ../grid: a product with a matrix whose rows in the ring are the identity's.
#include "../grid/device_view.h"
#include "../grid/marcher.h"
#include "pass.h"

namespace tcbound::stencil {
namespace {

class DirectStep final : public Pass {
public:
  DirectStep(Executor &executor, const Problem &problem) {
    const Shape                  &shape = problem.shape;
    std::int64_t                  cells[3];
    std::vector<grid::MarchPoint> points;
    for (int p = 0; p < shape.points(); ++p) {
      const auto &o = shape.offsets[p];
      points.push_back({{o[0], o[1], o[2]}, problem.weights[p]});
    }
    grid_.dof = 1;
    exceptions_.diagonal_outside = problem.grid.ring > 0;
    exceptions_.diagonal = 1.0;
    for (int d = 0; d < 3; ++d) {
      const int n = static_cast<int>(problem.grid.extent[d]), ring = d < shape.dimensions ? problem.grid.ring : 0;
      cells[d] = grid_.n[d] = all_.end[d] = n;
      exceptions_.core.begin[d] = ring;
      exceptions_.core.end[d] = n - ring;
    }
    grid_.pitch = static_cast<int>(problem.grid.line());
    marcher_ = grid::make_marcher(executor, cells, points, {0, 0, shape.dimensions, true});
    if (problem.grid.size() > 0) redundancy_ = marcher_->redundancy(cells);
  }

  int    depth() const override { return 1; }
  double redundancy() const override { return redundancy_; }

  void run(Executor &executor, const double *in, double *out) override {
    marcher_->launch(executor.stream(), grid_, {1.0, 0.0, in, nullptr, nullptr, out}, exceptions_, all_);
  }

private:
  grid::DeviceGrid               grid_{};
  grid::DeviceExceptions         exceptions_{};
  grid::DeviceBox                all_{};
  std::unique_ptr<grid::Marcher> marcher_;
  double                         redundancy_ = 1.0;
};

} // namespace

std::vector<PassMaker> single_steps(const Shape &shape) {
  if (std::vector<PassMaker> rows = wide_rows(shape); !rows.empty()) return rows;
  const bool is_star = shape.offsets == star(shape.dimensions, shape.radius).offsets;
  const bool is_box = shape.offsets == box(shape.dimensions, shape.radius).offsets;
  const auto directly = [](Executor &executor, const Problem &p) { return std::make_unique<DirectStep>(executor, p); };
  if (shape.dimensions == 2 ? shape.radius <= 3 && (is_star || is_box) : is_star && shape.radius <= 2) return {{1, directly}};
  std::vector<PassMaker> all = marches(shape);
  for (PassMaker &march : all)
    march.make = [otherwise = march.make, directly](Executor &executor, const Problem &p) -> std::unique_ptr<Pass> {
      if (grid::is_framed(p.grid.extent, p.grid.ring)) return directly(executor, p);
      return otherwise(executor, p);
    };
  return all;
}

} // namespace tcbound::stencil
