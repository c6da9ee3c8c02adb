// ranks: 1 2 3
// What goes wrong says so in one clear message, on every rank, and leaves the matrix usable.
#include "mat/matrices.h"

namespace {

class Errors : public OnBackend {};

TEST_P(Errors, UnknownNamesByCall) {
  const Pair     m(random_case());
  PetscErrorCode code;

  std::string text = message_of([&] { return MatTCBoundSetBackend(m.ours, "cuda_cor"); }, &code);
  EXPECT_EQ(code, PETSC_ERR_ARG_OUTOFRANGE);
  for (const char *part : {"-mat_tcbound_backend cuda_cor", "did you mean cuda_core?", "auto, host, cuda_core, cusparse"})
    EXPECT_TRUE(contains(text, part)) << part << " is not in\n" << text;
  text = message_of([&] { return MatTCBoundSetFormat(m.ours, "csrr"); }, &code);
  EXPECT_EQ(code, PETSC_ERR_ARG_OUTOFRANGE);
  for (const char *part : {"-mat_tcbound_format csrr", "did you mean csr?", "auto, csr"})
    EXPECT_TRUE(contains(text, part)) << part << " is not in\n" << text;
  PetscBool can = PETSC_TRUE;
  text = message_of([&] { return MatTCBoundCheckKernel(m.ours, "spmv/csr/nothing", &can, nullptr); }, &code);
  EXPECT_EQ(code, PETSC_ERR_ARG_OUTOFRANGE);
  EXPECT_TRUE(contains(text, "spmv/csr/nothing")) << text;
  // The settings are as before.
  MatTCBoundInfo info;
  OK(MatTCBoundGetInfo(m.ours, &info));
  EXPECT_EQ(info.backend, backend());
  expect_same(m.ours, m.aij, vec_types().back());
}

TEST_P(Errors, UnknownNamesByOption) {
  const struct {
    const char               *option, *value;
    std::vector<const char *> parts;
  } wrong[] = {
    {"-wrong_mat_tcbound_backend", "gpu", {"-mat_tcbound_backend gpu", "auto, host, cuda_core, cusparse", "did you mean"}},
    {"-wrong_mat_tcbound_format", "ell", {"-mat_tcbound_format ell", "auto, csr", "did you mean"}},
    {"-wrong_mat_tcbound_format", "fragment", {"did you mean fragments?"}},
    {"-wrong_mat_tcbound_mma",
     "m16n8k32",
     {"-mat_tcbound_mma m16n8k32", "auto, m8n8k4, m16n8k4, m16n8k8, m16n8k16", "did you mean"}},
    {"-wrong_mat_tcbound_tune", "guess", {"-mat_tcbound_tune guess", "model, measure", "did you mean"}},
    {"-wrong_mat_tcbound_value_precision", "fp16", {"-mat_tcbound_value_precision fp16", "fp64, fp32, bf16", "did you mean"}},
    {"-wrong_mat_tcbound_product_precision",
     "fp32",
     {"-mat_tcbound_product_precision fp32", "fp64, tf32, bf16", "did you mean"}},
    {"-wrong_mat_tcbound_tune_seconds", "-1", {"-mat_tcbound_tune_seconds -1", "0 or more"}},
    {"-wrong_mat_tcbound_tune_seconds", "nan", {"nan"}}};
  for (const auto &w : wrong) {
    const Case     c = random_case();
    Mat            A; // left as the error leaves it
    PetscErrorCode code;

    option(w.option, w.value);
    OK(MatCreate(PETSC_COMM_WORLD, &A));
    OK(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, c.rows, c.columns));
    OK(MatSetOptionsPrefix(A, "wrong_"));
    const std::string text = message_of([&] { return MatSetType(A, MATAIJTCBOUND); }, &code);
    EXPECT_EQ(code, PETSC_ERR_ARG_OUTOFRANGE) << text;
    for (const char *part : w.parts) EXPECT_TRUE(contains(text, part)) << part << " is not in\n" << text;
    OK(PetscOptionsClearValue(nullptr, w.option));
  }
}

// On a machine without a device, a backend that needs one is refused with the reason; nothing falls back to the host.
TEST_P(Errors, DeviceBackendsWithoutADevice) {
  const char *why_not = nullptr;

  if (has_device(&why_not)) return;
  EXPECT_GT(std::string(why_not).size(), 10u);
  for (const char *wanted : {"cuda_core", "cusparse", "tensor_core"}) {
    SCOPED_TRACE(wanted);
    const Pair     kept(random_case());
    Mat            A; // not destroyed: after the error a scatter may still be under way
    Vec            x, y;
    MatTCBoundInfo info;

    build(random_case(), MATAIJTCBOUND, &A);
    OK(MatTCBoundSetBackend(A, wanted));
    std::string text = message_of([&] { return MatTCBoundGetInfo(A, &info); });
    for (const std::string &part : {std::string("-mat_tcbound_backend ") + wanted, std::string(why_not)})
      EXPECT_TRUE(contains(text, part)) << part << " is not in\n" << text;
    OK(MatCreateVecs(A, &x, &y));
    randomize(x, 1);
    text = message_of([&] { return MatMult(A, x, y); });
    for (const std::string &part : {std::string("-mat_tcbound_backend ") + wanted, std::string(why_not)})
      EXPECT_TRUE(contains(text, part)) << part << " is not in\n" << text;
    // So does its duplicate, which has its settings, whatever the options say.
    Mat copy_of_A;
    OK(MatDuplicate(A, MAT_COPY_VALUES, &copy_of_A));
    text = message_of([&] { return MatTCBoundGetInfo(copy_of_A, &info); });
    EXPECT_TRUE(contains(text, std::string("-mat_tcbound_backend ") + wanted)) << text;
    // The next choice works.
    OK(MatTCBoundSetBackend(kept.ours, wanted));
    EXPECT_NE(message_of([&] { return MatTCBoundGetInfo(kept.ours, &info); }), "");
    OK(MatTCBoundSetBackend(kept.ours, "auto"));
    expect_same(kept.ours, kept.aij);
    OK(MatTCBoundSetBackend(kept.ours, wanted));
    OK(MatTCBoundSetBackend(kept.ours, "host"));
    expect_same(kept.ours, kept.aij);
    // By option too.
    option("-mat_tcbound_backend", wanted);
    Mat B;
    build(random_case(), MATAIJTCBOUND, &B);
    text = message_of([&] { return MatTCBoundGetInfo(B, &info); });
    EXPECT_TRUE(contains(text, why_not)) << text;
    option("-mat_tcbound_backend", GetParam());
  }
}

