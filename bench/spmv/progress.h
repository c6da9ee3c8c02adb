#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tcbound::bench {

// Says on standard error what is going on: each step as it starts, and every 15 seconds that it still goes on.
class Progress {
public:
  Progress();
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  void step(const std::string &what);

private:
  void print(const std::string &text) const;
  void watch();

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex                                  guard_;
  std::condition_variable                     changed_;
  std::string                                 what_;
  bool                                        renewed_ = false, done_ = false;
  std::thread                                 watcher_; // last: it uses all the others
};

} // namespace tcbound::bench
