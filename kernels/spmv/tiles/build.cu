// Building a matrix of format tiles from CSR in device memory.
//
// Runs are numbered tile by tile, r = tile * bins + bin, and the sums and places of all that comes before are counted by prefix sums, so
// that each entry finds its place by itself.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "../csr/lower_bound.h"
#include "cuda/algorithms.h"
#include "cuda/error.h"
#include "device_matrix.h"

namespace tcbound::tiles {
namespace {

using csr::lower_bound;

constexpr int block = 256;
constexpr int most_together = 1024; // sums of a row in a bin with other rows

unsigned grid_for(std::int64_t threads) { return static_cast<unsigned>((threads + block - 1) / block); }

__device__ std::int64_t global_index() { return blockIdx.x * static_cast<std::int64_t>(block) + threadIdx.x; }

// ---- Entries by tile, and by row within one ----

// Rows and tiles of a few entries that follow each other.
constexpr int   at_once = 16;
__global__ void look_at_entries(const std::int32_t *offsets, std::int32_t rows, const std::int32_t *columns,
                                std::int32_t nonzeros, std::int32_t *row_of, std::uint16_t *tile_of, std::int32_t *numbers) {
  const std::int64_t first = global_index() * at_once;
  if (first >= nonzeros) return;
  std::int32_t row = lower_bound(offsets, 0, rows + 1, static_cast<std::int32_t>(first) + 1) - 1;
  for (auto k = static_cast<std::int32_t>(first); k < min(static_cast<std::int64_t>(nonzeros), first + at_once); ++k) {
    if (offsets[row + 1] <= k && offsets[++row + 1] <= k) // there are empty rows between
      row = lower_bound(offsets, row, rows + 1, k + 1) - 1;
    row_of[k] = row;
    tile_of[k] = static_cast<std::uint16_t>(columns[k] >> log2_width);
    numbers[k] = k;
  }
}

// The entries in their new order: number in the CSR, tile and row.
struct Sorted {
  const std::int32_t  *numbers;
  const std::uint16_t *tiles;
  std::int32_t        *rows;
  std::int32_t         count;

  __device__ bool ends(std::int32_t k) const { // its segment
    return k + 1 == count || tiles[k + 1] != tiles[k] || rows[k + 1] != rows[k];
  }
};

__global__ void take_rows(const Sorted a, const std::int32_t *row_of) {
  const std::int64_t k = global_index();
  if (k < a.count) a.rows[k] = row_of[a.numbers[k]];
}

// ends[k]: 1 if a segment does; ends[count] for the sum of all. segments: of rows, zeros before.
__global__ void find_segments(const Sorted a, std::int32_t *ends, std::int32_t *segments) {
  const std::int64_t k = global_index();
  if (k > a.count) return;
  const bool end = k < a.count && a.ends(static_cast<std::int32_t>(k));
  ends[k] = end;
  if (end) atomicAdd(segments + a.rows[k], 1);
}

// ---- Bins ----

// What a row may need of its bin's places: its segments, and what strips cut of them.
// most: of the rows that share a bin with others.
__global__ void weigh_rows(const std::int32_t *offsets, const std::int32_t *segments, std::int64_t rows, std::int64_t *weights,
                           int *most) {
  const std::int64_t i = global_index();
  const int weight = i < rows ? segments[i] + static_cast<int>(2LL * (offsets[i + 1] - offsets[i]) / used_of_strip) + 1 : 0;
  if (i <= rows) weights[i] = weight;
  const int greatest = __reduce_max_sync(0xffffffffU, weight <= most_together ? weight : 0);
  if (threadIdx.x % 32 == 0 && greatest > *most) atomicMax(most, greatest);
}

struct BeginsBin {
  const std::int64_t *before; // weights of the rows before
  std::int64_t        target;

