#pragma once

// Device code of cuda_core.cu: a warp multiplies a slice, a row a lane, or, of a part of a long row, two entries a lane and step. For
// .cu files only.

#include <type_traits>

#include "cuda/load_once.h"
#include "slice_view.h"

namespace tcbound::sell {
namespace {

constexpr unsigned all_lanes = 0xffffffffU;

template <class Value> struct Arguments {
  SliceView      view;
  const Value   *values;
  double        *sums;
  std::uint32_t *arrivals;
  const double  *x;
  double         alpha, beta;
  const double  *y;
  double        *z;
};

// Matrix entries are read once: they pass by the first-level cache, too.
__device__ void load_once(double2 &to, const double2 *from, std::uint64_t policy) {
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v2.f64 {%0, %1}, [%2], %3;"
               : "=d"(to.x), "=d"(to.y)
               : "l"(from), "l"(policy));
}
__device__ void load_once(float2 &to, const float2 *from, std::uint64_t policy) {
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v2.f32 {%0, %1}, [%2], %3;"
               : "=f"(to.x), "=f"(to.y)
               : "l"(from), "l"(policy));
}
__device__ void load_once(double &to, const double *from, std::uint64_t policy) {
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.f64 %0, [%1], %2;" : "=d"(to) : "l"(from), "l"(policy));
}
__device__ void load_once(float &to, const float *from, std::uint64_t policy) {
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(to) : "l"(from), "l"(policy));
}
__device__ void load_once(Bfloat16Pair &to, const Bfloat16Pair *from, std::uint64_t policy) {
  std::uint32_t both;
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(both) : "l"(from), "l"(policy));
  to.x.bits = static_cast<std::uint16_t>(both);
  to.y.bits = static_cast<std::uint16_t>(both >> 16);
}
__device__ void load_once(Bfloat16 &to, const Bfloat16 *from, std::uint64_t policy) {
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.u16 %0, [%1], %2;" : "=h"(to.bits) : "l"(from), "l"(policy));
}
__device__ void load_once(int2 &to, const int2 *from, std::uint64_t policy) {
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v2.s32 {%0, %1}, [%2], %3;"
               : "=r"(to.x), "=r"(to.y)
               : "l"(from), "l"(policy));
}
__device__ void load_once(std::uint32_t &to, const std::uint32_t *from, std::uint64_t policy) {
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(to) : "l"(from), "l"(policy));
}
__device__ void load_once(std::int32_t &to, const std::int32_t *from, std::uint64_t policy) {
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.s32 %0, [%1], %2;" : "=r"(to) : "l"(from), "l"(policy));
}
__device__ void load_once(std::uint16_t &to, const std::uint16_t *from, std::uint64_t policy) {
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.u16 %0, [%1], %2;" : "=h"(to) : "l"(from), "l"(policy));
}

// The four codings of columns. Of a pair of steps, or of a single one that comes last, a lane loads what is stored first and makes
// columns of it later; a column below 0 is none, and a single step's second column is none.
struct PatternColumns {
  using Pair = int2;
  const std::int32_t *at;
  std::int32_t        row; // -1: none

  __device__ void load(Pair &to, int pair, std::uint64_t) const { to = __ldg(reinterpret_cast<const int2 *>(at) + pair); }
  __device__ void load_single(Pair &to, int pair, std::uint64_t) const { to = {__ldg(at + 2 * pair), -1 - row}; }
  __device__ std::int32_t first(const Pair &pair) const { return row < 0 ? -1 : row + pair.x; }
  __device__ std::int32_t second(const Pair &pair) const { return row < 0 ? -1 : row + pair.y; }
};

struct NarrowColumns {
  using Pair = std::uint32_t;
  const std::uint16_t *at;
  int                  lane;
  std::int32_t         base;

  __device__ void load(Pair &to, int pair, std::uint64_t policy) const {
    load_once(to, reinterpret_cast<const std::uint32_t *>(at) + pair * slice_rows + lane, policy);
  }
  __device__ void load_single(Pair &to, int pair, std::uint64_t policy) const {
    std::uint16_t single;
    load_once(single, at + 2 * pair * slice_rows + lane, policy);
    to = single | static_cast<std::uint32_t>(narrow_padding) << 16;
  }
  __device__ std::int32_t first(Pair pair) const { return column(base, pair & 0xffffU); }
  __device__ std::int32_t second(Pair pair) const { return column(base, pair >> 16); }

