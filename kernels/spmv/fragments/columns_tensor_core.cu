// Products of fragments with several columns by MMA instructions: 8 or 16 columns of x are the rows of the instruction's A, the
// rows of one node, up to 8, the columns of its B. Nodes with fewer rows leave the other columns of B zero.
#include "columns.h"
#include "mma.h"
#include "multiply_columns.h"

namespace tcbound::fragments {
namespace {

// Instruction: one of mma.h. A unit is what an instruction takes of a step: the entries of 4 neighbouring lanes and of those of their
// siblings.
template <class Instruction, int at_a_time, int node, int siblings> struct TensorCoresOfColumns {
  static constexpr int columns = at_a_time, eights = columns / 8;
  static constexpr int units = warp_lanes / 4 / siblings;
  static constexpr int taken = Instruction::steps;                    // by one instruction
  static constexpr int at_once = node == 2 && taken == 4 ? 4 : units; // registers do not suffice for more
  static constexpr int min_blocks = eights == 1 ? 4 : (siblings == 2 || taken == 1 ? 3 : 2);

  struct Sums {
    typename Instruction::template Sums<true> of[units];
  };

  int           lane, half, row_class;
  const double *x; // its first column for the lane

  __device__ TensorCoresOfColumns(const Group &group, int lane_, int half_, const double *x_of_chunk)
    : lane(lane_), half(half_), row_class(static_cast<int>(group.row_class)), x(settled(x_of_chunk + lane_ / 4)) {}

  // Lanes of a unit, of the first sibling.
  __device__ int first_lane(int unit_number) const {
    if (siblings == 1) return 4 * unit_number;
    const int of_node = row_class - least_fragment_class; // log2 of its units
    return (unit_number >> of_node << (row_class + 1)) + 4 * (unit_number & ((1 << of_node) - 1));
  }

  template <bool ends>
  __device__ void add(const NodeSource<node> &source, int t, const int (&column)[taken], Sums &sums) const {
    const int  k = lane % 4, row = lane / 4, sibling = siblings == 1 ? 0 : row / node, slice = half * 2 + row - sibling * node;
    const bool in = row < node * siblings;
#pragma unroll
    for (int first = 0; first < units; first += at_once) {
      double v[taken][at_once];
#pragma unroll
      for (int u = 0; u < taken; ++u) {
        const double *from = source.values_of(t + u);
#pragma unroll
        for (int i = 0; i < at_once; ++i) {
          const int at = first_lane(first + i) + (sibling << row_class) + k;
          v[u][i] = in ? source.template value<ends>(from, t + u, at, slice) : 0.0;
        }
      }
      __syncwarp(); // as in multiply.h
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        double a[taken][2], b[taken][2];
#pragma unroll
        for (int u = 0; u < taken; ++u) {
          const int     of_entry = __shfl_sync(all_lanes, column[u], first_lane(first + i) + k);
          const double *from = x + static_cast<std::int64_t>(of_entry) * columns;
#pragma unroll
          for (int eight = 0; eight < eights; ++eight) a[u][eight] = of_entry < 0 ? 0.0 : __ldg(from + 8 * eight);
          b[u][0] = b[u][1] = v[u][i];
        }
        Instruction::template multiply_add<eights, true>(sums.of[first + i], a, b);
      }
    }
  }

  // A lane has the sums of column lane / 4 of x, and of the 8th after it, with two rows of each unit's nodes.
  __device__ void store(const ColumnArguments &a, const Group &group, std::int64_t first, Sums &sums) const {
    const int of_node = row_class - least_fragment_class;
#pragma unroll
    for (int distance = 1; distance < units; distance *= 2)
      if (distance < 1 << of_node)
#pragma unroll
        for (int i = 0; i + distance < units; i += 2 * distance)
#pragma unroll
          for (int e = 0; e < 2 * eights; ++e)
            Instruction::element(sums.of[i], e / 2, e % 2) += Instruction::element(sums.of[i + distance], e / 2, e % 2);
#pragma unroll
    for (int i = 0; i < units; ++i) {
      if ((i & ((1 << of_node) - 1)) != 0) continue;
      const int first_node = (i >> of_node) * siblings + half * (warp_lanes >> row_class);
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int row = lane % 4 * 2 + e;
#pragma unroll
        for (int eight = 0; eight < eights; ++eight)
          if (row < node * siblings)
            store_column<node>(a, group, first_node * node + row, first + 8 * eight + lane / 4,
                               Instruction::element(sums.of[i], eight, e));
      }
    }
  }
};

template <int node, int siblings> using EightsByM8n8k4 = TensorCoresOfColumns<M8n8k4, 8, node, siblings>;
template <int node, int siblings> using ByM8n8k4 = TensorCoresOfColumns<M8n8k4, 16, node, siblings>;
template <int node, int siblings> using ByM16n8k4 = TensorCoresOfColumns<M16n8k4, 16, node, siblings>;
template <int node, int siblings> using ByM16n8k8 = TensorCoresOfColumns<M16n8k8, 16, node, siblings>;
template <int node, int siblings> using ByM16n8k16 = TensorCoresOfColumns<M16n8k16, 16, node, siblings>;

} // namespace

void multiply_columns_by_tensor_cores(Executor &executor, MmaShape mma, DeviceMatrix &m, const double *packed,
                                      std::int64_t inputs, const Product &product, const Columns &by, int rounds) {
  switch (mma) {
  case MmaShape::m16n8k4:
    return launch_columns<ByM16n8k4>(executor, m, packed, inputs, product, by, rounds);
  case MmaShape::m16n8k8:
    return launch_columns<ByM16n8k8>(executor, m, packed, inputs, product, by, rounds);
  case MmaShape::m16n8k16:
    return launch_columns<ByM16n8k16>(executor, m, packed, inputs, product, by, rounds);
  default:
    if (columns_at_a_time(mma, by.count) == 8)
      return launch_columns<EightsByM8n8k4>(executor, m, packed, inputs, product, by, rounds);
    return launch_columns<ByM8n8k4>(executor, m, packed, inputs, product, by, rounds);
  }
}

} // namespace tcbound::fragments
