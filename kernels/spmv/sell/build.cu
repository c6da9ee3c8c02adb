// Builds a matrix of format sell on the device: lists the parts of long rows, plans the slices, renumbers if that is worth it, lays the
// slices out, and stores columns and values.
#include <algorithm>
#include <limits>
#include <numeric>

#include "cuda/algorithms.h"
#include "cuda/error.h"
#include "plan.h"
#include "rows.h"
#include "slice_view.h"

namespace tcbound::sell {
namespace {

// What is looked at first.
struct Survey {
  std::int64_t long_rows;
  int          value_bytes; // that each of the first values takes if nothing of it is to be lost
};

constexpr std::int64_t looked_at = 1 << 14; // values; most matrices that have a wide one have it there

__device__ int bytes_of(double value) {
  const auto same = [&](auto stored) {
    return __double_as_longlong(static_cast<double>(stored)) == __double_as_longlong(value);
  };
  return same(Bfloat16(value)) ? 2 : (same(static_cast<float>(value)) ? 4 : 8);
}

template <class Offset>
__global__ void __launch_bounds__(block)
  take_survey(const Rows<Offset> rows, const double *values, std::int64_t nonzeros, Survey *survey) {
  const std::int64_t step = gridDim.x * static_cast<std::int64_t>(block);
  unsigned           long_rows = 0;
  int                bytes = 2;
  for (std::int64_t row = global_index(); row < rows.count; row += step) long_rows += rows.length(row) > rows.longest;
  for (std::int64_t k = global_index(); k < min(nonzeros, looked_at); k += step) bytes = max(bytes, bytes_of(values[k]));
  long_rows = __reduce_add_sync(all_lanes, long_rows);
  bytes = __reduce_max_sync(all_lanes, bytes);
  if (lane_number() != 0) return;
  if (long_rows > 0)
    atomicAdd(reinterpret_cast<unsigned long long *>(&survey->long_rows), static_cast<unsigned long long>(long_rows));
  if (bytes > 2) atomicMax(&survey->value_bytes, bytes);
}

template <class Offset> struct IsLong {
  Rows<Offset> rows;

  __device__ bool operator()(std::int32_t row) const { return rows.length(row) > rows.longest; }
};

__device__ std::int32_t parts_of(std::int64_t length, int part) {
  return static_cast<std::int32_t>((length + part - 1) / part);
}

template <class Offset>
__global__ void count_parts(const Rows<Offset> rows, const std::int32_t *long_rows, std::int64_t count, int part,
                            std::int64_t *parts) {
  const std::int64_t i = global_index();
  if (i <= count) parts[i] = i < count ? parts_of(rows.length(long_rows[i]), part) : 0;
}

template <class Offset>
__global__ void name_parts(const Rows<Offset> rows, const std::int32_t *long_rows, std::int64_t count, int part,
                           const std::int64_t *first, Part *parts) {
  const std::int64_t i = global_index() / 32;
  if (i >= count) return;
  const std::int32_t row = long_rows[i], parts_count = parts_of(rows.length(row), part);
  const auto         from = static_cast<std::int32_t>(first[i]);
  for (std::int32_t p = lane_number(); p < parts_count; p += 32)
    parts[from + p] = {row, from, parts_count, static_cast<std::int32_t>(i)};
}

// One warp a part. numbers: the new ones of columns, or null.
template <class Offset>
__global__ void measure_parts(const Rows<Offset> rows, const std::int32_t *numbers, const Part *parts, std::int64_t count,
                              Slice *slices) {
  const std::int64_t i = global_index() / 32;
  if (i >= count) return;
  const Part         part = parts[i];
  const std::int64_t length = part_length(rows.length(part.row), part.count);
  const std::int64_t begin = rows.offsets[part.row] + (i - part.first) * length;
  const std::int64_t end = min(begin + length, static_cast<std::int64_t>(rows.offsets[part.row + 1]));
  std::int32_t       least = std::numeric_limits<std::int32_t>::max(), greatest = 0;
#pragma unroll 4
  for (std::int64_t k = begin + lane_number(); k < end; k += 32) {
    const std::int32_t column = numbers ? numbers[rows.columns[k]] : rows.columns[k];
    least = min(least, column);
    greatest = max(greatest, column);
  }
  least = __reduce_min_sync(all_lanes, least);
  greatest = __reduce_max_sync(all_lanes, greatest);
  if (lane_number() != 0) return;
  Slice slice = {};
  slice.coding = Coding::narrow;
  if (begin < end) {
    slice.steps = static_cast<std::uint16_t>(round_up_to(2 * slice_rows, end - begin) / slice_rows);
    slice.base = least;
    if (greatest - least >= narrow_padding) slice.coding = Coding::wide;
  }
  slices[i] = slice;
}

// What a product's tables take, counted by the slices themselves.
struct Totals {
  unsigned long long slices[codings], steps[codings], permuted, units;
};

// Steps in the lower half, units of columns in the upper one: both are summed up at once. Totals tell if that is too much.
using Extent = std::uint64_t;

__global__ void count_slices(const Slice *slices, std::int64_t parts, std::int64_t count, Extent *extents, Totals *totals) {
  const std::int64_t i = global_index();
  const Slice        slice = i < count ? slices[i] : Slice{};
  const auto         units = static_cast<unsigned>(column_bytes(slice.coding, slice.steps) / column_unit);
  if (i < count) extents[i] = static_cast<Extent>(units) << 32 | slice.steps;
  const auto add = [](unsigned long long *to, unsigned value) {
    const unsigned sum = __reduce_add_sync(all_lanes, value);
    if (lane_number() == 0 && sum > 0) atomicAdd(to, sum);
  };
  for (int c = 0; c < codings; ++c) {
    const bool has = i < count && static_cast<int>(slice.coding) == c;
    add(totals->slices + c, has && i >= parts);
    add(totals->steps + c, has ? slice.steps : 0);
  }
  add(&totals->permuted, slice.permuted);
  add(&totals->units, units);
}

__global__ void set_begins(const Extent *begins, std::int64_t count, Slice *slices) {
  const std::int64_t i = global_index();
  if (i >= count) return;
  slices[i].values = static_cast<std::uint32_t>(begins[i]);
  slices[i].columns = static_cast<std::uint32_t>(begins[i] >> 32);
}

// One warp a slice. `cut`: the matrix by which slices were cut, with new numbers if `numbers` are not null.
template <class Offset>
__global__ void __launch_bounds__(block) fill_columns(const SliceView view, const Rows<Offset> rows, const Rows<Offset> cut,
                                                      const std::int32_t *numbers, std::uint8_t *to) {
  const std::int64_t i = global_index() / 32;
  if (i >= view.slice_count) return;
  const Slice   slice = view.slices[i];
  std::uint8_t *at = to + static_cast<std::int64_t>(slice.columns) * column_unit;
  auto         *words = reinterpret_cast<std::int32_t *>(at);
  auto         *distances = reinterpret_cast<std::uint16_t *>(at + distances_at(slice));
  const auto    put = [&](std::int32_t row, int step, std::int64_t place, std::int32_t column) { // the same step in all lanes
    std::int32_t base = slice.base;
    if (slice.coding == Coding::wide) {
         words[place] = column;
    } else if (slice.coding == Coding::pattern) {
         if (column >= 0) words[step] = column - row; // what all lanes write is the same, here and below
    } else {
         if (slice.coding == Coding::stepped)
        words[step] = base = __reduce_min_sync(all_lanes, column < 0 ? std::numeric_limits<std::int32_t>::max() : column);
      distances[place] = static_cast<std::uint16_t>(column < 0 ? narrow_padding : column - base);
    }
  };
  if (i < view.part_count) {
    for_entries(view, rows.offsets, static_cast<std::int32_t>(i), lane_number(),
                [&](std::int32_t row, int step, std::int64_t place, std::int64_t entry) {
                  const std::int32_t column = entry < 0 ? wide_padding : rows.columns[entry];
                  put(row, step, place, entry >= 0 && numbers ? numbers[column] : column);
                });
  } else {
    const int          lane = lane_number();
    const std::int32_t row = row_at_place(view, slice, i, lane, load_place(view, slice, i, lane));
    const std::int32_t in_cut = row >= 0 && numbers ? numbers[row] : row;
    const std::int64_t begin = row < 0 ? 0 : cut.offsets[in_cut];
    const int          length = row < 0 ? 0 : static_cast<int>(cut.offsets[in_cut + 1] - begin);
#pragma unroll 4
    for (int step = 0; step < slice.steps; ++step)
      put(row, step, place_of(step, lane, slice.steps), step < length ? cut.columns[begin + step] : wide_padding);
  }
}

class Builder {
public:
  Builder(Executor &executor, csr::DeviceArrays csr, const CudaCoreConfig &config)
    : executor_(executor), algorithms_(executor), config_(config) {
    matrix_.csr = std::move(csr);
    const std::int64_t mean = matrix_.csr.nonzeros / std::max<std::int64_t>(matrix_.csr.rows, 1);
    if (config_.longest == 0) config_.longest = static_cast<int>(std::clamp<std::int64_t>(8 * mean, 128, 512));
    matrix_.log2_window = config.log2_window;
  }

