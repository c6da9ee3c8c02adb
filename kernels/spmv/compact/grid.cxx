#include "grid.h"

#include "format.h"

namespace tcbound::compact {
namespace {

// Middles of stretches of ascending numbers whose neighbours are at most `gap` apart.
std::vector<std::int64_t> middles(const std::vector<std::int64_t> &numbers, std::int64_t gap) {
  std::vector<std::int64_t> found;
  for (std::size_t begin = 0, end = 0; begin < numbers.size(); begin = end) {
    for (end = begin + 1; end < numbers.size() && numbers[end] - numbers[end - 1] <= gap;) ++end;
    found.push_back((numbers[begin] + numbers[end - 1]) / 2);
  }
  return found;
}

std::int64_t first_positive(const std::vector<std::int64_t> &numbers) {
  for (const std::int64_t number : numbers)
    if (number > 0) return number;
  return 0;
}

// Whether more runs of an odd number of entries start at an odd distance than at an even one: those of an even number take the
// same loads either way.
bool mostly_odd(const std::vector<std::int32_t> &offsets) {
  int odd = 0, even = 0;
  for (std::size_t begin = 0, end = 0; begin < offsets.size(); begin = end) {
    for (end = begin + 1; end < offsets.size() && end - begin < longest_run && offsets[end] == offsets[end - 1] + 1;) ++end;
    if ((end - begin) % 2 == 1) ++(offsets[begin] % 2 == 0 ? even : odd);
  }
  return odd > even;
}

} // namespace

// Offsets fall into stretches around multiples of the line, and these into wider stretches around multiples of the plane.
Grid guess_grid(const std::vector<std::int32_t> &offsets) {
  Grid                            grid;
  const std::vector<std::int64_t> numbers(offsets.begin(), offsets.end());
  grid.shift = mostly_odd(offsets);
  const std::vector<std::int64_t> lines = middles(numbers, slice_rows / 4);
  grid.line = first_positive(lines);
  if (grid.line < slice_rows / 2) grid.line = 0;
  if (grid.line == 0) return grid;
  grid.plane = first_positive(middles(lines, grid.line + grid.line / 2));
  if (grid.plane < 2 * grid.line) grid.plane = 0;
  grid.stencil = match_stencil(offsets, grid.plane != 0 ? grid.line : 0, grid.stride());
  return grid;
}

Cut cut_rows(const Grid &grid, std::int64_t rows) {
  Cut cut;
  cut.rows = rows;
  cut.shift = grid.shift;
  if (grid.stencil.shape < 0 || !grid.repeats || grid.stride() % slice_rows == 0) return cut;
  const std::int64_t slices = (grid.stride() + cut.shift + slice_rows - 1) / slice_rows;
  if (4 * grid.stride() < 3 * slices * slice_rows) return cut; // too much of the slices would be empty
  cut.stride = grid.stride();
  cut.per_plane = slices;
  return cut;
}

} // namespace tcbound::compact
