#pragma once

#include <string>

// Files that are there whole or not at all.

namespace tcbound::calibrate {

// Writing goes to a file beside the one that is named, so that a folder that cannot be written shows before the measuring, and
// a run that fails leaves the old file.
class OutputFile {
public:
  explicit OutputFile(std::string name); // throws std::runtime_error
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  const std::string &name() const { return name_; }
  void               write(const std::string &text); // throws std::runtime_error

private:
  std::string name_, draft_; // the draft is the file itself where that is no regular file, such as a pipe
};

} // namespace tcbound::calibrate
