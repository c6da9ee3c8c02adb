#pragma once

// The format "diagonals": values along diagonals, without column indices, and of a symmetric matrix only half of them.
//
// The rows of a square matrix are taken in nodes of 1 to 4 rows each, as discretizations with several unknowns a point number them. A
// node offset is the distance between the numbers of two coupled nodes. For each node offset that enough nodes have, and each
// place (c, d) of its block, there is a plane: an array with one value a node, the entry of the node's row c in column d of the node
// that lies so far away. Places without an entry hold `absent`, so rows at a grid's boundary may lack any of them. This is the
// format DIA (Y. Saad, "Iterative Methods for Sparse Linear Systems", 2nd ed., SIAM 2003, section 3.4) with node blocks.
//
// If the values are symmetric, bit for bit, planes are stored for the offsets from 0 on only: the block of node p at offset -k is the
// transposed one of node p - k at offset k. A product meets each value twice within the distance of an offset, which caches bridge,
// so memory delivers it once: 4 bytes an entry instead of 8.
//
// Rows with an entry at any other offset, and rows that are not symmetric in a matrix that mostly is (such as those that boundary
// conditions have replaced by the identity), are kept as CSR: the remainder. A matrix with too few regular rows is all remainder.
// Every value is recovered bit for bit.
//
// Values are stored in 16 bits (bfloat16) or 32 while all of a matrix are exact in those.
//
// The entries of a row are added up in one fused multiply-add each: from the first to the last; if mirrored, by the distance of their
// nodes, of two equally far ones the first one first.

#include <cstdint>
#include <string>

#include "../csr/lower_bound.h"
#include "kernel.h"

namespace tcbound::diagonals {

constexpr int most_offsets = 192; // of a row's nodes
constexpr int most_node = 4;      // rows of a node

// What stands where a row has no entry: signaling NaNs, which no arithmetic produces. A row with a value that looks like one is one of
// the remainder. Of doubles the upper half tells.
constexpr std::uint32_t absent_upper = 0x7ff47cb0U;
constexpr std::uint64_t absent_bits = std::uint64_t(absent_upper) << 32;
constexpr std::uint32_t absent_bits_of_float = 0x7fa57cb0U;
constexpr std::uint16_t absent_bits_of_bfloat16 = 0x7fa5U;

// The node offsets, ascending; if mirrored those from 0 on, 0 being the first and the negatives of the others being meant too.
struct Table {
  std::int32_t node = 1; // rows of one
  std::int32_t mirrored = 0;
  std::int32_t count = 0; // 0: the matrix is all remainder
  std::int32_t offsets[most_offsets] = {0};
};

constexpr bool all_remainder(const Table &t) { return t.count == 0; }
constexpr int  plane_count(const Table &t) { return t.count * t.node * t.node; }

// Node offsets of a row in ascending order.
constexpr int          offset_count(const Table &t) { return t.mirrored ? 2 * t.count - 1 : t.count; }
constexpr std::int32_t offset_of(const Table &t, int k) {
  if (!t.mirrored) return t.offsets[k];
  return k < t.count - 1 ? -t.offsets[t.count - 1 - k] : t.offsets[k - (t.count - 1)];
}

// Where the entry at offset number k, place (c, d), of a node p is: in a plane, at p or, mirrored, at the other node.
struct Place {
  int  plane;
  bool mirrored;
};
constexpr Place place_of(const Table &t, int k, int c, int d) {
  const int n = t.node, j = t.mirrored ? k - (t.count - 1) : k;
  return j < 0 ? Place{(-j * n + d) * n + c, true} : Place{(j * n + c) * n + d, false};
}

// Calls f(place, other node, d, number of the entry in the CSR or -1) for the places of row c of node p at the offsets number `from` to
// `to` - 1, in ascending order of columns. Returns how many of the row's entries, from `begin` to `end`, have such a place.
template <class Column, class F>
constexpr std::int64_t walk(const Table &t, std::int64_t p, int c, std::int64_t begin, std::int64_t end, const Column *columns,
                            int from, int to, F &&f) {
  std::int64_t found = 0;
  if (from < to) begin = csr::lower_bound(columns, begin, end, (p + offset_of(t, from)) * t.node);
  for (int k = from; k < to; ++k) {
    const std::int64_t other = p + offset_of(t, k);
    for (int d = 0; d < t.node; ++d) {
      const std::int64_t column = other * t.node + d;
      while (begin < end && columns[begin] < column) ++begin;
      const bool there = begin < end && columns[begin] == column;
      f(place_of(t, k, c, d), other, d, there ? begin : std::int64_t(-1));
      begin += there;
      found += there;
    }
  }
  return found;
}

// How a matrix is stored. Bytes are of the arrays that a product reads: values, marks of rows that are not regular, remainder.
struct Census {
  std::int64_t rows = 0, columns = 0, nonzeros = 0;
  std::int64_t remainder_rows = 0, remainder_nonzeros = 0;
  std::int64_t places = 0; // values in planes, absent ones counted
  std::int64_t bytes = 0;
  int          node = 1, offsets = 0; // of regular rows
  bool         mirrored = false;
  int          value_bytes = 8; // of a value in a plane: 2, 4 or 8
};

// z = A x with each array counted once: the census's bytes, 8 for each element of x and of z, and of y when it is added.
Work count_work(const Census &census, bool accumulate);

// What no matrix in this format can be below: half of the values in 16 bits, and the vectors.
Work least_work(const CsrView &view, bool transpose, bool accumulate);

// Format::usual_share(): mirrored, the second-level cache has as much to deliver as the memory, and is not that much faster.
double usual_share(const Census &census);

// In words, for MatView().
std::string describe(const Census &census);

} // namespace tcbound::diagonals
