#pragma once

// Device code of build.cu: hashes rows and lets each slice of rows vote for its main pattern. For .cu files only.

#include "grid.h"
#include "rows.h"

namespace tcbound::compact {
namespace {

constexpr int block = 256;
constexpr int block_warps = block / 32;

enum Kind : std::uint8_t { remainder_kind, constant_kind, explicit_kind, no_kind };

struct Hashes {
  std::uint64_t offsets, values; // of the offset pattern and of the row pattern; 0: the row can have none
};

// By `lanes` neighbouring threads, in all of which the result is right.
template <class Offset, class Column>
__device__ Hashes hash_row(const Rows<Offset, Column> &a, std::int64_t row, int lane, int lanes, bool hash_values) {
  const bool          in = row >= 0 && row < a.count;
  const std::int64_t  begin = in ? a.offsets[row] : 0;
  const std::int64_t  length = in ? a.offsets[row + 1] - begin : 0;
  const bool          patterned = in && length <= longest_patterned;
  const std::uint64_t step = 0x9e3779b97f4a7c15U;
  std::uint64_t       offsets = 0, values = 0;
  for (std::int64_t k = lane; patterned && k < length; k += lanes) {
    const auto offset = static_cast<std::uint32_t>(a.columns[begin + k] - static_cast<Column>(row));
    const auto place = static_cast<std::uint64_t>(k + 1) * step;
    offsets += mix(place ^ offset);
    if (hash_values) values += mix(place + static_cast<std::uint64_t>(__double_as_longlong(a.values[begin + k])));
  }
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    offsets += __shfl_xor_sync(0xffffffffU, offsets, distance);
    values += __shfl_xor_sync(0xffffffffU, values, distance);
  }
  if (!patterned) return {0, 0};
  offsets = mix(offsets + static_cast<std::uint64_t>(length) + 1) | 1U;
  return {offsets, mix(values ^ offsets) | 1U};
}

// The hash that most of a half slice's rows have, one a lane; of equally frequent ones the first row's.
__device__ std::uint64_t most_frequent(std::uint64_t hash) {
  const unsigned same = __match_any_sync(0xffffffffU, hash), lane = threadIdx.x % 32;
  const unsigned rank = hash ? __popc(same) * 32U + (31U - lane) : 0U;
  const unsigned best = __reduce_max_sync(0xffffffffU, rank);
  return __shfl_sync(0xffffffffU, hash, static_cast<int>(31U - best % 32U));
}

__device__ std::uint64_t rows_with(std::uint64_t hash, std::uint64_t lower, std::uint64_t upper) {
  const std::uint64_t low = __ballot_sync(0xffffffffU, lower == hash), high = __ballot_sync(0xffffffffU, upper == hash);
  return hash ? low | high << 32 : 0;
}

struct Vote {
  std::uint64_t hash, rows;
};

__device__ Vote vote(std::uint64_t lower, std::uint64_t upper) {
  const std::uint64_t first = most_frequent(lower), second = most_frequent(upper);
  const Vote          a = {first, rows_with(first, lower, upper)}, b = {second, rows_with(second, lower, upper)};
  return __popcll(b.rows) > __popcll(a.rows) ? b : a;
}

// Slices of each kind, and rows in them that do not have their slice's pattern.
struct Tally {
  std::int64_t slices[no_kind], exceptions[no_kind];
};

// What the slices voted for, the second ones behind the others, if there are any.
struct SliceVotes {
  std::uint64_t *hash; // of each slice's main pattern
  std::uint64_t *rows; // that have it
  std::uint64_t *all;  // rows that are the slice's
  Kind          *kind;
  std::uint64_t *row_hash; // of each exception, at its row; not set elsewhere

