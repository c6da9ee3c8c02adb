// The table at the end of -log_view: a line of numbers for each row and, below it, the verdict in words.
#include "report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <sstream>

#include "../model/roofline.h"
#include "samples.h"

namespace tcbound {

namespace {

constexpr std::size_t table_width = 132;

double per_call(const ReportRow &row, double sum) { return quotient_or_nan(sum, row.calls_max); }

// A column of the table; `detail`: only with -tcbound_log_detail.
struct Column {
  const char                                   *heading;
  std::size_t                                   width; // with the blank before it
  bool                                          detail;
  std::function<std::string(const ReportRow &)> text;
};

// An undefined figure becomes a dash, one too long for its column loses digits.
Column number(const char *heading, std::size_t width, bool detail, const char *pattern,
              const std::function<double(const ReportRow &)> &value) {
  return {heading, width, detail, [=](const ReportRow &row) {
            const double v = value(row);
            if (!std::isfinite(v)) return std::string("-");
            std::string text = format_number(pattern, v);
            for (const char *shorter : {"%.3g", "%.2g", "%.0e"})
              if (text.size() >= width) text = format_number(shorter, v);
            return text;
          }};
}

Column word(const char *heading, std::size_t width, const std::function<std::string(const ReportRow &)> &value) {
  return {heading, width, true, [=](const ReportRow &row) {
            const std::string v = value(row);
            return v.empty() ? std::string("-") : v;
          }};
}

std::string count(double n) { return format_number(n < 1e7 ? "%.0f" : "%.1e", n); }

std::vector<Column> all_columns() {
  using Row = const ReportRow &;
  return {
    {"Calls", 8, false, [](Row r) { return count(r.calls_max); }},
    number("Ranks", 6, true, "%.0f", [](Row r) { return r.ranks; }),
    number("Timed", 8, true, "%.0f", [](Row r) { return r.calls_timed; }),
    number("Min[s]", 10, true, "%.3e", [](Row r) { return r.seconds_min; }),
    number("Median[s]", 10, false, "%.3e", [](Row r) { return r.seconds_median; }),
    number("Total[s]", 10, false, "%.3e", [](Row r) { return r.seconds_total_max; }),
    number("Imb", 5, false, "%.1f", [](Row r) { return quotient_or_nan(r.seconds_total_max, r.seconds_total_min); }),
    number("MB/call", 8, false, "%.4g", [](Row r) { return per_call(r, r.bytes) * 1e-6; }),
    number("Least MB", 9, true, "%.4g", [](Row r) { return per_call(r, r.compulsory_bytes) * 1e-6; }),
    number("MFLOP", 8, true, "%.4g", [](Row r) { return per_call(r, r.useful_flops) * 1e-6; }),
    number("Issued", 8, true, "%.4g", [](Row r) { return per_call(r, r.issued_flops) * 1e-6; }),
    number("GB/s", 7, false, "%.4g", [](Row r) { return achieved_bandwidth(r.bytes, r.seconds_total_max) * 1e-9; }),
    number("FLOP/B", 7, false, "%.4f", [](Row r) { return r.verdict.intensity; }),
    number("Ridge", 6, false, "%.3g", [](Row r) { return r.verdict.ridge; }),
    word("Level", 6, [](Row r) { return model::name_of(r.verdict.level); }),
    word("Regime", 8, [](Row r) { return r.verdict.regime; }),
    number("GFLOP/s", 9, true, "%.4g", [](Row r) { return r.verdict.achieved * 1e-9; }),
    number("Attain.", 9, true, "%.4g", [](Row r) { return r.verdict.attainable * 1e-9; }),
    number("Roof", 7, false, "%.1f%%", [](Row r) { return r.verdict.roof_share * 100; }),
    word("MMA", 9, [](Row r) { return r.verdict.shape; }),
    number("alpha", 6, false, "%.2f", [](Row r) { return r.verdict.alpha; }),
    number("rho", 6, true, "%.2f", [](Row r) { return r.verdict.rho; }),
    number("eta", 5, true, "%.2f", [](Row r) { return r.verdict.eta_pad; }),
    number("S(r)", 5, false, "%.2f", [](Row r) { return r.verdict.speedup; }),
    number("Limit", 6, true, "%.2f", [](Row r) { return r.verdict.limit; }),
    number("Twin", 5, false, "%.2f", [](Row r) { return r.verdict.is_twin ? r.verdict.ratio : model::no_measurement; }),
    number("Bytes", 6, true, "%.2f", [](Row r) { return r.verdict.ratio_bytes; }),
    number("Bandw", 6, true, "%.2f", [](Row r) { return r.verdict.ratio_bandwidth; }),
    number("Arith", 6, true, "%.2f", [](Row r) { return r.verdict.ratio_arithmetic; }),
    number("DRAM MB", 9, true, "%.4g", [](Row r) { return r.counts.dram_bytes() * 1e-6; }),
    number("/count", 7, true, "%.3f", [](Row r) { return measured_bytes_ratio(r); }),
    number("L2 MB", 9, true, "%.4g", [](Row r) { return r.counts.l2_bytes * 1e-6; }),
    number("/useful", 8, true, "%.3f", [](Row r) { return measured_flops_ratio(r); }),
    number("DMMA", 9, true, "%.4g", [](Row r) { return r.counts.mma_instructions; }),
    number("J/call", 10, true, "%.3e", [](Row r) { return r.joules_per_call; }),
    number("J/GFLOP", 8, true, "%.3g", [](Row r) { return r.joules_per_call / per_call(r, r.useful_flops * 1e-9); }),
  };
}

// The end of a long name says more than its start: nested options prefixes share the start.
std::string name_column(const std::string &name, std::size_t width) {
  if (name.size() > width) return ".." + name.substr(name.size() - width + 2);
  return name + std::string(width - name.size(), ' ');
}

std::string right(const std::string &text, std::size_t width) {
  return (text.size() < width ? std::string(width - text.size(), ' ') : " ") + text;
}

struct Widths {
  std::size_t event = 5, label = 6, kernel = 6; // of the headings
};

// What the columns of numbers leave of the table's width, where the label yields to the others.
Widths name_widths(const Report &report, std::size_t numbers) {
  Widths w;
  for (const ReportRow &row : report.rows) {
    w.event = std::max(w.event, row.event.size());
    w.label = std::max(w.label, row.label.empty() ? 1 : row.label.size());
    w.kernel = std::max(w.kernel, row.kernel.size());
  }
  if (report.detail) return w;
  const std::size_t names = table_width - numbers - 2;
  w.event = std::min<std::size_t>(w.event, 16);
  w.kernel = std::min(w.kernel, names - w.event - 6);
  w.label = std::min(w.label, names - w.event - w.kernel);
  return w;
}

// Words into lines, the first and the later ones indented.
std::string wrapped(const std::string &text, const std::string &first, const std::string &later) {
  std::istringstream words(text);
  std::string        all, line = first;
  bool               fresh = true;
  for (std::string word; words >> word; fresh = false) {
    if (!fresh && line.size() + 1 + word.size() > table_width) {
      all += line + '\n';
      line = later;
      fresh = true;
    }
    line += (fresh ? "" : " ") + word;
  }
  return all + line + '\n';
}

// FP64's, and those that lossy kernels on that memory are held against.
std::string ceiling_line(MemorySpace space, const ReportMachine &m, const std::vector<ReportRow> &rows) {
  std::vector<std::string> parts, origins;
  const auto               add = [&](const std::string &name, const model::Figure &figure, double unit, const char *unit_name) {
    if (figure.known()) parts.push_back(name + " " + format_number("%.4g", figure.value() / unit) + unit_name);
  };
  const auto add_peak = [&](const std::string &name, const model::Figure &figure) {
    const bool tera = figure.value() >= 1e12;
    add(name, figure, tera ? 1e12 : 1e9, tera ? " TFLOP/s" : " GFLOP/s");
  };
  const bool host = space == MemorySpace::host;
  add(host ? "memory" : "DRAM", m.machine.at(model::Level::dram).bandwidth, 1e9, " GB/s");
  add(host ? "cache" : "L2", m.machine.at(model::Level::l2).bandwidth, 1e9, " GB/s");
  add_peak("FP64", m.machine.at(host ? model::Unit::host : model::Unit::cuda_core, model::DataType::fp64));
  for (const auto &shape : model::mma_shapes()) {
    const auto found = m.machine.mma_peaks.find({shape.name, model::DataType::fp64});
    if (found != m.machine.mma_peaks.end()) add_peak(shape.name, found->second);
  }
  std::map<std::string, model::Figure> lossy;
  for (const ReportRow &row : rows) {
    const model::DataType type = arithmetic_of(row);
    const auto            found = m.machine.mma_peaks.find({row.verdict.shape, type});
    if (type == model::DataType::fp64 || row.space != space) continue;
    lossy["FP32"] = m.machine.at(model::Unit::cuda_core, model::DataType::fp32);
    if (found != m.machine.mma_peaks.end()) lossy[model::name_of(type) + " " + found->first.first] = found->second;
  }
  for (const auto &[name, figure] : lossy) add_peak(name, figure);
  add(host ? "an empty interval" : "an empty kernel", m.machine.launch, 1e-6, " us");
  if (!m.files.empty()) origins.push_back(m.files);
  if (m.measured) origins.push_back("measured in this run by y = q x, ranks at once, in turns on a shared device");
  if (!m.built_in.empty()) origins.push_back("built in for " + m.built_in);
  std::string text = std::string("Ceilings, ") + space_name(space) + ": ";
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i ? ", " : "") + parts[i];
  if (parts.empty()) text += "unknown";
  for (std::size_t i = 0; i < origins.size(); ++i) text += (i ? ", else " : "; ") + origins[i];
  return wrapped(text + ".", "", "  ");
}

// What counters measured of one call, on each of its ranks.
std::string counters_line(const ReportRow &row) {
  const auto known = [](const char *pattern, double value) {
    return std::isfinite(value) ? format_number(pattern, value) : std::string("?");
  };
  return "measured: " + known("%.4g", row.counts.dram_bytes() * 1e-6) + " MB from and to DRAM, " +
         known("%.3f", measured_bytes_ratio(row)) + " of those counted; " + known("%.4g", row.counts.l2_bytes * 1e-6) +
         " MB of L2; " + known("%.3f", measured_flops_ratio(row)) + " of the useful FLOPs; " +
         known("%.4g", row.counts.mma_instructions) + " DMMA instructions";
}

// The lines below the ceilings: what the figures above rest on.
std::string notes(const Report &report) {
  std::string text;
  const auto  add = [&](const std::string &words) { text += wrapped(words, "", "  "); };
  if (std::any_of(report.rows.begin(), report.rows.end(), [](const ReportRow &r) { return r.calls_timed < r.calls_min; }))
    add("On a device the first " + std::to_string(CallSample::all) + " calls are timed and then one in " +
        std::to_string(CallSample::one_in) + "; in Total the others count as the mean of those after the first.");
  if (report.compare.alone > 0)
    add("-mat_tcbound_compare: no other kernel can run " + count(report.compare.alone) +
        " matrices or blocks of matrices (all ranks).");
  if (report.compare.products > 0)
    add("-mat_tcbound_compare: " + count(report.compare.products) + " extra products and " + count(report.compare.checks) +
        " comparisons of results took " + format_number("%.3g", report.compare.seconds) + " s of the slowest rank.");
  if (report.counter_seconds > 0)
    add("-tcbound_counters: lines with # are of one call, repeated before the kernel's first; this took " +
        format_number("%.3g", report.counter_seconds) + " s of the slowest rank.");
  for (const std::string &note : report.counter_notes) add("-tcbound_counters: " + note + ".");
  return text;
}

const char legend[] = "Median, Total: device time of a call and of all, slowest rank (Imb: over the fastest's); MB/call, GB/s: "
                      "counted bytes, all ranks.\n"
                      "FLOP/B: useful FLOPs/bytes, below the Ridge memory decides; Roof: share of what is attainable there; "
                      "alpha: FP64 peak of tensor over\n"
                      "CUDA cores; S(r): the most that they gain if nothing overlaps (with full overlap: nothing); Twin: time "
                      "of the twin over this one's.\n";

} // namespace

