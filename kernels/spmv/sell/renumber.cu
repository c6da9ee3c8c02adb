// Finds an order for the rows of a matrix that came in none: by their distances from three rows that lie far apart, which tell where a
// row is in a mesh, as Cuthill and McKee do by those from one. Without their queue, all rows of a level are found at once. The
// distances do not depend on what finds a row first, so the order is the same in every run.
#include "renumber.h"

#include "cuda/algorithms.h"
#include "cuda/error.h"

namespace tcbound::sell {
namespace {

constexpr int          block = 256;
constexpr int          sweeps_at_a_time = 16; // between questions whether all is done
constexpr int          most_levels = 4096;
constexpr std::int64_t longest_expanded = 1024; // entries: beyond, a row is near everything

unsigned grid_for(std::int64_t threads) { return static_cast<unsigned>((threads + block - 1) / block); }

__device__ std::int64_t global_index() { return blockIdx.x * static_cast<std::int64_t>(block) + threadIdx.x; }

// Rows of level d - 1 give level d to their neighbours that have none; all that write to one write the same.
template <class Offset>
__global__ void __launch_bounds__(block)
  expand(const Offset *offsets, const std::int32_t *columns, std::int64_t rows, int d, std::int32_t *level, int *any) {
  const std::int64_t row = global_index();
  if (row >= rows || level[row] != d - 1) return;
  const std::int64_t begin = offsets[row], end = offsets[row + 1];
  bool               found = false;
  if (end - begin > longest_expanded) return;
#pragma unroll 4
  for (std::int64_t k = begin; k < end; ++k) {
    const std::int32_t to = columns[k];
    if (level[to] < 0) {
      level[to] = d;
      found = true;
    }
  }
  if (found) *any = 1;
}

__global__ void start(std::int32_t *level, std::int64_t rows, const std::uint64_t *from) {
  const std::int64_t row = global_index();
  const std::int64_t source = from ? 0xffffffffU - static_cast<std::uint32_t>(*from) : 0;
  if (row < rows) level[row] = row == source ? 0 : -1;
}

// The row whose lesser level of two is the highest, the first of several, and the number of rows with levels.
__global__ void __launch_bounds__(block) find_farthest(const std::int32_t *level, const std::int32_t *other, std::int64_t rows,
                                                       std::uint64_t *farthest, unsigned long long *reached) {
  const std::int64_t row = global_index();
  const std::int32_t mine = row < rows ? min(level[row], other[row]) : -1;
  const int          highest = __reduce_max_sync(0xffffffffU, mine);
  const unsigned     there = __ballot_sync(0xffffffffU, mine >= 0), who = __ballot_sync(0xffffffffU, mine == highest);
  if (threadIdx.x % 32 != 0 || highest < 0) return;
  const auto first = static_cast<std::uint32_t>(row + __ffs(static_cast<int>(who)) - 1);
  atomicMax(reinterpret_cast<unsigned long long *>(farthest),
            static_cast<unsigned long long>(highest) << 32 | (0xffffffffU - first));
  atomicAdd(reached, static_cast<unsigned long long>(__popc(there)));
}

__global__ void make_keys(const std::int32_t *first, const std::int32_t *second, const std::int32_t *third, std::int64_t rows,
                          std::uint64_t *keys, std::int32_t *numbers) {
  const std::int64_t row = global_index();
  if (row >= rows) return;
  static_assert(most_levels + 2 * sweeps_at_a_time < 1 << 16);
  keys[row] = static_cast<std::uint64_t>(first[row] + 1) << 32 | static_cast<std::uint64_t>(second[row] + 1) << 16 |
              static_cast<std::uint64_t>(third[row] + 1);
  numbers[row] = static_cast<std::int32_t>(row);
}

__global__ void invert(const std::int32_t *order, std::int64_t size, std::int32_t *to) {
  const std::int64_t i = global_index();
  if (i < size) to[order[i]] = static_cast<std::int32_t>(i);
}

class Search {
public:
  Search(Executor &executor, const csr::DeviceArrays &a)
    : executor_(executor), algorithms_(executor), a_(a), any_(executor, 1), farthest_(executor, 1), reached_(executor, 1) {}

