#include "src/model/work_counts.h"

#include <gtest/gtest.h>

#include "kernels/spmv/csr/format.h"

using namespace tcbound::model;

namespace {

double intensity(const tcbound::Work &work) { return double(work.useful_flops) / double(work.bytes); }

double fp64_intensity(const char kernel[], std::int64_t steps = 1) {
  return intensity(kernel_work(kernel, {DataType::fp64, steps, 8}));
}

} // namespace

TEST(WorkCounts, ReferenceIntensities) {
  EXPECT_DOUBLE_EQ(intensity(scale_work(1000)), 1.0 / 16);
  EXPECT_DOUBLE_EQ(intensity(elementwise_work(1000, 2, 2)), 1.0 / 12);
  EXPECT_DOUBLE_EQ(intensity(gemv_work(1000, 500)), 1e6 / (8 * (500000.0 + 1500)));
  EXPECT_LT(fp64_intensity("gemv"), 0.25);
  EXPECT_NEAR(fp64_intensity("gemv"), 0.25, 1e-4);
  EXPECT_DOUBLE_EQ(intensity(gemm_work(300, 300, 300)), 300.0 / 12); // n/12
}

TEST(WorkCounts, SmallerTypesRaiseTheIntensity) {
  EXPECT_DOUBLE_EQ(intensity(scale_work(8, element_bytes(DataType::fp32))), 1.0 / 8);
  EXPECT_DOUBLE_EQ(intensity(kernel_work("2d5pt", {DataType::bf16, 1, 8})), 4 * fp64_intensity("2d5pt"));
  EXPECT_EQ(element_bytes(DataType::tf32), 4);
}

TEST(WorkCounts, CsrAgreesWithTheKernels) {
  for (const std::int64_t rows : {1, 100, 4096})
    for (const std::int64_t columns : {1, 77, 5000}) {
      const std::int64_t  entries = rows * 7;
      const tcbound::Work counted = tcbound::csr::count_work({rows, columns, entries, 4, 4}, false, false, 0);
      EXPECT_TRUE(csr_spmv_work(rows, columns, entries) == counted) << rows << " x " << columns;
    }
}

// "CSR bytes" of the facts: 1740 MB and 1393 MB.
TEST(WorkCounts, PoissonMatrices) {
  EXPECT_NEAR(double(kernel_work("csr7").bytes), 1740e6, 2e6);
  EXPECT_NEAR(double(kernel_work("csr27").bytes), 1393e6, 2e6);
  EXPECT_LT(fp64_intensity("csr27"), 0.25);
}

TEST(WorkCounts, MoreVectorsReuseTheMatrix) {
  EXPECT_TRUE(spmm_work(10, 20, 70, 1) == csr_spmv_work(10, 20, 70));
  double last = 0;
  for (const std::int64_t vectors : {1, 2, 8, 64}) {
    const double now = intensity(spmm_work(1000, 1000, 27000, vectors));
    EXPECT_GT(now, last);
    last = now;
  }
  EXPECT_LT(last, 2 * 27 / 16.0); // what x and y alone allow
}

TEST(WorkCounts, StencilsCountTwoFlopsAPoint) {
  EXPECT_EQ(stencils().size(), 9u);
  EXPECT_EQ(stencil_work(1000, 49).useful_flops, 98 * 1000);
  EXPECT_EQ(stencil_work(1000, 49).bytes, 16 * 1000);
  EXPECT_DOUBLE_EQ(fp64_intensity("2d5pt"), 0.625);
  EXPECT_DOUBLE_EQ(fp64_intensity("2d49pt"), 6.125);
  EXPECT_DOUBLE_EQ(fp64_intensity("3d27pt"), 3.375);
  for (const Stencil &stencil : stencils()) {
    EXPECT_DOUBLE_EQ(fp64_intensity(stencil.name.c_str()), stencil.points / 8.0);
    EXPECT_DOUBLE_EQ(fp64_intensity(stencil.name.c_str(), 5), 5 * stencil.points / 8.0);
    EXPECT_EQ(stencil.name.substr(0, 2), std::to_string(stencil.dimensions) + "d");
    EXPECT_NE(stencil.name.find(std::to_string(stencil.points) + "pt"), std::string::npos);
  }
}

// Counting the additions exactly (one less) leaves 2d49pt on the same side of the balances 5.0 and 8.5.
TEST(WorkCounts, TheConventionDoesNotDecideTheWideStencil) {
  const double exact = (2 * 49 - 1) / 16.0;
  EXPECT_GT(exact, 5.02);
  EXPECT_LT(exact, 8.5);
}

TEST(WorkCounts, NamesAreOnesThatWork) {
  for (const std::string &name : kernel_names()) {
    const tcbound::Work work = kernel_work(name);
    EXPECT_GT(work.useful_flops, 0) << name;
    EXPECT_EQ(work.bytes, work.compulsory_bytes) << name;
  }
  EXPECT_NEAR(fp64_intensity("scale"), 1.0 / 16, 1e-15);
  EXPECT_NEAR(fp64_intensity("triad"), 1.0 / 12, 1e-15);
}

TEST(WorkCounts, BadArguments) {
  EXPECT_THROW(scale_work(0), std::invalid_argument);
  EXPECT_THROW(gemv_work(1, -1), std::invalid_argument);
  EXPECT_THROW(gemm_work(1, 1, 0), std::invalid_argument);
  EXPECT_THROW(spmm_work(1, 1, 1, 0), std::invalid_argument);
  EXPECT_THROW(stencil_work(1, 5, 0), std::invalid_argument);
  EXPECT_THROW(kernel_work("scale", {DataType::fp64, 3, 8}), std::invalid_argument);
  try {
    kernel_work("2d49p");
    FAIL();
  } catch (const std::invalid_argument &e) {
    EXPECT_NE(std::string(e.what()).find("did you mean 2d49pt?"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("3d27pt"), std::string::npos);
  }
}
