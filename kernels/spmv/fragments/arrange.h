#pragma once

// Which rows of a matrix make a group, and where its data starts.

#include "device_matrix.h"

namespace tcbound {
class Algorithms;
}

namespace tcbound::fragments {

struct Arrangement {
  std::int64_t        units = 0; // of all data
  Array<std::int64_t> at;        // units before each group's data
  Array<std::int32_t> begin;     // first group of each sorted node, where groups are not ragged
};

// Sets the matrix's groups, but for Group::at, its counts and what tells the rows of groups. `m` has offsets and knows its nodes.
Arrangement arrange(Algorithms &algorithms, Executor &executor, DeviceMatrix &m, const std::int32_t *columns,
                    const Config &config);

} // namespace tcbound::fragments
