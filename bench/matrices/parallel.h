#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tcbound::bench {

// Calls f(begin, end) for pieces of [0, size) on all cores; the pieces are handed out one by one, for rows of unequal length.
// What f does with one index must not depend on the piece it comes in. The first exception is thrown on.
template <class F> void parallel_for(std::int64_t size, F &&f) {
  const std::int64_t        threads = std::max(1U, std::thread::hardware_concurrency());
  const std::int64_t        piece = std::clamp<std::int64_t>(size / (16 * threads), 256, 65536);
  std::atomic<std::int64_t> next{0};
  std::exception_ptr        failure;
  std::mutex                guard;
  const auto                work = [&] {
    try {
      for (std::int64_t begin; (begin = next.fetch_add(piece)) < size;) f(begin, std::min(begin + piece, size));
    } catch (...) {
      const std::lock_guard<std::mutex> lock(guard);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (std::int64_t t = 1; t < threads && t * piece < size; ++t) others.emplace_back(work);
  work();
  for (std::thread &other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

} // namespace tcbound::bench
