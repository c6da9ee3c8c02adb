#pragma once

// Device memory that an executor keeps for its next allocations. For .cu files only.
//
// cudaMalloc and cudaFree take from microseconds to milliseconds, by the size, and cudaFree waits for the device: building a format
// in temporary arrays would spend most of its time there.

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>

namespace tcbound {

class MemoryPool {
public:
  explicit MemoryPool(std::size_t most_kept) : most_kept_(most_kept) {} // bytes; of one piece a quarter
  ~MemoryPool() { trim(0); }
  MemoryPool(const MemoryPool &) = delete;
  MemoryPool &operator=(const MemoryPool &) = delete;

  // Null if there is no memory, even without what is kept. What comes from the pool may be in use by work queued before; whoever
  // changes streams waits for that.
  void *allocate(std::size_t bytes);
  void  release(void *memory) noexcept;

private:
  // A piece of memory that is kept, and when it was released.
  struct Kept {
    void         *memory;
    std::uint64_t time;
  };

  void *take(std::size_t bytes);
  void  trim(std::size_t most) noexcept;

  std::size_t                             most_kept_, kept_ = 0; // bytes
  std::uint64_t                           time_ = 0;
  std::multimap<std::size_t, Kept>        pieces_; // by size
  std::unordered_map<void *, std::size_t> sizes_;  // of what is in use
};

} // namespace tcbound
