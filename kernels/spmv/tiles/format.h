#pragma once

// The format "tiles": for matrices whose rows find their x all over a vector that is too large for the first-level cache.
//
// Row by row, a product with such a matrix asks the second-level cache for 32 bytes for each 8 of x, and waits for that. Here columns
// are cut into tiles of `width`, and entries are sorted by tile, and by row within one. A product has two passes:
//
//   1. A block brings the x of a tile into shared memory and reads entries of the tile one after the other. The entries of a row in a
//      tile, a segment, make one partial sum. Partial sums are written in the order in which they come.
//   2. A block has a bin, some rows that follow each other. It brings their partial sums, a run of them from each tile, into shared
//      memory, from where each row adds up its own.
//
// An entry takes its value and 16 bits, a partial sum is written once and read once, with 16 bits that say where it belongs. So it
// pays where few segments are needed, as in matrices that are much wider than high, or where rows or columns of many entries make them
// longer, as in graphs of a power law. This is propagation blocking (S. Beamer, K. Asanovic, D. Patterson, IPDPS 2017) with sums
// instead of products where a tile has several entries of a row.
//
// Within a tile entries lie in strips of `strip`, one for a warp, which reads them in chunks of 256, eight to a lane. The last place of a strip has no
// entry: if a segment goes on in the next strip, its sum is cut there into two, and the place makes a third one that means nothing, so
// that runs keep an even number of sums, as 16-byte copies want them. So does a place without an entry after a run of an odd number.
//
// Values are stored in 16 bits (bfloat16) or 32 while all of a matrix are exact in those. Every value is recovered bit for bit.
//
// A row's sum is that of its partial sums in the order of the tiles, each of up to eight entries a lane in order and then of lanes, in an
// order that the matrix alone tells: every product has the same bits.

#include <cstdint>
#include <string>

#include "kernel.h"

namespace tcbound::tiles {

constexpr int log2_width = 13, width = 1 << log2_width; // columns of a tile
constexpr int most_tiles = 1024;
constexpr int entries_of_lane = 8, chunk = 32 * entries_of_lane;
constexpr int chunks_of_strip = 8, strip = chunks_of_strip * chunk, used_of_strip = strip - 1;
constexpr int capacity = 7456; // partial sums of a bin that shared memory has a place for, runs rounded up

// A row in one tile has at most its segment's sum, two more for each strip that cuts it, and a filler: what half of the tiles have of a
// row always fits.
static_assert((1 + 2 * (width / used_of_strip + 1) + 1) * (most_tiles / 2) <= capacity);

constexpr std::uint16_t ends = 1; // in a stored column, beside place_of_column(): its segment ends here, or is cut
static_assert(sizeof(double) << log2_width == 1 << 16);

// Where a tile's column is in shared memory: neighbouring columns in different banks, and those of a power law too, whose numbers have
// the same lowest bits more often than not. Its own inverse.
constexpr int place_of_column(int column) { return column ^ ((column >> 4 ^ column >> 8 ^ column >> 12) & 15); }

// As it is stored, 16 bits: the distance in bytes, and column_of() it.
constexpr std::uint16_t stored_column(int column) {
  return static_cast<std::uint16_t>(place_of_column(column) * static_cast<int>(sizeof(double)));
}
constexpr int column_of(std::uint16_t stored) { return place_of_column(stored / static_cast<int>(sizeof(double))); }

// Which of a chunk's places has the value that is stored as number `at` of the chunk's, each of `bytes`: a lane reads 16 bytes at once.
constexpr int place_of_stored(int at, int bytes) {
  const int together = 16 / bytes, lane = at / together % 32, e = at / together / 32 * together + at % together;
  return lane * entries_of_lane + e;
}

constexpr std::int64_t round_up_to(std::int64_t unit, std::int64_t size) { return (size + unit - 1) / unit * unit; }

constexpr double usual_share = 0.68; // Format::usual_share()

// How a matrix is stored. Bytes are of the arrays that a product reads, partial sums apart.
struct Census {
  std::int64_t rows = 0, columns = 0, nonzeros = 0;
  std::int64_t tiles = 0, bins = 0;
  std::int64_t places = 0; // for entries, those without one counted
  std::int64_t sums = 0;   // partial ones, those counted that mean nothing
  std::int64_t bytes = 0;
  int          value_bytes = 8; // of each value: 2, 4 or 8
};

// z = A x with each array counted once: the census's bytes, 8 for each element of x and of z, and of y when it is added, and 8 for each
// partial sum that is written and read.
Work count_work(const Census &census, bool accumulate);

// What no matrix in this format can be below: values and columns in 16 bits each, and the vectors.
Work least_work(const CsrView &view, bool transpose, bool accumulate);

// In words, for MatView().
std::string describe(const Census &census);

} // namespace tcbound::tiles
