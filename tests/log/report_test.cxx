// The texts made of fixed rows.
#include "src/log/report.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace tcbound;

namespace {

ReportRow make_row(const char *event, const char *label, const char *kernel, MemorySpace space) {
  ReportRow row;
  row.event = event;
  row.label = label;
  row.kernel = kernel;
  row.space = space;
  row.ranks = 2;
  row.calls_min = 90;
  row.calls_max = 100;
  row.calls_timed = 90;
  row.seconds_min = 0.5e-3;
  row.seconds_median = 1e-3;
  row.seconds_total_min = 0.08;
  row.seconds_total_max = 0.1;
  row.bytes = 2e9;
  row.compulsory_bytes = 1.5e9;
  row.useful_flops = 3e8;
  row.issued_flops = 3e8;
  return row;
}

model::Figure measured(double value) { return model::Figure{0, value, "", "made up"}; }

// An H200's measured ceilings, and a host's.
void set_machines(Report &report) {
  ReportMachine &device = report.machines[MemorySpace::cuda], &host = report.machines[MemorySpace::host];
  for (const auto &machine : model::built_in_machines())
    if (machine.name == "H200") device.machine = machine;
  device.machine.launch = measured(2.5e-6);
  device.machine.at(model::Level::l2).bandwidth = measured(8e12);
  device.device = "NVIDIA H200";
  device.measured = true;
  device.built_in = "H200";
  host.machine.at(model::Level::dram).bandwidth = measured(2.5e10);
  host.machine.at(model::Unit::host, model::DataType::fp64) = measured(5e10);
  host.device = "AMD EPYC";
  host.files = "calibrated 2026-12-01";
}

// Calls of 0.5 GB in 0.13 ms, 0.1 GFLOP each.
ReportRow device_row(const char *label, const char *kernel, double slower = 1) {
  ReportRow row = make_row("MatMult", label, kernel, MemorySpace::cuda);
  row.bytes = 5e10;
  row.compulsory_bytes = 4e10;
  row.useful_flops = row.issued_flops = row.padded_flops = 1e10;
  row.seconds_min = 0.12e-3 * slower;
  row.seconds_median = 0.13e-3 * slower;
  row.seconds_total_min = 0.0125 * slower;
  row.seconds_total_max = 0.013 * slower;
  return row;
}

Report sample_report() {
  Report report;
  report.ranks = 2;
  set_machines(report);
  report.rows.push_back(make_row("MatMult", "A", "spmv/csr/host", MemorySpace::host));
  report.rows.push_back(
    make_row("MatMultTranspose", "fieldsplit_velocity_mg_levels_2_", "spmv/csr/cuda_core", MemorySpace::cuda));
  report.rows.push_back(make_row("Never", "timed, \"quoted\"", "spmv/csr/host", MemorySpace::host));
  ReportRow &last = report.rows.back();
  last.seconds_median = last.seconds_total_max = last.seconds_total_min = last.bytes = 0;
  report.rows.push_back(device_row("B", "spmv/a_very_long_format_name/tensor_core"));
  report.rows.back().calls_max = 123456789;
  report.rows.push_back(device_row("C", "spmv/blocks/cuda_core", 1.04));
  report.rows.push_back(device_row("C", "spmv/blocks/tensor_core"));
  report.rows.back().mma = "m16n8k16";
  report.rows.back().issued_flops = 1.5e10;
  report.rows.back().joules_per_call = 0.07;
  report.rows.push_back(device_row("C", "spmv/csr/cusparse", 2));
  report.rows.back().bytes = 8e10;
  report.rows.back().calls_timed = 39;
  Counts &counts = report.rows.back().counts;
  report.rows.back().counted_ranks = 2;
  report.rows.back().counted_bytes = 8e8;
  report.rows.back().counted_useful_flops = 1e8;
  counts.dram_read_bytes = 7.1e8;
  counts.dram_write_bytes = 0.8e8;
  counts.l2_bytes = 9.5e8;
  counts.fma = 5e7;
  counts.add = 4e6;
  counts.multiply = 1e6;
  counts.mma_instructions = counts.mma_flops = 0;
  report.counter_seconds = 1.5;
  report.counter_notes = {"kernels on the host are not measured"};
  judge(report);
  return report;
}

std::vector<std::string> lines_of(const std::string &text) {
  std::vector<std::string> lines;
  std::istringstream       in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// A line of RFC 4180.
std::vector<std::string> csv_fields(const std::string &line) {
  std::vector<std::string> fields(1);
  bool                     quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"')
      fields.back() += line[++i];
    else if (line[i] == '"')
      quoted = !quoted;
    else if (line[i] == ',' && !quoted)
      fields.emplace_back();
    else
      fields.back() += line[i];
  }
  return fields;
}

} // namespace

