// Makes a matrix of format diagonals from CSR in device memory.
//
// A row that is no row of the remainder for its pattern writes what it has to its own planes. If the matrix is mirrored, each row then
// compares its other entries with what their mirror images' rows wrote. Of two rows that contradict each other, the one with more
// contradictions goes to the remainder, or the later one; where the other one stays, its entry takes the place.
#include <algorithm>
#include <vector>

#include "../compact/grid.h"
#include "../csr/row_subset.h"
#include "cuda/algorithms.h"
#include "cuda/error.h"
#include "row_kernels.h"

namespace tcbound::diagonals {
namespace {

// What a warp finds out about a row of the sample.
struct Seen {
  std::int32_t length;
  std::int32_t symmetric;
};

// One warp a row. Columns of row i of the sample go to columns + i * limit unless there are more.
template <class Offset>
__global__ void __launch_bounds__(32)
  look_at_rows(const RowsView<Offset> a, const std::int64_t *rows, int limit, Seen *seen, std::int32_t *columns) {
  const int          i = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x);
  const std::int64_t row = rows[i], begin = a.offsets[row], end = a.offsets[row + 1];
  bool               same = true;
  for (std::int64_t k = begin + lane; end - begin <= limit && k < end; k += 32) {
    const std::int32_t column = a.columns[k];
    columns[static_cast<std::int64_t>(i) * limit + (k - begin)] = column;
    if (column >= row) continue;
    const std::int64_t last = a.offsets[column + 1],
                       low = csr::lower_bound(a.columns, std::int64_t(a.offsets[column]), last, row);
    same = same && low < last && a.columns[low] == row && bits_of(a.values[low]) == bits_of(a.values[k]);
  }
  same = __all_sync(0xffffffffU, same);
  if (lane == 0) seen[i] = {static_cast<std::int32_t>(min(end - begin, static_cast<std::int64_t>(limit + 1))), same};
}

// Each row writes its own places. Marks rows with entries that have none and with values that look absent.
template <class Offset, class Value>
__global__ void __launch_bounds__(row_block) place_own(const RowsView<Offset> a, const __grid_constant__ Table table,
                                                       std::int64_t stride, Value *planes, std::uint8_t *irregular, int *any) {
  __shared__ int found[block_rows];                     // entries that have a place
  if (threadIdx.x < block_rows) found[threadIdx.x] = 0; // before the barrier of take_row()
  Row        row;
  const bool there = take_row(a, table, row);
  bool       readable = true;
  if (there) {
    const std::int64_t mine = walk_row(table, row, [&](const Place &place, std::int64_t other, int, bool entry, double value) {
      if (entry && !can_store<Value>(value)) readable = false;
      if (!place.mirrored) planes[index_of(place, stride, row.p, other)] = entry ? static_cast<Value>(value) : absent<Value>();
    });
    atomicAdd(found + threadIdx.x % block_rows, static_cast<int>(mine));
  }
  __syncthreads();
  if (!there || (readable && found[threadIdx.x % block_rows] == row.length)) return;
  irregular[row.i] = 1;
  *any = 1;
}

// Calls f(other row, value or the absent one as stored, index in the planes) for the mirrored places of a row that is not in the remainder.
template <class Value, class F>
__device__ void for_mirrored(const Table &table, const Row &row, std::int64_t stride, const std::uint8_t *irregular, F &&f) {
  if (irregular[row.i]) return;
  walk_row(table, row, [&](const Place &place, std::int64_t other, int d, bool there, double value) {
    if (place.mirrored && other >= 0)
      f(other * table.node + d, there ? static_cast<Value>(value) : absent<Value>(), index_of(place, stride, row.p, other));
  });
}

// ... where neither row is in the remainder and the entry is not what the other row's is: f(other row).
template <class Value, class F>
__device__ void for_contradictions(const Table &table, const Row &row, std::int64_t stride, const Value *planes,
                                   const std::uint8_t *irregular, F &&f) {
  for_mirrored<Value>(table, row, stride, irregular, [&](std::int64_t other, Value value, std::int64_t index) {
    if (bits_of(planes[index]) != bits_of(value) && !irregular[other]) f(other);
  });
}

template <class Offset, class Value>
__global__ void __launch_bounds__(row_block)
  count_contradictions(const RowsView<Offset> a, const __grid_constant__ Table table, std::int64_t stride, const Value *planes,
                       const std::uint8_t *irregular, std::int32_t *contradictions, int *any) {
  Row row;
  if (!take_row(a, table, row)) return;
  int mine = 0;
  for_contradictions(table, row, stride, planes, irregular, [&](std::int64_t other) {
    atomicAdd(contradictions + other, 1);
    ++mine;
  });
  if (mine == 0) return;
  atomicAdd(contradictions + row.i, mine);
  *any = 1;
}

// Of two rows that contradict each other, marks the one with more contradictions, or the later one.
template <class Offset, class Value>
__global__ void __launch_bounds__(row_block)
  part_rows(const RowsView<Offset> a, const __grid_constant__ Table table, std::int64_t stride, const Value *planes,
            const std::uint8_t *irregular, const std::int32_t *contradictions, std::uint8_t *parted) {
  Row row;
  if (!take_row(a, table, row) || contradictions[row.i] == 0) return;
  for_contradictions(table, row, stride, planes, irregular,
                     [&](std::int64_t other) { parted[contradictions[other] > contradictions[row.i] ? other : row.i] = 1; });
}

// Rows write what they share with a row of the remainder.
template <class Offset, class Value>
__global__ void __launch_bounds__(row_block) adopt(const RowsView<Offset> a, const __grid_constant__ Table table,
                                                   std::int64_t stride, Value *planes, const std::uint8_t *irregular) {
  Row row;
  if (!take_row(a, table, row)) return;
  for_mirrored<Value>(table, row, stride, irregular, [&](std::int64_t other, Value value, std::int64_t index) {
    if (irregular[other]) planes[index] = value;
  });
}

__global__ void __launch_bounds__(row_block) add_marks(std::uint8_t *to, const std::uint8_t *from, std::int64_t rows) {
  const std::int64_t i = blockIdx.x * static_cast<std::int64_t>(row_block) + threadIdx.x;
  if (i < rows && from[i]) to[i] = 1;
}

struct IsMarked {
  const std::uint8_t *marks;

