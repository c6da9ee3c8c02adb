#include "report.h"

#include <cmath>
#include <cstdio>

namespace tcbound::bench {
namespace {

// Bytes that a product reads for an entry, the vectors left out; plain CSR has 12 and a bit.
double bytes_per_nonzero(const CaseResult &result, const Outcome &outcome) {
  const std::int64_t vectors = 8 * result.count * (result.rows + result.columns);
  return static_cast<double>(outcome.work.bytes - vectors) / static_cast<double>(std::max<std::int64_t>(result.nonzeros, 1));
}

// The kernel of the same format and arithmetic on CUDA cores, of one on tensor cores.
const Outcome *twin_of(const CaseResult &result, const Outcome &outcome) {
  const std::size_t at = outcome.name.find("/tensor_core");
  if (at == std::string::npos) return nullptr;
  std::string twin = outcome.name.substr(0, at) + "/cuda_core";
  if (outcome.arithmetic != Arithmetic::fp64) twin += std::string(":") + facts_of(outcome.arithmetic).name;
  for (const Outcome &other : result.outcomes)
    if (other.name == twin) return &other;
  return nullptr;
}

double issued_over_useful(const Work &work) {
  return work.useful_flops > 0 ? static_cast<double>(work.issued_flops) / static_cast<double>(work.useful_flops) : 1.0;
}

Line line_of(const CaseResult &result, const Outcome &outcome, const Device &device, double roof) {
  Line line;
  line.name = result.name;
  line.op = result.count == 1 ? "spmv" : "spmm of " + std::to_string(result.count) + " columns";
  if (outcome.arithmetic != Arithmetic::fp64) line.op += ", lossy"; // never to be taken for what FP64 reaches
  line.kernel = outcome.name;
  line.device = device.name;
  line.time_us = outcome.time_us;
  line.repeats = result.repeats;
  line.bytes = outcome.work.bytes;
  line.useful_flops = outcome.work.useful_flops;
  line.roof = roof;
  if (const Outcome *baseline = result.best_baseline()) {
    line.baseline = baseline->name;
    line.baseline_time_us = baseline->time_us;
  }
  return line;
}

// Set-up times are also given in products of the best baseline.
nlohmann::json extra_of(const CaseResult &result, const Outcome &outcome) {
  nlohmann::json extra = {{"rows", result.rows},
                          {"columns", result.columns},
                          {"nonzeros", result.nonzeros},
                          {"small", result.small},
                          {"batch", result.batch},
                          {"is_baseline", outcome.baseline},
                          {"build_time_us", outcome.build_us},
                          {"stored_bytes", outcome.stored_bytes},
                          {"bytes_per_nonzero", bytes_per_nonzero(result, outcome)},
                          {"issued_over_useful", issued_over_useful(outcome.work)},
                          {"build_spmvs", nullptr},
                          {"refill_time_us", nullptr},
                          {"refill_spmvs", nullptr}};
  const Outcome *baseline = result.best_baseline();
  if (baseline) extra["build_spmvs"] = outcome.build_us / baseline->time_us;
  if (const Outcome *twin = twin_of(result, outcome)) {
    extra["twin"] = twin->name;
    extra["twin_time_us"] = twin->time_us;
    extra["twin_ratio"] = twin->time_us / outcome.time_us;
  }
  if (outcome.arithmetic != Arithmetic::fp64) extra["relative_error"] = outcome.error;
  if (outcome.refill_us > 0.0) {
    extra["refill_time_us"] = outcome.refill_us;
    if (baseline) extra["refill_spmvs"] = outcome.refill_us / baseline->time_us;
  }
  return extra;
}

} // namespace

void report_case(const CaseResult &result, const Device &device, double roof, const Provenance &provenance) {
  const Outcome *baseline = result.best_baseline();
  const double   spmv = baseline ? baseline->time_us : 0.0;
  std::printf("\n%s: %lld by %lld, %lld nonzeros%s; median of %d rounds\n", result.name.c_str(),
              static_cast<long long>(result.rows), static_cast<long long>(result.columns),
              static_cast<long long>(result.nonzeros), result.small ? ", small" : "", result.repeats);
  if (result.count > 1) std::printf("%d columns at once\n", result.count);
  std::printf("%-32s %10s %7s %7s %8s %6s %8s %8s\n", "kernel", result.count > 1 ? "SpMM us" : "SpMV us", "ratio", "B/nz",
              "GB/s", "share", "build/SpMV", "refill/SpMV");
  for (const Outcome &outcome : result.outcomes) {
    const Line line = line_of(result, outcome, device, roof);
    std::printf("%-32s %10.2f %7.3f %7.2f %8.1f %6.3f", outcome.name.c_str(), line.time_us, baseline ? line.ratio() : 0.0,
                bytes_per_nonzero(result, outcome), line.gbps(), line.roof_fraction());
    if (baseline) std::printf(" %10.1f", outcome.build_us / spmv);
    if (baseline && outcome.refill_us > 0.0) std::printf(" %11.1f", outcome.refill_us / spmv);
    if (const Outcome *twin = twin_of(result, outcome)) std::printf("  %.3f x its twin", twin->time_us / outcome.time_us);
    if (outcome.arithmetic != Arithmetic::fp64) std::printf("  error %.1e", outcome.error);
    std::printf("%s\n", &outcome == baseline ? "  <- baseline" : "");
    append(provenance, line, extra_of(result, outcome));
  }
  for (const std::string &text : result.left_out) std::printf("left out: %s\n", text.c_str());
  for (const std::string &text : result.failures) std::printf("FAILED: %s\n", text.c_str());
  std::fflush(stdout);
}

bool report_summary(const std::vector<CaseResult> &results) {
  double logarithms = 0.0;
  int    cases = 0, failures = 0;
  std::printf("\n%-26s %-26s %10s %-22s %10s %7s\n", "case", "best kernel", "us", "best baseline", "us", "ratio");
  for (const CaseResult &result : results) {
    const Outcome *kernel = result.best_kernel(), *baseline = result.best_baseline();
    failures += static_cast<int>(result.failures.size());
    if (!kernel || !baseline) continue;
    const double ratio = baseline->time_us / kernel->time_us;
    logarithms += std::log(ratio);
    ++cases;
    std::printf("%-26s %-26s %10.2f %-22s %10.2f %7.3f\n", result.name.c_str(), kernel->name.c_str(), kernel->time_us,
                baseline->name.c_str(), baseline->time_us, ratio);
  }
  if (cases) std::printf("geometric mean of %d ratios: %.3f\n", cases, std::exp(logarithms / cases));
  for (const CaseResult &result : results)
    for (const std::string &text : result.failures) std::printf("FAILED: %s\n", text.c_str());
  std::fflush(stdout);
  return failures == 0;
}

} // namespace tcbound::bench