// Kernels whose names end with a type are held against FP32 on CUDA cores and that type's MMA peak; other endings are no types.
TEST(Report, LossyKernelsHaveCeilingsOfTheirOwn) {
  Report report;
  set_machines(report);
  model::Machine &machine = report.machines[MemorySpace::cuda].machine;
  machine.at(model::Unit::cuda_core, model::DataType::fp32) = measured(66e12);
  machine.mma_peaks[{"m16n8k8", model::DataType::bf16}] = measured(470e12);
  report.rows = {device_row("A", "spmv/fragments/cuda_core:bf16"), device_row("A", "spmv/fragments/tensor_core:bf16"),
                 device_row("A", "stencil/banded/tensor_core:m16n8k8:1")};
  report.rows[1].mma = "m16n8k8";
  EXPECT_EQ(report_table(report).find("m16n8k8 470"), std::string::npos);
  for (ReportRow &row : report.rows) row.counts.fma = row.counts.add = row.counts.multiply = row.counts.mma_instructions = 1e6;
  judge(report);
  EXPECT_NEAR(report.rows[1].verdict.alpha, 470.0 / 66, 1e-12);
  EXPECT_TRUE(report.rows[1].verdict.is_twin);
  EXPECT_EQ(report.rows[1].verdict.partner, "spmv/fragments/cuda_core:bf16");
  EXPECT_TRUE(std::isnan(report.rows[0].counts.flops())); // only FP64 is counted
  EXPECT_TRUE(std::isnan(report.rows[1].counts.mma_instructions));
  EXPECT_EQ(arithmetic_of(report.rows[2]), model::DataType::fp64);
  const std::string table = report_table(report);
  for (const char *part : {"FP32 66 TFLOP/s", "m16n8k8 470 TFLOP/s"}) EXPECT_NE(table.find(part), std::string::npos) << table;
}

