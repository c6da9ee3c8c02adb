#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor.h"
#include "problem.h"
#include "work.h"

namespace tcbound {

// z = alpha op(A) x + beta y, op(A) = A or its transpose. y may be z and is not read when beta is 0 (it may then be null);
// x must not overlap z. Pointers lie in the executor's memory and are aligned to 8 bytes, no more.
struct Product {
  bool          transpose = false;
  double        alpha = 1.0;
  double        beta = 0.0;
  const double *x = nullptr;
  const double *y = nullptr;
  double       *z = nullptr;

  // z += alpha op(A) x: elements of z that op(A) has no entries for stay as they are and need not be touched.
  bool in_place() const { return beta == 1.0 && y == z; }
};

// Several products with one matrix: x, y and z stand for matrices of `count` columns, the next column of which starts so many
// elements after the one before.
struct Columns {
  std::int64_t count = 1;
  std::int64_t x = 0, y = 0, z = 0;
};

// The product with the columns from column k on.
inline Product from_column(const Product &product, const Columns &columns, std::int64_t k) {
  Product from = product;
  from.x += k * columns.x;
  if (from.y) from.y += k * columns.y;
  from.z += k * columns.z;
  return from;
}

// What second-level caches deliver, of what memory does (an H200: 5.4 of 4.24 TB/s, for matrices that ask it for all of x entry by entry).
constexpr double cache_over_memory = 1.27;

// A matrix as one executor stores it. Built by Kernel::build from a Problem; a host format may borrow the Problem's arrays,
// which then must outlive it.
class Format {
public:
  virtual ~Format() = default;
  virtual const char *name() const = 0;

  // Builds what products of that kind need and is not there yet (a transpose, a library's tables). apply() does so too; called
  // before, it keeps set-up out of the time of the first product.
  virtual void prepare(Executor &, bool /*transpose*/) {}

  // New values on the same pattern, in the order of the CSR that the format was built from. After an Error the format is good for
  // nothing but being destroyed: it may have been building anew.
  virtual void refill(Executor &executor, const double *values, MemorySpace space) = 0;

  // d[i] = a_ii, 0 where it is not stored or lies outside the matrix, for i < rows.
  virtual void diagonal(Executor &executor, double *d) = 0;

  // Counted from the arrays actually built. accumulate: beta is not 0, so y is read too.
  virtual Work work(bool transpose, bool accumulate) const = 0;

  // The same of a product in place, which takes less where rows without entries are not stored.
  virtual Work work_in_place(bool transpose) const { return work(transpose, true); }

  // The same of products by Kernel::apply_columns().
  virtual Work work_of_columns(bool transpose, bool accumulate, std::int64_t count) const {
    return count * work(transpose, accumulate);
  }

  // The share of the memory's bandwidth that products of such a matrix reach as a rule, where it is too large for caches and x is in
  // one. To choose among formats, their bytes are divided by it, so formats of one side are comparable if all leave it at 1.
  virtual double usual_share() const { return 1.0; }

  // Whether products load x row by row, so that entries of a matrix without neighbourhoods ask the second-level cache for a sector each.
  virtual bool gathers() const { return true; }

  // The shape of the MMA instruction that products of this format run on, such as m16n8k16; empty without tensor cores.
  virtual std::string mma() const { return {}; }

  // What its products are computed in.
  virtual Arithmetic arithmetic() const { return Arithmetic::fp64; }

  virtual std::int64_t stored_bytes() const = 0; // memory that the format occupies beyond borrowed arrays

  // What the format found in the matrix, for people; empty when there is nothing to say.
  virtual std::string describe() const { return {}; }
};

inline Work work_of(const Format &format, const Product &product) {
  return product.in_place() ? format.work_in_place(product.transpose) : format.work(product.transpose, product.beta != 0.0);
}

// An operation on a format by a backend, such as spmv/csr/cuda_core. Stateless: one object per row of list.def.
class Kernel {
public:
  Kernel(const char *op, const char *format, const char *backend)
    : op_(op), format_(format), backend_(backend), name_(op_ + "/" + format_ + "/" + backend_) {}
  virtual ~Kernel() = default;

  const std::string &op() const { return op_; }
  const std::string &format() const { return format_; }
  const std::string &backend() const { return backend_; }
  const std::string &name() const { return name_; }

  virtual MemorySpace space() const = 0; // where it runs

  // Empty when the kernel can run this problem on this device, else the reason why not, as a clause ("there are ...").
  virtual std::string check(const Device &device, const Problem &problem) const = 0;

  // The work of the format that build() would make, without building it: exactly where the sizes of the matrix tell, else the
  // least that it can be (a format that looks for repetition in the matrix knows more only when it is built).
  virtual Work predict(const Problem &problem, bool transpose, bool accumulate) const = 0;
  virtual Work predict_in_place(const Problem &problem, bool transpose) const { return predict(problem, transpose, true); }

  // A quick look at parts of a matrix in the executor's memory: false if building the format promises nothing, so that it need not be
  // tried where there are others.
  virtual bool suits(Executor &, const Problem &) const { return true; }

  // False if some format of it may not do what Format::gathers() says.
  virtual bool gathers() const { return true; }

  // How many sectors of 32 bytes of x an entry of a matrix in the executor's memory asks the second-level cache for, where products load
  // x row by row: an estimate by samples of kernels that need not, to choose among these and others; 0 if it is few or unknown.
  virtual double gathered_sectors(Executor &, const Problem &) const { return 0.0; }

  // Whether it is only for matrices of which others are known to gather: gathered_sectors() of some kernel is not 0.
  virtual bool instead_of_gathering() const { return false; }

  virtual std::unique_ptr<Format> build(Executor &executor, const Problem &problem) const = 0;

  // In stream order. The first transposed product may build what it needs inside the format.
  virtual void apply(Executor &executor, Format &format, const Product &product) const = 0;

  // The product with each of the columns. Unless a kernel knows better, one after the other, each reading all of the matrix.
  virtual void apply_columns(Executor &executor, Format &format, const Product &product, const Columns &columns) const;

private:
  std::string op_, format_, backend_, name_;
};

// Every kernel of list.def, in that order. A kernel that this build left out (no CUDA toolkit) is listed all the same; its
// check() says so.
const std::vector<const Kernel *> &all_kernels();

// The kernel of that name ("spmv/csr/host"), or null.
const Kernel *find_kernel(const std::string &name);

} // namespace tcbound
