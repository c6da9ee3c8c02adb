#pragma once

// t steps of a constant-coefficient stencil on a grid in few passes over memory: out = S^t in, or damped sweeps of S x = b.

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
  int centre() const; // which point is the cell itself, or -1
};

constexpr int most_points = 49; // of a shape that backends take

// Those of the benchmark: EBISU's names, with star2d3r and poisson (19 points).
const std::vector<Shape> &shapes();
const Shape              &find_shape(const std::string &name); // Error(invalid) lists the names
Shape                     star(int dimensions, int radius);
Shape                     box(int dimensions, int radius);

// Arrays hold extent[0] * extent[1] * extent[2] cells, x fastest (extent[2] is 1 in two dimensions). The outermost `ring` cells of an
// array keep their values in every step. ring is the stencil's radius, or 0: then all cells of the array change and what lies outside
// is 0 in every step. From the beginning of a line to that of the next it is `pitch` cells; what is between lines is nobody's: it may
// be read and overwritten, and what it holds never gets into a cell.
struct Grid {
  std::array<std::int64_t, 3> extent = {1, 1, 1};
  int                         ring = 0;
  std::int64_t                pitch = 0; // 0: extent[0]

  std::int64_t size() const { return extent[0] * extent[1] * extent[2]; }
  std::int64_t line() const { return pitch > 0 ? pitch : extent[0]; }
  std::int64_t stored() const { return line() * extent[1] * extent[2]; } // cells of an array, with what is between lines
  std::int64_t changing(int dimensions) const;                           // cells that a step computes
};

// The least pitch with which all lines of an array begin at multiples of 128 bytes, if the first one does.
constexpr std::int64_t aligned_pitch(std::int64_t cells) { return (cells + 15) / 16 * 16; }

struct Problem {
  Shape               shape;
  std::vector<double> weights; // one for each offset, in that order
  Grid                grid;
};

// A run of factors.size() damped sweeps of S x = b: step s makes x'_i = x_i + f_s (b_i - (S x)_i) of the cells that change, and of
// the outermost `ring` cells, whose rows are the multiple `ring_diagonal` of the identity,
// x'_i = x_i + f_s ring_scale (b_i - ring_diagonal x_i). With a ring of 0 what lies outside the array is 0 in every step.
//
// For the bits: with g = fma(-f, w, 1) for the weight w of the centre and g = -(f w) for the others, x' is the sum of the g x in
// the order of the shape (the first product rounded, then fused multiply-adds), and then fma(f, b, sum). In the ring
// r = f ring_scale and x' = fma(r, b, fma(-r, ring_diagonal, 1) x). A first step from 0 is f b, in the ring r b.
struct Relaxation {
  std::vector<double> factors; // one a step; omega / diagonal for damped Jacobi, Chebyshev's roots otherwise
  double              ring_diagonal = 1.0, ring_scale = 1.0;
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

  // out = what a relaxation makes of `in`, in stream order; null: of 0. Every cell of `out` is written. `out` must overlap neither
  // `in` nor b. Same bits whatever the depth.
  virtual void relax(Executor &executor, const double *in, const double *b, double *out, const Relaxation &relaxation) = 0;

  // Of relax(): each pass reads b and, unless it starts from 0, x, and writes x. A first step from 0 is part of the pass after it.
  virtual Work work_of_relaxation(int steps, bool zero_start) const = 0;

  virtual bool relaxes() const = 0; // else relax() and work_of_relaxation() are an Error(invalid) that says why
};

// What is left to choose when a sweep is built.
struct Settings {
  // Steps that a pass fuses; 0: those that take the least time by the roofline, of a relaxation the passes that do so together.
  // run() and relax() take passes of that depth or, where only the other has such, the next shallower ones.
  int      depth = 0;
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

  // Depths of passes that relax, ascending; none: sweeps of the shape do not relax, and why_no_relaxation() is a clause. A device
  // with little shared memory may lack some.
  virtual std::vector<int> relaxation_depths(const Shape &shape) const = 0;
  virtual std::string      why_no_relaxation(const Shape &shape) const = 0;

  // Throws Error on what check() refuses, a depth that neither depths() nor relaxation_depths() lists, and an MMA shape that the
  // device lacks.
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
