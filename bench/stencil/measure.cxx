#include "measure.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compare.h"
#include "parallel.h"
#include "random.h"

namespace tcbound::bench {
namespace {

using stencil::Problem;
using stencil::Sweep;
using stencil::Sweeper;

constexpr int baseline_repeats = 5, band_lines = 8;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

std::vector<double> random_cells(std::int64_t size) {
  std::vector<double> cells(static_cast<std::size_t>(size));
  parallel_for(size, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) cells[i] = uniform_of(2, i) - 0.5;
  });
  return cells;
}

double microseconds_of(Executor &executor, Sweep &sweep, const double *in, double *out, int steps, int repeats) {
  const auto          interval = executor.interval();
  std::vector<double> times;
  sweep.run(executor, in, out, steps);
  for (int i = 0; i < repeats; ++i) {
    interval->begin();
    sweep.run(executor, in, out, steps);
    interval->end();
    times.push_back(1e6 * interval->seconds());
  }
  return median(times);
}

std::int64_t differences(Executor &executor, const double *found, const double *expected, std::int64_t size, double tolerance) {
#ifdef TCBOUND_HAVE_CUDA
  if (executor.space() == MemorySpace::cuda) return count_differences(executor, found, expected, size, tolerance);
#endif
  (void)executor;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < size; ++i)
    count += tolerance > 0.0 ? !(std::abs(found[i] - expected[i]) <= tolerance)
                             : std::memcmp(&found[i], &expected[i], sizeof(double)) != 0;
  return count;
}

// A problem's cells in the executor's memory, and what the plain kernel makes of them step by step.
class Bench {
public:
  Bench(const Problem &problem, Executor &executor)
    : problem_(problem), executor_(executor), cells_(random_cells(size())), in_(executor, size()), out_(executor, size()),
      poison_(executor, size()), expected_(executor, size()), scratch_(executor, size()) {
    const std::vector<double> nothing(static_cast<std::size_t>(size()), std::nan(""));
    executor.copy(poison_.data(), executor.space(), nothing.data(), MemorySpace::host, bytes());
    executor.copy(in_.data(), executor.space(), cells_.data(), MemorySpace::host, bytes());
    executor.copy(expected_.data(), executor.space(), in_.data(), executor.space(), bytes());
  }

  const double *in() const { return in_.data(); }
  double       *out() { return out_.data(); }

  // Poisons the result, runs `steps` steps and compares all of it with as many plain steps; steps may not decrease from call to
  // call. Returns what is wrong.
  std::string verify(Sweep &plain, Sweep &sweep, int steps) {
    for (; done_ < steps; ++done_) {
      plain.run(executor_, expected_.data(), scratch_.data(), 1);
      std::swap(expected_, scratch_);
    }
    executor_.copy(out_.data(), executor_.space(), poison_.data(), executor_.space(), bytes());
    sweep.run(executor_, in_.data(), out_.data(), steps);
    // The sum of the weights' magnitudes is 1, and so is the bound of all cells: an error of rounding does not grow with a step.
    const double       tolerance = sweep.same_bits() ? 0.0 : 0x1p-53 * 64.0 * steps;
    const std::int64_t wrong = differences(executor_, out_.data(), expected_.data(), size(), tolerance);
    if (wrong > 0) return std::to_string(wrong) + " cells differ from plain steps";
    return verify_bands(steps, tolerance);
  }

private:
  std::int64_t size() const { return problem_.grid.size(); }
  std::size_t  bytes() const { return static_cast<std::size_t>(size()) * sizeof(double); }

  // Compares bands of lines (rows, in three dimensions planes) at the beginning, in the middle and at the end with what the host
  // computes from the lines that they depend on.
  std::string verify_bands(int steps, double tolerance) const {
    const std::size_t  direction = static_cast<std::size_t>(problem_.shape.dimensions) - 1;
    const std::int64_t lines = problem_.grid.extent[direction], line = size() / std::max<std::int64_t>(lines, 1);
    const std::int64_t reach = static_cast<std::int64_t>(steps) * problem_.shape.radius;
    const auto         host = make_host_executor();
    for (const std::int64_t middle : {std::int64_t(0), lines / 2, lines}) {
      const std::int64_t begin = std::max<std::int64_t>(0, middle - band_lines / 2),
                         end = std::min(lines, middle + band_lines / 2);
      const std::int64_t first = std::max<std::int64_t>(0, begin - reach), last = std::min(lines, end + reach);
      Problem            part = problem_;
      part.grid.extent[direction] = last - first;
      std::vector<double> band(static_cast<std::size_t>(part.grid.size())),
        found(static_cast<std::size_t>((end - begin) * line));
      stencil::find_sweeper("stencil/iterated/host")
        ->build(*host, part, {1})
        ->run(*host, &cells_[first * line], band.data(), steps);
      executor_.copy(found.data(), MemorySpace::host, out_.data() + begin * line, executor_.space(),
                     found.size() * sizeof(double));
      const std::int64_t wrong =
        differences(*host, found.data(), &band[(begin - first) * line], static_cast<std::int64_t>(found.size()), tolerance);
      if (wrong > 0) return std::to_string(wrong) + " cells differ from the host's, lines from " + std::to_string(begin);
    }
    return {};
  }

