#include "src/model/present.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace tcbound::model;

namespace {

// A cache folder of its own for each test.
class Present : public testing::Test {
protected:
  void SetUp() override {
    char name[] = "/tmp/tcbound-cache-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    cache_ = name;
    std::filesystem::create_directories(cache_ + "/tcbound/machines");
    setenv("XDG_CACHE_HOME", cache_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("XDG_CACHE_HOME");
    std::filesystem::remove_all(cache_);
  }
  std::string calibrate(const std::string &id, const std::string &text) const {
    const std::string file = calibration_file(id);
    std::ofstream(file) << text;
    return file;
  }
  Machine machine_of(const DeviceName &device, const std::string &user_file = "", const Machine &measured = {}) const {
    return present_machine(device, measured, given_machine(device, user_file).machine);
  }

  std::string cache_;
  DeviceName  h200{"NVIDIA H200", "GPU-1", "580.1", 0};
};

Machine measured_here() {
  Machine machine;
  machine.at(Level::dram).bandwidth = Figure{0, 4.1e12, "", "this run"};
  return machine;
}

} // namespace

TEST_F(Present, NamesOfFiles) {
  EXPECT_EQ(calibration_id(std::string("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\xfe\xff", 16)),
            "GPU-00010203-0405-0607-0809-0a0b0c0dfeff");
  EXPECT_EQ(calibration_file(host_calibration_id("node7")), cache_ + "/tcbound/machines/host-node7.json");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/home/me", 1);
  EXPECT_EQ(calibration_file("GPU-1"), "/home/me/.cache/tcbound/machines/GPU-1.json");
}

TEST_F(Present, BuiltInMachinesAreKnownByTheDriversSpelling) {
  for (const char *name : {"Tesla V100-SXM2-32GB", "NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe", "NVIDIA H100 80GB HBM3",
                           "NVIDIA GH200 480GB", "NVIDIA H200", "NVIDIA B200"})
    EXPECT_NO_THROW(find_machine(built_in_machines(), built_in_name_of(name))) << name;
  EXPECT_EQ(built_in_name_of("NVIDIA H200 NVL"), "");
  EXPECT_EQ(machine_of(h200).name, "H200");
  EXPECT_DOUBLE_EQ(machine_of(h200).mma_peak("m16n8k16", DataType::fp64), 66.5e12);
  const Machine unknown = machine_of({"NVIDIA H200 NVL", "GPU-2", "", 0});
  EXPECT_EQ(unknown.name, "NVIDIA H200 NVL");
  EXPECT_THROW(unknown.bandwidth(Level::dram), UnknownFigure);
}

TEST_F(Present, FilesComeBeforeTheRunAndTheRunBeforeTheBuiltIn) {
  EXPECT_DOUBLE_EQ(machine_of(h200, "", measured_here()).bandwidth(Level::dram), 4.1e12);
  calibrate("GPU-1", R"({"machines": [{"name": "H200", "measured": {"date": "2026-12-01", "driver": "580.1"},
    "launch_seconds": 3e-6, "levels": {"dram": {"bandwidth_bytes_per_s": 4.2e12}}}]})");
  const Machine calibrated = machine_of(h200, "", measured_here());
  EXPECT_DOUBLE_EQ(calibrated.bandwidth(Level::dram), 4.2e12);
  EXPECT_DOUBLE_EQ(calibrated.launch_seconds(), 3e-6);
  EXPECT_DOUBLE_EQ(calibrated.peak(Unit::cuda_core, DataType::fp64), 33e12); // left alone
  EXPECT_EQ(given_machine(h200, "").origin, "calibrated 2026-12-01");
  const std::string user = calibrate("user", R"({"machines": [{"name": "V100"}, {"name": "mine", "device": "NVIDIA H200",
    "levels": {"dram": {"bandwidth_bytes_per_s": 4.4e12}}}]})");
  EXPECT_DOUBLE_EQ(machine_of(h200, user, measured_here()).bandwidth(Level::dram), 4.4e12);
  EXPECT_EQ(given_machine(h200, user).origin, user + ", calibrated 2026-12-01");
}

TEST_F(Present, AnotherDriverIsTold) {
  calibrate("GPU-1", R"({"machines": [{"name": "H200", "measured": {"date": "2026-12-01", "driver": "570.9"},
    "levels": {"dram": {"bandwidth_bytes_per_s": 4.2e12}}}]})");
  EXPECT_EQ(given_machine(h200, "").origin, "calibrated 2026-12-01 with driver 570.9, now 580.1");
}

TEST_F(Present, HostsGoByTheNumberOfProcesses) {
  calibrate("host-node7", R"({"machines": [
    {"name": "host/1", "levels": {"dram": {"bandwidth_bytes_per_s": 1e10}}, "peaks_flops_per_s": {"host": {"fp64": 5e10}}},
    {"name": "host/2", "levels": {"dram": {"bandwidth_bytes_per_s": 1.5e10}}}]})");
  const auto host = [](int processes) { return DeviceName{"AMD EPYC", "host-node7", "Linux 6.1", processes}; };
  EXPECT_DOUBLE_EQ(machine_of(host(1)).bandwidth(Level::dram), 1e10);
  EXPECT_DOUBLE_EQ(machine_of(host(1)).peak(Unit::host, DataType::fp64), 5e10);
  EXPECT_DOUBLE_EQ(machine_of(host(2)).bandwidth(Level::dram), 1.5e10);
  EXPECT_THROW(machine_of(host(3)).bandwidth(Level::dram), UnknownFigure);
  EXPECT_EQ(given_machine(host(3), "").origin, "");
}

TEST_F(Present, AMalformedCalibrationIsAnErrorThatNamesFileAndField) {
  const std::string file = calibrate("GPU-1", R"({"machines": [{"name": "H200", "launch_seconds": -1}]})");
  try {
    given_machine(h200, "");
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error &e) {
    EXPECT_EQ(std::string(e.what()), file + ": machines[0].launch_seconds must be finite and positive");
  }
}
