#include "output_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <unistd.h>

namespace tcbound::calibrate {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void cannot_write(const std::string &name) {
  throw std::runtime_error(name + ": cannot be written: " + std::strerror(errno));
}

} // namespace

OutputFile::OutputFile(std::string name) : name_(std::move(name)), draft_(name_) {
  std::error_code error;
  if (fs::is_directory(name_, error)) throw std::runtime_error(name_ + ": cannot be written: it is a folder");
  if (!fs::exists(name_, error) || fs::is_regular_file(name_, error)) draft_ += ".draft-" + std::to_string(getpid());
  errno = 0;
  if (draft_ != name_ && !std::ofstream(draft_)) cannot_write(name_);
}

OutputFile::~OutputFile() {
  if (draft_ != name_) std::remove(draft_.c_str());
}

void OutputFile::write(const std::string &text) {
  errno = 0;
  std::ofstream stream(draft_);
  stream << text;
  stream.close();
  if (!stream || (draft_ != name_ && std::rename(draft_.c_str(), name_.c_str()) != 0)) cannot_write(name_);
}

} // namespace tcbound::calibrate
