// ranks: 1 2 3
// All ways to come by a vector of type tcbound, to share its elements, to move and to keep it, and what is said of wrong choices.
#include "fixture.h"

namespace {

TEST_P(Vectors, KeepTheirTypeAndBackend) {
  Handle<Vec> v, copy, other;
  const char *kernel;

  make(100, 6, &v);
  EXPECT_EQ(type_of(object(v)), base_type());
  EXPECT_TRUE(is_ours(v));
  OK(VecTCBoundGetBackend(v, &kernel));
  EXPECT_EQ(std::string(kernel), std::string("scale/array/") + GetParam());
  OK(VecDuplicate(v, &copy));
  EXPECT_TRUE(is_ours(copy));
  OK(VecCopy(v, copy));
  EXPECT_EQ(elements(copy), elements(v));
  OK(VecTCBoundGetBackend(copy, &kernel));
  EXPECT_EQ(std::string(kernel), std::string("scale/array/") + GetParam());

  // A duplicate's backend is its own from then on.
  const std::vector<double> before = elements(copy);
  OK(VecTCBoundSetBackend(copy, "host", "auto"));
  OK(VecTCBoundGetBackend(copy, &kernel));
  EXPECT_EQ(std::string(kernel), "scale/array/host");
  OK(VecScale(copy, 2.0));
  const std::vector<double> after = elements(copy);
  for (std::size_t i = 0; i < after.size(); i++) EXPECT_EQ(after[i], 2.0 * before[i]);
  OK(VecTCBoundGetBackend(v, &kernel));
  EXPECT_EQ(std::string(kernel), std::string("scale/array/") + GetParam());
  OK(VecTCBoundSetBackend(copy, GetParam(), "auto"));
  OK(VecTCBoundGetBackend(copy, &kernel));
  EXPECT_EQ(std::string(kernel), std::string("scale/array/") + GetParam());
  EXPECT_EQ(elements(copy), after);

  make(10, 0, &other, VECSTANDARD);
  EXPECT_FALSE(is_ours(other));
  EXPECT_TRUE(contains(message_of([&] { return VecTCBoundSetBackend(other, "host", "auto"); }), "type is not tcbound"));
}

TEST_P(Vectors, TakeTheirTypeFromOptions) {
  Handle<Vec> v;

  option("-test_vec_type", "tcbound");
  OK(PetscOptionsSetValue(nullptr, "-test_vec_tcbound_backend", GetParam()));
  OK(VecCreate(PETSC_COMM_WORLD, &v));
  OK(VecSetSizes(v, part(40), PETSC_DETERMINE));
  OK(VecSetOptionsPrefix(v, "test_"));
  OK(VecSetFromOptions(v));
  EXPECT_TRUE(is_ours(v));
  EXPECT_EQ(type_of(object(v)), base_type());
  randomize(v, 7);
  const std::vector<double> before = elements(v);
  OK(VecSetFromOptions(v)); // once more, and values stay
  EXPECT_TRUE(is_ours(v));
  EXPECT_EQ(elements(v), before);
  OK(PetscOptionsClearValue(nullptr, "-test_vec_tcbound_backend"));
}

TEST_P(Vectors, AreMadeFromOthersWithTheirValues) {
  Handle<Vec> v;

  make(33, 8, &v, VECSTANDARD);
  const std::vector<double> before = elements(v);
  OK(VecSetType(v, VECTCBOUND));
  EXPECT_TRUE(is_ours(v));
  EXPECT_EQ(elements(v), before);
  EXPECT_EQ(type_of(object(v)), base_type());
  OK(VecScale(v, -1.0));
  EXPECT_EQ(elements(v).size(), before.size());
}

TEST_P(Vectors, LendPartsOfThemselves) {
  Pair        x;
  Handle<IS>  odd_start, strided;
  PetscInt    begin, end;
  PetscScalar dot;

  make(1001, 13, x);
  OK(VecGetOwnershipRange(x.ours, &begin, &end));
  const PetscInt n = end - begin;
  OK(ISCreateStride(PETSC_COMM_WORLD, n > 3 ? n - 3 : 0, begin + (n > 3 ? 1 : 0), 1,
                    &odd_start)); // at an odd multiple of 8 bytes
  OK(ISCreateStride(PETSC_COMM_WORLD, n / 3, begin, 3, &strided));
  for (const IS is : {IS(odd_start), IS(strided)}) {
    Vec sub, plain_sub;
    OK(VecGetSubVector(x.ours, is, &sub));
    OK(VecGetSubVector(x.plain, is, &plain_sub));
    EXPECT_TRUE(is_ours(sub));
    OK(VecScale(sub, 1.5));
    OK(VecScale(plain_sub, 1.5));
    PetscScalar plain_dot;
    OK(VecDot(sub, sub, &dot));
    OK(VecDot(plain_sub, plain_sub, &plain_dot));
    EXPECT_NEAR(dot, plain_dot, 1e-12 * (1 + plain_dot));
    OK(VecRestoreSubVector(x.ours, is, &sub));
    OK(VecRestoreSubVector(x.plain, is, &plain_sub));
    expect_near(x.ours, x.plain, "after a subvector");
  }
  expect_all_operations(5); // and whole vectors are as before
}

TEST_P(Vectors, TakeArraysOfOthers) {
  Pair                x;
  std::vector<double> array(static_cast<std::size_t>(part(300)) + 1, 2.0);
  PetscReal           norm;

  make(300, 14, x);
  const std::vector<double> before = elements(x.ours);
  OK(VecPlaceArray(x.ours, array.data()));
  OK(VecScale(x.ours, 3.0));
  OK(VecNorm(x.ours, NORM_INFINITY, &norm));
  EXPECT_EQ(norm, 6.0);
  OK(VecResetArray(x.ours));
  EXPECT_EQ(elements(x.ours), before);
  for (std::size_t i = 0; i + 1 < array.size(); i++) ASSERT_EQ(array[i], 6.0) << "what was computed is in the array";
  OK(VecScale(x.ours, 2.0));
  OK(VecScale(x.plain, 2.0));
  expect_near(x.ours, x.plain, "after another's array", 0);
}

TEST_P(Vectors, MoveToTheHostAndBack) {
  Pair        x, y;
  Handle<Vec> copy;
  PetscBool   bound;
  const char *kernel;

  make(700, 15, x);
  make(700, 16, y);
  OK(VecBindToCPU(x.ours, PETSC_TRUE));
  EXPECT_TRUE(is_ours(x.ours));
  OK(VecTCBoundGetBackend(x.ours, &kernel));
  EXPECT_EQ(std::string(kernel), "scale/array/host");
  OK(VecScale(x.ours, 0.7));
  OK(VecScale(x.plain, 0.7));
  OK(VecAXPY(x.ours, 0.3, y.ours)); // one on either side
  OK(VecAXPY(x.plain, 0.3, y.plain));
  OK(VecAXPY(y.ours, -0.2, x.ours));
  OK(VecAXPY(y.plain, -0.2, x.plain));
  expect_same_sums(x, y);
  expect_same_sums(y, x);
  OK(VecDuplicate(x.ours, &copy));
  EXPECT_TRUE(is_ours(copy));
  OK(VecBoundToCPU(copy, &bound));
  OK(VecBindToCPU(x.ours, PETSC_FALSE));
  EXPECT_TRUE(is_ours(x.ours));
  OK(VecTCBoundGetBackend(x.ours, &kernel));
  EXPECT_EQ(std::string(kernel), std::string("scale/array/") + GetParam());
  OK(VecScale(x.ours, 0.7));
  OK(VecScale(x.plain, 0.7));
  expect_near(x.ours, x.plain, "back");
  expect_near(y.ours, y.plain, "the other");
  expect_same_sums(x, y);
}

TEST_P(Vectors, WorkWithPetscsTypes) {
  Pair        x, y;
  PetscScalar a, b;
  Vec         list[2];
  PetscScalar factors[2] = {0.5, -0.25}, many[2], plain_many[2];

  make(250, 17, x);
  make(250, 18, y);
  // Ours first, and ours second.
  OK(VecAXPY(x.ours, 0.5, y.plain));
  OK(VecAXPBYPCZ(x.ours, 0.5, 0.25, 0.75, y.plain, y.ours));
  OK(VecPointwiseMult(x.ours, x.ours, y.plain));
  OK(VecWAXPY(x.ours, 0.5, x.plain, y.plain));
  OK(VecAYPX(x.plain, 0.5, y.plain));
  expect_near(x.ours, x.plain, "WAXPY of two that are not ours");
  OK(VecAXPY(y.plain, 0.5, x.ours));
  OK(VecAXPY(y.ours, 0.5, x.plain));
  expect_near(y.ours, y.plain, "axpy to and from ours");
  OK(VecDot(x.ours, y.plain, &a));
  OK(VecDot(x.plain, y.plain, &b));
  EXPECT_NEAR(a, b, 1e-12);
  list[0] = y.plain;
  list[1] = y.ours;
  OK(VecMDot(x.ours, 2, list, many));
  OK(VecMDot(x.plain, 2, list, plain_many));
  EXPECT_NEAR(many[0], plain_many[0], 1e-12);
  EXPECT_NEAR(many[1], plain_many[1], 1e-12);
  OK(VecMAXPY(x.ours, 2, factors, list));
  OK(VecMAXPY(x.plain, 2, factors, list));
  expect_near(x.ours, x.plain, "MAXPY of both kinds");
}

TEST_P(Vectors, HaveGhosts) {
  Handle<Vec> v, copy;
  PetscInt    begin, end, n, ghosts[1];
  Vec         local;

  if (world_size() == 1) GTEST_SKIP() << "one rank has no ghosts";
  PetscInt mine = 20;
  begin = 20 * world_rank();
  end = begin + mine;
  ghosts[0] = end % (20 * world_size());
  OK(VecCreateGhost(PETSC_COMM_WORLD, mine, PETSC_DETERMINE, 1, ghosts, &v));
  if (on_device()) { // the local form is on the host
    EXPECT_TRUE(contains(message_of([&] { return VecTCBoundConvert(v); }), "a vector with ghost points lives on the host"));
    option("-vec_tcbound_backend", "auto");
  }
  OK(VecTCBoundConvert(v));
  EXPECT_TRUE(is_ours(v));
  const char *kernel;
  OK(VecTCBoundGetBackend(v, &kernel));
  EXPECT_EQ(std::string(kernel), "scale/array/host");
  randomize(v, 19);
  OK(VecDuplicate(v, &copy));
  EXPECT_TRUE(is_ours(copy));
  OK(VecCopy(v, copy));
  OK(VecScale(copy, 2.0));
  OK(VecGhostUpdateBegin(copy, INSERT_VALUES, SCATTER_FORWARD));
  OK(VecGhostUpdateEnd(copy, INSERT_VALUES, SCATTER_FORWARD));
  OK(VecGhostGetLocalForm(copy, &local));
  ASSERT_NE(local, nullptr);
  OK(VecGetLocalSize(local, &n));
  EXPECT_EQ(n, mine + 1);
  on_host(local, [&](PetscScalar *a, PetscInt) {
    for (PetscInt i = 0; i < mine; i++) EXPECT_EQ(a[i], 2.0 * random_number(19, begin + i));
    EXPECT_EQ(a[mine], 2.0 * random_number(19, ghosts[0]));
  });
  OK(VecGhostRestoreLocalForm(copy, &local));
}

TEST_P(Vectors, AreWrittenAndRead) {
  Handle<Vec>   v, back;
  TemporaryFile file;

  make(77, 20, &v);
  OK(VecScale(v, 0.5)); // so that the device has the current values
  {
    Handle<PetscViewer> viewer;
    OK(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file.path.c_str(), FILE_MODE_WRITE, &viewer));
    OK(VecView(v, viewer));
  }
  {
    Handle<PetscViewer> viewer;
    make(77, 0, &back);
    OK(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file.path.c_str(), FILE_MODE_READ, &viewer));
    OK(VecLoad(back, viewer));
  }
  EXPECT_TRUE(is_ours(back));
  EXPECT_EQ(elements(back), elements(v));
}

