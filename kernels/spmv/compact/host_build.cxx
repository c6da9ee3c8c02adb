// The analysis: one pass over the CSR, slice by slice, finds the pattern that most rows of a slice have; then the patterns worth
// keeping get their numbers, and values and remainder are copied. Rows are found by hashes and compared entry by entry.
#include <algorithm>
#include <limits>

#include "host_format.h"
#include "host_rows.h"
#include "spmv/csr/format.h"

namespace tcbound::compact {
namespace {

constexpr int exceptions_worth_a_pattern = 4; // of equal rows that are the main pattern of no slice

std::uint64_t bit(int i) { return std::uint64_t(1) << i; }

// Calls f with the number of each set bit, from the least.
template <class F> void for_bits(std::uint64_t bits, F &&f) {
  for (; bits; bits &= bits - 1) f(__builtin_ctzll(bits));
}

// The largest set of equal rows among those given as bits, if it has at least `need` of them, which must be more than half of a
// slice; else 0. By the vote of Boyer and Moore ("MJRTY", 1991): a row compares itself with one other, which loses its place to
// the next row when fewer agreed than disagreed. What rows before the last winner are is looked up afterwards.
template <class Equal> std::uint64_t find_majority(std::uint64_t rows, int need, Equal &&equal) {
  int           left = __builtin_popcountll(rows), seen = 0, votes = 0, winner = 0;
  std::uint64_t same = 0;
  for (std::uint64_t rest = rows; rest; rest &= rest - 1, ++seen, --left) {
    if ((seen + votes) / 2 + left < need) return 0; // no row can still be found often enough
    const int i = __builtin_ctzll(rest);
    if (votes == 0) {
      winner = i;
      same = bit(i);
      votes = 1;
    } else if (equal(winner, i)) {
      same |= bit(i);
      ++votes;
    } else {
      --votes;
    }
  }
  for_bits(rows & (bit(winner) - 1), [&](int i) {
    if (equal(winner, i)) same |= bit(i);
  });
  return __builtin_popcountll(same) >= need ? same : 0;
}

// Distinct rows and how they are used, before it is known which of them are kept.
template <class Rows> class Dictionary {
public:
  struct Entry {
    std::uint64_t hash;
    std::int32_t  representative;
    std::int32_t  exceptions = 0;
    bool          main = false;
  };

  Dictionary(const Rows &rows, bool with_values, std::uint64_t hash_mask)
    : rows_(rows), with_values_(with_values), hash_mask_(hash_mask), table_(64, none) {}

  std::int32_t add_main(std::int64_t row) {
    const std::int32_t i = find_or_add(row);
    entries_[static_cast<std::size_t>(i)].main = true;
    return i;
  }
  std::int32_t add_exception(std::int64_t row) {
    const std::int32_t i = find_or_add(row);
    ++entries_[static_cast<std::size_t>(i)].exceptions;
    return i;
  }
  const std::vector<Entry> &entries() const { return entries_; }

private:
  static constexpr std::int32_t none = -1;

  bool equal(std::int32_t i, std::int64_t row) const {
    const std::int64_t other = entries_[static_cast<std::size_t>(i)].representative;
    return rows_.same_offsets(other, row) && (!with_values_ || rows_.same_values(other, row, rows_.length(row)));
  }

  std::int32_t find_or_add(std::int64_t row) {
    if (!entries_.empty() && equal(last_, row)) return last_;
    if (2 * entries_.size() >= table_.size()) grow();
    std::uint64_t hash = rows_.hash_offsets(row);
    if (with_values_) hash += rows_.hash_values(row);
    hash &= hash_mask_;
    std::size_t at = place(hash);
    for (; table_[at] != none; at = (at + 1) & (table_.size() - 1))
      if (entries_[static_cast<std::size_t>(table_[at])].hash == hash && equal(table_[at], row)) return last_ = table_[at];
    last_ = static_cast<std::int32_t>(entries_.size());
    entries_.push_back({hash, static_cast<std::int32_t>(row)});
    return table_[at] = last_;
  }

  std::size_t place(std::uint64_t hash) const { return static_cast<std::size_t>(hash) & (table_.size() - 1); }

  void grow() {
    table_.assign(2 * table_.size(), none);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      std::size_t at = place(entries_[i].hash);
      while (table_[at] != none) at = (at + 1) & (table_.size() - 1);
      table_[at] = static_cast<std::int32_t>(i);
    }
  }

