// Times every spmv/csr kernel and the faster of cuSPARSE's algorithms, with --variants every tuning variant too, on generated
// matrices.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>

#include "kernel.h"
#include "matrices.h"
#include "results.h"
#ifdef TCBOUND_HAVE_CUDA
#include "spmv/csr/cuda_core_tuning.h"
#endif

namespace {

using namespace tcbound;

struct Options {
  std::vector<std::string> cases;
  std::int64_t             n = 0;
  int                      repeats = 50;
  bool                     variants = false, host = false;
  bench::Provenance        provenance;
};

struct Result {
  std::string kernel;
  double      microseconds = 0.0, build_microseconds = 0.0;
  Work        work;
};

// One matrix with its vectors on an executor, and what its product must be. On a device the matrix lies there before any
// format is built from it, as PETSc's would after assembly there.
struct Case {
  Case(const bench::Matrix &a, Executor &e, double bandwidth)
    : matrix(a), executor(e), roof(bandwidth), x(e, a.columns_count), z(e, a.rows), offsets(e, a.rows + 1),
      columns(e, a.nonzeros()), values(e, a.nonzeros()) {
    upload(offsets, a.offsets);
    upload(columns, a.columns);
    upload(values, a.values);
    problem.csr = a.view();
    problem.csr.space = e.space();
    problem.csr.row_offsets.data = offsets.data();
    problem.csr.columns.data = columns.data();
    problem.csr.values = values.data();
  }

  template <class T> void upload(Array<T> &to, const std::vector<T> &from) {
    executor.copy(to.data(), executor.space(), from.data(), MemorySpace::host, from.size() * sizeof(T));
  }

  const bench::Matrix &matrix;
  Executor            &executor;
  double               roof; // bytes/s
  std::vector<double>  expected, tolerance;
  Array<double>        x, z;
  Array<std::int32_t>  offsets, columns;
  Array<double>        values;
  Problem              problem;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// The host kernel's product and, row by row, how far another order of summation may differ from it.
void expect(Case &c, const std::vector<double> &x) {
  const auto          host = make_host_executor();
  const Kernel       *kernel = find_kernel("spmv/csr/host");
  Problem             problem;
  std::vector<double> magnitudes(c.matrix.values.size()), size_of_x(x.size());
  problem.csr = c.matrix.view();
  c.expected.resize(static_cast<std::size_t>(c.matrix.rows));
  c.tolerance.resize(c.expected.size());
  Product product;
  product.x = x.data();
  product.z = c.expected.data();
  kernel->apply(*host, *kernel->build(*host, problem), product);
  std::transform(x.begin(), x.end(), size_of_x.begin(), [](double value) { return std::abs(value); });
  std::transform(c.matrix.values.begin(), c.matrix.values.end(), magnitudes.begin(),
                 [](double value) { return std::abs(value); });
  problem.csr.values = magnitudes.data();
  product.x = size_of_x.data();
  product.z = c.tolerance.data();
  kernel->apply(*host, *kernel->build(*host, problem), product);
  for (std::size_t i = 0; i < c.tolerance.size(); ++i)
    c.tolerance[i] *= 2.0 * 0x1p-53 * (c.matrix.offsets[i + 1] - c.matrix.offsets[i] + 2);
}

void verify(Case &c, const std::string &kernel) {
  std::vector<double> got(c.expected.size());
  c.executor.copy(got.data(), MemorySpace::host, c.z.data(), c.executor.space(), got.size() * sizeof(double));
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - c.expected[i]) <= c.tolerance[i]))
      throw std::runtime_error(kernel + " on " + c.matrix.name + ": row " + std::to_string(i) + " is " +
                               std::to_string(got[i]) + " and should be " + std::to_string(c.expected[i]));
}

template <class Build> Result time_kernel(Case &c, const Kernel &kernel, const std::string &label, Build &&build, int repeats) {
  const auto start = std::chrono::steady_clock::now();
  const auto format_owned = build();
  c.executor.synchronize();
  const double        build_time = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  Format             &format = *format_owned;
  const auto          interval = c.executor.interval();
  std::vector<double> times;
  Product             product;
  product.x = c.x.data();
  product.z = c.z.data();
  c.upload(c.z, std::vector<double>(c.expected.size(), std::nan("")));
  for (int warm_up = 0; warm_up < 3; ++warm_up) kernel.apply(c.executor, format, product);
  verify(c, label);
  for (int i = 0; i < repeats; ++i) {
    interval->begin();
    kernel.apply(c.executor, format, product);
    interval->end();
    times.push_back(interval->seconds());
  }
  return {label, 1e6 * median(times), 1e6 * build_time, format.work(false, false)};
}

