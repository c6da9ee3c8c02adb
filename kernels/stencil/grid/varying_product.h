#pragma once

// Products with coefficients that vary on a box of cells (varying.h) for the host. No CUDA here.

#include "marcher.h"
#include "values.h"

namespace tcbound::grid {

// Whether there is such a kernel: one component, cells no further than one away. Of symmetric coefficients it takes one half.
bool has_varying_kernel(const Stencil &stencil);

// values: fill_values() on the device, which must outlive it.
std::unique_ptr<Marcher> make_varying(Executor &executor, const Stencil &stencil, const Values &layout, const double *values);

} // namespace tcbound::grid
