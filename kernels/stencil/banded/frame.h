#pragma once

// Device code of banded_passes.h: the cells near those that keep their values, step by step. Composed weights are right only
// where no cell on the way keeps its value; a frame inside the ring, (T - 1) R wide, is computed here. For .cu files only.

#include <cstdint>

#include <cuda_runtime.h>

#include "../iterated/plain.h"

namespace tcbound::stencil {

constexpr int frame_threads = 128, frame_length = 32; // cells of the frame's side that a block computes

// Block b computes a piece of the upper, lower, left or right side: `length` by `width` cells, and all that they depend on.
template <int points, int T, int R>
__global__ void __launch_bounds__(frame_threads)
  step_frame(const double *__restrict__ in, double *__restrict__ out, const PlainStencil s) {
  constexpr int     width = (T - 1) * R, reach = T * R, most = (frame_length + 2 * reach) * (width + 2 * reach);
  __shared__ double cells[2][most];
  const int         nx = s.extent[0], ny = s.extent[1];
  const int         pieces_x = (nx + frame_length - 1) / frame_length, pieces_y = (ny + frame_length - 1) / frame_length;
  const int         b = static_cast<int>(blockIdx.x);
  const bool        flat = b < 2 * pieces_x; // upper and lower side
  const int         side = flat ? b / pieces_x : (b - 2 * pieces_x) / pieces_y;
  const int         piece = (flat ? b % pieces_x : (b - 2 * pieces_x) % pieces_y) * frame_length;
  const int         across = side == 0 ? s.ring : (flat ? ny : nx) - s.ring - width;
  const int         x_begin = flat ? piece : across, y_begin = flat ? across : piece;
  const int         w = flat ? frame_length : width, h = flat ? width : frame_length;
  const int         pitch = w + 2 * reach, lines = h + 2 * reach, x_first = x_begin - reach, y_first = y_begin - reach;
  const auto        exists = [&](int x, int y) { return x >= 0 && x < nx && y >= 0 && y < ny; };

  for (int i = threadIdx.x; i < pitch * lines; i += frame_threads) {
    const int x = x_first + i % pitch, y = y_first + i / pitch;
    cells[0][i] = exists(x, y) ? in[static_cast<std::int64_t>(y) * s.pitch + x] : 0.0;
  }
#pragma unroll 1
  for (int step = 1; step <= T; ++step) {
    __syncthreads();
    const double *from = cells[(step - 1) & 1];
    double       *to = cells[step & 1];
    const int     off = step * R, inner = pitch - 2 * off;
    for (int i = threadIdx.x; i < inner * (lines - 2 * off); i += frame_threads) {
      const int at = (off + i / inner) * pitch + off + i % inner, x = x_first + at % pitch, y = y_first + at / pitch;
      double    sum = from[at];
      if (x >= s.ring && x < nx - s.ring && y >= s.ring && y < ny - s.ring) {
        sum = s.weight[0] * from[at + s.offset[0][1] * pitch + s.offset[0][0]];
#pragma unroll
        for (int p = 1; p < points; ++p) sum = fma(s.weight[p], from[at + s.offset[p][1] * pitch + s.offset[p][0]], sum);
      }
      to[at] = sum;
      if (step == T && exists(x, y)) out[static_cast<std::int64_t>(y) * s.pitch + x] = sum;
    }
  }
}

inline unsigned frame_blocks(const PlainStencil &s) {
  const auto pieces = [](int cells) { return static_cast<unsigned>((cells + frame_length - 1) / frame_length); };
  return 2 * pieces(s.extent[0]) + 2 * pieces(s.extent[1]);
}

} // namespace tcbound::stencil
