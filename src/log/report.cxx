#include "report.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "../model/roofline.h"

namespace tcbound {

namespace {

// One value of a row as CSV, Python and JSON name it; SI units.
struct Field {
  const char *name;
  bool        is_text;
  std::string text;
  double      number;
};

Field text_field(const char *name, const std::string &value) { return Field{name, true, value, 0}; }
Field number_field(const char *name, double value) { return Field{name, false, {}, value}; }

// Against y = q x in the memory itself, whatever level holds the working set.
double ceiling_share_of(const Report &report, const ReportRow &row) {
  const auto found = report.machines.find(row.space);
  if (found == report.machines.end()) return model::no_measurement;
  return ceiling_share(achieved_bandwidth(row.bytes, row.seconds_total_max),
                       found->second.machine.at(model::Level::dram).bandwidth.value());
}

void add_verdict_fields(const ReportRow &row, std::vector<Field> &fields) {
  const model::Verdict &v = row.verdict;
  for (const Field &field : {
         text_field("level", model::name_of(v.level)),
         text_field("regime", v.regime),
         number_field("ridge_flops_per_byte", v.ridge),
         number_field("r", v.r),
         number_field("attainable_flops_per_second", v.attainable),
         number_field("achieved_flops_per_second", v.achieved),
         number_field("roof_share", v.roof_share),
         number_field("roof_seconds", v.roof_seconds),
         number_field("launch_seconds", v.launch),
         text_field("mma", row.mma),
         text_field("alpha_shape", v.shape),
         number_field("alpha", v.alpha),
         number_field("rho", v.rho),
         number_field("eta_pad", v.eta_pad),
         number_field("speedup_bound", v.speedup),
         number_field("speedup_limit", v.limit),
         text_field("partner", v.partner),
         number_field("partner_is_twin", v.is_twin),
         number_field("ratio", v.ratio),
         number_field("ratio_bytes", v.ratio_bytes),
         number_field("ratio_bandwidth", v.ratio_bandwidth),
         number_field("ratio_arithmetic", v.ratio_arithmetic),
         number_field("measured_ranks", row.counted_ranks),
         number_field("measured_dram_read_bytes", row.counts.dram_read_bytes),
         number_field("measured_dram_write_bytes", row.counts.dram_write_bytes),
         number_field("measured_bytes_ratio", measured_bytes_ratio(row)),
         number_field("measured_l2_bytes", row.counts.l2_bytes),
         number_field("measured_flops", row.counts.flops()),
         number_field("measured_flops_ratio", measured_flops_ratio(row)),
         number_field("measured_mma_instructions", row.counts.mma_instructions),
         number_field("joules_per_call", row.joules_per_call),
         number_field("joules_per_useful_gflop", row.joules_per_call / quotient_or_nan(row.useful_flops * 1e-9, row.calls_max)),
         text_field("state", v.judged ? model::words(v.state) : ""),
         text_field("verdict", v.words),
       })
    fields.push_back(field);
}

std::vector<Field> row_fields(const Report &report, const ReportRow &row) {
  std::vector<Field> fields{
    text_field("event", row.event),
    text_field("matrix", row.label),
    text_field("kernel", row.kernel),
    text_field("memory", space_name(row.space)),
    number_field("ranks", row.ranks),
    number_field("calls_min", row.calls_min),
    number_field("calls_max", row.calls_max),
    number_field("calls_timed", row.calls_timed),
    number_field("seconds_min", row.seconds_min),
    number_field("seconds_median", row.seconds_median),
    number_field("seconds_total_min", row.seconds_total_min),
    number_field("seconds_total_max", row.seconds_total_max),
    number_field("bytes", row.bytes),
    number_field("compulsory_bytes", row.compulsory_bytes),
    number_field("useful_flops", row.useful_flops),
    number_field("issued_flops", row.issued_flops),
    number_field("bytes_per_second", achieved_bandwidth(row.bytes, row.seconds_total_max)),
    number_field("flops_per_byte", arithmetic_intensity(row.useful_flops, row.bytes)),
    number_field("ceiling_share", ceiling_share_of(report, row)),
  };
  add_verdict_fields(row, fields);
  return fields;
}

model::KernelRun run_of(const ReportRow &row) {
  model::KernelRun  run;
  const std::size_t format = row.kernel.find('/'), backend = row.kernel.rfind('/');
  if (format != std::string::npos && backend > format) {
    run.op = row.kernel.substr(0, format);
    run.format = row.kernel.substr(format + 1, backend - format - 1);
    run.backend = row.kernel.substr(backend + 1);
    run.arithmetic = arithmetic_of(row);
    if (run.arithmetic != model::DataType::fp64) run.backend.resize(run.backend.rfind(':'));
  }
  run.mma = row.mma;
  run.host = row.space == MemorySpace::host;
  run.calls = row.calls_max;
  run.median_seconds = row.seconds_median;
  run.total_seconds = row.seconds_total_max;
  run.bytes = row.bytes;
  run.useful_flops = row.useful_flops;
  run.issued_flops = row.issued_flops;
  run.padded_flops = row.padded_flops;
  return run;
}

std::string csv_quoted(const std::string &text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

} // namespace

model::DataType arithmetic_of(const ReportRow &row) {
  const std::string after = row.kernel.substr(row.kernel.rfind(':') + 1);
  for (const model::DataType type : {model::DataType::tf32, model::DataType::bf16})
    if (after == model::name_of(type)) return type;
  return model::DataType::fp64;
}

const char *space_name(MemorySpace space) { return space == MemorySpace::host ? "host" : "cuda"; }

std::string format_number(const char *pattern, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), pattern, value);
  return buffer;
}

