#pragma once

#include <limits>
#include <string>

#include "machine.h"

// The formulas of the theory. Sources, by the names used below:
//   Roofline: S. Williams, A. Waterman, D. Patterson, Communications of the ACM 52(4), 2009.
//   Bound:    L. Zhang, J. Huang, S. Di, S. Matsuoka, M. Wahib, "Can Tensor Cores Benefit Memory-Bound Kernels? (No!)",
//             GPGPU 2025, arXiv:2502.16851.
//   Stream-K: M. Osama, D. Merrill, C. Cecka, M. Garland, J. Owens, PPoPP 2023.
//   EBISU:    L. Zhang, M. Wahib, P. Chen, J. Meng, X. Wang, T. Endo, S. Matsuoka, "Revisiting Temporal Blocking Stencil
//             Optimizations", ICS 2023.
//   Design:   this project's design notes, which extend the bound; the derivation stands beside the formula.
// Here P is a peak in FLOP/s, B a bandwidth in bytes/s, I an intensity in FLOP/byte, W in FLOP, Q in bytes, times in s,
// alpha = P_TC / P_CC, and r = I / balance of the CUDA cores: their compute time over the memory time.
// Bad arguments throw std::invalid_argument, which names the argument.

namespace tcbound::model {

double balance(double peak, double bandwidth);                      // P / B in FLOP/byte, the ridge (Roofline)
double attainable(double peak, double bandwidth, double intensity); // min(P, B I) in FLOP/s (Roofline)

double overlapped_time(double flops, double bytes, double peak, double bandwidth);    // max(W/P, Q/B) (Roofline, Bound)
double un_overlapped_time(double flops, double bytes, double peak, double bandwidth); // W/P + Q/B (Bound)

// S(r) = (1 + r) / (1 + r/alpha): what tensor cores gain where nothing overlaps (Bound). alpha may be infinite: 1 + r.
double speedup(double r, double alpha);
// Its value at the ridge, r = 1: 2 - 2/(1 + alpha) (Bound). For alpha >= 1 no memory-bound kernel gains more.
double speedup_limit(double alpha);
// What a memory-bound kernel may gain at most with any overlap: S(r) without, 1 with full overlap (Bound).
double allowed_speedup(double r, double alpha);

// alpha / rho: rho = issued/useful FLOPs >= 1, the useful share of P_TC is P_TC / rho.
// DASP's m8n8k4 keeps 8 of 64 outputs: rho = 8 (Design).
double effective_alpha(double alpha, double rho);
// rho of y = q x on an m x n x k MMA, which needs m k of its m n k multiply-adds to scale its m x k operand: n
// (Bound: SCALE on m8n8k4 uses 1/8).
double scale_redundancy(const MmaShape &shape);

struct Extent {
  double m, n, k;
};
// MNK / (M'N'K'), where ' rounds up to whole tiles (NVIDIA, Matrix Multiplication Background: tile quantization).
double padding_efficiency(const Extent &problem, const Extent &tile);

// G / (ceil(G/(S b)) S b) for G tiles, S SMs and b resident blocks an SM (NVIDIA, ibid.: wave quantization).
double wave_efficiency(double tiles, double sms, double blocks_per_sm);
// With the k loop of each tile cut into `splits` blocks: G times as many blocks of work (ibid.). Without the final sum.
double split_k_wave_efficiency(double tiles, double splits, double sms, double blocks_per_sm);
// A persistent grid of S b blocks that share all G x `iterations` k steps evenly (Stream-K).
double persistent_wave_efficiency(double tiles, double iterations, double sms, double blocks_per_sm);

// The innermost level that holds a working set in bytes: its bandwidth makes the roof (Roofline, "ceilings" of caches).
// Throws UnknownFigure if that depends on an unknown capacity, std::invalid_argument if no level holds it.
Level level_that_holds(const Machine &machine, double working_set_bytes);

// Temporal fusion. t steps in one pass move the bytes of one: I_t = t I_1 (EBISU, Design).
double fused_intensity(double intensity_of_one_step, double steps);
// The least number of steps with I_t > balance, from which on the kernel is compute-bound.
double steps_across_ridge(double intensity_of_one_step, double ridge);

// Overlapped tiling (geometry of the dependence cone, as in EBISU): a tile of edge^dimensions results after t steps of a
// stencil of that radius.
struct OverlappedTile {
  int    dimensions;
  double edge;   // cells
  double radius; // cells
  double steps;
};
// Cells read over cells written: ((edge + 2 radius t) / edge)^d.
double halo_read_redundancy(const OverlappedTile &tile);
// Cells computed over cells needed: step s of t computes (edge + 2 radius (t - s))^d.
double halo_compute_redundancy(const OverlappedTile &tile);
// Useful FLOPs over bytes with the halo's reads: t W / (element (1 + read redundancy)).
double fused_tile_intensity(const OverlappedTile &tile, double flops_per_cell, double element_bytes);

// A compute-bound kernel gains from tensor cores if rho W / (eta alpha P) < W / P, that is alpha eta / rho > 1 (Design).
bool tensor_cores_pay(double alpha, double eta, double rho);

enum class State { compliant, over_bound, compute_bound, latency_bound };
const char *words(State state);

constexpr double no_measurement = std::numeric_limits<double>::quiet_NaN();

struct Observation {
  double r;
  double alpha;                             // effective
  double measured_speedup = no_measurement; // of tensor cores over their twin on CUDA cores
  double tolerance = 0.03;                  // relative error of the measured ratio
  double time_seconds = no_measurement;     // of one call
  double launch_seconds = no_measurement;   // of an empty kernel
  double judgeable_launches = 4;            // a call shorter than so many launches is too small to judge
};
// Without a measurement: what the theory predicts.
State classify(const Observation &observation);

} // namespace tcbound::model
