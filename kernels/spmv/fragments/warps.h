#pragma once

// Launches of a thread or a warp for each of so many. For .cu files only.

#include <cstdint>

#include <cuda_runtime.h>

#include "layout.h"

namespace tcbound::fragments {
namespace {

constexpr int      block = 128;
constexpr unsigned all_lanes = 0xffffffffU;

unsigned grid_for(std::int64_t threads) { return static_cast<unsigned>((threads + block - 1) / block); }

__device__ std::int64_t thread_number() { return blockIdx.x * static_cast<std::int64_t>(block) + threadIdx.x; }

__device__ int lane_number() { return static_cast<int>(threadIdx.x % warp_lanes); }

} // namespace
} // namespace tcbound::fragments