  DeviceMatrix build() {
    csr::DeviceArrays &csr = matrix_.csr;
    matrix_.census.rows = csr.rows;
    matrix_.census.columns = csr.columns_count;
    matrix_.census.nonzeros = csr.nonzeros;
    if (csr.rows == 0) return std::move(matrix_);
    look_at_matrix();
    if (matrix_.census.long_rows > 0) list_parts();
    take(make_plan(executor_, csr, nullptr, matrix_.parts.size(), config_));
    lay_out(nullptr);
    const Renumbered renumbered = try_new_numbers();
    store_columns(renumbered);
    refill(executor_, matrix_, csr.values.data());
    executor_.synchronize(); // what is read may now go, and the executor may be on another stream when the matrix is used
    csr.columns = Array<std::int32_t>();
    csr.values = Array<double>();
    return std::move(matrix_);
  }

private:
  cudaStream_t stream() const { return algorithms_.stream(); }

  // Calls f with the rows of the matrix.
  template <class F> void with_rows(F &&f) {
    csr::with_offsets(matrix_.csr, [&](const auto *offsets) { f(rows_of(matrix_.csr, offsets, config_.longest)); });
  }

  void look_at_matrix() {
    const std::int64_t resident = 2048 * static_cast<std::int64_t>(executor_.device().multiprocessors);
    Array<Survey>      device_survey(executor_, 1);
    TCBOUND_CUDA(cudaMemsetAsync(device_survey.data(), 0, sizeof(Survey), stream()));
    with_rows([&](const auto &rows) {
      take_survey<<<grid_for(std::min(rows.count, resident)), block, 0, stream()>>>(rows, matrix_.csr.values.data(),
                                                                                    matrix_.csr.nonzeros, device_survey.data());
      TCBOUND_LAUNCHED();
    });
    const Survey survey = algorithms_.read(device_survey.data());
    matrix_.census.long_rows = survey.long_rows;
    matrix_.census.value_bytes = config_.narrow_values ? std::max(survey.value_bytes, 2) : 8;
  }

