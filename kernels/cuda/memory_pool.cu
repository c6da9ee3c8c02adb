#include "memory_pool.h"

#include <algorithm>
#include <new>

#include "error.h"

namespace tcbound {
namespace {

constexpr std::size_t page = std::size_t(2) << 20; // bytes; of which a device's memory is made up

// Small pieces have a few sizes only, so that one of them is found again for something else.
std::size_t round_up(std::size_t bytes) {
  std::size_t unit = page;
  if (bytes <= page / 2)
    for (unit = 256; 8 * unit < bytes;) unit *= 2;
  return (bytes + unit - 1) / unit * unit;
}

// Of a piece that serves a request: little of it may be left over.
constexpr std::size_t most_size(std::size_t bytes) { return bytes + bytes / 8; }

} // namespace

void *MemoryPool::take(std::size_t bytes) {
  const auto found = pieces_.lower_bound(bytes);
  if (found == pieces_.end() || found->first > most_size(bytes)) return nullptr;
  void *memory = found->second.memory;
  sizes_.emplace(memory, found->first);
  kept_ -= found->first;
  pieces_.erase(found);
  return memory;
}

void *MemoryPool::allocate(std::size_t bytes) {
  const std::size_t size = round_up(bytes);
  void             *memory = size >= bytes ? take(size) : nullptr;
  if (memory || size < bytes) return memory;
  cudaError_t status = cudaMalloc(&memory, size);
  if (status == cudaErrorMemoryAllocation && kept_ > 0) {
    cudaGetLastError();
    trim(0);
    status = cudaMalloc(&memory, size);
  }
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  TCBOUND_CUDA(status);
  try {
    sizes_.emplace(memory, size);
  } catch (const std::bad_alloc &) {
    cudaFree(memory);
    throw;
  }
  return memory;
}

void MemoryPool::release(void *memory) noexcept {
  const auto found = sizes_.find(memory);
  if (found == sizes_.end()) return; // null
  const std::size_t size = found->second;
  sizes_.erase(found);
  if (size > most_kept_ / 4) {
    cudaFree(memory);
    return;
  }
  try {
    pieces_.emplace(size, Kept{memory, time_++});
    kept_ += size;
    trim(most_kept_);
  } catch (const std::bad_alloc &) {
    cudaFree(memory);
  }
}

// Frees what was released first.
void MemoryPool::trim(std::size_t most) noexcept {
  while (kept_ > most) {
    const auto oldest = std::min_element(pieces_.begin(), pieces_.end(),
                                         [](const auto &a, const auto &b) { return a.second.time < b.second.time; });
    cudaFree(oldest->second.memory);
    kept_ -= oldest->first;
    pieces_.erase(oldest);
  }
}

} // namespace tcbound
