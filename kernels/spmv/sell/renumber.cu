// Finds an order for the rows of a matrix that came in none: by their distances from three rows that lie far apart, which tell where a
// row is in a mesh, as Cuthill and McKee do by those from one. Without their queue, all rows of a level are found at once. The
// distances do not depend on what finds a row first, so the order is the same in every run.
#include "renumber.h"

#include <cmath>

#include <cooperative_groups.h>

#include "cuda/algorithms.h"
#include "cuda/error.h"

namespace tcbound::sell {
namespace {

constexpr int block = 256;
constexpr int search_threads = 1024; // of a block: the fewer blocks, the sooner all have waited for each other
constexpr int most_queued = 2048;
// Entries of a row through which no way goes: such a row is near everything.
constexpr std::int64_t longest_way = 1024;

// A graph with fewer levels has no neighbourhoods that numbers could bring together: a mesh of three dimensions whose rows have ways to
// others at several times the distance of the nearest still has more.
int fewest_levels(std::int64_t rows) { return static_cast<int>(std::cbrt(static_cast<double>(rows)) / 8.0); }

// Levels after which a search is given up: those of a mesh of three dimensions that is several times as long as wide.
std::int64_t most_levels(std::int64_t rows) {
  return static_cast<std::int64_t>(3.0 * std::cbrt(static_cast<double>(rows))) + 64;
}

unsigned grid_for(std::int64_t threads) { return static_cast<unsigned>((threads + block - 1) / block); }

__device__ std::int64_t global_index() { return blockIdx.x * static_cast<std::int64_t>(block) + threadIdx.x; }

// Threads that look at the entries of a row: as many as it has on average, or more. A power of two.
int lanes_of_row(const csr::DeviceArrays &a) {
  int lanes = 4;
  while (lanes < 32 && lanes * a.rows < a.nonzeros) lanes *= 2;
  return lanes;
}

// What is known of the searches so far.
struct State {
  std::uint64_t farthest; // name_row() of the farthest row from where the last search began
  int           failed;   // a search has found too few rows, or too many levels or too few
};

// atomicAdd(to, 1), once for all threads of a warp that are here together.
__device__ std::int32_t add_one(std::int32_t *to) {
  const unsigned here = __activemask();
  const int      leader = __ffs(static_cast<int>(here)) - 1, lane = static_cast<int>(threadIdx.x % 32);
  std::int32_t   first = 0;
  if (lane == leader) first = atomicAdd(to, __popc(here));
  return __shfl_sync(here, first, leader) + __popc(here & ((1U << lane) - 1));
}

// The rows that a search has found stand in `list`, one level after the other; count[d]: rows of level d.
struct Found {
  std::int32_t *list, *count;
};

// What a block has found of a level, until it knows where in the list that goes: one place for all threads of the grid to count at
// would take most of the time.
struct Queue {
  int          size; // more than most_queued: the rest went straight to the list
  std::int32_t begin, rows[most_queued];
};

// The rows of level d - 1, which are list[first] to list[first + size - 1], give level d to their neighbours that have none. In which
// order the rows of a level are listed differs from run to run, the level of a row does not. queue.size is 0 before and after.
template <class Offset>
__device__ void expand(const Offset *offsets, const std::int32_t *columns, int lanes, int d, std::int32_t first,
                       std::int32_t size, std::int32_t *level, const Found &found, Queue &queue) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * (search_threads / lanes);
  std::int32_t      *to = found.list + first + size;
  for (std::int64_t i = (blockIdx.x * static_cast<std::int64_t>(search_threads) + threadIdx.x) / lanes; i < size; i += step) {
    const std::int32_t row = __ldcg(found.list + first + i);
    const std::int64_t begin = offsets[row], end = offsets[row + 1];
    if (end - begin > longest_way) continue;
    for (std::int64_t k = begin + threadIdx.x % lanes; k < end; k += lanes) {
      const std::int32_t other = columns[k];
      if (__ldcg(level + other) >= 0 || atomicCAS(level + other, -1, d) >= 0) continue;
      const int at = add_one(&queue.size);
      if (at < most_queued)
        queue.rows[at] = other;
      else
        to[add_one(found.count + d)] = other;
    }
  }
  __syncthreads();
  const int queued = min(queue.size, most_queued);
  if (threadIdx.x == 0 && queued > 0) queue.begin = atomicAdd(found.count + d, queued);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < queued; i += search_threads) to[queue.begin + i] = queue.rows[i];
  if (threadIdx.x == 0) queue.size = 0;
}