  __device__ bool operator()(std::int32_t row) const { return marks[row] != 0; }
};

class Builder {
public:
  Builder(Executor &executor, csr::DeviceArrays csr)
    : executor_(executor), algorithms_(executor), stream_(algorithms_.stream()) {
    matrix_.csr = std::move(csr);
  }

  DeviceMatrix build(bool borrowed, const BuildChoices &choices) {
    csr::DeviceArrays &a = matrix_.csr;
    if (a.rows == a.columns_count && a.rows > 0)
      csr::with_offsets(a, [&](const auto *offsets) { matrix_.table = choose_table(a.rows, look(offsets), choices); });
    if (!all_remainder(matrix_.table)) {
      matrix_.nodes = a.rows / matrix_.table.node;
      matrix_.stride = (matrix_.nodes + 31) / 32 * 32;
      guess_directions();
      list_offsets();
      const int bytes = choices.allow_narrow ? value_width(executor_, a.values.data(), a.nonzeros) : 8;
      matrix_.census.value_bytes = bytes;
      matrix_.values = Array<std::uint8_t>(executor_, bytes * plane_count(matrix_.table) * matrix_.stride);
      csr::with_offsets(a,
                        [&](const auto *offsets) { with_values(matrix_, [&](auto *planes) { place_rows(offsets, planes); }); });
      if (2 * matrix_.remainder.rows > a.rows) give_up();
    }
    if (all_remainder(matrix_.table)) {
      if (borrowed) {
        a.columns = csr::copy_of(executor_, a.columns);
        a.values = csr::copy_of(executor_, a.values);
      }
      matrix_.remainder = std::move(a);
      take_sizes(matrix_.remainder);
    }
    a.columns = Array<std::int32_t>();
    a.values = Array<double>();
    if (matrix_.remainder.rows > 0) matrix_.remainder_product.prepare(executor_, matrix_.remainder, csr::CudaCoreConfig{});
    take_census();
    executor_.synchronize(); // the executor may be on another stream when the matrix is used
    return std::move(matrix_);
  }

private:
  template <class Offset> RowsView<Offset> rows_of(const Offset *offsets) const {
    return {offsets, matrix_.csr.columns.data(), matrix_.csr.values.data(), matrix_.csr.rows,
            staged_entries(matrix_.csr.rows, matrix_.csr.nonzeros)};
  }

