#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../../src/model/machine.h"
#include "measurement.h"

// What a calibration found, as a table, as a machine file (docs/machines.md) and as JSON with every repeat.

namespace tcbound::calibrate {

// One entry of a machine file: a device, or a host with a number of threads.
struct Subject {
  std::string                   heading;
  std::string                   name, device; // as machine files spell them
  std::string                   driver;
  std::optional<model::Machine> vendor; // the built-in machine that it is
  double                        sm_count = 0;
  Measurements                  measurements;

  // What is known without measuring: field and value.
  std::vector<std::pair<std::vector<std::string>, double>> facts;
};

// The best MMA shape is the peak of the tensor cores; in low precision only where warps reach it: from compute capability 9.0 on
// that takes instructions of four warps (wgmma) or more, and the measured figure is that of mma.sync alone.
void add_tensor_core_peaks(Subject &subject, int compute_major);

std::string now_utc();             // ISO 8601
double      rounded(double value); // to five digits: repeats agree in fewer

std::string table_text(const Subject &subject);
std::string machine_file_text(const std::vector<Subject> &subjects, const std::string &date);
std::string measurements_text(const std::vector<Subject> &subjects, const std::string &date);

} // namespace tcbound::calibrate
