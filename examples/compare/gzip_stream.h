#pragma once

#include <streambuf>
#include <string>
#include <vector>

#include <zlib.h>

namespace compare {

// Bytes of a file, gunzipped where it is gzipped. Throws FileError where the file cannot be opened or its gzip data is
// damaged; a stream above it passes that on when its exceptions() hold badbit.
class GzipBuffer : public std::streambuf {
public:
  explicit GzipBuffer(const std::string &file);
  ~GzipBuffer() override;
  GzipBuffer(const GzipBuffer &) = delete;
  GzipBuffer &operator=(const GzipBuffer &) = delete;

protected:
  int_type underflow() override;

private:
  gzFile            file_;
  std::vector<char> buffer_;
};

} // namespace compare
