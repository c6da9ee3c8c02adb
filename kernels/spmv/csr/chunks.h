#pragma once

// How spmv/csr/cuda_core cuts a matrix into chunks of equal work, one for a thread block at a time.
//
// Lay rows and entries on one line of keys: row i is followed by its entries, so row i has key offsets[i] + i. Chunk c owns the
// rows whose key lies in [c span, (c + 1) span): at most `span` rows (many may be empty) with at most `span` entries, but for
// its last row, which may run on. A last row that runs on by more than span/4 is kept apart: the chunk's block sums it from
// global memory or, when it goes beyond the next chunk, every chunk that it touches sums a part, and the block that finishes
// last adds the parts up in order. The cut needs one binary search a chunk and depends on the row offsets only.

#include <cstdint>

#include "cuda_core_tuning.h"
#include "device_format.h"

namespace tcbound::csr {

constexpr int          max_threads = 256;
constexpr int          max_stages = 2;
constexpr std::int64_t max_span = 8192; // keeps a chunk's counts within 16 bits and its entries within 123 KB

// Read by the chunk's block with one 16-byte load.
struct alignas(16) Chunk {
  std::uint64_t entry : 40;     // where its rows' entries start
  std::uint64_t log2_lanes : 3; // lanes that sum a row: 1 to 32
  std::uint64_t stream : 1;     // ChunkMode::stream, else rows
  std::uint64_t apart : 1;      // the row after its rows is its own too, but kept apart
  std::uint64_t split : 1;      // ... and is summed by several chunks
  std::uint64_t tail : 1;       // it holds a later part of a row split among chunks, the row before its first
  std::int32_t  row;            // its first row
  std::uint16_t rows;           // summed from shared memory
  std::uint16_t entries;        // of those rows
};
static_assert(sizeof(Chunk) == 16);

// The numbers of a cut, known from the sizes of the matrix alone.
struct Cut {
  std::int64_t span = 1;
  std::int64_t chunks = 0;

  std::int64_t table_bytes() const { return chunks * static_cast<std::int64_t>(sizeof(Chunk)); }
};
Cut choose_cut(const CudaCoreConfig &config, std::int64_t rows, std::int64_t nonzeros);

struct ChunkTable {
  Cut                  cut;
  Array<Chunk>         chunks;
  int                  capacity = 0; // entries of shared memory that a stage needs, a multiple of 4
  Array<double>        parts;        // of split rows: slot 2c for chunk c's tail, 2c + 1 for its own row; empty without any
  Array<std::uint32_t> arrivals;     // of parts, counted at the chunk that owns the row; 0 between products

  std::int64_t bytes() const { return chunks.bytes() + parts.bytes() + arrivals.bytes(); }
};
ChunkTable cut_into_chunks(Executor &executor, const DeviceArrays &a, const CudaCoreConfig &config);

} // namespace tcbound::csr