  __device__ bool is_heavy(std::int32_t row) const { return before[row + 1] - before[row] > most_together; }
  __device__ bool operator()(std::int32_t row) const {
    return row == 0 || before[row] / target != before[row - 1] / target || is_heavy(row) || is_heavy(row - 1);
  }
};

__global__ void number_bins(const std::int32_t *first_rows, std::int32_t bins, std::int64_t rows, std::int32_t *bin_of) {
  const std::int64_t row = global_index();
  if (row < rows) bin_of[row] = lower_bound(first_rows, 0, bins, static_cast<std::int32_t>(row) + 1) - 1;
}

// ---- Runs ----

struct Runs {
  const std::int32_t *begins; // of run r among the sorted entries; of the one after the last run, too, as in what follows
  const std::int32_t
    *places; // before it, in all tiles; each run has one for each entry, and one more after an odd number of sums
  const std::int32_t *sums; // before it, in all tiles, but for what strips cut
  const std::int32_t *ends; // segments that end before a sorted entry
  std::int32_t        bins, tiles;

  __device__ std::int32_t length(std::int32_t r) const { return begins[r + 1] - begins[r]; }
  __device__ std::int32_t segments(std::int32_t r) const { return ends[begins[r + 1]] - ends[begins[r]]; }
  __device__ std::int32_t in_tile(std::int32_t r) const { return places[r] - places[r / bins * bins]; } // places before
};

__global__ void find_runs(const Sorted a, const std::int32_t *first_rows, std::int32_t bins, std::int32_t tiles,
                          std::int32_t *begins) {
  const std::int64_t r = global_index(), count = static_cast<std::int64_t>(tiles) * bins;
  if (r > count) return;
  const auto         tile = static_cast<std::int32_t>(r / bins);
  const std::int32_t begin = lower_bound(a.tiles, 0, a.count, tile), end = lower_bound(a.tiles, begin, a.count, tile + 1);
  begins[r] = r == count ? a.count : lower_bound(a.rows, begin, end, first_rows[r % bins]);
}

__global__ void measure_runs(const Runs runs, std::int32_t *places, std::int32_t *sums) {
  const std::int64_t r = global_index(), count = static_cast<std::int64_t>(runs.tiles) * runs.bins;
  if (r > count) return;
  const std::int32_t segments = r < count ? runs.segments(static_cast<std::int32_t>(r)) : 0, odd = segments & 1;
  places[r] = r < count ? runs.length(static_cast<std::int32_t>(r)) + odd : 0;
  sums[r] = segments + odd;
}

// ---- Places ----

// Of each tile, and of the one after the last: chunks and strips before.
struct TileTable {
  std::int32_t *chunks, *strips;
};

__global__ void measure_tiles(const Runs runs, const TileTable to) {
  const auto t = static_cast<std::int32_t>(global_index());
  if (t > runs.tiles) return;
  const std::int32_t places = t < runs.tiles ? runs.places[(t + 1) * runs.bins] - runs.places[t * runs.bins] : 0;
  const std::int32_t strips = (places + used_of_strip - 1) / used_of_strip;
  const std::int32_t in_last = places - (strips - 1) * used_of_strip;
  to.strips[t] = strips;
  to.chunks[t] = strips == 0 ? 0 : (strips - 1) * chunks_of_strip + (in_last + chunk - 1) / chunk;
}

__global__ void name_tiles(const TileTable tiles, std::int32_t count, std::int64_t chunks, std::int32_t *tile_of) {
  const std::int64_t c = global_index();
  if (c < chunks) tile_of[c] = lower_bound(tiles.chunks, 0, count, static_cast<std::int32_t>(c) + 1) - 1;
}

struct Filled {
  std::uint16_t *columns;
  std::int32_t  *order, *first_sum;
  std::int32_t  *cuts;    // of each strip: 1 if a sum is cut there
  std::int32_t  *partial; // of each entry of the CSR: 1 if a partial sum ends with it
};

// Place `i` of a tile.
struct PlaceOf {
  std::int32_t strip, in_strip; // strip: of all tiles
  std::int64_t place;

