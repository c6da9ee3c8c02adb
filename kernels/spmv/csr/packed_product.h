#pragma once

#include "kernel.h"
#include "packed_columns.h"

namespace tcbound::csr {

// ChunkedProduct with packed columns. Holds them and the table of chunks; offsets and values stay with the matrix.
class PackedProduct {
public:
  // Cuts `a` into chunks, packs its columns and releases a.columns; to be done again when its pattern changes.
  void prepare(Executor &executor, DeviceArrays &a, const CudaCoreConfig &config);

  // As ChunkedProduct::multiply(), with the same result bit for bit. With `narrow_values` these stand for a.values.
  void multiply(Executor &executor, const DeviceArrays &a, const Product &product, const std::int32_t *rows = nullptr,
                const float *narrow_values = nullptr);

  const ChunkTable    &table() const { return table_; }
  const PackedColumns &columns() const { return columns_; }
  std::int64_t         bytes() const { return table_.bytes() + columns_.bytes(); }

private:
  CudaCoreConfig config_;
  ChunkTable     table_;
  PackedColumns  columns_;
};

} // namespace tcbound::csr
