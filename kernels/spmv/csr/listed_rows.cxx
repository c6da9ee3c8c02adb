#include "listed_rows.h"

#include <limits>

#include "format.h"

namespace tcbound::csr {
namespace {

template <class T> std::int64_t nonempty_rows(const T *offsets, std::int64_t size) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < size; ++i) count += offsets[i + 1] > offsets[i];
  return count;
}

// Calls f with the row offsets as const int32_t * or const int64_t *.
template <class F> auto with_offsets(const CsrView &a, F &&f) {
  return a.row_offsets.bytes == 8 ? f(static_cast<const std::int64_t *>(a.row_offsets.data))
                                  : f(static_cast<const std::int32_t *>(a.row_offsets.data));
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
  const std::int64_t listed = with_offsets(a, [&](const auto *offsets) { return nonempty_rows(offsets, a.rows); });
  const std::int64_t row_bytes = offset_bytes + 16;
  return (row_bytes + 4) * listed < row_bytes * a.rows ? listed : Size::all_rows;
}

ListedRows::ListedRows(const Problem &problem, int offset_bytes) {
  const CsrView &a = problem.csr;
  count_ = count(problem, offset_bytes);
  if (!used()) return;
  const auto listed = static_cast<std::size_t>(count_);
  rows_.reserve(listed);
  if (a.row_offsets.bytes == 8) {
    wide_offsets_.reserve(listed + 1);
    list_rows(static_cast<const std::int64_t *>(a.row_offsets.data), a.rows, rows_, wide_offsets_);
  } else {
    narrow_offsets_.reserve(listed + 1);
    list_rows(static_cast<const std::int32_t *>(a.row_offsets.data), a.rows, rows_, narrow_offsets_);
  }
}

std::int64_t ListedRows::bytes() const {
  return static_cast<std::int64_t>(4 * (rows_.size() + narrow_offsets_.size()) + 8 * wide_offsets_.size());
}

CsrView ListedRows::view_of(const CsrView &matrix) const {
  CsrView view = matrix;
  if (!used()) return view;
  view.rows = count_;
  view.row_offsets.data =
    matrix.row_offsets.bytes == 8 ? static_cast<const void *>(wide_offsets_.data()) : narrow_offsets_.data();
  return view;
}

} // namespace tcbound::csr