  __device__ static std::int32_t column(std::int32_t base, std::uint32_t distance) {
    return distance == narrow_padding ? -1 : base + static_cast<std::int32_t>(distance);
  }
};

struct SteppedColumns {
  struct Pair {
    int2          bases;
    std::uint32_t distances;
  };
  const std::int32_t *bases;
  NarrowColumns       narrow;

  __device__ void load(Pair &to, int pair, std::uint64_t policy) const {
    to.bases = __ldg(reinterpret_cast<const int2 *>(bases) + pair);
    narrow.load(to.distances, pair, policy);
  }
  __device__ void load_single(Pair &to, int pair, std::uint64_t policy) const {
    to.bases.x = __ldg(bases + 2 * pair);
    narrow.load_single(to.distances, pair, policy);
  }
  __device__ std::int32_t first(const Pair &pair) const {
    return NarrowColumns::column(pair.bases.x, pair.distances & 0xffffU);
  }
  __device__ std::int32_t second(const Pair &pair) const { return NarrowColumns::column(pair.bases.y, pair.distances >> 16); }
};

struct WideColumns {
  using Pair = int2;
  const std::int32_t *at;
  int                 lane;

  __device__ void load(Pair &to, int pair, std::uint64_t policy) const {
    load_once(to, reinterpret_cast<const int2 *>(at) + pair * slice_rows + lane, policy);
  }
  __device__ void load_single(Pair &to, int pair, std::uint64_t policy) const {
    load_once(to.x, at + 2 * pair * slice_rows + lane, policy);
    to.y = wide_padding;
  }
  __device__ std::int32_t first(const Pair &pair) const { return pair.x; }
  __device__ std::int32_t second(const Pair &pair) const { return pair.y; }
};

__device__ double gather(const double *x, std::int32_t column) { return column >= 0 ? __ldg(x + column) : 0.0; }

template <class Value> struct PairOfType;
template <> struct PairOfType<double> { using type = double2; };
template <> struct PairOfType<float> { using type = float2; };
template <> struct PairOfType<Bfloat16> { using type = Bfloat16Pair; };
template <class Value> using PairOf = typename PairOfType<Value>::type;

// A lane's steps of a slice: pairs, and perhaps a single one.
template <class Columns, class Value> struct Steps {
  const Value  *values;
  const Columns columns;
  int           steps, lane;
  std::uint64_t policy;

  __device__ int count() const { return (steps + 1) / 2; }

  // Whether pairs from i to i + size are there, all and without a single step.
  __device__ bool full(int i, int size) const { return i + size <= steps / 2; }

  template <bool full> __device__ void load(PairOf<Value> &value, typename Columns::Pair &column, int i) const {
    if (full || i < steps / 2) {
      columns.load(column, i, policy);
      load_once(value, reinterpret_cast<const PairOf<Value> *>(values) + i * slice_rows + lane, policy);
    } else if (i < count()) {
      columns.load_single(column, i, policy);
      load_once(value.x, values + 2 * i * slice_rows + lane, policy);
      value.y = Value(0);
    }
  }
};

// `batch` pairs of steps of a lane as they come from memory.
template <int batch, class Columns, class Value> struct Batch {
  PairOf<Value>          values[batch];
  typename Columns::Pair columns[batch];

  template <bool full> __device__ void load(const Steps<Columns, Value> &of, int from) {
#pragma unroll
    for (int j = 0; j < batch; ++j) of.template load<full>(values[j], columns[j], from + j);
  }
  // Adds the products with x of `count` pairs, or of all.
  template <bool full> __device__ void add(const Columns &of, const double *x, int count, double &sum) const {
    double first[batch], second[batch];
#pragma unroll
    for (int j = 0; j < batch; ++j)
      if (full || j < count) {
        first[j] = gather(x, of.first(columns[j]));
        second[j] = gather(x, of.second(columns[j]));
      }
#pragma unroll
    for (int j = 0; j < batch; ++j)
      if (full || j < count) {
        sum = fma(static_cast<double>(values[j].x), first[j], sum);
        sum = fma(static_cast<double>(values[j].y), second[j], sum);
      }
  }
};

