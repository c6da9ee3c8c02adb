// Building on the host: window by window the order of rows that takes the fewest bytes, then slices, then values.
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "host_format.h"
#include "spmv/compact/host_rows.h"
#include "spmv/csr/format.h"

namespace tcbound::sell {
namespace {

constexpr int          lanes = host_slice_rows;
constexpr std::int64_t least_long = 128; // entries of a row that may be called long

// What a step takes that not all lanes have, in bytes that could be read meanwhile.
constexpr std::int64_t ragged_step_bytes = 64;

template <class Rows> class Builder {
public:
  Builder(const Rows &rows, const CsrView &view, HostArrays &to) : rows_(rows), view_(view), to_(to) {
    const std::int64_t mean = view.rows > 0 ? view.nonzeros / view.rows : 0;
    longest_ = std::min<std::int64_t>(host_longest, std::max(least_long, 8 * mean));
  }

  void build(Executor &executor) {
    to_.slices.reserve(static_cast<std::size_t>(view_.rows / lanes + view_.rows / host_window + 1));
    to_.stream.reserve(static_cast<std::size_t>(2 * view_.nonzeros)); // memory that is not used costs an address only
    for (std::int64_t first = 0; first < view_.rows; first += host_window)
      add_window(first, std::min<std::int64_t>(view_.rows, first + host_window));
    copy_long_rows(executor);
  }

private:
  struct Row {
    std::int32_t  row;
    std::int32_t  length;
    std::uint64_t hash;
  };
  using Window = std::vector<Row>;

  // Columns of `count` rows: of all, and whether narrow ones do.
  struct Reach {
    std::int64_t low = std::numeric_limits<std::int64_t>::max(), high = -1;

    void take(std::int64_t column) { take(column, column); }
    void take(std::int64_t from, std::int64_t to) {
      low = std::min(low, from);
      high = std::max(high, to);
    }
    bool narrow() const { return high - low < 65536; }
  };

  void add_window(std::int64_t first, std::int64_t end) {
    Window natural;
    for (std::int64_t row = first; row < end; ++row) {
      const std::int64_t length = rows_.length(row);
      if (length > longest_)
        to_.long_rows.push_back(static_cast<std::int32_t>(row));
      else
        natural.push_back({static_cast<std::int32_t>(row), static_cast<std::int32_t>(length), rows_.hash_offsets(row)});
    }
    Window     by_length = natural, by_pattern = natural;
    const auto longer = [](const Row &a, const Row &b) { return a.length > b.length; };
    std::stable_sort(by_length.begin(), by_length.end(), longer);
    std::stable_sort(by_pattern.begin(), by_pattern.end(),
                     [](const Row &a, const Row &b) { return a.length != b.length ? a.length > b.length : a.hash < b.hash; });
    const Window *best = &natural;
    std::int64_t  least = cost(natural);
    for (const Window *other : {&by_length, &by_pattern}) {
      const std::int64_t now = cost(*other);
      if (now >= least - least / 32) continue; // x and y are read best in natural order
      least = now;
      best = other;
    }
    // Slices of neighbouring rows follow each other, so that they find x in the first-level cache.
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < best->size(); i += lanes) order.push_back(i);
    std::sort(order.begin(), order.end(), [best](std::size_t a, std::size_t b) { return (*best)[a].row < (*best)[b].row; });
    for (const std::size_t i : order) add_slice(best->data() + i, std::min(best->size() - i, std::size_t(lanes)));
  }

  // Bytes, as far as hashes tell.
  std::int64_t cost(const Window &window) const {
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < window.size(); i += lanes) {
      const Row        *row = window.data() + i;
      const std::size_t count = std::min(window.size() - i, std::size_t(lanes));
      const auto        shape = shape_of(row, count);
      bool              alike = count == lanes;
      for (std::size_t l = 1; l < count; ++l) alike = alike && row[l].length == row[0].length && row[l].hash == row[0].hash;
      const Coding coding = alike ? Coding::pattern : reach_of(row, count).narrow() ? Coding::narrow : Coding::wide;
      bytes +=
        8 * lanes * shape.steps + ragged_step_bytes * (shape.steps - shape.full) + host_column_bytes(coding, shape.steps);
    }
    return bytes;
  }

  struct Shape {
    std::int32_t full, steps;
    std::int32_t stride; // of the rows, 0: none
  };
  static Shape shape_of(const Row *row, std::size_t count) {
    const std::int32_t stride = count > 1 ? row[1].row - row[0].row : 1;
    Shape              shape = {count == lanes ? row[0].length : 0, row[0].length, stride > 0 && stride < 256 ? stride : 0};
    for (std::size_t l = 1; l < count; ++l) {
      shape.full = std::min(shape.full, row[l].length);
      shape.steps = std::max(shape.steps, row[l].length);
      if (row[l].row != row[0].row + static_cast<std::int32_t>(l) * shape.stride) shape.stride = 0;
    }
    return shape;
  }

