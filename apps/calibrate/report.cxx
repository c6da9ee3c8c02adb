#include "report.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

namespace tcbound::calibrate {
namespace {

using Json = nlohmann::ordered_json;

struct UnitOf {
  const char *table, *json;
  double      scale; // of the table's
};

// For a table by the size of `value`.
UnitOf unit_of(Quantity quantity, double value = 0) {
  switch (quantity) {
  case Quantity::bandwidth:
    return {"GB/s", "bytes/s", 1e-9};
  case Quantity::arithmetic:
    if (value < 1e12) return {"GFLOP/s", "FLOP/s", 1e-9};
    return {"TFLOP/s", "FLOP/s", 1e-12};
  case Quantity::capacity:
    return {"MiB", "bytes", 1.0 / (1 << 20)};
  case Quantity::clock:
    return {"MHz", "Hz", 1e-6};
  default:
    return {"us", "s", 1e6};
  }
}

// The vendor's figure; 0 if there is none.
double vendor_figure(const std::optional<model::Machine> &machine, const std::vector<std::string> &field) {
  if (!machine || field.size() != 3) return 0;
  if (field[0] == "levels" && field[2] != "bandwidth_bytes_per_s") return 0;
  if (field[0] == "levels")
    return machine->levels[model::index_of_name("level", field[1], model::level_names())].bandwidth.vendor;
  return machine
    ->at(static_cast<model::Unit>(model::index_of_name("unit", field[1], model::unit_names())), model::data_type_of(field[2]))
    .vendor;
}

std::string number(const char *pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), pattern, value);
  return text;
}

const Measurement *find(const Measurements &all, const std::string &key) {
  for (const Measurement &m : all)
    if (m.key == key && m.measured()) return &m;
  return nullptr;
}

std::string table_row(const Subject &subject, const Measurement &m) {
  char               line[256];
  const UnitOf       unit = unit_of(m.quantity, m.median());
  const double       value = m.median() * unit.scale, vendor = vendor_figure(subject.vendor, m.against) * unit.scale;
  const Measurement *clock = find(subject.measurements, "sm_clock");
  const bool         by_clock = clock && subject.sm_count > 0 && m.work > 0;
  const char        *pattern = value < 100 ? "%.2f" : value < 1e5 ? "%.1f" : "%.0f";
  std::snprintf(line, sizeof(line), "%-22s %9s %-7s %8s %6s %7s %8s %12s  ", m.what.c_str(), number(pattern, value).c_str(),
                unit.table, vendor > 0 ? number(vendor < 100 ? "%.1f" : "%.0f", vendor).c_str() : "-",
                vendor > 0 ? number("%.3f", value / vendor).c_str() : "-", number("%.2f%%", 100 * m.spread()).c_str(),
                by_clock ? number("%.1f", m.median() / (clock->median() * subject.sm_count)).c_str() : "-",
                m.work > 0 ? number(m.quantity == Quantity::bandwidth ? "%.3e B" : "%.3e F", m.work).c_str() : "-");
  return line + m.how + '\n';
}

} // namespace

void add_tensor_core_peaks(Subject &subject, int compute_major) {
  for (const std::string &type : model::data_type_names()) {
    double best = 0;
    for (const Measurement &m : subject.measurements)
      if (m.measured() && m.field.size() == 3 && m.field[0] == "mma_peaks_flops_per_s" && m.field[2] == type)
        best = std::max(best, m.median());
    if (best > 0 && (type == "fp64" || compute_major < 9))
      subject.facts.push_back({{"peaks_flops_per_s", "tensor_core", type}, rounded(best)});
  }
}

std::string now_utc() {
  char              text[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

double rounded(double value) { return std::stod(number("%.5g", value)); }

std::string table_text(const Subject &subject) {
  std::string text = subject.heading + '\n';
  text += "what                    measured unit      vendor  ratio  spread  /SM/clk       a pass  how\n";
  for (const Measurement &m : subject.measurements)
    if (m.measured())
      text += table_row(subject, m);
    else
      text += m.what + std::string(m.what.size() < 23 ? 23 - m.what.size() : 1, ' ') + "left out: " + m.why_not + '\n';
  return text;
}

std::string machine_file_text(const std::vector<Subject> &subjects, const std::string &date) {
  Json machines = Json::array();
  for (const Subject &s : subjects) {
    Json       entry = {{"name", s.name}, {"device", s.device}, {"source", "tcbound-calibrate " TCBOUND_VERSION}};
    const auto put = [&](const std::vector<std::string> &field, double value) {
      Json *at = &entry;
      for (const std::string &key : field) at = &(*at)[key];
      *at = value;
    };
    entry["measured"] = {{"date", date}, {"driver", s.driver}};
    for (const auto &[field, value] : s.facts) put(field, value);
    for (const Measurement &m : s.measurements)
      if (m.measured() && !m.field.empty()) put(m.field, m.quantity == Quantity::capacity ? m.median() : rounded(m.median()));
    machines.push_back(std::move(entry));
  }
  return Json{{"machines", machines}}.dump(2) + '\n';
}

std::string measurements_text(const std::vector<Subject> &subjects, const std::string &date) {
  Json all = Json::array();
  for (const Subject &s : subjects)
    for (const Measurement &m : s.measurements) {
      Json row = {{"machine", s.name}, {"device", s.device},         {"driver", s.driver},
                  {"date", date},      {"measured", m.key},          {"how", m.how},
                  {"work", m.work},    {"repeats", m.values.size()}, {"unit", unit_of(m.quantity).json}};
      if (m.measured()) {
        row["median"] = m.median();
        row["values"] = m.values;
      } else {
        row["left_out"] = m.why_not;
      }
      if (const double vendor = vendor_figure(s.vendor, m.against); vendor > 0) row["vendor"] = vendor;
      all.push_back(std::move(row));
    }
  return all.dump(1) + '\n';
}

} // namespace tcbound::calibrate
