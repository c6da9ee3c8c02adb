#include "listed_rows.h"

#include <limits>

#include "format.h"

namespace tcbound::csr {
namespace {

std::int64_t nonempty_rows(const CsrView &a) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) count += a.row_offsets[i + 1] > a.row_offsets[i];
  return count;
}

template <class T> void list_rows(const T *offsets, std::int64_t size, std::vector<std::int32_t> &rows, std::vector<T> &begin) {
  begin.push_back(0);
  for (std::int64_t i = 0; i < size; ++i) {
    if (offsets[i + 1] == offsets[i]) continue;
    rows.push_back(static_cast<std::int32_t>(i));
    begin.push_back(offsets[i + 1]);
  }
}

} // namespace

std::int64_t ListedRows::count(const Problem &problem, int offset_bytes) {
  const CsrView &a = problem.csr;
  if (!problem.in_place || a.space != MemorySpace::host || a.rows > std::numeric_limits<std::int32_t>::max())
    return Size::all_rows;
  // Of a stored row: its offset, z read and written, and its number if it is listed.
  const std::int64_t listed = nonempty_rows(a), row_bytes = offset_bytes + 16;
  return (row_bytes + 4) * listed < row_bytes * a.rows ? listed : Size::all_rows;
}

ListedRows::ListedRows(const Problem &problem, int offset_bytes) {
  const CsrView     &a = problem.csr;
  const std::int64_t listed = count(problem, offset_bytes);
  if (listed == Size::all_rows) return;
  used_ = true;
  rows_.reserve(static_cast<std::size_t>(listed));
  if (a.row_offsets.bytes == 8) {
    wide_offsets_.reserve(static_cast<std::size_t>(listed) + 1);
    list_rows(static_cast<const std::int64_t *>(a.row_offsets.data), a.rows, rows_, wide_offsets_);
  } else {
    narrow_offsets_.reserve(static_cast<std::size_t>(listed) + 1);
    list_rows(static_cast<const std::int32_t *>(a.row_offsets.data), a.rows, rows_, narrow_offsets_);
  }
}

std::int64_t ListedRows::bytes() const {
  return static_cast<std::int64_t>(4 * (rows_.size() + narrow_offsets_.size()) + 8 * wide_offsets_.size());
}

CsrView ListedRows::view_of(const CsrView &matrix) const {
  CsrView view = matrix;
  if (!used_) return view;
  view.rows = static_cast<std::int64_t>(rows_.size());
  view.row_offsets.data =
    matrix.row_offsets.bytes == 8 ? static_cast<const void *>(wide_offsets_.data()) : narrow_offsets_.data();
  return view;
}

} // namespace tcbound::csr
