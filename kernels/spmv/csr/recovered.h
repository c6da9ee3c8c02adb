#pragma once

// For tests: CSR in device memory, as a format is turned back into it, read into host memory.

#include <type_traits>
#include <vector>

#include "device_format.h"

namespace tcbound::csr {

struct RecoveredCsr {
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> columns;
  std::vector<double>       values;
};

inline RecoveredCsr read_back(Executor &executor, const DeviceArrays &a) {
  RecoveredCsr to;
  const auto   copy = [&](auto &host, const auto &device) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(device.data())>>;
    std::vector<T> read(static_cast<std::size_t>(device.size()));
    executor.copy(read.data(), MemorySpace::host, device.data(), MemorySpace::cuda, static_cast<std::size_t>(device.bytes()));
    host.assign(read.begin(), read.end());
  };
  if (a.wide)
    copy(to.offsets, a.wide_offsets);
  else
    copy(to.offsets, a.narrow_offsets);
  copy(to.columns, a.columns);
  copy(to.values, a.values);
  return to;
}

} // namespace tcbound::csr
