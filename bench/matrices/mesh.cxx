// Unstructured numberings of a tetrahedral mesh.
#include <numeric>

#include "rules.h"

namespace tcbound::bench {
namespace {

// Kuhn's (Freudenthal's) subdivision cuts each cube into six tetrahedra around the diagonal from its lowest to its highest
// corner: two vertices share an edge if one is reached from the other by steps of 0 or 1 along every axis.
class KuhnMesh {
public:
  KuhnMesh(std::int64_t n, std::uint64_t seed) : n_(n), label_(random_permutation(n * n * n, seed)), vertex_(label_.size()) {
    for (std::size_t v = 0; v < label_.size(); ++v) vertex_[label_[v]] = static_cast<std::int32_t>(v);
  }

  std::int64_t size() const { return n_ * n_ * n_; }

  // Calls f(label) for each neighbour of the vertex with this label.
  template <class F> void for_neighbours(std::int64_t label, F &&f) const {
    const std::int64_t v = vertex_[label], x = v % n_, y = v / n_ % n_, z = v / n_ / n_;
    for (int direction : {-1, 1}) {
      for (int step = 1; step < 8; ++step) {
        const std::int64_t a = x + direction * (step & 1), b = y + direction * (step >> 1 & 1),
                           c = z + direction * (step >> 2 & 1);
        if (a >= 0 && a < n_ && b >= 0 && b < n_ && c >= 0 && c < n_) f(label_[(c * n_ + b) * n_ + a]);
      }
    }
  }

private:
  std::int64_t              n_;
  std::vector<std::int32_t> label_, vertex_; // of each vertex in lattice order, and the inverse
};

// The order of Cuthill and McKee (1969), reversed (George 1971), from a vertex of least degree.
std::vector<std::int32_t> reverse_cuthill_mckee(const KuhnMesh &mesh) {
  std::vector<std::int32_t> order, near;
  std::vector<std::uint8_t> degree(static_cast<std::size_t>(mesh.size())), seen(degree.size());
  parallel_for(mesh.size(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t v = begin; v < end; ++v) mesh.for_neighbours(v, [&](std::int32_t) { ++degree[v]; });
  });
  order.reserve(degree.size());
  order.push_back(static_cast<std::int32_t>(std::min_element(degree.begin(), degree.end()) - degree.begin()));
  seen[order[0]] = 1;
  for (std::size_t at = 0; at < order.size(); ++at) { // the mesh is connected: this reaches every vertex
    near.clear();
    mesh.for_neighbours(order[at], [&](std::int32_t v) {
      if (!seen[v]) near.push_back(v);
      seen[v] = 1;
    });
    std::sort(near.begin(), near.end(),
              [&](std::int32_t v, std::int32_t w) { return degree[v] != degree[w] ? degree[v] < degree[w] : v < w; });
    order.insert(order.end(), near.begin(), near.end());
  }
  std::reverse(order.begin(), order.end());
  return order;
}

} // namespace

Matrix tetrahedra(std::int64_t n, Numbering numbering, std::string name) {
  const KuhnMesh            mesh(n, 19);
  std::vector<std::int32_t> order(static_cast<std::size_t>(mesh.size())), row_of(order.size());
  if (numbering == Numbering::reverse_cuthill_mckee)
    order = reverse_cuthill_mckee(mesh);
  else
    std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) row_of[order[i]] = static_cast<std::int32_t>(i);
  return make_matrix(std::move(name), mesh.size(), mesh.size(), [&](std::int64_t i, Row &row) {
    const std::int64_t v = order[i];
    double             sum = 1e-3;
    mesh.for_neighbours(v, [&](std::int32_t w) {
      const double c = 0.5 + uniform_of_pair(23, v, w);
      sum += c;
      row.add(row_of[w], -c);
    });
    row.add(i, sum);
    row.sort();
  });
}

} // namespace tcbound::bench
