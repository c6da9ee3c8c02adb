#pragma once

// Device code of plain.cu: one step, one thread a cell, as one writes a stencil first. The baseline of bench/stencil and, having
// nothing in common with the pipelines, their check. For .cu files only.

#include <algorithm>
#include <cstdint>

#include <cuda_runtime.h>

#include "pass.h"

namespace tcbound::stencil {

struct PlainStencil {
  int          extent[3], ring, radius, pitch;
  std::int64_t distance[most_points]; // of neighbours, in cells
  int          offset[most_points][3];
  double       weight[most_points];
  double       source, ring_weight, ring_source; // of relaxations, as in Step
};

inline PlainStencil plain_stencil(const Problem &problem) {
  PlainStencil s = {};
  s.ring = problem.grid.ring;
  s.radius = problem.shape.radius;
  s.pitch = static_cast<int>(problem.grid.line());
  for (int d = 0; d < 3; ++d) s.extent[d] = static_cast<int>(problem.grid.extent[d]);
  for (int p = 0; p < problem.shape.points(); ++p) {
    const auto &o = problem.shape.offsets[p];
    for (int d = 0; d < 3; ++d) s.offset[p][d] = o[d];
    s.distance[p] = (static_cast<std::int64_t>(o[2]) * s.extent[1] + o[1]) * s.pitch + o[0];
    s.weight[p] = problem.weights[p];
  }
  return s;
}

inline void set_step(PlainStencil &s, const Step &step) {
  std::copy(step.weights.begin(), step.weights.end(), s.weight);
  s.source = step.source;
  s.ring_weight = step.ring_weight;
  s.ring_source = step.ring_source;
}

// The step of a relaxation from 0, of all backends on the device (plain.cu).
void start_plainly(Executor &executor, const Problem &problem, const double *b, double *out, const Step &step);

constexpr int plain_threads = 256;

template <int points, int dimensions, bool relaxes>
__device__ __forceinline__ void step_cell(const double *__restrict__ in, const double *__restrict__ b, double *__restrict__ out,
                                          const PlainStencil &s, int x, int y, int z) {
  const int          place[3] = {x, y, z};
  const std::int64_t i = (static_cast<std::int64_t>(z) * s.extent[1] + y) * s.pitch + x;
  bool               fixed = false, inner = true;
#pragma unroll
  for (int d = 0; d < dimensions; ++d) {
    fixed = fixed || place[d] < s.ring || place[d] >= s.extent[d] - s.ring;
    inner = inner && place[d] >= s.radius && place[d] < s.extent[d] - s.radius;
  }
  double sum = 0.0;
  if (fixed) {
    sum = relaxes ? s.ring_weight * in[i] : in[i];
  } else if (inner) {
    sum = s.weight[0] * in[i + s.distance[0]];
#pragma unroll
    for (int p = 1; p < points; ++p) sum = fma(s.weight[p], in[i + s.distance[p]], sum);
  } else {
#pragma unroll 1
    for (int p = 0; p < points; ++p) {
      bool exists = true;
      for (int d = 0; d < dimensions; ++d)
        exists = exists && place[d] + s.offset[p][d] >= 0 && place[d] + s.offset[p][d] < s.extent[d];
      const double value = exists ? in[i + s.distance[p]] : 0.0;
      sum = p == 0 ? s.weight[p] * value : fma(s.weight[p], value, sum);
    }
  }
  out[i] = relaxes ? fma(fixed ? s.ring_source : s.source, b[i], sum) : sum;
}

// Blocks of 256 cells of a line; the other dimensions of the launch run over lines and planes, as many as it may have. b: only
// where it relaxes.
template <int points, int dimensions, bool relaxes>
__global__ void __launch_bounds__(plain_threads)
  step_plainly(const double *__restrict__ in, const double *__restrict__ b, double *__restrict__ out, const PlainStencil s) {
  const int x = blockIdx.x * plain_threads + threadIdx.x;
  if (x >= s.extent[0]) return;
  const int lines = s.extent[1], planes = s.extent[2];
  for (int z = blockIdx.z; z < planes; z += gridDim.z)
    for (int y = blockIdx.y; y < lines; y += gridDim.y) step_cell<points, dimensions, relaxes>(in, b, out, s, x, y, z);
}

} // namespace tcbound::stencil
