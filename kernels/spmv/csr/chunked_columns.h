#pragma once

#include "chunks.h"
#include "kernel.h"

namespace tcbound::csr {

// Products of one CSR matrix in device memory with several columns at once: a block keeps a chunk's entries (chunks.h) in shared
// memory while it takes up to 8 columns after 8, so that memory delivers the matrix once for all of them.
class ChunkedColumns {
public:
  // The table must be one of `a`.
  void multiply(Executor &executor, const DeviceArrays &a, const ChunkTable &table, const CudaCoreConfig &config,
                const Product &product, const Columns &columns);

  std::int64_t bytes() const { return parts_.bytes() + arrivals_.bytes(); }

private:
  Array<double>        parts_;    // as ChunkTable's, for each column
  Array<std::uint32_t> arrivals_; // likewise
};

} // namespace tcbound::csr