  Reach reach_of(const Row *row, std::size_t count) const {
    Reach reach;
    for (std::size_t l = 0; l < count; ++l)
      if (row[l].length > 0) reach.take(rows_.columns(row[l].row)[0], rows_.columns(row[l].row)[row[l].length - 1]);
    return reach;
  }

  // Of the columns at a step.
  Reach reach_of(const Row *row, std::size_t count, int step) const {
    Reach reach;
    for (std::size_t l = 0; l < count; ++l)
      if (step < row[l].length) reach.take(rows_.columns(row[l].row)[step]);
    return reach;
  }

  bool is_pattern(const Row *row, std::size_t count) const {
    if (count < lanes || !rows_.patterned(row[0].row)) return false;
    for (std::size_t l = 1; l < count; ++l)
      if (row[l].hash != row[0].hash || !rows_.same_offsets(row[0].row, row[l].row)) return false;
    return true;
  }

  void add_slice(const Row *row, std::size_t count) {
    const Shape shape = shape_of(row, count);
    HostSlice   slice = {};
    slice.first_row = row[0].row;
    slice.full = static_cast<std::uint16_t>(shape.full);
    slice.steps = static_cast<std::uint16_t>(shape.steps);
    slice.stride = static_cast<std::uint8_t>(shape.stride);
    slice.lanes = static_cast<std::uint16_t>(count);
    const Reach reach = reach_of(row, count);
    if (is_pattern(row, count)) {
      slice.coding = Coding::pattern;
      slice.base = number_of_pattern(row[0]);
    } else if (shape.steps == 0 || reach.narrow()) {
      slice.coding = Coding::narrow;
      slice.base = shape.steps == 0 ? 0 : static_cast<std::int32_t>(reach.low);
    } else {
      bool stepped = true;
      for (int step = 0; step < shape.steps && stepped; ++step) stepped = reach_of(row, count, step).narrow();
      slice.coding = stepped ? Coding::stepped : Coding::wide;
    }
    to_.slices.push_back(slice);
    add_to_stream(slice, row, count, static_cast<std::int32_t>(reach.low));
  }

  // Where the distances of a row's entries start in the dictionary. The last patterns are looked at first, a few more by hash.
  std::int32_t number_of_pattern(const Row &row) {
    std::size_t at = row.hash & (known_.size() - 1);
    for (; known_[at].length >= 0; at = (at + 1) & (known_.size() - 1)) {
      const Known &known = known_[at];
      if (known.hash == row.hash && known.length == row.length && rows_.same_offsets(known.row, row.row)) return known.first;
    }
    known_[at] = {row.hash, row.row, row.length, static_cast<std::int32_t>(to_.distances.size())};
    for (int k = 0; k < row.length; ++k)
      to_.distances.push_back(static_cast<std::int32_t>(rows_.columns(row.row)[k] - row.row));
    const std::int32_t first = known_[at].first;
    if (2 * ++patterns_ > known_.size()) grow();
    return first;
  }

  void grow() {
    std::vector<Known> before(2 * known_.size());
    before.swap(known_);
    for (const Known &known : before) {
      if (known.length < 0) continue;
      std::size_t at = known.hash & (known_.size() - 1);
      while (known_[at].length >= 0) at = (at + 1) & (known_.size() - 1);
      known_[at] = known;
    }
  }

  template <class T> void append(const T *from, std::int64_t count) {
    const std::size_t at = to_.stream.size(), bytes = static_cast<std::size_t>(count) * sizeof(T);
    to_.stream.resize(at + static_cast<std::size_t>(round_up_to(16, static_cast<std::int64_t>(bytes))));
    if (bytes > 0) std::memcpy(to_.stream.data() + at, from, bytes);
  }

  void add_to_stream(const HostSlice &slice, const Row *row, std::size_t count, std::int32_t low) {
    std::int32_t  numbers[lanes];
    std::uint16_t lengths[lanes] = {};
    for (std::size_t l = 0; l < lanes; ++l) numbers[l] = row[l < count ? l : 0].row;
    for (std::size_t l = 0; l < count; ++l) lengths[l] = static_cast<std::uint16_t>(row[l].length);
    if (slice.stride == 0) append(numbers, lanes);
    if (slice.full < slice.steps) append(lengths, lanes);
    if (slice.coding == Coding::pattern) return;
    bases_.assign(slice.steps, slice.base);
    if (slice.coding == Coding::stepped) {
      for (int step = 0; step < slice.steps; ++step)
        bases_[static_cast<std::size_t>(step)] = static_cast<std::int32_t>(reach_of(row, count, step).low);
      append(bases_.data(), slice.steps);
    }
    if (slice.coding == Coding::wide)
      append_columns(
        wide_, slice, row, count, [&](std::int64_t column, int) { return column; }, low);
    else
      append_columns(
        narrow_, slice, row, count,
        [&](std::int64_t column, int step) { return column - bases_[static_cast<std::size_t>(step)]; }, std::uint16_t(0));
  }

