// ranks: 1 2
// Factors of sequential matrices, PETSc's on the host and cuSPARSE's: whom a caller gets, and that each solve knows the values of
// the last factorization.
#include "mat/matrices.h"

namespace {

class Factor : public OnBackend {};

using Numbers = std::vector<PetscScalar>;

// One way to factor a matrix.
struct Plan {
  MatFactorType type;
  PetscInt      levels = 0;          // of an ILU or ICC
  bool          reordered = false;   // not in the natural order
  bool          turned = false;      // by different orders of rows and columns
  int           first_transpose = 0; // the factorization from which on transposed solves are asked for

  bool symmetric() const { return type == MAT_FACTOR_CHOLESKY || type == MAT_FACTOR_ICC; }

  std::string name() const {
    return std::string(MatFactorTypes[type]) + ", " + std::to_string(levels) + " levels" + (reordered ? ", reordered" : "") +
           (turned ? ", turned" : "") + ", transposed solves from " + std::to_string(first_transpose);
  }
};

// All of PETSc's cuSPARSE paths: ILU(0) and ICC(0) in the natural order are factored on the device, the others on the host.
std::vector<Plan> plans() {
  return {
    {MAT_FACTOR_LU},
    {MAT_FACTOR_LU, 0, true},
    {MAT_FACTOR_LU, 0, true, true},
    {MAT_FACTOR_LU, 0, true, true, 2},
    {MAT_FACTOR_ILU},
    {MAT_FACTOR_ILU, 0, false, false, 2},
    {MAT_FACTOR_ILU, 1},
    {MAT_FACTOR_ILU, 1, true, true, 1},
    {MAT_FACTOR_CHOLESKY},
    {MAT_FACTOR_CHOLESKY, 0, true, false, 1},
    {MAT_FACTOR_ICC},
    {MAT_FACTOR_ICC, 1},
    {MAT_FACTOR_ICC, 1, true},
  };
}

const PetscInt N = 80;

// A plain matrix that dominates its diagonal in the order of orders() below: turned by one column if that is what they undo.
void build_for(const Plan &plan, Mat *A) {
  OK(MatCreateSeqAIJ(PETSC_COMM_SELF, N, N, 9, nullptr, A));
  for (const Entry &e : dominant_case(N, plan.symmetric()).entries)
    OK(MatSetValue(*A, e.i, (e.j + (plan.turned ? 1 : 0)) % N, e.v, INSERT_VALUES));
  if (plan.turned) OK(MatSetValue(*A, 0, 0, 0.0, INSERT_VALUES)); // PETSc wants all of the diagonal stored
  assemble(*A);
  if (plan.symmetric()) OK(MatSetOption(*A, MAT_SPD, PETSC_TRUE));
}

void orders(const Plan &plan, IS *rows, IS *columns) {
  std::vector<PetscInt> r, c;

  for (PetscInt k = 0; k < N; k++) {
    r.push_back(plan.reordered ? (7 * k + 3) % N : k);
    c.push_back((r.back() + (plan.turned ? 1 : 0)) % N);
  }
  OK(ISCreateGeneral(PETSC_COMM_SELF, N, r.data(), PETSC_COPY_VALUES, rows));
  OK(ISCreateGeneral(PETSC_COMM_SELF, N, c.data(), PETSC_COPY_VALUES, columns));
  OK(ISSetPermutation(*rows));
  OK(ISSetPermutation(*columns));
}

PetscErrorCode symbolic(const Plan &plan, Mat F, Mat A, MatFactorInfo *info) {
  Handle<IS> rows, columns;

  orders(plan, &rows, &columns);
  if (plan.type == MAT_FACTOR_LU) return MatLUFactorSymbolic(F, A, rows, columns, info);
  if (plan.type == MAT_FACTOR_ILU) return MatILUFactorSymbolic(F, A, rows, columns, info);
  if (plan.type == MAT_FACTOR_CHOLESKY) return MatCholeskyFactorSymbolic(F, A, rows, info);
  return MatICCFactorSymbolic(F, A, rows, info);
}

// Other values that change both triangular factors and keep the matrix as dominant and as symmetric as it was.
void change(const Plan &plan, Mat A, int round) {
  Handle<Vec> scale;

  if (plan.symmetric()) {
    OK(MatShift(A, 1.0 + round));
    return;
  }
  make_vector(A, true, VECSTANDARD, 90 + round, &scale);
  on_host(scale, [](PetscScalar *s, PetscInt n) {
    for (PetscInt k = 0; k < n; k++) s[k] = 1.5 + 0.5 * s[k];
  });
  OK(MatDiagonalScale(A, scale, nullptr));
}

struct Result {
  std::string name;
  Numbers     x;
};

void keep(std::vector<Result> &results, const std::string &name, Vec x) {
  on_host(x, [&](PetscScalar *array, PetscInt n) { results.push_back({name, Numbers(array, array + n)}); });
}

// What every kind of solve with a factor of A gives, always for the same right-hand sides.
std::vector<Result> all_solves(Mat A, Mat F, VecType type, bool with_transposed) {
  std::vector<Result> results;
  Handle<Vec>         b, y, x, z;
  Handle<Mat>         B, X;
  const PetscInt      columns = 3;

  make_vector(A, true, type, 70, &b);
  make_vector(A, true, type, 71, &y);
  OK(MatCreateSeqDense(PETSC_COMM_SELF, N, columns, nullptr, &B));
  OK(MatCreateSeqDense(PETSC_COMM_SELF, N, columns, nullptr, &X));
  for (PetscInt k = 0; k < N * columns; k++) OK(MatSetValue(B, k % N, k / N, random_number(72, k), INSERT_VALUES));
  assemble(B);
  assemble(X);
  make_vector(A, false, type, 0, &x);
  make_vector(A, false, type, 0, &z);
  for (bool transposed : {false, true}) {
    if (transposed && !with_transposed) continue;
    const std::string end = transposed ? " transposed" : "";
    poison(x);
    OK((transposed ? MatSolveTranspose : MatSolve)(F, b, x));
    keep(results, "solve" + end, x);
    poison(x);
    OK((transposed ? MatSolveTransposeAdd : MatSolveAdd)(F, b, y, x));
    keep(results, "solve and add" + end, x);
    OK(VecCopy(y, z));
    OK((transposed ? MatSolveTransposeAdd : MatSolveAdd)(F, b, z, z));
    keep(results, "solve and add in place" + end, z);
    OK((transposed ? MatMatSolveTranspose : MatMatSolve)(F, B, X));
    const PetscScalar *array;
    OK(MatDenseGetArrayRead(X, &array));
    results.push_back({"solve with a matrix" + end, Numbers(array, array + N * columns)});
    OK(MatDenseRestoreArrayRead(X, &array));
  }
  return results;
}

double relative_difference(const Numbers &a, const Numbers &b) {
  double difference = 0.0, size = 0.0;

  for (size_t k = 0; k < b.size(); k++) {
    difference += (a[k] - b[k]) * (a[k] - b[k]);
    size += b[k] * b[k];
  }
  return std::sqrt(difference / size);
}

// A factor of ours by that solver against PETSc's of a plain matrix, at first and after three changes of values.
void expect_solves(const Plan &plan, const char *solver, const char *backend, VecType vec_type) {
  Handle<Mat>         ours, aij, factor, reference;
  MatFactorInfo       info;
  std::vector<Result> before;
  SCOPED_TRACE(plan.name() + " by " + solver + " on " + vec_type);

  build_for(plan, &aij);
  OK(MatConvert(aij, MATSEQAIJTCBOUND, MAT_INITIAL_MATRIX, &ours));
  if (plan.symmetric()) OK(MatSetOption(ours, MAT_SPD, PETSC_TRUE));
  OK(MatTCBoundSetBackend(ours, backend));
  OK(MatFactorInfoInitialize(&info));
  info.fill = 5.0;
  info.levels = static_cast<PetscReal>(plan.levels);
  for (auto &[A, F, by] : {std::tuple<Mat, Mat *, const char *>{ours, &factor, solver}, {aij, &reference, MATSOLVERPETSC}}) {
    MatSolverType made_by;
    OK(MatGetFactor(A, by, plan.type, F));
    OK(MatFactorGetSolverType(*F, &made_by));
    EXPECT_STREQ(made_by, by);
    OK(symbolic(plan, *F, A, &info));
  }
  for (int round = 0; round < 4; round++) {
    for (auto &[A, F] : {std::pair<Mat, Mat>{ours, factor}, {aij, reference}}) {
      if (round) change(plan, A, round);
      OK(plan.symmetric() ? MatCholeskyFactorNumeric(F, A, &info) : MatLUFactorNumeric(F, A, &info));
    }
    const bool                transposed = round >= plan.first_transpose;
    const std::vector<Result> mine = all_solves(ours, factor, vec_type, transposed);
    const std::vector<Result> theirs = all_solves(aij, reference, VECSTANDARD, transposed);
    for (size_t k = 0; k < theirs.size(); k++) {
      EXPECT_LE(relative_difference(mine[k].x, theirs[k].x), 1e-12) << theirs[k].name << ", factorization " << round;
      if (k >= before.size()) continue;
      EXPECT_GT(relative_difference(before[k].x, theirs[k].x), 1e-3) << "old values would not show";
    }
    before = theirs;
  }
}

// A small matrix of ours on the backend under test.
void build_small(const char *backend, Mat *A) {
  OK(MatCreateSeqAIJ(PETSC_COMM_SELF, 2, 2, 2, nullptr, A));
  assemble(*A);
  OK(MatShift(*A, 2.0));
  OK(MatConvert(*A, MATSEQAIJTCBOUND, MAT_INPLACE_MATRIX, A));
  OK(MatTCBoundSetBackend(*A, backend));
}

std::string maker(Mat F) {
  MatSolverType by;

  OK(MatFactorGetSolverType(F, &by));
  return by;
}

TEST_P(Factor, ByPetsc) {
  for (const Plan &plan : plans()) expect_solves(plan, MATSOLVERPETSC, GetParam(), vec_types().back());
}

TEST_P(Factor, ByCusparse) {
  if (!on_device()) return; // see CusparseIsForTheDevice
  for (const Plan &plan : plans())
    for (VecType vector : vec_types()) expect_solves(plan, MATSOLVERCUSPARSE, GetParam(), vector);
}

TEST_P(Factor, OfTheDefaultSolver) {
  Handle<Mat> A, F;

  build_small(GetParam(), &A);
  OK(MatGetFactor(A, nullptr, MAT_FACTOR_ILU, &F));
  EXPECT_EQ(maker(F), on_device() ? MATSOLVERCUSPARSE : MATSOLVERPETSC);
}

TEST_P(Factor, CusparseIsForTheDevice) {
  if (on_device()) return;
  for (MatFactorType type : {MAT_FACTOR_LU, MAT_FACTOR_ILU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ICC}) {
    Handle<Mat>    A, F;
    Handle<KSP>    ksp;
    PetscErrorCode code;
    PC             pc;
    const char    *why_not = "";

    build_small(GetParam(), &A);
    const std::string asked = message_of([&] { return MatGetFactor(A, MATSOLVERCUSPARSE, type, &F); }, &code);
    EXPECT_EQ(code, PETSC_ERR_MISSING_FACTOR);
    EXPECT_EQ(Mat(F), nullptr);
    OK(KSPCreate(PETSC_COMM_SELF, &ksp));
    OK(KSPSetOptionsPrefix(ksp, "wrong_"));
    OK(KSPSetOperators(ksp, A, A));
    OK(KSPGetPC(ksp, &pc));
    OK(PCSetType(pc, type == MAT_FACTOR_LU         ? PCLU
                     : type == MAT_FACTOR_ILU      ? PCILU
                     : type == MAT_FACTOR_CHOLESKY ? PCCHOLESKY
                                                   : PCICC));
    option("-wrong_pc_factor_mat_solver_type", MATSOLVERCUSPARSE);
    const auto set_up = [&] { // without cuSPARSE in PETSc the second step notices
      const PetscErrorCode error = PCSetFromOptions(pc);
      return error ? error : PCSetUp(pc);
    };
    const std::string optioned = message_of(set_up, &code);
    EXPECT_EQ(code, PETSC_ERR_MISSING_FACTOR);
    if (!PetscDefined(HAVE_CUDA)) continue; // PETSc's own error then
    const std::string reason =
      has_device(&why_not) ? "products of this matrix run on the host (-mat_tcbound_backend host" : why_not;
    for (const std::string &text : {asked, optioned})
      for (const std::string &part : {std::string(MatFactorTypes[type]), std::string("cannot run here"), reason})
        EXPECT_TRUE(contains(text, part)) << part << " is not in: " << text;
    EXPECT_TRUE(contains(optioned, "-wrong_pc_factor_mat_solver_type cusparse")) << optioned;
  }
}

// Whoever binds a matrix to the CPU asks for the host.
TEST_P(Factor, CusparseOfAMatrixBoundToTheCPU) {
  Handle<Mat> A, F;

  if (!on_device()) return;
  build_small(GetParam(), &A);
  OK(MatBindToCPU(A, PETSC_TRUE));
  for (const char *solver : {MATSOLVERCUSPARSE, static_cast<const char *>(nullptr)}) {
    OK(MatDestroy(&F));
    OK(MatGetFactor(A, solver, MAT_FACTOR_LU, &F));
    EXPECT_EQ(maker(F), MATSOLVERPETSC);
  }
}

TEST_P(Factor, CusparseTakesOneSymbolicStep) {
  if (!on_device()) return;
  for (const Plan &plan : {Plan{MAT_FACTOR_LU}, Plan{MAT_FACTOR_ILU}, Plan{MAT_FACTOR_CHOLESKY}, Plan{MAT_FACTOR_ICC}}) {
    Handle<Mat>   A, F;
    MatFactorInfo info;

    build_for(plan, &A);
    OK(MatConvert(A, MATSEQAIJTCBOUND, MAT_INPLACE_MATRIX, &A));
    OK(MatTCBoundSetBackend(A, GetParam()));
    OK(MatFactorInfoInitialize(&info));
    info.fill = 5.0;
    OK(MatGetFactor(A, MATSOLVERCUSPARSE, plan.type, &F));
    OK(symbolic(plan, F, A, &info));
    const std::string text = message_of([&] { return symbolic(plan, F, A, &info); });
    EXPECT_TRUE(contains(text, "one symbolic factorization")) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Factor, testing::Values("host"), backend_name<testing::TestParamInfo<const char *>>);
INSTANTIATE_TEST_SUITE_P(Gpu, Factor, testing::Values("cuda_core", "cusparse"),
                         backend_name<testing::TestParamInfo<const char *>>);

} // namespace