  __device__ PlaceOf(const TileTable &tiles, std::int32_t tile, std::int32_t i) {
    const std::int32_t in_tile = i / used_of_strip;
    strip = tiles.strips[tile] + in_tile;
    in_strip = i % used_of_strip;
    place = (static_cast<std::int64_t>(tiles.chunks[tile]) + in_tile * chunks_of_strip) * chunk + in_strip;
  }
};

__global__ void place_entries(const Sorted a, const Runs runs, const TileTable tiles, const std::int32_t *bin_of,
                              const std::int32_t *columns, const Filled to) {
  const std::int64_t i = global_index();
  if (i >= a.count) return;
  const auto         k = static_cast<std::int32_t>(i);
  const std::int32_t tile = a.tiles[k], r = tile * runs.bins + bin_of[a.rows[k]], number = a.numbers[k];
  const PlaceOf      at(tiles, tile, runs.in_tile(r) + k - runs.begins[r]);
  const bool         end = a.ends(k), cut = !end && at.in_strip == used_of_strip - 1;
  to.order[at.place] = number;
  to.columns[at.place] =
    static_cast<std::uint16_t>(stored_column(columns[number] & (width - 1)) | (end || cut ? ends : std::uint16_t(0)));
  to.partial[number] = end || cut;
  if (cut) {
    to.columns[at.place + 1] = ends;
    to.cuts[at.strip] = 1;
  }
  if (at.in_strip == 0) to.first_sum[at.strip] = runs.sums[r] + runs.ends[k] - runs.ends[runs.begins[r]];
}

// The places after runs of an odd number of sums.
__global__ void place_fillers(const Runs runs, const TileTable tiles, const Filled to) {
  const std::int64_t i = global_index();
  if (i >= static_cast<std::int64_t>(runs.tiles) * runs.bins) return;
  const auto         r = static_cast<std::int32_t>(i);
  const std::int32_t segments = runs.segments(r);
  if (segments % 2 == 0) return;
  const PlaceOf at(tiles, r / runs.bins, runs.in_tile(r) + runs.length(r));
  to.columns[at.place] = ends;
  if (at.in_strip == 0) to.first_sum[at.strip] = runs.sums[r] + segments;
}

// cuts: before each strip, as in what follows. Each makes two sums more.
__global__ void count_cuts(const std::int32_t *cuts, std::int64_t strips, std::int32_t *first_sum) {
  const std::int64_t s = global_index();
  if (s < strips) first_sum[s] += 2 * cuts[s];
}

// ---- The second pass ----

__device__ std::int32_t start_of(const Runs &runs, const TileTable &tiles, const std::int32_t *cuts, std::int32_t r) {
  const std::int32_t tile = r / runs.bins;
  const std::int32_t strip = tiles.strips[tile] + (tile < runs.tiles ? runs.in_tile(r) / used_of_strip : 0);
  return runs.sums[r] + 2 * cuts[strip];
}

// A block a bin. *longest becomes the most that one with several rows has.
__global__ void __launch_bounds__(block) list_runs(const Runs runs, const TileTable tiles, const std::int32_t *cuts,
                                                   const std::int32_t *first_rows, std::int32_t rows, Run *to, int *longest) {
  using Scan = cub::BlockScan<int, block>;
  __shared__ Scan::TempStorage storage;
  const auto                   bin = static_cast<std::int32_t>(blockIdx.x);
  int                          before = 0;
  for (std::int32_t first = 0; first < runs.tiles; first += block) {
    const std::int32_t tile = first + static_cast<std::int32_t>(threadIdx.x), r = tile * runs.bins + bin;
    std::int32_t       start = 0;
    int                count = 0, at, all;
    if (tile < runs.tiles) {
      start = start_of(runs, tiles, cuts, r);
      count = start_of(runs, tiles, cuts, r + 1) - start;
    }
    Scan(storage).ExclusiveSum(count, at, all);
    if (tile < runs.tiles)
      to[static_cast<std::int64_t>(bin) * runs.tiles + tile] = {start, static_cast<std::uint16_t>(before + at),
                                                                static_cast<std::uint16_t>(count)};
    before += all;
    __syncthreads(); // all are done with the storage
  }
  const std::int32_t end = bin + 1 < runs.bins ? first_rows[bin + 1] : rows;
  if (threadIdx.x == 0 && end - first_rows[bin] > 1 && before > *longest) atomicMax(longest, before);
}

// partial: how many sums end before each entry of the CSR.
__global__ void count_row_sums(const std::int32_t *offsets, const std::int32_t *partial, std::int64_t rows,
                               std::int32_t *row_sums) {
  const std::int64_t i = global_index();
  if (i <= rows) row_sums[i] = partial[offsets[i]];
}

constexpr std::int32_t together = 8; // 16 bits each in a copy of 16 bytes
constexpr int          sums_of_lane = 16;

__global__ void measure_bins(const std::int32_t *first_rows, std::int32_t bins, std::int32_t rows, const std::int32_t *row_sums,
                             std::int64_t *lists) {
  const std::int64_t b = global_index();
  if (b > bins) return;
  const std::int32_t end = b + 1 < bins ? first_rows[b + 1] : rows;
  lists[b] = b < bins ? (row_sums[end] - row_sums[first_rows[b]] + together - 1) / together * together : 0;
}

__global__ void list_bins(const std::int32_t *first_rows, std::int32_t bins, std::int32_t rows, const std::int32_t *row_sums,
                          const std::int64_t *lists, Bin *to) {
  const std::int64_t b = global_index();
  if (b >= bins) return;
  const std::int32_t row = first_rows[b], end = b + 1 < bins ? first_rows[b + 1] : rows;
  const std::int32_t sums = row_sums[end] - row_sums[row];
  int                lanes = 1;
  while (lanes < 32 && static_cast<std::int64_t>(lanes) * sums_of_lane * (end - row) < sums) lanes *= 2;
  to[b] = {row, end - row, static_cast<std::int32_t>(lists[b]), row_sums[row], sums, lanes};
}

__global__ void place_sums(const Sorted a, const Runs runs, const TileTable tiles, const std::int32_t *cuts,
                           const std::int32_t *bin_of, const std::int32_t *partial, const std::int32_t *row_sums,
                           const Bin *bins, const Run *listed, std::uint16_t *places) {
  const std::int64_t i = global_index();
  if (i >= a.count) return;
  const auto         k = static_cast<std::int32_t>(i);
  const std::int32_t number = a.numbers[k];
  if (partial[number + 1] == partial[number]) return;
  const std::int32_t tile = a.tiles[k], b = bin_of[a.rows[k]], r = tile * runs.bins + b;
  const PlaceOf      at(tiles, tile, runs.in_tile(r) + k - runs.begins[r]);
  const std::int32_t sum = runs.sums[r] + runs.ends[k] - runs.ends[runs.begins[r]] + 2 * cuts[at.strip];
  const Run          run = listed[static_cast<std::int64_t>(b) * runs.tiles + tile];
  places[bins[b].first + partial[number] - row_sums[bins[b].row]] = static_cast<std::uint16_t>(run.at + sum - run.start);
}

class Builder {
public:
  Builder(Executor &executor, csr::DeviceArrays csr) : executor_(executor), algorithms_(executor) {
    matrix_.csr = std::move(csr);
    rows_ = static_cast<std::int32_t>(matrix_.csr.rows);
    nonzeros_ = static_cast<std::int32_t>(matrix_.csr.nonzeros);
    tiles_ = static_cast<std::int32_t>((matrix_.csr.columns_count + width - 1) / width);
  }