  const Rows               &rows_;
  bool                      with_values_;
  std::uint64_t             hash_mask_;
  std::int32_t              last_ = 0; // found or added last: neighbours are often alike
  std::vector<Entry>        entries_;
  std::vector<std::int32_t> table_; // open addressing, at most half full
};

template <class Rows, class S> std::int32_t append_pattern(const Rows &rows, std::int32_t representative, Patterned<S> &to) {
  const std::int64_t n = rows.length(representative);
  Pattern            pattern = {};
  pattern.first_segment = static_cast<std::int64_t>(to.segments.size());
  pattern.entries = static_cast<std::int32_t>(n);
  pattern.representative = representative;
  for (std::int64_t k = 0; k < n; ++k) {
    const auto offset = static_cast<std::int32_t>(rows.columns(representative)[k] - representative);
    pattern.low = k == 0 ? offset : std::min(pattern.low, offset);
    pattern.high = k == 0 ? offset : std::max(pattern.high, offset);
    S *last = pattern.segments > 0 ? &to.segments.back() : nullptr;
    if (last && last->count < longest_run && offset == std::int64_t(last->offset) + last->count) {
      ++last->count;
    } else {
      S next = {};
      next.offset = offset;
      next.count = 1;
      to.segments.push_back(next);
      ++pattern.segments;
    }
  }
  to.patterns.push_back(pattern);
  return static_cast<std::int32_t>(to.patterns.size() - 1);
}

template <class Rows> class Builder {
public:
  Builder(const Rows &rows, const CsrView &view, const BuildOptions &options, HostArrays &to)
    : rows_(rows), view_(view), options_(options), to_(to), constant_(rows, true, options.hash_mask),
      varying_(rows, false, options.hash_mask) {}

  void build(Executor &executor) {
    for (std::int64_t first = 0; first < view_.rows; first += slice_rows)
      add_slice(first, static_cast<int>(std::min<std::int64_t>(slice_rows, view_.rows - first)));
    settle(constant_, to_.constant);
    settle(varying_, to_.varying);
    place_values(executor);
    if (view_.nonzeros <= std::numeric_limits<std::int32_t>::max())
      copy_remainder<std::int32_t>(executor);
    else
      copy_remainder<std::int64_t>(executor);
  }

private:
  void add_slice(std::int64_t first, int n) {
    std::uint64_t patterned = 0;
    for (int i = 0; i < n; ++i)
      if (rows_.patterned(first + i)) patterned |= bit(i);
    const int           need = (3 * n + 3) / 4;
    const std::uint64_t same_offsets =
      find_majority(patterned, need, [&](int a, int b) { return rows_.same_offsets(first + a, first + b); });
    std::uint64_t rest = n == slice_rows ? ~std::uint64_t(0) : bit(n) - 1;
    if (same_offsets) {
      const std::int64_t  length = rows_.length(first + __builtin_ctzll(same_offsets));
      const std::uint64_t same = !options_.constant ? 0 : find_majority(same_offsets, need, [&](int a, int b) {
        return rows_.same_values(first + a, first + b, length);
      });
      if (same)
        add(constant_, to_.constant, first, same, patterned & ~same);
      else
        add(varying_, to_.varying, first, same_offsets, patterned & ~same_offsets);
      rest &= ~patterned;
    }
    for_bits(rest, [&](int i) { to_.remainder_rows.push_back(static_cast<std::int32_t>(first + i)); });
  }

  template <class S>
  void add(Dictionary<Rows> &dictionary, Patterned<S> &to, std::int64_t first, std::uint64_t same, std::uint64_t others) {
    to.slices.push_back({static_cast<std::int32_t>(first), dictionary.add_main(first + __builtin_ctzll(same)), same});
    for_bits(others, [&](int i) {
      to.exceptions.push_back({static_cast<std::int32_t>(first + i), dictionary.add_exception(first + i)});
    });
  }

  // Numbers the patterns that are kept; exceptions that lose theirs go to the remainder.
  template <class S> void settle(const Dictionary<Rows> &dictionary, Patterned<S> &to) {
    constexpr std::int32_t    dropped = -1;
    std::vector<std::int32_t> number;
    for (const auto &entry : dictionary.entries())
      number.push_back(entry.main || entry.exceptions >= exceptions_worth_a_pattern
                         ? append_pattern(rows_, entry.representative, to)
                         : dropped);
    for (Slice &slice : to.slices) slice.pattern = number[static_cast<std::size_t>(slice.pattern)];
    const std::size_t before = to_.remainder_rows.size();
    const auto        lost = [&](Exception &e) {
      e.pattern = number[static_cast<std::size_t>(e.pattern)];
      if (e.pattern == dropped) to_.remainder_rows.push_back(e.row);
      return e.pattern == dropped;
    };
    to.exceptions.erase(std::remove_if(to.exceptions.begin(), to.exceptions.end(), lost), to.exceptions.end());
    const auto middle = to_.remainder_rows.begin() + static_cast<std::ptrdiff_t>(before);
    std::inplace_merge(to_.remainder_rows.begin(), middle, to_.remainder_rows.end());
  }

  // A slice has as many places for a row as the longest of its patterns has entries.
  void place_values(Executor &executor) {
    const Patterned<Segment> &a = to_.varying;
    std::size_t               e = 0;
    for (const Slice &slice : a.slices) {
      std::int64_t slots = a.patterns[static_cast<std::size_t>(slice.pattern)].entries;
      for (; e < a.exceptions.size() && a.exceptions[e].row - slice.first_row < slice_rows; ++e)
        slots = std::max<std::int64_t>(slots, a.patterns[static_cast<std::size_t>(a.exceptions[e].pattern)].entries);
      to_.first_value.push_back(to_.first_value.back() + slots * slice_rows);
    }
    to_.values = Array<double>(executor, to_.first_value.back());
  }

  template <class Offset> void copy_remainder(Executor &executor) {
    if (view_.columns_count <= std::int64_t(std::numeric_limits<std::int32_t>::max()) + 1)
      copy_remainder<Offset, std::int32_t>(executor);
    else
      copy_remainder<Offset, std::int64_t>(executor);
  }

  template <class Offset, class Index> void copy_remainder(Executor &executor) {
    const auto   n = static_cast<std::int64_t>(to_.remainder_rows.size());
    std::int64_t nonzeros = 0;
    for (const std::int32_t row : to_.remainder_rows) nonzeros += rows_.length(row);
    to_.remainder_offsets = Array<char>(executor, n > 0 ? (n + 1) * std::int64_t(sizeof(Offset)) : 0);
    to_.remainder_columns = Array<char>(executor, nonzeros * std::int64_t(sizeof(Index)));
    to_.remainder_values = Array<double>(executor, nonzeros);
    auto  *offsets = reinterpret_cast<Offset *>(to_.remainder_offsets.data());
    auto  *columns = reinterpret_cast<Index *>(to_.remainder_columns.data());
    Offset at = 0;
    if (n > 0) offsets[0] = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t row = to_.remainder_rows[static_cast<std::size_t>(i)], length = rows_.length(row);
      const auto        *from = rows_.columns(row);
      for (std::int64_t k = 0; k < length; ++k) columns[at + k] = static_cast<Index>(from[k]);
      offsets[i + 1] = at += static_cast<Offset>(length);
    }
    to_.remainder.rows = n;
    to_.remainder.columns_count = view_.columns_count;
    to_.remainder.nonzeros = nonzeros;
    to_.remainder.row_offsets = {offsets, sizeof(Offset)};
    to_.remainder.columns = {columns, sizeof(Index)};
    to_.remainder.values = to_.remainder_values.data();
  }