// All levels of a search from list[0]. All threads of the grid are there at once and wait for each other after each level.
template <class Offset>
__global__ void __launch_bounds__(search_threads)
  search_levels(const Offset *offsets, const std::int32_t *columns, std::int32_t rows, int lanes, int most, int least,
                std::int32_t *level, const Found found, State *state) {
  const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  __shared__ Queue                     queue;
  __shared__ std::int32_t next;
  if (state->failed) return;
  if (threadIdx.x == 0) queue.size = 0;
  __syncthreads();
  std::int32_t first = 0, size = 1;
  int          d = 0;
  bool         hopeless = false;
  while (size > 0 && !hopeless) {
    expand(offsets, columns, lanes, ++d, first, size, level, found, queue);
    grid.sync();
    if (threadIdx.x == 0) next = __ldcg(found.count + d);
    __syncthreads();
    first += size;
    size = next;
    // The rows of a mesh are reached with the third power of the distance at the slowest start.
    hopeless = d >= most || (d == most / 4 && first + size < rows / 128);
  }
  const bool failed = hopeless || d < least || first < 0.9 * rows;
  if (blockIdx.x == 0 && threadIdx.x == 0 && failed) state->failed = 1;
}

// By a warp: *to becomes at least the greatest of the lanes' numbers.
__device__ void raise_to(std::uint64_t *to, std::uint64_t number) {
  for (int distance = 16; distance > 0; distance /= 2) number = max(number, __shfl_xor_sync(0xffffffffU, number, distance));
  if (threadIdx.x % 32 == 0 && number > 0)
    atomicMax(reinterpret_cast<unsigned long long *>(to), static_cast<unsigned long long>(number));
}

// Orders rows by a level and, in that, the first row first.
__device__ std::uint64_t name_row(std::int32_t level, std::int64_t row) {
  return static_cast<std::uint64_t>(level) << 32 | (0xffffffffU - static_cast<std::uint32_t>(row));
}

// The first row that is no shorter than the mean and lets ways through: one of an identity's rows would lead nowhere.
template <class Offset>
__global__ void __launch_bounds__(block) find_start(const Offset *offsets, std::int64_t rows, std::int64_t mean, State *state) {
  std::uint64_t first = 0;
  for (std::int64_t row = global_index(); row < rows; row += gridDim.x * static_cast<std::int64_t>(block)) {
    const std::int64_t length = offsets[row + 1] - offsets[row];
    if (length >= mean && length <= longest_way) first = max(first, name_row(0, row));
  }
  raise_to(&state->farthest, first);
}

// A search starts at the farthest row, or where none is named at row 0. Then none is.
__global__ void start(std::int32_t *level, const Found found, State *state) {
  const auto named = static_cast<std::int32_t>(0xffffffffU - static_cast<std::uint32_t>(state->farthest)),
             source = max(named, 0);
  level[source] = 0;
  found.list[0] = source;
  state->farthest = 0;
}

// The row whose lesser level of two is the highest, the first of several.
__global__ void __launch_bounds__(block)
  find_farthest(const std::int32_t *level, const std::int32_t *other, std::int64_t rows, State *state) {
  std::uint64_t farthest = 0;
  for (std::int64_t row = global_index(); row < rows; row += gridDim.x * static_cast<std::int64_t>(block)) {
    const std::int32_t mine = min(level[row], other[row]);
    if (mine >= 0) farthest = max(farthest, name_row(mine, row));
  }
  raise_to(&state->farthest, farthest);
}

__global__ void make_keys(const std::int32_t *first, const std::int32_t *second, const std::int32_t *third, std::int64_t rows,
                          int bits, std::uint64_t *keys, std::int32_t *numbers) {
  const std::int64_t row = global_index();
  if (row >= rows) return;
  keys[row] = static_cast<std::uint64_t>(first[row] + 1) << 2 * bits | static_cast<std::uint64_t>(second[row] + 1) << bits |
              static_cast<std::uint64_t>(third[row] + 1);
  numbers[row] = static_cast<std::int32_t>(row);
}

