#pragma once

// Products with several columns of x at once, of matrices whose rows come in nodes: a template over who multiplies. For .cu files
// only.
//
// One warp a group (layout.h), chunk by chunk of the columns of x. The 8 or 16 columns of a chunk lie side by side (csr/pack_rows.h),
// so that the x of an entry is 64 or 128 bytes in one place. Memory delivers the matrix for the first chunk; for others it is still
// in the L2.
//
// Both kinds of cores load the same elements of the same arrays in the same steps, each element once a chunk, but each in the lanes
// in which it wants its operands: a lane of CUDA cores has an entry's place in all rows of the node and all columns of the chunk,
// while an instruction wants one value and one or two elements of x in a lane.
//
// Math has
//   columns                          of x in a chunk
//   min_blocks                       that a multiprocessor must be able to hold
//   Sums                             what the lane keeps of the sums of a group
//   taken                            steps at a time
//   add<ends>(source, t, ...)        those from t on, whose columns are at hand; `ends`: or fewer, the last of them the group's last
//   store(arguments, group, ...)     the results

#include "multiply.h"

namespace tcbound::fragments {
namespace {

struct ColumnArguments : Arguments { // x is packed
  std::int64_t inputs;               // rows of x
  Columns      by;
};

// A group's slots by step, lane and slice. With nodes of 2 a lane has slots of two nodes: halves.
template <int node> struct NodeSource {
  static constexpr int halves = columns_of_lane(node);

  Stream              stream;
  Group               group;
  const double       *values;
  const std::uint8_t *columns;

  __device__ NodeSource(const Arguments &a, const Group &group_, bool again) : stream(again), group(group_) {
    const std::uint8_t *data = a.data + unit * static_cast<std::int64_t>(group.at);
    values = reinterpret_cast<const double *>(data);
    columns = data + value_bytes_of(stored_lanes(group, node), node, sizeof(double));
  }

  template <bool ends> __device__ bool has(int t) const { return !ends || t < static_cast<int>(group.steps); }

  template <bool ends> __device__ Place place(int t, int lane) const {
    return place_of(group, node, ends && t + 1 == static_cast<int>(group.steps), lane);
  }

  // The matrix's columns of the lane's slots in some steps from t on; -1: none.
  template <int steps> __device__ void columns_of(int t, int lane, int half, int (&to)[steps]) const {
#pragma unroll
    for (int u = 0; u < steps; ++u) to[u] = column_of(t + u, lane, half);
  }
  __device__ int column_of(int t, int lane, int half) const {
    const Place p = place<true>(t, lane);
    if (!has<true>(t) || !p.kept) return no_wide_column;
    const int at = (t * warp_lanes + p.index) * halves + half;
    if (group.wide) return static_cast<int>(stream.load(reinterpret_cast<const uint1 *>(columns) + at).x);
    const unsigned short narrow = stream.load(reinterpret_cast<const ushort1 *>(columns) + at).x;
    return narrow == no_narrow_column ? no_wide_column : group.base + narrow;
  }

  __device__ const double *values_of(int t) const { return settled(values + t * (warp_lanes * values_of_lane(node))); }

  // One value of step t, whose values are at `from`.
  template <bool ends> __device__ double value(const double *from, int t, int lane, int slice) const {
    const Place p = place<ends>(t, lane);
    if (!has<ends>(t) || !p.kept) return 0.0;
    return stream.load(from + value_index(slice, node, sizeof(double), p));
  }

  // Those of the rows of a node, in to[0 ... node - 1].
  template <bool ends>
  __device__ void values_of_node(const double *values_of_step, int t, int lane, int half, double *to) const {
    const Place p = place<ends>(t, lane);
    const bool  in = has<ends>(t) && p.kept;
#pragma unroll
    for (int q = 0; q < node; q += 2) {
      const double *from = values_of_step + value_index(node == 2 ? 2 * half : q, node, sizeof(double), p);
      if (q + 1 == node) {
        to[q] = in ? stream.load(from) : 0.0;
      } else {
        const double2 pair = in ? stream.load(reinterpret_cast<const double2 *>(from)) : double2{0.0, 0.0};
        to[q] = pair.x;
        to[q + 1] = pair.y;
      }
    }
  }
};

// Has L2 fetch a group whose steps the warp will wait for one by one.
__device__ void fetch_ahead(const ColumnArguments &a, const Group &group, int lane) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if (lane != 0 || group.steps == 0) return;
  const std::uint8_t *data = a.data + unit * static_cast<std::int64_t>(group.at);
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(data)),
               "r"(static_cast<unsigned>(bytes_of(group, stored_lanes(group, node_of(group)), sizeof(double)))));
