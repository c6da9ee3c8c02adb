#pragma once

#include "device_matrix.h"

namespace tcbound::fragments {

// The format of both kernels. The transpose is stored in the same way, built when first needed.
class FragmentFormat final : public Format {
public:
  FragmentFormat(Executor &executor, const CsrView &view, MmaShape mma, const Config &config, Arithmetic arithmetic);

  const char *name() const override { return "fragments"; }
  void        prepare(Executor &executor, bool transpose) override;
  void        refill(Executor &executor, const double *values, MemorySpace space) override;
  void        diagonal(Executor &executor, double *d) override { plain_.diagonal(executor, d); }
  Work        work(bool transpose, bool accumulate) const override;
  Work        work_of_columns(bool transpose, bool accumulate, std::int64_t count) const override;
  double usual_share() const override { return plain_.node > 1 ? 0.97 : (plain_.ragged_sorted == ragged_window ? 0.96 : 0.88); }
  std::string  mma() const override { return mma_ == MmaShape::automatic ? std::string() : facts_of(mma_).name; }
  Arithmetic   arithmetic() const override { return plain_.arithmetic; }
  std::int64_t stored_bytes() const override;
  std::string  describe() const override;

  DeviceMatrix &matrix(Executor &executor, bool transpose) {
    prepare(executor, transpose);
    return transpose ? transposed_ : plain_;
  }
  int      rounds() const { return config_.rounds; }
  MmaShape shape() const { return mma_; }

  // Whether there are kernels for several columns at once: in FP64 where rows come in nodes.
  bool takes_columns(Executor &executor, bool transpose) {
    return arithmetic() == Arithmetic::fp64 && matrix(executor, transpose).node > 1;
  }
  // The columns of x side by side, as columns.h wants them; in stream order, until the next call.
  const double *pack(Executor &executor, const Product &product, const Columns &by);
  std::int64_t  inputs(bool transpose) const { return transpose ? plain_.rows : plain_.columns_count; }

private:
  std::string redundancy() const;

  MmaShape           mma_;
  Config             config_;
  DeviceMatrix       plain_, transposed_;
  csr::Transposition transposition_;
  bool               have_transpose_ = false;
  Array<double>      packed_;
};

// What both kernels promise: no more than the matrix's sizes tell, the columns at their narrowest.
Work predict(const Problem &problem, bool transpose, bool accumulate);

} // namespace tcbound::fragments
