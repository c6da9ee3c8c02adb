#pragma once

#include "chunks.h"
#include "kernel.h"

namespace tcbound::csr {

// Products with one CSR matrix in device memory by the kernel of spmv/csr/cuda_core. Holds the table of chunks, not the matrix.
class ChunkedProduct {
public:
  // Cuts `a` into chunks; to be done again when its row offsets change.
  void prepare(Executor &executor, const DeviceArrays &a, const CudaCoreConfig &config);

  // z = alpha a x + beta y (product.transpose is not looked at). With `rows`, row i of `a` stands for row rows[i] of y and z,
  // and elements of z that no row stands for are left alone.
  void multiply(Executor &executor, const DeviceArrays &a, const Product &product, const std::int32_t *rows = nullptr);

  bool              prepared() const { return prepared_; }
  const ChunkTable &table() const { return table_; }

private:
  CudaCoreConfig config_;
  ChunkTable     table_;
  bool           prepared_ = false;
};

} // namespace tcbound::csr
