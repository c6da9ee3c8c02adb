#include "cases.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "rules.h"

namespace tcbound::bench {
namespace {

// Sizes are such that CSR and vectors are several times the 60 MB of an H200's L2, but for the first, epidemic and ecology.
std::vector<MatrixCase> list() {
  std::vector<MatrixCase> cases;
  const auto              add = [&](std::string name, bool definite, auto make, int block = 1) {
    cases.push_back({name, [=](bool quick) { return make(quick, name); }, definite, block});
  };
  const auto add_poisson = [&](std::string name, std::int64_t n, int points, bool variable) {
    add(std::move(name), true, [=](bool quick, const std::string &s) { return poisson(quick ? 12 : n, points, variable, s); });
  };
  add_poisson("poisson7-64", 64, 7, false);
  add_poisson("poisson7-256", 256, 7, false);
  add_poisson("poisson27-160", 160, 27, false);
  add_poisson("poisson7-256-variable", 256, 7, true);
  add_poisson("poisson27-160-variable", 160, 27, true);
  add(
    "elasticity-64", true, [](bool quick, const std::string &s) { return elasticity(quick ? 8 : 64, s); }, 3);
  add("q2-80", true, [](bool quick, const std::string &s) { return q2_vertices(quick ? 10 : 80, s); });
  add("anisotropic-4000", true, [](bool quick, const std::string &s) { return anisotropic(quick ? 50 : 4000, s); });
  add("tetrahedra-128-shuffled", true,
      [](bool quick, const std::string &s) { return tetrahedra(quick ? 14 : 128, Numbering::shuffled, s); });
  add("tetrahedra-128-rcm", true,
      [](bool quick, const std::string &s) { return tetrahedra(quick ? 14 : 128, Numbering::reverse_cuthill_mckee, s); });
  add("mc2depi", false, [](bool quick, const std::string &s) { return quick ? epidemic(40, 16, s) : epidemic(1025, 256, s); });
  add("nlpkkt80", false, [](bool quick, const std::string &s) { return nlpkkt(quick ? 8 : 80, s); });
  add("wilson-dirac-16", false, [](bool quick, const std::string &s) { return wilson_dirac(quick ? 4 : 16, s); });
  add("ecology1", false, [](bool quick, const std::string &s) { return ecology(quick ? 50 : 1000, s); });
  add("rmat-22", false, [](bool quick, const std::string &s) { return rmat(quick ? 10 : 22, 16, s); });
  add("uniform", false, [](bool quick, const std::string &s) { return uniform_rows(quick ? 2000 : 2000000, s); });
  add("roads", false, [](bool quick, const std::string &s) { return roads(quick ? 1 : 44, s); });
  add("circuit", false, [](bool quick, const std::string &s) { return circuit(quick ? 11 : 22, s); });
  add("lp-tall", false, [](bool quick, const std::string &s) { return crews(quick ? 3000 : 2600000, quick ? 50 : 4000, s); });
  add("lp-wide", false,
      [](bool quick, const std::string &s) { return transpose(crews(quick ? 3000 : 2600000, quick ? 50 : 4000, s), s); });
  add("arrowhead", false, [](bool quick, const std::string &s) { return arrowhead(quick ? 3000 : 8000000, s); });
  add("banded-empty", false,
      [](bool quick, const std::string &s) { return banded_with_empty_rows(quick ? 3000 : 2500000, s); });
  const std::size_t suite = cases.size();
  // On demand. The matrices on which public tensor-core SpMV (DASP) was timed on an H200; a few times its L2.
  add_poisson("poisson27-90-variable", 90, 27, true);
  add_poisson("poisson7-150-variable", 150, 7, true);
  add(
    "elasticity-45", true, [](bool quick, const std::string &s) { return elasticity(quick ? 8 : 45, s); }, 3);
  add("rmat-20", false, [](bool quick, const std::string &s) { return rmat(quick ? 10 : 20, 16, s); });
  add("uniform-1500k", false, [](bool quick, const std::string &s) { return uniform_rows(quick ? 2000 : 1500000, s); });
  // Nodes with enough rows to fill matrix instructions, for products with several columns.
  add(
    "reaction4-40", true, [](bool quick, const std::string &s) { return reaction(quick ? 6 : 40, 4, s); }, 4);
  add(
    "reaction8-30", true, [](bool quick, const std::string &s) { return reaction(quick ? 6 : 30, 8, s); }, 8);
  for (std::size_t i = suite; i < cases.size(); ++i) cases[i].on_demand = true;
  return cases;
}

} // namespace

const std::vector<MatrixCase> &matrix_cases() {
  static const std::vector<MatrixCase> cases = list();
  return cases;
}

std::vector<MatrixCase> find_cases(const std::vector<std::string> &names) {
  std::vector<MatrixCase> found;
  if (names.empty())
    std::copy_if(matrix_cases().begin(), matrix_cases().end(), std::back_inserter(found),
                 [](const MatrixCase &one) { return !one.on_demand; });
  for (const std::string &name : names) {
    std::string valid;
    bool        known = false;
    for (const MatrixCase &one : matrix_cases()) {
      if (one.name == name) {
        found.push_back(one);
        known = true;
      }
      valid += (valid.empty() ? "" : ", ") + one.name;
    }
    if (!known) throw std::invalid_argument("there is no case " + name + "; the cases are " + valid);
  }
  return found;
}

} // namespace tcbound::bench
