#pragma once

// The kernel of spmv/fragments, a template over who multiplies: everything but the arithmetic is the same. For .cu files only.
//
// One warp a group (layout.h). It loads the columns and values of a few steps, then x at those columns, then multiplies. The
// matrix is read once, past the L1 and first to leave the L2, so that x stays there.
//
// Math has
//   Numbers                          one of numbers.h; v and x below are Reals of it, x not yet brought to what the values are
//   depth(node)                      steps whose loads are on their way together, 2 or 4
//   min_blocks(node)                 that a multiprocessor must be able to hold: what registers are left for a thread
//   min_ragged_blocks                the same where groups are ragged
//   Sums<node>                       what the lane keeps of the sums of its slices
//   add<node, steps>(sums, v, x)     the products of so many steps
//   collect<node>(sums, lane)        in lane 4 i + j, the sum of fragment row i of slice j; from there on sums are FP64
//   packed<lanes>(values, x, lane)   of one step, in the first lane of `lanes` lanes that share a row: the row's sum in each slice

#include <algorithm>
#include <cstring>
#include <type_traits>

#include <cuda_runtime.h>

#include "cuda/error.h"
#include "device_matrix.h"
#include "kernel.h"
#include "numbers.h"
#include "steps.h"

namespace tcbound::fragments {
namespace {

constexpr int      block = 128;
constexpr int      block_warps = block / warp_lanes;
constexpr unsigned all_lanes = 0xffffffffU;

struct Arguments {
  const Group         *groups;
  const std::uint8_t  *data;
  const std::int32_t  *sorted_nodes, *long_begin;
  const RaggedLengths *ragged;
  const std::uint8_t  *ragged_places;
  double              *parts;
  unsigned            *arrivals;
  std::int32_t         group_count, rows;
  int                  rounds; // groups that a warp takes, one after another
  const double        *x, *y;
  double              *z;
  double               alpha, beta;
};

// What is read once: it goes past the L1, and L2 gives it up first. Volatile, so that loads stay in the order in which they are
// written: all that need not wait for another come first.
struct Stream {
  std::uint64_t policy;

  // again: it will be read once more soon.
  __device__ explicit Stream(bool again = false) {
    if (again)
      asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
    else
      asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  }
  __device__ double2 load(const double2 *from) const {
    double2 to;
    asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v2.f64 {%0, %1}, [%2], %3;"
                 : "=d"(to.x), "=d"(to.y)
                 : "l"(from), "l"(policy));
    return to;
  }
  __device__ double load(const double *from) const {
    double to;
    asm volatile("ld.global.L1::no_allocate.L2::cache_hint.f64 %0, [%1], %2;" : "=d"(to) : "l"(from), "l"(policy));
    return to;
  }
  // 2, 4, 8 or 16 bytes of columns.
  __device__ ushort1 load(const ushort1 *from) const {
    ushort1 to;
    asm volatile("ld.global.L1::no_allocate.L2::cache_hint.u16 %0, [%1], %2;" : "=h"(to.x) : "l"(from), "l"(policy));
    return to;
  }
  __device__ uint1 load(const uint1 *from) const {
    uint1 to;
    asm volatile("ld.global.L1::no_allocate.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(to.x) : "l"(from), "l"(policy));
    return to;
  }
  __device__ uint2 load(const uint2 *from) const {
    uint2 to;
    asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v2.u32 {%0, %1}, [%2], %3;"
                 : "=r"(to.x), "=r"(to.y)
                 : "l"(from), "l"(policy));
    return to;
  }
  __device__ uint4 load(const uint4 *from) const {
    uint4 to;
    asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(to.x), "=r"(to.y), "=r"(to.z), "=r"(to.w)
                 : "l"(from), "l"(policy));
    return to;
  }
};

