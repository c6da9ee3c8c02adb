// Fragments with every instruction and choice of size: at the edges of classes, steps, groups and parts.
#include "spmv_fixture.h"
#include "structured_matrices.h"
#ifdef TCBOUND_HAVE_CUDA
#include "spmv/fragments/device_matrix.h"

namespace {

using namespace tcbound;
using namespace tcbound::test;
using fragments::Config;

// Rows of 0 to `most` entries, so that every length meets every other in a group somewhere.
Csr lengths_up_to(std::int64_t most, int repeats) {
  std::vector<std::int64_t> lengths;
  for (int repeat = 0; repeat < repeats; ++repeat)
    for (std::int64_t length = 0; length <= most; ++length) lengths.push_back(repeat % 2 == 0 ? length : most - length);
  return from_lengths("rows of 0 to " + std::to_string(most), 3 * most + 1, lengths);
}

// Rows whose lengths lie around the ends of the classes and around whole parts.
Csr class_edges(int max_steps) {
  std::vector<std::int64_t> lengths;
  for (int c = 0; c < fragments::classes; ++c)
    for (std::int64_t length = fragments::most_entries(c, max_steps) - 2; length <= fragments::most_entries(c, max_steps) + 2;
         ++length)
      lengths.push_back(std::max<std::int64_t>(length, 0));
  const std::int64_t part = fragments::most_entries(fragments::longest_class, max_steps);
  for (const std::int64_t length : {2 * part - 1, 2 * part, 2 * part + 1, 5 * part, 40 * part + 3}) lengths.push_back(length);
  return from_lengths("class edges for " + std::to_string(max_steps) + " steps", 41 * part + 3, lengths);
}

// 1 to 130 rows of one length: groups that are not full.
Csr few_rows(std::int64_t rows, std::int64_t length) { return uniform(rows, 500, length); }

std::vector<Csr> matrices() {
  std::vector<Csr> all = {lengths_up_to(70, 3),
                          class_edges(1),
                          class_edges(3),
                          class_edges(12),
                          ragged(),
                          irregular(20000, 20000, 30),
                          one_long_row(1000, 46500, 499),
                          uniform(70001, 3, 0),
                          uniform(0, 5, 0),
                          stencil(70, 9, 3, false, Coefficients::variable)};
  for (const std::int64_t rows : {1, 7, 8, 9, 31, 32, 33, 65, 127, 129, 130})
    for (const std::int64_t length : {1, 2, 3, 4, 5, 33, 100}) all.push_back(few_rows(rows, length));
  return all;
}

const std::vector<Config> &configs() {
  static const std::vector<Config> all = {
    {24, 16384, 8, false}, {12, 500, 3, false}, {1, 64, 1, false}, {3, 1000, 4, true}, {63, 1, 2, true}};
  return all;
}

class GpuFragments : public Spmv {
protected:
  // The instructions that the kernel and the device have; for cuda_core, none.
  std::vector<MmaShape> shapes() {
    if (kernel().backend() != "tensor_core") return {MmaShape::automatic};
    std::vector<MmaShape> all;
    for (const MmaShapeFacts &facts : mma_shapes)
      if (check_mma(executor().device(), facts.shape).empty()) all.push_back(facts.shape);
    return all;
  }
};

TEST_P(GpuFragments, Products) {
  const std::vector<Csr> all = matrices();
  for (const MmaShape shape : shapes())
    for (const Config &config : configs())
      for (const Csr &a : all) {
        SCOPED_TRACE("instruction " + std::to_string(static_cast<int>(shape)) + ", " + std::to_string(config.max_steps) +
                     " steps at most");
        const Stored stored(a);
        const auto   format = fragments::build(executor(), stored.problem().csr, shape, config);
        expect_product(a, *format, {false, -0.5, 2.0, false, true});
        expect_product(a, *format, {false, 1.0, 0.0, false, false});
        expect_product(a, *format, {true, 1.0, 1.0, true, false});
        if (HasFailure()) return;
      }
}

// Padding is not multiplied, nor are rows that share an instruction mixed.
TEST_P(GpuFragments, NotFinite) {
  for (const MmaShape shape : shapes())
    for (Csr a :
         {lengths_up_to(40, 5), uniform(300, 500, 1), uniform(300, 500, 2), uniform(300, 500, 3), uniform(100, 3000, 700)}) {
      for (std::size_t k = 0; k < a.values.size(); k += 97) a.values[k] = k % 2 == 0 ? infinity : nan_value;
      const Stored        stored(a);
      const auto          format = fragments::build(executor(), stored.problem().csr, shape, Config{});
      std::vector<double> x = random_vector(a.columns_count, 3);
      for (std::size_t i = 0; i < x.size(); i += 53) x[i] = i % 3 == 0 ? nan_value : (i % 3 == 1 ? infinity : -infinity);
      const std::vector<double> y(static_cast<std::size_t>(a.rows), nan_value);
      SCOPED_TRACE(a.name);
      expect_near(multiply(*format, {false, 1.0, 0.0, false, false}, x, y), reference(a, false, 1.0, 0.0, x, y));
    }
}

TEST_P(GpuFragments, SameBitsInEveryRun) {
  for (const MmaShape shape : shapes())
    for (const Csr &a : {class_edges(3), lengths_up_to(70, 3)}) {
      const Stored              stored(a);
      const auto                format = fragments::build(executor(), stored.problem().csr, shape, {3, 64, 2, false});
      const std::vector<double> x = random_vector(a.columns_count, 5), y(static_cast<std::size_t>(a.rows), 0.0);
      const std::vector<double> first = multiply(*format, {}, x, y);
      for (int run = 0; run < 100; ++run) ASSERT_TRUE(same_bits(multiply(*format, {}, x, y), first)) << a.name;
    }
}

TEST_P(GpuFragments, CountsItsInstructions) {
  if (kernel().backend() != "tensor_core") GTEST_SKIP() << "cuda_core has none";
  const Csr    a = uniform(3200, 400, 32); // 100 groups of 8 whole steps
  const Stored stored(a);
  for (const MmaShape shape : shapes()) {
    const auto           format = fragments::build(executor(), stored.problem().csr, shape, Config{});
    const MmaShapeFacts &facts = facts_of(shape);
    EXPECT_EQ(format->mma(), facts.name);
    const Work work = format->work(false, false);
    EXPECT_EQ(work.issued_flops, 100 * 4 * 8 * 4 / facts.k * 2 * facts.m * facts.n * facts.k);
    EXPECT_EQ(work.issued_flops, (facts.m == 8 ? 8 : 16) * work.useful_flops);
    EXPECT_EQ(work.padded_flops, work.useful_flops);
    EXPECT_EQ(work.bytes, 10 * a.nonzeros() + 100 * 16 + 8 * (3200 + 400));
  }
}

TEST_P(GpuFragments, GivesTheMatrixBack) {
  for (const Config &config : configs())
    for (const Csr &a : matrices()) {
      const Stored              stored(a);
      csr::DeviceArrays         arrays = csr::copy_to_device(executor(), stored.problem().csr, config.wide);
      fragments::DeviceMatrix   matrix(executor(), arrays, config);
      const csr::DeviceArrays   back = matrix.recover(executor());
      std::vector<std::int32_t> columns(a.columns.size());
      std::vector<double>       values(a.values.size());
      executor().copy(columns.data(), MemorySpace::host, back.columns.data(), MemorySpace::cuda, columns.size() * 4);
      executor().copy(values.data(), MemorySpace::host, back.values.data(), MemorySpace::cuda, values.size() * 8);
      EXPECT_TRUE(same_bits(values, a.values)) << a.name;
      EXPECT_EQ(std::vector<std::int64_t>(columns.begin(), columns.end()), a.columns) << a.name;
    }
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuFragments,
                         testing::Values(find_kernel("spmv/fragments/cuda_core"), find_kernel("spmv/fragments/tensor_core")),
                         test_name);

} // namespace
#endif
