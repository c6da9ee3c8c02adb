#pragma once

#include "chunks.h"
#include "kernel.h"

namespace tcbound::csr {

// Products of one CSR matrix in device memory with several columns at once. The columns of x are first written side by side, up to
// 8 at a time, so that an entry finds its 64 bytes of x in one place; a few lanes a row then have a pair of columns each. A block
// keeps a chunk's entries (chunks.h) in shared memory for all columns, so that memory delivers the matrix once.
class ChunkedColumns {
public:
  // The table must be one of `a`; `rows` as in ChunkedProduct::multiply().
  void multiply(Executor &executor, const DeviceArrays &a, const ChunkTable &table, const CudaCoreConfig &config,
                const Product &product, const Columns &columns, const std::int32_t *rows);

  std::int64_t bytes() const { return parts_.bytes() + arrivals_.bytes() + packed_.bytes(); }

  // Of x as it is written and read again.
  static std::int64_t packed_bytes(std::int64_t inputs, std::int64_t columns);

private:
  Array<double>        parts_;    // as ChunkTable's, for each column
  Array<std::uint32_t> arrivals_; // likewise
  Array<double>        packed_;   // the columns of x side by side
};

} // namespace tcbound::csr
