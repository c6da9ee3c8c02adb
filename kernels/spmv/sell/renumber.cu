// Finds an order for the rows of a matrix that came in none: by their distances from three rows that lie far apart, which tell where a
// row is in a mesh, as Cuthill and McKee do by those from one. Without their queue, all rows of a level are found at once. The
// distances do not depend on what finds a row first, so the order is the same in every run.
#include "renumber.h"

#include <cmath>

#include "cuda/algorithms.h"
#include "cuda/error.h"

namespace tcbound::sell {
namespace {

constexpr int block = 256;
constexpr int levels_at_a_time = 16; // between questions whether all rows are found
constexpr int row_lanes = 8;         // threads that look at the neighbours of a row
// Entries of a row through which no way goes: such a row is near everything.
constexpr std::int64_t longest_way = 1024;

// Levels after which a search is given up: those of a mesh of three dimensions that is several times as long as wide.
std::int64_t most_levels(std::int64_t rows) {
  return static_cast<std::int64_t>(3.0 * std::cbrt(static_cast<double>(rows))) + 64;
}

unsigned grid_for(std::int64_t threads) { return static_cast<unsigned>((threads + block - 1) / block); }

__device__ std::int64_t global_index() { return blockIdx.x * static_cast<std::int64_t>(block) + threadIdx.x; }

// Where the rows of each level are in a list of rows: `begin` of level d and so many from there on.
struct Levels {
  std::int32_t *rows;
  std::int32_t *begin, *count;
};

// atomicAdd(to, 1), once for all threads of a warp that are here together.
__device__ std::int32_t add_one(std::int32_t *to) {
  const unsigned here = __activemask();
  const int      leader = __ffs(static_cast<int>(here)) - 1, lane = static_cast<int>(threadIdx.x % 32);
  std::int32_t   first = 0;
  if (lane == leader) first = atomicAdd(to, __popc(here));
  return __shfl_sync(here, first, leader) + __popc(here & ((1U << lane) - 1));
}

// The rows of level d - 1 give level d to their neighbours that have none. In which order the rows of a level are listed differs from
// run to run, the level of a row does not.
template <class Offset>
__global__ void __launch_bounds__(block)
  expand(const Offset *offsets, const std::int32_t *columns, int d, std::int32_t *level, const Levels levels) {
  const std::int32_t first = levels.begin[d - 1], found = levels.count[d - 1], next = first + found;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * (block / row_lanes);
  if (global_index() == 0) levels.begin[d] = next;
  for (std::int64_t i = global_index() / row_lanes; i < found; i += step) {
    const std::int32_t row = levels.rows[first + i];
    const std::int64_t begin = offsets[row], end = offsets[row + 1];
    if (end - begin > longest_way) continue;
    for (std::int64_t k = begin + threadIdx.x % row_lanes; k < end; k += row_lanes) {
      const std::int32_t to = columns[k];
      if (level[to] < 0 && atomicCAS(level + to, -1, d) < 0) levels.rows[next + add_one(levels.count + d)] = to;
    }
  }
}

// The first row that is no shorter than the mean and lets ways through: one of an identity's rows would lead nowhere.
template <class Offset>
__global__ void find_start(const Offset *offsets, std::int64_t rows, std::int64_t mean, std::uint64_t *found) {
  const std::int64_t row = global_index();
  if (row >= rows) return;
  const std::int64_t length = offsets[row + 1] - offsets[row];
  if (length >= mean && length <= longest_way)
    atomicMax(reinterpret_cast<unsigned long long *>(found),
              static_cast<unsigned long long>(0xffffffffU - static_cast<std::uint32_t>(row)));
}

// `from` names a row as find_farthest() does, or none: then it is row 0.
__global__ void start(const std::uint64_t *from, std::int32_t *level, const Levels levels) {
  const auto named = static_cast<std::int32_t>(0xffffffffU - static_cast<std::uint32_t>(*from)), source = max(named, 0);
  level[source] = 0;
  levels.rows[0] = source;
  levels.begin[0] = 0;
  levels.count[0] = 1;
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
    : executor_(executor), algorithms_(executor), a_(a), limit_(most_levels(a.rows)), listed_(executor, a.rows),
      begin_(executor, limit_ + levels_at_a_time + 1), count_(executor, begin_.size()), farthest_(executor, 1),
      reached_(executor, 1) {
    clear(farthest_);
    csr::with_offsets(a_, [&](const auto *offsets) {
      find_start<<<grid_for(a.rows), block, 0, algorithms_.stream()>>>(offsets, a.rows, a.nonzeros / a.rows, farthest_.data());
      TCBOUND_LAUNCHED();
    });
  }

  // The distance of each row from the one found last. Then finds the row that is farthest from there and from where `other` are the
  // distances from. False: too few rows can be reached, or they are too far.
  bool run(std::int32_t *level, const std::int32_t *other) {
    const cudaStream_t stream = algorithms_.stream();
    const Levels       levels = {listed_.data(), begin_.data(), count_.data()};
    const unsigned     grid = 8 * static_cast<unsigned>(executor_.device().multiprocessors);
    TCBOUND_CUDA(cudaMemsetAsync(level, -1, sizeof(std::int32_t) * static_cast<std::size_t>(a_.rows), stream));
    clear(count_);
    start<<<1, 1, 0, stream>>>(farthest_.data(), level, levels);
    TCBOUND_LAUNCHED();
    int d = 0;
    do {
      if (d > limit_) return false;
      for (int i = 0; i < levels_at_a_time; ++i)
        csr::with_offsets(a_, [&](const auto *offsets) {
          expand<<<grid, block, 0, stream>>>(offsets, a_.columns.data(), ++d, level, levels);
          TCBOUND_LAUNCHED();
        });
    } while (algorithms_.read(count_.data() + d) > 0);
    clear(farthest_);
    clear(reached_);
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
  template <class T> void clear(Array<T> &array) {
    TCBOUND_CUDA(cudaMemsetAsync(array.data(), 0, static_cast<std::size_t>(array.bytes()), algorithms_.stream()));
  }

  Executor                 &executor_;
  Algorithms                algorithms_;
  const csr::DeviceArrays  &a_;
  std::int64_t              limit_;
  Array<std::int32_t>       listed_, begin_, count_;
  Array<std::uint64_t>      farthest_; // level << 32 | (2^32 - 1 - row)
  Array<unsigned long long> reached_;
};

} // namespace

Array<std::int32_t> renumber(Executor &executor, const csr::DeviceArrays &a) {
  if (a.rows == 0 || most_levels(a.rows) >= 1 << 15) return {}; // levels must fit into 16 bits
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
