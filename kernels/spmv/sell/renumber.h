#pragma once

#include "../csr/device_format.h"

namespace tcbound::sell {

// Entries of a row that are sorted by the new numbers of their columns.
constexpr std::int32_t most_sorted = 64;

// A square matrix with new numbers of its rows and columns.
struct Renumbered {
  Array<std::int32_t> order;   // which row comes at a place; empty: there are no new numbers
  Array<std::int32_t> numbers; // the new ones of rows and columns
  csr::DeviceArrays   matrix;  // without values, and without the columns of rows that are cut into parts
  Array<std::uint16_t>
    step_entries; // which entry of a row comes at each step; at the places of the row's entries without new numbers
};

// Finds numbers by which neighbours in the matrix's graph are near each other; none where the graph does not lend itself to that.
// Only a proposal: whether it helps must be measured. longest: entries of a row that is not cut.
Renumbered renumber(Executor &executor, const csr::DeviceArrays &a, std::int32_t longest);

} // namespace tcbound::sell
