#pragma once

#include "measure.h"
#include "results.h"

namespace tcbound::bench {

// The table of one case, and its lines for the output file.
void report_case(const CaseResult &result, const Device &device, double roof, const Provenance &provenance);

// The best kernel of each case against the best baseline, the geometric mean of that, and what failed. False: something failed.
bool report_summary(const std::vector<CaseResult> &results);

} // namespace tcbound::bench
