// Verdicts of made-up runs on an H200's measured ceilings: 4249 GB/s, FP64 33.0 TFLOP/s, m8n8k4 33.1, m16n8k16 66.5.
#include "src/model/verdict.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace tcbound::model;

namespace {

Machine h200() {
  Machine machine = find_machine(built_in_machines(), "H200");
  machine.launch = Figure{0, 2.5e-6, "", "made up"};
  machine.at(Level::l2).bandwidth = Figure{0, 8e12, "", "made up"};
  return machine;
}

// 100 calls of 1 GB each at `share` of the DRAM roof, `intensity` useful FLOPs a byte.
KernelRun run_of(const char *format, const char *backend, double share = 0.9, double intensity = 0.2) {
  KernelRun run;
  run.op = "spmv";
  run.format = format;
  run.backend = backend;
  run.calls = 100;
  run.bytes = 100e9;
  run.useful_flops = run.issued_flops = intensity * run.bytes;
  run.total_seconds = run.bytes / (share * 4249e9);
  run.median_seconds = run.total_seconds / run.calls;
  return run;
}

KernelRun tensor_run(const char *mma, double share = 0.9, double intensity = 0.2) {
  KernelRun run = run_of("csr", "tensor_core", share, intensity);
  run.mma = mma;
  return run;
}

void expect_contains(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in '" << text << "'";
}

} // namespace

// The instruction decides: the shape of the public FP64 codes gains nothing, the largest one 1.34 at the ridge.
TEST(Verdict, TheBoundIsThatOfTheShape) {
  const Verdict small = judge(h200(), tensor_run("m8n8k4"), {}), large = judge(h200(), tensor_run("m16n8k16"), {});
  EXPECT_NEAR(small.alpha, 1.00, 0.005);
  EXPECT_NEAR(small.limit, 1.00, 0.005);
  EXPECT_NEAR(large.alpha, 2.02, 0.005);
  EXPECT_NEAR(large.limit, 1.34, 0.005);
  EXPECT_NEAR(large.r, 0.2 / (33.0e12 / 4249e9), 1e-12);
  EXPECT_NEAR(large.speedup, (1 + large.r) / (1 + large.r / large.alpha), 1e-12);
  EXPECT_EQ(large.regime, "memory");
  EXPECT_EQ(large.state, State::compliant);
}

TEST(Verdict, ARunOnCudaCoresTellsWhatTensorCoresCouldGain) {
  const Verdict v = judge(h200(), run_of("csr", "cuda_core"), {});
  EXPECT_EQ(v.shape, "m16n8k16");
  EXPECT_NEAR(v.roof_share, 0.9, 1e-12);
  EXPECT_EQ(v.level, Level::dram);
  EXPECT_EQ(v.words, "memory-bound, compliant: 90 % of the DRAM roof; tensor cores (m16n8k16) could gain 1.01x at most");
}

TEST(Verdict, TwinsAreJudgedByTheBound) {
  const KernelRun cuda = run_of("csr", "cuda_core", 0.85), tensor = tensor_run("m16n8k16", 0.86);
  const Verdict   v = judge(h200(), tensor, {cuda, tensor});
  EXPECT_TRUE(v.is_twin);
  EXPECT_EQ(v.partner, "spmv/csr/cuda_core");
  EXPECT_NEAR(v.ratio, 0.86 / 0.85, 1e-12);
  EXPECT_EQ(v.state, State::compliant);
  EXPECT_EQ(v.words, "memory-bound, compliant: 86 % of the DRAM roof; 1.01x as fast as its twin spmv/csr/cuda_core; the bound "
                     "allows 1.01x (m16n8k16)");
  const Verdict other = judge(h200(), cuda, {cuda, tensor});
  EXPECT_NEAR(other.ratio, 0.85 / 0.86, 1e-12);
  EXPECT_EQ(other.state, State::compliant);
}

TEST(Verdict, OverTheBoundIsAMemoryEffect) {
  KernelRun cuda = run_of("csr", "cuda_core", 0.6), tensor = tensor_run("m16n8k16", 0.9);
  tensor.format = "blocks";
  tensor.bytes = 80e9; // and so fewer seconds
  tensor.total_seconds = tensor.bytes / (0.9 * 4249e9);
  tensor.median_seconds = tensor.total_seconds / 100;
  const Verdict v = judge(h200(), tensor, {cuda, tensor});
  EXPECT_FALSE(v.is_twin);
  EXPECT_EQ(v.state, State::over_bound);
  EXPECT_NEAR(v.ratio, 1.25 * 1.5, 1e-12);
  EXPECT_NEAR(v.ratio_bytes, 1.25, 1e-12);
  EXPECT_NEAR(v.ratio_arithmetic, v.speedup, 1e-12);
  EXPECT_NEAR(v.ratio_bytes * v.ratio_bandwidth * v.ratio_arithmetic, v.ratio, 1e-12);
  expect_contains(v.words, "memory-bound, over the bound: 1.88x where it allows 1.02x, a memory effect: 1.25 bytes x 1.4");
  expect_contains(v.words, "compared with spmv/csr/cuda_core");
}