  DeviceMatrix build() {
    Census &census = matrix_.census;
    census.rows = rows_;
    census.columns = matrix_.csr.columns_count;
    census.nonzeros = nonzeros_;
    if (rows_ == 0) return std::move(matrix_);
    if (tiles_ == 0) tiles_ = 1; // of no columns
    census.tiles = tiles_;
    sort_entries();
    choose_bins();
    find_runs();
    lay_out();
    place();
    list_sums();
    numbers_ = Array<std::int32_t>(); // before values take memory
    sorted_rows_ = Array<std::int32_t>();
    ends_ = Array<std::int32_t>();
    partial_ = Array<std::int32_t>();
    tile_keys_ = Array<std::uint16_t>();
    census.bytes = matrix_.columns.bytes() + matrix_.first_sum.bytes() + matrix_.items.bytes() + matrix_.bins.bytes() +
                   matrix_.runs.bytes() + matrix_.row_sums.bytes() + matrix_.places.bytes();
    census.value_bytes = 2;
    refill(executor_, matrix_, matrix_.csr.values.data());
    executor_.synchronize(); // what is read may now go, and the executor may be on another stream when the matrix is used
    matrix_.csr.columns = Array<std::int32_t>();
    matrix_.csr.values = Array<double>();
    return std::move(matrix_);
  }

private:
  cudaStream_t stream() const { return algorithms_.stream(); }

