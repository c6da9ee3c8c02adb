#pragma once

#include <string>
#include <vector>

#include "result.h"

namespace compare {

// What the table's shares and ratios refer to.
struct Scale {
  std::string    baseline;                                 // aij or aijcusparse
  PetscReal      baseline_product = 0;                     // seconds of its MatMult
  PetscLogDouble host_bandwidth = 0, device_bandwidth = 0; // bytes a second, 0: not measured
};

// Measures the bandwidth ceilings that the results need. Collective.
PetscErrorCode MeasureScale(MPI_Comm comm, const std::vector<Result> &results, Scale *scale);

// The table, its footnotes, failures and warnings, printed by rank 0.
PetscErrorCode PrintReport(MPI_Comm comm, const Options &options, const Reference &reference, const Scale &scale,
                           const std::vector<Result> &results, const std::vector<std::string> &left_out);

// The same as JSON, written by rank 0. Collective.
PetscErrorCode WriteJson(MPI_Comm comm, const Options &options, const Reference &reference, const Scale &scale,
                         const std::vector<Result> &results, const std::vector<std::string> &left_out);

} // namespace compare