// A lane's columns as they are stored, as words: 4, or 2 or 1 of nodes.
template <class Stored> __device__ unsigned word(const Stored &stored, int k) {
  unsigned words[(sizeof(Stored) + 3) / 4] = {};
  memcpy(words, &stored, sizeof stored);
  return words[k];
}
// How columns are stored, and how x is read at them.
template <int columns> struct NarrowColumns {
  using Stored = std::conditional_t<columns == 4, uint2, std::conditional_t<columns == 2, uint1, ushort1>>;
  // x counts from the group's base.
  static __device__ double gather(const double *x, const Stored &stored, int k) {
    const unsigned pair = word(stored, k / 2), column = k % 2 == 0 ? pair & 0xffffU : pair >> 16;
    return column == no_narrow_column ? 0.0 : __ldg(x + column);
  }
};
struct MediumColumns { // of ragged groups
  struct Stored {
    uint2 low;
    uint1 high;
  };
  static __device__ double gather(const double *x, const Stored &stored, int k) {
    // Two bytes of the one word, one of the other; the last is masked.
    const unsigned bytes = (k % 2 == 0 ? 0x0010U : 0x0032U) | static_cast<unsigned>(4 + k) << 8;
    const unsigned column = __byte_perm(word(stored.low, k / 2), stored.high.x, bytes) & 0xffffffU;
    return column == no_medium_column ? 0.0 : __ldg(x + column);
  }
};
template <int columns> struct WideColumns {
  using Stored = std::conditional_t<columns == 4, uint4, std::conditional_t<columns == 2, uint2, uint1>>;
  static __device__ double gather(const double *x, const Stored &stored, int k) {
    const auto column = static_cast<std::int32_t>(word(stored, k));
    return column < 0 ? 0.0 : __ldg(x + column);
  }
};

// Keeps the compiler from taking an address apart again, so that what follows counts from it in one instruction.
template <class T> __device__ const T *settled(const T *pointer) {
  asm("" : "+l"(pointer));
  return pointer;
}

// What is read of the values of a lane at once, `count` of so many bytes, and their k-th.
template <int bytes, int count> struct Values {
  using Stored =
    std::conditional_t<bytes * count == 16, uint4,
                       std::conditional_t<bytes * count == 8, uint2, std::conditional_t<bytes * count == 4, uint1, ushort1>>>;
  Stored stored{};

  __device__ float operator[](int k) const {
    if (bytes == 4) return __uint_as_float(word(stored, k));
    const unsigned pair = word(stored, k / 2);
    return __uint_as_float(k % 2 == 0 ? pair << 16 : pair & 0xffff0000U);
  }
};
template <int count> struct Values<8, count> {
  using Stored = std::conditional_t<count == 2, double2, double>;
  Stored stored{};

  __device__ double operator[](int k) const {
    double all[count];
    memcpy(all, &stored, sizeof stored);
    return all[k];
  }
};

// Where a lane reads a group.
template <class Columns, class Numbers, int node, class Steps_> struct Source {
  using Steps = Steps_;
  using Stored = typename Columns::Stored;
  using Real = typename Numbers::Real;
  static constexpr int at_once = lanes_side_by_side(node, Numbers::bytes) ? slices : 2; // values
  static constexpr int rest = values_of_lane(node) - at_once;                           // of a lane
  using First = Values<Numbers::bytes, at_once>;
  static constexpr int  share = slices / columns_of_lane(node); // slots with the same column
  static constexpr bool medium = std::is_same_v<Columns, MediumColumns>;
  using Low = std::conditional_t<medium, uint2, Stored>;

  Stream                        stream;
  const typename First::Stored *values;  // of the lane in step 0, the first that are read at once
  const Low                    *columns; // the same
  const uint1                  *high;    // the upper parts of medium ones
  const double                 *x;
  Steps                         steps;
  int                           lane;

  __device__ Source(const Arguments &a, const Group &group, const Steps &steps_, int lane_) : steps(steps_), lane(lane_) {
    const std::uint8_t *data = a.data + unit * static_cast<std::int64_t>(group.at);
    values = settled(reinterpret_cast<const typename First::Stored *>(data) + lane);
    const std::uint8_t *after = data + steps.value_bytes(group, node, Numbers::bytes);
    columns = settled(reinterpret_cast<const Low *>(after) + lane);
    if constexpr (medium)
      high = settled(reinterpret_cast<const uint1 *>(data + steps.plan(Numbers::bytes).high_columns()) + lane);
    x = settled(a.x + group.base);
  }

  // Values and x of some steps.
  template <int count> __device__ void load(const Step (&of)[count], Real (&v)[count][slices], Real (&w)[count][slices]) const {
    Stored stored[count];
#pragma unroll
    for (int u = 0; u < count; ++u) {
      memset(&stored[u], 0xff, sizeof(Stored)); // none
      if (of[u].kept) {
        const int at = of[u].before + of[u].shift;
        if constexpr (medium) {
          stored[u].low = stream.load(columns + at);
          stored[u].high = stream.load(high + at);
        } else {
          stored[u] = stream.load(columns + at);
        }
      }
    }
#pragma unroll
    for (int u = 0; u < count; ++u) {
      using Rest = Values<Numbers::bytes, rest == 1 ? 1 : 2>;
      First first;
      Rest  second;
      if (of[u].kept) {
        const auto *from = values + (of[u].before * values_of_lane(node) / at_once + of[u].shift);
        first.stored = stream.load(from);
        if constexpr (rest == 1)
          second.stored =
            stream.load(reinterpret_cast<const typename Rest::Stored *>(from) + (2 * of[u].lanes - (lane + of[u].shift)));
        else if constexpr (rest == 2)
          second.stored = stream.load(from + of[u].lanes);
      }
#pragma unroll
      for (int j = 0; j < slices; ++j)
        v[u][j] = j < at_once ? first[j % at_once] : (j - at_once < rest ? second[j % 2] : Real(0));
    }
    __syncwarp(); // keeps the compiler from putting the loads above behind those below, which wait for columns
#pragma unroll
    for (int u = 0; u < count; ++u)
#pragma unroll
      for (int k = 0; k < slices / share; ++k) {
        w[u][k * share] = static_cast<Real>(Columns::gather(x, stored[u], k));
#pragma unroll
        for (int j = 1; j < share; ++j) w[u][k * share + j] = w[u][k * share];
      }
  }
};