  template <class T> Array<T> zeros(std::int64_t size) {
    Array<T> array(executor_, size);
    if (size > 0) TCBOUND_CUDA(cudaMemsetAsync(array.data(), 0, static_cast<std::size_t>(array.bytes()), stream()));
    return array;
  }
  template <class T> Array<T> some(std::int64_t size) { return Array<T>(executor_, size); }

  // Launches with a thread each.
  template <class... Parameters, class... Given>
  void launch(std::int64_t threads, void (*kernel)(Parameters...), Given &&...given) {
    if (threads == 0) return;
    kernel<<<grid_for(threads), block, 0, stream()>>>(std::forward<Given>(given)...);
    TCBOUND_LAUNCHED();
  }

  const std::int32_t *offsets() const { return matrix_.csr.narrow_offsets.data(); }
  std::int64_t        run_count() const { return static_cast<std::int64_t>(tiles_) * bins_; }
  Sorted              sorted() { return {numbers_.data(), tile_keys_.data(), sorted_rows_.data(), nonzeros_}; }
  Runs      runs() const { return {begins_.data(), run_places_.data(), run_sums_.data(), ends_.data(), bins_, tiles_}; }
  TileTable tile_table() { return {tile_chunks_.data(), tile_strips_.data()}; }

  void sort_entries() {
    Array<std::int32_t>  row_of = some<std::int32_t>(nonzeros_), unsorted = some<std::int32_t>(nonzeros_);
    Array<std::uint16_t> keys = some<std::uint16_t>(nonzeros_);
    numbers_ = some<std::int32_t>(nonzeros_);
    tile_keys_ = some<std::uint16_t>(nonzeros_);
    sorted_rows_ = some<std::int32_t>(nonzeros_);
    launch((nonzeros_ + at_once - 1) / at_once, look_at_entries, offsets(), rows_, matrix_.csr.columns.data(), nonzeros_,
           row_of.data(), keys.data(), unsorted.data());
    algorithms_.sort_pairs(keys.data(), tile_keys_.data(), unsorted.data(), numbers_.data(), nonzeros_,
                           std::max(bits_of(tiles_ - 1), 1));
    launch(nonzeros_, take_rows, sorted(), row_of.data());
  }

