static char help[] =
  "Times iterated stencils, each kernel at each number of steps a pass, against plain steps of the same run. Every result is\n"
  "checked first: all cells against as many plain steps, bands of lines against the host. Weights and cells are random, cells\n"
  "outside the grid keep their values in all steps. Cases relax-... are damped sweeps of Poisson's equation with a right-hand\n"
  "side, without a ring: a pass at each number of steps, and four sweeps in the passes that the kernel chooses, from cells "
  "and\n"
  "from 0. The exit status is 0 only when all results are right.\n\n"
  "  -cases a,b,...     stencil-size (default all; -list names them)\n"
  "  -kernels a,b,...   kernels by name (default all that can run)  -steps a,b,...   steps a pass (default all there are)\n"
  "  -host              host kernels on one thread                  -repeats N       timed passes (15; on the host 3)\n"
  "  -quick             small grids, to test the benchmark itself   -list            the names of cases and kernels\n"
  "  -aligned           lines of cells begin at multiples of 128 bytes; else they follow each other (in relax-...: always)\n"
  "  -output FILE       append results as JSON lines; -git_sha SHA and -git_dirty go into them\n\n";

#include <petscsys.h>

#include <cstdio>
#include <cstdlib>

#include "options.h"
#include "random.h"
#include "stencil/measure.h"