// The same unit: what is not bytes is bandwidth, and nothing is arithmetic.
TEST(Verdict, OtherFormatsOnTheSameCoresAreDecomposed) {
  const KernelRun ours = run_of("csr", "cuda_core", 0.9), theirs = run_of("csr", "cusparse", 0.6);
  const Verdict   v = judge(h200(), ours, {theirs});
  EXPECT_NEAR(v.ratio, 1.5, 1e-12);
  EXPECT_EQ(v.ratio_arithmetic, 1);
  EXPECT_NEAR(v.ratio_bandwidth, 1.5, 1e-12);
  EXPECT_EQ(v.state, State::compliant);
  expect_contains(v.words, "1.50x as fast as spmv/csr/cusparse = 1.00 bytes x 1.50 bandwidth");
}

TEST(Verdict, AcrossTheRidgeTheBoundIsOutOfScope) {
  const Verdict cuda = judge(h200(), run_of("csr", "cuda_core", 0.5, 10), {});
  EXPECT_EQ(cuda.state, State::compute_bound);
  EXPECT_EQ(cuda.regime, "compute");
  EXPECT_NEAR(cuda.attainable, 33.0e12, 1);
  expect_contains(cuda.words, "compute-bound, out of the bound's scope: 1.29 times the ridge");
  expect_contains(cuda.words, "tensor cores can win (m16n8k16)");
  KernelRun redundant = tensor_run("m16n8k16", 0.5, 10);
  redundant.issued_flops = 8 * redundant.useful_flops;
  const Verdict tensor = judge(h200(), redundant, {});
  EXPECT_NEAR(tensor.rho, 8, 1e-12);
  EXPECT_NEAR(tensor.attainable, 66.5e12 / 8, 1);
  expect_contains(tensor.words, "tensor cores cannot win");
}

TEST(Verdict, RedundantIssueLowersTheBound) {
  KernelRun run = tensor_run("m8n8k4");
  run.issued_flops = 8 * run.useful_flops;
  const Verdict v = judge(h200(), run, {});
  EXPECT_NEAR(v.limit, speedup_limit(33.1 / 33.0 / 8), 1e-12);
  EXPECT_LT(v.speedup, 1);
  expect_contains(v.words, "the bound allows 1.00x (m8n8k4)");
}

// Lossy kernels are held against FP32 on CUDA cores, and not judged without a peak of their instruction and type.
TEST(Verdict, LossyArithmeticHasItsOwnPeaks) {
  Machine machine = h200();
  machine.at(Unit::cuda_core, DataType::fp32) = Figure{0, 66e12, "", "made up"};
  KernelRun cuda = run_of("fragments", "cuda_core", 0.5), tensor = tensor_run("m16n8k8", 0.55);
  KernelRun fp64 = run_of("fragments", "cuda_core", 0.9);
  tensor.format = "fragments";
  tensor.issued_flops = 16 * tensor.useful_flops;
  cuda.arithmetic = tensor.arithmetic = DataType::bf16;
  const Verdict without = judge(machine, tensor, {cuda, tensor, fp64});
  EXPECT_FALSE(without.judged);
  EXPECT_TRUE(without.is_twin);
  EXPECT_EQ(without.words, "no verdict, for the peak of m16n8k8 in bf16 is unknown (tcbound-calibrate); 55 % of the DRAM roof; "
                           "1.10x as fast as its twin spmv/fragments/cuda_core:bf16");
  machine.mma_peaks[{"m16n8k8", DataType::bf16}] = Figure{0, 330e12, "", "made up"};
  machine.mma_peaks[{"m16n8k8", DataType::fp64}] = Figure{0, 1e12, "", "another type's"};
  const Verdict with = judge(machine, tensor, {cuda, tensor, fp64});
  EXPECT_NEAR(with.alpha, 5.0, 1e-12);
  EXPECT_NEAR(with.ridge, 66e12 / 4249e9, 1e-9);
  EXPECT_NEAR(with.limit, speedup_limit(5.0 / 16), 1e-12);
  EXPECT_EQ(with.state, State::over_bound);
  EXPECT_EQ(judge(machine, cuda, {fp64, tensor}).partner, "spmv/fragments/tensor_core:bf16");
  EXPECT_EQ(judge(machine, cuda, {fp64}).partner, ""); // another arithmetic is no match
}

