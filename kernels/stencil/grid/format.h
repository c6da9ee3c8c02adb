#pragma once

// What the grid format's two sides share.

#include "kernel.h"
#include "stencil.h"

namespace tcbound::grid {

// z = x + factor D^-1 (b - A x) with the diagonal D of A: a damped Jacobi sweep, or several, each with a factor. inverse: the elements of
// D^-1, or null, and then factors have been divided by the diagonal, which is constant. z is another vector than x and b.
struct Relaxation {
  int           sweeps = 1;
  double        factors[2] = {1.0, 1.0};
  const double *inverse = nullptr;
  const double *x = nullptr; // null: 0, for several sweeps only
  const double *b = nullptr;
  double       *z = nullptr;
};

class GridFormat : public Format {
public:
  // halved: of symmetric coefficients one half is stored.
  explicit GridFormat(const Stencil &stencil, bool halved = false) : stencil_(&stencil), halved_(halved) {
    for (const Part part : {Part::all, Part::interior, Part::shell})
      for (const bool accumulate : {false, true})
        work_[static_cast<int>(part)][accumulate] = stencil.work(accumulate, part, halved);
  }

  const char *name() const override { return "grid"; }

  // x are the rows of the cells that the process owns; ghosts is the grid with its layers (extents.ghosted()), of which only layers
  // are read. May be null where there are none.
  virtual void multiply(Executor &executor, const Product &product, const double *ghosts, Part part) = 0;

  // How many sweeps relax() can do at once, of a whole grid without layers and with D^-1 at hand.
  virtual int most_sweeps() const { return 1; }
  // In one pass over memory; ghosts and part as in multiply().
  virtual void relax(Executor &executor, const Relaxation &relaxation, const double *ghosts, Part part) = 0;

  // Coefficients are found anew, so there is nothing to refill: new values make a new stencil.
  void refill(Executor &, const double *, MemorySpace) override {
    throw Error(ErrorCode::unsupported, "a stencil of other coefficients is another format: build it");
  }

  Work           work(bool, bool accumulate) const override { return work(accumulate, Part::all); }
  const Work    &work(bool accumulate, Part part) const { return work_[static_cast<int>(part)][accumulate]; }
  Work           work_of_relaxation(const Relaxation &relaxation, Part part) const;
  std::string    describe() const override { return stencil_->describe(halved_); }
  std::int64_t   coefficient_bytes() const { return stencil_->coefficient_bytes(halved_); }
  const Stencil &stencil() const { return *stencil_; }
  bool           halved() const { return halved_; }

protected:
  // Whether relaxations with D^-1 at hand do not read D.
  virtual bool spares_diagonal() const { return false; }

private:
  const Stencil *stencil_; // must outlive the format
  bool           halved_;
  Work           work_[3][2];
};

// What kernels of this format have in common: they multiply with the stencil of the problem.
class GridKernel : public Kernel {
public:
  using Kernel::Kernel;

  std::string check(const Device &device, const Problem &problem) const override;
  Work        predict(const Problem &problem, bool transpose, bool accumulate) const override;

  // Without layers, and not transposed: a transposed stencil is a stencil of its own, whose rows need their neighbours' coefficients.
  void apply(Executor &executor, Format &format, const Product &product) const override;
};

} // namespace tcbound::grid
