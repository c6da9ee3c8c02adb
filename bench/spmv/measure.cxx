#include "measure.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace tcbound::bench {
namespace {

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double seconds_of(const std::function<void()> &work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The product by one plain loop a row and how far another order of summation may be from it: each of two sums of n products is
// within n units of rounding of the exact one, relative to the sum of magnitudes (Higham, Accuracy and Stability, 3.1). Lossy
// arithmetic has an error of its own.
class Reference {
public:
  Reference(const Matrix &a, const std::vector<double> &x, int count)
    : matrix_(a), expected_(static_cast<std::size_t>(a.rows * count)), size_(expected_.size()) {
    parallel_for(a.rows * count, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin; at < end; ++at) {
        const std::int64_t i = at % a.rows;
        const double      *column = x.data() + at / a.rows * a.columns_count;
        double             sum = 0.0, size = 0.0;
        for (std::int32_t k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
          sum += a.values[k] * column[a.columns[k]];
          size += std::abs(a.values[k] * column[a.columns[k]]);
        }
        expected_[at] = sum;
        size_[at] = size;
      }
    });
  }

  // Multiplies onto a result full of NaN and compares with `factor` times the expected. Returns the largest error over the sum of
  // magnitudes.
  double verify(Bench &bench, Runner &runner, double factor) const {
    Numbers<double>           z(expected_.size());
    std::atomic<std::int64_t> wrong{-1};
    std::atomic<double>       largest{0.0};
    const std::int64_t        rows = static_cast<std::int64_t>(z.size());
    parallel_for(rows, [&](std::int64_t begin, std::int64_t end) { std::fill(&z[0] + begin, &z[0] + end, std::nan("")); });
    bench.upload(bench.z, z);
    runner.multiply(bench.x.data(), bench.z.data());
    bench.executor.copy(z.data(), MemorySpace::host, bench.z.data(), bench.executor.space(), z.size() * sizeof(double));
    parallel_for(rows, [&](std::int64_t begin, std::int64_t end) {
      double of_part = 0.0;
      for (std::int64_t i = begin; i < end; ++i) {
        const double error = std::abs(z[i] - factor * expected_[i]);
        if (!(error <= factor * tolerance(runner, i))) wrong = i;
        if (size_[i] > 0) of_part = std::max(of_part, error / (factor * size_[i]));
      }
      for (double before = largest; of_part > before && !largest.compare_exchange_weak(before, of_part);) {
      }
    });
    if (wrong < 0) return largest;
    char message[160];
    std::snprintf(message, sizeof message, "row %lld of the product is %.17g and should be %.17g within %.3g",
                  static_cast<long long>(wrong), z[wrong], factor * expected_[wrong], factor * tolerance(runner, wrong));
    throw std::runtime_error(message);
  }

private:
  double tolerance(const Runner &runner, std::int64_t at) const {
    const std::int64_t i = at % matrix_.rows, entries = matrix_.offsets[i + 1] - matrix_.offsets[i];
    double             share = 2.0 * 0x1p-53 * static_cast<double>(entries + 2);
    if (runner.arithmetic() != Arithmetic::fp64) share += lossy_error(runner.arithmetic(), entries, summed_in_fp32);
    return share * size_[at];
  }

  const Matrix       &matrix_;
  std::vector<double> expected_, size_;
};

// Builds it three times, or once where that takes over half a second: the first build of a process also loads code.
std::unique_ptr<Runner> build(const Contender &contender, Outcome &outcome) {
  std::unique_ptr<Runner> runner;
  std::vector<double>     times;
  do {
    runner.reset();
    times.push_back(1e6 * seconds_of([&] { runner = contender.build(); }));
  } while (times.size() < 3 && times[0] < 5e5);
  outcome.build_us = median(times);
  return runner;
}

// Twice the values and back, twice.
void refill(Bench &bench, Runner &runner, const Reference &reference, Outcome &outcome) {
  std::vector<double> times;
  for (int round = 0; round < 4; ++round) {
    const double *values = round % 2 ? bench.values.data() : bench.doubled.data();
    bool          refilled = false;
    times.push_back(1e6 * seconds_of([&] {
                      refilled = runner.refill(values);
                      bench.executor.synchronize();
                    }));
    if (!refilled) return;
    if (round % 2 == 0 || round == 3) reference.verify(bench, runner, round % 2 ? 1.0 : 2.0);
  }
  outcome.refill_us = median(times);
}

// A contender and, while it is in the race, its matrix.
struct Entry {
  Outcome                   outcome;
  std::unique_ptr<Runner>   runner;
  std::unique_ptr<Interval> interval;
  std::vector<double>       times;
};

