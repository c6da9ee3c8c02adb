#pragma once

// Column indices in 16 bits, chunk by chunk (chunks.h).
//
// A chunk whose columns span less than 65536 keeps them as 16-bit distances from the least of them, any other chunk as they are.
// Each chunk has one stretch of a byte array for its columns, of three parts, each of a multiple of 16 bytes:
//
//   tail    of its part of a row split among chunks, the row before its first; ends where `own` starts;
//   own     of its rows' entries, from the multiple of copy_entries entries where the copies of values into shared memory start
//           too, so that one copy brings it there;
//   apart   of the row that it keeps apart, or of its part of that row; starts where `own` ends.

#include "chunks.h"

namespace tcbound::csr {

constexpr std::int64_t copy_entries = 4; // copies into shared memory start at a multiple of these and have a multiple of these
constexpr std::int64_t copy_bytes = 16;  // of which copies start at a multiple, in memory of either kind, and have a multiple

// Read by the chunk's block with one 16-byte load.
struct alignas(16) PackedChunk {
  std::int64_t own;   // where that part starts in the byte array
  std::int32_t base;  // what stored columns are counted from: 0 where they have 4 bytes
  std::int32_t width; // bytes of a stored column, 2 or 4
};
static_assert(sizeof(PackedChunk) == 16);

constexpr std::int32_t width_of_columns(std::int32_t least, std::int32_t greatest) { return greatest - least < 65536 ? 2 : 4; }

constexpr std::int64_t round_up_to(std::int64_t unit, std::int64_t size) { return (size + unit - 1) / unit * unit; }

// Entries [begin, end) of a matrix.
struct EntryRange {
  std::int64_t begin = 0, end = 0;

  constexpr std::int64_t size() const { return end - begin; }
};

// Of the entries of row `row`, those whose keys chunk c has: entry k has key k + row + 1.
constexpr EntryRange part_of_row(EntryRange row_entries, std::int64_t row, std::int64_t c, std::int64_t span) {
  const std::int64_t from = c * span - row - 1, to = from + span;
  return {from > row_entries.begin ? from : row_entries.begin, to < row_entries.end ? to : row_entries.end};
}

// The entries that chunk c sums.
struct ChunkParts {
  EntryRange tail, own, apart;
};
template <class Offset>
constexpr ChunkParts parts_of(const Chunk &chunk, std::int64_t c, std::int64_t span, const Offset *offsets) {
  const auto entries_of = [&](std::int64_t row) {
    return EntryRange{static_cast<std::int64_t>(offsets[row]), static_cast<std::int64_t>(offsets[row + 1])};
  };
  const auto entry = static_cast<std::int64_t>(chunk.entry);
  const auto row = static_cast<std::int64_t>(chunk.row), after = row + chunk.rows; // `after`: the row that may be kept apart
  ChunkParts parts;
  parts.own = {entry, entry + chunk.entries};
  if (chunk.tail) parts.tail = part_of_row(entries_of(row - 1), row - 1, c, span);
  if (chunk.split)
    parts.apart = part_of_row(entries_of(after), after, c, span);
  else if (chunk.apart)
    parts.apart = entries_of(after);
  return parts;
}

// The entry from which the staged ones are counted.
constexpr std::int64_t origin_of(const Chunk &chunk) {
  return static_cast<std::int64_t>(chunk.entry) / copy_entries * copy_entries;
}

// Bytes of the own part.
constexpr std::int64_t own_bytes(const Chunk &chunk, std::int64_t width) {
  const std::int64_t skipped = static_cast<std::int64_t>(chunk.entry) - origin_of(chunk);
  return chunk.entries == 0 ? 0 : round_up_to(copy_bytes, width * (skipped + chunk.entries));
}

struct PackedColumns {
  Array<PackedChunk>  chunks;
  Array<std::uint8_t> stored;
  int                 longest_own = 0; // bytes of shared memory that a stage needs for columns, a multiple of copy_bytes

  std::int64_t bytes() const { return chunks.bytes() + stored.bytes(); }
};
PackedColumns pack_columns(Executor &executor, const DeviceArrays &a, const ChunkTable &table);

} // namespace tcbound::csr
