#pragma once

// Which rows come into which slice, and how the slice is stored.

#include "device_matrix.h"
#include "renumber.h"

namespace tcbound::sell {

// What one way to cut a matrix into slices comes to.
struct Plan {
  Array<Slice>         slices; // first those of parts, which the plan leaves open
  Array<std::uint16_t> places; // as those of the matrix, for all slices
  Array<std::int32_t>  rows;   // of a renumbered matrix, in place of `places`
};

// Sorts the rows of each window in the ways that format.h names, measures the slices of each, and takes the best for each window.
// renumbered: the matrix is cut by its new numbers.
Plan make_plan(Executor &executor, const csr::DeviceArrays &a, const Renumbered *renumbered, std::int64_t parts,
               const CudaCoreConfig &config);

} // namespace tcbound::sell
