#pragma once

#include "format.h"

namespace tcbound::grid {

// z = alpha A x + beta y for the cells of a box; ghosts as in GridFormat::multiply().
void multiply(const Stencil &stencil, const Product &product, const double *ghosts, const Box &box);

// The sweep for these cells.
void relax(const Stencil &stencil, const Relaxation &relaxation, const double *ghosts, const Box &box);

struct HostVariant {
  const char *name;
  void (*multiply)(const Stencil &, const Product &, const double *, const Box &);
  void (*relax)(const Stencil &, const Relaxation &, const double *, const Box &);
};
// Those that this processor can run, the best first; all give the same results up to rounding.
const std::vector<HostVariant> &host_variants();

} // namespace tcbound::grid