template <class Math, int node, class Source> __device__ double sum_fragment_rows(const Source &source) {
  typename Math::template Sums<node> sums{};
  source.steps.template for_each<Math::depth(node)>([&](const auto &some) {
    constexpr int                count = sizeof some.of / sizeof some.of[0];
    typename Math::Numbers::Real v[count][slices], w[count][slices];
    source.load(some.of, v, w);
    Math::template add<node, count>(sums, v, w);
  });
  return Math::template collect<node>(sums, source.lane);
}

// The matrix's row that a row of the group is.
template <int node> __device__ std::int32_t number_of(const Arguments &a, const Group &group, int row) {
  return group.in_order ? group.row + row : __ldg(a.sorted_nodes + group.row + row / node) * node + row % node;
}

__device__ void store(const Arguments &a, std::int32_t at, double sum) {
  double result = a.alpha * sum;
  if (a.beta != 0.0) result += a.beta * a.y[at];
  a.z[at] = result;
}

// Rows of one or two entries.
template <class Math, int lanes, class Source>
__device__ void multiply_packed(const Arguments &a, const Group &group, const Source &source) {
  typename Math::Numbers::Real v[1][slices] = {}, w[1][slices] = {};
  double                       sums[slices] = {};
  if (group.steps > 0) {
    source.load(source.steps.template take<1, true>(0).of, v, w);
    Math::template packed<lanes>(v[0], w[0], source.lane, sums);
  }
  if (source.lane % lanes != 0) return;
#pragma unroll
  for (int j = 0; j < slices; ++j) {
    const int row = source.lane / lanes + warp_lanes / lanes * j;
    if (row < static_cast<int>(group.rows)) store(a, number_of<1>(a, group, row), sums[j]);
  }
}

// The sum of a part of a long row, in lane 0; the last warp to come adds the parts up, from the first to the last.
__device__ void store_part(const Arguments &a, const Group &group, std::int32_t g, int lane, double sum) {
  const std::int32_t begin = a.long_begin[group.row], end = a.long_begin[group.row + 1];
  bool               last = false;
  if (lane == 0) {
    a.parts[g] = sum;
    __threadfence(); // the part must be seen before its arrival is
    last = atomicAdd(a.arrivals + group.row, 1U) + 1 == static_cast<unsigned>(end - begin);
    __threadfence();
  }
  if (!__shfl_sync(all_lanes, last, 0)) return;
  double total = 0.0;
  for (std::int32_t p = begin + lane; p < end; p += warp_lanes) total += __ldcg(a.parts + p);
#pragma unroll
  for (int distance = warp_lanes / 2; distance > 0; distance /= 2) total += __shfl_xor_sync(all_lanes, total, distance);
  if (lane != 0) return;
  store(a, number_of<1>(a, group, 0), total);
  a.arrivals[group.row] = 0; // for the next product
}

