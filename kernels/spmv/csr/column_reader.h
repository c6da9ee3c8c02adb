#pragma once

// Single columns of a matrix whose columns are packed. For .cu files only.

#include "packed_product.h"

namespace tcbound::csr {

template <class Offset> struct ColumnReader {
  const Offset       *offsets;
  const Chunk        *chunks;
  const PackedChunk  *packed;
  const std::uint8_t *stored;
  std::int64_t        span;

  // The column of entry k, which is in row `row`.
  __device__ std::int32_t operator()(std::int64_t row, std::int64_t k) const {
    const std::int64_t owner = (offsets[row] + row) / span;
    const Chunk        chunk = chunks[owner];
    if (row < static_cast<std::int64_t>(chunk.row) + chunk.rows) return read(packed[owner], 0, k - origin_of(chunk));
    const std::int64_t c = chunk.split ? (k + row + 1) / span : owner; // that has the entry
    const PackedChunk  mine = packed[c];
    if (c == owner) return read(mine, own_bytes(chunk, mine.width), k - offsets[row]);
    const EntryRange part = part_of_row({offsets[row], offsets[row + 1]}, row, c, span);
    return read(mine, 0, k - part.end); // the tail ends where the own part starts
  }

private:
  // The i-th column from so many bytes behind where the chunk's own part starts.
  __device__ std::int32_t read(const PackedChunk &chunk, std::int64_t behind, std::int64_t i) const {
    const std::uint8_t *at = stored + chunk.own + behind + chunk.width * i;
    return chunk.width == 2 ? chunk.base + *reinterpret_cast<const std::uint16_t *>(at)
                            : *reinterpret_cast<const std::int32_t *>(at);
  }
};

template <class Offset> ColumnReader<Offset> reader_of(const PackedProduct &product, const Offset *offsets) {
  return {offsets, product.table().chunks.data(), product.columns().chunks.data(), product.columns().stored.data(),
          product.table().cut.span};
}

} // namespace tcbound::csr
