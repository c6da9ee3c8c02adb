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

// What is between lines is not a number, nor may it get into a cell.
std::vector<double> random_cells(const stencil::Grid &grid, int seed) {
  std::vector<double> cells(static_cast<std::size_t>(grid.stored()));
  parallel_for(grid.stored(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      cells[i] = i % grid.line() < grid.extent[0] ? uniform_of(seed, i) - 0.5 : std::nan("");
  });
  return cells;
}

// What is timed: steps, or sweeps of a relaxation, perhaps from 0.
struct Task {
  int  steps = 1;
  bool relaxes = false, from_zero = false;
};

// Factors that differ, so that none can stand for another; with them no sweep enlarges an error.
stencil::Relaxation relaxation(const Problem &problem, int steps) {
  stencil::Relaxation r;
  r.ring_diagonal = problem.weights[problem.shape.centre()];
  for (int s = 0; s < steps; ++s) r.factors.push_back((0.9 - 0.1 * (s % 4)) / r.ring_diagonal);
  return r;
}

// Of `lines` lines of a grid.
std::int64_t differences(Executor &executor, const double *found, const double *expected, std::int64_t lines,
                         const stencil::Grid &grid, double tolerance) {
#ifdef TCBOUND_HAVE_CUDA
  if (executor.space() == MemorySpace::cuda)
    return count_differences(executor, found, expected, lines, grid.extent[0], grid.line(), tolerance);
#endif
  (void)executor;
  std::int64_t count = 0;
  for (std::int64_t line = 0; line < lines; ++line)
    for (std::int64_t x = 0; x < grid.extent[0]; ++x) {
      const std::int64_t i = line * grid.line() + x;
      count += tolerance > 0.0 ? !(std::abs(found[i] - expected[i]) <= tolerance)
                               : std::memcmp(&found[i], &expected[i], sizeof(double)) != 0;
    }
  return count;
}

// A problem's cells in the executor's memory, and what the plain kernel makes of them step by step.
class Bench {
public:
  Bench(const Problem &problem, bool relaxes, Executor &executor)
    : problem_(problem), executor_(executor), cells_(random_cells(problem.grid, 2)),
      b_(relaxes ? random_cells(problem.grid, 3) : std::vector<double>()), in_(executor, size()), out_(executor, size()),
      poison_(executor, size()), expected_(executor, size()), scratch_(executor, size()),
      source_(executor, relaxes ? size() : 0) {
    const std::vector<double> nothing(static_cast<std::size_t>(size()), std::nan(""));
    executor.copy(poison_.data(), executor.space(), nothing.data(), MemorySpace::host, bytes());
    executor.copy(in_.data(), executor.space(), cells_.data(), MemorySpace::host, bytes());
    executor.copy(expected_.data(), executor.space(), in_.data(), executor.space(), bytes());
    if (relaxes) executor.copy(source_.data(), executor.space(), b_.data(), MemorySpace::host, bytes());
  }

  double microseconds_of(Sweep &sweep, const Task &task, int repeats) {
    const auto          interval = executor_.interval();
    std::vector<double> times;
    apply(sweep, task, out_.data());
    for (int i = 0; i < repeats; ++i) {
      interval->begin();
      apply(sweep, task, out_.data());
      interval->end();
      times.push_back(1e6 * interval->seconds());
    }
    return median(times);
  }

  // Poisons the result, does the task and compares all of it with what plain steps give; steps may not decrease from call to
  // call unless the task relaxes. Returns what is wrong.
  std::string verify(Sweep &plain, Sweep &sweep, const Task &task) {
    if (task.relaxes) apply(plain, task, expected_.data());
    for (; !task.relaxes && done_ < task.steps; ++done_) {
      plain.run(executor_, expected_.data(), scratch_.data(), 1);
      std::swap(expected_, scratch_);
    }
    executor_.copy(out_.data(), executor_.space(), poison_.data(), executor_.space(), bytes());
    apply(sweep, task, out_.data());
    // The sum of the weights' magnitudes is 1, and so is the bound of all cells: an error of rounding does not grow with a step.
    const double       tolerance = sweep.same_bits() ? 0.0 : 0x1p-53 * 64.0 * task.steps;
    const std::int64_t wrong = differences(executor_, out_.data(), expected_.data(), lines(), problem_.grid, tolerance);
    if (wrong > 0) return std::to_string(wrong) + " cells differ from plain steps";
    return verify_bands(task, tolerance);
  }

private:
  std::int64_t size() const { return problem_.grid.stored(); }
  std::int64_t lines() const { return problem_.grid.extent[1] * problem_.grid.extent[2]; }
  std::size_t  bytes() const { return static_cast<std::size_t>(size()) * sizeof(double); }

  void apply(Sweep &sweep, const Task &task, double *out) {
    if (task.relaxes)
      sweep.relax(executor_, task.from_zero ? nullptr : in_.data(), source_.data(), out, relaxation(problem_, task.steps));
    else
      sweep.run(executor_, in_.data(), out, task.steps);
  }

