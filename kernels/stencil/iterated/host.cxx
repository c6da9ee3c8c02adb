// Sweeps in host memory: lines of cells (rows in two dimensions, planes in three) go through the stages of a pipeline, each of
// which keeps as many lines as the next one needs; with lines that fit a cache, a pass of T steps moves memory once.
// Multiply-adds are fused, in the order of the offsets, so that results have the same bits as those of the other backends.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "pass.h"

namespace tcbound::stencil {
namespace {

#define TCBOUND_INLINE inline __attribute__((always_inline))

// What a row's sums are made of. from[p]: the row of point p, moved by its offset in x. b: null, or what `source` multiplies.
struct Row {
  const double *const *from;
  const double        *weights;
  int                  points;
  const double        *b;
  double               source;
};

// Loops over so many cells become one vector of AVX-512, or two of AVX2, whose sums stay in registers while points are added; in longer
// loops, or over arrays of arrays, compilers keep sums in memory or vectorize over points.
constexpr int lanes = 8;
using Lanes = double[lanes];

TCBOUND_INLINE void start_sums(Lanes &sums, double weight, const double *from) {
  for (int i = 0; i < lanes; ++i) sums[i] = weight * from[i];
}
TCBOUND_INLINE void add_to_sums(Lanes &sums, double weight, const double *from) {
  for (int i = 0; i < lanes; ++i) sums[i] = std::fma(weight, from[i], sums[i]);
}

TCBOUND_INLINE void sum_vector(double *to, const Row &row, std::int64_t x) {
  Lanes sums;
  start_sums(sums, row.weights[0], row.from[0] + x);
  for (int p = 1; p < row.points; ++p) add_to_sums(sums, row.weights[p], row.from[p] + x);
  if (row.b) add_to_sums(sums, row.source, row.b + x);
  std::memcpy(to + x, sums, sizeof sums);
}

// Four at once, so that one's latency is another's time.
TCBOUND_INLINE void sum_four_vectors(double *to, const Row &row, std::int64_t x) {
  Lanes      a, b, c, d;
  const auto add = [&](double weight, const double *from) {
    add_to_sums(a, weight, from);
    add_to_sums(b, weight, from + lanes);
    add_to_sums(c, weight, from + 2 * lanes);
    add_to_sums(d, weight, from + 3 * lanes);
  };
  start_sums(a, row.weights[0], row.from[0] + x);
  start_sums(b, row.weights[0], row.from[0] + x + lanes);
  start_sums(c, row.weights[0], row.from[0] + x + 2 * lanes);
  start_sums(d, row.weights[0], row.from[0] + x + 3 * lanes);
  for (int p = 1; p < row.points; ++p) add(row.weights[p], row.from[p] + x);
  if (row.b) add(row.source, row.b + x);
  std::memcpy(to + x, a, sizeof a);
  std::memcpy(to + x + lanes, b, sizeof b);
  std::memcpy(to + x + 2 * lanes, c, sizeof c);
  std::memcpy(to + x + 3 * lanes, d, sizeof d);
}

// Cells x_begin to x_end of a row whose neighbours all exist.
TCBOUND_INLINE void sum_points(double *to, const Row &row, std::int64_t x_begin, std::int64_t x_end) {
  std::int64_t x = x_begin;
  for (; x + 4 * lanes <= x_end; x += 4 * lanes) sum_four_vectors(to, row, x);
  for (; x + lanes <= x_end; x += lanes) sum_vector(to, row, x);
  if (x < x_end && x_end - x_begin >= lanes) { // some cells once more
    sum_vector(to, row, x_end - lanes);
    return;
  }
  for (; x < x_end; ++x) {
    double sum = row.weights[0] * row.from[0][x];
    for (int p = 1; p < row.points; ++p) sum = std::fma(row.weights[p], row.from[p][x], sum);
    to[x] = row.b ? std::fma(row.source, row.b[x], sum) : sum;
  }
}

using SumPoints = void (*)(double *, const Row &, std::int64_t, std::int64_t);

void sum_points_anywhere(double *to, const Row &row, std::int64_t x_begin, std::int64_t x_end) {
  sum_points(to, row, x_begin, x_end);
}

// std::fma calls a function where the instruction set lacks multiply-adds; with it, these become vectors of them.
#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2,fma"))) void sum_points_avx2(double *to, const Row &row, std::int64_t x_begin, std::int64_t x_end) {
  sum_points(to, row, x_begin, x_end);
}
__attribute__((target("avx512f,avx512vl,avx512dq,avx2,fma"))) void sum_points_avx512(double *to, const Row &row,
                                                                                     std::int64_t x_begin, std::int64_t x_end) {
  sum_points(to, row, x_begin, x_end);
}

SumPoints choose_sum_points() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    return sum_points_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return sum_points_avx2;
  return sum_points_anywhere;
}
#else
SumPoints choose_sum_points() { return sum_points_anywhere; }
#endif