template <class Math, int node, class Columns>
__device__ void multiply_group(const Arguments &a, const Group &group, std::int32_t g, int lane) {
  const Source<Columns, typename Math::Numbers, node, EvenSteps> source(a, group, EvenSteps(group, node, lane), lane);
  if constexpr (node == 1) {
    if (group.row_class == 0) return multiply_packed<Math, 1>(a, group, source);
    if (group.row_class == 1) return multiply_packed<Math, 2>(a, group, source);
  }
  constexpr int      apart = sum_distance(node);
  const int          lanes = lanes_of_sum(group.row_class), row = row_of_sum(group.row_class, node, lane);
  const bool         has_row = node != 3 || lane % slices != 3;
  const bool         stores = has_row && (lane / apart & (lanes - 1)) == 0 && row < static_cast<int>(group.rows);
  const std::int32_t at = stores ? number_of<node>(a, group, row) : 0; // on its way while the rows are summed
  double             sum = sum_fragment_rows<Math, node>(source);
  for (int distance = apart; distance < apart * lanes; distance *= 2) sum += __shfl_xor_sync(all_lanes, sum, distance);
  if (node == 1 && group.rows == 0) return store_part(a, group, g, lane, sum);
  if (stores) store(a, at, sum);
}

__device__ Group load_group(const Arguments &a, std::int32_t g) {
  const int4 words = __ldg(reinterpret_cast<const int4 *>(a.groups) + g);
  Group      group;
  memcpy(&group, &words, sizeof group);
  return group;
}

// Calls f(group's number, lane) for those that the warp takes. A block takes groups that follow one another: rows that are near in the
// matrix find their neighbours' x in the L1.
template <class F> __device__ void for_each_group(const Arguments &a, F &&f) {
  const int  lane = static_cast<int>(threadIdx.x % warp_lanes);
  auto       g = static_cast<std::int32_t>(blockIdx.x * block_warps * a.rounds + threadIdx.x / warp_lanes);
  const auto end = min(a.group_count, static_cast<std::int32_t>((blockIdx.x + 1) * block_warps * a.rounds));
  for (; g < end; g += block_warps) f(g, lane);
}

template <class Math, int node> __global__ void __launch_bounds__(block, Math::min_blocks(node)) multiply(Arguments a) {
  for_each_group(a, [&](std::int32_t g, int lane) {
    const Group group = load_group(a, g);
    if (group.wide)
      multiply_group<Math, node, WideColumns<columns_of_lane(node)>>(a, group, g, lane);
    else
      multiply_group<Math, node, NarrowColumns<columns_of_lane(node)>>(a, group, g, lane);
  });
}

template <class Math, class Columns, int sorted>
__device__ double sum_ragged(const Arguments &a, const Group &group, RaggedLengths lengths, int lane) {
  const Source<Columns, typename Math::Numbers, 1, RaggedSteps<sorted>> source(a, group, {group, lengths, lane}, lane);
  return sum_fragment_rows<Math, 1>(source);
}

// Lane 4 i + j ends with the row of that number.
template <class Math, int sorted, class To>
__device__ void multiply_ragged_group(const Arguments &a, std::int32_t g, int lane, const To &put) {
  const Group         group = load_group(a, g);
  const RaggedLengths lengths = __ldg(a.ragged + g);
  const bool          stores = lane < static_cast<int>(group.rows);
  // On its way while the rows are summed.
  const std::int32_t at =
    stores && !group.in_order ? ragged_row(group, sorted, __ldg(a.ragged_places + group.row + lane)) : group.row + lane;
  double sum = 0.0;
  if (group.wide) {
    sum = sum_ragged<Math, WideColumns<columns_of_lane(1)>, sorted>(a, group, lengths, lane);
  } else if constexpr (sorted == ragged_window) {
    sum = group.lanes == 3 ? sum_ragged<Math, MediumColumns, sorted>(a, group, lengths, lane)
                           : sum_ragged<Math, NarrowColumns<columns_of_lane(1)>, sorted>(a, group, lengths, lane);
  } else {
    sum = sum_ragged<Math, NarrowColumns<columns_of_lane(1)>, sorted>(a, group, lengths, lane);
  }
  if (stores) put(at, sum);
}