TEST(Report, Table) {
  EXPECT_EQ(report_table(sample_report()), R"(
tcbound: roofline of each kernel, and the bound on tensor cores
------------------------------------------------------------------------------------------------------------------------------------
Event            Object Kernel                     Calls Median[s]  Total[s]  Imb MB/call   GB/s FLOP/B Ridge   Roof alpha S(r) Twin
------------------------------------------------------------------------------------------------------------------------------------
MatMult          A      spmv/csr/host                100 1.000e-03 1.000e-01  1.2      20     20 0.1500     2  80.0%     -    -    -
  = memory-bound: 80 % of the memory roof; no tensor cores here
MatMultTranspose ..s_2_ spmv/csr/cuda_core           100 1.000e-03 1.000e-01  1.2      20     20 0.1500  4.12   0.2%  2.02 1.02    -
  = latency-bound, too small to judge: 2.5 us at the roof, an empty kernel takes 2.5 us
Never            ..ted" spmv/csr/host                100 0.000e+00 0.000e+00    -       0      -      -     2      -     -    -    -
  = nothing moved, nothing to judge
MatMult          B      ..ormat_name/tensor_core 1.2e+08 1.300e-04 1.300e-02  1.0 0.00041   3846 0.2000  4.12  48.1%     -    -    -
  = latency-bound, too small to judge: 5.06e-05 us at the roof, an empty kernel takes 2.5 us
MatMult          C      spmv/blocks/cuda_core        100 1.352e-04 1.352e-02  1.0     500   3698 0.2000  7.77  87.0%  2.02 1.01 0.96
  = memory-bound, compliant: 87 % of the DRAM roof; 0.96x as fast as its twin spmv/blocks/tensor_core; tensor cores (m16n8k16) could
    gain 1.01x at most
MatMult          C      spmv/blocks/tensor_core      100 1.300e-04 1.300e-02  1.0     500   3846 0.2000  7.77  90.5%  2.02 1.01 1.04
  = memory-bound, over the bound: 1.04x where it allows 1.01x, a memory effect: 1.00 bytes x 1.03 bandwidth x 1.01 arithmetic, open
    to CUDA cores too; compared with spmv/blocks/cuda_core; 91 % of the DRAM roof
MatMult          C      spmv/csr/cusparse            100 2.600e-04 2.600e-02  1.0     800   3077 0.1250  7.77  72.4%  2.02 1.01    -
  = memory-bound, compliant: 72 % of the DRAM roof; 0.50x as fast as spmv/blocks/tensor_core = 0.62 bytes x 0.81 bandwidth x 0.99
    arithmetic; tensor cores (m16n8k16) could gain 1.01x at most
  # measured: 790 MB from and to DRAM, 0.988 of those counted; 950 MB of L2; 1.050 of the useful FLOPs; 0 DMMA instructions
------------------------------------------------------------------------------------------------------------------------------------
Median, Total: device time of a call and of all, slowest rank (Imb: over the fastest's); MB/call, GB/s: counted bytes, all ranks.
FLOP/B: useful FLOPs/bytes, below the Ridge memory decides; Roof: share of what is attainable there; alpha: FP64 peak of tensor over
CUDA cores; S(r): the most that they gain if nothing overlaps (with full overlap: nothing); Twin: time of the twin over this one's.
Ceilings, host: memory 25 GB/s, FP64 50 GFLOP/s; calibrated 2026-12-01.
Ceilings, cuda: DRAM 4249 GB/s, L2 8000 GB/s, FP64 33 TFLOP/s, m8n8k4 33.1 TFLOP/s, m16n8k16 66.5 TFLOP/s, an empty kernel 2.5 us;
  measured in this run by y = q x, ranks at once, in turns on a shared device, else built in for H200.
On a device the first 32 calls are timed and then one in 128; in Total the others count as the mean of those after the first.
-tcbound_counters: lines with # are of one call, repeated before the kernel's first; this took 1.5 s of the slowest rank.
-tcbound_counters: kernels on the host are not measured.
)");
}

TEST(Report, TableFitsTheTerminal) {
  for (const std::string &line : lines_of(report_table(sample_report()))) EXPECT_LE(line.size(), 132u) << line;
}

TEST(Report, DetailShowsAllColumns) {
  Report report = sample_report();
  report.detail = true;
  report.compare.products = 200;
  report.compare.checks = 6;
  report.compare.seconds = 0.25;
  const auto lines = lines_of(report_table(report));
  for (const char *heading :
       {"Ranks", "Min[s]", "Least MB", "Issued",  "Level", "Regime",  "Attain.", "MMA",   "rho",     "eta", "Limit",
        "Bandw", "Arith",  "J/call",   "J/GFLOP", "Timed", "DRAM MB", "/count",  "L2 MB", "/useful", "DMMA"})
    EXPECT_NE(lines[3].find(heading), std::string::npos) << heading;
  const auto tensor = std::find_if(lines.begin(), lines.end(), [](const std::string &line) {
    return line.find("spmv/blocks/tensor_core ") != std::string::npos;
  });
  ASSERT_NE(tensor, lines.end());
  EXPECT_EQ(tensor->size(), lines[3].size()) << "a column is wider than its heading says";
  EXPECT_NE(tensor->find("m16n8k16  2.02  1.50 1.00"), std::string::npos) << *tensor;
  EXPECT_NE(tensor->find("7.000e-02     0.7"), std::string::npos) << *tensor;
  const auto cusparse = std::find_if(
    lines.begin(), lines.end(), [](const std::string &line) { return line.find("spmv/csr/cusparse ") != std::string::npos; });
  EXPECT_NE(cusparse->find("     100     2      39 "), std::string::npos) << *cusparse;
  EXPECT_NE(cusparse->find("     790  0.988      950   1.050        0"), std::string::npos) << *cusparse;
  EXPECT_EQ(cusparse->size(), lines[3].size());
  EXPECT_EQ(
    std::count(lines.begin(), lines.end(),
               "-mat_tcbound_compare: 200 extra products and 6 comparisons of results took 0.25 s of the slowest rank."),
    1);
}

TEST(Report, CsvRowsHaveTheHeadersColumns) {
  const auto lines = lines_of(report_csv(sample_report()));
  ASSERT_EQ(lines.size(), 8u);
  const auto head = csv_fields(lines[0]);
  for (const std::string &line : lines) {
    const auto fields = csv_fields(line);
    EXPECT_EQ(fields.size(), head.size()) << line;
    EXPECT_EQ(fields[0], "TCBound");
  }
  const auto at = [&](const char *name) {
    return static_cast<std::size_t>(std::find(head.begin(), head.end(), name) - head.begin());
  };
  const auto first = csv_fields(lines[1]), third = csv_fields(lines[3]);
  EXPECT_EQ(first.at(at("bytes")), "2000000000");
  EXPECT_EQ(first.at(at("bytes_per_second")), "20000000000");
  EXPECT_EQ(first.at(at("ceiling_share")), "0.8");
  EXPECT_EQ(third.at(at("matrix")), "timed, \"quoted\"");
  EXPECT_EQ(third.at(at("bytes_per_second")), ""); // no time passed
}

TEST(Report, JsonHasTheSameNumbers) {
  ReportContext context;
  context.date = "2026-01-02T03:04:05Z";
  context.command_line = {"./app", "-n", "\xff"}; // not UTF-8
  context.petsc_version = "3.26.1";
  const auto report = sample_report();
  const auto json = nlohmann::json::parse(report_json(report, context));
  EXPECT_EQ(json["version"], 2);
  EXPECT_EQ(json["ranks"], 2);
  EXPECT_EQ(json["petsc_version"], "3.26.1");
  EXPECT_EQ(json["command_line"][1], "-n");
  const auto &host = json["machines"][0], &device = json["machines"][1];
  EXPECT_EQ(host["files"], "calibrated 2026-12-01");
  EXPECT_EQ(host["peaks_flops_per_s"]["host"], 5e10);
  EXPECT_FALSE(host["levels"].contains("l2"));
  EXPECT_EQ(device["device"], "NVIDIA H200");
  EXPECT_EQ(device["levels"]["dram"]["bandwidth_bytes_per_s"], 4.249e12);
  EXPECT_EQ(device["mma_peaks_flops_per_s"]["m16n8k16"], 66.5e12);
  EXPECT_EQ(device["launch_seconds"], 2.5e-6);
  ASSERT_EQ(json["rows"].size(), report.rows.size());
  const auto &row = json["rows"][0];
  EXPECT_EQ(row["kernel"], "spmv/csr/host");
  EXPECT_EQ(row["memory"], "host");
  EXPECT_EQ(row["calls_min"], 90);
  EXPECT_EQ(row["calls_max"], 100);
  EXPECT_EQ(row["seconds_median"], 1e-3);
  EXPECT_EQ(row["compulsory_bytes"], 1.5e9);
  EXPECT_EQ(row["issued_flops"], 3e8);
  EXPECT_EQ(row["flops_per_byte"], 0.15);
  EXPECT_DOUBLE_EQ(row["ceiling_share"].get<double>(), 0.8);
  EXPECT_DOUBLE_EQ(row["roof_share"].get<double>(), 0.8);
  EXPECT_EQ(row["regime"], "memory");
  EXPECT_TRUE(row["alpha"].is_null());
  EXPECT_TRUE(row["joules_per_call"].is_null());
  EXPECT_TRUE(json["rows"][2]["bytes_per_second"].is_null());
  const auto &tensor = json["rows"][5];
  EXPECT_EQ(tensor["partner"], "spmv/blocks/cuda_core");
  EXPECT_EQ(tensor["partner_is_twin"], 1);
  EXPECT_DOUBLE_EQ(tensor["ratio"].get<double>(), 1.04);
  EXPECT_EQ(tensor["rho"], 1.5);
  EXPECT_EQ(tensor["mma"], "m16n8k16");
  EXPECT_DOUBLE_EQ(tensor["joules_per_useful_gflop"].get<double>(), 0.7);
  EXPECT_EQ(tensor["measured_ranks"], 0);
  EXPECT_TRUE(tensor["measured_bytes_ratio"].is_null());
  const auto &cusparse = json["rows"][6];
  EXPECT_EQ(cusparse["calls_timed"], 39);
  EXPECT_EQ(cusparse["measured_ranks"], 2);
  EXPECT_EQ(cusparse["measured_dram_read_bytes"], 7.1e8);
  EXPECT_EQ(cusparse["measured_dram_write_bytes"], 0.8e8);
  EXPECT_DOUBLE_EQ(cusparse["measured_bytes_ratio"].get<double>(), 0.9875);
  EXPECT_EQ(cusparse["measured_flops"], 1.05e8);
  EXPECT_DOUBLE_EQ(cusparse["measured_flops_ratio"].get<double>(), 1.05);
  EXPECT_EQ(cusparse["measured_mma_instructions"], 0);
  EXPECT_EQ(json["counters"]["seconds"], 1.5);
  EXPECT_EQ(json["counters"]["notes"][0], "kernels on the host are not measured");

  const auto lines = lines_of(report_csv(report));
  const auto head = csv_fields(lines[0]), first = csv_fields(lines[1]);
  for (std::size_t i = 1; i < head.size(); ++i) {
    ASSERT_TRUE(row.contains(head[i])) << head[i];
    if (row[head[i]].is_number())
      EXPECT_NEAR(row[head[i]].get<double>(), std::stod(first[i]), 1e-12 * std::stod(first[i]));
    else
      EXPECT_EQ(row[head[i]].is_null() ? "" : row[head[i]].get<std::string>(), first[i]) << head[i];
  }
}

TEST(Report, PythonListsOneDictionaryPerRow) {
  const auto lines = lines_of(report_python(sample_report()));
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_EQ(lines[0], "TCBound = []");
  EXPECT_EQ(lines[1].rfind("TCBound.append({\"event\" : \"MatMult\", \"matrix\" : \"A\", ", 0), 0u) << lines[1];
  EXPECT_NE(lines[3].find("\"matrix\" : \"timed, \\\"quoted\\\"\""), std::string::npos) << lines[3];
  EXPECT_NE(lines[3].find("\"bytes_per_second\" : None"), std::string::npos) << lines[3];
}
