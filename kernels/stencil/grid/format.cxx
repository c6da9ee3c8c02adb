#include "format.h"

namespace tcbound::grid {

std::string GridKernel::check(const Device &device, const Problem &problem) const {
  if (device.space != space())
    return space() == MemorySpace::host ? "it runs on the host and the device is " + device.name : "it needs a CUDA device";
  if (!problem.stencil) return "the matrix is not given as a stencil on a grid";
  return {};
}

Work GridKernel::predict(const Problem &problem, bool, bool accumulate) const { return problem.stencil->work(accumulate); }

Work GridFormat::work_of_relaxation(const Relaxation &relaxation, Part part) const {
  Work         work = this->work(relaxation.x != nullptr, part);
  std::int64_t rows = 0;
  bool         diagonal_varies = false;
  for (const Box &box : stencil_->boxes(part)) rows += box.cells() * stencil_->extents.dof;
  for (std::size_t s = 0; s < stencil_->slots.size(); ++s)
    diagonal_varies = diagonal_varies || (is_centre(stencil_->slots[s]) && !stencil_->arrays[s].empty());
  work.useful_flops = relaxation.sweeps * (work.useful_flops + 4 * rows); // b - A x, times D^-1 and the factor, added to x
  if (!relaxation.x)
    work.useful_flops -= work.useful_flops / relaxation.sweeps - 2 * rows; // the first: b times D^-1 and the factor
  work.issued_flops = work.useful_flops;
  if (relaxation.inverse && !(spares_diagonal() && part != Part::shell)) work.bytes += 8 * rows;
  if (relaxation.inverse && !diagonal_varies) work.compulsory_bytes += 8 * rows;
  return work;
}

void GridKernel::apply(Executor &executor, Format &format, const Product &product) const {
  auto &grid = static_cast<GridFormat &>(format);
  if (product.transpose) throw Error(ErrorCode::unsupported, name() + " multiplies with the transposed stencil instead");
  if (grid.stencil().extents.layered()) throw Error(ErrorCode::unsupported, name() + " needs the grid's layers");
  grid.multiply(executor, product, nullptr, Part::all);
}

} // namespace tcbound::grid
