#include "petsc_binary.h"

#include <petscmat.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include <sys/stat.h>

#include "matrix_market.h"

namespace compare {

namespace {

[[noreturn]] void fail(const std::string &message, PetscErrorCode code = PETSC_ERR_FILE_UNEXPECTED) {
  throw FileError{code, 0, message};
}

std::int64_t big_endian(const unsigned char *bytes, int n) {
  std::uint64_t value = bytes[0] & 0x80 ? ~std::uint64_t(0) : 0;
  for (int i = 0; i < n; ++i) value = (value << 8) | bytes[i];
  return static_cast<std::int64_t>(value);
}

const int index_bytes = sizeof(PetscInt);

// Calls f(value) for each of the next `count` indices of the file.
template <typename F> void each_index(std::FILE *in, std::int64_t count, F f) {
  std::vector<unsigned char> buffer(static_cast<std::size_t>(index_bytes) << 16);
  while (count) {
    const auto want = static_cast<std::size_t>(std::min<std::int64_t>(count, 1 << 16));
    if (std::fread(buffer.data(), index_bytes, want, in) != want) fail("is truncated");
    for (std::size_t i = 0; i < want; ++i) f(big_endian(&buffer[i * index_bytes], index_bytes));
    count -= static_cast<std::int64_t>(want);
  }
}

void check_class(const unsigned char *head) {
  const std::int64_t id32 = big_endian(head, 4), id64 = big_endian(head, 8);
  if ((index_bytes == 4 ? id32 : id64) == MAT_FILE_CLASSID) return;
  if (id32 == MAT_FILE_CLASSID || id64 == MAT_FILE_CLASSID)
    fail("was written with " + std::string(id32 == MAT_FILE_CLASSID ? "32" : "64") + "-bit PetscInt, and this PETSc has " +
           std::to_string(8 * index_bytes) + "-bit PetscInt",
         PETSC_ERR_SUP);
  if (id32 == VEC_FILE_CLASSID || id64 == VEC_FILE_CLASSID) fail("holds a PETSc vector, not a matrix");
  fail("is neither Matrix Market (its name does not end in .mtx or .mtx.gz) nor a matrix in PETSc's binary format (it does not "
       "begin with " +
       std::to_string(MAT_FILE_CLASSID) + ")");
}

} // namespace

void check_petsc_binary(const std::string &file) {
  struct stat status;
  if (stat(file.c_str(), &status)) fail(std::string("cannot be opened: ") + strerror(errno), PETSC_ERR_FILE_OPEN);
  if (S_ISDIR(status.st_mode)) fail("is a directory, not a file", PETSC_ERR_FILE_OPEN);
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> in(std::fopen(file.c_str(), "rb"), std::fclose);
  if (!in) fail(std::string("cannot be opened: ") + strerror(errno), PETSC_ERR_FILE_OPEN);

  unsigned char     head[32] = {};
  const std::size_t got = std::fread(head, 1, 4 * index_bytes, in.get());
  if (!got) fail("the file is empty");
  check_class(head);
  if (got < static_cast<std::size_t>(4 * index_bytes)) fail("is truncated");
  const std::int64_t rows = big_endian(head + index_bytes, index_bytes),
                     columns = big_endian(head + 2 * index_bytes, index_bytes),
                     nonzeros = big_endian(head + 3 * index_bytes, index_bytes);
  if (nonzeros < 0) fail("holds a matrix in a special format (dense or block), not a sparse one", PETSC_ERR_SUP);
  if (rows < 0 || columns < 0) fail("has a negative number of rows or columns");

  std::int64_t sum = 0;
  each_index(in.get(), rows, [&](std::int64_t length) {
    if (length < 0 || length > columns) fail("has a row of " + std::to_string(length) + " entries");
    sum += length;
  });
  if (sum != nonzeros)
    fail("promises " + std::to_string(nonzeros) + " entries, but its row lengths sum to " + std::to_string(sum));
  each_index(in.get(), nonzeros, [&](std::int64_t column) {
    if (column < 0 || column >= columns)
      fail("has the column index " + std::to_string(column) + ", outside 0.." + std::to_string(columns - 1));
  });
  const std::int64_t end = (4 + rows + nonzeros) * index_bytes + nonzeros * 8;
  if (S_ISREG(status.st_mode) && status.st_size < end)
    fail("is truncated: " + std::to_string(status.st_size) + " of " + std::to_string(end) + " bytes");
}

} // namespace compare
