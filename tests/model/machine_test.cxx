#include "src/model/machine.h"

#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "src/model/bounds.h"

using namespace tcbound::model;

namespace {

// A file that goes with the test.
class MachineFile {
public:
  explicit MachineFile(const std::string &text) {
    char name[] = "/tmp/tcbound-machine-XXXXXX";
    close(mkstemp(name));
    name_ = name;
    std::ofstream(name_) << text;
  }
  ~MachineFile() { std::remove(name_.c_str()); }
  std::vector<Machine> load() const { return load_machines(name_, built_in_machines()); }
  const std::string   &name() const { return name_; }

private:
  std::string name_;
};

template <class Exception, class Call> std::string message_of(Call call) {
  try {
    call();
  } catch (const Exception &e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

void expect_contains(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in '" << text << "'";
}

Machine built_in(const std::string &name) { return find_machine(built_in_machines(), name); }

double fp64_alpha(const Machine &m) {
  return m.peak(Unit::tensor_core, DataType::fp64) / m.peak(Unit::cuda_core, DataType::fp64);
}

double fp64_balance(const Machine &m) { return balance(m.peak(Unit::cuda_core, DataType::fp64), m.bandwidth(Level::dram)); }

} // namespace

// The paper's balances: A100 9.7 TFLOP/s over 1.935 TB/s (80 GB PCIe; the SXM board's 2.039 TB/s gives 4.76), GH200 34 over 4.
TEST(Machine, PublishedBalances) {
  EXPECT_NEAR(fp64_balance(built_in("A100-80GB-PCIe")), 5.0, 0.02);
  EXPECT_NEAR(fp64_balance(built_in("A100-80GB")), 4.76, 0.01);
  EXPECT_DOUBLE_EQ(fp64_balance(built_in("GH200")), 8.5);
}

// 312 TFLOP/s of FP16 over the rounded 2 TB/s; the boards are within 4 % of it.
TEST(Machine, PublishedHalfPrecisionRidge) {
  const Machine sxm = built_in("A100-80GB"), pcie = built_in("A100-80GB-PCIe");
  const double  peak = sxm.peak(Unit::tensor_core, DataType::fp16);
  EXPECT_DOUBLE_EQ(balance(peak, 2e12), 156);
  EXPECT_NEAR(balance(peak, sxm.bandwidth(Level::dram)), 153.0, 0.1);
  EXPECT_NEAR(balance(peak, pcie.bandwidth(Level::dram)), 161.2, 0.1);
}

TEST(Machine, AlphaOfDoublePrecision) {
  EXPECT_NEAR(fp64_alpha(built_in("A100-80GB")), 2, 0.02);
  EXPECT_NEAR(fp64_alpha(built_in("H100-SXM")), 2, 0.03);
  EXPECT_NEAR(fp64_alpha(built_in("GH200")), 2, 0.03);
  EXPECT_DOUBLE_EQ(fp64_alpha(built_in("B200")), 1);
  EXPECT_DOUBLE_EQ(speedup_limit(fp64_alpha(built_in("B200"))), 1);
}

TEST(Machine, ShapesOfTheH200AreMeasured) {
  const Machine h200 = built_in("H200");
  const double  peak = h200.peak(Unit::cuda_core, DataType::fp64);
  EXPECT_NEAR(h200.mma_peak("m8n8k4", DataType::fp64) / peak, 1.00, 0.005);
  EXPECT_NEAR(h200.mma_peak("m16n8k16", DataType::fp64) / peak, 2.02, 0.005);
  const Figure &shape = h200.mma_peaks.at({"m8n8k4", DataType::fp64});
  EXPECT_TRUE(shape.is_measured());
  expect_contains(shape.value_source(), "2026-11-29");
  EXPECT_THROW(h200.mma_peak("m16n8k4", DataType::fp64), UnknownFigure);
}

TEST(Machine, MeasuredValuesOverrideTheVendors) {
  const Figure bandwidth = built_in("H200").at(Level::dram).bandwidth;
  EXPECT_DOUBLE_EQ(bandwidth.vendor, 4.8e12);
  EXPECT_DOUBLE_EQ(bandwidth.value(), 4.249e12);
}

TEST(Machine, EveryKnownFigureNamesItsSource) {
  const auto check = [](const Machine &m, const Figure &f) {
    EXPECT_EQ(f.vendor > 0, !f.source.empty()) << m.name;
    EXPECT_EQ(f.measured > 0, !f.measured_by.empty()) << m.name;
  };
  for (const Machine &machine : built_in_machines()) {
    check(machine, machine.sm_count);
    for (const MemoryLevel &level : machine.levels) {
      check(machine, level.bandwidth);
      check(machine, level.capacity);
    }
    for (const auto &unit : machine.peaks)
      for (const Figure &figure : unit) check(machine, figure);
    for (const auto &peak : machine.mma_peaks) check(machine, peak.second);
    EXPECT_GT(machine.sm_count_value(), 0);
    EXPECT_LT(machine.capacity(Level::l1), machine.capacity(Level::dram));
  }
}

TEST(Machine, UnknownFiguresAreErrorsThatNameThem) {
  const Machine v100 = built_in("V100"), gh200 = built_in("GH200");
  expect_contains(message_of<UnknownFigure>([&] { v100.peak(Unit::tensor_core, DataType::fp64); }), "V100: the fp64 peak");
  expect_contains(message_of<UnknownFigure>([&] { gh200.mma_peak("m16n8k16", DataType::fp64); }), "m16n8k16");
  expect_contains(message_of<UnknownFigure>([&] { gh200.bandwidth(Level::l2); }), "the bandwidth of l2");
  EXPECT_THROW(Machine{}.sm_count_value(), UnknownFigure);
}

TEST(Machine, UnknownNamesListTheValidOnes) {
  const auto machines = built_in_machines();
  const auto message = message_of<std::invalid_argument>([&] { find_machine(machines, "H20"); });
  expect_contains(message, "did you mean H200?");
  for (const Machine &machine : machines) expect_contains(message, machine.name);
  expect_contains(message_of<std::invalid_argument>([] { data_type_of("fp65"); }), "did you mean fp64?");
  expect_contains(message_of<std::invalid_argument>([] { mma_shape_of("m8n8k5"); }), "did you mean m8n8k4?");
  EXPECT_THROW(find_machine({}, "H200"), std::invalid_argument);
}

TEST(MachineFileReader, AddsAMachine) {
  const MachineFile file(R"({"machines": [{"name": "Mine", "source": "a note", "sm_count": 4,
    "levels": {"dram": {"bandwidth_bytes_per_s": 1e11, "capacity_bytes": 8e9}, "l2": {"capacity_bytes": 1e6}},
    "peaks_flops_per_s": {"cuda_core": {"fp64": 5e11}, "tensor_core": {"bf16": 4e12}},
    "mma_peaks_flops_per_s": {"m16n16k16": {"bf16": 3.9e12}}}]})");
  const auto        machines = file.load();
  const Machine     mine = find_machine(machines, "Mine");
  EXPECT_EQ(machines.size(), built_in_machines().size() + 1);
  EXPECT_DOUBLE_EQ(fp64_balance(mine), 5);
  EXPECT_DOUBLE_EQ(mine.capacity(Level::l2), 1e6);
  EXPECT_DOUBLE_EQ(mine.mma_peak("m16n16k16", DataType::bf16), 3.9e12);
  EXPECT_EQ(mine.at(Level::dram).bandwidth.value_source(), "a note");
  EXPECT_FALSE(mine.at(Level::dram).bandwidth.is_measured());
  EXPECT_THROW(mine.bandwidth(Level::l2), UnknownFigure);
}