  template <class T, class F>
  void append_columns(std::vector<T> &columns, const HostSlice &slice, const Row *row, std::size_t count, F &&stored, T fill) {
    columns.assign(static_cast<std::size_t>(lanes * slice.steps), fill);
    for (std::size_t l = 0; l < count; ++l) {
      const auto *from = rows_.columns(row[l].row);
      for (int k = 0; k < row[l].length; ++k)
        columns[static_cast<std::size_t>(lanes * k) + l] = static_cast<T>(stored(std::int64_t(from[k]), k));
    }
    append(columns.data(), static_cast<std::int64_t>(columns.size()));
  }

  void copy_long_rows(Executor &executor) {
    for (const std::int32_t row : to_.long_rows) to_.long_offsets.push_back(to_.long_offsets.back() + rows_.length(row));
    to_.long_columns = Array<std::int32_t>(executor, to_.long_offsets.back());
    to_.long_values = Array<double>(executor, to_.long_offsets.back());
    std::int32_t *to = to_.long_columns.data();
    for (const std::int32_t row : to_.long_rows)
      for (std::int64_t k = 0; k < rows_.length(row); ++k) *to++ = static_cast<std::int32_t>(rows_.columns(row)[k]);
  }

  struct Known {
    std::uint64_t hash = 0;
    std::int32_t  row = 0, length = -1, first = 0; // length -1: a free place
  };

  const Rows                &rows_;
  const CsrView             &view_;
  HostArrays                &to_;
  std::int64_t               longest_ = 0;
  std::vector<Known>         known_ = std::vector<Known>(64); // open addressing, at most half full
  std::size_t                patterns_ = 0;
  std::vector<std::int32_t>  bases_, wide_;
  std::vector<std::uint16_t> narrow_;
};

int value_bytes_of(const CsrView &view, int least) {
  for (std::int64_t k = 0; k < view.nonzeros && least < 8; ++k) least = std::max(least, bytes_of_value(view.values[k]));
  return least;
}

void store(double value, double *to) { *to = value; }
void store(double value, float *to) { *to = static_cast<float>(value); }
void store(double value, std::uint16_t *to) {
  const auto    narrow = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &narrow, sizeof bits);
  *to = static_cast<std::uint16_t>(bits >> 16);
}

template <class Value, class Rows> void fill(HostArrays &arrays, const Rows &rows) {
  auto *values = reinterpret_cast<Value *>(arrays.values.data());
  for_each_slice(arrays, [&](const HostSliceView &view, std::int64_t first) {
    for (int l = 0; l < lanes; ++l) {
      const bool    present = l < view.slice.lanes;
      const int     length = present ? view.length(l) : 0;
      const double *from = present ? rows.values(view.row(l)) : nullptr;
      Value        *to = values + first + l;
      for (int k = 0; k < length; ++k) store(from[k], to + lanes * k);
      for (int k = length; k < view.slice.steps; ++k) store(0.0, to + lanes * k);
    }
  });
}

} // namespace

HostArrays build_host(Executor &executor, const CsrView &view) {
  HostArrays arrays;
  csr::validate(view);
  arrays.rows = view.rows;
  arrays.columns = view.columns_count;
  arrays.nonzeros = view.nonzeros;
  arrays.value_bytes = 2;
  compact::with_rows(view, [&](const auto &rows) {
    using Rows = std::decay_t<decltype(rows)>;
    Builder<Rows>(rows, view, arrays).build(executor);
  });
  fill_values(executor, arrays, view);
  return arrays;
}

void fill_values(Executor &executor, HostArrays &arrays, const CsrView &view) {
  std::int64_t entries = 0;
  for (const HostSlice &slice : arrays.slices) entries += std::int64_t(host_slice_rows) * slice.steps;
  arrays.value_bytes = value_bytes_of(view, arrays.value_bytes);
  if (arrays.values.size() != arrays.value_bytes * entries) {
    arrays.values = Array<std::uint8_t>();
    arrays.values = Array<std::uint8_t>(executor, arrays.value_bytes * entries);
  }
  compact::with_rows(view, [&](const auto &rows) {
    if (arrays.value_bytes == 8)
      fill<double>(arrays, rows);
    else if (arrays.value_bytes == 4)
      fill<float>(arrays, rows);
    else
      fill<std::uint16_t>(arrays, rows);
    double *to = arrays.long_values.data();
    for (const std::int32_t row : arrays.long_rows) to = std::copy_n(rows.values(row), rows.length(row), to);
  });
}

} // namespace tcbound::sell