  const Rows         &rows_;
  const CsrView      &view_;
  const BuildOptions &options_;
  HostArrays         &to_;
  Dictionary<Rows>    constant_, varying_;
};

// Entry k of the row at place i of a slice goes to to[slice_rows k + i]. Eight rows at a time: the cache lines written are whole.
void transpose_values(const double *const *rows, const int *lengths, std::int64_t slots, double *to) {
  constexpr int width = 8;
  for (int group = 0; group < slice_rows; group += width) {
    const double *const *from = rows + group;
    const int            common = *std::min_element(lengths + group, lengths + group + width);
    for (int k = 0; k < common; ++k)
      for (int i = 0; i < width; ++i) to[slice_rows * k + group + i] = from[i][k];
    for (std::int64_t k = common; k < slots; ++k)
      for (int i = 0; i < width; ++i) to[slice_rows * k + group + i] = k < lengths[group + i] ? from[i][k] : 0.0;
  }
}

template <class Rows> void fill_explicit(HostArrays &arrays, const Rows &rows) {
  const Patterned<Segment> &a = arrays.varying;
  std::size_t               e = 0;
  for (std::size_t s = 0; s < a.slices.size(); ++s) {
    const Slice       &slice = a.slices[s];
    const double      *from[slice_rows] = {};
    int                lengths[slice_rows] = {};
    const std::int64_t first = arrays.first_value[s], slots = (arrays.first_value[s + 1] - first) / slice_rows;
    const std::int32_t entries = a.patterns[static_cast<std::size_t>(slice.pattern)].entries;
    for_bits(slice.rows, [&](int i) {
      from[i] = rows.values(slice.first_row + i);
      lengths[i] = entries;
    });
    for (; e < a.exceptions.size() && a.exceptions[e].row - slice.first_row < slice_rows; ++e) {
      const std::int32_t row = a.exceptions[e].row;
      from[row - slice.first_row] = rows.values(row);
      lengths[row - slice.first_row] = a.patterns[static_cast<std::size_t>(a.exceptions[e].pattern)].entries;
    }
    transpose_values(from, lengths, slots, arrays.values.data() + first);
  }
}

