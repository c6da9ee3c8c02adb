#pragma once

#include <string>
#include <vector>

#include "bounds.h"
#include "machine.h"

// Where a kernel that ran stands on the roofline and against the bound on tensor cores, in numbers and in words.

namespace tcbound::model {

// What a kernel did, over all of its calls and the processes that ran it.
struct KernelRun {
  std::string op, format, backend;
  std::string mma;                         // shape of its MMA instruction; empty without tensor cores
  DataType    arithmetic = DataType::fp64; // that its MMA instruction multiplies; CUDA cores take FP32 for the others
  bool        host = false;                // it ran on the host

  double calls = 0;                                     // of the process that made most
  double median_seconds = 0;                            // of one call, the slowest process
  double total_seconds = 0;                             // of all calls, the slowest process
  double bytes = 0, useful_flops = 0, issued_flops = 0; // sums
  double padded_flops = 0;                              // sum of the useful ones and those on zeros that only fill tiles

  std::string name() const {
    return op + "/" + format + "/" + backend + (arithmetic == DataType::fp64 ? "" : ":" + name_of(arithmetic));
  }
  DataType of_cuda_cores() const { return arithmetic == DataType::fp64 ? DataType::fp64 : DataType::fp32; }
  bool     on_tensor_cores() const { return backend == "tensor_core"; }
};

// What is unknown or does not apply is NaN or empty.
struct Verdict {
  Level  level = Level::dram; // that holds the working set of a call, its bytes: DRAM or L2 (of a host: the last-level cache)
  double intensity = no_measurement;    // useful FLOPs over bytes
  double ridge = no_measurement;        // of the cores without tensor cores, at that level
  double r = no_measurement;            // intensity / ridge
  double attainable = no_measurement;   // useful FLOP/s: min(B I, peak of its unit / rho)
  double achieved = no_measurement;     // useful FLOP/s
  double roof_share = no_measurement;   // roof_seconds over the time of a call
  double launch = no_measurement;       // s, of an empty kernel
  double roof_seconds = no_measurement; // of one call at the roof

  std::string shape;                    // MMA shape that alpha is of: its own, or the device's best for its type
  double      alpha = no_measurement;   // peak of that shape over the peak of CUDA cores
  double      rho = 1;                  // issued over useful FLOPs
  double      eta_pad = 1;              // useful over padded FLOPs
  double      speedup = no_measurement; // S(r) for alpha / rho; 1 or more is what the bound allows
  double      limit = no_measurement;   // 2 - 2/(1 + alpha/rho)

  std::string partner;                // the kernel it is compared with; see judge()
  bool        is_twin = false;        // same op and format, on the other kind of core
  double      ratio = no_measurement; // the partner's median time over its own
  // ratio = bytes x bandwidth x arithmetic: of the partner's bytes over its own; of what the tensor cores can have gained,
  // at most what the bound allows; and the rest, the bandwidths that they reach.
  double ratio_bytes = no_measurement, ratio_bandwidth = no_measurement, ratio_arithmetic = no_measurement;

  bool        judged = false; // false: the ridge is unknown, and with it the state
  State       state = State::compliant;
  std::string regime; // memory, compute, latency; empty if not judged
  std::string words;
};

// `others`: runs of the same event on the same object, this one among them or not. Of those in the same arithmetic it is compared with its twin; one on
// tensor cores without a twin with the fastest without tensor cores; any other with the fastest of the others on its side
// (host or device). Latency-bound is a call whose time at the roof is less than four empty kernels.
Verdict judge(const Machine &machine, const KernelRun &run, const std::vector<KernelRun> &others);

} // namespace tcbound::model
