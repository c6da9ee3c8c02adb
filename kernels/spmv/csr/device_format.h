#pragma once

#include <limits>
#include <string>

#include "format.h"

namespace tcbound::csr {

// One CSR matrix in device memory. Offsets have 32 bits while they fit, columns always; the arrays start at multiples of 256
// bytes and may be read 256 bytes past their end (Executor::allocate).
struct DeviceArrays {
  std::int64_t        rows = 0, columns_count = 0, nonzeros = 0;
  bool                wide = false; // offsets have 64 bits
  Array<std::int32_t> narrow_offsets;
  Array<std::int64_t> wide_offsets;
  Array<std::int32_t> columns;
  Array<double>       values;

  std::int64_t bytes() const { return narrow_offsets.bytes() + wide_offsets.bytes() + columns.bytes() + values.bytes(); }
};

// Calls f with the offsets as const int32_t * or const int64_t *.
template <class F> auto with_offsets(const DeviceArrays &a, F &&f) {
  return a.wide ? f(a.wide_offsets.data()) : f(a.narrow_offsets.data());
}

// The same for two matrices whose offsets have the same width: f(offsets of a, offsets of b).
template <class F> auto with_offsets(const DeviceArrays &a, const DeviceArrays &b, F &&f) {
  return a.wide ? f(a.wide_offsets.data(), b.wide_offsets.data()) : f(a.narrow_offsets.data(), b.narrow_offsets.data());
}

// Row offsets need 64 bits when the number of entries does not fit in 32.
inline bool needs_wide_offsets(const CsrView &view) { return view.nonzeros > std::numeric_limits<std::int32_t>::max(); }

// What keeps a device from holding this matrix as DeviceArrays, or empty.
std::string check_device(const Device &device, const CsrView &view);

// The same of kernels that multiply in FP64 only.
std::string check_device(const Device &device, const Problem &problem);

// A copy in device memory, with 64-bit offsets if `wide`.
DeviceArrays copy_to_device(Executor &executor, const CsrView &view, bool wide);

// The same for building another format from it: columns and values that are in device memory already, as they have to be, are
// borrowed from the view.
DeviceArrays bring_to_device(Executor &executor, const CsrView &view, bool wide);

// Makes the transpose of a matrix and takes the matrix's later values to it.
class Transposition {
public:
  DeviceArrays transpose(Executor &executor, const DeviceArrays &a);

  // to[k] = the value of the transpose's entry k; `from` in the order of the plain matrix. Both in device memory.
  void gather(Executor &executor, const double *from, double *to) const;

  std::int64_t bytes() const { return narrow_positions_.bytes() + wide_positions_.bytes(); }

private:
  std::int64_t        nonzeros_ = 0;
  Array<std::int32_t> narrow_positions_; // of the transpose's entries among those of the plain matrix
  Array<std::int64_t> wide_positions_;
};

// z = beta y, as many as `size` elements but for the `listed` rows, which ascend (all in device memory).
void begin_others(Executor &executor, const Product &product, std::int64_t size, const std::int32_t *rows, std::int64_t listed);

// CSR in device memory, shared by all device backends. The transpose is stored as CSR of its own, built when first needed, so
// that a transposed product is the plain one: every output is summed by one place in a fixed order, without atomics. If rows are
// listed, the matrix holds these only, and its transpose all.
class DeviceFormat : public Format {
public:
  DeviceFormat(Executor &executor, const CsrView &view, bool wide, const ListedRows &listed = {});

  const char  *name() const override { return "csr"; }
  void         refill(Executor &executor, const double *values, MemorySpace space) override;
  void         diagonal(Executor &executor, double *d) override;
  Work         work(bool transpose, bool accumulate) const override;
  Work         work_in_place(bool transpose) const override;
  Work         work_of_columns(bool transpose, bool accumulate, std::int64_t count) const override;
  std::int64_t stored_bytes() const override;
  std::string  describe() const override { return csr::describe(size_); }

  const DeviceArrays &arrays(Executor &executor, bool transpose);

  // What the rows of arrays() stand for; null: they are all rows.
  const std::int32_t *rows(bool transpose) const { return lists(transpose) ? listed_.data() : nullptr; }

  // z = beta y in rows that are not stored, unless the product is one in place: what a kernel leaves to do.
  void begin(Executor &executor, const Product &product) const;

protected:
  // Tables besides the CSR arrays that a product reads, and their size for a matrix or a transpose not built yet.
  virtual std::int64_t auxiliary_bytes(bool) const { return 0; }

  Size size_of(bool transpose) const; // of what a product reads: the transpose is stored with one offset per column

private:
  bool lists(bool transpose) const { return !transpose && size_.listed != Size::all_rows; }

  Size                size_;
  DeviceArrays        plain_, transposed_;
  Array<std::int32_t> listed_; // rows that are stored in plain_
  Transposition       transposition_;
  bool                have_transpose_ = false;
};

} // namespace tcbound::csr
