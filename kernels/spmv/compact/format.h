#pragma once

// The format "compact": CSR without what a structured matrix repeats.
//
// Rows are cut into slices of 64 consecutive rows (on a device fewer at the end of a grid's planes, grid.h). Two rows have the
// same offset pattern if their entries lie at the same distances from their own row index (columns minus row), and the same row
// pattern if their values are bitwise equal besides. A slice is stored in the first of three ways that fits enough of its rows
// (on a device as is_main() says, on the host three quarters):
//
//   constant   they share one row pattern: the slice is the number of that pattern in a dictionary. Nothing is stored for a row
//              but its bit in a mask.
//   explicit   they share one offset pattern: the slice is the number of that pattern, and its values stand in column-major
//              order (entry k of all 64 rows side by side, as in SELL-64). Nothing is stored for a column index.
//   remainder  neither: its rows are stored as CSR of their own, on a device with columns in 16 bits where they lie close
//              together (csr/packed_columns.h) and values in 32 bits while all are exact in them.
//
// Among the other rows of a constant or explicit slice, those that lack some entries of the slice's pattern and have all others
// (a grid's boundary rows, as a rule) are partial on a device: they are named with a mask of the entries that they have. What is
// left are exceptions: single rows with a pattern number each, if the dictionary has their pattern, and rows of the remainder if
// not. So one odd row costs one row. Every value is recovered bit for bit.
//
// The entries of a row in a slice are always added up from the first to the last in one fused multiply-add each, so its result
// does not depend on whether the slice is constant or explicit, nor on whether the row is partial or an exception (but for the sign
// of a sum that has underflowed to zero).
//
// SELL: M. Kreutzer, G. Hager, G. Wellein, H. Fehske, A. R. Bishop, "A unified sparse matrix data format for efficient general
// sparse matrix-vector multiplication on modern processors with wide SIMD units", SIAM J. Sci. Comput. 36 (2014).

#include <cstdint>

#include "kernel.h"

namespace tcbound::compact {

constexpr int slice_rows = 64;
constexpr int longest_run = 3;          // entries of a segment
constexpr int longest_patterned = 1024; // entries of a row that may have a pattern; longer rows belong to the remainder
constexpr int longest_masked = 64;      // entries of a pattern that may have partial rows
constexpr int most_partials = 4;        // masks of a slice

// A pattern that this part of a slice's rows have is the slice's.
constexpr bool is_main(std::int64_t rows_with, std::int64_t rows_present) { return 8 * rows_with >= 3 * rows_present; }

// Another pattern that so many rows of a constant slice have gets a slice of its own, where slices of two patterns are looked for:
// fewer rows are cheaper as exceptions.
constexpr bool is_second(std::int64_t rows_with) { return rows_with >= 8; }

// Whether so many exceptions are reason to look for slices of two patterns.
constexpr bool are_many(std::int64_t exceptions, std::int64_t rows) { return 16 * exceptions > rows; }

// Whether exceptions keep a pattern that is no slice's: always while the dictionary is small, else if they are enough to pay for
// its place in it. Single short rows with values in the dictionary are kept also where it is larger, if there is no remainder else: a
// launch for them would cost more.
constexpr bool is_kept(std::int64_t exceptions_with, std::int64_t patterns, bool spares_remainder) {
  return patterns <= (spares_remainder ? 65536 : 4096) || exceptions_with >= 4;
}
constexpr int longest_sparing = 32; // entries of such a row

// 1 to longest_run consecutive columns: row + offset, row + offset + 1, ...
struct Segment {
  std::int32_t offset;
  std::int32_t count;
};

// The same with the values, for a row pattern.
struct alignas(16) ConstantSegment {
  std::int32_t offset;
  std::int32_t count;
  double       values[longest_run];
};
static_assert(sizeof(ConstantSegment) == 32);

// A stretch of a table of segments: the entries of a row in stored order.
struct alignas(16) Pattern {
  std::int64_t first_segment;
  std::int32_t segments;
  std::int16_t hot;         // on a device, where as many segments with the same values begin among the hot ones; -1: nowhere
  bool         hot_offsets; // these have the same offsets, too
  std::int32_t entries;
  std::int32_t low, high;      // least and greatest offset; 0 and 0 without entries
  std::int32_t representative; // a row that has the pattern
};
static_assert(sizeof(Pattern) == 32);

struct alignas(16) Slice {
  std::int32_t  first_row; // -1 for the first slice when slices start at odd rows
  std::int32_t  pattern;   // its number, plus the flags below
  std::uint64_t rows;      // bit i: row first_row + i has the pattern

  static constexpr std::int32_t has_partials = 1 << 30;
  static constexpr std::int32_t reaches_outside = 1 << 29; // the pattern at one of its 64 rows, whether the slice has it or not
  static constexpr std::int32_t flags = has_partials | reaches_outside;
};
static_assert(sizeof(Slice) == 16);

// Rows of a slice that have, of its pattern, only some entries: bit k for entry k. In an explicit slice their values stand in the
// places of those entries. Rows that lack entries but find no place among the slice's masks go to the remainder.
struct alignas(16) Partial {
  std::uint64_t rows;
  std::uint64_t entries;
};
static_assert(sizeof(Partial) == 16);

// A row of a slice that has another pattern of the same dictionary.
struct Exception {
  std::int32_t row;
  std::int32_t pattern;
};

// How the rows and entries of a matrix are distributed, and what is stored for them. Bytes are of the arrays that a product
// reads: slices, columns of slices, partial rows, dictionary, exceptions, values, remainder.
struct Census {
  std::int64_t rows = 0, columns = 0, nonzeros = 0;
  std::int64_t constant_rows = 0, explicit_rows = 0, partial_rows = 0, exceptions = 0, remainder_rows = 0;
  std::int64_t remainder_nonzeros = 0;
  std::int64_t marched_rows = 0; // of the constant and partial rows and exceptions
  std::int64_t patterns = 0;     // of both dictionaries
  std::int64_t bytes = 0;
};

// z = A x with each array counted once: the census's bytes, 8 for each element of x and of z, and of y when it is added.
Work count_work(const Census &census, bool accumulate);

// What no matrix in this format can be below: the vectors.
Work least_work(const CsrView &view, bool transpose, bool accumulate);

// Format::usual_share() on a device.
double usual_share(const Census &census);

// In words, for MatView(): "98.7 % of 4096000 rows in constant slices, ...".
std::string describe(const Census &census);

} // namespace tcbound::compact
