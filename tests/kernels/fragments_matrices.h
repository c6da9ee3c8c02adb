#pragma once

// Matrices at the edges of classes, steps, groups and parts of fragments, and choices of size to build them with.

#include "spmv/fragments/layout.h"
#include "spmv/fragments/tuning.h"
#include "spmv_support.h"
#include "structured_matrices.h"

namespace tcbound::test {

using fragments::Config;

// Rows of 0 to `most` entries, so that every length meets every other in a group somewhere.
inline Csr lengths_up_to(std::int64_t most, int repeats) {
  std::vector<std::int64_t> lengths;
  for (int repeat = 0; repeat < repeats; ++repeat)
    for (std::int64_t length = 0; length <= most; ++length) lengths.push_back(repeat % 2 == 0 ? length : most - length);
  return from_lengths("rows of 0 to " + std::to_string(most), 3 * most + 1, lengths);
}

// Rows whose lengths lie around the ends of the classes and around whole parts.
inline Csr class_edges(int max_steps) {
  std::vector<std::int64_t> lengths;
  for (int c = 0; c < fragments::classes; ++c)
    for (std::int64_t length = fragments::most_entries(c, max_steps) - 2; length <= fragments::most_entries(c, max_steps) + 2;
         ++length)
      lengths.push_back(std::max<std::int64_t>(length, 0));
  const std::int64_t part = fragments::most_entries(fragments::longest_class, max_steps);
  for (const std::int64_t length : {2 * part - 1, 2 * part, 2 * part + 1, 5 * part, 40 * part + 3}) lengths.push_back(length);
  return from_lengths("class edges for " + std::to_string(max_steps) + " steps", 41 * part + 3, lengths);
}

// 1 to 130 rows of one length: groups that are not full.
inline Csr few_rows(std::int64_t rows, std::int64_t length) { return uniform(rows, 500, length); }

// Rows that may be alike: nodes of 2, 3 or 4, and pairs of nodes of 3 or 4.
inline constexpr int all_alike[] = {2, 3, 4, 6, 8};

// Up to the longest rows that may be in nodes with 3 steps, and the longest that may be in pairs of nodes.
inline std::vector<Csr> node_matrices(int alike) {
  std::vector<Csr> all = {
    in_nodes(alike, lengths_up_to(96, 3)),       in_nodes(alike, lengths_up_to(48, 3)),
    in_nodes(alike, irregular(1000, 3000, 90)),  in_nodes(alike, uniform(257, 300, 27)),
    in_nodes(alike, irregular(500, 200000, 30)), in_nodes(alike, from_lengths("ends", 800, {96, 95, 1, 0, 33, 32})),
    in_nodes(alike, uniform(7000, 400, 8))};
  for (const std::int64_t nodes : {1, 3, 7, 8, 9, 15, 16, 17, 33}) all.push_back(in_nodes(alike, uniform(nodes, 90, 5)));
  return all;
}

inline std::vector<Csr> matrices() {
  std::vector<Csr> all = {lengths_up_to(70, 3),
                          class_edges(1),
                          class_edges(3),
                          class_edges(12),
                          ragged(),
                          irregular(20000, 20000, 30),
                          one_long_row(1000, 46500, 499),
                          uniform(70001, 3, 0),
                          uniform(0, 5, 0),
                          stencil(70, 9, 3, false, Coefficients::variable)};
  for (const std::int64_t rows : {1, 7, 8, 9, 31, 32, 33, 65, 127, 129, 130})
    for (const std::int64_t length : {1, 2, 3, 4, 5, 33, 100}) all.push_back(few_rows(rows, length));
  for (const int alike : all_alike)
    for (Csr &a : node_matrices(alike)) all.push_back(std::move(a));
  return all;
}

inline const std::vector<Config> &configs() {
  static const std::vector<Config> all = {{24, 16384, 8, true, false},
                                          {12, 500, 3, false, false},
                                          {1, 64, 1, true, false},
                                          {3, 1000, 4, true, true},
                                          {63, 1, 2, true, false},
                                          {24, 16384, 4, true, false, Config::Ragged::always},
                                          {63, 200, 1, false, true, Config::Ragged::always}};
  return all;
}

} // namespace tcbound::test
