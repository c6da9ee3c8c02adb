#include "bounds.h"

#include <algorithm>
#include <cmath>

namespace tcbound::model {

namespace {

double require_positive(double value, const char name[]) {
  if (!std::isfinite(value) || value <= 0)
    throw std::invalid_argument(std::string(name) + " must be finite and positive, not " + std::to_string(value));
  return value;
}

double require_non_negative(double value, const char name[]) {
  if (!std::isfinite(value) || value < 0)
    throw std::invalid_argument(std::string(name) + " must be finite and not negative, not " + std::to_string(value));
  return value;
}

double require_count(double value, const char name[]) {
  if (!std::isfinite(value) || value < 1 || value != std::floor(value))
    throw std::invalid_argument(std::string(name) + " must be a whole number from 1 on, not " + std::to_string(value));
  return value;
}

// alpha may be infinite: the limit of a unit that computes in no time.
double require_alpha(double value) {
  if (std::isnan(value) || value <= 0) throw std::invalid_argument("alpha must be positive, not " + std::to_string(value));
  return value;
}

double require_rho(double value) {
  if (!std::isfinite(value) || value < 1)
    throw std::invalid_argument("rho must be finite and at least 1, not " + std::to_string(value));
  return value;
}

void require_tile(const OverlappedTile &tile) {
  if (tile.dimensions < 1 || tile.dimensions > 3)
    throw std::invalid_argument("dimensions must be 1, 2 or 3, not " + std::to_string(tile.dimensions));
  require_count(tile.edge, "edge");
  require_count(tile.radius, "radius");
  require_count(tile.steps, "steps");
}

double share_of_waves(double units, double slots) { return units / (std::ceil(units / slots) * slots); }

} // namespace

double balance(double peak, double bandwidth) {
  return require_positive(peak, "peak") / require_positive(bandwidth, "bandwidth");
}

double attainable(double peak, double bandwidth, double intensity) {
  return std::min(require_positive(peak, "peak"),
                  require_positive(bandwidth, "bandwidth") * require_non_negative(intensity, "intensity"));
}

double overlapped_time(double flops, double bytes, double peak, double bandwidth) {
  return std::max(require_non_negative(flops, "flops") / require_positive(peak, "peak"),
                  require_non_negative(bytes, "bytes") / require_positive(bandwidth, "bandwidth"));
}

double un_overlapped_time(double flops, double bytes, double peak, double bandwidth) {
  return require_non_negative(flops, "flops") / require_positive(peak, "peak") +
         require_non_negative(bytes, "bytes") / require_positive(bandwidth, "bandwidth");
}

double speedup(double r, double alpha) { return (1 + require_non_negative(r, "r")) / (1 + r / require_alpha(alpha)); }

double speedup_limit(double alpha) { return 2 - 2 / (1 + require_alpha(alpha)); }

double allowed_speedup(double r, double alpha) { return std::max(1.0, speedup(r, alpha)); }

double effective_alpha(double alpha, double rho) { return require_alpha(alpha) / require_rho(rho); }

double scale_redundancy(const MmaShape &shape) {
  return double(shape.m) * shape.n * shape.k / (require_count(shape.m, "m") * require_count(shape.k, "k"));
}

double padding_efficiency(const Extent &problem, const Extent &tile) {
  const auto padded = [](double size, double step, const char name[], const char step_name[]) {
    return std::ceil(require_count(size, name) / require_count(step, step_name)) * step;
  };
  return (problem.m / padded(problem.m, tile.m, "M", "tile m")) * (problem.n / padded(problem.n, tile.n, "N", "tile n")) *
         (problem.k / padded(problem.k, tile.k, "K", "tile k"));
}

double wave_efficiency(double tiles, double sms, double blocks_per_sm) {
  return split_k_wave_efficiency(tiles, 1, sms, blocks_per_sm);
}

double split_k_wave_efficiency(double tiles, double splits, double sms, double blocks_per_sm) {
  return share_of_waves(require_count(tiles, "tiles") * require_count(splits, "splits"),
                        require_count(sms, "sms") * require_count(blocks_per_sm, "blocks_per_sm"));
}

double persistent_wave_efficiency(double tiles, double iterations, double sms, double blocks_per_sm) {
  return share_of_waves(require_count(tiles, "tiles") * require_count(iterations, "iterations"),
                        require_count(sms, "sms") * require_count(blocks_per_sm, "blocks_per_sm"));
}

Level level_that_holds(const Machine &machine, double working_set_bytes) {
  require_positive(working_set_bytes, "working_set_bytes");
  for (const Level level : {Level::l1, Level::l2, Level::dram})
    if (working_set_bytes <= machine.capacity(level)) return level;
  throw std::invalid_argument("working_set_bytes is more than the memory of " + machine.name);
}

double fused_intensity(double intensity_of_one_step, double steps) {
  return require_positive(intensity_of_one_step, "intensity_of_one_step") * require_count(steps, "steps");
}

double steps_across_ridge(double intensity_of_one_step, double ridge) {
  return std::floor(require_positive(ridge, "ridge") / require_positive(intensity_of_one_step, "intensity_of_one_step")) + 1;
}

double halo_read_redundancy(const OverlappedTile &tile) {
  require_tile(tile);
  return std::pow((tile.edge + 2 * tile.radius * tile.steps) / tile.edge, tile.dimensions);
}

double halo_compute_redundancy(const OverlappedTile &tile) {
  require_tile(tile);
  double computed = 0;
  for (double left = 0; left < tile.steps; ++left)
    computed += std::pow((tile.edge + 2 * tile.radius * left) / tile.edge, tile.dimensions);
  return computed / tile.steps;
}

double fused_tile_intensity(const OverlappedTile &tile, double flops_per_cell, double element_bytes) {
  return tile.steps * require_positive(flops_per_cell, "flops_per_cell") /
         (require_positive(element_bytes, "element_bytes") * (1 + halo_read_redundancy(tile)));
}

bool tensor_cores_pay(double alpha, double eta, double rho) {
  if (!std::isfinite(eta) || eta <= 0 || eta > 1)
    throw std::invalid_argument("eta must be above 0 and at most 1, not " + std::to_string(eta));
  return effective_alpha(alpha, rho) * eta > 1;
}

const char *words(State state) {
  switch (state) {
  case State::compliant:
    return "memory-bound, compliant";
  case State::over_bound:
    return "memory-bound, over the bound: a memory effect";
  case State::compute_bound:
    return "compute-bound, out of scope";
  case State::latency_bound:
    return "latency-bound, too small to judge";
  }
  throw std::invalid_argument("state is none of the four");
}

State classify(const Observation &o) {
  const double allowed = allowed_speedup(o.r, o.alpha); // checks r and alpha
  require_non_negative(o.tolerance, "tolerance");
  if (!std::isnan(o.time_seconds) && !std::isnan(o.launch_seconds)) {
    require_non_negative(o.time_seconds, "time_seconds");
    require_non_negative(o.launch_seconds, "launch_seconds");
    if (o.time_seconds < require_non_negative(o.judgeable_launches, "judgeable_launches") * o.launch_seconds)
      return State::latency_bound;
  }
  if (o.r > 1) return State::compute_bound;
  if (std::isnan(o.measured_speedup)) return State::compliant;
  return require_positive(o.measured_speedup, "measured_speedup") > allowed * (1 + o.tolerance) ? State::over_bound
                                                                                                : State::compliant;
}

} // namespace tcbound::model
