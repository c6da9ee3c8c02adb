#include "matrix_market.h"

#include <algorithm>
#include <cmath>
#include <istream>
#include <limits>
#include <sstream>

#include <fast_matrix_market/fast_matrix_market.hpp>

#include "gzip_stream.h"

namespace compare {

namespace fmm = fast_matrix_market;

namespace {

const char expected_banner[] =
  "%%MatrixMarket matrix (coordinate|array) (real|integer|pattern) (general|symmetric|skew-symmetric)";

[[noreturn]] void malformed(std::int64_t line, const std::string &message) {
  throw FileError{PETSC_ERR_FILE_UNEXPECTED, line, message};
}

bool is_comment_or_blank(const std::string &line) {
  const std::size_t first = line.find_first_not_of(" \t\r");
  return first == std::string::npos || line[first] == '%';
}

// Collects the header's lines first, so that each of the library's complaints gets a line number and nothing after the size
// line is consumed.
fmm::matrix_market_header read_header(std::istream &in) {
  std::string  text, line;
  std::int64_t count = 0;
  do {
    if (!std::getline(in, line)) {
      if (!count) malformed(0, "the file is empty");
      malformed(count, "the file ends before its size line (rows columns entries)");
    }
    ++count;
    if (count == 1 && line.compare(0, 14, "%%MatrixMarket") && line.compare(0, 13, "%MatrixMarket"))
      malformed(1, std::string("not a Matrix Market file: it must begin with ") + expected_banner);
    // Comments are no longer needed; a blank line in their place keeps the count.
    text += count > 1 && is_comment_or_blank(line) ? "\n" : line + "\n";
  } while (count == 1 || is_comment_or_blank(line));

  fmm::matrix_market_header header;
  std::istringstream        stream(text);
  try {
    fmm::read_header(stream, header);
  } catch (const fmm::fmm_error &error) {
    std::string what = error.what();
    if (what.compare(0, 5, "Line ") == 0) what.erase(0, what.find(": ") + 2);
    if (what.find("header element") != std::string::npos) malformed(1, what + "; expected " + expected_banner);
    malformed(count, what + " in the size line \"" + line.substr(0, 80) + "\"");
  }
  header.header_line_count = count;
  return header;
}

void check_header(const fmm::matrix_market_header &h) {
  const std::int64_t line = h.header_line_count;
  if (h.object != fmm::matrix) malformed(1, std::string("a vector, not a matrix; expected ") + expected_banner);
  if (h.field == fmm::complex || h.symmetry == fmm::hermitian)
    throw FileError{PETSC_ERR_SUP, 1, "complex and hermitian matrices are not supported: tcbound works on real matrices"};
  if (h.field == fmm::pattern && h.format == fmm::array) malformed(1, "an array cannot be a pattern");
  if (h.field == fmm::pattern && h.symmetry == fmm::skew_symmetric) malformed(1, "a pattern cannot be skew-symmetric");
  if (h.symmetry != fmm::general && h.nrows != h.ncols)
    malformed(line, "a symmetric or skew-symmetric matrix must be square, not " + std::to_string(h.nrows) + " by " +
                      std::to_string(h.ncols));
  if (std::max(h.nrows, h.ncols) > PETSC_INT_MAX)
    throw FileError{PETSC_ERR_SUP, line,
                    std::to_string(h.nrows) + " by " + std::to_string(h.ncols) + " needs larger indices than this PETSc's " +
                      std::to_string(8 * sizeof(PetscInt)) + "-bit PetscInt"};
  if (h.format == fmm::array && h.ncols && h.nrows > std::numeric_limits<std::int64_t>::max() / h.ncols)
    throw FileError{PETSC_ERR_SUP, line, "the array has more than 2^63 values"};
}

// Parses the lines after the header.
class Body {
public:
  Body(const fmm::matrix_market_header &header, MatrixMarket &out)
    : header_(header), out_(out), line_(header.header_line_count) {
    total_ = header.format == fmm::coordinate ? header.nnz : array_values();
    const auto reserve = static_cast<std::size_t>(std::min<std::int64_t>(total_, 1 << 24)); // the header may lie
    out.row.reserve(reserve);
    out.column.reserve(reserve);
    out.value.reserve(reserve);
    start_column(0);
  }

  std::int64_t total() const { return total_; }
  std::int64_t done() const { return static_cast<std::int64_t>(out_.value.size()); }

  void parse(const std::string &chunk) {
    const char *pos = chunk.c_str(), *const end = pos + chunk.size();
    while (pos != end) {
      ++line_;
      pos = fmm::skip_spaces(pos);
      if (*pos == '%') {
        pos = std::find(pos, end, '\n');
      } else if (pos != end && *pos != '\n') {
        if (done() == total_)
          malformed(line_, "more lines than the " + std::to_string(total_) + (is_array() ? " values" : " entries") +
                             " that the size line promises");
        pos = is_array() ? array_line(pos, end) : coordinate_line(pos, end);
        pos = fmm::skip_spaces(pos);
        if (pos != end && *pos != '\n') malformed(line_, "unexpected text \"" + token(pos, end) + "\" at the end of the line");
      }
      if (pos != end) ++pos;
    }
  }

