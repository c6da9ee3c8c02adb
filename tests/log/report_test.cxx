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
  row.seconds_min = 0.5e-3;
  row.seconds_median = 1e-3;
  row.seconds_total_min = 0.08;
  row.seconds_total_max = 0.1;
  row.bytes = 2e9;
  row.compulsory_bytes = 1.5e9;
  row.useful_flops = 3e8;
  row.issued_flops = 6e8;
  return row;
}

Report sample_report() {
  Report report;
  report.ranks = 2;
  report.ceilings = {{MemorySpace::host, 2.5e10}, {MemorySpace::cuda, 4.123e12}};
  report.rows.push_back(make_row("MatMult", "A", "spmv/csr/host", MemorySpace::host));
  report.rows.push_back(
    make_row("MatMultTranspose", "fieldsplit_velocity_mg_levels_2_", "spmv/csr/cuda_core", MemorySpace::cuda));
  report.rows.push_back(make_row("Never", "timed, \"quoted\"", "spmv/csr/host", MemorySpace::host));
  ReportRow &last = report.rows.back();
  last.seconds_median = last.seconds_total_max = last.seconds_total_min = last.bytes = 0;
  report.rows.push_back(make_row("MatMult", "B", "spmv/a_very_long_format_name/tensor_core", MemorySpace::cuda));
  report.rows.back().calls_max = 123456789;
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

TEST(Report, Table) {
  EXPECT_EQ(report_table(sample_report()), R"(
tcbound: roofline of each kernel
------------------------------------------------------------------------------------------------------------------------------------
Event            Matrix    Kernel                        Calls Median[s]  Total[s] Ratio Byte/call FLOP/call     GB/s  FLOP/B  Share
------------------------------------------------------------------------------------------------------------------------------------
MatMult          A         spmv/csr/host                   100 1.000e-03 1.000e-01   1.2 2.000e+07 3.000e+06   20.000  0.1500  80.0%
MatMultTranspose ..vels_2_ spmv/csr/cuda_core              100 1.000e-03 1.000e-01   1.2 2.000e+07 3.000e+06   20.000  0.1500   0.5%
Never            ..quoted" spmv/csr/host                   100 0.000e+00 0.000e+00     - 0.000e+00 3.000e+06        -       -      -
MatMult          B         .._format_name/tensor_core  1.2e+08 1.000e-03 1.000e-01   1.2 1.620e+01 2.430e+00   20.000  0.1500   0.5%
------------------------------------------------------------------------------------------------------------------------------------
Median, Total: device time of one call and of all, slowest rank; Ratio: Total of the slowest to the fastest rank.
Byte, FLOP (useful): summed over ranks; GB/s = bytes/Total; FLOP/B = useful FLOPs/bytes; Share = GB/s / ceiling.
Ceiling: 25 GB/s host, 4123 GB/s cuda; measured: y = q x on long arrays, ranks at once, in turns on a shared device; read + written.
)");
}

TEST(Report, TableFitsTheTerminal) {
  for (const std::string &line : lines_of(report_table(sample_report()))) EXPECT_LE(line.size(), 132u) << line;
}

TEST(Report, CsvRowsHaveTheHeadersColumns) {
  const auto lines = lines_of(report_csv(sample_report()));
  ASSERT_EQ(lines.size(), 5u);
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
  context.devices = {{MemorySpace::cuda, "NVIDIA H200"}};
  const auto report = sample_report();
  const auto json = nlohmann::json::parse(report_json(report, context));
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["ranks"], 2);
  EXPECT_EQ(json["petsc_version"], "3.26.1");
  EXPECT_EQ(json["command_line"][1], "-n");
  EXPECT_EQ(json["devices"][0]["name"], "NVIDIA H200");
  EXPECT_EQ(json["ceilings"][1]["bytes_per_second"], 4.123e12);
  ASSERT_EQ(json["rows"].size(), report.rows.size());
  const auto &row = json["rows"][0];
  EXPECT_EQ(row["kernel"], "spmv/csr/host");
  EXPECT_EQ(row["memory"], "host");
  EXPECT_EQ(row["calls_min"], 90);
  EXPECT_EQ(row["calls_max"], 100);
  EXPECT_EQ(row["seconds_median"], 1e-3);
  EXPECT_EQ(row["compulsory_bytes"], 1.5e9);
  EXPECT_EQ(row["issued_flops"], 6e8);
  EXPECT_EQ(row["flops_per_byte"], 0.15);
  EXPECT_DOUBLE_EQ(row["ceiling_share"].get<double>(), 0.8);
  EXPECT_TRUE(json["rows"][2]["bytes_per_second"].is_null());

  const auto lines = lines_of(report_csv(report));
  const auto head = csv_fields(lines[0]), first = csv_fields(lines[1]);
  for (std::size_t i = 1; i < head.size(); ++i) {
    ASSERT_TRUE(row.contains(head[i])) << head[i];
    if (row[head[i]].is_number())
      EXPECT_NEAR(row[head[i]].get<double>(), std::stod(first[i]), 1e-12 * std::stod(first[i]));
    else
      EXPECT_EQ(row[head[i]], first[i]);
  }
}

TEST(Report, PythonListsOneDictionaryPerRow) {
  const auto lines = lines_of(report_python(sample_report()));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0], "TCBound = []");
  EXPECT_EQ(lines[1].rfind("TCBound.append({\"event\" : \"MatMult\", \"matrix\" : \"A\", ", 0), 0u) << lines[1];
  EXPECT_NE(lines[3].find("\"matrix\" : \"timed, \\\"quoted\\\"\""), std::string::npos) << lines[3];
  EXPECT_NE(lines[3].find("\"bytes_per_second\" : None"), std::string::npos) << lines[3];
}