  // Cuts long rows into parts.
  void list_parts() {
    const std::int64_t  count = matrix_.census.long_rows;
    Array<std::int32_t> listed(executor_, count);
    Array<std::int64_t> first(executor_, count + 1);
    with_rows([&](const auto &rows) {
      algorithms_.list_numbers(listed.data(), rows.count, IsLong<std::decay_t<decltype(*rows.offsets)>>{rows});
      count_parts<<<grid_for(count + 1), block, 0, stream()>>>(rows, listed.data(), count, config_.part, first.data());
      TCBOUND_LAUNCHED();
      algorithms_.exclusive_sum(first.data(), first.data(), count + 1);
      const std::int64_t parts = algorithms_.read(first.data() + count);
      matrix_.census.parts = parts;
      matrix_.parts = Array<Part>(executor_, parts);
      matrix_.sums = Array<double>(executor_, parts);
      matrix_.arrivals = Array<std::uint32_t>(executor_, count);
      TCBOUND_CUDA(cudaMemsetAsync(matrix_.arrivals.data(), 0, static_cast<std::size_t>(matrix_.arrivals.bytes()), stream()));
      name_parts<<<grid_for(32 * count), block, 0, stream()>>>(rows, listed.data(), count, config_.part, first.data(),
                                                               matrix_.parts.data());
      TCBOUND_LAUNCHED();
    });
  }

  void take(Plan &&plan) {
    matrix_.slices = std::move(plan.slices);
    matrix_.places = std::move(plan.places);
    matrix_.rows = std::move(plan.rows);
  }

  // Where each slice's values and columns start. numbers: the new ones of columns, or null.
  void lay_out(const std::int32_t *numbers) {
    const std::int64_t count = matrix_.slices.size(), parts = matrix_.parts.size();
    Array<Extent>      extents(executor_, count);
    Array<Totals>      device_totals(executor_, 1);
    if (parts > 0) {
      with_rows([&](const auto &rows) {
        measure_parts<<<grid_for(32 * parts), block, 0, stream()>>>(rows, numbers, matrix_.parts.data(), parts,
                                                                    matrix_.slices.data());
        TCBOUND_LAUNCHED();
      });
    }
    TCBOUND_CUDA(cudaMemsetAsync(device_totals.data(), 0, sizeof(Totals), stream()));
    count_slices<<<grid_for(count), block, 0, stream()>>>(matrix_.slices.data(), parts, count, extents.data(),
                                                          device_totals.data());
    TCBOUND_LAUNCHED();
    algorithms_.exclusive_sum(extents.data(), extents.data(), count);
    set_begins<<<grid_for(count), block, 0, stream()>>>(extents.data(), count, matrix_.slices.data());
    TCBOUND_LAUNCHED();
    take_census(algorithms_.read(device_totals.data()));
  }

