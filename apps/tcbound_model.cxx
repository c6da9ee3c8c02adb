// tcbound-model: what the theory says about a kernel on a machine; no PETSc and no GPU.
//   tcbound-model machines
//   tcbound-model bound --machine H200 --kernel 2d49pt --steps 3 --mma m16n8k16
//   tcbound-model table
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "src/model/bounds.h"
#include "src/model/names.h"
#include "src/model/roofline.h"
#include "src/model/work_counts.h"

using namespace tcbound::model;

namespace {

const double nan_value = std::nan("");

struct Settings {
  std::string              format = "text", type = "fp64";
  std::vector<std::string> machine_files;
  std::string              machine, kernel, mma;
  double                   rho = 1;
  std::int64_t             steps = 1, vectors = 8;
};

// A cell of a table: a text, or a number, where NaN means that it is unknown or does not apply.
struct Cell {
  std::string text;
  double      number = nan_value;
  bool        is_number = false;

  Cell(std::string t) : text(std::move(t)) {}
  Cell(const char t[]) : text(t) {}
  Cell(double n) : number(n), is_number(true) {}
};

struct Column {
  std::string key, heading;
};

struct Table {
  std::vector<Column>            columns;
  std::vector<std::vector<Cell>> rows;
};

std::string number_text(double number, const char unknown[]) {
  if (std::isnan(number)) return unknown;
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", number);
  return text;
}

void print_text(const Table &table) {
  std::vector<std::vector<std::string>> lines(1);
  for (const Column &column : table.columns) lines[0].push_back(column.heading);
  for (const auto &row : table.rows) {
    lines.emplace_back();
    for (const Cell &cell : row) lines.back().push_back(cell.is_number ? number_text(cell.number, "-") : cell.text);
  }
  std::vector<std::size_t> widths(table.columns.size());
  for (const auto &line : lines)
    for (std::size_t j = 0; j < line.size(); ++j) widths[j] = std::max(widths[j], line[j].size());
  for (const auto &line : lines) {
    std::string out;
    for (std::size_t j = 0; j < line.size(); ++j) {
      const std::string blanks(widths[j] - line[j].size(), ' ');
      const bool        right = !table.rows.empty() && table.rows[0][j].is_number;
      out += (j ? "  " : "") + (right ? blanks + line[j] : line[j] + blanks);
    }
    std::cout << out.substr(0, out.find_last_not_of(' ') + 1) << '\n';
  }
}

std::string csv_text(const std::string &text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

void print_csv(const Table &table) {
  for (std::size_t j = 0; j < table.columns.size(); ++j) std::cout << (j ? "," : "") << table.columns[j].key;
  std::cout << '\n';
  for (const auto &row : table.rows) {
    for (std::size_t j = 0; j < row.size(); ++j)
      std::cout << (j ? "," : "") << (row[j].is_number ? number_text(row[j].number, "") : csv_text(row[j].text));
    std::cout << '\n';
  }
}

void print_json(const Table &table) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const auto &row : table.rows) {
    nlohmann::ordered_json object;
    for (std::size_t j = 0; j < row.size(); ++j) {
      nlohmann::ordered_json &value = object[table.columns[j].key];
      if (!row[j].is_number)
        value = row[j].text;
      else if (!std::isnan(row[j].number))
        value = row[j].number; // else null
    }
    all.push_back(std::move(object));
  }
  std::cout << all.dump(2) << '\n';
}

void print(const Table &table, const std::string &format) {
  if (format == "csv")
    print_csv(table);
  else if (format == "json")
    print_json(table);
  else
    print_text(table);
}

// One figure a row; units are those of the machine file.
void add_figure(Table &table, const Machine &machine, const std::string &what, const char unit[], const Figure &figure) {
  if (!figure.known()) return;
  table.rows.push_back({machine.name, what, figure.value(), unit, figure.is_measured() ? "measured" : "given",
                        figure.is_measured() && figure.vendor > 0 ? figure.vendor : nan_value, figure.value_source()});
}