TEST(MachineFileReader, OverridesOnlyWhatItGives) {
  const MachineFile file(R"({"machines": [{"name": "H200", "peaks_flops_per_s": {"cuda_core": {"fp64": 30e12}}},
    {"name": "GH200", "source": "calibration", "measured": {"date": "2026-12-01", "driver": "580.1"},
     "levels": {"dram": {"bandwidth_bytes_per_s": 3.7e12}}}]})");
  const auto        machines = file.load();
  const Machine     h200 = find_machine(machines, "H200"), gh200 = find_machine(machines, "GH200");
  EXPECT_EQ(machines.size(), built_in_machines().size());
  EXPECT_DOUBLE_EQ(h200.peak(Unit::cuda_core, DataType::fp64), 30e12); // over our own measurement too
  EXPECT_EQ(h200.at(Unit::cuda_core, DataType::fp64).value_source(), file.name());
  EXPECT_DOUBLE_EQ(h200.bandwidth(Level::dram), 4.249e12);
  EXPECT_DOUBLE_EQ(gh200.bandwidth(Level::dram), 3.7e12);
  EXPECT_DOUBLE_EQ(gh200.at(Level::dram).bandwidth.vendor, 4e12);
  EXPECT_EQ(gh200.at(Level::dram).bandwidth.value_source(), "calibration, measured 2026-12-01, driver 580.1");
}

