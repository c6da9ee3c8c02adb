// Several steps of a stenciltcbound matrix a pass: whether its coefficients allow that, on all ranks, and the sweep that does it.
#include "stenciltcbound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <petsctime.h>

using tcbound::grid::Box;
using tcbound::grid::Extents;
using tcbound::grid::is_centre;
using tcbound::grid::Stencil;
using tcbound::stencil::Shape;

// What this rank's coefficients say of those of the whole grid.
struct Coefficients {
  bool plain = false;  // the same in all rows,
  bool ringed = false; // or so but for a ring of cells around the grid, whose rows are a multiple of the identity
  bool varies = false; // some have an array
  bool finite = true;
  std::vector<double> weights[2]; // plain, ringed: of each slot of the grid; NaN: this rank has no row that tells
  double              ring = std::numeric_limits<double>::quiet_NaN();
};

// Of a value that ranks know or do not know (NaN): the same number wherever it is known.
static bool Agree(double least, double minus_most) { return least == HUGE_VAL || least == -minus_most; }

// This rank's cells that are not within `radius` of where the grid ends.
static Box InsideOfRing(const TCBoundStencilGrid &g, PetscInt radius) {
  Box box;

  for (int d = 0; d < 3; d++) {
    const std::int64_t n = g.extents.n[d];
    box.end[d] = n;
    if (d >= g.dim) continue;
    box.begin[d] = std::min<std::int64_t>(n, std::max<std::int64_t>(0, radius - g.begin[d]));
    box.end[d] = std::max<std::int64_t>(box.begin[d], std::min<std::int64_t>(n, g.size[d] - radius - g.begin[d]));
  }
  return box;
}

// Whether a cell of the box has the slot's neighbour.
static bool AnyHas(const Extents &e, const tcbound::grid::Slot &slot, const Box &box) {
  for (int d = 0; d < 3; d++) {
    const std::int64_t begin = std::max<std::int64_t>(box.begin[d], -e.low[d] - slot.offset[d]),
                       end = std::min<std::int64_t>(box.end[d], e.n[d] + e.high[d] - slot.offset[d]);
    if (begin >= end) return false;
  }
  return true;
}

static std::vector<double> WeightsOf(const Mat_StencilTCBound *t, const Box &box) {
  std::vector<double> weights;

  for (std::size_t s = 0; s < t->grid.slots.size(); s++) {
    const int at = t->active.empty() ? -1 : t->active[s];
    weights.push_back(!AnyHas(t->grid.extents, t->grid.slots[s], box) ? std::numeric_limits<double>::quiet_NaN()
                      : at < 0                                        ? 0.0
                                                                      : t->stencil.constants[static_cast<std::size_t>(at)]);
  }
  return weights;
}

static Coefficients ReadCoefficients(const Mat_StencilTCBound *t, PetscInt radius) {
  const Stencil &s = t->stencil;
  const Box      inside = InsideOfRing(t->grid, radius), all = InsideOfRing(t->grid, 0);
  Coefficients   c;

  c.varies = s.array_count() > 0;
  c.finite = std::all_of(s.constants.begin(), s.constants.end(), [](double w) { return std::isfinite(w); }) &&
             std::all_of(s.patterns.begin(), s.patterns.end(), [](double w) { return std::isfinite(w); });
  c.plain = !c.varies && s.exceptions.empty();
  c.weights[0] = WeightsOf(t, all);
  c.weights[1] = WeightsOf(t, inside);
  if (c.varies) return c;
  if (inside.cells() == all.cells()) {
    c.ringed = c.plain;
  } else if (inside.cells() == 0) { // the ring alone: all rows are the same, and have the diagonal only
    c.ringed = c.plain && s.slots.size() == 1 && is_centre(s.slots[0]);
    if (c.ringed) c.ring = s.constants[0];
  } else {
    const Box core = s.core();
    c.ringed = std::equal(core.begin, core.begin + 3, inside.begin) && std::equal(core.end, core.end + 3, inside.end) &&
               s.diagonal_outside(core, &c.ring);
  }
  return c;
}