double measured_bytes_ratio(const ReportRow &row) { return quotient_or_nan(row.counts.dram_bytes(), row.counted_bytes); }
double measured_flops_ratio(const ReportRow &row) { return quotient_or_nan(row.counts.flops(), row.counted_useful_flops); }

// The counters know FP64 operations only.
static void forget_others(ReportRow &row) {
  if (arithmetic_of(row) == model::DataType::fp64) return;
  for (double *count :
       {&row.counts.fma, &row.counts.add, &row.counts.multiply, &row.counts.mma_instructions, &row.counts.mma_flops})
    *count = Counts::unknown;
}

void judge(Report &report) {
  for (ReportRow &row : report.rows) forget_others(row);
  std::map<std::pair<std::string, std::string>, std::vector<model::KernelRun>> runs;
  for (const ReportRow &row : report.rows) runs[{row.event, row.label}].push_back(run_of(row));
  for (ReportRow &row : report.rows)
    row.verdict = model::judge(report.machines[row.space].machine, run_of(row), runs[{row.event, row.label}]);
}

std::string report_csv(const Report &report) {
  std::string text;
  for (const ReportRow &row : report.rows) {
    const auto fields = row_fields(report, row);
    if (text.empty()) {
      text = "TCBound";
      for (const Field &f : fields) text += std::string(",") + f.name;
      text += '\n';
    }
    text += "TCBound";
    for (const Field &f : fields) {
      text += ',';
      if (f.is_text)
        text += csv_quoted(f.text);
      else if (std::isfinite(f.number))
        text += format_number("%.15g", f.number);
    }
    text += '\n';
  }
  return text;
}

std::string report_python(const Report &report) {
  std::string text = "TCBound = []\n";
  for (const ReportRow &row : report.rows) {
    text += "TCBound.append({";
    const char *separator = "";
    for (const Field &f : row_fields(report, row)) {
      text += std::string(separator) + '"' + f.name + "\" : ";
      // A JSON string is also a Python string.
      if (f.is_text)
        text += nlohmann::json(f.text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
      else
        text += std::isfinite(f.number) ? format_number("%.15g", f.number) : std::string("None");
      separator = ", ";
    }
    text += "})\n";
  }
  return text;
}

// Every known FP64 figure of a machine, as docs/machines.md names them; figures are sums over ranks.
static nlohmann::ordered_json machine_json(MemorySpace space, const ReportMachine &m) {
  using json = nlohmann::ordered_json;
  const auto set = [](json &object, const char *key, const model::Figure &figure) {
    if (figure.known()) object[key] = figure.value();
  };
  json object = {{"memory", space_name(space)},
                 {"device", m.device},
                 {"files", m.files},
                 {"built_in", m.built_in},
                 {"measured", m.measured},
                 {"levels", json::object()},
                 {"peaks_flops_per_s", json::object()},
                 {"mma_peaks_flops_per_s", json::object()}};
  set(object, "launch_seconds", m.machine.launch);
  for (const model::Level level : {model::Level::dram, model::Level::l2, model::Level::l1}) {
    json values = json::object();
    set(values, "bandwidth_bytes_per_s", m.machine.at(level).bandwidth);
    set(values, "capacity_bytes", m.machine.at(level).capacity);
    if (!values.empty()) object["levels"][model::name_of(level)] = values;
  }
  for (const model::Unit unit : {model::Unit::cuda_core, model::Unit::tensor_core, model::Unit::host})
    set(object["peaks_flops_per_s"], model::name_of(unit).c_str(), m.machine.at(unit, model::DataType::fp64));
  for (const auto &[key, figure] : m.machine.mma_peaks)
    if (key.second == model::DataType::fp64) set(object["mma_peaks_flops_per_s"], key.first.c_str(), figure);
  return object;
}

std::string report_json(const Report &report, const ReportContext &context) {
  using json = nlohmann::ordered_json;
  json document = {
    {"version", 2},
    {"date", context.date},
    {"command_line", context.command_line},
    {"petsc_version", context.petsc_version},
    {"ranks", report.ranks},
    {"machines", json::array()},
    {"compare",
     {{"products", report.compare.products},
      {"checks", report.compare.checks},
      {"alone", report.compare.alone},
      {"seconds", report.compare.seconds}}},
    {"counters", {{"seconds", report.counter_seconds}, {"notes", report.counter_notes}}},
    {"rows", json::array()},
  };
  for (const auto &[space, machine] : report.machines) document["machines"].push_back(machine_json(space, machine));
  for (const ReportRow &row : report.rows) {
    json object = json::object();
    for (const Field &f : row_fields(report, row)) { // an undefined figure becomes null
      if (f.is_text)
        object[f.name] = f.text;
      else
        object[f.name] = f.number;
    }
    document["rows"].push_back(object);
  }
  return document.dump(2, ' ', false, json::error_handler_t::replace) + '\n';
}

} // namespace tcbound
