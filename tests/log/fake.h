#pragma once

// A device whose calls take the seconds that a test says and finish when it says.
#include <cstdlib>

#include "kernels/kernel.h"

class FakeExecutor final : public tcbound::Executor {
public:
  explicit FakeExecutor(tcbound::MemorySpace space = tcbound::MemorySpace::host) { device_.space = space; }

  double next_seconds = 1e-3; // what the next interval measures
  long   ended = 0;           // intervals so far
  long   finished = 0;        // of these, how many the device has finished
  long   waits = 0;           // times that someone waited for the device
  long   made = 0, alive = 0; // interval objects

  const tcbound::Device &device() const override { return device_; }
  void                  *allocate(std::size_t bytes) override { return std::malloc(bytes); }
  void                   release(void *memory) noexcept override { std::free(memory); }
  void                   copy(void *, tcbound::MemorySpace, const void *, tcbound::MemorySpace, std::size_t) override {}
  void                   synchronize() override { finished = ended; }
  void                   set_stream(void *) override {}
  void                  *stream() const override { return nullptr; }
  double                 measure_bandwidth() override { return 1e9; }

  std::unique_ptr<tcbound::Interval> interval() override { return std::make_unique<FakeInterval>(*this); }

private:
  class FakeInterval final : public tcbound::Interval {
  public:
    explicit FakeInterval(FakeExecutor &executor) : executor_(executor) {
      ++executor_.made;
      ++executor_.alive;
    }
    ~FakeInterval() override { --executor_.alive; }
    void begin() override {}
    void end() override {
      seconds_ = executor_.next_seconds;
      serial_ = ++executor_.ended;
    }
    bool   ready() override { return serial_ <= executor_.finished; }
    double seconds() override {
      if (!ready()) {
        ++executor_.waits;
        executor_.finished = serial_;
      }
      return seconds_;
    }

  private:
    FakeExecutor &executor_;
    double        seconds_ = 0;
    long          serial_ = 0;
  };

  tcbound::Device device_;
};

class FakeKernel final : public tcbound::Kernel {
public:
  explicit FakeKernel(const char *backend, tcbound::MemorySpace space = tcbound::MemorySpace::host)
    : Kernel("spmv", "fake", backend), space_(space) {}
  tcbound::MemorySpace             space() const override { return space_; }
  std::string                      check(const tcbound::Device &, const tcbound::Problem &) const override { return {}; }
  tcbound::Work                    predict(const tcbound::Problem &, bool, bool) const override { return {}; }
  std::unique_ptr<tcbound::Format> build(tcbound::Executor &, const tcbound::Problem &) const override { return nullptr; }
  void                             apply(tcbound::Executor &, tcbound::Format &, const tcbound::Product &) const override {}

private:
  tcbound::MemorySpace space_;
};