// Replaces this rank's weights (NaN: unknown) by those of all ranks, 0 where none knows; *same is false where they contradict.
static PetscErrorCode ReduceWeights(MPI_Comm comm, std::vector<double> *weights, bool *same) {
  const auto          n = weights->size();
  std::vector<double> bounds(2 * n);

  PetscFunctionBegin;
  for (std::size_t i = 0; i < n; i++) {
    const double w = (*weights)[i];
    bounds[i] = std::isnan(w) ? HUGE_VAL : w;
    bounds[n + i] = std::isnan(w) ? HUGE_VAL : -w;
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, bounds.data(), static_cast<PetscMPIInt>(2 * n), MPI_DOUBLE, MPI_MIN, comm));
  *same = true;
  for (std::size_t i = 0; i < n; i++) {
    *same = *same && Agree(bounds[i], bounds[n + i]);
    (*weights)[i] = bounds[i] == HUGE_VAL ? 0.0 : bounds[i];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Fills in diagonal and ring, and gives the weights of all cells but the ring's, by slots of the grid; or why_not.
static PetscErrorCode FindWeights(Mat A, TCBoundStencilSweeps *sweeps, std::vector<double> *weights) {
  Mat_StencilTCBound       *t = StencilOf(A);
  const TCBoundStencilGrid &g = t->grid;
  MPI_Comm                  comm = PetscObjectComm((PetscObject)A);
  PetscInt                  radius = 1;
  bool                      same[2];

  PetscFunctionBegin;
  for (int d = 0; d < 3; d++) radius = std::max<PetscInt>(radius, std::max(t->stencil.reach_low(d), t->stencil.reach_high(d)));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &radius, 1, MPIU_INT, MPI_MAX, comm));
  sweeps->radius = radius;
  Coefficients c = ReadCoefficients(t, radius);
  int          says[4] = {c.plain, c.ringed, !c.varies, c.finite};
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, says, 4, MPI_INT, MPI_MIN, comm));
  c.weights[1].push_back(c.ring);
  for (int k = 0; k < 2; k++) PetscCall(ReduceWeights(comm, &c.weights[k], &same[k]));
  const int which = says[0] && same[0] ? 0 : 1;
  if (!says[2])
    sweeps->why_not = "coefficients vary";
  else if (!says[3])
    sweeps->why_not = "coefficients are not finite";
  else if (!says[0] && !says[1])
    sweeps->why_not = "rows differ, and not as a ring of " + std::to_string(radius) +
                      " cells around the grid whose rows are one multiple of the identity";
  else if (!same[which] || !says[which])
    sweeps->why_not = "ranks have different coefficients";
  else if (which == 1 && g.dim == 1)
    sweeps->why_not =
      "rows at the ends of a grid of one dimension differ"; // kernels take it as a plane, all of which a ring would be
  sweeps->ring = which == 1;
  if (which == 1) sweeps->ring_diagonal = c.weights[1].back();
  weights->assign(c.weights[which].begin(), c.weights[which].begin() + static_cast<std::ptrdiff_t>(g.slots.size()));
  for (std::size_t s = 0; s < g.slots.size(); s++)
    if (is_centre(g.slots[s])) sweeps->diagonal = (*weights)[s];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static std::array<int, 3> OffsetOf(const tcbound::grid::Slot &slot) { return {slot.offset[0], slot.offset[1], slot.offset[2]}; }

static bool Has(const Shape &shape, const std::array<int, 3> &offset) {
  return std::find(shape.offsets.begin(), shape.offsets.end(), offset) != shape.offsets.end();
}

