#include "machine.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "names.h"

namespace tcbound::model {

const std::vector<std::string> &data_type_names() {
  static const std::vector<std::string> names{"fp64", "fp32", "tf32", "fp16", "bf16"};
  return names;
}
const std::vector<std::string> &unit_names() {
  static const std::vector<std::string> names{"cuda_core", "tensor_core", "host"};
  return names;
}
const std::vector<std::string> &level_names() {
  static const std::vector<std::string> names{"dram", "l2", "l1"};
  return names;
}

const std::string &name_of(DataType type) { return data_type_names()[static_cast<std::size_t>(type)]; }
const std::string &name_of(Unit unit) { return unit_names()[static_cast<std::size_t>(unit)]; }
const std::string &name_of(Level level) { return level_names()[static_cast<std::size_t>(level)]; }

std::size_t index_of_name(const std::string &what, const std::string &name, const std::vector<std::string> &valid) {
  const auto found = std::find(valid.begin(), valid.end(), name);
  if (found == valid.end())
    throw std::invalid_argument("there is no " + what + " '" + name + "'; did you mean " + nearest_name(name, valid) +
                                "? Valid: " + join_names(valid, ", "));
  return static_cast<std::size_t>(found - valid.begin());
}

DataType data_type_of(const std::string &name) {
  return static_cast<DataType>(index_of_name("data type", name, data_type_names()));
}

int element_bytes(DataType type) {
  switch (type) {
  case DataType::fp64:
    return 8;
  case DataType::fp32:
  case DataType::tf32:
    return 4;
  default:
    return 2;
  }
}

// FP64: PTX ISA, mma.sync (m8n8k4 from sm_80 on, the m16n8 shapes from sm_90 on). m16n16k16 and m16n16k8 are shapes of
// CUDA's wmma for FP16/BF16 and TF32.
const std::vector<MmaShape> &mma_shapes() {
  static const std::vector<MmaShape> shapes{{"m8n8k4", 8, 8, 4},     {"m16n8k4", 16, 8, 4},   {"m16n8k8", 16, 8, 8},
                                            {"m16n8k16", 16, 8, 16}, {"m16n16k8", 16, 16, 8}, {"m16n16k16", 16, 16, 16}};
  return shapes;
}

static std::vector<std::string> mma_shape_names() {
  std::vector<std::string> names;
  for (const MmaShape &shape : mma_shapes()) names.push_back(shape.name);
  return names;
}

const MmaShape &mma_shape_of(const std::string &name) {
  return mma_shapes()[index_of_name("MMA shape", name, mma_shape_names())];
}

static double known_value(const std::string &machine, const std::string &what, const Figure &figure) {
  if (!figure.known())
    throw UnknownFigure(machine + ": " + what + " is unknown: no source or measurement gives it; a machine file can");
  return figure.value();
}

double Machine::sm_count_value() const { return known_value(name, "the number of SMs", sm_count); }
double Machine::launch_seconds() const { return known_value(name, "the time of an empty kernel", launch); }
double Machine::bandwidth(Level level) const {
  return known_value(name, "the bandwidth of " + name_of(level), at(level).bandwidth);
}
double Machine::capacity(Level level) const {
  return known_value(name, "the capacity of " + name_of(level), at(level).capacity);
}
double Machine::peak(Unit unit, DataType type) const {
  return known_value(name, "the " + name_of(type) + " peak of unit " + name_of(unit), at(unit, type));
}

double Machine::mma_peak(const std::string &shape, DataType type) const {
  const auto found = mma_peaks.find({mma_shape_of(shape).name, type});
  return known_value(name, "the " + name_of(type) + " peak of MMA shape " + shape,
                     found == mma_peaks.end() ? Figure{} : found->second);
}

const Machine &find_machine(const std::vector<Machine> &machines, const std::string &name) {
  if (machines.empty()) throw std::invalid_argument("machines: there is none");
  std::vector<std::string> names;
  for (const Machine &machine : machines) names.push_back(machine.name);
  return machines[index_of_name("machine", name, names)];
}

namespace {

using Json = nlohmann::json;

// Reads one entry of a machine file; `path` of each function is the field, for messages.
class EntryReader {
public:
  EntryReader(std::string file, std::string path) : file_(std::move(file)), entry_path_(std::move(path)) {}

  void read(const Json &entry, Machine &machine) {
    expect_object(entry, entry_path_);
    check_keys(entry, entry_path_,
               {"name", "device", "source", "measured", "sm_count", "launch_seconds", "levels", "peaks_flops_per_s",
                "mma_peaks_flops_per_s"});
    read_origin(entry, machine);
    if (entry.contains("device")) machine.device = text(entry, entry_path_, "device");
    if (entry.contains("sm_count")) set(entry["sm_count"], entry_path_ + ".sm_count", machine.sm_count);
    if (entry.contains("launch_seconds")) set(entry["launch_seconds"], entry_path_ + ".launch_seconds", machine.launch);
    if (entry.contains("levels")) read_levels(entry["levels"], entry_path_ + ".levels", machine);
    if (entry.contains("peaks_flops_per_s"))
      read_peaks(entry["peaks_flops_per_s"], entry_path_ + ".peaks_flops_per_s", machine);
    if (entry.contains("mma_peaks_flops_per_s"))
      read_mma_peaks(entry["mma_peaks_flops_per_s"], entry_path_ + ".mma_peaks_flops_per_s", machine);
  }