namespace {

using namespace tcbound;
using namespace tcbound::bench;

struct Options {
  std::vector<std::string> cases, steps;
  bool                     host = false, quick = false, list = false, aligned = false;
  StencilOptions           measure;
};

PetscErrorCode ReadOptions(int argc, char **argv, Options *o) {
  PetscBool help_given;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsHasHelp(nullptr, &help_given));
  PetscCall(ReadList("-cases", &o->cases));
  PetscCall(ReadList("-kernels", &o->measure.kernels));
  PetscCall(ReadList("-steps", &o->steps));
  PetscCall(ReadFlag("-host", &o->host));
  PetscCall(ReadFlag("-quick", &o->quick));
  PetscCall(ReadFlag("-list", &o->list));
  PetscCall(ReadFlag("-aligned", &o->aligned));
  PetscCall(ReadCount("-repeats", &o->measure.repeats));
  PetscCall(ReadProvenance(argc, argv, &o->measure.provenance));
  PetscCall(RefuseUnread("-cases, -kernels, -steps, -host, -quick, -list, -aligned, -repeats, -output, -git_sha, -git_dirty"));
  for (const std::string &text : o->steps) {
    const int depth = std::atoi(text.c_str());
    PetscCheck(depth >= 1, PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "-steps %s: counts of at least 1", text.c_str());
    o->measure.depths.push_back(depth);
  }
  o->list = o->list || help_given;
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Cells that change, in x, y and z.
struct Size {
  std::string                 name;
  std::array<std::int64_t, 3> cells;
};

// EBISU's sizes in two dimensions, 512^3 in three, and one of each that no tile divides.
std::vector<Size> sizes_of(const stencil::Shape &shape, bool quick) {
  if (quick) return {{"quick", {301, 157, shape.dimensions == 3 ? 45 : 1}}};
  if (shape.dimensions == 3) return {{"512", {512, 512, 512}}, {"odd", {509, 431, 397}}};
  const std::int64_t n = shape.name == "2d25pt" ? 10560 : shape.name == "2d9pt" || shape.name == "2d49pt" ? 10736 : 10208;
  return {{std::to_string(n), {n, n, 1}}, {"odd", {9973, 7919, 1}}};
}

// Random weights whose magnitudes sum to 1, so that cells keep to [-1/2, 1/2] for ever.
std::vector<double> random_weights(int points) {
  std::vector<double> weights;
  double              sum = 0.0;
  for (int p = 0; p < points; ++p) {
    weights.push_back(2.0 * uniform_of(1, p) - 1.0);
    sum += std::abs(weights.back());
  }
  for (double &weight : weights) weight /= sum;
  return weights;
}

// The negative Laplacian of finite differences, or of as many points: neighbours -1, together with the cell 0.
StencilCase relaxation_case(const std::string &shape, std::int64_t n, bool quick) {
  StencilCase one = {"relax-" + shape + "-" + (quick ? "quick" : std::to_string(n)), {}, true};
  one.problem.shape = stencil::find_shape(shape);
  const bool solid = one.problem.shape.dimensions == 3;
  one.problem.weights.assign(one.problem.shape.offsets.size(), -1.0);
  one.problem.weights[one.problem.shape.centre()] = one.problem.shape.points() - 1.0;
  one.problem.grid.extent = {n, n, solid ? n : 1};
  if (quick) one.problem.grid.extent = {301, 157, solid ? 45 : 1};
  return one;
}

std::vector<StencilCase> all_cases(bool quick, bool aligned) {
  std::vector<StencilCase> cases;
  for (const stencil::Shape &shape : stencil::shapes())
    for (const Size &size : sizes_of(shape, quick)) {
      stencil::Grid grid;
      grid.ring = shape.radius;
      for (int d = 0; d < shape.dimensions; ++d) grid.extent[d] = size.cells[d] + 2 * shape.radius;
      if (aligned) grid.pitch = stencil::aligned_pitch(grid.extent[0]);
      cases.push_back({shape.name + "-" + size.name, {shape, random_weights(shape.points()), grid}});
    }
  cases.push_back(relaxation_case("3d7pt", 256, quick));
  cases.push_back(relaxation_case("3d27pt", 160, quick));
  cases.push_back(relaxation_case("2d5pt", 10208, quick));
  cases.push_back(relaxation_case("2d9pt", 10736, quick));
  return cases;
}

template <class All, class NameOf> std::string join_names(const All &all, NameOf name_of) {
  std::string names;
  for (const auto &one : all) names += (names.empty() ? "" : ", ") + name_of(one);
  return names;
}

std::vector<StencilCase> cases_of(const Options &o) {
  const std::vector<StencilCase> all = all_cases(o.quick, o.aligned);
  std::vector<StencilCase>       found;
  if (o.cases.empty()) return all;
  for (const std::string &name : o.cases) {
    const auto at = std::find_if(all.begin(), all.end(), [&](const StencilCase &one) { return one.name == name; });
    if (at == all.end())
      throw std::invalid_argument("there is no case " + name + "; the cases are " +
                                  join_names(all, [](const StencilCase &one) { return one.name; }));
    found.push_back(*at);
  }
  return found;
}

void check_kernels(const std::vector<std::string> &asked) {
  for (const std::string &name : asked)
    if (!stencil::find_sweeper(name))
      throw std::invalid_argument("there is no kernel " + name + "; the kernels are " +
                                  join_names(stencil::all_sweepers(), [](const auto *sweeper) { return sweeper->name(); }));
}

std::string name_of(const StencilOutcome &o) {
  const std::string chosen = o.from_zero ? ":from-0" : o.depth == 0 ? ":chosen" : "";
  return o.kernel + (o.mma.empty() ? "" : ":" + o.mma) + chosen;
}

void report(const StencilCase &one, const StencilResult &result, const Device &device, double roof,
            const Provenance &provenance) {
  const stencil::Problem &p = one.problem;
  std::printf("\n%s: %d points, %lld by %lld by %lld cells; median of %d passes; plain steps (%s): %.1f us\n", one.name.c_str(),
              p.shape.points(), static_cast<long long>(p.grid.extent[0] - 2 * p.grid.ring),
              static_cast<long long>(p.grid.extent[1] - 2 * p.grid.ring),
              static_cast<long long>(p.shape.dimensions == 3 ? p.grid.extent[2] - 2 * p.grid.ring : 1), result.repeats,
              result.baseline.c_str(), result.plain_time_us);
  std::printf("%-40s %5s %10s %10s %8s %6s %8s %6s\n", "kernel", "steps", "us", "GCells/s", "GB/s", "share", "GFLOP/s",
              "ratio");
  for (const StencilOutcome &o : result.outcomes) {
    Line line;
    line.name = one.name;
    line.op = "stencil";
    line.kernel = name_of(o) + ":" + std::to_string(o.steps);
    line.device = device.name;
    line.time_us = o.time_us;
    line.repeats = result.repeats;
    line.bytes = o.work.bytes;
    line.useful_flops = o.work.useful_flops;
    line.roof = roof;
    line.baseline = result.baseline;
    line.baseline_time_us = o.plain_time_us;
    std::printf("%-40s %5d %10.1f %10.1f %8.1f %6.3f %8.0f %6.2f\n", name_of(o).c_str(), o.steps, o.time_us, o.gcells,
                line.gbps(), line.roof_fraction(), 1e-3 * static_cast<double>(o.work.useful_flops) / o.time_us, o.ratio());
    append(provenance, line,
           {{"steps", o.steps},
            {"points", p.shape.points()},
            {"cells", p.grid.changing(p.shape.dimensions)},
            {"pitch", p.grid.line()},
            {"gcells_per_s", o.gcells},
            {"rho", static_cast<double>(o.work.issued_flops) / static_cast<double>(o.work.useful_flops)},
            {"mma", o.mma.empty() ? nlohmann::json() : nlohmann::json(o.mma)},
            {"same_bits", o.same_bits}});
  }
  for (const std::string &text : result.failures) std::printf("FAILED: %s\n", text.c_str());
  std::fflush(stdout);
}

// The fastest of each case, and with one step a pass.
bool report_summary(const std::vector<StencilResult> &results) {
  int failures = 0;
  std::printf("\n%-18s %-40s %5s %10s %6s %12s\n", "case", "fastest", "steps", "GCells/s", "ratio", "one a pass");
  for (const StencilResult &result : results) {
    const StencilOutcome *best = nullptr, *single = nullptr;
    for (const StencilOutcome &o : result.outcomes) {
      if (!o.from_zero && (!best || o.gcells > best->gcells)) best = &o;
      if (o.depth == 1 && (!single || o.gcells > single->gcells)) single = &o;
    }
    failures += static_cast<int>(result.failures.size());
    if (best)
      std::printf("%-18s %-40s %5d %10.1f %6.2f %12.1f\n", result.name.c_str(), name_of(*best).c_str(), best->steps,
                  best->gcells, best->ratio(), single ? single->gcells : 0.0);
  }
  for (const StencilResult &result : results)
    for (const std::string &text : result.failures) std::printf("FAILED: %s\n", text.c_str());
  std::printf("%d results, %d failed\n", static_cast<int>(results.size()), failures);
  std::fflush(stdout);
  return failures == 0;
}

bool run(const Options &o) {
  check_kernels(o.measure.kernels);
  const std::vector<StencilCase> cases = cases_of(o);
  std::string                    why_not;
  if (!o.host && cuda_device_count(&why_not) == 0)
    throw Error(ErrorCode::unsupported, why_not + " (-host times the host kernels)");
  const auto                 executor = o.host ? make_host_executor() : make_cuda_executor(0);
  const double               roof = executor->measure_bandwidth();
  std::vector<StencilResult> results;
  std::printf("%s: y = q x at %.0f GB/s, so one step a pass at most at %.1f GCells/s\n", executor->device().name.c_str(),
              1e-9 * roof, 1e-9 * roof / 16.0);
  for (const StencilCase &one : cases) {
    results.push_back(measure(one, *executor, o.measure));
    report(one, results.back(), executor->device(), roof, o.measure.provenance);
  }
  return report_summary(results);
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  bool    good = true;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, nullptr, help));
  PetscCall(ReadOptions(argc, argv, &options));
  try {
    if (options.list) {
      for (const StencilCase &one : all_cases(false, false)) std::printf("%s\n", one.name.c_str());
      for (const stencil::Sweeper *sweeper : stencil::all_sweepers()) std::printf("%s\n", sweeper->name().c_str());
    } else {
      good = run(options);
    }
  } catch (const std::exception &error) {
    std::fprintf(stderr, "stencil: %s\n", error.what());
    good = false;
  }
  PetscCall(PetscFinalize());
  return good ? 0 : 1;
}
