// Kernels that were told that most products will be z += A x, as off-diagonal blocks of parallel matrices are multiplied.
#include "spmv_fixture.h"
#include "structured_matrices.h"

namespace {

using namespace tcbound;
using namespace tcbound::test;

class SpmvInPlace : public Spmv {
protected:
  // Kernels that store rows with entries only, if those are few.
  bool lists() const { return kernel().name() == "spmv/csr/host" || kernel().name() == "spmv/csr/cuda_core"; }

  static Problem in_place(Problem problem) {
    problem.in_place = true;
    return problem;
  }
};

// `length` entries in the rows that are chosen, none in others.
template <class Chosen>
Csr some_rows(const std::string &name, std::int64_t rows, std::int64_t columns, std::int64_t length, Chosen &&chosen) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(rows), 0);
  for (std::int64_t i = 0; i < rows; ++i)
    if (chosen(i)) lengths[static_cast<std::size_t>(i)] = length;
  return from_lengths(name, columns, lengths);
}

std::vector<Csr> few_rows() {
  std::vector<Csr> all;
  const auto       add = [&](const char *name, std::int64_t rows, std::int64_t columns, std::int64_t length, auto chosen) {
    all.push_back(some_rows(name, rows, columns, length, chosen));
  };
  add("first and last plane", 20000, 500, 9, [](std::int64_t i) { return i < 250 || i >= 19750; });
  add("every 37th row", 5000, 900, 3, [](std::int64_t i) { return i % 37 == 5; });
  add("every other row", 3001, 300, 7, [](std::int64_t i) { return i % 2 == 0; });
  add("edges of blocks", 2049, 65, 2, [](std::int64_t i) { return i % 256 == 0 || i % 256 == 255; });
  add("the first row", 700, 40, 11, [](std::int64_t i) { return i == 0; });
  add("the last row", 513, 40, 11, [](std::int64_t i) { return i == 512; });
  add("long rows", 1000, 60000, 30000, [](std::int64_t i) { return i == 3 || i == 500 || i == 501; });
  add("no row", 1000, 30, 1, [](std::int64_t) { return false; });
  add("all rows", 300, 300, 5, [](std::int64_t) { return true; });
  add("all but one", 300, 300, 5, [](std::int64_t i) { return i != 77; });
  all.push_back(uniform(0, 0, 0));
  all.push_back(uniform(0, 17, 0));
  all.push_back(uniform(17, 0, 0));
  return all;
}

bool listed(const Csr &a, int offset_bytes) {
  std::int64_t some = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.rows); ++i) some += a.offsets[i + 1] > a.offsets[i];
  return (offset_bytes + 20) * some < (offset_bytes + 16) * a.rows;
}

TEST_P(SpmvInPlace, AllKindsOfProducts) {
  for (const Csr &a : few_rows()) {
    const Stored stored(a);
    const auto   format = build(in_place(stored.problem()));
    for (const bool transpose : {false, true})
      for (const double alpha : {1.0, -0.5})
        for (const double beta : {0.0, 1.0, -2.0})
          for (const bool onto : {false, true}) expect_product(a, *format, {transpose, alpha, beta, onto, false});
  }
}

TEST_P(SpmvInPlace, IndexWidthsAndMemories) {
  for (const Csr &a : few_rows())
    for (const int offset_bytes : {4, 8})
      for (const int index_bytes : {4, 8}) {
        SCOPED_TRACE(std::to_string(offset_bytes) + "-byte offsets, " + std::to_string(index_bytes) + "-byte columns");
        Stored stored(a, offset_bytes, index_bytes);
        expect_products(a, in_place(stored.problem()));
        expect_products(a, in_place(stored.on(executor())));
      }
}

TEST_P(SpmvInPlace, SeveralColumns) {
  for (const Csr &a : few_rows()) {
    const Stored stored(a);
    const auto   format = build(in_place(stored.problem()));
    for (const bool transpose : {false, true}) {
      for (const std::int64_t count : {1, 2, 5, 8, 13}) {
        expect_columns(a, *format, {transpose, 1.0, 0.0, false, false}, count);
        expect_columns(a, *format, {transpose, -0.5, 1.0, true, true}, count);
      }
      expect_columns(a, *format, {transpose, 2.0, 1.0, false, false}, 4);
    }
  }
}

// A zero with a sign loses it when 0 is added to it.
TEST_P(SpmvInPlace, OtherRowsAreNotTouched) {
  if (!lists()) GTEST_SKIP() << kernel().name() << " stores all rows";
  for (const Csr &a : few_rows()) {
    if (!listed(a, 4)) continue;
    SCOPED_TRACE(a.name);
    const Stored              stored(a);
    const auto                format = build(in_place(stored.problem()));
    const std::vector<double> x = random_vector(a.columns_count, 1), minus(static_cast<std::size_t>(a.rows), -0.0);
    const std::vector<double> z = multiply(*format, {false, 1.0, 1.0, true, false}, x, minus);
    for (std::size_t i = 0; i < z.size(); ++i)
      ASSERT_TRUE(a.offsets[i] < a.offsets[i + 1] || (z[i] == 0.0 && std::signbit(z[i]))) << "row " << i;
  }
}

