#pragma once

// Device code that takes a matrix in CSR row by row to its planes: a block has 32 rows, one for each lane of its warps, and each warp
// some of their offsets. As lanes go through their rows one entry at a time, the block first brings the entries of its rows, which
// lie one after the other, into shared memory. For .cu files only.

#include <algorithm>

#include "stored_value.h"

namespace tcbound::diagonals {

constexpr int block_rows = 32;
constexpr int row_warps = 4;
constexpr int row_block = row_warps * block_rows; // threads
constexpr int most_staged = 4000;                 // entries: 48 KB
constexpr int entry_bytes = 12;                   // a value and a column

inline unsigned grid_for_rows(std::int64_t rows) { return static_cast<unsigned>((rows + block_rows - 1) / block_rows); }

// A CSR matrix.
template <class Offset> struct RowsView {
  const Offset       *offsets;
  const std::int32_t *columns;
  const double       *values;
  std::int64_t        rows;
  int                 staged; // entries that there is room for in shared memory
};

// Room for somewhat more than 32 rows as long as the mean; where they are longer, they are read in place.
inline int staged_entries(std::int64_t rows, std::int64_t nonzeros) {
  return static_cast<int>(std::min<std::int64_t>(most_staged, 36 * (nonzeros / std::max<std::int64_t>(rows, 1) + 1)));
}

// The row of a thread, and its share of the offsets.
struct Row {
  std::int64_t        i;
  std::int64_t        p; // its node
  int                 c; // of the node's rows
  const std::int32_t *columns;
  const double       *values;
  std::int64_t        length;
  int                 from, to; // offsets
};

// By a whole block. False: there is no such row.
template <class Offset> __device__ bool take_row(const RowsView<Offset> &a, const Table &table, Row &row) {
  extern __shared__ double staged_values[];
  auto *const              staged_columns = reinterpret_cast<std::int32_t *>(staged_values + a.staged);
  const int                warp = static_cast<int>(threadIdx.x) / block_rows, count = offset_count(table);
  const std::int64_t       first = blockIdx.x * static_cast<std::int64_t>(block_rows), i = first + threadIdx.x % block_rows;
  const std::int64_t       begin = a.offsets[first], entries = a.offsets[min(first + block_rows, a.rows)] - begin;
  const bool               staged = entries <= a.staged;
  for (int k = static_cast<int>(threadIdx.x); staged && k < entries; k += row_block) {
    staged_values[k] = a.values[begin + k];
    staged_columns[k] = a.columns[begin + k];
  }
  __syncthreads();
  if (i >= a.rows) return false;
  const std::int64_t own = a.offsets[i];
  row.i = i;
  row.p = i / table.node;
  row.c = static_cast<int>(i % table.node);
  row.length = a.offsets[i + 1] - own;
  row.values = staged ? staged_values + (own - begin) : a.values + own;
  row.columns = staged ? staged_columns + (own - begin) : a.columns + own;
  row.from = warp * count / row_warps;
  row.to = (warp + 1) * count / row_warps;
  return true;
}

__device__ inline std::int64_t index_of(const Place &place, std::int64_t stride, std::int64_t p, std::int64_t other) {
  return place.plane * stride + (place.mirrored ? other : p);
}

// Calls f(place, other node, d, whether there is an entry, its value) for the thread's share; returns how many entries are there.
template <class F> __device__ std::int64_t walk_row(const Table &table, const Row &row, F &&f) {
  return walk(table, row.p, row.c, 0, row.length, row.columns, row.from, row.to,
              [&](const Place &place, std::int64_t other, int d, std::int64_t entry) {
                f(place, other, d, entry >= 0, entry >= 0 ? row.values[entry] : 0.0);
              });
}

} // namespace tcbound::diagonals
