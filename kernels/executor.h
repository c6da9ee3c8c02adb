#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "error.h"
#include "problem.h"

namespace tcbound {

// The machine an executor runs on.
struct Device {
  MemorySpace space = MemorySpace::host;
  std::string name;              // as the driver or the operating system spells it
  std::string id;                // tells one CUDA device from all others (its UUID); empty on the host
  std::string driver;            // the version of the display driver, of a host the operating system; empty if unknown
  int         compute_major = 0; // CUDA compute capability; 0 on the host
  int         compute_minor = 0;
  int         multiprocessors = 0; // streaming multiprocessors; 0 on the host
  std::size_t memory_bytes = 0;    // device memory; 0 on the host
  std::size_t l2_bytes = 0;        // last-level cache; 0 if unknown
  std::size_t shared_bytes = 0;    // shared memory that one block may use; 0 on the host
};

// One timed stretch of an executor's work.
class Interval {
public:
  virtual ~Interval() = default;
  virtual void   begin() = 0;
  virtual void   end() = 0;
  virtual bool   ready() = 0;   // end() was called and the work before it is finished
  virtual double seconds() = 0; // waits until ready
};

// Memory and, on a device, the stream that kernels run on. Every call may throw Error.
class Executor {
public:
  virtual ~Executor() = default;

  virtual const Device &device() const = 0;
  MemorySpace           space() const { return device().space; }

  virtual void *allocate(std::size_t bytes) = 0; // Error(out_of_memory) names the bytes asked for and those free
  // Work queued before may still use the memory: what is allocated next may be the same, for work queued after.
  virtual void release(void *memory) noexcept = 0;

  // Copies between this executor's memory and the host's or its own, in stream order. When one side is host memory, that
  // side may be reused or read as soon as the call returns.
  virtual void copy(void *to, MemorySpace to_space, const void *from, MemorySpace from_space, std::size_t bytes) = 0;
  virtual void synchronize() = 0;

  // The stream for what follows: a cudaStream_t on a device, ignored on the host.
  virtual void  set_stream(void *stream) = 0;
  virtual void *stream() const = 0;

  virtual std::unique_ptr<Interval> interval() = 0;

  // Bytes per second that y = q x reaches on arrays several times the last-level cache (read + write counted), the median
  // of a few passes; takes well under 200 ms. The ceiling that shares of bandwidth are stated against.
  virtual double measure_bandwidth() = 0;

  // Other ceilings of the roofline, each within a few ms; 0 where this kind of executor does not measure one.
  // Of the last-level cache for y = q x. Not of a host, whose virtual machines report the cache of a whole socket.
  virtual double measure_cache_bandwidth() { return 0; }
  virtual double measure_peak() { return 0; }   // FP64 FLOP/s by multiply-adds. Not of a device: machine tables know them
  virtual double measure_launch() { return 0; } // seconds that an interval around an empty kernel (of a host, nothing) shows
};

std::unique_ptr<Executor> make_host_executor();

// Devices that this process can use. With 0, *why_not (if given) says what is missing: no CUDA in this build, no driver,
// no device.
int                       cuda_device_count(std::string *why_not);
std::unique_ptr<Executor> make_cuda_executor(int device);

// An array of `size` elements in an executor's memory; movable, freed with its owner.
template <class T> class Array {
public:
  Array() = default;
  // Memory that belongs to somebody else and lasts as long; not to be written to.
  static Array borrow(const T *data, std::int64_t size) {
    Array array;
    array.size_ = size;
    array.data_ = const_cast<T *>(data);
    return array;
  }
  Array(Executor &executor, std::int64_t size) : executor_(&executor), size_(size) {
    if (size > 0) data_ = static_cast<T *>(executor.allocate(static_cast<std::size_t>(size) * sizeof(T)));
  }
  Array(Array &&o) noexcept { *this = std::move(o); }
  Array &operator=(Array &&o) noexcept {
    std::swap(executor_, o.executor_);
    std::swap(size_, o.size_);
    std::swap(data_, o.data_);
    return *this;
  }
  Array(const Array &) = delete;
  Array &operator=(const Array &) = delete;
  ~Array() {
    if (data_ && executor_) executor_->release(data_);
  }

  T           *data() { return data_; }
  const T     *data() const { return data_; }
  std::int64_t size() const { return size_; }
  std::int64_t bytes() const { return size_ * static_cast<std::int64_t>(sizeof(T)); }

private:
  Executor    *executor_ = nullptr;
  std::int64_t size_ = 0;
  T           *data_ = nullptr;
};

} // namespace tcbound
