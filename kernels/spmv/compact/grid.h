#pragma once

// What the offsets of one row tell about the grid that a matrix comes from. Only speed depends on the guess.

#include <cstdint>
#include <vector>

#include "columns.h"

namespace tcbound::compact {

struct Grid {
  std::int64_t line = 0;        // rows from a row to its neighbour in the second direction; 0: not seen
  std::int64_t plane = 0;       // in the third; 0: not seen
  int          shift = 0;       // 0 or 1: rows that slices start early, so that most runs of x start at multiples of 16 bytes
  bool         repeats = false; // rows with equal values were seen, so that there may be constant slices
  Stencil      stencil;         // of the row, if it is one of those that columns are made for

  std::int64_t stride() const { return plane != 0 ? plane : line; } // in the last direction
};

Grid guess_grid(const std::vector<std::int32_t> &offsets);

// How rows are cut into slices: throughout, or, where columns may be made and planes are no whole number of slices, anew at each
// plane (in two dimensions: line), so that slices always lie one above the other.
struct Cut {
  std::int64_t rows = 0;
  std::int64_t stride = 0;    // rows of a plane, 0: throughout
  std::int64_t per_plane = 0; // slices
  int          shift = 0;

#ifdef __CUDACC__
  __host__ __device__
#endif
    std::int64_t
    first_row(std::int64_t slice) const {
    return (stride ? slice / per_plane * stride + slice % per_plane * slice_rows : slice * slice_rows) - shift;
  }
#ifdef __CUDACC__
  __host__ __device__
#endif
    std::int64_t
    slice_of(std::int64_t row) const {
    return stride ? row / stride * per_plane + (row % stride + shift) / slice_rows : (row + shift) / slice_rows;
  }
#ifdef __CUDACC__
  // The rows of a slice that the matrix has, one bit each.
  __device__ std::uint64_t present(std::int64_t slice) const {
    const std::int64_t first = first_row(slice), low = stride ? slice / per_plane * stride : 0;
    const std::int64_t high = stride ? min(rows, low + stride) : rows;
    if (first >= high) return 0;
    const std::uint64_t all = ~std::uint64_t(0), begun = first < low ? all << (low - first) : all;
    return high - first >= slice_rows ? begun : begun & ((std::uint64_t(1) << (high - first)) - 1);
  }
  // The slice with the same rows, if this is a second one: these are numbered behind all others.
  __device__ std::int64_t first_of(std::int64_t slice) const {
    const std::int64_t all = slices();
    return slice < all ? slice : slice - all;
  }
#endif
#ifdef __CUDACC__
  __host__ __device__
#endif
    std::int64_t
    slices() const {
    return stride ? (rows + stride - 1) / stride * per_plane : (rows + shift + slice_rows - 1) / slice_rows;
  }
};

Cut cut_rows(const Grid &grid, std::int64_t rows);

} // namespace tcbound::compact
