// Products of every spmv kernel with several columns at once.
#include "spmv_fixture.h"
#include "structured_matrices.h"

namespace {

using namespace tcbound;
using namespace tcbound::test;

class SpmvColumns : public Spmv {};

TEST_P(SpmvColumns, OfManyMatrices) {
  std::vector<Csr> matrices = {uniform(777, 900, 27),    irregular(3001, 2500, 40),
                               uniform(5, 7000, 3000),   ragged(),
                               uniform(0, 17, 0),        uniform(17, 0, 0),
                               uniform(5000, 5000, 0),   uniform(33, 33, 1),
                               irregular(50, 3000, 300), one_long_row(1000, 300000, 499)};
  matrices.push_back(stencil(20, 11, 9, true, Coefficients::constant));
  matrices.push_back(stencil(20, 11, 9, true, Coefficients::variable));
  for (const int alike : {2, 3, 4, 6, 8}) matrices.push_back(in_nodes(alike, irregular(301, 2500, 40)));
  for (const Csr &a : matrices) {
    const Stored stored(a);
    const auto   format = build(stored.problem());
    for (const bool transpose : {false, true}) {
      for (const std::int64_t count : {1, 2, 3, 8, 13}) expect_columns(a, *format, {transpose, 1.0, 0.0, false, false}, count);
      expect_columns(a, *format, {transpose, -0.5, 2.0, false, true}, 5);
      expect_columns(a, *format, {transpose, 2.0, 1.0, true, false}, 4);
    }
  }
}

TEST_P(SpmvColumns, NoneAreNothing) {
  const Csr    a = uniform(100, 100, 5);
  const Stored stored(a);
  expect_columns(a, *build(stored.problem()), {}, 0);
}

// NaN and infinity stay in their column.
TEST_P(SpmvColumns, NotFinite) {
  const Csr                 a = irregular(1500, 1200, 12);
  const Stored              stored(a);
  const auto                format = build(stored.problem());
  const Columns             by = {3, a.columns_count, 0, a.rows};
  std::vector<double>       x = random_vector(3 * by.x, 1), column(x.begin(), x.begin() + by.x);
  const std::vector<double> none(static_cast<std::size_t>(a.rows));
  x[static_cast<std::size_t>(by.x) + 7] = nan_value;
  x[static_cast<std::size_t>(2 * by.x) + 9] = infinity;
  Guarded device_x(executor(), x, false), device_z(executor(), std::vector<double>(static_cast<std::size_t>(3 * by.z)), false);
  Product product;
  product.x = device_x.data();
  product.z = device_z.data();
  kernel().apply_columns(executor(), *format, product, by);
  bool                      intact;
  const std::vector<double> z = device_z.read(intact);
  for (std::int64_t k = 0; k < 3; ++k)
    expect_near({z.begin() + k * by.z, z.begin() + (k + 1) * by.z},
                reference(a, false, 1.0, 0.0, {x.begin() + k * by.x, x.begin() + (k + 1) * by.x}, none));
}

TEST_P(SpmvColumns, WorkCountsTheMatrixOnceAPass) {
  const Csr    a = uniform(1000, 500, 7);
  const Stored stored(a);
  const auto   format = build(stored.problem());
  const Work   one = format->work(false, false), eight = format->work_of_columns(false, false, 8);
  EXPECT_EQ(format->work_of_columns(false, false, 1), one);
  EXPECT_EQ(eight.useful_flops, 8 * one.useful_flops);
  const std::int64_t vectors = 8 * (a.rows + a.columns_count), matrix = one.bytes - vectors;
  if (kernel().name() == "spmv/csr/cuda_core") // it writes x anew and reads that
    EXPECT_EQ(eight.bytes, matrix + 8 * vectors + 2 * 64 * a.columns_count);
  else if (kernel().format() == "csr")
    EXPECT_EQ(eight.bytes, matrix + 8 * vectors);
  else
    EXPECT_LE(eight.bytes, 8 * one.bytes);
}

std::vector<const Kernel *> kernels_in(MemorySpace space) {
  std::vector<const Kernel *> found;
  for (const Kernel *kernel : all_kernels())
    if (kernel->op() == "spmv" && kernel->space() == space) found.push_back(kernel);
  return found;
}

INSTANTIATE_TEST_SUITE_P(Cpu, SpmvColumns, testing::ValuesIn(kernels_in(MemorySpace::host)), test_name);
INSTANTIATE_TEST_SUITE_P(Gpu, SpmvColumns, testing::ValuesIn(kernels_in(MemorySpace::cuda)), test_name);

} // namespace