// The new numbers of rows, and how long the rows in the new order are.
template <class Offset>
__global__ void invert(const Offset *offsets, const std::int32_t *order, std::int64_t size, std::int32_t *numbers,
                       Offset *lengths) {
  const std::int64_t i = global_index();
  if (i > size) return;
  const std::int32_t row = i < size ? order[i] : 0;
  if (i < size) numbers[row] = static_cast<std::int32_t>(i);
  lengths[i] = i < size ? offsets[row + 1] - offsets[row] : 0;
}

// `lanes` threads a row of the new order: its columns by their new numbers. Entries come in the order of these, so that those of
// neighbouring rows that are alike come at the same step; the order within longer rows does not matter much.
template <class Offset>
__global__ void __launch_bounds__(block)
  take_rows(const Offset *offsets, const std::int32_t *columns, const std::int32_t *order, const std::int32_t *numbers,
            std::int64_t rows, std::int32_t longest, int lanes, const Offset *to_offsets, std::int32_t *to_columns,
            std::uint16_t *step_entries) {
  __shared__ std::int32_t shared[block / 4][most_sorted + 1];
  const std::int64_t      i = global_index() / lanes;
  const int               lane = static_cast<int>(threadIdx.x) % lanes;
  std::int32_t           *mine = shared[threadIdx.x / lanes];
  const std::int32_t      row = i < rows ? order[i] : 0;
  const std::int64_t      begin = offsets[row], to = i < rows ? to_offsets[i] : 0, entries = offsets[row + 1] - begin;
  const int               length = i >= rows || entries > longest ? 0 : static_cast<int>(entries); // 0: it is cut into parts
  const bool              sorted = length <= most_sorted;
  for (int k = lane; k < length; k += lanes) {
    const std::int32_t column = numbers[columns[begin + k]];
    if (sorted) {
      mine[k] = column;
    } else {
      to_columns[to + k] = column;
      step_entries[begin + k] = static_cast<std::uint16_t>(k);
    }
  }
  __syncwarp(); // all that is `mine` comes from the same warp
  for (int k = lane; sorted && k < length; k += lanes) {
    int before = 0;
    for (int other = 0; other < length; ++other) before += mine[other] < mine[k];
    to_columns[to + before] = mine[k];
    step_entries[begin + before] = static_cast<std::uint16_t>(k);
  }
}

class Search {
public:
  Search(Executor &executor, const csr::DeviceArrays &a)
    : executor_(executor), algorithms_(executor), a_(a), most_(static_cast<int>(most_levels(a.rows))), list_(executor, a.rows),
      count_(executor, most_ + 1), state_(executor, 1) {
    TCBOUND_CUDA(cudaMemsetAsync(state_.data(), 0, sizeof(State), stream()));
    csr::with_offsets(a_, [&](const auto *offsets) {
      find_start<<<resident_blocks(8), block, 0, stream()>>>(offsets, a.rows, a.nonzeros / a.rows, state_.data());
      TCBOUND_LAUNCHED();
    });
  }

  // The distance of each row from the one that is the farthest so far.
  void run(std::int32_t *level) {
    TCBOUND_CUDA(cudaMemsetAsync(level, -1, sizeof(std::int32_t) * static_cast<std::size_t>(a_.rows), stream()));
    TCBOUND_CUDA(cudaMemsetAsync(count_.data(), 0, static_cast<std::size_t>(count_.bytes()), stream()));
    start<<<1, 1, 0, stream()>>>(level, found(), state_.data());
    TCBOUND_LAUNCHED();
    csr::with_offsets(a_, [&](const auto *offsets) { search(offsets, level); });
  }

  // Finds the row that is farthest from where both are distances from.
  void find_next(const std::int32_t *level, const std::int32_t *other) {
    find_farthest<<<resident_blocks(8), block, 0, stream()>>>(level, other, a_.rows, state_.data());
    TCBOUND_LAUNCHED();
  }

  bool failed() { return algorithms_.read(&state_.data()->failed) != 0; }

