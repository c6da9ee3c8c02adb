// Device kernels on a matrix of more than 2^31 nonzeros. A program of its own, because it skips where the memory is too small.
#include "spmv_fixture.h"

namespace {

using namespace tcbound;
using namespace tcbound::test;

class GpuSpmvLarge : public Spmv {};

// A device array that is `first` again and again and ends with `last`.
template <class T>
Array<T> repeated(Executor &executor, std::int64_t size, const std::vector<T> &first, const std::vector<T> &last) {
  Array<T>   array(executor, size);
  const auto length = static_cast<std::int64_t>(first.size()), own = static_cast<std::int64_t>(last.size());
  executor.copy(array.data(), MemorySpace::cuda, first.data(), MemorySpace::host, first.size() * sizeof(T));
  for (std::int64_t filled = length, more; filled < size; filled += more) {
    more = std::min(filled, size - filled);
    executor.copy(array.data() + filled, MemorySpace::cuda, array.data(), MemorySpace::cuda,
                  static_cast<std::size_t>(more) * sizeof(T));
  }
  executor.copy(array.data() + size - own, MemorySpace::cuda, last.data(), MemorySpace::host, last.size() * sizeof(T));
  return array;
}

// All rows are alike except the last ones, whose entries lie beyond 2^31.
TEST_P(GpuSpmvLarge, MoreThanTwoToThe31Nonzeros) {
  const std::int64_t length = 1024, rows = (std::int64_t(1) << 21) + 1000, own = 100;
  const std::size_t  needed = 100'000'000'000;
  if (executor().device().memory_bytes < needed)
    GTEST_SKIP() << "the device has less than " << needed / 1'000'000'000 << " GB of memory";

  const Csr kinds = uniform(1 + own, 3 * length, length); // the row that the others repeat, then those of their own
  const std::vector<std::int32_t> narrow(kinds.columns.begin(), kinds.columns.end());
  const auto                      first = static_cast<std::ptrdiff_t>(length);
  const auto columns = repeated<std::int32_t>(executor(), rows * length, {narrow.begin(), narrow.begin() + first},
                                              {narrow.begin() + first, narrow.end()});
  const auto values = repeated<double>(executor(), rows * length, {kinds.values.begin(), kinds.values.begin() + first},
                                       {kinds.values.begin() + first, kinds.values.end()});
  std::vector<std::int64_t> host_offsets;
  for (std::int64_t i = 0; i <= rows; ++i) host_offsets.push_back(i * length);
  const auto offsets = repeated<std::int64_t>(executor(), rows + 1, host_offsets, {});

  Problem problem;
  problem.csr.rows = rows;
  problem.csr.columns_count = kinds.columns_count;
  problem.csr.nonzeros = rows * length;
  problem.csr.row_offsets = {offsets.data(), 8};
  problem.csr.columns = {columns.data(), 4};
  problem.csr.values = values.data();
  problem.csr.space = MemorySpace::cuda;
  const std::string why_not = kernel().check(executor().device(), problem);
  if (!why_not.empty()) {
    EXPECT_NE(why_not.find(std::to_string(problem.csr.nonzeros) + " entries"), std::string::npos) << why_not;
    return;
  }

  const std::vector<double> x = random_vector(kinds.columns_count, 1), y = random_vector(rows, 2);
  std::unique_ptr<Format>   format;
  try {
    format = build(problem);
  } catch (const Error &error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    GTEST_SKIP() << error.what();
  }
  const std::vector<double> z = multiply(*format, {false, -1.0, 0.5, false, false}, x, y);
  const Expected            expected = reference(kinds, false, -1.0, 0.0, x, y);
  for (std::size_t i = 0; i < z.size(); ++i) {
    const std::int64_t before_own = rows - own - static_cast<std::int64_t>(i);
    const auto         kind = static_cast<std::size_t>(before_own > 0 ? 0 : 1 - before_own);
    const long double  want = expected.value[kind] + 0.5L * y[i];
    ASSERT_LE(std::abs(z[i] - want), expected.tolerance[kind] + 1e-15L) << "row " << i;
  }
}

std::vector<const Kernel *> device_kernels() {
  std::vector<const Kernel *> found;
  for (const Kernel *kernel : all_kernels())
    if (kernel->op() == "spmv" && kernel->space() == MemorySpace::cuda) found.push_back(kernel);
  return found;
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuSpmvLarge, testing::ValuesIn(device_kernels()), test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuSpmvLarge);

} // namespace
