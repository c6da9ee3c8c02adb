#include "report.h"

#include <algorithm>
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

double bandwidth(const ReportRow &row) { return achieved_bandwidth(row.bytes, row.seconds_total_max); }

double share(const Report &report, const ReportRow &row) {
  const auto ceiling = report.ceilings.find(row.space);
  return ceiling_share(bandwidth(row), ceiling == report.ceilings.end() ? 0 : ceiling->second);
}

std::vector<Field> row_fields(const Report &report, const ReportRow &row) {
  const auto text = [](const char *name, const std::string &value) { return Field{name, true, value, 0}; };
  const auto number = [](const char *name, double value) { return Field{name, false, {}, value}; };
  return {
    text("event", row.event),
    text("matrix", row.label),
    text("kernel", row.kernel),
    text("memory", space_name(row.space)),
    number("ranks", row.ranks),
    number("calls_min", row.calls_min),
    number("calls_max", row.calls_max),
    number("seconds_min", row.seconds_min),
    number("seconds_median", row.seconds_median),
    number("seconds_total_min", row.seconds_total_min),
    number("seconds_total_max", row.seconds_total_max),
    number("bytes", row.bytes),
    number("compulsory_bytes", row.compulsory_bytes),
    number("useful_flops", row.useful_flops),
    number("issued_flops", row.issued_flops),
    number("bytes_per_second", bandwidth(row)),
    number("flops_per_byte", arithmetic_intensity(row.useful_flops, row.bytes)),
    number("ceiling_share", share(report, row)),
  };
}

std::string format(const char *pattern, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), pattern, value);
  return buffer;
}

// Right-aligned; an undefined figure becomes a dash.
std::string column(const char *pattern, int width, double value) {
  const std::string text = std::isfinite(value) ? format(pattern, value) : "-";
  return std::string(std::max<std::size_t>(width, text.size()) - text.size(), ' ') + text;
}

// The end of a long name says more than its start: nested options prefixes share the start.
std::string name_column(const std::string &name, std::size_t width) {
  if (name.size() > width) return ".." + name.substr(name.size() - width + 2);
  return name + std::string(width - name.size(), ' ');
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

struct Widths {
  std::size_t event = 5, label = 6, kernel = 6; // of the headings
};

// What the 79 columns of numbers leave of 132, where the label yields to the others.
Widths name_widths(const Report &report) {
  Widths w;
  for (const ReportRow &row : report.rows) {
    w.event = std::max(w.event, row.event.size());
    w.label = std::max(w.label, row.label.size());
    w.kernel = std::max(w.kernel, row.kernel.size());
  }
  w.event = std::min<std::size_t>(w.event, 16);
  w.kernel = std::min<std::size_t>(w.kernel, 26);
  w.label = std::min<std::size_t>(w.label, 51 - w.event - w.kernel);
  return w;
}

std::string table_row(const Report &report, const ReportRow &row, const Widths &w) {
  std::string line = name_column(row.event, w.event) + ' ';
  line += name_column(row.label.empty() ? "-" : row.label, w.label) + ' '; // so that every line has all columns
  line += name_column(row.kernel, w.kernel);
  line += column(row.calls_max < 1e7 ? " %.0f" : " %.1e", 9, row.calls_max);
  line += column("%.3e", 10, row.seconds_median);
  line += column("%.3e", 10, row.seconds_total_max);
  line += column("%.1f", 6, quotient_or_nan(row.seconds_total_max, row.seconds_total_min));
  line += column("%.3e", 10, quotient_or_nan(row.bytes, row.calls_max));
  line += column("%.3e", 10, quotient_or_nan(row.useful_flops, row.calls_max));
  line += column(bandwidth(row) < 1e11 ? "%.3f" : "%.1f", 9, bandwidth(row) * 1e-9);
  line += column("%.4f", 8, arithmetic_intensity(row.useful_flops, row.bytes));
  line += column("%.1f%%", 7, share(report, row) * 100);
  return line + '\n';
}

} // namespace

const char *space_name(MemorySpace space) { return space == MemorySpace::host ? "host" : "cuda"; }

std::string report_table(const Report &report) {
  const Widths w = name_widths(report);
  std::string  head =
    name_column("Event", w.event) + ' ' + name_column("Matrix", w.label) + ' ' + name_column("Kernel", w.kernel);
  head += "    Calls Median[s]  Total[s] Ratio Byte/call FLOP/call     GB/s  FLOP/B  Share\n";
  const std::string rule = std::string(head.size() - 1, '-') + '\n';
  std::string       text = "\ntcbound: roofline of each kernel\n" + rule + head + rule;
  for (const ReportRow &row : report.rows) text += table_row(report, row, w);
  text += rule;
  text += "Median, Total: device time of one call and of all, slowest rank; Ratio: Total of the slowest to the fastest rank.\n";
  text += "Byte, FLOP (useful): summed over ranks; GB/s = bytes/Total; FLOP/B = useful FLOPs/bytes; Share = GB/s / ceiling.\n";
  text += "Ceiling:";
  const char *separator = " ";
  for (const auto &[space, ceiling] : report.ceilings) {
    text += separator + (ceiling > 0 ? format("%.4g GB/s ", ceiling * 1e-9) : std::string("not measured ")) + space_name(space);
    separator = ", ";
  }
  return text + "; measured: y = q x on long arrays, ranks at once, in turns on a shared device; read + written.\n";
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
        text += format("%.15g", f.number);
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
        text += std::isfinite(f.number) ? format("%.15g", f.number) : std::string("None");
      separator = ", ";
    }
    text += "})\n";
  }
  return text;
}

std::string report_json(const Report &report, const ReportContext &context) {
  using json = nlohmann::ordered_json;
  json document = {
    {"version", 1},
    {"date", context.date},
    {"command_line", context.command_line},
    {"petsc_version", context.petsc_version},
    {"ranks", report.ranks},
    {"devices", json::array()},
    {"ceilings", json::array()},
    {"rows", json::array()},
  };
  for (const ReportDevice &d : context.devices)
    document["devices"].push_back({{"memory", space_name(d.space)}, {"name", d.name}});
  for (const auto &[space, ceiling] : report.ceilings)
    document["ceilings"].push_back({{"memory", space_name(space)}, {"bytes_per_second", ceiling}});
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