Table machines_table(const std::vector<Machine> &machines) {
  Table table{{{"machine", "machine"},
               {"figure", "figure"},
               {"value", "value"},
               {"unit", "unit"},
               {"kind", "kind"},
               {"given", "given"},
               {"source", "source"}},
              {}};
  for (const Machine &machine : machines) {
    add_figure(table, machine, "SMs", "1", machine.sm_count);
    add_figure(table, machine, "launch", "s", machine.launch);
    for (const Level level : {Level::dram, Level::l2, Level::l1}) {
      add_figure(table, machine, name_of(level) + " bandwidth", "bytes/s", machine.at(level).bandwidth);
      add_figure(table, machine, name_of(level) + " capacity", "bytes", machine.at(level).capacity);
    }
    for (const Unit unit : {Unit::cuda_core, Unit::tensor_core, Unit::host})
      for (const std::string &type : data_type_names())
        add_figure(table, machine, name_of(unit) + " " + type, "FLOP/s", machine.at(unit, data_type_of(type)));
    for (const auto &peak : machine.mma_peaks)
      add_figure(table, machine, peak.first.first + " " + name_of(peak.first.second), "FLOP/s", peak.second);
  }
  return table;
}

// CUDA cores have no TF32: the alternative there is FP32.
double cuda_core_peak(const Machine &machine, DataType type) {
  return machine.peak(Unit::cuda_core, type == DataType::tf32 ? DataType::fp32 : type);
}

double tensor_core_peak(const Machine &machine, DataType type, const std::string &mma) {
  return mma.empty() ? machine.peak(Unit::tensor_core, type) : machine.mma_peak(mma, type);
}

double nan_if_unknown(const std::function<double()> &figure) {
  try {
    return figure();
  } catch (const UnknownFigure &) {
    return nan_value;
  }
}

const std::vector<Column> bound_columns{
  {"machine", "machine"},
  {"kernel", "kernel"},
  {"type", "type"},
  {"steps", "steps"},
  {"intensity_flops_per_byte", "I"},
  {"balance_flops_per_byte", "balance"},
  {"r", "r"},
  {"alpha", "alpha"},
  {"rho", "rho"},
  {"attainable_flops_per_s", "roof FLOP/s"},
  {"speedup_without_overlap", "S(r)"},
  {"speedup_limit", "limit"},
  {"state", "state"},
};

// Of one kernel on one machine. Figures that depend on something unknown are NaN; S(r) also where the kernel is
// compute-bound and the bound does not apply.
std::vector<Cell> bound_row(const Machine &machine, const std::string &kernel, const Settings &s) {
  const DataType      type = data_type_of(s.type);
  const bool          fuses = kernel.find("pt") != std::string::npos;
  const tcbound::Work work = kernel_work(kernel, {type, fuses ? s.steps : 1, s.vectors});
  const double        intensity = tcbound::arithmetic_intensity(double(work.useful_flops), double(work.bytes));
  const double        bandwidth = nan_if_unknown([&] { return machine.bandwidth(Level::dram); });
  const double        peak = nan_if_unknown([&] { return cuda_core_peak(machine, type); });
  const double        tensor_peak = nan_if_unknown([&] { return tensor_core_peak(machine, type, s.mma); });
  const bool          has_roof = bandwidth > 0 && peak > 0, has_alpha = has_roof && tensor_peak > 0;
  const double        ridge = has_roof ? balance(peak, bandwidth) : nan_value, r = intensity / ridge;
  const double        alpha = has_alpha ? effective_alpha(tensor_peak / peak, s.rho) : nan_value;
  const char         *state = !has_roof              ? "unknown"
                              : !has_alpha && r <= 1 ? "memory-bound, no tensor-core figure"
                                                     : words(classify({r, has_alpha ? alpha : 1}));
  return {machine.name,
          kernel,
          s.type,
          double(fuses ? s.steps : 1),
          intensity,
          ridge,
          r,
          alpha,
          s.rho,
          has_roof ? attainable(peak, bandwidth, intensity) : nan_value,
          has_alpha && r <= 1 ? speedup(r, alpha) : nan_value,
          has_alpha ? speedup_limit(alpha) : nan_value,
          state};
}

