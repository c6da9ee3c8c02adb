#include "relaxation.h"

#include <algorithm>
#include <cmath>

namespace tcbound::stencil {

std::vector<Step> steps_of(const Problem &problem, const Relaxation &relaxation) {
  const int         centre = problem.shape.centre();
  std::vector<Step> steps;
  for (const double f : relaxation.factors) {
    const double ring = f * relaxation.ring_scale;
    Step         step = {{}, f, 1.0, 0.0};
    for (int p = 0; p < problem.shape.points(); ++p)
      step.weights.push_back(p == centre ? std::fma(-f, problem.weights[p], 1.0) : -(f * problem.weights[p]));
    if (problem.grid.ring > 0) {
      step.ring_weight = std::fma(-ring, relaxation.ring_diagonal, 1.0);
      step.ring_source = ring;
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

double cost_of_step(double bytes, double flops, double flops_a_byte) {
  const double exposed = 0.4, arithmetic = flops / flops_a_byte;
  return std::max(bytes, arithmetic) + exposed * std::min(bytes, arithmetic);
}

void PassRelaxation::add(std::unique_ptr<RelaxationPass> pass) {
  if (settings_.depth == 0 || pass->depth() <= settings_.depth) passes_.push_back(std::move(pass));
}

// Of a pass: 24 bytes a cell.
double PassRelaxation::cost(const RelaxationPass &pass) const {
  const double flops = 2.0 * (problem_.shape.points() + 1) * pass.redundancy();
  return pass.depth() * cost_of_step(24.0 / pass.depth(), flops, settings_.balance);
}

// Without a depth that was asked for the cheapest passes: cheapest[n] makes n steps of those before.
std::vector<RelaxationPass *> PassRelaxation::order(int steps) const {
  std::vector<RelaxationPass *> order;
  if (settings_.depth > 0) {
    for (auto pass = passes_.rbegin(); pass != passes_.rend(); ++pass)
      for (; steps >= (*pass)->depth(); steps -= (*pass)->depth()) order.push_back(pass->get());
    return order;
  }
  std::vector<double>           least(static_cast<std::size_t>(steps) + 1, 0.0);
  std::vector<RelaxationPass *> last(least.size(), nullptr);
  for (int n = 1; n <= steps; ++n)
    for (const auto &pass : passes_) {
      if (pass->depth() > n) break;
      const double sum = least[n - pass->depth()] + cost(*pass);
      if (!last[n] || sum < least[n]) {
        least[n] = sum;
        last[n] = pass.get();
      }
    }
  for (int n = steps; n > 0; n -= last[n]->depth()) order.push_back(last[n]);
  std::stable_sort(order.begin(), order.end(), [](const auto *a, const auto *b) { return a->depth() > b->depth(); });
  return order;
}

std::vector<PassRelaxation::Leg> PassRelaxation::legs(int steps, bool zero_start) const {
  const bool       start = zero_start && steps > 0;
  std::vector<Leg> legs;
  for (RelaxationPass *pass : order(start ? steps - 1 : steps)) legs.push_back({pass, pass->depth(), false});
  if (start && !legs.empty() && legs.front().pass->fuses_start())
    legs.front().start = true;
  else if (start)
    legs.insert(legs.begin(), {passes_.front().get(), 0, true});
  return legs;
}

void PassRelaxation::relax(Executor &executor, const double *in, const double *b, double *out, const Relaxation &relaxation,
                           Array<double> &scratch) const {
  const std::int64_t      size = problem_.grid.stored();
  const std::vector<Step> steps = steps_of(problem_, relaxation);
  const std::vector<Leg>  order = legs(static_cast<int>(steps.size()), !in);
  const std::size_t       bytes = static_cast<std::size_t>(size) * sizeof(double);
  if (size == 0) return;
  if (order.empty()) {
    const std::vector<double> zeros(in ? 0 : static_cast<std::size_t>(size), 0.0);
    executor.copy(out, executor.space(), in ? in : zeros.data(), in ? executor.space() : MemorySpace::host, bytes);
  }
  if (order.size() > 1 && scratch.size() == 0) scratch = Array<double>(executor, size);
  const Step *next = steps.data();
  for (std::size_t i = 0; i < order.size(); ++i) { // the last one writes to `out`
    const Leg  &leg = order[i];
    double     *to = (order.size() - i) % 2 ? out : scratch.data();
    const Step *start = leg.start ? next++ : nullptr;
    if (leg.steps > 0)
      leg.pass->relax(executor, start ? b : in, b, to, next, start);
    else
      leg.pass->start(executor, b, to, *start);
    next += leg.steps;
    in = to;
  }
}

// As elsewhere two operations a product: those with the points and with b, in the ring two. From 0 there is one multiplication.
Work PassRelaxation::work(int steps, bool zero_start) const {
  const std::int64_t size = problem_.grid.size(), cells = problem_.grid.changing(problem_.shape.dimensions);
  const std::int64_t a_step = 2 * (problem_.shape.points() + 1) * cells + 4 * (size - cells);
  Work               work;
  for (const Leg &leg : legs(steps, zero_start)) {
    const std::int64_t start = leg.start ? size : 0, useful = leg.steps * a_step;
    work.useful_flops += start + useful;
    work.issued_flops += start + static_cast<std::int64_t>(leg.pass->redundancy() * static_cast<double>(useful));
    work.bytes += (leg.start ? 16 : 24) * size;
  }
  work.compulsory_bytes = work.bytes;
  return work;
}

} // namespace tcbound::stencil