  // a's sizes, for products and work, whatever became of its arrays.
  void take_sizes(const csr::DeviceArrays &from) {
    matrix_.csr = csr::DeviceArrays();
    matrix_.csr.rows = from.rows;
    matrix_.csr.columns_count = from.columns_count;
    matrix_.csr.nonzeros = from.nonzeros;
    matrix_.csr.wide = from.wide;
  }

  template <class Offset> Sample look(const Offset *offsets) {
    std::vector<std::int64_t> rows;
    for (const std::int64_t first : sampled_groups(matrix_.csr.rows))
      for (std::int64_t row = first; row < std::min(first + group_rows, matrix_.csr.rows); ++row) rows.push_back(row);
    const auto                count = static_cast<std::int64_t>(rows.size());
    const std::int64_t        mean = matrix_.csr.nonzeros / matrix_.csr.rows;
    const int                 limit = static_cast<int>(std::min<std::int64_t>(longest_seen, 3 * mean + 16));
    std::vector<Seen>         seen(rows.size());
    std::vector<std::int32_t> columns(rows.size() * static_cast<std::size_t>(limit));
    Array<std::int64_t>       device_rows(executor_, count);
    Array<Seen>               device_seen(executor_, count);
    Array<std::int32_t>       device_columns(executor_, count * limit);
    executor_.copy(device_rows.data(), MemorySpace::cuda, rows.data(), MemorySpace::host, rows.size() * sizeof rows[0]);
    look_at_rows<<<static_cast<unsigned>(count), 32, 0, stream_>>>(rows_of(offsets), device_rows.data(), limit,
                                                                   device_seen.data(), device_columns.data());
    TCBOUND_LAUNCHED();
    executor_.copy(seen.data(), MemorySpace::host, device_seen.data(), MemorySpace::cuda, seen.size() * sizeof seen[0]);
    executor_.copy(columns.data(), MemorySpace::host, device_columns.data(), MemorySpace::cuda,
                   columns.size() * sizeof columns[0]);
    Sample sample;
    Group  group;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::int64_t first = rows[i] / group_rows * group_rows;
      SampledRow         row = {seen[i].length, {}, seen[i].symmetric != 0};
      for (int k = 0; k < (row.length <= limit ? row.length : 0); ++k)
        row.distances.push_back(columns[i * static_cast<std::size_t>(limit) + static_cast<std::size_t>(k)] - first);
      group.push_back(std::move(row));
      if (i + 1 < rows.size() && rows[i + 1] / group_rows * group_rows == first) continue;
      ++sample[group];
      group.clear();
    }
    return sample;
  }

  template <class Offset, class Value> void place_rows(const Offset *offsets, Value *planes) {
    const std::int64_t rows = matrix_.csr.rows;
    const auto         a = rows_of(offsets);
    const std::int64_t stride = matrix_.stride;
    const std::size_t  shared = static_cast<std::size_t>(a.staged) * entry_bytes;
    const Table       &table = matrix_.table;
    matrix_.irregular = marks();
    std::uint8_t *const irregular = matrix_.irregular.data();
    Array<std::int32_t> contradictions(executor_, table.mirrored ? rows : 0);
    Array<int>          any(executor_, 2); // irregular patterns, contradictions
    int                 found[2];
    TCBOUND_CUDA(cudaMemsetAsync(any.data(), 0, sizeof found, stream_));
    launch(
      [&](unsigned grid) { place_own<<<grid, row_block, shared, stream_>>>(a, table, stride, planes, irregular, any.data()); });
    if (table.mirrored) {
      TCBOUND_CUDA(cudaMemsetAsync(contradictions.data(), 0, static_cast<std::size_t>(contradictions.bytes()), stream_));
      launch([&](unsigned grid) {
        count_contradictions<<<grid, row_block, shared, stream_>>>(a, table, stride, planes, irregular, contradictions.data(),
                                                                   any.data() + 1);
      });
    }
    executor_.copy(found, MemorySpace::host, any.data(), MemorySpace::cuda, sizeof found);
    if (!found[0] && !found[1]) {
      matrix_.irregular = Array<std::uint8_t>();
      return;
    }
    if (found[1]) {
      Array<std::uint8_t> parted = marks();
      launch([&](unsigned grid) {
        part_rows<<<grid, row_block, shared, stream_>>>(a, table, stride, planes, irregular, contradictions.data(),
                                                        parted.data());
      });
      launch([&](unsigned grid) { add_marks<<<grid, row_block, 0, stream_>>>(irregular, parted.data(), rows); });
    }
    if (table.mirrored)
      launch([&](unsigned grid) { adopt<<<grid, row_block, shared, stream_>>>(a, table, stride, planes, irregular); });
    take_remainder();
  }