void print_explanation(const Machine &machine, const Settings &s) {
  const DataType      type = data_type_of(s.type);
  const tcbound::Work work = kernel_work(s.kernel, {type, s.steps, s.vectors});
  const double        intensity = tcbound::arithmetic_intensity(double(work.useful_flops), double(work.bytes));
  const double        peak = cuda_core_peak(machine, type), ridge = balance(peak, machine.bandwidth(Level::dram));
  const double        alpha = effective_alpha(tensor_core_peak(machine, type, s.mma) / peak, s.rho), r = intensity / ridge;
  if (r > 1) {
    std::cout << "Over the ridge the bound does not apply. Tensor cores " << (tensor_cores_pay(alpha, 1, 1) ? "can" : "cannot")
              << " win: alpha/rho = " << number_text(alpha, "-") << " without padding.\n";
    return;
  }
  std::cout << "With full overlap tensor cores gain nothing; without any they gain at most "
            << number_text(allowed_speedup(r, alpha), "-") << "x.\n";
  if (s.kernel.find("pt") != std::string::npos)
    std::cout << "From " << number_text(steps_across_ridge(intensity / double(s.steps), ridge), "-")
              << " fused steps on it is compute-bound.\n";
}

std::vector<Machine> all_machines(const Settings &s) {
  std::vector<Machine> machines = built_in_machines();
  for (const std::string &file : s.machine_files) machines = load_machines(file, std::move(machines));
  return machines;
}

// CLI11 would only say that a command is missing.
void check_command(int argc, char **argv) {
  if (argc > 1 && argv[1][0] != '-') index_of_name("command", argv[1], {"machines", "bound", "table"});
}

void check_names(const Settings &s) {
  index_of_name("format", s.format, {"text", "csv", "json"});
  data_type_of(s.type);
  if (!s.mma.empty()) mma_shape_of(s.mma);
}

void run_bound(const Settings &s) {
  const std::vector<Machine> machines = all_machines(s);
  const Machine             &machine = find_machine(machines, s.machine);
  kernel_work(s.kernel, {data_type_of(s.type), s.steps, s.vectors}); // checks the kernel's name and steps
  cuda_core_peak(machine, data_type_of(s.type));                     // here, other than in the table, unknown is an error
  tensor_core_peak(machine, data_type_of(s.type), s.mma);
  machine.bandwidth(Level::dram);
  print({bound_columns, {bound_row(machine, s.kernel, s)}}, s.format);
  if (s.format == "text") print_explanation(machine, s);
}

void run_table(const Settings &s) {
  Table table{bound_columns, {}};
  for (const Machine &machine : all_machines(s))
    for (const std::string &kernel : kernel_names()) table.rows.push_back(bound_row(machine, kernel, s));
  print(table, s.format);
}

void add_options(CLI::App &command, Settings &s, bool kernels) {
  command.add_option("--format", s.format, "text, csv or json");
  command.add_option("--machine-file", s.machine_files, "JSON file of machines that add to the built-in ones or override them");
  if (!kernels) return;
  command.add_option("--type", s.type, "data type: " + tcbound::join_names(data_type_names(), ", "));
  command.add_option("--mma", s.mma, "shape of the MMA instruction; without it the peak of the tensor cores counts");
  command.add_option("--rho", s.rho, "issued over useful operations on tensor cores")->check(CLI::Range(1.0, 1e6));
  command.add_option("--steps", s.steps, "fused steps of a stencil")->check(CLI::Range(std::int64_t(1), std::int64_t(100000)));
  command.add_option("--vectors", s.vectors, "columns of SpMM")->check(CLI::Range(std::int64_t(1), std::int64_t(1000000)));
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("What the roofline and the bound on tensor cores say about a kernel on a machine", "tcbound-model");
  Settings settings;
  app.require_subcommand(1);
  CLI::App *machines = app.add_subcommand("machines", "the figures of every machine and where they come from");
  CLI::App *bound = app.add_subcommand("bound", "one kernel on one machine");
  CLI::App *table = app.add_subcommand("table", "every kernel on every machine");
  add_options(*machines, settings, false);
  add_options(*bound, settings, true);
  add_options(*table, settings, true);
  bound->add_option("--machine", settings.machine, "see 'tcbound-model machines'")->required();
  bound->add_option("--kernel", settings.kernel, tcbound::join_names(kernel_names(), ", "))->required();
  try {
    check_command(argc, argv);
    CLI11_PARSE(app, argc, argv);
    check_names(settings);
    if (machines->parsed()) print(machines_table(all_machines(settings)), settings.format);
    if (bound->parsed()) run_bound(settings);
    if (table->parsed()) run_table(settings);
  } catch (const std::exception &e) {
    std::cerr << "tcbound-model: " << e.what() << '\n';
    return 1;
  }
  return 0;
}