// Solvers take the same steps: CG (TDot, AXPY, AYPX), GMRES (MDot, MAXPY, Scale), BCGS (DotNorm2, AXPBYPCZ, WAXPY).
TEST_P(Vectors, CarrySolvers) {
  Handle<Mat>    A, plain;
  const PetscInt side = 23, n = side * side;

  option("-mat_tcbound_backend", on_device() ? "cuda_core" : "host");
  OK(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n, n, 5, nullptr, 4, nullptr, &plain));
  PetscInt begin, end;
  OK(MatGetOwnershipRange(plain, &begin, &end));
  for (PetscInt row = begin; row < end; row++) {
    const PetscInt x = row % side, y = row / side;
    OK(MatSetValue(plain, row, row, 4.1, INSERT_VALUES));
    if (x > 0) OK(MatSetValue(plain, row, row - 1, -1.0, INSERT_VALUES));
    if (x + 1 < side) OK(MatSetValue(plain, row, row + 1, -1.0, INSERT_VALUES));
    if (y > 0) OK(MatSetValue(plain, row, row - side, -1.0, INSERT_VALUES));
    if (y + 1 < side) OK(MatSetValue(plain, row, row + side, -1.0, INSERT_VALUES));
  }
  OK(MatAssemblyBegin(plain, MAT_FINAL_ASSEMBLY));
  OK(MatAssemblyEnd(plain, MAT_FINAL_ASSEMBLY));
  OK(MatConvert(plain, MATAIJTCBOUND, MAT_INITIAL_MATRIX, &A));
  for (const char *method : {KSPCG, KSPGMRES, KSPBCGS, KSPTFQMR, KSPMINRES, KSPPIPECG, KSPCHEBYSHEV}) {
    PetscInt  steps[2];
    PetscReal residual[2];
    for (const bool ours : {true, false}) {
      Handle<KSP> ksp;
      Handle<Vec> x, b;
      PC          pc;
      PetscInt    local;
      OK(MatGetLocalSize(plain, &local, nullptr));
      OK(VecCreate(PETSC_COMM_WORLD, &b));
      OK(VecSetSizes(b, local, PETSC_DETERMINE));
      OK(VecSetType(b, ours ? VECTCBOUND : VECSTANDARD));
      randomize(b, 21);
      OK(VecDuplicate(b, &x));
      OK(KSPCreate(PETSC_COMM_WORLD, &ksp));
      OK(KSPSetType(ksp, method));
      OK(KSPSetOperators(ksp, ours ? A : plain, ours ? A : plain));
      OK(KSPGetPC(ksp, &pc));
      OK(PCSetType(pc, PCJACOBI));
      OK(KSPSetTolerances(ksp, 1e-8, PETSC_CURRENT, PETSC_CURRENT, 500));
      OK(KSPSolve(ksp, b, x));
      OK(KSPGetIterationNumber(ksp, &steps[ours]));
      Handle<Vec> r, plain_x;
      OK(VecCreate(PETSC_COMM_WORLD, &r));
      OK(VecSetSizes(r, local, PETSC_DETERMINE));
      OK(VecSetType(r, VECSTANDARD));
      OK(VecDuplicate(r, &plain_x));
      const std::vector<double> solution = elements(x);
      on_host(plain_x, [&](PetscScalar *a, PetscInt) { std::copy(solution.begin(), solution.end(), a); });
      OK(MatMult(plain, plain_x, r));
      on_host(r, [&](PetscScalar *a, PetscInt m) {
        for (PetscInt i = 0; i < m; i++) a[i] -= random_number(21, begin + i);
      });
      OK(VecNorm(r, NORM_2, &residual[ours]));
    }
    EXPECT_NEAR(steps[0], steps[1], 1 + 0.1 * steps[0]) << method; // rounding sends some methods another way
    EXPECT_LE(residual[1], 2 * residual[0] + 1e-7) << method;
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Vectors, testing::Values("host"), backend_name<testing::TestParamInfo<const char *>>);
INSTANTIATE_TEST_SUITE_P(Gpu, Vectors, testing::Values("cuda_core", "tensor_core"),
                         backend_name<testing::TestParamInfo<const char *>>);

