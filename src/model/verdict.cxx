#include "verdict.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "roofline.h"

namespace tcbound::model {

namespace {

double value_or_nan(const Figure &figure) { return figure.known() ? figure.value() : no_measurement; }

std::string number(const char *pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), pattern, value);
  return text;
}

std::string times(double value) { return number("%.2fx", value); }

// The level whose bandwidth is the roof. Nothing stays in L1 from one launch to the next.
void set_roof(const Machine &machine, const KernelRun &run, Verdict &v) {
  const double working_set = quotient_or_nan(run.bytes, run.calls), l2 = value_or_nan(machine.at(Level::l2).capacity);
  v.level = working_set <= l2 ? Level::l2 : Level::dram;
  const double bandwidth = value_or_nan(machine.at(v.level).bandwidth);
  const double peak = value_or_nan(machine.at(run.host ? Unit::host : Unit::cuda_core, run.of_cuda_cores()));
  v.intensity = arithmetic_intensity(run.useful_flops, run.bytes);
  v.ridge = peak / bandwidth;
  v.r = v.intensity / v.ridge;
  v.launch = value_or_nan(machine.launch);
  v.rho = run.useful_flops > 0 ? std::max(1.0, run.issued_flops / run.useful_flops) : 1;
  v.eta_pad = run.padded_flops > run.useful_flops ? run.useful_flops / run.padded_flops : 1;
  double own_peak = peak;
  if (run.on_tensor_cores()) {
    const auto found = machine.mma_peaks.find({run.mma, run.arithmetic});
    own_peak = found == machine.mma_peaks.end() ? no_measurement : value_or_nan(found->second);
  }
  // Below the ridge an unknown peak does not matter to the roof; that it is below is then taken on trust.
  v.attainable = std::fmin(bandwidth * v.intensity, own_peak / v.rho);
  if (std::isnan(bandwidth)) v.attainable = no_measurement;
  v.achieved = quotient_or_nan(run.useful_flops, run.total_seconds);
  // By time, so that kernels that only move data have a roof too.
  const double roof_seconds = std::fmax(run.bytes / bandwidth, run.useful_flops * v.rho / own_peak);
  v.roof_seconds = std::isnan(bandwidth) ? no_measurement : quotient_or_nan(roof_seconds, run.calls);
  v.roof_share = v.roof_seconds * quotient_or_nan(run.calls, run.total_seconds);
}

// alpha of the kernel's own MMA shape, or of the device's best for what tensor cores could do.
void set_bound(const Machine &machine, const KernelRun &run, Verdict &v) {
  if (run.host) return;
  double best = 0;
  for (const auto &[key, figure] : machine.mma_peaks) {
    const bool candidate = run.on_tensor_cores() ? key.first == run.mma : figure.value() > best * 1.001;
    if (key.second != run.arithmetic || !figure.known() || !candidate) continue;
    best = figure.value();
    v.shape = key.first;
  }
  if (best <= 0 && !run.on_tensor_cores()) best = value_or_nan(machine.at(Unit::tensor_core, run.arithmetic));
  v.alpha = best > 0 ? best / value_or_nan(machine.at(Unit::cuda_core, run.of_cuda_cores())) : no_measurement;
  if (std::isnan(v.alpha)) return;
  const double effective = effective_alpha(v.alpha, run.on_tensor_cores() ? v.rho : 1);
  v.limit = speedup_limit(effective);
  if (v.r >= 0) v.speedup = speedup(v.r, effective);
}

bool is_twin(const KernelRun &a, const KernelRun &b) {
  const bool units =
    (a.backend == "cuda_core" && b.backend == "tensor_core") || (a.backend == "tensor_core" && b.backend == "cuda_core");
  return units && a.op == b.op && a.format == b.format && a.arithmetic == b.arithmetic;
}

const KernelRun *partner_of(const KernelRun &run, const std::vector<KernelRun> &others) {
  const KernelRun *partner = nullptr;
  for (const KernelRun &o : others) {
    if (o.name() == run.name() || o.host != run.host || o.op != run.op || o.arithmetic != run.arithmetic ||
        o.median_seconds <= 0)
      continue;
    if (is_twin(run, o)) return &o;
    if (run.on_tensor_cores() && o.on_tensor_cores()) continue;
    if (!partner || o.median_seconds < partner->median_seconds) partner = &o;
  }
  return partner;
}

void compare(const KernelRun &run, const KernelRun &partner, Verdict &v) {
  v.partner = partner.name();
  v.is_twin = is_twin(run, partner);
  v.ratio = quotient_or_nan(partner.median_seconds, run.median_seconds);
  v.ratio_bytes = quotient_or_nan(partner.bytes, partner.calls) / quotient_or_nan(run.bytes, run.calls);
  const double rest = v.ratio / v.ratio_bytes;
  const double allowed = v.speedup >= 1 ? v.speedup : 1;
  v.ratio_arithmetic = 1;
  if (run.on_tensor_cores() && !partner.on_tensor_cores()) v.ratio_arithmetic = std::clamp(rest, 1.0, allowed);
  if (!run.on_tensor_cores() && partner.on_tensor_cores()) v.ratio_arithmetic = std::clamp(rest, 1 / allowed, 1.0);
  v.ratio_bandwidth = rest / v.ratio_arithmetic;
}