// A lane's sum over the steps of a slice.
template <int batch, class Columns, class Value> __device__ double add_steps(const Steps<Columns, Value> &of, const double *x) {
  Batch<batch, Columns, Value> now;
  const int                    count = of.count();
  double                       sum = 0.0;
  int                          i = 0;
#pragma unroll 1
  for (; of.full(i, batch); i += batch) {
    now.template load<true>(of, i);
    now.template add<true>(of.columns, x, batch, sum);
  }
  if (i >= count) return sum;
  now.template load<false>(of, i);
  now.template add<false>(of.columns, x, count - i, sum);
  return sum;
}

template <class Value> __device__ void store(const Arguments<Value> &a, std::int32_t row, double sum) {
  double result = a.alpha * sum;
  if (a.beta != 0.0) result += a.beta * a.y[row];
  a.z[row] = result;
}

__device__ double sum_lanes(double sum) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(all_lanes, sum, distance);
  return sum;
}

// The last of a row's parts to come adds them up in order.
template <class Value> __device__ void finish_part(const Arguments<Value> &a, std::int32_t i, int lane, double sum) {
  const Part part = a.view.parts[i];
  sum = sum_lanes(sum);
  if (part.count > 1) {
    unsigned arrived = 0;
    if (lane == 0) {
      a.sums[i] = sum;
      __threadfence(); // the sum must be seen before its arrival is
      arrived = atomicAdd(a.arrivals + part.number, 1U) + 1;
      __threadfence();
    }
    if (__shfl_sync(all_lanes, arrived, 0) != static_cast<unsigned>(part.count)) return;
    sum = 0.0;
    for (std::int32_t p = lane; p < part.count; p += 32) sum += __ldcg(a.sums + part.first + p);
    sum = sum_lanes(sum);
    if (lane == 0) a.arrivals[part.number] = 0; // for the next product
  }
  if (lane == 0) store(a, part.row, sum);
}

struct LaneSum {
  std::int32_t row; // -1: none
  double       sum;
};

// The sum of the lane's row of slice i; of a part, of the lane's entries.
template <int batch, class Value> __device__ LaneSum sum_slice(const Arguments<Value> &a, std::int32_t i, int lane, bool part) {
  const int4 words = __ldg(reinterpret_cast<const int4 *>(a.view.slices + i));
  Slice      slice;
  memcpy(&slice, &words, sizeof slice);
  const std::int32_t  place = part ? -1 : load_place(a.view, slice, i, lane);
  const std::uint8_t *columns = a.view.columns + static_cast<std::int64_t>(slice.columns) * column_unit;
  const Value        *values = a.values + static_cast<std::int64_t>(slice.values) * slice_rows;
  const auto          add = [&](const auto &coded) {
    return add_steps<batch>(Steps<std::decay_t<decltype(coded)>, Value>{values, coded, slice.steps, lane, once()}, a.x);
  };
  double sum;
  if (slice.coding == Coding::narrow)
    sum = add(NarrowColumns{reinterpret_cast<const std::uint16_t *>(columns), lane, slice.base});
  else if (slice.coding == Coding::stepped)
    sum = add(SteppedColumns{reinterpret_cast<const std::int32_t *>(columns),
                             {reinterpret_cast<const std::uint16_t *>(columns + distances_at(slice)), lane, 0}});
  else if (slice.coding == Coding::pattern)
    sum = add(PatternColumns{reinterpret_cast<const std::int32_t *>(columns), row_at_place(a.view, slice, i, lane, place)});
  else
    sum = add(WideColumns{reinterpret_cast<const std::int32_t *>(columns), lane});
  return {part ? -1 : row_at_place(a.view, slice, i, lane, place), sum};
}

} // namespace
} // namespace tcbound::sell