  Array<std::int32_t> order(const std::int32_t *first, const std::int32_t *second, const std::int32_t *third) {
    Array<std::uint64_t> keys(executor_, a_.rows), keys_out(executor_, a_.rows);
    Array<std::int32_t>  numbers(executor_, a_.rows), sorted(executor_, a_.rows);
    const int            bits = bits_of(most_ + 1);
    make_keys<<<grid_for(a_.rows), block, 0, stream()>>>(first, second, third, a_.rows, bits, keys.data(), numbers.data());
    TCBOUND_LAUNCHED();
    algorithms_.sort_pairs(keys.data(), keys_out.data(), numbers.data(), sorted.data(), a_.rows, 3 * bits);
    return sorted;
  }

private:
  cudaStream_t stream() const { return algorithms_.stream(); }
  Found        found() { return {list_.data(), count_.data()}; }
  unsigned     resident_blocks(int of_one) const { return static_cast<unsigned>(of_one * executor_.device().multiprocessors); }

  template <class Offset> void search(const Offset *offsets, std::int32_t *level) {
    const auto          kernel = search_levels<Offset>;
    const std::int32_t *columns = a_.columns.data();
    auto                rows = static_cast<std::int32_t>(a_.rows);
    int                 of_one = 0, lanes = lanes_of_row(a_), most = most_, least = fewest_levels(a_.rows);
    Found               to = found();
    State              *state = state_.data();
    void               *arguments[] = {&offsets, &columns, &rows, &lanes, &most, &least, &level, &to, &state};
    TCBOUND_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_one, kernel, search_threads, 0));
    TCBOUND_CUDA(
      cudaLaunchCooperativeKernel(kernel, dim3(resident_blocks(of_one)), dim3(search_threads), arguments, 0, stream()));
  }

  Executor                &executor_;
  Algorithms               algorithms_;
  const csr::DeviceArrays &a_;
  int                      most_; // levels of a search
  Array<std::int32_t>      list_, count_;
  Array<State>             state_;
};

} // namespace

static Array<std::int32_t> find_order(Executor &executor, const csr::DeviceArrays &a) {
  if (a.rows == 0 || most_levels(a.rows) >= 1 << 15) return {}; // levels must fit into 16 bits
  Search              search(executor, a);
  Array<std::int32_t> levels[3];
  std::int32_t       *first, *second, *third;
  for (Array<std::int32_t> &level : levels) level = Array<std::int32_t>(executor, a.rows);
  first = levels[0].data();
  second = levels[1].data();
  third = levels[2].data();
  search.run(third); // only to find a row at the end of the graph
  search.find_next(third, third);
  search.run(first);
  search.find_next(first, first);
  search.run(second);
  search.find_next(first, second);
  search.run(third);
  if (search.failed()) return {};
  return search.order(first, second, third);
}

Renumbered renumber(Executor &executor, const csr::DeviceArrays &a, std::int32_t longest) {
  Renumbered renumbered;
  renumbered.order = find_order(executor, a);
  if (renumbered.order.size() == 0) return renumbered;
  Algorithms         algorithms(executor);
  const cudaStream_t stream = algorithms.stream();
  csr::DeviceArrays &to = renumbered.matrix;
  renumbered.numbers = Array<std::int32_t>(executor, a.rows);
  renumbered.step_entries = Array<std::uint16_t>(executor, a.nonzeros);
  to.rows = a.rows;
  to.columns_count = a.columns_count;
  to.nonzeros = a.nonzeros;
  to.wide = a.wide;
  to.columns = Array<std::int32_t>(executor, a.nonzeros);
  const auto take = [&](const auto &offsets, auto &to_offsets) {
    to_offsets = std::decay_t<decltype(to_offsets)>(executor, a.rows + 1);
    invert<<<grid_for(a.rows + 1), block, 0, stream>>>(offsets.data(), renumbered.order.data(), a.rows,
                                                       renumbered.numbers.data(), to_offsets.data());
    TCBOUND_LAUNCHED();
    algorithms.exclusive_sum(to_offsets.data(), to_offsets.data(), a.rows + 1);
    const int lanes = lanes_of_row(a);
    take_rows<<<grid_for(lanes * a.rows), block, 0, stream>>>(
      offsets.data(), a.columns.data(), renumbered.order.data(), renumbered.numbers.data(), a.rows, longest, lanes,
      to_offsets.data(), to.columns.data(), renumbered.step_entries.data());
    TCBOUND_LAUNCHED();
  };
  if (a.wide)
    take(a.wide_offsets, to.wide_offsets);
  else
    take(a.narrow_offsets, to.narrow_offsets);
  return renumbered;
}

} // namespace tcbound::sell