  // The distance of each row from the one found last, or from row 0. Then finds the row that is farthest from there and from where
  // `other` are the distances from. False: too few rows can be reached, or they are too far.
  bool run(std::int32_t *level, const std::int32_t *other) {
    const cudaStream_t stream = algorithms_.stream();
    start<<<grid_for(a_.rows), block, 0, stream>>>(level, a_.rows, started_ ? farthest_.data() : nullptr);
    TCBOUND_LAUNCHED();
    started_ = true;
    int d = 1;
    for (bool any = true; any; any = algorithms_.read(any_.data()) != 0) {
      if (d > most_levels) return false;
      TCBOUND_CUDA(cudaMemsetAsync(any_.data(), 0, sizeof(int), stream));
      for (int i = 0; i < sweeps_at_a_time; ++i, ++d)
        csr::with_offsets(a_, [&](const auto *offsets) {
          expand<<<grid_for(a_.rows), block, 0, stream>>>(offsets, a_.columns.data(), a_.rows, d, level, any_.data());
          TCBOUND_LAUNCHED();
        });
    }
    TCBOUND_CUDA(cudaMemsetAsync(farthest_.data(), 0, sizeof(std::uint64_t), stream));
    TCBOUND_CUDA(cudaMemsetAsync(reached_.data(), 0, sizeof(std::uint64_t), stream));
    find_farthest<<<grid_for(a_.rows), block, 0, stream>>>(level, other, a_.rows, farthest_.data(), reached_.data());
    TCBOUND_LAUNCHED();
    return static_cast<double>(algorithms_.read(reached_.data())) >= 0.9 * static_cast<double>(a_.rows);
  }

  Array<std::int32_t> order(const std::int32_t *first, const std::int32_t *second, const std::int32_t *third) {
    Array<std::uint64_t> keys(executor_, a_.rows), keys_out(executor_, a_.rows);
    Array<std::int32_t>  numbers(executor_, a_.rows), sorted(executor_, a_.rows);
    make_keys<<<grid_for(a_.rows), block, 0, algorithms_.stream()>>>(first, second, third, a_.rows, keys.data(),
                                                                     numbers.data());
    TCBOUND_LAUNCHED();
    algorithms_.sort_pairs(keys.data(), keys_out.data(), numbers.data(), sorted.data(), a_.rows);
    executor_.synchronize(); // before the keys go
    return sorted;
  }

private:
  Executor                 &executor_;
  Algorithms                algorithms_;
  const csr::DeviceArrays  &a_;
  bool                      started_ = false;
  Array<int>                any_;
  Array<std::uint64_t>      farthest_; // level << 32 | (2^32 - 1 - row)
  Array<unsigned long long> reached_;
};

} // namespace

Array<std::int32_t> renumber(Executor &executor, const csr::DeviceArrays &a) {
  Search              search(executor, a);
  Array<std::int32_t> levels[3];
  std::int32_t       *first, *second, *third;
  for (Array<std::int32_t> &level : levels) level = Array<std::int32_t>(executor, a.rows);
  first = levels[0].data();
  second = levels[1].data();
  third = levels[2].data();
  // The first search only finds a row at the end of the graph.
  if (!search.run(third, third) || !search.run(first, first) || !search.run(second, first) || !search.run(third, third))
    return {};
  return search.order(first, second, third);
}

Array<std::int32_t> inverse(Executor &executor, const Array<std::int32_t> &order) {
  Array<std::int32_t> to(executor, order.size());
  if (order.size() == 0) return to;
  invert<<<grid_for(order.size()), block, 0, static_cast<cudaStream_t>(executor.stream())>>>(order.data(), order.size(),
                                                                                             to.data());
  TCBOUND_LAUNCHED();
  return to;
}

} // namespace tcbound::sell