  // Compares bands of lines (rows, in three dimensions planes) at the beginning, in the middle and at the end with what the host
  // computes from the lines that they depend on.
  std::string verify_bands(const Task &task, double tolerance) const {
    const std::size_t  direction = static_cast<std::size_t>(problem_.shape.dimensions) - 1;
    const std::int64_t lines = problem_.grid.extent[direction], line = size() / std::max<std::int64_t>(lines, 1);
    const std::int64_t reach = static_cast<std::int64_t>(task.steps) * problem_.shape.radius;
    const auto         host = make_host_executor();
    for (const std::int64_t middle : {std::int64_t(0), lines / 2, lines}) {
      const std::int64_t begin = std::max<std::int64_t>(0, middle - band_lines / 2),
                         end = std::min(lines, middle + band_lines / 2);
      const std::int64_t first = std::max<std::int64_t>(0, begin - reach), last = std::min(lines, end + reach);
      Problem            part = problem_;
      part.grid.extent[direction] = last - first;
      std::vector<double> band(static_cast<std::size_t>(part.grid.stored())),
        found(static_cast<std::size_t>((end - begin) * line));
      const auto    sweep = stencil::find_sweeper("stencil/iterated/host")->build(*host, part, {1});
      const double *cells = &cells_[first * line];
      if (task.relaxes)
        sweep->relax(*host, task.from_zero ? nullptr : cells, &b_[first * line], band.data(), relaxation(part, task.steps));
      else
        sweep->run(*host, cells, band.data(), task.steps);
      executor_.copy(found.data(), MemorySpace::host, out_.data() + begin * line, executor_.space(),
                     found.size() * sizeof(double));
      const std::int64_t wrong = differences(*host, found.data(), &band[(begin - first) * line],
                                             (end - begin) * line / problem_.grid.line(), problem_.grid, tolerance);
      if (wrong > 0) return std::to_string(wrong) + " cells differ from the host's, lines from " + std::to_string(begin);
    }
    return {};
  }

  const Problem             problem_;
  Executor                 &executor_;
  const std::vector<double> cells_, b_;
  Array<double>             in_, out_, poison_, expected_, scratch_, source_;
  int                       done_ = 0; // steps that expected_ is ahead of in_
};

bool wanted(const Sweeper &sweeper, const StencilOptions &options) {
  return options.kernels.empty() ||
         std::find(options.kernels.begin(), options.kernels.end(), sweeper.name()) != options.kernels.end();
}

struct Contender {
  const Sweeper    *sweeper;
  stencil::Settings settings;
  Task              task;
};

// By depth; kernels on tensor cores with each instruction that the device has.
std::vector<Contender> contenders(const StencilCase &one, const Device &device, const StencilOptions &options) {
  const stencil::Shape  &shape = one.problem.shape;
  std::vector<Contender> all;
  for (const Sweeper *sweeper : stencil::all_sweepers()) {
    if (sweeper->backend() == "plain" || !wanted(*sweeper, options) || !sweeper->check(device, shape).empty()) continue;
    const auto add = [&](MmaShape mma) {
      for (const int depth : one.relaxes ? sweeper->relaxation_depths(shape) : sweeper->depths(shape, mma))
        if (options.depths.empty() || std::find(options.depths.begin(), options.depths.end(), depth) != options.depths.end())
          all.push_back({sweeper, {depth, mma}, {depth, one.relaxes}});
    };
    if (sweeper->backend() != "tensor_core") {
      add(MmaShape::automatic);
    } else {
      for (const MmaShapeFacts &facts : mma_shapes)
        if (check_mma(device, facts.shape).empty()) add(facts.shape);
    }
    if (one.relaxes && options.depths.empty() && sweeper->why_no_relaxation(shape).empty())
      for (const bool from_zero : {false, true}) all.push_back({sweeper, {}, {4, true, from_zero}});
  }
  std::stable_sort(all.begin(), all.end(), [](const auto &a, const auto &b) { return a.task.steps < b.task.steps; });
  return all;
}

} // namespace

StencilResult measure(const StencilCase &one, Executor &executor, const StencilOptions &options) {
  const Problem &problem = one.problem;
  const bool     host = executor.space() == MemorySpace::host;
  const Sweeper &baseline = *stencil::find_sweeper(host ? "stencil/iterated/host" : "stencil/iterated/plain");
  const auto     plain = baseline.build(executor, problem, {1});
  const double   cells = static_cast<double>(problem.grid.changing(problem.shape.dimensions));
  Bench          bench(problem, one.relaxes, executor);
  StencilResult  result;
  result.name = one.name;
  result.baseline = baseline.name();
  result.repeats = options.repeats ? options.repeats : host ? 3 : 15;
  result.plain_time_us = bench.microseconds_of(*plain, {1, one.relaxes}, baseline_repeats);
  for (const auto &[sweeper, settings, task] : contenders(one, executor.device(), options)) {
    StencilOutcome outcome;
    outcome.kernel = sweeper->name();
    outcome.depth = settings.depth;
    outcome.steps = task.steps;
    outcome.from_zero = task.from_zero;
    try {
      const auto        sweep = sweeper->build(executor, problem, settings);
      const std::string wrong = bench.verify(*plain, *sweep, task);
      if (!wrong.empty()) throw std::runtime_error(wrong);
      outcome.mma = sweep->mma();
      outcome.same_bits = sweep->same_bits();
      outcome.work = one.relaxes ? sweep->work_of_relaxation(task.steps, task.from_zero) : sweep->work(task.steps);
      outcome.time_us = bench.microseconds_of(*sweep, task, result.repeats);
      outcome.gcells = 1e-3 * cells * task.steps / outcome.time_us;
      outcome.plain_time_us =
        task.from_zero ? bench.microseconds_of(*plain, task, baseline_repeats) : task.steps * result.plain_time_us;
      result.outcomes.push_back(outcome);
    } catch (const std::exception &error) {
      result.failures.push_back(one.name + ", " + outcome.kernel + ", " + std::to_string(task.steps) + " steps, depth " +
                                std::to_string(settings.depth) + ": " + error.what());
      executor.synchronize(); // throws when the device is lost: nothing after that would mean anything
    }
  }
  return result;
}

} // namespace tcbound::bench