  std::string text(const Json &object, const std::string &path, const char key[]) const {
    if (!object.contains(key)) fail(path + "." + key, "is missing");
    if (!object[key].is_string() || object[key].get<std::string>().empty())
      fail(path + "." + key, "must be a non-empty string");
    return object[key].get<std::string>();
  }

  [[noreturn]] void fail(const std::string &path, const std::string &why) const {
    throw std::runtime_error(file_ + ": " + path + " " + why);
  }

  void expect_object(const Json &value, const std::string &path) const {
    if (!value.is_object()) fail(path, "must be an object");
  }

  void check_keys(const Json &object, const std::string &path, const std::vector<std::string> &valid) const {
    for (const auto &item : object.items())
      if (std::find(valid.begin(), valid.end(), item.key()) == valid.end())
        fail(path + "." + item.key(),
             "is no field; did you mean " + nearest_name(item.key(), valid) + "? Valid: " + join_names(valid, ", "));
  }

private:
  void read_origin(const Json &entry, Machine &machine) {
    origin_ = entry.contains("source") ? text(entry, entry_path_, "source") : file_;
    measured_ = entry.contains("measured");
    if (!measured_) return;
    const std::string path = entry_path_ + ".measured";
    expect_object(entry["measured"], path);
    check_keys(entry["measured"], path, {"date", "driver"});
    machine.date = text(entry["measured"], path, "date");
    machine.driver = text(entry["measured"], path, "driver");
    origin_ += ", measured " + machine.date + ", driver " + machine.driver;
  }

  // A measurement leaves the vendor's value beside it; a value that is none replaces both.
  void set(const Json &value, const std::string &path, Figure &figure) const {
    if (!value.is_number()) fail(path, "must be a number");
    const double number = value.get<double>();
    if (!std::isfinite(number) || number <= 0) fail(path, "must be finite and positive");
    if (measured_) {
      figure.measured = number;
      figure.measured_by = origin_;
    } else {
      figure = Figure{number, 0, origin_, ""};
    }
  }

  void read_levels(const Json &levels, const std::string &path, Machine &machine) const {
    expect_object(levels, path);
    check_keys(levels, path, level_names());
    for (const auto &item : levels.items()) {
      const std::string level_path = path + "." + item.key();
      MemoryLevel      &level = machine.levels[index_of_name("level", item.key(), level_names())];
      expect_object(item.value(), level_path);
      check_keys(item.value(), level_path, {"bandwidth_bytes_per_s", "capacity_bytes"});
      for (const auto &field : item.value().items())
        set(field.value(), level_path + "." + field.key(), field.key() == "capacity_bytes" ? level.capacity : level.bandwidth);
    }
  }

  void read_peaks(const Json &peaks, const std::string &path, Machine &machine) const {
    expect_object(peaks, path);
    check_keys(peaks, path, unit_names());
    for (const auto &item : peaks.items()) {
      const auto unit = static_cast<Unit>(index_of_name("unit", item.key(), unit_names()));
      expect_object(item.value(), path + "." + item.key());
      check_keys(item.value(), path + "." + item.key(), data_type_names());
      for (const auto &field : item.value().items())
        set(field.value(), path + "." + item.key() + "." + field.key(), machine.at(unit, data_type_of(field.key())));
    }
  }

  void read_mma_peaks(const Json &peaks, const std::string &path, Machine &machine) const {
    expect_object(peaks, path);
    check_keys(peaks, path, mma_shape_names());
    for (const auto &item : peaks.items()) {
      expect_object(item.value(), path + "." + item.key());
      check_keys(item.value(), path + "." + item.key(), data_type_names());
      for (const auto &field : item.value().items())
        set(field.value(), path + "." + item.key() + "." + field.key(),
            machine.mma_peaks[{item.key(), data_type_of(field.key())}]);
    }
  }

  std::string file_, entry_path_, origin_;
  bool        measured_ = false;
};

Json parse(const std::string &file) {
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error(file + ": cannot be opened");
  try {
    return Json::parse(stream);
  } catch (const Json::exception &e) {
    throw std::runtime_error(file + ": is no valid JSON: " + e.what());
  }
}

} // namespace

std::vector<Machine> load_machines(const std::string &file, std::vector<Machine> machines) {
  const Json        root = parse(file);
  const EntryReader top(file, "the file");
  top.expect_object(root, "the file");
  top.check_keys(root, "the file", {"machines"});
  if (!root.contains("machines") || !root["machines"].is_array()) top.fail("machines", "must be an array");
  for (std::size_t i = 0; i < root["machines"].size(); ++i) {
    const Json       &entry = root["machines"][i];
    const std::string path = "machines[" + std::to_string(i) + "]";
    top.expect_object(entry, path);
    const std::string name = top.text(entry, path, "name");
    auto              known = std::find_if(machines.begin(), machines.end(), [&](const Machine &m) { return m.name == name; });
    if (known == machines.end()) {
      machines.emplace_back();
      known = machines.end() - 1;
      known->name = name;
    }
    EntryReader(file, path).read(entry, *known);
  }
  return machines;
}

} // namespace tcbound::model
