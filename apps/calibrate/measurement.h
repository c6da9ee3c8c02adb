#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

// What a step of the calibration measures: one ceiling, several times over.

namespace tcbound::calibrate {

enum class Quantity { bandwidth, arithmetic, clock, time, capacity }; // bytes/s, FLOP/s, Hz, s, bytes

struct Measurement {
  std::string         key;  // in JSON
  std::string         what; // in the table
  std::string         how;  // what one pass does
  Quantity            quantity = Quantity::bandwidth;
  double              work = 0; // bytes or FLOPs of one pass; 0 for the others
  std::vector<double> values;   // of each repeat, in the quantity's unit; empty: not measured
  std::string         why_not;  // was it not measured
  // Fields of a machine file (docs/machines.md), empty for none: where the figure is kept, and the vendor's figure that it
  // stands beside.
  std::vector<std::string> field, against;

  Measurement(std::string key_, std::string what_, std::string how_, Quantity quantity_, double work_ = 0)
    : key(std::move(key_)), what(std::move(what_)), how(std::move(how_)), quantity(quantity_), work(work_) {}

  bool   measured() const { return !values.empty(); }
  double median() const { return quantile(0.5); }
  // Half the distance between the quartiles over the median: how far a repeat typically is from it.
  double spread() const { return 0.5 * (quantile(0.75) - quantile(0.25)) / median(); }

  void keep_in(const std::vector<std::string> &place) { field = against = place; }

  void set_seconds(const std::vector<double> &seconds) {
    values.clear();
    for (const double s : seconds) values.push_back(quantity == Quantity::time ? s : work / s);
  }

private:
  double quantile(double q) const { // between the two repeats that it falls between
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const double      at = q * static_cast<double>(sorted.size() - 1);
    const std::size_t below = static_cast<std::size_t>(at), above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
  }
};

inline std::vector<std::string> bandwidth_of(const std::string &level) { return {"levels", level, "bandwidth_bytes_per_s"}; }

using Measurements = std::vector<Measurement>;
using Progress = std::function<void(const std::string &what)>; // called before each step

} // namespace tcbound::calibrate
