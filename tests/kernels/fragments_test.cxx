// Fragments with every instruction and choice of size: at the edges of classes, steps, groups and parts.
#include "spmv_fixture.h"
#ifdef TCBOUND_HAVE_CUDA
#include "fragments_matrices.h"
#include "spmv/fragments/device_matrix.h"

namespace {

using namespace tcbound;
using namespace tcbound::test;
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
TEST_P(GpuFragments, Columns) {
  for (const MmaShape shape : shapes())
    for (const Config &config : configs()) {
      if (!config.nodes) continue;
      for (const int alike : all_alike)
        for (const Csr &a : {in_nodes(alike, lengths_up_to(96, 1)), in_nodes(alike, lengths_up_to(48, 2)),
                             in_nodes(alike, uniform(67, 300, 27)), in_nodes(alike, irregular(100, 70000, 20)),
                             in_nodes(alike, uniform(1, 90, 5)), in_nodes(alike, uniform(17, 90, 0))}) {
          SCOPED_TRACE("instruction " + std::to_string(static_cast<int>(shape)) + ", " + std::to_string(config.max_steps) +
                       " steps at most");
          const Stored stored(a);
          const auto   format = fragments::build(executor(), stored.problem().csr, shape, config);
          for (const std::int64_t count : {2, 8, 9, 16, 33})
            if (count == 9 || a.columns_count < 1000) expect_columns(a, *format, {false, 1.0, 0.0, false, false}, count);
          expect_columns(a, *format, {false, -0.5, 2.0, false, true}, 7);
          expect_columns(a, *format, {true, 2.0, 1.0, true, false}, 3);
          if (HasFailure()) return;
        }
    }
}

// What is infinite or NaN in x or the matrix gets to its own row and column, and padding is not multiplied.
TEST_P(GpuFragments, NotFiniteColumns) {
  for (const MmaShape shape : shapes())
    for (const int alike : all_alike) {
      Csr a = in_nodes(alike, lengths_up_to(40, 2));
      for (std::size_t k = 0; k < a.values.size(); k += 97) a.values[k] = k % 2 == 0 ? infinity : nan_value;
      const Stored        stored(a);
      const auto          format = fragments::build(executor(), stored.problem().csr, shape, Config{});
      const std::int64_t  count = 19;
      const Columns       by = {count, a.columns_count, 0, a.rows};
      std::vector<double> x = random_vector(count * by.x, 3), none(static_cast<std::size_t>(a.rows));
      for (std::size_t i = 0; i < x.size(); i += 53) x[i] = i % 3 == 0 ? nan_value : (i % 3 == 1 ? infinity : -infinity);
      Guarded device_x(executor(), x, false),
        device_z(executor(), std::vector<double>(static_cast<std::size_t>(count * by.z)), false);
      Product product;
      product.x = device_x.data();
      product.z = device_z.data();
      kernel().apply_columns(executor(), *format, product, by);
      bool                      intact;
      const std::vector<double> z = device_z.read(intact);
      for (std::int64_t k = 0; k < count; ++k)
        expect_near({z.begin() + k * by.z, z.begin() + (k + 1) * by.z},
                    reference(a, false, 1.0, 0.0, {x.begin() + k * by.x, x.begin() + (k + 1) * by.x}, none));
    }
}

TEST_P(GpuFragments, NotFinite) {
  for (const MmaShape shape : shapes())
    for (Csr a :
         {in_nodes(2, lengths_up_to(40, 5)), in_nodes(3, lengths_up_to(40, 5)), in_nodes(4, uniform(50, 300, 1)),
          lengths_up_to(40, 5), uniform(300, 500, 1), uniform(300, 500, 2), uniform(300, 500, 3), uniform(100, 3000, 700)}) {
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
      const auto                format = fragments::build(executor(), stored.problem().csr, shape, {3, 64, 2, true, false});
      const std::vector<double> x = random_vector(a.columns_count, 5), y(static_cast<std::size_t>(a.rows), 0.0);
      const std::vector<double> first = multiply(*format, {}, x, y);
      for (int run = 0; run < 100; ++run) ASSERT_TRUE(same_bits(multiply(*format, {}, x, y), first)) << a.name;
    }
}

// Rows of 0 to 7 entries, some of them 40000 to the side: more than 16 bits from the least column to the greatest, but near the diagonal.
Csr wide_band(std::int64_t rows) {
  Csr a;
  a.name = "wide band";
  a.rows = a.columns_count = rows;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (const std::int64_t distance : {-40000, -300, -1, 0, 2, 300, 40000})
      if ((row * 7 + distance) % 5 != 0 && row + distance >= 0 && row + distance < rows) a.columns.push_back(row + distance);
    a.offsets.push_back(a.nonzeros());
  }
  a.values = random_vector(static_cast<std::int64_t>(a.columns.size()), 71);
  return a;
}