  // A thread for each row.
  template <class F> void launch(F &&f) {
    f(grid_for_rows(matrix_.csr.rows));
    TCBOUND_LAUNCHED();
  }

  Array<std::uint8_t> marks() {
    Array<std::uint8_t> none(executor_, matrix_.csr.rows);
    TCBOUND_CUDA(cudaMemsetAsync(none.data(), 0, static_cast<std::size_t>(none.bytes()), stream_));
    return none;
  }

  void take_remainder() {
    const csr::DeviceArrays &a = matrix_.csr;
    Array<std::int32_t>      listed(executor_, a.rows);
    const std::int64_t       count = algorithms_.select_numbers(listed.data(), a.rows, IsMarked{matrix_.irregular.data()});
    matrix_.remainder_rows = Array<std::int32_t>(executor_, count);
    executor_.copy(matrix_.remainder_rows.data(), MemorySpace::cuda, listed.data(), MemorySpace::cuda,
                   static_cast<std::size_t>(matrix_.remainder_rows.bytes()));
    matrix_.remainder = csr::take_rows(executor_, a, matrix_.remainder_rows);
  }

  void guess_directions() {
    std::vector<std::int32_t> offsets;
    for (int k = 0; k < offset_count(matrix_.table); ++k) offsets.push_back(offset_of(matrix_.table, k));
    const compact::Grid grid = compact::guess_grid(offsets);
    matrix_.line = grid.line;
    matrix_.plane = grid.plane;
  }

  // Mirrored: by distance, in pairs.
  void list_offsets() {
    const Table &table = matrix_.table;
    const auto   add = [&](int k) {
      const Place        place = place_of(table, k, 0, 0);
      const std::int32_t other = offset_of(table, k);
      matrix_.offsets.push_back({place.plane * matrix_.stride + (place.mirrored ? other : 0), other, place.mirrored});
    };
    if (!table.mirrored) {
      for (int k = 0; k < table.count; ++k) add(k);
      return;
    }
    const int middle = table.count - 1;
    add(middle);
    for (int k = 1; k < table.count; ++k) {
      add(middle - k);
      add(middle + k);
    }
  }

  // Too many rows found no place.
  void give_up() {
    matrix_.table = Table();
    matrix_.values = Array<std::uint8_t>();
    matrix_.census.value_bytes = 8;
    matrix_.irregular = Array<std::uint8_t>();
    matrix_.remainder_rows = Array<std::int32_t>();
    matrix_.nodes = matrix_.stride = 0;
    matrix_.offsets.clear();
  }

  void take_census() {
    Census &census = matrix_.census;
    census.rows = matrix_.csr.rows;
    census.columns = matrix_.csr.columns_count;
    census.nonzeros = matrix_.csr.nonzeros;
    census.remainder_rows = matrix_.remainder.rows;
    census.remainder_nonzeros = matrix_.remainder.nonzeros;
    census.places = plane_count(matrix_.table) * matrix_.nodes;
    census.node = matrix_.table.node;
    census.offsets = offset_count(matrix_.table);
    census.mirrored = matrix_.table.mirrored;
    census.bytes = census.value_bytes * census.places + matrix_.irregular.bytes() + matrix_.remainder_rows.bytes() +
                   matrix_.remainder.bytes() + matrix_.remainder_product.table().bytes();
  }

  Executor    &executor_;
  Algorithms   algorithms_;
  cudaStream_t stream_;
  DeviceMatrix matrix_;
};

} // namespace

DeviceMatrix build(Executor &executor, csr::DeviceArrays csr, bool borrowed, const BuildChoices &choices) {
  return Builder(executor, std::move(csr)).build(borrowed, choices);
}

} // namespace tcbound::diagonals