struct BadFile {
  const char *text, *field;
};

class MachineFileErrors : public testing::TestWithParam<BadFile> {};

TEST_P(MachineFileErrors, NameFileAndField) {
  const MachineFile file(GetParam().text);
  const std::string message = message_of<std::runtime_error>([&] { file.load(); });
  expect_contains(message, file.name());
  expect_contains(message, GetParam().field);
}

INSTANTIATE_TEST_SUITE_P(
  Bad, MachineFileErrors,
  testing::Values(
    BadFile{"", "is no valid JSON"}, BadFile{"{", "is no valid JSON"}, BadFile{"[]", "the file must be an object"},
    BadFile{"{}", "machines must be an array"}, BadFile{R"({"machine": []})", "did you mean machines?"},
    BadFile{R"({"machines": [3]})", "machines[0] must be an object"},
    BadFile{R"({"machines": [{"sm_count": 3}]})", "machines[0].name is missing"},
    BadFile{R"({"machines": [{"name": ""}]})", "machines[0].name must be a non-empty string"},
    BadFile{R"({"machines": [{"name": "A"}, {"name": "B", "smcount": 3}]})", "machines[1].smcount is no field"},
    BadFile{R"({"machines": [{"name": "A", "sm_count": 0}]})", "machines[0].sm_count must be finite and positive"},
    BadFile{R"({"machines": [{"name": "A", "sm_count": -1}]})", "machines[0].sm_count must be finite and positive"},
    BadFile{R"({"machines": [{"name": "A", "sm_count": "4"}]})", "machines[0].sm_count must be a number"},
    BadFile{R"({"machines": [{"name": "A", "sm_count": NaN}]})", "is no valid JSON"},
    BadFile{R"({"machines": [{"name": "A", "sm_count": 1e999}]})", ""},
    BadFile{R"({"machines": [{"name": "A", "measured": {"date": "today"}}]})", "machines[0].measured.driver is missing"},
    BadFile{R"({"machines": [{"name": "A", "levels": {"l3": {}}}]})", "machines[0].levels.l3 is no field"},
    BadFile{R"({"machines": [{"name": "A", "levels": {"l2": {"bandwidth": 1}}}]})",
            "machines[0].levels.l2.bandwidth is no field"},
    BadFile{R"({"machines": [{"name": "A", "levels": {"l2": 1}}]})", "machines[0].levels.l2 must be an object"},
    BadFile{R"({"machines": [{"name": "A", "peaks_flops_per_s": {"cuda_core": {"fp63": 1}}}]})", "did you mean fp64?"},
    BadFile{R"({"machines": [{"name": "A", "peaks_flops_per_s": {"cuda_core": {"fp64": null}}}]})",
            "machines[0].peaks_flops_per_s.cuda_core.fp64 must be a number"},
    BadFile{R"({"machines": [{"name": "A", "mma_peaks_flops_per_s": {"m8n8k5": {"fp64": 1}}}]})", "did you mean m8n8k4?"}));

TEST(MachineFileReader, AMissingFileIsAnError) {
  expect_contains(message_of<std::runtime_error>([] { load_machines("/nowhere/machine.json", {}); }),
                  "/nowhere/machine.json: cannot be opened");
}