class VectorErrors : public testing::Test {
protected:
  void SetUp() override { (void)check_comm(); }

  static std::string make(const char *backend, const char *mma) {
    Vec v;
    OK(PetscOptionsSetValue(nullptr, "-vec_tcbound_backend", backend));
    OK(PetscOptionsSetValue(nullptr, "-vec_tcbound_mma", mma));
    OK(VecCreate(PETSC_COMM_WORLD, &v));
    OK(VecSetSizes(v, 3, PETSC_DETERMINE));
    const std::string text = message_of([&] { return VecSetType(v, VECTCBOUND); });
    OK(VecDestroy(&v));
    OK(PetscOptionsClearValue(nullptr, "-vec_tcbound_backend"));
    OK(PetscOptionsClearValue(nullptr, "-vec_tcbound_mma"));
    return text;
  }
};

TEST_F(VectorErrors, NameWhatIsValid) {
  EXPECT_TRUE(contains(make("tensor_cores", "auto"), "-vec_tcbound_backend tensor_cores: there is no such choice; did you mean "
                                                     "tensor_core? Valid: auto, host, cuda_core, tensor_core"));
  EXPECT_TRUE(contains(make("auto", "m16n8k7"), "Valid: auto, m8n8k4, m16n8k4, m16n8k8, m16n8k16"));
  EXPECT_TRUE(contains(make("host", "m8n8k4"), "-vec_tcbound_mma m8n8k4 chooses the instruction of -vec_tcbound_backend "
                                               "tensor_core, and the backend is host"));
}

TEST_F(VectorErrors, SayWhatIsMissing) {
  const char *why_not = nullptr;
  if (has_device(&why_not)) GTEST_SKIP() << "there is a device";
  for (const char *backend : {"cuda_core", "tensor_core"}) {
    const std::string text = make(backend, "auto");
    EXPECT_TRUE(contains(text, std::string("-vec_tcbound_backend ") + backend + " cannot run here: " + why_not)) << text;
    EXPECT_TRUE(contains(text, "-vec_tcbound_backend auto or host works everywhere")) << text;
  }
  EXPECT_EQ(make("auto", "auto"), "");
}

} // namespace
