#pragma once

#include <stdexcept>
#include <string>

namespace tcbound {

// What went wrong, so that the caller can choose the error code of its own world.
enum class ErrorCode {
  out_of_memory, // an executor could not allocate
  unsupported,   // this kernel, device or problem size cannot do what was asked
  invalid,       // the caller's data contradict themselves
  device,        // the device or one of its libraries reported a failure
};

class Error : public std::runtime_error {
public:
  Error(ErrorCode code, const std::string &what) : std::runtime_error(what), code_(code) {}
  ErrorCode code() const { return code_; }

private:
  ErrorCode code_;
};

} // namespace tcbound
