#pragma once

// The format "sell": sliced ELL for matrices without a structure that compact finds, with few bytes for the column indices.
//
// A slice is 32 rows, one for each lane of a warp. Its entries stand step by step: the k-th of all rows side by side, two steps in
// turn (place_of), so that a lane reads two neighbouring values and two neighbouring columns at once. Shorter rows are filled up
// with zeros whose columns say so. Column indices of a slice are coded in the first of four ways that it allows:
//
//   pattern   all rows have the same distances from their own row index: one 32-bit distance a step, none a row;
//   narrow    its columns span less than 65535: 16 bits an entry, counted from the least of them;
//   stepped   those of each step do: 16 bits an entry, counted from 32 bits a step;
//   wide      32 bits an entry.
//
// Slices lie in windows of as many rows as 16 bits can tell apart or fewer. Within each window rows are in natural order, sorted by
// length (which avoids filling up), or sorted by length and by a hash of their distances (so that rows alike, such as those of the
// first degree of freedom at consecutive nodes, come into the same slices): whichever takes the fewest bytes. A slice whose rows are
// not consecutive has a table of their places in the window, 16 bits each; y keeps its order.
//
// A square matrix whose columns take mostly 32 bits is renumbered where that brings most of them into 16: rows and columns get new
// numbers by their distances, in the matrix's graph, from three far rows. Each product then starts by copying x into the new order,
// and the table of rows has 32 bits a row. It is worth while because neighbouring rows then find their x in the first-level cache.
//
// Rows of more than `longest` entries, eight times the mean as a rule, are cut into parts. A part is a slice whose lanes share one row;
// the last part to be summed adds them all up in order. Values are stored in 16 bits (bfloat16) or 32 while all of a matrix are exact in
// those. Every value is recovered bit for bit.
//
// The entries of a row that is not cut are added up one after the other in one fused multiply-add each, from the first to the last as
// in compact, or, renumbered, in the order of the new numbers.
//
// SELL-C-sigma: M. Kreutzer, G. Hager, G. Wellein, H. Fehske, A. R. Bishop, SIAM J. Sci. Comput. 36 (2014).

#include <cstdint>
#include <string>

#include "kernel.h"

namespace tcbound::sell {

constexpr int slice_rows = 32;
constexpr int column_unit = 64;        // bytes; where a slice's columns may start
constexpr int no_place = 0xffff;       // in a slice's table of rows: a lane without a row
constexpr int narrow_padding = 0xffff; // of a column in 16 bits
constexpr int wide_padding = -1;

enum class Coding : std::uint8_t { pattern, narrow, stepped, wide };
constexpr int codings = 4;

struct alignas(16) Slice {
  std::uint32_t values;  // where its values start, in units of slice_rows values
  std::uint32_t columns; // where its columns start, in units of column_unit bytes
  std::int32_t  base;    // what narrow columns are counted from
  std::uint16_t steps;   // entries of a lane
  Coding        coding;
  std::uint8_t  permuted; // 1: its rows are in the table, 0: they are consecutive
};
static_assert(sizeof(Slice) == 16);

// One of the slices that a long row is cut into; all of a row follow each other.
struct alignas(16) Part {
  std::int32_t row;
  std::int32_t first;  // part of the row
  std::int32_t count;  // of the row's parts
  std::int32_t number; // of the row among the long ones
};
static_assert(sizeof(Part) == 16);

// Where entry `step` of a lane is among the steps x 32 of its slice: two steps are side by side, but for an odd last one.
constexpr std::int64_t place_of(int step, int lane, int steps) {
  const std::int64_t pair = step / 2 * 2 * slice_rows;
  return (step | 1) < steps ? pair + 2 * lane + step % 2 : pair + lane;
}

constexpr std::int64_t round_up_to(std::int64_t unit, std::int64_t size) { return (size + unit - 1) / unit * unit; }

// Entries of each part, but the last, of a row of `length` entries in `count` parts.
constexpr std::int64_t part_length(std::int64_t length, std::int64_t count) {
  return round_up_to(2 * slice_rows, (length + count - 1) / count);
}

constexpr std::int64_t column_bytes(Coding coding, std::int64_t steps) {
  const std::int64_t a_step = round_up_to(column_unit, 4 * steps); // of 32 bits for each step
  if (coding == Coding::pattern) return a_step;
  if (coding == Coding::wide) return 4 * steps * slice_rows;
  return (coding == Coding::stepped ? a_step : 0) + 2 * steps * slice_rows;
}

constexpr double usual_share = 0.9; // Format::usual_share() on a device

// How a matrix is stored. Bytes are of the arrays that a product reads: slices, tables of rows, columns, values, parts.
struct Census {
  std::int64_t rows = 0, columns = 0, nonzeros = 0;
  std::int64_t slices[codings] = {0}; // by coding, parts not counted
  std::int64_t stored[codings] = {0}; // entries, zeros that fill up counted, by coding
  std::int64_t permuted = 0;          // slices with a table of rows
  std::int64_t long_rows = 0, parts = 0;
  std::int64_t apart = 0; // entries of long rows on a host
  std::int64_t bytes = 0;
  int          value_bytes = 8; // of each value: 2, 4 or 8
  bool         renumbered = false;

  std::int64_t entries() const { return stored[0] + stored[1] + stored[2] + stored[3] + apart; }
};

// z = A x with each array counted once: the census's bytes, 8 for each element of x and of z, and of y when it is added.
Work count_work(const Census &census, bool accumulate);

// Bytes that a value takes if nothing of it is to be lost: 2, 4 or 8.
int bytes_of_value(double value);

// What no matrix in this format can be below: the vectors, and the values as the view tells, or with `value_bytes` each.
Work least_work(const CsrView &view, bool transpose, bool accumulate);
Work least_work(const CsrView &view, bool transpose, bool accumulate, int value_bytes);

// In words, for MatView().
std::string describe(const Census &census);

} // namespace tcbound::sell
