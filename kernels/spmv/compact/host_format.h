#pragma once

#include <vector>

#include "format.h"

namespace tcbound::compact {

// A dictionary of patterns and the slices and exceptions that refer to it, both in ascending order of their rows.
template <class S> struct Patterned {
  std::vector<Pattern>   patterns;
  std::vector<S>         segments;
  std::vector<Slice>     slices;
  std::vector<Exception> exceptions;

  const S *first_segment(const Pattern &pattern) const { return segments.data() + pattern.first_segment; }
};

// The format in host memory: all that a product reads.
struct HostArrays {
  std::int64_t rows = 0, columns = 0, nonzeros = 0;

  Patterned<ConstantSegment> constant;
  Patterned<Segment>         varying; // the explicit slices

  // Explicit slice s has the values first_value[s] .. first_value[s + 1] - 1, a multiple of slice_rows: entry k of the slice's
  // row i is number slice_rows k + i of them. An exception's values stand in its own row's places. Places that no entry has are 0.
  std::vector<std::int64_t> first_value = {0};
  Array<double>             values;

  // The remainder: row i of the CSR is row remainder_rows[i] of the matrix. Its indices have 32 bits where that suffices.
  std::vector<std::int32_t> remainder_rows;
  Array<char>               remainder_offsets, remainder_columns;
  Array<double>             remainder_values;
  CsrView                   remainder; // of the three arrays
};

struct BuildOptions {
  bool          constant = true;               // look for constant slices
  std::uint64_t hash_mask = ~std::uint64_t(0); // bits of a row's hash that are used; tests take some away
};

// Analyses a matrix in host memory with at most 2^31 - 1 rows and takes its values.
HostArrays build_host(Executor &executor, const CsrView &view, const BuildOptions &options = {});

// Whether every row that is stored without values still equals the representative of its pattern, bit for bit.
bool constants_hold(const HostArrays &arrays, const CsrView &view);

// Takes new values of the matrix that the arrays were built from.
void fill_values(HostArrays &arrays, const CsrView &view);

Census count(const HostArrays &arrays);

// The CSR once more, from nothing but the arrays.
struct Recovered {
  std::vector<std::int64_t> offsets, columns;
  std::vector<double>       values;
};
Recovered recover(const HostArrays &arrays);

// Borrows the Problem's arrays to take new values; products read its own.
class HostFormat final : public Format {
public:
  HostFormat(Executor &executor, const CsrView &view);

  const char *name() const override { return "compact"; }

  // While the rows of constant slices stay equal to each other, new values go where the old ones were. Once they do not, the
  // matrix is analysed again, without constant slices then and in every later refill: coefficients that changed once change
  // again.
  void              refill(Executor &executor, const double *values, MemorySpace space) override;
  void              diagonal(Executor &executor, double *d) override;
  Work              work(bool transpose, bool accumulate) const override;
  double            usual_share() const override;
  std::int64_t      stored_bytes() const override { return census_.bytes; }
  std::string       describe() const override { return compact::describe(census_); }
  const HostArrays &arrays() const { return arrays_; }

private:
  CsrView      view_;
  BuildOptions options_;
  HostArrays   arrays_;
  Census       census_;
};

} // namespace tcbound::compact
