// spmv/csr/host: one thread, any mixture of 32- and 64-bit indices.
#include <algorithm>

#include "format.h"

namespace tcbound {
namespace {

constexpr int short_row = 16; // entries

// What a row of at most short_row entries needs: one sum, since the processor works on the next rows meanwhile.
template <class Offset, class Index>
double sum_short(const double *values, const Index *columns, const double *x, Offset k, Offset end) {
  double sum = 0.0;
  for (; k < end; ++k) sum += values[k] * x[columns[k]];
  return sum;
}

// Four sums, so that an addition need not wait for the one before it; their order is fixed, so results are reproducible.
template <class Offset, class Index>
double sum_long(const double *values, const Index *columns, const double *x, Offset k, Offset end) {
  double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
  for (; k + 4 <= end; k += 4) {
    s0 += values[k] * x[columns[k]];
    s1 += values[k + 1] * x[columns[k + 1]];
    s2 += values[k + 2] * x[columns[k + 2]];
    s3 += values[k + 3] * x[columns[k + 3]];
  }
  for (; k < end; ++k) s0 += values[k] * x[columns[k]];
  return (s0 + s1) + (s2 + s3);
}

// far: the matrix comes from memory, not from a cache.
template <bool far, class Offset, class Index>
void multiply(const CsrView &a, const Offset *offsets, const Index *columns, const Product &p) {
  const double *values = a.values;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    const Offset begin = offsets[i], end = offsets[i + 1];
    double       sum;
    if (end - begin <= short_row) {
      // Short rows: there the many streams of x crowd out the hardware's own prefetching (7-point Poisson on an EPYC: 1.5 times as
      // fast with this). Not in a function of its own: GCC takes one that only prefetches for free of effects and drops the call.
      if (far) {
        for (std::int64_t ahead = begin; ahead < end; ahead += 8) { // a cache line of values
          __builtin_prefetch(values + std::min(ahead + 256, a.nonzeros), 0, 0);
          __builtin_prefetch(columns + std::min(ahead + 512, a.nonzeros), 0, 0);
        }
      }
      sum = sum_short(values, columns, p.x, begin, end);
    } else {
      sum = sum_long(values, columns, p.x, begin, end);
    }
    p.z[i] = p.beta == 0.0 ? p.alpha * sum : p.alpha * sum + p.beta * p.y[i];
  }
}

// z = beta y first, then row i adds alpha x_i a_i: entries are read in stored order and z is scattered to.
template <class Offset, class Index>
void multiply_transpose(const CsrView &a, const Offset *offsets, const Index *columns, const Product &p) {
  const double *values = a.values;
  for (std::int64_t j = 0; j < a.columns_count; ++j) p.z[j] = p.beta == 0.0 ? 0.0 : p.beta * p.y[j];
  for (std::int64_t i = 0; i < a.rows; ++i) {
    const double scaled = p.alpha * p.x[i];
    for (Offset k = offsets[i]; k < offsets[i + 1]; ++k) p.z[columns[k]] += values[k] * scaled;
  }
}

// Whether products find the matrix in a cache: then prefetching costs time, up to a fifth of a 7-point product. 4 MB is about
// what a core has of the last-level cache of a server when all cores are busy. (The operating system is no help: a virtual
// machine may report the whole socket's cache.)
bool fits_cache(const CsrView &a) {
  return a.nonzeros * (8 + a.columns.bytes) + a.rows * a.row_offsets.bytes <= std::int64_t(4) << 20;
}

template <class Offset, class Index> void run(const CsrView &a, const Product &p) {
  const auto *offsets = static_cast<const Offset *>(a.row_offsets.data);
  const auto *columns = static_cast<const Index *>(a.columns.data);
  if (p.transpose)
    multiply_transpose(a, offsets, columns, p);
  else if (fits_cache(a))
    multiply<false>(a, offsets, columns, p);
  else
    multiply<true>(a, offsets, columns, p);
}

class CsrHost final : public Kernel {
public:
  CsrHost() : Kernel("spmv", "csr", "host") {}

  MemorySpace space() const override { return MemorySpace::host; }

  std::string check(const Device &device, const Problem &problem) const override {
    if (device.space != MemorySpace::host) return "it runs on the host and the device is " + device.name;
    if (problem.csr.space != MemorySpace::host) return "the matrix lies in device memory";
    return {};
  }

  Work predict(const Problem &problem, bool transpose, bool accumulate) const override {
    return csr::count_work(csr::HostFormat::size_of(problem.csr), transpose, accumulate, 0);
  }

  std::unique_ptr<Format> build(Executor &executor, const Problem &problem) const override {
    const std::string why_not = check(executor.device(), problem);
    if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);
    return std::make_unique<csr::HostFormat>(problem.csr);
  }

  void apply(Executor &, Format &format, const Product &product) const override {
    const CsrView &a = static_cast<csr::HostFormat &>(format).view();
    const bool     wide_offsets = a.row_offsets.bytes == 8, wide_columns = a.columns.bytes == 8;
    if (wide_offsets && wide_columns)
      run<std::int64_t, std::int64_t>(a, product);
    else if (wide_offsets)
      run<std::int64_t, std::int32_t>(a, product);
    else if (wide_columns)
      run<std::int32_t, std::int64_t>(a, product);
    else
      run<std::int32_t, std::int32_t>(a, product);
  }
};

} // namespace

const Kernel &spmv_csr_host() {
  static const CsrHost kernel;
  return kernel;
}

} // namespace tcbound
