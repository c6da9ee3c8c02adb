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

constexpr int block = 64; // cells summed at once: their sums lie in registers or in the first cache

// Cells x_begin to x_end of a row whose neighbours all exist. from[p]: the row of point p, moved by its offset in x.
TCBOUND_INLINE void sum_points(double *to, const double *const *from, const double *weights, int points, std::int64_t x_begin,
                               std::int64_t x_end) {
  std::int64_t x = x_begin;
  for (; x + block <= x_end; x += block) {
    double sums[block];
    for (int i = 0; i < block; ++i) sums[i] = weights[0] * from[0][x + i];
    for (int p = 1; p < points; ++p)
      for (int i = 0; i < block; ++i) sums[i] = std::fma(weights[p], from[p][x + i], sums[i]);
    std::memcpy(to + x, sums, sizeof sums);
  }
  for (; x < x_end; ++x) {
    double sum = weights[0] * from[0][x];
    for (int p = 1; p < points; ++p) sum = std::fma(weights[p], from[p][x], sum);
    to[x] = sum;
  }
}

using SumPoints = void (*)(double *, const double *const *, const double *, int, std::int64_t, std::int64_t);

void sum_points_anywhere(double *to, const double *const *from, const double *weights, int points, std::int64_t x_begin,
                         std::int64_t x_end) {
  sum_points(to, from, weights, points, x_begin, x_end);
}

// std::fma calls a function where the instruction set lacks multiply-adds; with it, these become vectors of them.
#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2,fma"))) void sum_points_avx2(double *to, const double *const *from, const double *weights,
                                                         int points, std::int64_t x_begin, std::int64_t x_end) {
  sum_points(to, from, weights, points, x_begin, x_end);
}
__attribute__((target("avx512f,avx512vl,avx512dq,avx2,fma"))) void sum_points_avx512(double *to, const double *const *from,
                                                                                     const double *weights, int points,
                                                                                     std::int64_t x_begin, std::int64_t x_end) {
  sum_points(to, from, weights, points, x_begin, x_end);
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

class HostPass final : public Pass {
public:
  HostPass(const Problem &problem, int depth)
    : p_(problem), depth_(depth), row_(problem.grid.extent[0]),
      rows_(problem.shape.dimensions == 3 ? problem.grid.extent[1] : 1),
      lines_(problem.grid.extent[problem.shape.dimensions - 1]), kept_(2 * problem.shape.radius + 1),
      stages_(static_cast<std::size_t>((depth - 1) * kept_ * row_ * rows_)), zeros_(static_cast<std::size_t>(row_)),
      sum_points_(choose_sum_points()) {}

  int    depth() const override { return depth_; }
  double redundancy() const override { return 1.0; }

  void run(Executor &, const double *in, double *out) override {
    const int r = p_.shape.radius;
    for (std::int64_t turn = 0; turn < lines_ + (depth_ - 1) * r; ++turn)
      for (int stage = 0; stage < depth_; ++stage) {
        const std::int64_t line = turn - stage * r;
        if (line >= 0 && line < lines_) step_line(in, out, stage, line);
      }
  }

private:
  // The line before `stage` steps of this pass: of the input, or what the stage before has made of it.
  const double *line_before(const double *in, int stage, std::int64_t line) const {
    return stage == 0 ? in + line * row_ * rows_ : kept_line(stage, line);
  }
  const double *kept_line(int stage, std::int64_t line) const {
    return stages_.data() + ((stage - 1) * kept_ + line % kept_) * row_ * rows_;
  }

  void step_line(const double *in, double *out, int stage, std::int64_t line) {
    double *to = stage == depth_ - 1 ? out + line * row_ * rows_ : const_cast<double *>(kept_line(stage + 1, line));
    if (fixed(line, lines_)) {
      std::copy_n(line_before(in, stage, line), row_ * rows_, to);
      return;
    }
    for (std::int64_t y = 0; y < rows_; ++y) step_row(in, stage, line, y, to + y * row_);
  }

  bool fixed(std::int64_t at, std::int64_t extent) const { return at < p_.grid.ring || at >= extent - p_.grid.ring; }

  // The row of point p, seen from row y of a line; zeros where the array ends.
  const double *row_of(const double *in, int stage, std::int64_t line, std::int64_t y, int p) const {
    const bool         solid = p_.shape.dimensions == 3;
    const auto        &o = p_.shape.offsets[p];
    const std::int64_t l = line + (solid ? o[2] : o[1]), row = y + (solid ? o[1] : 0);
    if (l < 0 || l >= lines_ || row < 0 || row >= rows_) return zeros_.data();
    return line_before(in, stage, l) + row * row_;
  }

  void step_row(const double *in, int stage, std::int64_t line, std::int64_t y, double *to) {
    const int          points = p_.shape.points(), r = p_.shape.radius, ring = p_.grid.ring;
    const double      *own = line_before(in, stage, line) + y * row_;
    const std::int64_t inner_begin = std::min<std::int64_t>(r, row_), inner_end = std::max(inner_begin, row_ - r);
    const double      *rows[most_points], *moved[most_points];
    if (p_.shape.dimensions == 3 && fixed(y, rows_)) {
      std::copy_n(own, row_, to);
      return;
    }
    for (int p = 0; p < points; ++p) {
      rows[p] = row_of(in, stage, line, y, p);
      moved[p] = rows[p] + p_.shape.offsets[p][0];
    }
    const auto near_the_end = [&](std::int64_t x) {
      double sum = 0.0;
      for (int p = 0; p < points; ++p) {
        const std::int64_t at = x + p_.shape.offsets[p][0];
        const double       value = at < 0 || at >= row_ ? 0.0 : rows[p][at];
        sum = p == 0 ? p_.weights[p] * value : std::fma(p_.weights[p], value, sum);
      }
      to[x] = ring > 0 ? own[x] : sum; // within the radius of the end: the ring is as wide
    };
    for (std::int64_t x = 0; x < inner_begin; ++x) near_the_end(x);
    sum_points_(to, moved, p_.weights.data(), points, inner_begin, inner_end);
    for (std::int64_t x = inner_end; x < row_; ++x) near_the_end(x);
  }

  const Problem       p_;
  const int           depth_;
  const std::int64_t  row_, rows_, lines_, kept_;
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
  std::vector<PassMaker> makers(const Shape &, MmaShape) const override {
    std::vector<PassMaker> all;
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