#endif
}

// Stores the sum of column k of x and a row of the group, if there are such.
template <int node>
__device__ void store_column(const ColumnArguments &a, const Group &group, int row, std::int64_t k, double sum) {
  if (row >= static_cast<int>(group.rows) || k >= a.by.count) return;
  const std::int32_t at = number_of<node>(a, group, row);
  double             result = a.alpha * sum;
  if (a.beta != 0.0) result += a.beta * a.y[k * a.by.y + at];
  a.z[k * a.by.z + at] = result;
}

template <class Math, int node> __global__ void __launch_bounds__(block, Math::min_blocks) multiply_columns(ColumnArguments a) {
  const int  lane = static_cast<int>(threadIdx.x % warp_lanes);
  auto       g = static_cast<std::int32_t>(blockIdx.x * block_warps * a.rounds + threadIdx.x / warp_lanes);
  const auto end = min(a.group_count, static_cast<std::int32_t>((blockIdx.x + 1) * block_warps * a.rounds));
  for (; g < end; g += block_warps) {
    const Group            group = load_group(a, g);
    const NodeSource<node> source(a, group, a.by.count > Math::columns || NodeSource<node>::halves > 1);
    const int              steps = static_cast<int>(group.steps);
    fetch_ahead(a, group, lane);
    for (std::int64_t first = 0; first < a.by.count; first += Math::columns) {
#pragma unroll 1
      for (int half = 0; half < NodeSource<node>::halves; ++half) {
        int of_chunk = lane;
        asm volatile("" : "+r"(of_chunk)); // keeps all places of the last step and of results from being held for all chunks
        const Math          math(group, of_chunk, half, a.x + first * a.inputs);
        typename Math::Sums sums{};
        int                 t = 0, column[Math::taken], next[Math::taken];
        source.columns_of(0, of_chunk, half, column);
        for (; t + Math::taken < steps; t += Math::taken) {
          source.columns_of(t + Math::taken, of_chunk, half, next); // x waits for them
          math.template add<false>(source, t, column, sums);
#pragma unroll
          for (int u = 0; u < Math::taken; ++u) column[u] = next[u];
        }
        if (t < steps) math.template add<true>(source, t, column, sums);
        math.store(a, group, first, sums);
      }
    }
  }
}

template <class Math, int node> void launch_columns_of(Executor &executor, const ColumnArguments &arguments) {
  ColumnArguments a = arguments;
  const int       in_round = executor.device().multiprocessors * Math::min_blocks * block_warps;
  a.rounds = std::clamp(a.group_count / (8 * in_round), 1, arguments.rounds);
  const int in_block = block_warps * a.rounds;
  multiply_columns<Math, node><<<static_cast<unsigned>((a.group_count + in_block - 1) / in_block), block, 0,
                                 static_cast<cudaStream_t>(executor.stream())>>>(a);
  TCBOUND_LAUNCHED();
}

// Math: a template over the rows of a node and the nodes that share their columns.
template <template <int, int> class Math>
void launch_columns(Executor &executor, DeviceMatrix &m, const double *packed, std::int64_t inputs, const Product &product,
                    const Columns &by, int most_rounds) {
  if (m.groups.size() == 0) return;
  ColumnArguments a{};
  a.groups = m.groups.data();
  a.data = m.data.data();
  a.sorted_nodes = m.sorted_nodes.data();
  a.group_count = static_cast<std::int32_t>(m.groups.size());
  a.rounds = most_rounds;
  a.x = packed;
  a.y = product.y;
  a.z = product.z;
  a.alpha = product.alpha;
  a.beta = product.beta;
  a.inputs = inputs;
  a.by = by;
  if (m.siblings == 2 && m.node == 4) return launch_columns_of<Math<4, 2>, 4>(executor, a);
  if (m.siblings == 2) return launch_columns_of<Math<3, 2>, 3>(executor, a);
  if (m.node == 4) return launch_columns_of<Math<4, 1>, 4>(executor, a);
  if (m.node == 3) return launch_columns_of<Math<3, 1>, 3>(executor, a);
  launch_columns_of<Math<2, 1>, 2>(executor, a);
}

} // namespace
} // namespace tcbound::fragments
