#include "apps/calibrate/report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace tcbound;
using namespace tcbound::calibrate;

namespace {

Measurement made(const std::string &key, Quantity quantity, std::vector<double> values) {
  Measurement m(key, key, "made up", quantity, 1e9);
  m.values = std::move(values);
  return m;
}

Subject hopper() {
  Subject s;
  s.heading = "NVIDIA H200";
  s.vendor = model::find_machine(model::built_in_machines(), "H200");
  s.name = "H200";
  s.device = "NVIDIA H200";
  s.driver = "580.95.05";
  s.sm_count = 100;
  s.facts = {{{"sm_count"}, 132}};
  Measurement dram = made("dram_scale", Quantity::bandwidth, {4.3e12, 4.2e12, 4.249e12});
  dram.keep_in(bandwidth_of("dram"));
  Measurement clock = made("sm_clock", Quantity::clock, {2e9});
  clock.work = 0;
  Measurement small = made("m8n8k4", Quantity::arithmetic, {33.1e12}),
              large = made("m16n8k16", Quantity::arithmetic, {66.5e12});
  Measurement half = made("half", Quantity::arithmetic, {600e12}), none = made("none", Quantity::arithmetic, {});
  small.field = {"mma_peaks_flops_per_s", "m8n8k4", "fp64"};
  large.field = {"mma_peaks_flops_per_s", "m16n8k16", "fp64"};
  half.field = {"mma_peaks_flops_per_s", "m16n8k16", "fp16"};
  small.against = large.against = {"peaks_flops_per_s", "tensor_core", "fp64"};
  none.why_not = "needs another device";
  s.measurements = {dram, clock, small, large, half, none};
  return s;
}

} // namespace

TEST(CalibrateMeasurement, MedianAndSpread) {
  const Measurement m = made("m", Quantity::time, {5, 1, 4, 2, 3});
  EXPECT_DOUBLE_EQ(m.median(), 3);
  EXPECT_DOUBLE_EQ(m.spread(), 0.5 * (4.0 - 2.0) / 3);
  EXPECT_DOUBLE_EQ(made("m", Quantity::time, {7}).median(), 7);
  EXPECT_FALSE(made("m", Quantity::time, {}).measured());
}

TEST(CalibrateMeasurement, WorkOverSeconds) {
  Measurement m = made("m", Quantity::bandwidth, {});
  m.set_seconds({0.5, 0.25});
  EXPECT_EQ(m.values, (std::vector<double>{2e9, 4e9}));
  m.quantity = Quantity::time;
  m.set_seconds({0.5});
  EXPECT_EQ(m.values, (std::vector<double>{0.5}));
}

TEST(CalibrateReport, MachineFile) {
  Subject s = hopper();
  add_tensor_core_peaks(s, 9);
  const auto  file = nlohmann::json::parse(machine_file_text({s}, "2026-12-01"));
  const auto &entry = file.at("machines").at(0);
  EXPECT_EQ(entry.at("name"), "H200");
  EXPECT_EQ(entry.at("device"), "NVIDIA H200");
  EXPECT_EQ(entry.at("measured"), nlohmann::json({{"date", "2026-12-01"}, {"driver", "580.95.05"}}));
  EXPECT_EQ(entry.at("sm_count"), 132);
  EXPECT_DOUBLE_EQ(entry.at("levels").at("dram").at("bandwidth_bytes_per_s"), 4.249e12);
  EXPECT_DOUBLE_EQ(entry.at("mma_peaks_flops_per_s").at("m8n8k4").at("fp64"), 33.1e12);
  // The best shape is the unit's peak in FP64; what one warp reaches in FP16 is not on this device.
  EXPECT_EQ(entry.at("peaks_flops_per_s"), nlohmann::json({{"tensor_core", {{"fp64", 66.5e12}}}}));
}

TEST(CalibrateReport, WarpsReachThePeakBeforeHopper) {
  Subject s = hopper();
  add_tensor_core_peaks(s, 8);
  const auto file = nlohmann::json::parse(machine_file_text({s}, "2026-12-01"));
  EXPECT_DOUBLE_EQ(file["machines"][0]["peaks_flops_per_s"]["tensor_core"]["fp16"], 600e12);
}

TEST(CalibrateReport, Table) {
  const std::string text = table_text(hopper());
  const auto has = [&](const std::string &part) { EXPECT_NE(text.find(part), std::string::npos) << part << '\n' << text; };
  has("dram_scale                4249.0 GB/s        4800  0.885   0.59%     21.2  1.000e+09 B  made up\n");
  has("m8n8k4                     33.10 TFLOP/s     67.0  0.494   0.00%    165.5  1.000e+09 F  made up\n");
  has("none                   left out: needs another device\n");
}

TEST(CalibrateReport, EveryRepeat) {
  const auto rows = nlohmann::json::parse(measurements_text({hopper()}, "2026-12-01"));
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(rows[0].at("values").size(), 3U);
  EXPECT_EQ(rows[0].at("unit"), "bytes/s");
  EXPECT_DOUBLE_EQ(rows[0].at("vendor"), 4.8e12);
  EXPECT_EQ(rows[5].at("left_out"), "needs another device");
}
