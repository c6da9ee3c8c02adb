// Figures of vendors and, for the H200, our own measurements. Peaks are dense: the vendor's figures "with sparsity" halved.
#include "machine.h"

namespace tcbound::model {

namespace {

constexpr double tera = 1e12, giga = 1e9, kibi = 1024, mebi = 1024 * 1024;

Figure given(double value, const std::string &source) { return Figure{value, 0, source, ""}; }

void set_measured(Figure &figure, double value, const std::string &how) {
  figure.measured = value;
  figure.measured_by = how;
}

struct Peak {
  Unit     unit;
  DataType type;
  double   tflops_per_s;
};

void set_peaks(Machine &machine, const std::string &source, const std::vector<Peak> &peaks) {
  for (const Peak &peak : peaks) machine.at(peak.unit, peak.type) = given(peak.tflops_per_s * tera, source);
}

void set_level(Machine &machine, Level level, double bandwidth, double capacity, const std::string &source) {
  if (bandwidth > 0) machine.at(level).bandwidth = given(bandwidth, source);
  if (capacity > 0) machine.at(level).capacity = given(capacity, source);
}

// L1 and shared memory: 32 banks of 4 bytes a clock and SM (CUDA C++ Programming Guide, Compute Capabilities).
double l1_bandwidth(double sms, double clock_hz) { return sms * 32 * 4 * clock_hz; }

Machine v100() {
  Machine machine;
  machine.name = "V100";
  const std::string paper = "NVIDIA Tesla V100 GPU architecture whitepaper (WP-08608), V100 SXM2";
  const std::string a100_paper = "NVIDIA A100 Tensor Core GPU architecture whitepaper";
  const double      clock = 1.53 * giga; // boost
  machine.sm_count = given(80, paper);
  set_level(machine, Level::dram, 900 * giga, 32 * giga, "NVIDIA V100 datasheet, SXM2 32 GB");
  set_level(machine, Level::l2, 2048 * clock, 6 * mebi, a100_paper + " (V100: 2048 bytes/clock, at 1.53 GHz)");
  set_level(machine, Level::l1, l1_bandwidth(80, clock), 80 * 128 * kibi,
            paper + " (128 KB an SM); 128 bytes/clock/SM of the CUDA C++ Programming Guide at 1.53 GHz");
  // Volta's tensor cores take FP16 only.
  set_peaks(machine, paper, {{Unit::cuda_core, DataType::fp64, 7.8}, {Unit::cuda_core, DataType::fp32, 15.7}});
  set_peaks(machine, paper, {{Unit::tensor_core, DataType::fp16, 125}});
  set_peaks(machine, a100_paper, {{Unit::cuda_core, DataType::fp16, 31.4}});
  return machine;
}

Machine a100(const std::string &name, double bandwidth, const std::string &board) {
  Machine machine;
  machine.name = name;
  const std::string paper = "NVIDIA A100 Tensor Core GPU architecture whitepaper";
  const std::string sheet = "NVIDIA A100 datasheet, " + board;
  const double      clock = 1.41 * giga; // boost
  machine.sm_count = given(108, paper);
  set_level(machine, Level::dram, bandwidth, 80 * giga, sheet);
  set_level(machine, Level::l2, 5120 * clock, 40 * mebi, paper + " (5120 bytes/clock, at 1.41 GHz)");
  set_level(machine, Level::l1, l1_bandwidth(108, clock), 108 * 192 * kibi,
            paper + " (192 KB an SM); 128 bytes/clock/SM of the CUDA C++ Programming Guide at 1.41 GHz");
  set_peaks(machine, sheet,
            {{Unit::cuda_core, DataType::fp64, 9.7},
             {Unit::cuda_core, DataType::fp32, 19.5},
             {Unit::tensor_core, DataType::fp64, 19.5},
             {Unit::tensor_core, DataType::tf32, 156},
             {Unit::tensor_core, DataType::fp16, 312},
             {Unit::tensor_core, DataType::bf16, 312}});
  set_peaks(machine, paper, {{Unit::cuda_core, DataType::fp16, 78}, {Unit::cuda_core, DataType::bf16, 39}});
  machine.mma_peaks[{"m8n8k4", DataType::fp64}] =
    given(19.5 * tera, sheet + "; m8n8k4 is the only FP64 shape of sm_80 (PTX ISA, mma.sync)");
  return machine;
}

// FP64 and FP32 are the same in all three datasheets; they do not say by which MMA shape the FP64 peak is reached.
void set_hopper_peaks(Machine &machine, const std::string &sheet) {
  set_peaks(machine, sheet,
            {{Unit::cuda_core, DataType::fp64, 34},
             {Unit::cuda_core, DataType::fp32, 67},
             {Unit::tensor_core, DataType::fp64, 67},
             {Unit::tensor_core, DataType::tf32, 989.0 / 2},
             {Unit::tensor_core, DataType::fp16, 1979.0 / 2},
             {Unit::tensor_core, DataType::bf16, 1979.0 / 2}});
  set_level(machine, Level::l1, 0, 132 * 256 * kibi, "NVIDIA Hopper Tuning Guide (256 KB an SM)");
}

Machine h100() {
  Machine           machine;
  const std::string paper = "NVIDIA H100 Tensor Core GPU architecture whitepaper, SXM5", sheet = "NVIDIA H100 datasheet, SXM";
  machine.name = "H100-SXM";
  machine.sm_count = given(132, paper);
  set_hopper_peaks(machine, sheet);
  set_peaks(machine, paper, {{Unit::cuda_core, DataType::fp16, 133.8}, {Unit::cuda_core, DataType::bf16, 133.8}});
  set_level(machine, Level::dram, 3.35 * tera, 80 * giga, sheet);
  set_level(machine, Level::l2, 0, 50 * mebi, paper);
  return machine;
}

Machine gh200() {
  Machine           machine;
  const std::string sheet = "NVIDIA GH200 Grace Hopper Superchip datasheet, 96 GB HBM3";
  machine.name = "GH200";
  set_hopper_peaks(machine, sheet);
  set_measured(machine.sm_count, 132,
               "reported by the device (mredenti/PowerCapping, OpenCL-Benchmark, driver 555.42.06, no date)");
  set_level(machine, Level::dram, 4 * tera, 96 * giga, sheet);
  return machine;
}

Machine h200() {
  Machine           machine;
  const std::string sheet = "NVIDIA H200 datasheet, SXM";
  const std::string when = "2026-11-29/30, CUDA 13.0, driver not recorded";
  machine.name = "H200";
  set_hopper_peaks(machine, sheet);
  set_measured(machine.sm_count, 132, "reported by the device, " + when);
  set_level(machine, Level::dram, 4.8 * tera, 141 * giga, sheet);
  set_measured(machine.at(Level::dram).bandwidth, 4249 * giga, "y = q x on 4 GiB arrays, " + when);
  set_measured(machine.at(Level::l2).capacity, 60 * mebi, "reported by the device, " + when);
  set_measured(machine.at(Unit::cuda_core, DataType::fp64), 33.0 * tera, "FP64 FMA, " + when);
  set_measured(machine.at(Unit::tensor_core, DataType::fp64), 66.5 * tera, "FP64 MMA m16n8k16, " + when);
  set_measured(machine.mma_peaks[{"m8n8k4", DataType::fp64}], 33.1 * tera, "FP64 MMA m8n8k4, " + when);
  set_measured(machine.mma_peaks[{"m16n8k16", DataType::fp64}], 66.5 * tera, "FP64 MMA m16n8k16, " + when);
  return machine;
}

Machine b200() {
  Machine           machine;
  const std::string sheet = "NVIDIA Blackwell datasheet, HGX B200, one GPU", guide = "NVIDIA Blackwell Tuning Guide";
  machine.name = "B200";
  set_peaks(machine, sheet,
            {{Unit::cuda_core, DataType::fp64, 37},
             {Unit::cuda_core, DataType::fp32, 75},
             {Unit::tensor_core, DataType::fp64, 37},
             {Unit::tensor_core, DataType::tf32, 2200.0 / 2},
             {Unit::tensor_core, DataType::fp16, 4500.0 / 2},
             {Unit::tensor_core, DataType::bf16, 4500.0 / 2}});
  set_measured(machine.sm_count, 148, "reported by the device (pytorch/ao pull request 4002, 2026-03-05, driver not recorded)");
  set_level(machine, Level::dram, 7.7 * tera, 180 * giga, sheet);
  set_measured(machine.at(Level::l2).capacity, 126.5 * mebi,
               "reported by the device (pytorch/ao pull request 4002, 2026-03-05, driver not recorded)");
  set_level(machine, Level::l1, 0, 148 * 256 * kibi, guide + " (256 KB an SM)");
  return machine;
}

} // namespace

std::vector<Machine> built_in_machines() {
  return {v100(),
          a100("A100-80GB", 2039 * giga, "80 GB SXM"),
          a100("A100-80GB-PCIe", 1935 * giga, "80 GB PCIe"),
          h100(),
          gh200(),
          h200(),
          b200()};
}

} // namespace tcbound::model