// Groups of rows that follow one another: the warp writes their results side by side.
template <class Math> __global__ void __launch_bounds__(block, Math::min_ragged_blocks) multiply_ragged(Arguments a) {
  const auto put = [&](std::int32_t at, double sum) { store(a, at, sum); };
  for_each_group(a, [&](std::int32_t g, int lane) { multiply_ragged_group<Math, ragged_rows>(a, g, lane, put); });
}

// A block takes the groups of a window. They come longest first; warps take them forth and back, so that each gets about as much. One by
// one each result would cost the L2 an access, as each element of x does.
template <class Math> __global__ void __launch_bounds__(block, Math::min_ragged_blocks) multiply_windows(Arguments a) {
  constexpr int      groups = ragged_window / ragged_rows;
  __shared__ double  sums[ragged_window];
  const int          lane = static_cast<int>(threadIdx.x % warp_lanes), warp = static_cast<int>(threadIdx.x / warp_lanes);
  const std::int32_t first = static_cast<std::int32_t>(blockIdx.x) * ragged_window;
  static_assert(groups % block_warps == 0);
#pragma unroll 1
  for (int round = 0; round < groups / block_warps; ++round) {
    const int          of_round = round % 2 == 0 ? warp : block_warps - 1 - warp;
    const std::int32_t g = static_cast<std::int32_t>(blockIdx.x) * groups + round * block_warps + of_round;
    if (g < a.group_count)
      multiply_ragged_group<Math, ragged_window>(a, g, lane, [&](std::int32_t at, double sum) { sums[at - first] = sum; });
  }
  __syncthreads();
  for (std::int32_t row = first + static_cast<std::int32_t>(threadIdx.x); row < min(first + ragged_window, a.rows);
       row += block)
    store(a, row, sums[row - first]);
}

template <class Math, int node, class Kernel>
void launch_groups(Executor &executor, Kernel *kernel, Arguments a, int most_rounds) {
  // As many as leave each multiprocessor so many times the blocks that it holds that the last ones do not count.
  constexpr int times = 8, min_blocks = Math::min_blocks(node);
  a.rounds = std::clamp(a.group_count / (times * executor.device().multiprocessors * min_blocks * block_warps), 1, most_rounds);
  const int in_block = block_warps * a.rounds;
  kernel<<<static_cast<unsigned>((a.group_count + in_block - 1) / in_block), block, 0,
           static_cast<cudaStream_t>(executor.stream())>>>(a);
  TCBOUND_LAUNCHED();
}

template <class Math> void launch_windows(Executor &executor, const Arguments &a) {
  multiply_windows<Math><<<static_cast<unsigned>((a.rows + ragged_window - 1) / ragged_window), block, 0,
                           static_cast<cudaStream_t>(executor.stream())>>>(a);
  TCBOUND_LAUNCHED();
}

template <class Math> void launch(Executor &executor, DeviceMatrix &m, const Product &product, int most_rounds) {
  if (m.groups.size() == 0) return;
  Arguments a{};
  a.groups = m.groups.data();
  a.data = m.data.data();
  a.sorted_nodes = m.sorted_nodes.data();
  a.long_begin = m.long_begin.data();
  a.ragged = m.ragged.data();
  a.ragged_places = m.ragged_places.data();
  a.parts = m.parts.data();
  a.arrivals = m.arrivals.data();
  a.group_count = static_cast<std::int32_t>(m.groups.size());
  a.rows = static_cast<std::int32_t>(m.rows);
  a.x = product.x;
  a.y = product.y;
  a.z = product.z;
  a.alpha = product.alpha;
  a.beta = product.beta;
  if (m.ragged_sorted == ragged_window)
    launch_windows<Math>(executor, a);
  else if (m.ragged_sorted > 0)
    launch_groups<Math, 1>(executor, multiply_ragged<Math>, a, most_rounds);
  else if (m.node == 1)
    launch_groups<Math, 1>(executor, multiply<Math, 1>, a, most_rounds);
  else if (m.node == 2)
    launch_groups<Math, 2>(executor, multiply<Math, 2>, a, most_rounds);
  else if (m.node == 3)
    launch_groups<Math, 3>(executor, multiply<Math, 3>, a, most_rounds);
  else
    launch_groups<Math, 4>(executor, multiply<Math, 4>, a, most_rounds);
}

} // namespace
} // namespace tcbound::fragments