std::string report_table(const Report &report) {
  std::vector<Column> columns;
  std::size_t         numbers = 0;
  for (const Column &c : all_columns()) {
    if (c.detail && !report.detail) continue;
    columns.push_back(c);
    numbers += c.width;
  }
  const Widths w = name_widths(report, numbers);
  std::string  head =
    name_column("Event", w.event) + ' ' + name_column("Object", w.label) + ' ' + name_column("Kernel", w.kernel);
  for (const Column &c : columns) head += right(c.heading, c.width);
  const std::string rule = std::string(head.size(), '-') + '\n';
  std::string       text = "\ntcbound: roofline of each kernel, and the bound on tensor cores\n" + rule + head + '\n' + rule;
  for (const ReportRow &row : report.rows) {
    text += name_column(row.event, w.event) + ' ';
    text += name_column(row.label.empty() ? "-" : row.label, w.label) + ' '; // so that every line has all columns
    text += name_column(row.kernel, w.kernel);
    for (const Column &c : columns) text += right(c.text(row), c.width);
    text += '\n' + wrapped(row.verdict.words, "  = ", "    ");
    if (row.counted_ranks > 0) text += wrapped(counters_line(row), "  # ", "    ");
  }
  text += rule + legend;
  for (const auto &[space, machine] : report.machines) text += ceiling_line(space, machine, report.rows);
  return text + notes(report);
}

} // namespace tcbound
