// ranks: 1 2
// Products in TF32 and BF16 (-mat_tcbound_product_precision): what they give, and that nothing else gives it.
#include "mat/matrices.h"

namespace {

using LowPrecision = OnBackend;
using HostLowPrecision = OnBackend;

// Nothing else multiplies in its place.
TEST_P(HostLowPrecision, IsRefused) {
  for (const char *precision : {"tf32", "bf16"}) {
    option("-mat_tcbound_product_precision", precision);
    Mat            A; // left as the error leaves it
    Vec            x, y;
    PetscErrorCode code;
    build(random_case(), MATAIJTCBOUND, &A);
    OK(MatCreateVecs(A, &x, &y));
    randomize(x, 1);
    const std::string text = message_of([&] { return MatMult(A, x, y); }, &code);
    EXPECT_EQ(code, PETSC_ERR_SUP);
    for (const std::string &part : {std::string("-mat_tcbound_product_precision ") + precision + " cannot run here",
                                    std::string("spmv/csr/host: it multiplies in fp64 only, not in ") + precision})
      EXPECT_TRUE(contains(text, part)) << part << " is not in\n" << text;
  }
}

TEST_P(HostLowPrecision, OneRoundingOnly) {
  option("-mat_tcbound_value_precision", "fp32");
  option("-mat_tcbound_product_precision", "bf16");
  Mat            A; // left as the error leaves it
  PetscErrorCode code;
  const Case     c = random_case();
  OK(MatCreate(PETSC_COMM_WORLD, &A));
  OK(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, c.rows, c.columns));
  const std::string text = message_of([&] { return MatSetType(A, MATAIJTCBOUND); }, &code);
  EXPECT_EQ(code, PETSC_ERR_ARG_INCOMP);
  EXPECT_TRUE(contains(text, "-mat_tcbound_value_precision fp32 and -mat_tcbound_product_precision bf16")) << text;
}

TEST_P(LowPrecision, AgreesWithinItsBound) {
  for (const tcbound::ArithmeticFacts &facts : tcbound::arithmetics) {
    if (facts.arithmetic == tcbound::Arithmetic::fp64) continue;
    SCOPED_TRACE(facts.name);
    option("-mat_tcbound_product_precision", facts.name);
    std::vector<Case> cases = all_cases();
    cases.push_back(laplacian_case(17, 9));
    for (Case &c : cases) {
      SCOPED_TRACE(c.name);
      Handle<Mat> ours;
      build(c, MATAIJTCBOUND, &ours);
      for (const double factor : {1.0, 1.0 / 3}) {
        Handle<Mat>    exact, copy;
        PetscBool      same = PETSC_FALSE;
        MatTCBoundInfo info;
        for (Entry &e : c.entries) e.v *= factor;
        insert(c, ours);
        build(c, MATAIJ, &exact);
        for (VecType type : vec_types()) expect_same_products(ours, exact, type, facts.arithmetic);
        OK(MatTCBoundGetInfo(ours, &info));
        EXPECT_STREQ(info.format, "fragments");
        EXPECT_EQ(std::string(info.backend), backend() == "auto" ? "cuda_core" : backend());
        OK(MatConvert(ours, MATAIJ, MAT_INITIAL_MATRIX, &copy)); // keeps the values
        OK(MatEqual(copy, exact, &same));
        EXPECT_TRUE(same);
      }
    }
  }
}

TEST_P(LowPrecision, IsTold) {
  option("-mat_tcbound_product_precision", "bf16");
  const Pair  m(laplacian_case(17, 9));
  Handle<Vec> x, y;
  OK(MatCreateVecs(m.ours, &x, &y));
  OK(VecSet(x, 1.0));
  OK(MatMult(m.ours, x, y));
  const std::string text = text_of([&](PetscViewer viewer) {
    OK(PetscViewerPushFormat(viewer, PETSC_VIEWER_ASCII_INFO_DETAIL));
    OK(MatView(m.ours, viewer));
    OK(PetscViewerPopFormat(viewer));
  });
  if (world_rank() > 0) return;
  for (const char *part : {"lossy: values and x of products rounded to bf16, sums in fp32", "spmv/fragments/",
                           "lossy: values and x in bf16, sums in fp32"})
    EXPECT_TRUE(contains(text, part)) << part << " is not in\n" << text;
}

// The values are kept for all else.
TEST_P(LowPrecision, IsOfProductsAlone) {
  option("-mat_tcbound_product_precision", "bf16");
  const Pair  m(random_case());
  Handle<Vec> ours, reference;
  make_vector(m.ours, true, VECCUDA, 0, &ours);
  make_vector(m.aij, true, VECSTANDARD, 0, &reference);
  expect_same_products(m.ours, m.aij, VECCUDA, tcbound::Arithmetic::bf16);
  OK(MatGetDiagonal(m.ours, ours));
  OK(MatGetDiagonal(m.aij, reference));
  std::vector<PetscScalar> a, b;
  on_host(ours, [&](PetscScalar *v, PetscInt n) { a.assign(v, v + n); });
  on_host(reference, [&](PetscScalar *v, PetscInt n) { b.assign(v, v + n); });
  EXPECT_EQ(a, b);
}

TEST_P(LowPrecision, ValuesTooLargeAreAnError) {
  if (world_size() > 1) return; // an error of one rank
  option("-mat_tcbound_product_precision", "tf32");
  Case c = random_case();
  c.entries[5].v = -3.5e38;
  Handle<Mat>    A;
  Handle<Vec>    x, y;
  PetscErrorCode code;
  build(c, MATAIJTCBOUND, &A);
  OK(MatCreateVecs(A, &x, &y));
  OK(VecSet(x, 1.0));
  const std::string text = message_of([&] { return MatMult(A, x, y); }, &code);
  EXPECT_EQ(code, PETSC_ERR_FP);
  EXPECT_TRUE(contains(text, "-mat_tcbound_product_precision tf32: the value -3.5e+38 is too large")) << text;
}

INSTANTIATE_TEST_SUITE_P(Cpu, HostLowPrecision, testing::Values("host"), backend_name<testing::TestParamInfo<const char *>>);
INSTANTIATE_TEST_SUITE_P(Gpu, LowPrecision, testing::Values("cuda_core", "tensor_core", "auto"),
                         backend_name<testing::TestParamInfo<const char *>>);

} // namespace