void set_state(const KernelRun &run, Verdict &v) {
  const bool too_small = v.roof_seconds < 4 * v.launch;
  // A kernel on tensor cores is not judged by a bound that is not known.
  v.judged = too_small || !(std::isnan(v.r) || (run.on_tensor_cores() && std::isnan(v.alpha)));
  if (!v.judged) return;
  Observation o{std::isnan(v.r) ? 0 : v.r, 1};
  if (!std::isnan(v.alpha)) o.alpha = effective_alpha(v.alpha, run.on_tensor_cores() ? v.rho : 1);
  if (run.on_tensor_cores()) o.measured_speedup = v.ratio;
  o.time_seconds = v.roof_seconds;
  o.launch_seconds = v.launch;
  v.state = classify(o);
  v.regime = v.state == State::latency_bound ? "latency" : v.state == State::compute_bound ? "compute" : "memory";
}

std::string level_words(const KernelRun &run, Level level) {
  return level == Level::dram ? (run.host ? "memory" : "DRAM") : (run.host ? "cache" : "L2");
}

// "74 % of the DRAM roof".
std::string roof_words(const KernelRun &run, const Verdict &v) {
  if (run.total_seconds <= 0) return "no time passed";
  if (std::isnan(v.roof_share))
    return "the bandwidth of the " + level_words(run, v.level) + " that holds its data is unknown (tcbound-calibrate)";
  return number("%.0f", v.roof_share * 100) + " % of the " + level_words(run, v.level) + " roof" +
         (v.roof_share > 1.1 ? ", for caches served part of the bytes" : "");
}

std::string factors(const Verdict &v) {
  std::string text = number("%.2f", v.ratio_bytes) + " bytes x " + number("%.2f", v.ratio_bandwidth) + " bandwidth";
  if (std::abs(v.ratio_arithmetic - 1) >= 0.005) text += " x " + number("%.2f", v.ratio_arithmetic) + " arithmetic";
  return text;
}

// What the comparison shows.
std::string partner_words(const Verdict &v) {
  if (std::isnan(v.ratio)) return {};
  if (v.is_twin) return times(v.ratio) + " as fast as its twin " + v.partner;
  return times(v.ratio) + " as fast as " + v.partner + " = " + factors(v);
}

std::string tensor_words(const KernelRun &run, const Verdict &v) {
  if (run.host) return "no tensor cores here";
  if (std::isnan(v.alpha)) return "alpha unknown";
  const std::string shape = v.shape.empty() ? "" : " (" + v.shape + ")";
  if (run.on_tensor_cores()) return "the bound allows " + times(std::max(1.0, v.speedup)) + shape;
  if (v.speedup < 1.005) return "tensor cores" + shape + " could gain nothing";
  return "tensor cores" + shape + " could gain " + times(v.speedup) + " at most";
}

std::string join(const std::vector<std::string> &parts) {
  std::string text;
  for (const std::string &part : parts)
    if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
  return text;
}

std::string state_words(const KernelRun &run, const Verdict &v) {
  if (std::isnan(v.intensity)) return "nothing moved, nothing to judge";
  if (!v.judged) {
    const char       *type = run.of_cuda_cores() == DataType::fp64 ? "FP64" : "FP32";
    const std::string unknown = std::isnan(v.r) ? std::string("no ridge, for the ") + type + " peak"
                                                : "no verdict, for the peak of " + run.mma + " in " + name_of(run.arithmetic);
    return join({unknown + " is unknown (tcbound-calibrate)", roof_words(run, v), partner_words(v)});
  }
  switch (v.state) {
  case State::latency_bound:
    return join({"latency-bound, too small to judge: " + number("%.3g", v.roof_seconds * 1e6) + " us at the roof, an empty " +
                   (run.host ? "interval" : "kernel") + " takes " + number("%.3g", v.launch * 1e6) + " us",
                 partner_words(v)});
  case State::compute_bound: {
    const bool pays = !std::isnan(v.alpha) && tensor_cores_pay(v.alpha, v.eta_pad, run.on_tensor_cores() ? v.rho : 1);
    return join({"compute-bound, out of the bound's scope: " + number("%.2f", v.r) + " times the ridge", roof_words(run, v),
                 run.host || std::isnan(v.alpha) ? tensor_words(run, v)
                                                 : std::string("tensor cores ") + (pays ? "can win" : "cannot win") +
                                                     (v.shape.empty() ? "" : " (" + v.shape + ")"),
                 partner_words(v)});
  }
  case State::over_bound:
    return join({"memory-bound, over the bound: " + times(v.ratio) + " where it allows " + times(std::max(1.0, v.speedup)) +
                   ", a memory effect: " + factors(v) + ", open to CUDA cores too",
                 "compared with " + v.partner, roof_words(run, v)});
  case State::compliant:
    break;
  }
  return join({std::string("memory-bound") + (run.host ? "" : ", compliant") + ": " + roof_words(run, v), partner_words(v),
               tensor_words(run, v)});
}

} // namespace

Verdict judge(const Machine &machine, const KernelRun &run, const std::vector<KernelRun> &others) {
  Verdict v;
  set_roof(machine, run, v);
  set_bound(machine, run, v);
  if (const KernelRun *partner = partner_of(run, others)) compare(run, *partner, v);
  set_state(run, v);
  v.words = state_words(run, v);
  return v;
}

} // namespace tcbound::model