// Plain steps and those of a relaxation.
class HostPass final : public Pass, public RelaxationPass {
public:
  HostPass(const Problem &problem, int depth)
    : p_(problem), depth_(depth), row_(problem.grid.extent[0]), pitch_(problem.grid.line()),
      rows_(problem.shape.dimensions == 3 ? problem.grid.extent[1] : 1),
      lines_(problem.grid.extent[problem.shape.dimensions - 1]), kept_(2 * problem.shape.radius + 1),
      zeros_(static_cast<std::size_t>(row_)), sum_points_(choose_sum_points()) {}

  int    depth() const override { return depth_; }
  double redundancy() const override { return 1.0; }

  void run(Executor &, const double *in, double *out) override { advance({in, nullptr, out, nullptr, nullptr, depth_}); }
  void relax(Executor &, const double *in, const double *b, double *out, const Step *steps, const Step *start) override {
    advance({in, b, out, steps, start, depth_ + (start ? 1 : 0)});
  }
  void start(Executor &, const double *b, double *out, const Step &step) override { advance({b, b, out, nullptr, &step, 1}); }

private:
  // steps, start: null, or those of a relaxation; the step from 0 is stage 0.
  struct Job {
    const double *in, *b;
    double       *out;
    const Step   *steps, *start;
    int           stages;
  };

  void advance(const Job &job) {
    const int         r = p_.shape.radius;
    const std::size_t needed = static_cast<std::size_t>((job.stages - 1) * kept_ * pitch_ * rows_);
    if (stages_.size() < needed) stages_.resize(needed);
    for (std::int64_t turn = 0; turn < lines_ + static_cast<std::int64_t>(job.stages - 1) * r; ++turn)
      for (int stage = 0; stage < job.stages; ++stage) {
        const std::int64_t line = turn - static_cast<std::int64_t>(stage) * r;
        if (line >= 0 && line < lines_) step_line(job, stage, line);
      }
  }

  // The line before `stage` steps of this pass: of the input, or what the stage before has made of it.
  const double *line_before(const Job &job, int stage, std::int64_t line) const {
    return stage == 0 ? job.in + line * pitch_ * rows_ : kept_line(stage, line);
  }
  const double *kept_line(int stage, std::int64_t line) const {
    return stages_.data() + ((stage - 1) * kept_ + line % kept_) * pitch_ * rows_;
  }

  void step_line(const Job &job, int stage, std::int64_t line) {
    double *to = stage == job.stages - 1 ? job.out + line * pitch_ * rows_ : const_cast<double *>(kept_line(stage + 1, line));
    const Step *step = job.steps ? job.steps + stage - (job.start ? 1 : 0) : nullptr;
    for (std::int64_t y = 0; y < rows_; ++y) {
      const std::int64_t row = (line * rows_ + y) * pitch_;
      const double      *b = job.b ? job.b + row : nullptr, *own = line_before(job, stage, line) + y * pitch_;
      const bool         ring = fixed(line, lines_) || (p_.shape.dimensions == 3 && fixed(y, rows_));
      if (job.start && stage == 0)
        start_row(*job.start, ring, b, to + y * pitch_);
      else if (ring)
        for (std::int64_t x = 0; x < row_; ++x) to[y * pitch_ + x] = ring_cell(step, own[x], b ? b[x] : 0.0);
      else
        step_row(job, stage, line, y, step, to + y * pitch_);
    }
  }