TEST_P(SpmvInPlace, NothingIsDoneWithoutEntries) {
  if (!lists()) GTEST_SKIP() << kernel().name() << " stores all rows";
  const Csr     a = uniform(5000, 30, 0);
  const Stored  stored(a);
  const auto    format = build(in_place(stored.problem()));
  double *const nowhere = reinterpret_cast<double *>(std::uintptr_t(4096)); // whatever touched it would fail
  Product       product;
  product.beta = 1.0;
  product.x = product.y = product.z = nowhere;
  kernel().apply(executor(), *format, product);
  kernel().apply_columns(executor(), *format, product, {3, 30, 5000, 5000});
  executor().synchronize();
  EXPECT_EQ(format->work_in_place(false).bytes, 4 * 1 + 8 * 30);
}

TEST_P(SpmvInPlace, RefillAndDiagonal) {
  for (const Csr &first : few_rows()) {
    SCOPED_TRACE(first.name);
    Csr second = first;
    for (double &value : second.values) value = 3.0 - 2.0 * value;
    const Stored stored(first), again(second);
    const auto   format = build(in_place(stored.problem()));
    for (int round = 0; round < 2; ++round) { // in the second round the transpose exists already
      const Csr &now = round ? first : second;
      format->refill(executor(), (round ? stored : again).problem().csr.values, MemorySpace::host);
      for (const bool transpose : {false, true}) expect_product(now, *format, {transpose, 1.0, 1.0, true, false});
      std::vector<double> expected(static_cast<std::size_t>(now.rows), 0.0);
      for (std::size_t i = 0; i < expected.size(); ++i)
        for (auto k = static_cast<std::size_t>(now.offsets[i]); k < static_cast<std::size_t>(now.offsets[i + 1]); ++k)
          if (now.columns[k] == static_cast<std::int64_t>(i)) expected[i] = now.values[k];
      Guarded d(executor(), std::vector<double>(expected.size(), nan_value), true);
      bool    intact = false;
      format->diagonal(executor(), d.data());
      EXPECT_TRUE(same_bits(d.read(intact), expected));
      EXPECT_TRUE(intact);
    }
  }
}

TEST_P(SpmvInPlace, PredictedWork) {
  std::vector<Csr> all = few_rows();
  for (const Csr &a : structured_matrices()) all.push_back(a);
  for (const Csr &a : all) {
    SCOPED_TRACE(a.name);
    const Stored  stored(a);
    const Problem problem = in_place(stored.problem());
    const auto    format = build(problem);
    const auto    compare = [&] {
      for (const bool transpose : {false, true}) {
        const Work work = format->work_in_place(transpose), predicted = kernel().predict_in_place(problem, transpose);
        EXPECT_LE(predicted.bytes, work.bytes);
        EXPECT_LE(work.bytes, format->work(transpose, true).bytes);
        if (kernel().format() != "csr") continue;
        EXPECT_EQ(predicted, work);
        for (const bool accumulate : {false, true})
          EXPECT_EQ(kernel().predict(problem, transpose, accumulate), format->work(transpose, accumulate));
      }
    };
    compare();
    expect_product(a, *format, {true, 1.0, 1.0, true, false});
    compare();
  }
}

TEST_P(SpmvInPlace, BytesByHand) {
  const Csr    a = some_rows("", 1000, 500, 7, [](std::int64_t i) { return i % 10 == 0; }); // 100 rows, 700 entries
  const Stored stored(a);
  const auto   format = build(in_place(stored.problem()));
  Work         onto = format->work_in_place(false), plain = format->work(false, false), added = format->work(false, true);
  if (!lists()) {
    EXPECT_EQ(onto, added);
    return;
  }
  const std::int64_t matrix = 12 * 700 + 4 * 101 + 4 * 100;
  EXPECT_EQ(onto.compulsory_bytes, matrix + 8 * 500 + 16 * 100);
  EXPECT_EQ(plain.compulsory_bytes, matrix + 8 * 500 + 8 * 1000);
  EXPECT_EQ(added.compulsory_bytes, matrix + 8 * 500 + 16 * 1000);
  EXPECT_EQ(onto.bytes - onto.compulsory_bytes, plain.bytes - plain.compulsory_bytes); // the table of chunks on a device
  EXPECT_LE(onto.bytes, onto.compulsory_bytes + 16 * 8);
  EXPECT_EQ(onto.useful_flops, 1400);
  // Transposed: x is read where there are rows.
  const std::int64_t offsets = kernel().backend() == "host" ? 4 * 101 + 4 * 100 : 4 * 501;
  EXPECT_EQ(format->work_in_place(true).compulsory_bytes, 12 * 700 + offsets + 8 * 100 + 16 * 500);
  EXPECT_EQ(format->work(true, false).compulsory_bytes, 12 * 700 + offsets + 8 * 100 + 8 * 500);
  EXPECT_EQ(format->describe(), "100 of 1000 rows have entries and are stored");
}

std::vector<const Kernel *> kernels_in(MemorySpace space) {
  std::vector<const Kernel *> found;
  for (const Kernel *kernel : all_kernels())
    if (kernel->op() == "spmv" && kernel->space() == space) found.push_back(kernel);
  return found;
}

INSTANTIATE_TEST_SUITE_P(Cpu, SpmvInPlace, testing::ValuesIn(kernels_in(MemorySpace::host)), test_name);
INSTANTIATE_TEST_SUITE_P(Gpu, SpmvInPlace, testing::ValuesIn(kernels_in(MemorySpace::cuda)), test_name);

} // namespace