  void finish() const {
    if (done() < total_)
      malformed(line_, "the file is truncated: the size line promises " + std::to_string(total_) +
                         (is_array() ? " values" : " entries") + ", the file ends after " + std::to_string(done()));
  }

private:
  bool is_array() const { return header_.format == fmm::array; }

  std::int64_t array_values() const {
    const std::int64_t n = header_.nrows;
    if (header_.symmetry == fmm::symmetric) return n * (n + 1) / 2;
    if (header_.symmetry == fmm::skew_symmetric) return n * (n - 1) / 2;
    return header_.nrows * header_.ncols;
  }

  void start_column(std::int64_t column) {
    column_ = column;
    row_ = header_.symmetry == fmm::general ? 0 : header_.symmetry == fmm::symmetric ? column : column + 1;
  }

  static std::string token(const char *pos, const char *end) {
    const char *last = std::find_if(pos, end, [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; });
    std::string word(pos, std::min(last, pos + 40));
    for (char &c : word)
      if (static_cast<unsigned char>(c) < 32 || static_cast<unsigned char>(c) > 126) c = '?';
    return last - pos > 40 ? word + "..." : word;
  }

  // A number must end where its word ends.
  static bool ends(const char *pos, const char *end) {
    return pos == end || *pos == ' ' || *pos == '\t' || *pos == '\r' || *pos == '\n';
  }

  // The library takes no '+'.
  static const char *skip_plus(const char *pos) { return pos[0] == '+' && pos[1] != '+' && pos[1] != '-' ? pos + 1 : pos; }

  const char *word(const char *pos, const char *end, const char *what) const {
    pos = fmm::skip_spaces(pos);
    if (pos == end || *pos == '\n') malformed(line_, std::string("the ") + what + " is missing");
    return pos;
  }

  const char *integer(const char *pos, const char *end, const char *what, std::int64_t &value) const {
    const char *const begin = word(pos, end, what);
    try {
      pos = fmm::read_int(skip_plus(begin), end, value);
    } catch (const fmm::out_of_range &) {
      malformed(line_, std::string("the ") + what + " " + token(begin, end) + " does not fit 64 bits");
    } catch (const fmm::fmm_error &) {
      pos = begin;
    }
    if (pos == begin || !ends(pos, end))
      malformed(line_, std::string("the ") + what + " \"" + token(begin, end) + "\" is not an integer");
    return pos;
  }

  const char *index(const char *pos, const char *end, const char *what, std::int64_t limit, std::int64_t &value) const {
    pos = integer(pos, end, what, value);
    if (value == 0)
      malformed(line_, std::string("the ") + what + " is 0, but Matrix Market counts from 1 (is this file 0-based?)");
    if (value < 0 || value > limit)
      malformed(line_, std::string("the ") + what + " " + std::to_string(value) + " is outside 1.." + std::to_string(limit));
    --value;
    return pos;
  }

  const char *number(const char *pos, const char *end, double &value) {
    if (header_.field == fmm::integer || header_.field == fmm::unsigned_integer) {
      std::int64_t i = 0;
      pos = integer(pos, end, "integer value", i);
      value = static_cast<double>(i);
      // From 2^53 on the conversion may round; 2^63 itself is above every int64.
      if (std::fabs(value) >= 9007199254740992.0 && (value >= 9223372036854775808.0 || static_cast<std::int64_t>(value) != i))
        ++out_.rounded_integers;
      return pos;
    }
    const char *const begin = word(pos, end, "value");
    try {
      pos = fmm::read_value(skip_plus(begin), end, value);
    } catch (const fmm::fmm_error &) {
      pos = begin;
    }
    if (pos == begin || !ends(pos, end)) malformed(line_, "the value \"" + token(begin, end) + "\" is not a number");
    if (std::isinf(value) && std::none_of(begin, pos, [](char c) { return c == 'i' || c == 'I'; }))
      malformed(line_, "the value " + token(begin, end) + " overflows double precision");
    return pos;
  }

  const char *coordinate_line(const char *pos, const char *end) {
    std::int64_t i = 0, j = 0;
    double       v = 1.0;
    pos = index(pos, end, "row index", header_.nrows, i);
    pos = index(pos, end, "column index", header_.ncols, j);
    if (header_.field != fmm::pattern) pos = number(pos, end, v);
    if (header_.symmetry != fmm::general && i != j) {
      const int side = i > j ? 1 : -1;
      if (triangle_ && triangle_ != side)
        malformed(line_, "an entry of the other triangle: a symmetric or skew-symmetric file lists one triangle only");
      triangle_ = side;
    }
    if (header_.symmetry == fmm::skew_symmetric && i == j && v != 0.0)
      malformed(line_, "a non-zero diagonal entry in a skew-symmetric matrix");
    append(i, j, v);
    return pos;
  }