  void choose_bins() {
    Array<std::int32_t> segments = zeros<std::int32_t>(rows_);
    Array<std::int64_t> weights = some<std::int64_t>(rows_ + std::int64_t(1));
    Array<int>          most = zeros<int>(1);
    ends_ = some<std::int32_t>(nonzeros_ + std::int64_t(1));
    launch(nonzeros_ + std::int64_t(1), find_segments, sorted(), ends_.data(), segments.data());
    algorithms_.exclusive_sum(ends_.data(), ends_.data(), nonzeros_ + std::int64_t(1));
    launch(rows_ + std::int64_t(1), weigh_rows, offsets(), segments.data(), std::int64_t(rows_), weights.data(), most.data());
    algorithms_.exclusive_sum(weights.data(), weights.data(), rows_ + std::int64_t(1));
    // A bin's rows weigh no more than the target and the last of them. In each tile one sum more may be cut, which makes two more, and a
    // filler comes after an odd number.
    const int target = capacity - 3 * tiles_ - 2 - algorithms_.read(most.data());
    static_assert(capacity - 3 * most_tiles - 2 - most_together > 0);
    Array<std::int32_t> first_rows = some<std::int32_t>(rows_);
    bins_ = static_cast<std::int32_t>(
      algorithms_.select_numbers(first_rows.data(), rows_, BeginsBin{weights.data(), std::int64_t(target)}));
    first_rows_ = std::move(first_rows);
    bin_of_ = some<std::int32_t>(rows_);
    launch(rows_, number_bins, first_rows_.data(), bins_, std::int64_t(rows_), bin_of_.data());
    matrix_.census.bins = bins_;
  }

  void find_runs() {
    const std::int64_t count = run_count();
    if (2 * count + nonzeros_ > std::numeric_limits<std::int32_t>::max())
      throw Error(ErrorCode::unsupported, "spmv/tiles/cuda_core: there are too many runs");
    begins_ = some<std::int32_t>(count + 1);
    run_places_ = some<std::int32_t>(count + 1);
    run_sums_ = some<std::int32_t>(count + 1);
    launch(count + 1, tiles::find_runs, sorted(), first_rows_.data(), bins_, tiles_, begins_.data());
    launch(count + 1, measure_runs, runs(), run_places_.data(), run_sums_.data());
    algorithms_.exclusive_sum(run_places_.data(), run_places_.data(), count + 1);
    algorithms_.exclusive_sum(run_sums_.data(), run_sums_.data(), count + 1);
  }

  void lay_out() {
    const std::int32_t tables = tiles_ + 1;
    tile_chunks_ = some<std::int32_t>(tables);
    tile_strips_ = some<std::int32_t>(tables);
    launch(tables, measure_tiles, runs(), tile_table());
    algorithms_.exclusive_sum(tile_chunks_.data(), tile_chunks_.data(), tables);
    algorithms_.exclusive_sum(tile_strips_.data(), tile_strips_.data(), tables);
    std::vector<std::int32_t> chunks(static_cast<std::size_t>(tables)), strips(chunks.size());
    executor_.copy(chunks.data(), MemorySpace::host, tile_chunks_.data(), MemorySpace::cuda, 4 * chunks.size());
    executor_.copy(strips.data(), MemorySpace::host, tile_strips_.data(), MemorySpace::cuda, 4 * strips.size());
    const std::int64_t blocks = sum_blocks * executor_.device().multiprocessors; // that run at once
    const auto         each = static_cast<std::int32_t>(
      chunks_of_strip * std::clamp((strips.back() + blocks - 1) / blocks, std::int64_t(1), std::int64_t(sum_warps)));
    std::vector<Item> items;
    for (std::int32_t t = 0; t < tiles_; ++t)
      for (std::int32_t c = chunks[t]; c < chunks[t + 1]; c += each)
        items.push_back({t, strips[t] + (c - chunks[t]) / chunks_of_strip, c, std::min(each, chunks[t + 1] - c)});
    matrix_.items = some<Item>(static_cast<std::int64_t>(items.size()));
    if (!items.empty())
      executor_.copy(matrix_.items.data(), MemorySpace::cuda, items.data(), MemorySpace::host, items.size() * sizeof(Item));
    chunks_ = chunks.back();
    strips_ = strips.back();
    matrix_.census.places = chunks_ * chunk;
  }