template <class Rows> void fill_constant(Patterned<ConstantSegment> &to, const Rows &rows) {
  for (const Pattern &pattern : to.patterns) {
    const double    *from = rows.values(pattern.representative);
    ConstantSegment *segment = to.segments.data() + pattern.first_segment;
    for (int s = 0; s < pattern.segments; ++s, ++segment)
      for (int k = 0; k < segment->count; ++k) segment->values[k] = *from++;
  }
}

} // namespace

HostArrays build_host(Executor &executor, const CsrView &view, const BuildOptions &options) {
  HostArrays arrays;
  csr::validate(view);
  arrays.rows = view.rows;
  arrays.columns = view.columns_count;
  arrays.nonzeros = view.nonzeros;
  with_rows(view, [&](const auto &rows) {
    using Rows = std::decay_t<decltype(rows)>;
    Builder<Rows>(rows, view, options, arrays).build(executor);
  });
  fill_values(arrays, view);
  return arrays;
}

void fill_values(HostArrays &arrays, const CsrView &view) {
  with_rows(view, [&](const auto &rows) {
    fill_constant(arrays.constant, rows);
    fill_explicit(arrays, rows);
    double *to = arrays.remainder_values.data();
    for (const std::int32_t row : arrays.remainder_rows) to = std::copy_n(rows.values(row), rows.length(row), to);
  });
}

bool constants_hold(const HostArrays &arrays, const CsrView &view) {
  const Patterned<ConstantSegment> &a = arrays.constant;
  bool                              hold = true;
  with_rows(view, [&](const auto &rows) {
    const auto same = [&](std::int64_t row, std::int32_t number) {
      const Pattern &pattern = a.patterns[static_cast<std::size_t>(number)];
      return rows.same_values(row, pattern.representative, pattern.entries);
    };
    for (const Exception &e : a.exceptions) hold = hold && same(e.row, e.pattern);
    for (std::size_t s = 0; s < a.slices.size() && hold; ++s)
      for_bits(a.slices[s].rows, [&](int i) { hold = hold && same(a.slices[s].first_row + i, a.slices[s].pattern); });
  });
  return hold;
}

} // namespace tcbound::compact
