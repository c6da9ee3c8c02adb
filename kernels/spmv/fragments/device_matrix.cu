// Brings a CSR into the order of layout.h, gives it new values, and takes it back to CSR.
#include "device_matrix.h"

#include "arrange.h"
#include "cuda/algorithms.h"
#include "cuda/error.h"
#include "sharing.h"
#include "slots.h"
#include "warps.h"

namespace tcbound::fragments {
namespace {

// One warp a group.
template <bool with_columns, class Offset>
__global__ void __launch_bounds__(block)
  fill_groups(MatrixView<Offset> m, const std::int64_t *begin, const std::int32_t *columns, const double *values) {
  const std::int64_t g = thread_number() / warp_lanes;
  if (g >= m.group_count) return;
  Group group = m.groups[g];
  if (with_columns) {
    group.at = static_cast<std::uint64_t>(begin[g]);
    __syncwarp(); // all lanes have read the record
    if (lane_number() == 0) m.groups[g].at = group.at;
  }
  for_each_slot(m, g, group, lane_number(), [&](const SlotPlace &slot) {
    put_value(m.arithmetic, slot.value, slot.entry < 0 ? 0.0 : values[slot.entry]);
    if (with_columns) put_column(group, slot, slot.entry < 0 ? -1 : columns[slot.entry]);
  });
}

template <class Offset>
__global__ void __launch_bounds__(block) read_groups(MatrixView<Offset> m, std::int32_t *columns, double *values) {
  const std::int64_t g = thread_number() / warp_lanes;
  if (g >= m.group_count) return;
  const Group group = m.groups[g];
  for_each_slot(m, g, group, lane_number(), [&](const SlotPlace &slot) {
    if (slot.entry < 0) return;
    values[slot.entry] = value_in(m.width, slot.value);
    columns[slot.entry] = column_in(group, slot);
  });
}

template <class Offset> __global__ void __launch_bounds__(block) find_diagonal(MatrixView<Offset> m, double *d) {
  const std::int64_t g = thread_number() / warp_lanes;
  if (g >= m.group_count) return;
  const Group group = m.groups[g];
  for_each_slot(m, g, group, lane_number(), [&](const SlotPlace &slot) {
    if (slot.entry >= 0 && column_in(group, slot) == slot.row) d[slot.row] = value_in(m.width, slot.value);
  });
}

template <class Offset> MatrixView<Offset> view_of(const DeviceMatrix &m, const Offset *offsets) {
  return {const_cast<Group *>(m.groups.data()),
          m.groups.size(),
          const_cast<std::uint8_t *>(m.data.data()),
          offsets,
          m.sorted_nodes.data(),
          m.long_begin.data(),
          m.ragged_sorted > 0 ? m.ragged.data() : nullptr,
          m.ragged_places.data(),
          m.ragged_sorted,
          m.arithmetic,
          facts_of(m.arithmetic).value_bytes,
          static_cast<std::int64_t>(m.max_steps) * step_slots};
}

template <class F> void with_view(const DeviceMatrix &m, F &&f) {
  if (m.groups.size() > 0) csr::with_offsets(m.offsets, [&](const auto *offsets) { f(view_of(m, offsets)); });
}

} // namespace

std::int64_t Counts::steps() const {
  std::int64_t steps = 0;
  for (const auto &of_class : groups)
    for (std::size_t s = 0; s < of_class.size(); ++s) steps += of_class[s] * static_cast<std::int64_t>(s);
  return steps;
}

DeviceMatrix::DeviceMatrix(Executor &executor, csr::DeviceArrays &a, const Config &config, Arithmetic of_products)
  : arithmetic(of_products), rows(a.rows), columns_count(a.columns_count), nonzeros(a.nonzeros), max_steps(config.max_steps) {
  offsets = std::move(a);
  if (rows == 0) return;
  const Array<std::int32_t> columns = std::move(offsets.columns);
  const Array<double>       values = std::move(offsets.values);
  Algorithms                algorithms(executor);
  const cudaStream_t        stream = algorithms.stream();
  if (config.nodes) {
    const Sharing sharing = find_sharing(algorithms, executor, *this, columns.data());
    node = sharing.node;
    siblings = sharing.siblings;
  }
  const Arrangement  arranged = arrange(algorithms, executor, *this, columns.data(), config);
  const std::int64_t group_count = groups.size();
  data = Array<std::uint8_t>(executor, unit * arranged.units);
  if (counts.long_rows > 0) {
    counts.long_parts = algorithms.read(arranged.begin.data() + counts.long_rows);
    long_begin = Array<std::int32_t>(executor, counts.long_rows + 1);
    executor.copy(long_begin.data(), MemorySpace::cuda, arranged.begin.data(), MemorySpace::cuda,
                  static_cast<std::size_t>(long_begin.bytes()));
    parts = Array<double>(executor, counts.long_parts);
    arrivals = Array<unsigned>(executor, counts.long_rows);
    TCBOUND_CUDA(cudaMemsetAsync(arrivals.data(), 0, static_cast<std::size_t>(arrivals.bytes()), stream));
  }
  with_view(*this, [&](const auto &view) {
    fill_groups<true>
      <<<grid_for(group_count * warp_lanes), block, 0, stream>>>(view, arranged.at.data(), columns.data(), values.data());
    TCBOUND_LAUNCHED();
  });
  executor.synchronize(); // what was read may go, and the executor may be on another stream when the matrix is used
}

void DeviceMatrix::refill(Executor &executor, const double *values) {
  with_view(*this, [&](const auto &view) {
    fill_groups<false><<<grid_for(groups.size() * warp_lanes), block, 0, static_cast<cudaStream_t>(executor.stream())>>>(
      view, nullptr, nullptr, values);
    TCBOUND_LAUNCHED();
  });
}

csr::DeviceArrays DeviceMatrix::recover(Executor &executor) const {
  csr::DeviceArrays a;
  a.rows = rows;
  a.columns_count = columns_count;
  a.nonzeros = nonzeros;
  a.wide = offsets.wide;
  const auto copy = [&](auto &to, const auto &from) {
    to = std::decay_t<decltype(to)>(executor, from.size());
    executor.copy(to.data(), MemorySpace::cuda, from.data(), MemorySpace::cuda, static_cast<std::size_t>(from.bytes()));
  };
  if (a.wide)
    copy(a.wide_offsets, offsets.wide_offsets);
  else
    copy(a.narrow_offsets, offsets.narrow_offsets);
  a.columns = Array<std::int32_t>(executor, nonzeros);
  a.values = Array<double>(executor, nonzeros);
  with_view(*this, [&](const auto &view) {
    read_groups<<<grid_for(groups.size() * warp_lanes), block, 0, static_cast<cudaStream_t>(executor.stream())>>>(
      view, a.columns.data(), a.values.data());
    TCBOUND_LAUNCHED();
  });
  return a;
}

void DeviceMatrix::diagonal(Executor &executor, double *d) const {
  const auto stream = static_cast<cudaStream_t>(executor.stream());
  if (rows > 0) TCBOUND_CUDA(cudaMemsetAsync(d, 0, static_cast<std::size_t>(rows) * sizeof(double), stream));
  with_view(*this, [&](const auto &view) {
    find_diagonal<<<grid_for(groups.size() * warp_lanes), block, 0, stream>>>(view, d);
    TCBOUND_LAUNCHED();
  });
}

std::int64_t DeviceMatrix::product_bytes() const {
  return data.bytes() + groups.bytes() + (ragged_sorted > 0 ? 1 : 4) * counts.listed_nodes + long_begin.bytes() +
         parts.bytes() + arrivals.bytes() + ragged.bytes();
}

std::int64_t DeviceMatrix::stored_bytes() const {
  return data.bytes() + groups.bytes() + sorted_nodes.bytes() + offsets.bytes() + long_begin.bytes() + parts.bytes() +
         arrivals.bytes() + ragged.bytes() + ragged_places.bytes();
}

} // namespace tcbound::fragments
