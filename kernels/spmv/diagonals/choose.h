#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "format.h"

namespace tcbound::diagonals {

// Some rows of a matrix, in groups of consecutive ones, from which the offsets are chosen. What the sample does not show ends up in
// the remainder, so it decides how good a table is, not whether it is right.
constexpr int group_rows = 12; // whole nodes of every size
constexpr int most_groups = 24;
constexpr int longest_seen = 384; // entries of a row; the columns of longer ones are not looked at

struct SampledRow {
  std::int64_t              length = 0;
  std::vector<std::int64_t> distances;        // of its columns from the group's first row; empty if longer than longest_seen
  bool                      symmetric = true; // each entry below the diagonal equals that above it

  bool operator<(const SampledRow &o) const {
    return std::tie(length, distances, symmetric) < std::tie(o.length, o.distances, o.symmetric);
  }
};
using Group = std::vector<SampledRow>;
using Sample = std::map<Group, int>; // and how often each occurs: in structured matrices most are equal

// First rows of the groups, multiples of group_rows.
std::vector<std::int64_t> sampled_groups(std::int64_t rows);

// What the choice is restricted to, for tests.
struct BuildChoices {
  int  node = 0;              // rows of a node; 0: free
  bool allow_mirrored = true; // look for symmetric values
  bool allow_narrow = true;   // store values in 16 or 32 bits where all are exact in them
};

// The table by which the sample takes the fewest bytes, or one of no offsets when CSR or nearly as few would do.
Table choose_table(std::int64_t rows, const Sample &sample, const BuildChoices &choices);

} // namespace tcbound::diagonals