  const char *array_line(const char *pos, const char *end) {
    double v = 0.0;
    pos = number(pos, end, v);
    append(row_, column_, v);
    if (++row_ >= header_.nrows) start_column(column_ + 1);
    return pos;
  }

  void append(std::int64_t i, std::int64_t j, double v) {
    out_.row.push_back(static_cast<PetscInt>(i));
    out_.column.push_back(static_cast<PetscInt>(j));
    out_.value.push_back(v);
  }

  const fmm::matrix_market_header &header_;
  MatrixMarket                    &out_;
  std::int64_t                     line_, total_ = 0, row_ = 0, column_ = 0;
  int                              triangle_ = 0; // 1 lower, -1 upper, 0 not known yet
};

} // namespace

MatrixMarket read_matrix_market(const std::string &file, const ReadProgress &progress) {
  GzipBuffer   buffer(file);
  std::istream in(&buffer);
  in.exceptions(std::ios::badbit); // passes the buffer's FileError on
  const fmm::matrix_market_header header = read_header(in);
  check_header(header);

  MatrixMarket m;
  m.rows = static_cast<PetscInt>(header.nrows);
  m.columns = static_cast<PetscInt>(header.ncols);
  m.symmetry = header.symmetry == fmm::general     ? Symmetry::general
               : header.symmetry == fmm::symmetric ? Symmetry::symmetric
                                                   : Symmetry::skew;
  Body              body(header, m);
  fmm::read_options options;
  std::string       chunk;
  while (in.good()) {
    fmm::get_next_chunk(chunk, in, options);
    body.parse(chunk);
    if (progress) progress(body.done(), body.total());
  }
  body.finish();
  return m;
}

namespace {

// Sorts one row by column, stably, and sums duplicates; returns its new length.
std::int64_t merge_row(PetscInt *column, double *value, std::int64_t n, std::vector<std::pair<PetscInt, double>> &work) {
  if (std::adjacent_find(column, column + n, std::greater_equal<PetscInt>()) == column + n) return n;
  work.clear();
  for (std::int64_t k = 0; k < n; ++k) work.emplace_back(column[k], value[k]);
  std::stable_sort(work.begin(), work.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  std::int64_t kept = 0;
  for (const auto &[j, v] : work) {
    if (kept && column[kept - 1] == j) {
      value[kept - 1] += v;
    } else {
      column[kept] = j;
      value[kept++] = v;
    }
  }
  return kept;
}

} // namespace

Csr to_csr(MatrixMarket &&m) {
  const std::size_t entries = m.value.size();
  const bool        mirror = m.symmetry != Symmetry::general;
  const double      sign = m.symmetry == Symmetry::skew ? -1.0 : 1.0;
  Csr               a;
  a.rows = m.rows;
  a.columns = m.columns;
  a.offset.assign(static_cast<std::size_t>(m.rows) + 1, 0);
  for (std::size_t k = 0; k < entries; ++k) {
    ++a.offset[m.row[k] + 1];
    if (mirror && m.row[k] != m.column[k]) ++a.offset[m.column[k] + 1];
  }
  for (PetscInt i = 0; i < m.rows; ++i) a.offset[i + 1] += a.offset[i];
  a.column.resize(a.offset[m.rows]);
  a.value.resize(a.offset[m.rows]);
  std::vector<std::int64_t> next(a.offset.begin(), a.offset.end() - 1);
  for (std::size_t k = 0; k < entries; ++k) {
    const std::int64_t at = next[m.row[k]]++;
    a.column[at] = m.column[k];
    a.value[at] = m.value[k];
    if (!mirror || m.row[k] == m.column[k]) continue;
    const std::int64_t across = next[m.column[k]]++;
    a.column[across] = m.row[k];
    a.value[across] = sign * m.value[k];
  }
  m = MatrixMarket();

  std::vector<std::pair<PetscInt, double>> work;
  std::int64_t                             filled = 0;
  for (PetscInt i = 0; i < a.rows; ++i) {
    const std::int64_t begin = a.offset[i], n = a.offset[i + 1] - begin;
    const std::int64_t kept = merge_row(a.column.data() + begin, a.value.data() + begin, n, work);
    std::copy_n(a.column.begin() + begin, kept, a.column.begin() + filled);
    std::copy_n(a.value.begin() + begin, kept, a.value.begin() + filled);
    a.offset[i] = filled;
    filled += kept;
    a.duplicates += n - kept;
  }
  a.offset[a.rows] = filled;
  a.column.resize(filled);
  a.value.resize(filled);
  return a;
}

} // namespace compare