  void place() {
    matrix_.columns = zeros<std::uint16_t>(matrix_.census.places);
    matrix_.order = some<std::int32_t>(matrix_.census.places);
    if (matrix_.order.size() > 0)
      TCBOUND_CUDA(cudaMemsetAsync(matrix_.order.data(), 0xff, static_cast<std::size_t>(matrix_.order.bytes()), stream()));
    matrix_.tile_of = some<std::int32_t>(chunks_);
    matrix_.first_sum = some<std::int32_t>(strips_);
    cuts_ = zeros<std::int32_t>(strips_ + 1);
    partial_ = zeros<std::int32_t>(nonzeros_ + std::int64_t(1));
    const Filled to = {matrix_.columns.data(), matrix_.order.data(), matrix_.first_sum.data(), cuts_.data(), partial_.data()};
    launch(chunks_, name_tiles, tile_table(), tiles_, chunks_, matrix_.tile_of.data());
    launch(nonzeros_, place_entries, sorted(), runs(), tile_table(), bin_of_.data(), matrix_.csr.columns.data(), to);
    launch(run_count(), place_fillers, runs(), tile_table(), to);
    algorithms_.exclusive_sum(cuts_.data(), cuts_.data(), strips_ + 1);
    launch(strips_, count_cuts, cuts_.data(), strips_, matrix_.first_sum.data());
  }

  void list_sums() {
    Array<std::int64_t> lists = some<std::int64_t>(bins_ + std::int64_t(1));
    Array<int>          longest = zeros<int>(1);
    matrix_.runs = some<Run>(run_count());
    list_runs<<<static_cast<unsigned>(bins_), block, 0, stream()>>>(runs(), tile_table(), cuts_.data(), first_rows_.data(),
                                                                    rows_, matrix_.runs.data(), longest.data());
    TCBOUND_LAUNCHED();
    algorithms_.exclusive_sum(partial_.data(), partial_.data(), nonzeros_ + std::int64_t(1));
    matrix_.row_sums = some<std::int32_t>(rows_ + std::int64_t(1));
    launch(rows_ + std::int64_t(1), count_row_sums, offsets(), partial_.data(), std::int64_t(rows_), matrix_.row_sums.data());
    launch(bins_ + std::int64_t(1), measure_bins, first_rows_.data(), bins_, rows_, matrix_.row_sums.data(), lists.data());
    algorithms_.exclusive_sum(lists.data(), lists.data(), bins_ + std::int64_t(1));
    matrix_.bins = some<Bin>(bins_);
    launch(bins_, list_bins, first_rows_.data(), bins_, rows_, matrix_.row_sums.data(), lists.data(), matrix_.bins.data());
    const auto [most, places, sums, cuts] =
      algorithms_.read_all(longest.data(), lists.data() + bins_, run_sums_.data() + run_count(), cuts_.data() + strips_);
    if (most > capacity) throw Error(ErrorCode::invalid, "spmv/tiles/cuda_core: a bin has more sums than fit");
    matrix_.places = zeros<std::uint16_t>(places);
    matrix_.census.sums = sums + 2 * cuts;
    matrix_.sums = zeros<double>(matrix_.census.sums);
    launch(nonzeros_, place_sums, sorted(), runs(), tile_table(), cuts_.data(), bin_of_.data(), partial_.data(),
           matrix_.row_sums.data(), matrix_.bins.data(), matrix_.runs.data(), matrix_.places.data());
  }

  Executor    &executor_;
  Algorithms   algorithms_;
  DeviceMatrix matrix_;
  std::int32_t rows_ = 0, nonzeros_ = 0, tiles_ = 0, bins_ = 0;
  std::int64_t chunks_ = 0, strips_ = 0;
  // The entries by tile and row: number in the CSR, tile, row, segments that end before.
  Array<std::int32_t>  numbers_, sorted_rows_, ends_;
  Array<std::uint16_t> tile_keys_;
  Array<std::int32_t>  first_rows_, bin_of_;              // of bins, of rows
  Array<std::int32_t>  begins_, run_places_, run_sums_;   // of runs
  Array<std::int32_t>  tile_chunks_, tile_strips_, cuts_; // cuts: before each strip
  Array<std::int32_t>  partial_;                          // sums that end before each entry of the CSR
};

} // namespace

DeviceMatrix build(Executor &executor, csr::DeviceArrays csr) { return Builder(executor, std::move(csr)).build(); }

} // namespace tcbound::tiles