// Of the named shapes that have all points with a weight the one that relaxes by the deepest passes, of fewest points; on the host,
// which takes any, just these points.
static Shape FindShape(const TCBoundStencilGrid &g, const std::vector<double> &weights, const TCBoundStencilSweeps &sweeps) {
  const int    dimensions = g.dim == 3 ? 3 : 2;
  const Shape *best = nullptr;
  Shape        exact;

  exact.dimensions = dimensions;
  exact.radius = static_cast<int>(sweeps.radius);
  for (std::size_t s = 0; s < g.slots.size(); s++)
    if (weights[s] != 0.0 || is_centre(g.slots[s])) exact.offsets.push_back(OffsetOf(g.slots[s]));
  exact.name = std::to_string(exact.points()) + " points in " + std::to_string(g.dim) + "D";
  const auto deepest = [&](const Shape &shape) {
    const std::vector<int> depths = sweeps.sweeper->relaxation_depths(shape);
    return depths.empty() ? 0 : depths.back();
  };
  const auto better = [&](const Shape &shape) {
    if (!best) return true;
    const int depth = deepest(shape), before = deepest(*best);
    return depth != before ? depth > before : shape.points() < best->points();
  };
  for (const Shape &shape : tcbound::stencil::shapes()) {
    if (shape.dimensions != dimensions || shape.radius < exact.radius || (sweeps.ring && shape.radius != exact.radius))
      continue;
    if (std::all_of(exact.offsets.begin(), exact.offsets.end(), [&](const auto &o) { return Has(shape, o); }) && better(shape))
      best = &shape;
  }
  const bool any = sweeps.executor->space() == tcbound::MemorySpace::host;
  return best && (!any || best->points() == exact.points()) ? *best : exact;
}

