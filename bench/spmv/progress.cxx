#include "progress.h"

#include <cstdio>

namespace tcbound::bench {

Progress::Progress() : watcher_([this] { watch(); }) {}

Progress::~Progress() {
  {
    const std::lock_guard<std::mutex> lock(guard_);
    done_ = true;
  }
  changed_.notify_all();
  watcher_.join();
}

void Progress::step(const std::string &what) {
  {
    const std::lock_guard<std::mutex> lock(guard_);
    what_ = what;
    renewed_ = true;
    print(what);
  }
  changed_.notify_all();
}

void Progress::print(const std::string &text) const {
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - start_;
  std::fprintf(stderr, "[%6.1f s] %s\n", since.count(), text.c_str());
}

void Progress::watch() {
  std::unique_lock<std::mutex> lock(guard_);
  while (!done_) {
    renewed_ = false;
    if (!changed_.wait_for(lock, std::chrono::seconds(15), [this] { return renewed_ || done_; }) && !what_.empty())
      print("still " + what_);
  }
}

} // namespace tcbound::bench
