// The twin of columns_tensor_core.cu, by multiply-adds: a lane has an entry's place in all rows of a node and 8 columns of x: the
// sums of 16 leave registers for too few warps.
#include "columns.h"
#include "multiply_columns.h"

namespace tcbound::fragments {
namespace {

// Lanes of siblings share the columns of x and take the rows of both.
template <int node, int siblings> struct CudaCoresOfColumns {
  static constexpr int columns = 8, taken = 1, min_blocks = 4;
  static constexpr int rows = node * siblings, width = columns / siblings;
  static constexpr int kept = width / 4; // columns of a lane, after the sums of four lanes have been added

  struct Sums {
    double of[rows][width];
  };

  int           lane, half, row_class;
  int           sibling; // the lane's among its siblings
  const double *x;       // the lane's columns of it

  __device__ CudaCoresOfColumns(const Group &group, int lane_, int half_, const double *x_of_chunk)
    : lane(lane_), half(half_), row_class(static_cast<int>(group.row_class)),
      sibling(siblings == 1 ? 0 : (lane_ >> static_cast<int>(group.row_class)) & 1), x(settled(x_of_chunk + sibling * width)) {}

  template <bool ends>
  __device__ void add(const NodeSource<node> &source, int t, const int (&column)[taken], Sums &sums) const {
    double        v[rows], w[width];
    const double *values = source.values_of(t);
#pragma unroll
    for (int s = 0; s < siblings; ++s)
      source.template values_of_node<ends>(values, t, lane + ((s - sibling) << row_class), half, v + s * node);
    __syncwarp(); // as in multiply.h
    const double *from = x + static_cast<std::int64_t>(column[0]) * columns;
#pragma unroll
    for (int j = 0; j < width; j += 2) {
      const double2 pair = column[0] < 0 ? double2{0.0, 0.0} : __ldg(reinterpret_cast<const double2 *>(from + j));
      w[j] = pair.x;
      w[j + 1] = pair.y;
    }
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int j = 0; j < width; ++j) sums.of[r][j] = fma(v[r], w[j], sums.of[r][j]);
  }

  // Half of the sums change hands between neighbours, then a quarter; what further lanes of a node have is added as it is.
  __device__ void store(const ColumnArguments &a, const Group &group, std::int64_t first, const Sums &sums) const {
    const bool odd = lane % 2 != 0, upper = lane % 4 >= 2;
    const int  column = sibling * width + (odd ? width / 2 : 0) + (upper ? kept : 0);
    const int  first_node = (lane >> row_class) - sibling + half * (warp_lanes >> row_class);
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      double mine[width / 2];
#pragma unroll
      for (int j = 0; j < width / 2; ++j) {
        const double low = sums.of[r][j], high = sums.of[r][j + width / 2];
        mine[j] = (odd ? high : low) + __shfl_xor_sync(all_lanes, odd ? low : high, 1);
      }
#pragma unroll
      for (int j = 0; j < kept; ++j) {
        double sum = (upper ? mine[j + kept] : mine[j]) + __shfl_xor_sync(all_lanes, upper ? mine[j] : mine[j + kept], 2);
        for (int distance = 4; distance < 1 << row_class; distance *= 2) sum += __shfl_xor_sync(all_lanes, sum, distance);
        if ((lane & ((1 << row_class) - 1)) < 4) store_column<node>(a, group, first_node * node + r, first + column + j, sum);
      }
    }
  }
};

} // namespace

void multiply_columns_by_cuda_cores(Executor &executor, DeviceMatrix &m, const double *packed, std::int64_t inputs,
                                    const Product &product, const Columns &by, int rounds) {
  launch_columns<CudaCoresOfColumns>(executor, m, packed, inputs, product, by, rounds);
}

} // namespace tcbound::fragments
