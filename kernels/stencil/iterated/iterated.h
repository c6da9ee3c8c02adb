#pragma once

// t steps of a constant-coefficient stencil on a grid in few passes over memory: out = S^t in.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../../executor.h"
#include "../../mma_shape.h"
#include "../../work.h"

namespace tcbound::stencil {

// Which cells around a cell count, all within `radius` of it in each direction: offsets (x, y, z) in lexicographic order of
// (z, y, x), which is the order of summation.
struct Shape {
  std::string                     name;
  int                             dimensions = 2, radius = 1;
  std::vector<std::array<int, 3>> offsets;

  int points() const { return static_cast<int>(offsets.size()); }
};

constexpr int most_points = 49; // of a shape that backends take

// Those of the benchmark: EBISU's names, with star2d3r and poisson (19 points).
const std::vector<Shape> &shapes();
const Shape              &find_shape(const std::string &name); // Error(invalid) lists the names
Shape                     star(int dimensions, int radius);
Shape                     box(int dimensions, int radius);

// Arrays hold extent[0] * extent[1] * extent[2] cells, x fastest, without padding (extent[2] is 1 in two dimensions). The
// outermost `ring` cells of an array keep their values in every step. ring is the stencil's radius, or 0: then all cells of the
// array change and what lies outside is 0 in every step.
struct Grid {
  std::array<std::int64_t, 3> extent = {1, 1, 1};
  int                         ring = 0;

  std::int64_t size() const { return extent[0] * extent[1] * extent[2]; }
  std::int64_t changing(int dimensions) const; // cells that a step computes
};

struct Problem {
  Shape               shape;
  std::vector<double> weights; // one for each offset, in that order
  Grid                grid;
};

// A problem as one executor advances it.
class Sweep {
public:
  virtual ~Sweep() = default;

  // out = S^steps in, in stream order; every cell of `out` is written. They must not overlap. Unless same_bits() says otherwise,
  // results have the bits of single steps that add the points in the order of the shape, with fused multiply-adds.
  virtual void run(Executor &executor, const double *in, double *out, int steps) = 0;

  virtual int  depth() const = 0; // steps that one pass fuses
  virtual bool same_bits() const { return true; }

  // Of run(): each pass reads and writes each cell once.
  virtual Work work(int steps) const = 0;

  virtual std::string mma() const { return {}; } // as Format::mma()
};

// What is left to choose when a sweep is built.
struct Settings {
  int      depth = 0;                 // steps that a pass fuses; 0: those that take the least time by the roofline
  MmaShape mma = MmaShape::automatic; // of kernels on tensor cores
  double   balance = 7.8;             // for that: FP64 FLOP/s of CUDA cores over bytes/s of memory (the default: an H200's)
};

// A way to advance stencils, such as stencil/iterated/cuda_core: one object per row TCBOUND_SWEEP of list.def.
class Sweeper {
public:
  Sweeper(const char *format, const char *backend)
    : backend_(backend), name_(std::string("stencil/") + format + "/" + backend) {}
  virtual ~Sweeper() = default;

  const std::string &name() const { return name_; }
  const std::string &backend() const { return backend_; }

  virtual MemorySpace space() const = 0;
  virtual std::string check(const Device &device, const Shape &shape) const = 0; // empty, or why it cannot, as a clause
  // Those that build() takes, ascending; none where it has no kernel of that instruction for the shape.
  virtual std::vector<int> depths(const Shape &shape, MmaShape mma = MmaShape::automatic) const = 0;

  // Throws Error on what check() refuses, a depth that depths() does not list and an MMA shape that the device lacks.
  virtual std::unique_ptr<Sweep> build(Executor &executor, const Problem &problem, const Settings &settings = {}) const = 0;

private:
  std::string backend_, name_;
};

const std::vector<const Sweeper *> &all_sweepers();
const Sweeper                      *find_sweeper(const std::string &name); // or null

// Throws Error(invalid) when the parts of a problem contradict each other.
void check_problem(const Problem &problem);

// Work of `steps` steps, each pass over memory advancing up to `depth` of them; issued: operations a changing cell and step.
Work sweep_work(const Problem &problem, int steps, int depth, double issued_per_step);

} // namespace tcbound::stencil
