#pragma once

#include <vector>

#include "problem.h"

namespace tcbound::csr {

// The rows of a matrix that have entries, for a format that stores no others: with products in place, such as those of a parallel
// matrix's off-diagonal blocks, where most rows have none. Columns and values of such rows are those of the matrix as they stand;
// only the row offsets are others.
class ListedRows {
public:
  ListedRows() = default; // lists none: all rows are stored

  // Lists them where products in place take fewer bytes so, with offsets of that many bytes: not of a matrix in device memory, whose
  // rows would have to be fetched, nor of one with more rows than 32 bits can number.
  ListedRows(const Problem &problem, int offset_bytes);

  // How many would be listed, or -1 (Size::all_rows) where none are.
  static std::int64_t count(const Problem &problem, int offset_bytes);

  std::int64_t                     count() const { return count_; }
  bool                             used() const { return count_ >= 0; }
  const std::vector<std::int32_t> &rows() const { return rows_; } // their numbers, ascending
  std::int64_t                     bytes() const;

  // The matrix of the listed rows alone, or, without any list, all of it. Borrows the offsets that are kept here.
  CsrView view_of(const CsrView &matrix) const;

private:
  std::int64_t              count_ = -1;
  std::vector<std::int32_t> rows_;
  std::vector<std::int32_t> narrow_offsets_; // one of the two, as wide as the matrix's own
  std::vector<std::int64_t> wide_offsets_;
};

} // namespace tcbound::csr