TEST_P(Errors, WrongSizes) {
  const Pair     m(tall_case());
  Handle<Vec>    x, y;
  PetscErrorCode code;

  OK(MatCreateVecs(m.ours, &x, &y));
  for (bool transpose : {false, true}) {
    const std::string text =
      message_of([&] { return (transpose ? MatMultTranspose : MatMult)(m.ours, transpose ? x : y, transpose ? y : x); }, &code);
    EXPECT_EQ(code, PETSC_ERR_ARG_SIZ) << text;
    EXPECT_TRUE(contains(text, "307") && contains(text, "41")) << text;
  }
  expect_same(m.ours, m.aij, vec_types().back());
}

TEST_P(Errors, UnassembledMatrices) {
  Handle<Mat>    A;
  Handle<Vec>    x, y;
  MatTCBoundInfo info;
  PetscBool      can;

  create(random_case(), MATAIJTCBOUND, &A);
  OK(MatSetUp(A));
  OK(MatCreateVecs(A, &x, &y));
  EXPECT_TRUE(contains(message_of([&] { return MatMult(A, x, y); }), "unassembled"));
  EXPECT_TRUE(contains(message_of([&] { return MatTCBoundGetInfo(A, &info); }), "unassembled"));
  EXPECT_TRUE(contains(message_of([&] { return MatTCBoundCheckKernel(A, "spmv/csr/host", &can, nullptr); }), "unassembled"));
  OK(MatTCBoundSetBackend(A, "host")); // settings may come first
  insert(random_case(), A);
  OK(MatTCBoundGetInfo(A, &info));
  EXPECT_STREQ(info.backend, "host");
}

TEST_P(Errors, MatricesOfOtherTypes) {
  Handle<Mat>    A;
  MatTCBoundInfo info;
  PetscBool      can;

  build(random_case(), MATAIJ, &A);
  for (const std::string &text :
       {message_of([&] { return MatTCBoundGetInfo(A, &info); }), message_of([&] { return MatTCBoundSetBackend(A, "host"); }),
        message_of([&] { return MatTCBoundSetFormat(A, "csr"); }),
        message_of([&] { return MatTCBoundCheckKernel(A, "spmv/csr/host", &can, nullptr); })}) {
    EXPECT_TRUE(contains(text, MATAIJTCBOUND)) << text;
    EXPECT_TRUE(contains(text, world_size() == 1 ? MATSEQAIJ : MATMPIAIJ)) << text;
  }
}

TEST_P(Errors, NoneFromInitializingTwice) {
  OK(TCBoundInitialize());
  OK(TCBoundInitialize());
  const Pair m(random_case());
  expect_same(m.ours, m.aij, vec_types().back());
}

std::string help;

PetscErrorCode keep_help(MPI_Comm, const char format[], ...) {
  char    text[4096];
  size_t  length;
  va_list arguments;

  PetscFunctionBegin;
  va_start(arguments, format);
  PetscCall(PetscVSNPrintf(text, sizeof(text), format, &length, arguments));
  va_end(arguments);
  help += text;
  PetscFunctionReturn(PETSC_SUCCESS);
}

// -help lists the options with their choices.
TEST_P(Errors, HelpNamesTheChoices) {
  Handle<Mat> A;
  const auto  before = PetscHelpPrintf;

  create(random_case(), MATAIJTCBOUND, &A);
  OK(MatSetOptionsPrefix(A, (std::string("help_") + GetParam() + "_").c_str()));
  option("-help", "true");
  help.clear();
  PetscHelpPrintf = keep_help;
  const PetscErrorCode code = MatSetFromOptions(A);
  PetscHelpPrintf = before;
  OK(code);
  for (const char *part :
       {"mat_tcbound_backend", "auto|host|cuda_core|cusparse", "mat_tcbound_format", "auto|csr", "mat_tcbound_mma",
        "auto|m8n8k4|m16n8k4|m16n8k8|m16n8k16", "mat_tcbound_product_precision", "add up in FP32 (fp64|tf32|bf16)"})
    EXPECT_TRUE(contains(help, part)) << part << " is not in\n" << help;
}

INSTANTIATE_TEST_SUITE_P(Cpu, Errors, testing::Values("host"), backend_name<testing::TestParamInfo<const char *>>);
INSTANTIATE_TEST_SUITE_P(Gpu, Errors, testing::Values("cuda_core", "cusparse"),
                         backend_name<testing::TestParamInfo<const char *>>);

} // namespace
