#include "pack_rows.h"

#include "cuda/error.h"

namespace tcbound::csr {
namespace {

constexpr int threads = 256;

template <int K> __global__ void pack(const double *x, std::int64_t rows, const Columns by, double *packed) {
  __shared__ double  tile[threads * (K + 1)];
  const std::int64_t first = blockIdx.x * static_cast<std::int64_t>(threads), row = first + threadIdx.x;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * K;
  double            *to = packed + column * rows + first * K;
  for (int q = 0; q < K; ++q)
    tile[static_cast<int>(threadIdx.x) * (K + 1) + q] =
      row < rows && column + q < by.count ? x[(column + q) * by.x + row] : 0.0;
  __syncthreads();
  const int elements = static_cast<int>(min(static_cast<std::int64_t>(threads), rows - first)) * K;
  for (int e = static_cast<int>(threadIdx.x); e < elements; e += threads) to[e] = tile[e / K * (K + 1) + e % K];
}

} // namespace

void pack_rows(Executor &executor, const double *x, std::int64_t rows, const Columns &by, int at_a_time, std::int64_t padded,
               double *packed) {
  if (rows == 0) return;
  const auto stream = static_cast<cudaStream_t>(executor.stream());
  const dim3 grid(static_cast<unsigned>((rows + threads - 1) / threads), static_cast<unsigned>(padded / at_a_time));
  if (at_a_time == 2)
    pack<2><<<grid, threads, 0, stream>>>(x, rows, by, packed);
  else if (at_a_time == 4)
    pack<4><<<grid, threads, 0, stream>>>(x, rows, by, packed);
  else if (at_a_time == 8)
    pack<8><<<grid, threads, 0, stream>>>(x, rows, by, packed);
  else
    pack<16><<<grid, threads, 0, stream>>>(x, rows, by, packed);
  TCBOUND_LAUNCHED();
}

} // namespace tcbound::csr
