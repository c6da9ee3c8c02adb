#pragma once

#include "contender.h"
#include "progress.h"

namespace tcbound::bench {

struct MeasureOptions {
  bool                     variants = false, mma = false, lossy = false;
  int                      repeats = 0, batch = 0; // 0: chosen by device and size
  int                      columns = 1;            // of x and z
  std::vector<std::string> kernels;                // empty: all
};

// What one contender reached on one matrix; times in microseconds.
struct Outcome {
  std::string  name;
  bool         baseline = false;
  double       time_us = 0.0;   // of one product, median over the rounds
  double       build_us = 0.0;  // from the CSR in the executor's memory to a product that can start
  double       refill_us = 0.0; // 0: not measured
  Arithmetic   arithmetic = Arithmetic::fp64;
  double       error = 0.0; // of lossy arithmetic: the largest that a row's is of sum |a_ij x_j|
  Work         work;
  std::int64_t stored_bytes = 0;
};

struct CaseResult {
  std::string              name;
  std::int64_t             rows = 0, columns = 0, nonzeros = 0;
  int                      count = 1;     // columns of x and z
  bool                     small = false; // CSR and vectors are under five times the last-level cache
  int                      repeats = 0, batch = 0;
  std::vector<Outcome>     outcomes;
  std::vector<std::string> left_out, failures;

  const Outcome *best_baseline() const { return best(true); }
  const Outcome *best_kernel() const { return best(false); }

private:
  const Outcome *best(bool baseline) const;
};

// Builds every contender on the matrix, checks its product before and after refills, then times all in turns.
CaseResult measure(const MatrixCase &one, const Matrix &matrix, Executor &executor, const MeasureOptions &options,
                   Progress &progress);

} // namespace tcbound::bench
