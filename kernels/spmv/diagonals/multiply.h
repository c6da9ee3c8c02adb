#pragma once

// Device code of cuda_core.cu: a thread multiplies the rows of a node. For .cu files only.
//
// A warp's threads have neighbouring nodes of a grid line, so each load of a plane is one stretch of memory or a few. Values of
// the mirrored half are loaded a second time. A block's nodes are a tile of the grid, and entries come in pairs of offsets k and -k, so
// most of those loads follow or go before the first ones closely and find them in the first-level cache; those of nodes outside of the
// tile find them in the second-level cache, as tiles come in the order of the grid.

#include "row_kernels.h"

namespace tcbound::diagonals {
namespace {

struct Arguments {
  const void         *values;    // of type Value
  const std::uint8_t *irregular; // or null
  std::int64_t        nodes, stride;
  std::int64_t        below, above; // how far offsets reach
  const double       *x;
  double              alpha, beta;
  const double       *y;
  double             *z;
  std::int64_t        line, plane;            // nodes; tiles are within a line, those in a plane, those in the matrix
  int                 height, depth;          // lines of a tile, planes
  std::int64_t        step, step_in_plane;    // from a node of a thread to its next
  std::int64_t        reach;                  // of a tile from its first node to its last
  std::int64_t        next_x, next_y, next_z; // from a column to the next, of products with several
  int                 count;                  // of offsets
};

// Parameters of a kernel; how large they are is felt where products are short.
template <int most> struct ArgumentsOf : Arguments {
  Offset offsets[most]; // in the order in which entries are added up
};

template <class Value> __device__ double add_entry(Value value, double x, double sum) {
  return is_absent(value) ? sum : fma(static_cast<double>(value), x, sum);
}

// What a thread has of `many` nodes and `columns` products.
template <int node, int many, int columns> struct Nodes {
  std::int64_t p[many];
  bool         there[many];
  double       sums[many][columns][node];
};

// What is known of the number of offsets when compiling: that it is a batch, that it is some, nothing.
enum class Count { batch, batches, any };

// Adds the entries at the next `batch` offsets, as many as a thread loads at a time, from number `first` on. Where fewer are left, the
// last one is loaded again and not added: a branch around the load would cost more. With `edge` nodes may lie outside of the matrix.
template <class Value, int node, int many, int columns, int batch, Count count, bool edge, class A>
__device__ void add_offsets(const A &a, int first, Nodes<node, many, columns> &of) {
  const auto *at = static_cast<const Value *>(a.values);
  Value       values[batch][many][node][node];
  double      x[batch][many][columns][node];
#pragma unroll
  for (int u = 0; u < batch; ++u) {
    const Offset       offset = a.offsets[count == Count::any ? min(first + u, a.count - 1) : first + u];
    const std::int64_t next_row = offset.mirrored ? a.stride : node * a.stride;
    const std::int64_t next_column = offset.mirrored ? node * a.stride : a.stride;
#pragma unroll
    for (int r = 0; r < many; ++r) {
      const std::int64_t p = of.p[r];
      const bool         inside = !edge || (p + offset.other >= 0 && p + offset.other < a.nodes);
#pragma unroll
      for (int c = 0; c < node; ++c)
#pragma unroll
        for (int d = 0; d < node; ++d)
          values[u][r][c][d] = inside ? load(at + p + (offset.value + c * next_row + d * next_column)) : absent<Value>();
#pragma unroll
      for (int k = 0; k < columns; ++k)
#pragma unroll
        for (int d = 0; d < node; ++d)
          x[u][r][k][d] =
            inside ? __ldg(a.x + p * node + (k * a.next_x + static_cast<std::int64_t>(offset.other) * node + d)) : 0.0;
    }
  }
#pragma unroll
  for (int u = 0; u < batch; ++u)
#pragma unroll
    for (int r = 0; r < many; ++r)
#pragma unroll
      for (int k = 0; k < columns; ++k)
#pragma unroll
        for (int d = 0; d < node; ++d)
#pragma unroll
          for (int c = 0; c < node; ++c)
            if (count != Count::any || first + u < a.count)
              of.sums[r][k][c] = add_entry(values[u][r][c][d], x[u][r][k][d], of.sums[r][k][c]);
}

template <int node, int many, int columns> __device__ void store(const Arguments &a, const Nodes<node, many, columns> &of) {
#pragma unroll
  for (int r = 0; r < many; ++r)
#pragma unroll
    for (int c = 0; c < node; ++c) {
      const std::int64_t row = of.p[r] * node + c;
      if (!of.there[r] || (a.irregular && a.irregular[row])) continue;
#pragma unroll
      for (int k = 0; k < columns; ++k) {
        double result = a.alpha * of.sums[r][k][c];
        if (a.beta != 0.0) result += a.beta * a.y[row + k * a.next_y];
        a.z[row + k * a.next_z] = result;
      }
    }
}

} // namespace
} // namespace tcbound::diagonals