  bool fixed(std::int64_t at, std::int64_t extent) const { return at < p_.grid.ring || at >= extent - p_.grid.ring; }

  static double ring_cell(const Step *step, double own, double b) {
    return step ? std::fma(step->ring_source, b, step->ring_weight * own) : own;
  }

  void start_row(const Step &step, bool ring, const double *b, double *to) const {
    for (std::int64_t x = 0; x < row_; ++x) to[x] = (ring || fixed(x, row_) ? step.ring_source : step.source) * b[x];
  }

  // The row of point p, seen from row y of a line; zeros where the array ends.
  const double *row_of(const Job &job, int stage, std::int64_t line, std::int64_t y, int p) const {
    const bool         solid = p_.shape.dimensions == 3;
    const auto        &o = p_.shape.offsets[p];
    const std::int64_t l = line + (solid ? o[2] : o[1]), row = y + (solid ? o[1] : 0);
    if (l < 0 || l >= lines_ || row < 0 || row >= rows_) return zeros_.data();
    return line_before(job, stage, l) + row * pitch_;
  }

  void step_row(const Job &job, int stage, std::int64_t line, std::int64_t y, const Step *step, double *to) {
    const int          points = p_.shape.points(), r = p_.shape.radius, ring = p_.grid.ring;
    const double      *own = line_before(job, stage, line) + y * pitch_;
    const std::int64_t inner_begin = std::min<std::int64_t>(r, row_), inner_end = std::max(inner_begin, row_ - r);
    const double      *rows[most_points], *moved[most_points];
    for (int p = 0; p < points; ++p) {
      rows[p] = row_of(job, stage, line, y, p);
      moved[p] = rows[p] + p_.shape.offsets[p][0];
    }
    const Row  row = {moved, step ? step->weights.data() : p_.weights.data(), points,
                     step ? job.b + (line * rows_ + y) * pitch_ : nullptr, step ? step->source : 0.0};
    const auto near_the_end = [&](std::int64_t x) {
      double sum = 0.0;
      for (int p = 0; p < points; ++p) {
        const std::int64_t at = x + p_.shape.offsets[p][0];
        const double       value = at < 0 || at >= row_ ? 0.0 : rows[p][at];
        sum = p == 0 ? row.weights[p] * value : std::fma(row.weights[p], value, sum);
      }
      if (row.b) sum = std::fma(row.source, row.b[x], sum);
      to[x] = ring > 0 ? ring_cell(step, own[x], row.b ? row.b[x] : 0.0) : sum; // within the radius: the ring is as wide
    };
    for (std::int64_t x = 0; x < inner_begin; ++x) near_the_end(x);
    sum_points_(to, row, inner_begin, inner_end);
    for (std::int64_t x = inner_end; x < row_; ++x) near_the_end(x);
  }

  const Problem       p_;
  const int           depth_;
  const std::int64_t  row_, pitch_, rows_, lines_, kept_;
  std::vector<double> stages_, zeros_;
  const SumPoints     sum_points_;
};

class HostSweeper final : public PassSweeper {
public:
  using PassSweeper::PassSweeper;
  MemorySpace space() const override { return MemorySpace::host; }

  std::string check(const Device &device, const Shape &shape) const override {
    if (device.space != MemorySpace::host) return "it works in host memory";
    if (shape.points() > most_points) return "the stencil has more than " + std::to_string(most_points) + " points";
    return {};
  }

protected:
  std::vector<PassMaker>       makers(const Shape &, MmaShape) const override { return all<Pass>(); }
  std::vector<RelaxationMaker> relaxation_makers(const Shape &) const override { return all<RelaxationPass>(); }

private:
  template <class P> static std::vector<Maker<P>> all() {
    std::vector<Maker<P>> all;
    for (const int depth : {1, 2, 4, 8})
      all.push_back({depth, [depth](Executor &, const Problem &p) { return std::make_unique<HostPass>(p, depth); }});
    return all;
  }
};

} // namespace

const Sweeper &stencil_iterated_host() {
  static const HostSweeper sweeper("iterated", "host");
  return sweeper;
}

} // namespace tcbound::stencil
