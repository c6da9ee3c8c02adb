#include "format.h"

namespace tcbound::grid {

std::string GridKernel::check(const Device &device, const Problem &problem) const {
  if (device.space != space())
    return space() == MemorySpace::host ? "it runs on the host and the device is " + device.name : "it needs a CUDA device";
  if (!problem.stencil) return "the matrix is not given as a stencil on a grid";
  return {};
}

Work GridKernel::predict(const Problem &problem, bool, bool accumulate) const { return problem.stencil->work(accumulate); }

void GridKernel::apply(Executor &executor, Format &format, const Product &product) const {
  auto &grid = static_cast<GridFormat &>(format);
  if (product.transpose) throw Error(ErrorCode::unsupported, name() + " multiplies with the transposed stencil instead");
  if (grid.stencil().extents.layered()) throw Error(ErrorCode::unsupported, name() + " needs the grid's layers");
  grid.multiply(executor, product, nullptr, Part::all);
}

} // namespace tcbound::grid