TEST(Verdict, PaddingIsKeptApart) {
  KernelRun run = tensor_run("m16n8k16");
  EXPECT_EQ(judge(h200(), run, {}).eta_pad, 1);
  run.padded_flops = 2 * run.useful_flops;
  EXPECT_EQ(judge(h200(), run, {}).eta_pad, 0.5);
}

// Four empty kernels are 10 us: 1 GB at 4249 GB/s takes 235 us, 30 MB in the L2 at 8 TB/s 3.75.
TEST(Verdict, TheSmallAreNotJudged) {
  KernelRun run = run_of("csr", "cuda_core");
  run.bytes = 3e9;
  run.useful_flops = run.issued_flops = 0.2 * run.bytes;
  const Verdict v = judge(h200(), run, {});
  EXPECT_EQ(v.level, Level::l2);
  EXPECT_EQ(v.state, State::latency_bound);
  EXPECT_NEAR(v.roof_seconds, 30e6 / 8e12, 1e-15);
  EXPECT_EQ(v.words, "latency-bound, too small to judge: 3.75 us at the roof, an empty kernel takes 2.5 us");
  EXPECT_EQ(judge(h200(), run_of("csr", "cuda_core"), {}).regime, "memory");
}

TEST(Verdict, TheLevelMovesTheRidge) {
  KernelRun run = run_of("csr", "cuda_core");
  run.bytes = 60.0 * 1024 * 1024 * run.calls;
  EXPECT_EQ(judge(h200(), run, {}).level, Level::l2);
  EXPECT_NEAR(judge(h200(), run, {}).ridge, 33.0e12 / 8e12, 1e-12);
  run.bytes += run.calls;
  EXPECT_EQ(judge(h200(), run, {}).level, Level::dram);
  Machine unknown = h200();
  unknown.at(Level::l2).bandwidth = Figure{};
  run.bytes -= run.calls;
  const Verdict v = judge(unknown, run, {});
  EXPECT_TRUE(std::isnan(v.roof_share));
  expect_contains(v.words, "the bandwidth of the L2 that holds its data is unknown");
}

TEST(Verdict, OnAHostNothingIsSaidOfTensorCores) {
  Machine machine;
  machine.name = "host/1";
  machine.at(Level::dram).bandwidth = Figure{0, 20e9, "", "made up"};
  KernelRun run = run_of("csr", "host");
  run.host = true;
  run.total_seconds = run.bytes / 15e9;
  const Verdict unknown = judge(machine, run, {});
  EXPECT_FALSE(unknown.judged);
  EXPECT_EQ(unknown.words, "no ridge, for the FP64 peak is unknown (tcbound-calibrate); 75 % of the memory roof");
  machine.at(Unit::host, DataType::fp64) = Figure{0, 40e9, "", "made up"};
  const Verdict v = judge(machine, run, {run_of("csr", "cuda_core")}); // a device's run is no partner
  EXPECT_EQ(v.words, "memory-bound: 75 % of the memory roof; no tensor cores here");
  EXPECT_TRUE(std::isnan(v.alpha));
}

TEST(Verdict, NothingIsAssumedOfAnUnknownDevice) {
  const Verdict v = judge(Machine{}, tensor_run("m16n8k16"), {});
  EXPECT_FALSE(v.judged);
  EXPECT_TRUE(std::isnan(v.roof_share));
  EXPECT_TRUE(std::isnan(v.alpha));
  KernelRun empty;
  EXPECT_TRUE(std::isnan(judge(h200(), empty, {}).intensity));
}

// An empty matrix still writes its result.
TEST(Verdict, MovingDataAloneHasARoof) {
  KernelRun run = run_of("csr", "cuda_core");
  run.useful_flops = run.issued_flops = 0;
  const Verdict v = judge(h200(), run, {});
  EXPECT_NEAR(v.roof_share, 0.9, 1e-12);
  EXPECT_EQ(v.regime, "memory");
  expect_contains(v.words, "90 % of the DRAM roof");
}

// On B200 tensor cores are no faster in FP64.
TEST(Verdict, WithAlphaOneThereIsNothingToGain) {
  const Verdict v = judge(find_machine(built_in_machines(), "B200"), run_of("csr", "cuda_core"), {});
  EXPECT_EQ(v.limit, 1);
  expect_contains(v.words, "tensor cores could gain nothing");
}