  __device__ void set(std::int64_t slice, Kind is, const Vote &main, std::uint64_t own) const {
    hash[slice] = main.hash;
    rows[slice] = main.rows;
    all[slice] = own;
    kind[slice] = is;
  }
  __device__ std::uint64_t others(std::int64_t slice) const { return all[slice] & ~rows[slice]; }
};

// The rows of a slice's second pattern and, if they all lie on one side of the main pattern's, all others on that side: they too
// belong to the line that meets the main pattern's here.
__device__ std::uint64_t rows_beside(std::uint64_t main, std::uint64_t second) {
  if (second == 0) return 0;
  const int first = __ffsll(static_cast<long long>(main)) - 1, last = 63 - __clzll(static_cast<long long>(main));
  if (second >> first == 0) return (std::uint64_t(1) << first) - 1;
  if (second << (63 - last) == 0) return ~std::uint64_t(0) << last << 1;
  return second;
}

// One warp a slice; every row is in one. With `seconds`, rows of a constant slice that have another row pattern in common become a
// slice of their own.
template <class Offset>
__global__ void __launch_bounds__(block)
  classify(const Rows<Offset> a, std::int64_t slices, const Cut cut, int lanes, bool allow_constant, bool seconds,
           const SliceVotes votes, std::uint8_t *in_remainder) {
  __shared__ Hashes  shared[block_warps][slice_rows];
  const std::int64_t slice = blockIdx.x * static_cast<std::int64_t>(block_warps) + threadIdx.x / 32;
  const int          lane = static_cast<int>(threadIdx.x % 32);
  if (slice >= slices) return;
  Hashes             *hashes = shared[threadIdx.x / 32];
  const std::int64_t  first = cut.first_row(slice);
  const std::uint64_t present = cut.present(slice);
  for (int r = lane / lanes; r < slice_rows; r += 32 / lanes) {
    const Hashes h = hash_row(a, present >> r & 1 ? first + r : -1, lane % lanes, lanes, allow_constant);
    if (lane % lanes == 0) hashes[r] = h;
  }
  __syncwarp();
  const Hashes lower = hashes[lane], upper = hashes[lane + 32];
  const Vote   constant = vote(lower.values, upper.values), offsets = vote(lower.offsets, upper.offsets);
  const auto   fits = [&](const Vote &v) { return present && is_main(__popcll(v.rows), __popcll(present)); };
  const Kind   kind = !present                           ? no_kind
                      : allow_constant && fits(constant) ? constant_kind
                      : fits(offsets)                    ? explicit_kind
                                                         : remainder_kind;
  const Vote   main = kind == constant_kind ? constant : kind == explicit_kind ? offsets : Vote{0, 0};
  Vote         second = {0, 0};
  if (seconds && kind == constant_kind && main.rows != present) {
    second = vote(main.rows >> lane & 1 ? 0 : lower.values, main.rows >> (lane + 32) & 1 ? 0 : upper.values);
    if (!is_second(__popcll(second.rows))) second = {0, 0};
  }
  if (lane == 0) {
    const std::uint64_t of_second = rows_beside(main.rows, second.rows) & present;
    votes.set(slice, kind, main, present & ~of_second);
    if (seconds) votes.set(slices + slice, second.rows ? constant_kind : no_kind, second, of_second);
  }
  for (int r = lane; r < slice_rows; r += 32) {
    if (!(present >> r & 1)) continue;
    in_remainder[first + r] = kind == remainder_kind;
    if (kind != remainder_kind && !((main.rows | second.rows) >> r & 1))
      votes.row_hash[first + r] = kind == constant_kind ? hashes[r].values : hashes[r].offsets;
  }
}

__device__ inline void add(std::int64_t *to, std::int64_t value) { // by a warp
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffU, value, distance);
  if (threadIdx.x % 32 == 0 && value > 0)
    atomicAdd(reinterpret_cast<unsigned long long *>(to), static_cast<unsigned long long>(value));
}

__global__ void __launch_bounds__(block) tally_slices(const SliceVotes votes, std::int64_t slices, Tally *tally) {
  const std::int64_t slice = global_index<block>();
  const bool         in = slice < slices;
  const int          exceptions = in ? __popcll(votes.others(slice)) : 0;
  for (const Kind kind : {remainder_kind, constant_kind, explicit_kind}) {
    const bool has = in && votes.kind[slice] == kind;
    add(tally->slices + kind, has);
    add(tally->exceptions + kind, has ? exceptions : 0);
  }
}

} // namespace
} // namespace tcbound::compact