  void take_census(const Totals &totals) {
    Census                  &census = matrix_.census;
    const unsigned long long most = std::numeric_limits<std::uint32_t>::max();
    if (totals.units > most || std::accumulate(totals.steps, totals.steps + codings, 0ULL) > most)
      throw Error(ErrorCode::unsupported, "spmv/sell/cuda_core: the matrix is too large for this format");
    column_bytes_ = static_cast<std::int64_t>(totals.units) * column_unit;
    for (int c = 0; c < codings; ++c) {
      census.slices[c] = static_cast<std::int64_t>(totals.slices[c]);
      census.stored[c] = static_cast<std::int64_t>(totals.steps[c]) * slice_rows;
    }
    census.permuted = static_cast<std::int64_t>(totals.permuted);
    if (census.permuted == 0) matrix_.places = Array<std::uint16_t>();
    // refill() adds the bytes of the values.
    census.bytes = matrix_.slices.bytes() + matrix_.parts.bytes() + matrix_.sums.bytes() + matrix_.arrivals.bytes() +
                   matrix_.rows.bytes() + column_bytes_;
    if (!census.renumbered) census.bytes += census.permuted * 2 * slice_rows;
  }

  void store_columns(const Renumbered &renumbered) {
    const std::int32_t *numbers = renumbered.numbers.data(); // null without
    matrix_.columns = Array<std::uint8_t>(executor_, column_bytes_);
    if (column_bytes_ > 0) // what fills up the patterns
      TCBOUND_CUDA(cudaMemsetAsync(matrix_.columns.data(), 0, static_cast<std::size_t>(column_bytes_), stream()));
    const csr::DeviceArrays &cut = numbers ? renumbered.matrix : matrix_.csr;
    csr::with_offsets(matrix_.csr, cut, [&](const auto *offsets, const auto *cut_offsets) {
      fill_columns<<<grid_for(32 * matrix_.slices.size()), block, 0, stream()>>>(
        view_of(matrix_), rows_of(matrix_.csr, offsets, config_.longest), rows_of(cut, cut_offsets, config_.longest), numbers,
        matrix_.columns.data());
      TCBOUND_LAUNCHED();
    });
  }

  // Exchanges the matrix's plan with that one.
  void exchange(Plan &plan, Census &census, std::int64_t &column_bytes) {
    std::swap(matrix_.slices, plan.slices);
    std::swap(matrix_.places, plan.places);
    std::swap(matrix_.rows, plan.rows);
    std::swap(matrix_.census, census);
    std::swap(column_bytes_, column_bytes);
  }

  // Gives rows and columns new numbers if that brings most columns that take 32 bits into 16; else there are none.
  Renumbered try_new_numbers() {
    const csr::DeviceArrays &a = matrix_.csr;
    const bool               always = config_.renumber == Renumber::always;
    const std::int64_t       wide = matrix_.census.stored[static_cast<int>(Coding::wide)];
    if (a.rows != a.columns_count || config_.renumber == Renumber::never) return {};
    if (!always && 2 * wide < matrix_.entries()) return {};
    Renumbered renumbered = renumber(executor_, a, config_.longest);
    if (renumbered.order.size() == 0) return {};
    Plan         plan = make_plan(executor_, a, &renumbered, matrix_.parts.size(), config_);
    Census       census = matrix_.census;
    std::int64_t column_bytes = column_bytes_;
    census.renumbered = true;
    exchange(plan, census, column_bytes);
    lay_out(renumbered.numbers.data());
    if (!always && 2 * matrix_.census.stored[static_cast<int>(Coding::wide)] >= wide) {
      exchange(plan, census, column_bytes);
      return {};
    }
    matrix_.step_entries = std::move(renumbered.step_entries);
    matrix_.renumbered_x = Array<double>(executor_, a.columns_count);
    matrix_.column_order = std::move(renumbered.order);
    matrix_.census.bytes += matrix_.column_order.bytes() + 2 * matrix_.renumbered_x.bytes(); // which is written and read
    return renumbered;
  }

  Executor      &executor_;
  Algorithms     algorithms_;
  CudaCoreConfig config_;
  DeviceMatrix   matrix_;
  std::int64_t   column_bytes_ = 0; // of the matrix
};

} // namespace

DeviceMatrix build(Executor &executor, csr::DeviceArrays csr, const CudaCoreConfig &config) {
  return Builder(executor, std::move(csr), config).build();
}

} // namespace tcbound::sell