// Groups are ragged where no row is too long and steps do not get too empty.
TEST_P(GpuFragments, RaggedGroups) {
  std::vector<std::int64_t> one_of_32(3200, 3);
  for (std::size_t row = 0; row < one_of_32.size(); row += 32) one_of_32[row] = 96;
  const struct {
    Csr         a;
    bool        ragged;
    const char *columns;
  } cases[] = {{irregular(1003, 2000000, 90), true, "with 24-bit ones"},
               {irregular(257, 17000000, 20), true, "with 24-bit ones"},
               {uniform(255, 900000, 3), true, "with 24-bit ones"},
               {wide_band(100003), true, "with 16-bit columns; 0 long rows"},
               {irregular(1003, 200000, 140), false, "16-bit"},
               {from_lengths("one long row of 32", 200000, one_of_32), false, "16-bit"},
               {lengths_up_to(70, 3), true, "with 16-bit columns; 0 long rows"}};
  for (const auto &[a, ragged, columns] : cases)
    for (const MmaShape shape : shapes()) {
      if (a.columns_count > 2000000 && shape != shapes()[0]) continue; // x is long
      const Stored stored(a);
      const auto   format = fragments::build(executor(), stored.problem().csr, shape, Config{});
      EXPECT_EQ(format->describe().find("ragged") != std::string::npos, ragged) << a.name << ": " << format->describe();
      EXPECT_NE(format->describe().find(columns), std::string::npos) << a.name << ": " << format->describe();
      expect_product(a, *format, {false, -0.5, 2.0, false, true});
      expect_product(a, *format, {false, 1.0, 0.0, false, false});
      expect_product(a, *format, {false, 1.0, 1.0, true, false});
      if (HasFailure()) return;
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
    EXPECT_EQ(work.bytes, 10 * a.nonzeros() + 100 * (16 + 8) + 8 * (3200 + 400));
  }
}

// Rows of a node share columns and instructions of 16 rows; with several columns of x an instruction takes all rows that are alike.
TEST_P(GpuFragments, Nodes) {
  for (const int alike : all_alike) {
    const int    siblings = alike > 4 ? 2 : 1, node = alike / siblings;
    Csr          a = in_nodes(alike, uniform((node == 2 ? 1600 : 800) / siblings, 400, 32)); // 100 groups of 8 whole steps
    const Stored alike_rows(a);
    for (const MmaShape shape : shapes()) {
      const auto format = fragments::build(executor(), alike_rows.problem().csr, shape, Config{});
      const Work work = format->work(false, false), wide = format->work_of_columns(false, false, 16);
      const int  values = node == 3 ? 3 : 4, columns = node == 2 ? 2 : 1;
      EXPECT_NE(format->describe().find("nodes of " + std::to_string(alike)), std::string::npos) << format->describe();
      const std::int64_t matrix = 100 * (8 * 32 * (8 * values + 2 * columns) + 16);
      EXPECT_EQ(work.bytes, matrix + 8 * (a.rows + 400));
      EXPECT_EQ(wide.bytes, matrix + 16 * 8 * (a.rows + 400) + 2 * 16 * 8 * 400);
      EXPECT_EQ(work.padded_flops, work.useful_flops);
      EXPECT_EQ(wide.padded_flops, wide.useful_flops);
      EXPECT_EQ(wide.useful_flops, 16 * work.useful_flops);
      if (kernel().backend() != "tensor_core") continue;
      char rho[40];
      std::snprintf(rho, sizeof rho, "%.1f with 16 columns", 8.0 / alike);
      EXPECT_NE(format->describe().find(rho), std::string::npos) << format->describe();
      const MmaShapeFacts &facts = facts_of(shape);
      const int            each = facts.m == 16 ? 2 : values; // instructions for all slices
      EXPECT_EQ(work.issued_flops, 100 * each * 8 * 4 / facts.k * 2 * facts.m * facts.n * facts.k);
      if (facts.m == 8 || node != 3) {
        EXPECT_EQ(work.issued_flops, 8 * work.useful_flops);
      }
      EXPECT_EQ(alike * wide.issued_flops, 8 * wide.useful_flops);
      EXPECT_EQ(format->work_of_columns(false, false, 3).issued_flops, wide.issued_flops * (facts.m == 8 ? 1 : 2) / 2);
    }
    // One row that is not like the others, the first or the last: they stay rows.
    Csr late = in_nodes(alike, uniform(7000, 400, 8));
    late.columns.back() = late.columns.back() == 399 ? 398 : 399;
    a.columns[0] = a.columns[0] == 0 ? 1 : 0;
    for (const Csr &odd : {a, late}) {
      const Stored stored(odd);
      const auto   format = fragments::build(executor(), stored.problem().csr, shapes()[0], Config{});
      EXPECT_EQ(format->describe().find("nodes"), std::string::npos);
      expect_product(odd, *format, {false, 1.0, 0.0, false, false});
    }
  }
}

TEST_P(GpuFragments, GivesTheMatrixBack) {
  for (const Config &config : configs())
    for (const Csr &a : matrices()) {
      const Stored              stored(a);
      csr::DeviceArrays         arrays = csr::copy_to_device(executor(), stored.problem().csr, config.wide);
      fragments::DeviceMatrix   matrix(executor(), arrays, config, Arithmetic::fp64);
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
