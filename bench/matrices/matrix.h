#pragma once

// Matrices for benchmarks, each from a rule that gives one row from its number alone: the same matrix on any number of threads.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "parallel.h"
#include "problem.h"
#include "random.h"

namespace tcbound::bench {

// Leaves new elements as they are: gigabytes are first touched by the threads that fill them.
template <class T> struct Uninitialized : std::allocator<T> {
  template <class U> struct rebind { using other = Uninitialized<U>; };
  Uninitialized() = default;
  template <class U> Uninitialized(const Uninitialized<U> &) {}
  template <class U> void             construct(U *at) { ::new (static_cast<void *>(at)) U; }
  template <class U, class... A> void construct(U *at, A &&...a) { ::new (static_cast<void *>(at)) U(std::forward<A>(a)...); }
};
template <class T> using Numbers = std::vector<T, Uninitialized<T>>;

struct Matrix {
  std::string           name;
  std::int64_t          rows = 0, columns_count = 0;
  Numbers<std::int32_t> offsets, columns;
  Numbers<double>       values;

  std::int64_t nonzeros() const { return static_cast<std::int64_t>(columns.size()); }

  CsrView view() const {
    CsrView view;
    view.rows = rows;
    view.columns_count = columns_count;
    view.nonzeros = nonzeros();
    view.row_offsets = {offsets.data(), 4};
    view.columns = {columns.data(), 4};
    view.values = values.data();
    return view;
  }
};

// The row that a rule is writing.
class Row {
public:
  void add(std::int64_t column, double value) {
    columns_.push_back(static_cast<std::int32_t>(column));
    values_.push_back(value);
  }
  void clear() {
    columns_.clear();
    values_.clear();
  }
  std::size_t         size() const { return columns_.size(); }
  double             &value(std::size_t k) { return values_[k]; }
  const std::int32_t *columns() const { return columns_.data(); }
  const double       *values() const { return values_.data(); }

  // By column; of entries in the same column the first stays, the others go.
  void sort();

private:
  std::vector<std::int32_t>                    columns_;
  std::vector<double>                          values_;
  std::vector<std::pair<std::int32_t, double>> pairs_; // for sort()
};

// Turns row lengths in offsets[1 ...] into offsets and makes room for the entries.
void make_room(Matrix &a);

// rule(i, row) adds the entries of row i, columns ascending and without duplicates. It is called twice for each row: once to
// count them.
template <class Rule> Matrix make_matrix(std::string name, std::int64_t rows, std::int64_t columns, Rule &&rule) {
  Matrix a;
  a.name = std::move(name);
  a.rows = rows;
  a.columns_count = columns;
  a.offsets.resize(static_cast<std::size_t>(rows) + 1);
  parallel_for(rows, [&](std::int64_t begin, std::int64_t end) {
    Row row;
    for (std::int64_t i = begin; i < end; ++i) {
      row.clear();
      rule(i, row);
      a.offsets[i + 1] = static_cast<std::int32_t>(row.size());
    }
  });
  make_room(a);
  parallel_for(rows, [&](std::int64_t begin, std::int64_t end) {
    Row row;
    for (std::int64_t i = begin; i < end; ++i) {
      row.clear();
      rule(i, row);
      std::copy_n(row.columns(), row.size(), a.columns.begin() + a.offsets[i]);
      std::copy_n(row.values(), row.size(), a.values.begin() + a.offsets[i]);
    }
  });
  return a;
}

Matrix transpose(const Matrix &a, std::string name);

} // namespace tcbound::bench