// How deep layers may be: they and the steps in them are extra work, at most as much as this rank's own, if one step is not more.
static PetscErrorCode LimitSteps(Mat A, TCBoundStencilSweeps *sweeps) {
  const TCBoundStencilGrid &g = StencilOf(A)->grid;
  PetscInt                  steps = sweeps->steps;

  PetscFunctionBegin;
  for (; steps > 1; steps--) {
    std::int64_t cells = 1;
    for (int d = 0; d < g.dim; d++) {
      const PetscInt n = static_cast<PetscInt>(g.extents.n[d]), layers = steps * sweeps->radius;
      cells *= n + PetscMin(layers, g.begin[d]) + PetscMin(layers, g.size[d] - g.begin[d] - n);
    }
    if (cells <= 2 * g.extents.cells()) break;
  }
  PetscCallMPI(MPI_Allreduce(&steps, &sweeps->steps, 1, MPIU_INT, MPI_MIN, PetscObjectComm((PetscObject)A)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Builds the sweep of this rank's cells with their layers.
static PetscErrorCode BuildSweep(Mat A, const Shape &shape, const std::vector<double> &weights, TCBoundStencilSweeps *sweeps) {
  Mat_StencilTCBound        *t = StencilOf(A);
  const TCBoundStencilGrid  &g = t->grid;
  tcbound::stencil::Problem  problem;
  tcbound::stencil::Settings settings;

  PetscFunctionBegin;
  problem.shape = shape;
  problem.weights.assign(shape.offsets.size(), 0.0);
  for (std::size_t s = 0; s < g.slots.size(); s++) {
    const auto at = std::find(shape.offsets.begin(), shape.offsets.end(), OffsetOf(g.slots[s]));
    if (at != shape.offsets.end()) problem.weights[static_cast<std::size_t>(at - shape.offsets.begin())] = weights[s];
  }
  problem.grid.ring = sweeps->ring ? shape.radius : 0;
  settings.depth = static_cast<int>(t->settings.steps);
  int deepest = 0;
  for (const std::vector<int> &depths : {sweeps->sweeper->depths(shape), sweeps->sweeper->relaxation_depths(shape)})
    for (const int depth : depths)
      if (!settings.depth || depth <= settings.depth) deepest = std::max(deepest, depth);
  for (const int depth : sweeps->sweeper->relaxation_depths(shape))
    if (depth <= deepest) sweeps->relaxation_depth = depth;
  // A depth that there is none of makes build() tell of those that there are.
  if (sweeps->exchanges && (!settings.depth || deepest == settings.depth)) {
    sweeps->steps = deepest;
    if (!settings.depth) PetscCall(LimitSteps(A, sweeps));
    PetscCall(TCBoundStencilGridMakeExchange(g, A->rmap, sweeps->steps * sweeps->radius, &t->exchange));
    for (int d = 0; d < 3; d++) problem.grid.extent[static_cast<std::size_t>(d)] = t->exchange.size[d];
  } else {
    std::copy_n(g.extents.n, 3, problem.grid.extent.begin());
  }
  TCBoundCallCXX(sweeps->sweep = sweeps->sweeper->build(*sweeps->executor, problem, settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Make(Mat A, TCBoundStencilSweeps *sweeps) {
  Mat_StencilTCBound       *t = StencilOf(A);
  const TCBoundStencilGrid &g = t->grid;
  std::vector<double>       weights;
  Shape                     shape;

  PetscFunctionBegin;
  sweeps->executor = t->executor;
  if (g.dof > 1) sweeps->why_not = "cells have " + std::to_string(g.dof) + " components";
  for (int d = 0; d < g.dim; d++) {
    if (g.periodic[d]) sweeps->why_not = "the grid is periodic";
    sweeps->exchanges = sweeps->exchanges || g.split[d].size() > 2;
  }
  if (!sweeps->why_not.empty()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(FindWeights(A, sweeps, &weights));
  if (!sweeps->why_not.empty()) PetscFunctionReturn(PETSC_SUCCESS);
  const char *name =
    sweeps->executor->space() == tcbound::MemorySpace::host ? "stencil/iterated/host" : "stencil/iterated/cuda_core";
  sweeps->sweeper = tcbound::stencil::find_sweeper(name);
  PetscCheck(sweeps->sweeper, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No sweeps %s", name);
  TCBoundCallCXX(shape = FindShape(g, weights, *sweeps));
  sweeps->why_not = sweeps->sweeper->check(sweeps->executor->device(), shape);
  int there = sweeps->why_not.empty(), all;
  PetscCallMPI(MPI_Allreduce(&there, &all, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)A)));
  if (!all && there) sweeps->why_not = "another rank's device cannot";
  if (!sweeps->why_not.empty()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(BuildSweep(A, shape, weights, sweeps));
  if (!sweeps->sweep->relaxes()) {
    sweeps->why_not_relaxing = sweeps->sweeper->why_no_relaxation(shape);
    if (sweeps->why_not_relaxing.empty()) sweeps->why_not_relaxing = "the device has too little shared memory";
  }
  there = sweeps->why_not_relaxing.empty();
  PetscCallMPI(MPI_Allreduce(&there, &all, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)A)));
  if (!all && there) sweeps->why_not_relaxing = "another rank's device cannot";
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Relaxations need more of the coefficients than powers do, which in turn must not scale a ring.
static void Restrict(TCBoundStencilSweeps *sweeps) {
  const auto inverse_is_a_number = [](double x) { return x != 0.0 && std::isfinite(1.0 / x); };

  if (!sweeps->why_not.empty()) sweeps->why_not_relaxing = sweeps->why_not;
  if (sweeps->why_not_relaxing.empty() &&
      !(inverse_is_a_number(sweeps->diagonal) && inverse_is_a_number(sweeps->ring_diagonal)))
    sweeps->why_not_relaxing = "the diagonal has no inverse";
  if (sweeps->why_not.empty() && sweeps->ring && sweeps->ring_diagonal != 1.0)
    sweeps->why_not = "rows around the grid are not the identity's";
}

PetscErrorCode MatStencilTCBoundGetSweeps(Mat A, TCBoundStencilSweeps **sweeps) {
  Mat_StencilTCBound *t = StencilOf(A);
  PetscObjectState    state;
  PetscLogDouble      start, end;

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundUpdate(A)); // which drops sweeps if products move to other memory
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  // The state changes on all ranks at once; values set on some ranks alone are followed by an assembly.
  if (!t->sweeps || t->sweeps->state != state || t->sweeps->executor != t->executor) {
    PetscCall(PetscTime(&start));
    std::unique_ptr<TCBoundStencilSweeps> made;
    t->sweeps.reset();
    TCBoundCallCXX(made = std::make_unique<TCBoundStencilSweeps>());
    made->state = state;
    PetscCall(Make(A, made.get()));
    Restrict(made.get());
    t->sweeps = std::move(made);
    PetscCall(PetscTime(&end));
    const TCBoundStencilSweeps &s = *t->sweeps;
    PetscCall(PetscInfo(A, "Several steps a pass: powers %s; relaxations %s (found in %g s)\n", s.describe(s.why_not).c_str(),
                        s.describe(s.why_not_relaxing).c_str(), (double)(end - start)));
  }
  *sweeps = t->sweeps.get();
  PetscFunctionReturn(PETSC_SUCCESS);
}