  const Problem             problem_;
  Executor                 &executor_;
  const std::vector<double> cells_;
  Array<double>             in_, out_, poison_, expected_, scratch_;
  int                       done_ = 0; // steps that expected_ is ahead of in_
};

bool wanted(const Sweeper &sweeper, const StencilOptions &options) {
  return options.kernels.empty() ||
         std::find(options.kernels.begin(), options.kernels.end(), sweeper.name()) != options.kernels.end();
}

struct Contender {
  const Sweeper    *sweeper;
  stencil::Settings settings;
};

// By depth; kernels on tensor cores with each instruction that the device has.
std::vector<Contender> contenders(const Problem &problem, const Device &device, const StencilOptions &options) {
  std::vector<Contender> all;
  for (const Sweeper *sweeper : stencil::all_sweepers()) {
    if (sweeper->backend() == "plain" || !wanted(*sweeper, options) || !sweeper->check(device, problem.shape).empty()) continue;
    const auto add = [&](MmaShape mma) {
      for (const int depth : sweeper->depths(problem.shape, mma))
        if (options.depths.empty() || std::find(options.depths.begin(), options.depths.end(), depth) != options.depths.end())
          all.push_back({sweeper, {depth, mma}});
    };
    if (sweeper->backend() != "tensor_core") {
      add(MmaShape::automatic);
    } else {
      for (const MmaShapeFacts &facts : mma_shapes)
        if (check_mma(device, facts.shape).empty()) add(facts.shape);
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto &a, const auto &b) { return a.settings.depth < b.settings.depth; });
  return all;
}

} // namespace

StencilResult measure(const StencilCase &one, Executor &executor, const StencilOptions &options) {
  const Problem &problem = one.problem;
  const bool     host = executor.space() == MemorySpace::host;
  const Sweeper &baseline = *stencil::find_sweeper(host ? "stencil/iterated/host" : "stencil/iterated/plain");
  const auto     plain = baseline.build(executor, problem, {1});
  const double   cells = static_cast<double>(problem.grid.changing(problem.shape.dimensions));
  Bench          bench(problem, executor);
  StencilResult  result;
  result.name = one.name;
  result.baseline = baseline.name();
  result.repeats = options.repeats ? options.repeats : host ? 3 : 15;
  result.plain_time_us = microseconds_of(executor, *plain, bench.in(), bench.out(), 1, baseline_repeats);
  for (const auto &[sweeper, settings] : contenders(problem, executor.device(), options)) {
    const int      depth = settings.depth;
    StencilOutcome outcome;
    outcome.kernel = sweeper->name();
    outcome.depth = depth;
    try {
      const auto        sweep = sweeper->build(executor, problem, settings);
      const std::string wrong = bench.verify(*plain, *sweep, depth);
      if (!wrong.empty()) throw std::runtime_error(wrong);
      outcome.mma = sweep->mma();
      outcome.same_bits = sweep->same_bits();
      outcome.work = sweep->work(depth);
      outcome.time_us = microseconds_of(executor, *sweep, bench.in(), bench.out(), depth, result.repeats);
      outcome.gcells = 1e-3 * cells * depth / outcome.time_us;
      outcome.ratio = depth * result.plain_time_us / outcome.time_us;
      result.outcomes.push_back(outcome);
    } catch (const std::exception &error) {
      result.failures.push_back(one.name + ", " + outcome.kernel + ", " + std::to_string(depth) +
                                " steps a pass: " + error.what());
      executor.synchronize(); // throws when the device is lost: nothing after that would mean anything
    }
  }
  return result;
}

} // namespace tcbound::bench
