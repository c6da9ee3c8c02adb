#pragma once

// The format "sell" in host memory: what format.h says, in slices of 8 rows, as many as a 512-bit vector has numbers.
//
// Windows are of 512 rows: x and y of a window and of its neighbours then stay in the first caches, and 8 rows alike are soon found.
// Distances of slices by pattern are in a dictionary. There is no renumbering, and long rows are not cut but stored as CSR. Nothing
// is said of what fills up: a slice knows how many entries all its rows have, and where that is not all, how many each has.

#include <vector>

#include "format.h"

namespace tcbound::sell {

constexpr int host_slice_rows = 8;
constexpr int host_window = 512;     // rows
constexpr int host_longest = 0xffff; // entries of a row in a slice

struct alignas(16) HostSlice {
  std::int32_t  first_row;
  std::int32_t  base;  // what narrow columns are counted from; of a pattern, where its distances start in the dictionary
  std::uint16_t full;  // entries that every lane has
  std::uint16_t steps; // entries that some lane has
  Coding        coding;
  std::uint8_t  stride; // from a lane's row to the next one's; 0: rows are named in the stream
  std::uint16_t lanes;  // rows: 8, but for the last slice of a window
};
static_assert(sizeof(HostSlice) == 16);

// Slices take their values and what else they have from two streams, one slice after the other. Entry k of lane l is number
// 8 k + l of its values. The second stream has, each where there is a need and filled up to a multiple of 16 bytes:
//   rows     32 bits for each lane, where they are not of one stride;
//   lengths  16 bits for each lane, where full < steps;
//   bases    32 bits for each step, of a stepped slice;
//   columns  8 for each step, of 16 bits in narrow and stepped slices, from the base, and of 32 in wide ones. What fills up has the
//            column of the base, or, in a wide slice, one of the slice's own.
struct HostArrays {
  std::int64_t rows = 0, columns = 0, nonzeros = 0;

  std::vector<HostSlice>    slices;
  std::vector<std::int32_t> distances; // the dictionary of patterns
  std::vector<std::uint8_t> stream;
  Array<std::uint8_t>       values;
  int                       value_bytes = 8;

  // Long rows: row i of the CSR is row long_rows[i] of the matrix. Its columns have 32 bits.
  std::vector<std::int32_t> long_rows;
  std::vector<std::int64_t> long_offsets = {0};
  Array<std::int32_t>       long_columns;
  Array<double>             long_values;

  CsrView long_csr() const {
    CsrView csr;
    csr.rows = static_cast<std::int64_t>(long_rows.size());
    csr.columns_count = columns;
    csr.nonzeros = long_columns.size();
    csr.row_offsets = {long_offsets.data(), 8};
    csr.columns = {long_columns.data(), 4};
    csr.values = long_values.data();
    return csr;
  }
};

// A slice and its places in the streams.
struct HostSliceView {
  const HostSlice     &slice;
  const std::int32_t  *rows;    // null: they are of a stride
  const std::uint16_t *lengths; // null: all are slice.steps
  const std::int32_t  *bases;   // of the steps, or the distances of a pattern
  const void          *columns;

  std::int32_t row(int lane) const { return rows ? rows[lane] : slice.first_row + lane * slice.stride; }
  int          length(int lane) const { return lengths ? lengths[lane] : slice.steps; }

  std::int64_t column(int step, int lane) const {
    const int at = host_slice_rows * step + lane;
    switch (slice.coding) {
    case Coding::pattern:
      return std::int64_t(row(lane)) + bases[step];
    case Coding::narrow:
      return std::int64_t(slice.base) + static_cast<const std::uint16_t *>(columns)[at];
    case Coding::stepped:
      return std::int64_t(bases[step]) + static_cast<const std::uint16_t *>(columns)[at];
    default:
      return static_cast<const std::int32_t *>(columns)[at];
    }
  }
};

// Bytes of the second stream that a slice takes.
constexpr std::int64_t host_column_bytes(Coding coding, std::int64_t steps) {
  if (coding == Coding::pattern) return 0;
  if (coding == Coding::wide) return 4 * host_slice_rows * steps;
  return (coding == Coding::stepped ? round_up_to(16, 4 * steps) : 0) + 2 * host_slice_rows * steps;
}

// The slice whose places in the second stream begin at `stream`, which moves on to the next slice's.
inline HostSliceView take(const HostArrays &arrays, const HostSlice &slice, const std::uint8_t *&stream) {
  HostSliceView view = {slice, nullptr, nullptr, nullptr, nullptr};
  const auto    piece = [&](std::int64_t bytes) {
    const std::uint8_t *at = stream;
    stream += bytes;
    return static_cast<const void *>(at);
  };
  if (slice.stride == 0) view.rows = static_cast<const std::int32_t *>(piece(4 * host_slice_rows));
  if (slice.full < slice.steps) view.lengths = static_cast<const std::uint16_t *>(piece(2 * host_slice_rows));
  if (slice.coding == Coding::stepped) view.bases = static_cast<const std::int32_t *>(piece(round_up_to(16, 4 * slice.steps)));
  if (slice.coding == Coding::pattern)
    view.bases = arrays.distances.data() + slice.base;
  else
    view.columns = piece(host_column_bytes(slice.coding == Coding::stepped ? Coding::narrow : slice.coding, slice.steps));
  return view;
}

// Calls f(slice's view, number of its first value) for all slices.
template <class F> void for_each_slice(const HostArrays &arrays, F &&f) {
  const std::uint8_t *stream = arrays.stream.data();
  std::int64_t        value = 0;
  for (const HostSlice &slice : arrays.slices) {
    f(take(arrays, slice, stream), value);
    value += std::int64_t(host_slice_rows) * slice.steps;
  }
}

// The matrix must have at most 2^31 - 1 rows and columns and lie in host memory.
HostArrays build_host(Executor &executor, const CsrView &view);

// Takes new values of the matrix that the arrays were built from. They have as few bits as all need; once one needs more, all do,
// for good.
void fill_values(Executor &executor, HostArrays &arrays, const CsrView &view);

Census count(const HostArrays &arrays);

// Borrows the Problem's arrays to take new values; products read its own.
class HostFormat final : public Format {
public:
  HostFormat(Executor &executor, const CsrView &view);

  const char       *name() const override { return "sell"; }
  void              refill(Executor &executor, const double *values, MemorySpace space) override;
  void              diagonal(Executor &executor, double *d) override;
  Work              work(bool transpose, bool accumulate) const override;
  std::int64_t      stored_bytes() const override { return census_.bytes; }
  std::string       describe() const override { return sell::describe(census_); }
  const HostArrays &arrays() const { return arrays_; }

private:
  CsrView    view_;
  HostArrays arrays_;
  Census     census_;
};

} // namespace tcbound::sell