std::vector<Result> time_all(Case &c, const Options &options) {
  std::vector<Result> results;
  const auto          time = [&](const Kernel &kernel, const std::string &label, auto &&build) {
    results.push_back(time_kernel(c, kernel, label, build, options.repeats));
  };
  for (const Kernel *kernel : all_kernels()) {
    if (kernel->op() != "spmv" || kernel->format() != "csr" || kernel->space() != c.executor.space()) continue;
    const std::string why_not = kernel->check(c.executor.device(), c.problem);
    if (why_not.empty())
      time(*kernel, kernel->name(), [&] { return kernel->build(c.executor, c.problem); });
    else
      std::printf("%-34s left out: %s\n", kernel->name().c_str(), why_not.c_str());
  }
#ifdef TCBOUND_HAVE_CUDA
  if (c.executor.space() == MemorySpace::cuda) {
    const Kernel &cusparse = *find_kernel("spmv/csr/cusparse"), &cuda_core = *find_kernel("spmv/csr/cuda_core");
    Problem       fastest = c.problem;
    fastest.reproducible = false;
    time(cusparse, cusparse.name() + ":fastest", [&] { return cusparse.build(c.executor, fastest); });
    if (options.variants)
      for (const csr::CudaCoreVariant &variant : csr::cuda_core_variants())
        time(cuda_core, cuda_core.name() + ":" + variant.name,
             [&] { return csr::build_cuda_core(c.executor, c.problem.csr, variant.config); });
  }
#endif
  return results;
}

// The faster of cuSPARSE's algorithms of this run, or null.
const Result *find_baseline(const std::vector<Result> &results) {
  const Result *best = nullptr;
  for (const Result &result : results)
    if (result.kernel.rfind("spmv/csr/cusparse", 0) == 0 && (!best || result.microseconds < best->microseconds)) best = &result;
  return best;
}

void report(const Case &c, const std::vector<Result> &results, const Options &options) {
  const Result *baseline = find_baseline(results);
  std::printf("%s: %lld rows, %lld entries\n%-34s %12s %12s %10s %9s %6s %9s\n", c.matrix.name.c_str(),
              static_cast<long long>(c.matrix.rows), static_cast<long long>(c.matrix.nonzeros()), "kernel", "build/us",
              "time/us", "MB", "GB/s", "roof", "/cusparse");
  for (const Result &result : results) {
    bench::Line line;
    line.name = c.matrix.name;
    line.op = "spmv";
    line.kernel = result.kernel;
    line.device = c.executor.device().name;
    line.time_us = result.microseconds;
    line.repeats = options.repeats;
    line.bytes = result.work.bytes;
    line.useful_flops = result.work.useful_flops;
    line.roof = c.roof;
    if (baseline) {
      line.baseline = baseline->kernel;
      line.baseline_time_us = baseline->microseconds;
    }
    std::printf("%-34s %12.1f %12.2f %10.1f %9.1f %6.3f %9.3f\n", result.kernel.c_str(), result.build_microseconds,
                result.microseconds, 1e-6 * static_cast<double>(line.bytes), line.gbps(), line.roof_fraction(), line.ratio());
    append(options.provenance, line, {{"build_us", result.build_microseconds}});
  }
  std::fflush(stdout);
}

void run_case(const std::string &name, Executor &executor, double roof, const Options &options) {
  const bench::Matrix       matrix = bench::make_case(name, options.n);
  const std::vector<double> x = bench::random_vector(matrix.columns_count, 1);
  Case                      c(matrix, executor, roof);
  c.upload(c.x, x);
  expect(c, x);
  report(c, time_all(c, options), options);
}

int run(const Options &options) {
  std::string               why_not;
  std::unique_ptr<Executor> executor;
  if (options.host)
    executor = make_host_executor();
  else if (cuda_device_count(&why_not) > 0)
    executor = make_cuda_executor(0);
  if (!executor) {
    std::fprintf(stderr, "%s (--host times the host kernel)\n", why_not.c_str());
    return 1;
  }
  const double roof = executor->measure_bandwidth();
  std::printf("%s: y = q x at %.0f GB/s\n", executor->device().name.c_str(), 1e-9 * roof);
  for (const std::string &name : options.cases) run_case(name, *executor, roof, options);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  Options  options;
  CLI::App app("Times the spmv/csr kernels");
  options.cases = tcbound::bench::case_names();
  app.add_option("--case", options.cases, "Matrices")->check(CLI::IsMember(tcbound::bench::case_names()))->delimiter(',');
  app.add_option("--n", options.n, "Their size: points a side, rows (random) or scale (rmat); default each its own");
  app.add_option("--repeats", options.repeats, "Timed products")->check(CLI::Range(30, 100000))->capture_default_str();
  app.add_flag("--variants", options.variants, "Also every tuning variant of cuda_core");
  app.add_flag("--host", options.host, "The host kernel instead of the device's");
  options.provenance.add_options(app);
  options.provenance.argv.assign(argv, argv + argc);
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
