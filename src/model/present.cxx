#include "present.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace tcbound::model {

std::string calibration_id(const std::string &uuid) {
  std::string id = "GPU-";
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    char hex[3];
    std::snprintf(hex, sizeof(hex), "%02x", static_cast<unsigned char>(uuid[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) id += '-';
    id += hex;
  }
  return id;
}

std::string host_calibration_id(const std::string &hostname) { return "host-" + hostname; }

std::string calibration_file(const std::string &id) {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  const auto  set = [](const char *value) { return value && value[0]; };
  if (!set(cache) && !set(home)) return {};
  return (set(cache) ? std::string(cache) : std::string(home) + "/.cache") + "/tcbound/machines/" + id + ".json";
}

std::string built_in_name_of(const std::string &device) {
  static const std::map<std::string, std::string> names{{"Tesla V100-SXM2-32GB", "V100"},
                                                        {"NVIDIA A100-SXM4-80GB", "A100-80GB"},
                                                        {"NVIDIA A100 80GB PCIe", "A100-80GB-PCIe"},
                                                        {"NVIDIA H100 80GB HBM3", "H100-SXM"},
                                                        {"NVIDIA GH200 480GB", "GH200"},
                                                        {"NVIDIA H200", "H200"},
                                                        {"NVIDIA B200", "B200"}};
  const auto                                      found = names.find(device);
  return found == names.end() ? std::string() : found->second;
}

const Machine *entry_for(const std::vector<Machine> &machines, const DeviceName &device) {
  const auto find = [&](const auto &is) {
    const auto found = std::find_if(machines.begin(), machines.end(), is);
    return found == machines.end() ? nullptr : &*found;
  };
  if (device.processes > 0) return find([&](const Machine &m) { return m.name == "host/" + std::to_string(device.processes); });
  const std::string built_in = built_in_name_of(device.name);
  if (const Machine *m = find([&](const Machine &o) { return o.device == device.name; })) return m;
  return find([&](const Machine &m) { return m.device.empty() && (m.name == device.name || m.name == built_in); });
}

static void overlay(Figure &figure, const Figure &top) {
  if (!top.known()) return;
  if (top.is_measured()) {
    figure.measured = top.measured;
    figure.measured_by = top.measured_by;
  } else {
    figure = top;
  }
}

void overlay(Machine &machine, const Machine &top) {
  overlay(machine.sm_count, top.sm_count);
  overlay(machine.launch, top.launch);
  for (std::size_t level = 0; level < level_count; ++level) {
    overlay(machine.levels[level].bandwidth, top.levels[level].bandwidth);
    overlay(machine.levels[level].capacity, top.levels[level].capacity);
  }
  for (std::size_t unit = 0; unit < unit_count; ++unit)
    for (std::size_t type = 0; type < data_type_count; ++type) overlay(machine.peaks[unit][type], top.peaks[unit][type]);
  for (const auto &peak : top.mma_peaks) overlay(machine.mma_peaks[peak.first], peak.second);
}

Given given_machine(const DeviceName &device, const std::string &user_file) {
  Given             given;
  const std::string file = device.id.empty() ? std::string() : calibration_file(device.id);
  if (!file.empty() && std::ifstream(file)) {
    const auto machines = load_machines(file, {});
    if (const Machine *entry = entry_for(machines, device)) {
      overlay(given.machine, *entry);
      given.origin = "calibrated" + (entry->date.empty() ? std::string() : " " + entry->date);
      if (!entry->driver.empty() && !device.driver.empty() && entry->driver != device.driver)
        given.origin += " with driver " + entry->driver + ", now " + device.driver;
    }
  }
  if (!user_file.empty()) {
    const auto machines = load_machines(user_file, {});
    if (const Machine *entry = entry_for(machines, device)) {
      overlay(given.machine, *entry);
      given.origin = user_file + (given.origin.empty() ? "" : ", ") + given.origin;
    }
  }
  return given;
}

Machine present_machine(const DeviceName &device, const Machine &measured, const Machine &given) {
  Machine           machine;
  const auto        built_in = built_in_machines();
  const std::string name = device.processes > 0 ? "" : built_in_name_of(device.name);
  if (!name.empty()) machine = find_machine(built_in, name);
  if (name.empty()) machine.name = device.processes > 0 ? "host/" + std::to_string(device.processes) : device.name;
  machine.device = device.name;
  overlay(machine, measured);
  overlay(machine, given);
  return machine;
}

} // namespace tcbound::model