// All contenders in turns, in another order each round, so that what the one before left in the caches hits all alike. On a
// device a round is queued as a whole behind an untimed product: no launch waits for the host, as in a solver that runs ahead.
void race(Bench &bench, std::vector<Entry> &entries, int repeats, int batch) {
  for (Entry &entry : entries) entry.interval = bench.executor.interval();
  for (int round = 0; round < repeats; ++round) {
    const auto order = random_permutation(static_cast<std::int64_t>(entries.size()), static_cast<std::uint64_t>(round));
    if (bench.executor.space() != MemorySpace::host) entries[order[0]].runner->multiply(bench.x.data(), bench.z.data());
    for (const std::int32_t at : order) {
      Entry &entry = entries[at];
      entry.interval->begin();
      for (int b = 0; b < batch; ++b) entry.runner->multiply(bench.x.data(), bench.z.data());
      entry.interval->end();
    }
    for (Entry &entry : entries) entry.times.push_back(1e6 * entry.interval->seconds() / batch);
  }
  for (Entry &entry : entries) entry.outcome.time_us = median(entry.times);
}

bool wanted(const Contender &contender, const MeasureOptions &options) {
  if (contender.baseline || options.kernels.empty()) return true;
  const std::string plain = contender.name.substr(0, contender.name.find(':'));
  return std::find(options.kernels.begin(), options.kernels.end(), plain) != options.kernels.end();
}

std::vector<Contender> contenders_of(Bench &bench, [[maybe_unused]] const MatrixCase &one, const MeasureOptions &options) {
  std::vector<Contender> all = kernel_contenders(bench, options.variants, options.mma, options.lossy), baselines;
  if (bench.executor.space() == MemorySpace::host) {
    baselines.push_back(petsc_contender(bench));
  } else {
#ifdef TCBOUND_HAVE_CUDA
    baselines = cusparse_contenders(bench, one.block);
#endif
  }
  all.erase(std::remove_if(all.begin(), all.end(), [&](const Contender &c) { return !wanted(c, options); }), all.end());
  all.insert(all.end(), baselines.begin(), baselines.end());
  return all;
}

// Back to back where it is small: such products are short beside the events that time them, and in an application too they find
// the matrix in the cache. A virtual machine may report a whole socket's cache, of which it has a share.
void choose_repeats(CaseResult &result, const Device &device, const MeasureOptions &options) {
  const bool   host = device.space == MemorySpace::host;
  const double cache =
    static_cast<double>(host ? std::min<std::size_t>(device.l2_bytes, std::size_t(32) << 20) : device.l2_bytes);
  result.small = 12.0 * result.nonzeros + 12.0 * result.rows + 8.0 * result.columns < 5.0 * cache;
  result.repeats = options.repeats ? options.repeats : host ? 7 : 30;
  result.batch = options.batch ? options.batch : result.small && !host ? 20 : 1;
}

} // namespace

const Outcome *CaseResult::best(bool baseline) const {
  const Outcome *found = nullptr;
  for (const Outcome &outcome : outcomes)
    if (outcome.baseline == baseline && outcome.arithmetic == Arithmetic::fp64 && (!found || outcome.time_us < found->time_us))
      found = &outcome;
  return found;
}

CaseResult measure(const MatrixCase &one, const Matrix &matrix, Executor &executor, const MeasureOptions &options,
                   Progress &progress) {
  CaseResult                result;
  const std::vector<double> x = random_vector(options.columns * matrix.columns_count, 1);
  result.count = options.columns;
  result.name = matrix.name;
  result.rows = matrix.rows;
  result.columns = matrix.columns_count;
  result.nonzeros = matrix.nonzeros();
  choose_repeats(result, executor.device(), options);
  progress.step(matrix.name + ": the reference and the upload");
  const Reference    reference(matrix, x, options.columns);
  Bench              bench(matrix, executor, options.columns);
  std::vector<Entry> entries;
  bench.upload(bench.x, x);
  for (const Contender &contender : contenders_of(bench, one, options)) {
    if (!contender.why_not.empty()) {
      result.left_out.push_back(contender.name + ": " + contender.why_not);
      continue;
    }
    progress.step(matrix.name + ": building and checking " + contender.name);
    try {
      Entry entry;
      entry.outcome.name = contender.name;
      entry.outcome.baseline = contender.baseline;
      entry.runner = build(contender, entry.outcome);
      entry.outcome.error = reference.verify(bench, *entry.runner, 1.0);
      entry.outcome.arithmetic = entry.runner->arithmetic();
      refill(bench, *entry.runner, reference, entry.outcome);
      entry.outcome.work = entry.runner->work();
      entry.outcome.stored_bytes = entry.runner->stored_bytes();
      entries.push_back(std::move(entry));
    } catch (const std::exception &error) {
      result.failures.push_back(matrix.name + ", " + contender.name + ": " + error.what());
      executor.synchronize(); // throws when the device is lost: nothing after that would mean anything
    }
  }
  progress.step(matrix.name + ": timing " + std::to_string(entries.size()) + " contenders");
  race(bench, entries, result.repeats, result.batch);
  for (Entry &entry : entries) result.outcomes.push_back(std::move(entry.outcome));
  return result;
}

} // namespace tcbound::bench
