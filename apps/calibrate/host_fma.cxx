#include "host_fma.h"

#include <cstddef>

namespace tcbound::calibrate {
namespace {

// Vectors of the compiler (GCC and Clang); its contraction of a * b + c makes multiply-adds where the processor has them.
typedef double Vector2 __attribute__((vector_size(16)));
typedef double Vector4 __attribute__((vector_size(32)));
typedef double Vector8 __attribute__((vector_size(64)));

// Two units with a latency of four or five cycles need eight to ten independent chains; with the two constants, twelve chains
// fit in 16 registers.
constexpr int chains = 12;

template <class Vector> constexpr double flops_of_an_iteration() { return 2.0 * chains * (sizeof(Vector) / sizeof(double)); }

template <class Vector>
[[gnu::always_inline]] inline double run_chains(std::int64_t iterations, double factor, double summand) {
  const Vector f = Vector{} + factor, s = Vector{} + summand;
  Vector       r[chains];
  for (int k = 0; k < chains; ++k) r[k] = Vector{} + (1.0 + 0.1 * k);
  for (std::int64_t n = 0; n < iterations; ++n)
    for (int k = 0; k < chains; ++k) r[k] = r[k] * f + s;
  Vector sums{};
  for (int k = 0; k < chains; ++k) sums += r[k];
  double sum = 0;
  for (std::size_t i = 0; i < sizeof(Vector) / sizeof(double); ++i) sum += sums[i];
  return sum;
}

double run_16_bytes(std::int64_t iterations, double factor, double summand) {
  return run_chains<Vector2>(iterations, factor, summand);
}

#ifdef __x86_64__
[[gnu::target("avx2,fma")]] double run_32_bytes(std::int64_t iterations, double factor, double summand) {
  return run_chains<Vector4>(iterations, factor, summand);
}
[[gnu::target("avx512f")]] double run_64_bytes(std::int64_t iterations, double factor, double summand) {
  return run_chains<Vector8>(iterations, factor, summand);
}
#endif

} // namespace

std::vector<FmaLoop> fma_loops() {
#ifdef __x86_64__
  std::vector<FmaLoop> loops{{"SSE2 multiply and add", flops_of_an_iteration<Vector2>(), run_16_bytes}};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    loops.push_back({"AVX2 FMA", flops_of_an_iteration<Vector4>(), run_32_bytes});
  if (__builtin_cpu_supports("avx512f")) loops.push_back({"AVX-512 FMA", flops_of_an_iteration<Vector8>(), run_64_bytes});
  return loops;
#else
  return {{"16-byte vectors", flops_of_an_iteration<Vector2>(), run_16_bytes}};
#endif
}

} // namespace tcbound::calibrate
