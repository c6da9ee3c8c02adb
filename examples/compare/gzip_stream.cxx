#include "gzip_stream.h"

#include <cerrno>
#include <cstring>

#include <sys/stat.h>

#include "matrix_market.h"

namespace compare {

GzipBuffer::GzipBuffer(const std::string &file) : file_(nullptr), buffer_(1 << 20) {
  struct stat status;
  if (stat(file.c_str(), &status)) throw FileError{PETSC_ERR_FILE_OPEN, 0, std::string("cannot be opened: ") + strerror(errno)};
  if (S_ISDIR(status.st_mode)) throw FileError{PETSC_ERR_FILE_OPEN, 0, "is a directory, not a file"};
  errno = 0;
  file_ = gzopen(file.c_str(), "rb");
  if (!file_) throw FileError{PETSC_ERR_FILE_OPEN, 0, std::string("cannot be opened: ") + strerror(errno ? errno : ENOMEM)};
  gzbuffer(file_, 1 << 18);
}

GzipBuffer::~GzipBuffer() {
  if (file_) gzclose(file_);
}

GzipBuffer::int_type GzipBuffer::underflow() {
  if (gptr() < egptr()) return traits_type::to_int_type(*gptr());
  const int   got = gzread(file_, buffer_.data(), static_cast<unsigned>(buffer_.size()));
  int         status = Z_OK;
  const char *what = gzerror(file_, &status);
  if (status == Z_ERRNO) throw FileError{PETSC_ERR_FILE_READ, 0, std::string("cannot be read: ") + strerror(errno)};
  // A cut file still delivers what it holds; the error shows at its end. Nothing after the cut can be missed that way.
  if (got <= 0 && status == Z_BUF_ERROR) throw FileError{PETSC_ERR_FILE_UNEXPECTED, 0, "the gzip data is truncated"};
  if (got < 0) throw FileError{PETSC_ERR_FILE_UNEXPECTED, 0, std::string("the gzip data is corrupt (") + what + ")"};
  if (!got) return traits_type::eof();
  setg(buffer_.data(), buffer_.data(), buffer_.data() + got);
  return traits_type::to_int_type(*gptr());
}

} // namespace compare
