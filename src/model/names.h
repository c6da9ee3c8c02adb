#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace tcbound {

// The number of single-letter insertions, deletions and replacements that turn a into b (Levenshtein's distance).
inline std::size_t edit_distance(const std::string &a, const std::string &b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// The name of a non-empty list that `name` is most likely a misspelling of.
inline std::string nearest_name(const std::string &name, const std::vector<std::string> &names) {
  return *std::min_element(names.begin(), names.end(), [&](const std::string &a, const std::string &b) {
    return edit_distance(name, a) < edit_distance(name, b);
  });
}

inline std::string join_names(const std::vector<std::string> &names, const std::string &separator) {
  std::string all;
  for (const std::string &name : names) all += (all.empty() ? "" : separator) + name;
  return all;
}

} // namespace tcbound
