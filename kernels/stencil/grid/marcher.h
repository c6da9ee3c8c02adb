#pragma once

// Products with constant coefficients on a box of cells (march.h, direct.h) for the host. No CUDA here.

#include <memory>
#include <vector>

#include "executor.h"

namespace tcbound::grid {

struct DeviceBox;
struct DeviceExceptions;
struct DeviceGrid;
struct DeviceProduct;
struct DeviceRelaxation;
struct TwoSweeps;

struct MarchPoint {
  int    offset[3];
  double value;
};

struct MarchChoices {
  int  columns = 0;        // of a tile of a march of a box of width 1 in 3D: 32 or 64; 0: what suits the grid
  int  planes = 0;         // that a block marches through; 0: as many as fill the device
  int  dimensions = 0;     // of the stencil; 0: those in which the grid has more than one cell
  bool any_values = false; // also coefficients that are not finite: neighbours that do not exist are 0, and multiplied
};

// Whether a grid of three dimensions whose outer cells, `ring` on each side, have rows of the diagonal is computed by kernels that need not
// ask whether neighbours exist (framed.h): some cells have other rows, in at least 4 planes.
template <class Extent> constexpr bool is_framed(const Extent &n, int ring) {
  return ring > 0 && n[0] > 2 * ring && n[1] > 2 * ring && n[2] >= 2 * ring + 4;
}

// The kernel of a stencil and its coefficients.
class Marcher {
public:
  virtual ~Marcher() = default;
  virtual void launch(void *stream, DeviceGrid grid, const DeviceProduct &p, DeviceExceptions exceptions, DeviceBox area) = 0;
  // False, and nothing is launched, where there is no such kernel.
  virtual bool relax(void *stream, DeviceGrid grid, const DeviceRelaxation &p, DeviceExceptions exceptions, DeviceBox area);
  // Whether relax() needs D^-1 and then does not read D.
  virtual bool spares_diagonal() const { return false; }
  // Of a whole grid without layers: whether there is a kernel for two sweeps, which needs D^-1.
  virtual bool can_sweep_twice() const { return false; }
  virtual void sweep_twice(void *stream, DeviceGrid grid, const TwoSweeps &p, DeviceExceptions exceptions);
  // Operations over those needed where all n cells are computed.
  virtual double redundancy(const std::int64_t (&n)[3]) const = 0;
};

// Null where there is no such kernel: coefficients must be finite, since neighbours that do not exist count as 0, and near. Points of the
// kernel's shape (a star or a box) that the stencil lacks have the coefficient 0, so that an infinite x there gives NaN. Sums of direct
// kernels have the bits of fused multiply-adds in the order of (dz, dy, dx), the first product alone. n: cells of the grid in its
// dimensions, at least 1.
std::unique_ptr<Marcher> make_marcher(Executor &executor, const std::int64_t (&n)[3], const std::vector<MarchPoint> &points,
                                      const MarchChoices &choices);

} // namespace tcbound::grid
