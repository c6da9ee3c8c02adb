#pragma once

// Result lines: one JSON object a line, the same fields from every benchmark.

#include <nlohmann/json.hpp>

#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace tcbound::bench {

// Where results go and what they were made by.
struct Provenance {
  std::string              output; // file, or empty
  std::string              git_sha;
  bool                     git_dirty = false;
  std::vector<std::string> argv;
};

struct Line {
  std::string  name, op, kernel, device; // name: the case
  double       time_us = 0.0;            // median
  int          repeats = 0;
  std::int64_t bytes = 0, useful_flops = 0;
  double       roof = 0.0; // measured bandwidth ceiling, bytes/s
  std::string  baseline;   // empty: none was measured in this run
  double       baseline_time_us = 0.0;

  double gbps() const { return 1e-3 * static_cast<double>(bytes) / time_us; }
  double roof_fraction() const { return 1e9 * gbps() / roof; }
  double ratio() const { return baseline_time_us / time_us; }
};

// extra: fields of one benchmark alone.
inline void append(const Provenance &provenance, const Line &line, const nlohmann::json &extra = nlohmann::json::object()) {
  if (provenance.output.empty()) return;
  nlohmann::json object = {{"case", line.name},
                           {"op", line.op},
                           {"kernel", line.kernel},
                           {"time_us", line.time_us},
                           {"repeats", line.repeats},
                           {"bytes", line.bytes},
                           {"useful_flops", line.useful_flops},
                           {"gbps", line.gbps()},
                           {"roof_fraction", line.roof_fraction()},
                           {"baseline", nullptr},
                           {"baseline_time_us", nullptr},
                           {"ratio", nullptr},
                           {"device", line.device},
                           {"argv", provenance.argv},
                           {"git_sha", provenance.git_sha},
                           {"git_dirty", provenance.git_dirty}};
  if (!line.baseline.empty()) {
    object["baseline"] = line.baseline;
    object["baseline_time_us"] = line.baseline_time_us;
    object["ratio"] = line.ratio();
  }
  object.update(extra);
  std::ofstream file(provenance.output, std::ios::app);
  if (!(file << object.dump() << '\n')) throw std::runtime_error("cannot write " + provenance.output);
}

} // namespace tcbound::bench
