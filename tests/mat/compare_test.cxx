// ranks: 1 2
// -mat_tcbound_compare, with a second host kernel that only this test has.
#include <cmath>
#include <set>

#include "mat/support.h"
#include "src/log/logimpl.h"
#include "src/mat/aijtcbound.h"

namespace {

// CSR in the other direction: each row's sum from its last entry to its first. `error` is added to one result.
class Backwards final : public tcbound::Kernel {
public:
  Backwards() : Kernel("spmv", "backwards", "host"), csr_(*tcbound::find_kernel("spmv/csr/host")) {}
  double      error = 0;
  bool        runs = true;
  mutable int built = 0, refilled = 0, applied = 0;

  tcbound::MemorySpace space() const override { return tcbound::MemorySpace::host; }
  std::string          check(const tcbound::Device &, const tcbound::Problem &) const override {
    return runs ? "" : "this test does not want it";
  }
  tcbound::Work predict(const tcbound::Problem &p, bool transpose, bool accumulate) const override {
    return csr_.predict(p, transpose, accumulate);
  }
  std::unique_ptr<tcbound::Format> build(tcbound::Executor &executor, const tcbound::Problem &problem) const override {
    ++built;
    return std::make_unique<BackwardsFormat>(*this, csr_.build(executor, problem), problem.csr);
  }
  void apply(tcbound::Executor &, tcbound::Format &format, const tcbound::Product &p) const override {
    ++applied;
    const tcbound::CsrView &a = static_cast<BackwardsFormat &>(format).view;
    const std::int64_t      outputs = p.transpose ? a.columns_count : a.rows;
    std::vector<double>     sums(static_cast<std::size_t>(outputs));
    for (std::int64_t i = a.rows; i-- > 0;)
      for (std::int64_t k = a.row_offsets[i + 1]; k-- > a.row_offsets[i];)
        sums[static_cast<std::size_t>(p.transpose ? a.columns[k] : i)] += a.values[k] * p.x[p.transpose ? i : a.columns[k]];
    for (std::int64_t i = 0; i < outputs; ++i)
      p.z[i] = sums[static_cast<std::size_t>(i)] + (p.beta != 0 ? p.beta * p.y[i] : 0) + (i == outputs / 2 ? error : 0);
  }

private:
  struct BackwardsFormat final : tcbound::Format {
    BackwardsFormat(const Backwards &k, std::unique_ptr<tcbound::Format> c, const tcbound::CsrView &v)
      : kernel(k), csr(std::move(c)), view(v) {}
    const char *name() const override { return "backwards"; }
    void        refill(tcbound::Executor &executor, const double *values, tcbound::MemorySpace space) override {
      ++kernel.refilled;
      view.values = values;
      csr->refill(executor, values, space);
    }
    void             diagonal(tcbound::Executor &executor, double *d) override { csr->diagonal(executor, d); }
    tcbound::Work    work(bool transpose, bool accumulate) const override { return csr->work(transpose, accumulate); }
    std::int64_t     stored_bytes() const override { return 0; }
    const Backwards &kernel;
    std::unique_ptr<tcbound::Format> csr;
    tcbound::CsrView                 view;
  };
  const tcbound::Kernel &csr_;
};

// Keeps the message of the last error.
std::string    message;
PetscErrorCode keep_message(MPI_Comm, int, const char *, const char *, PetscErrorCode code, PetscErrorType type,
                            const char *text, void *) {
  if (type == PETSC_ERROR_INITIAL) message = text;
  return code;
}

class Compare : public testing::Test {
protected:
  void SetUp() override {
    (void)check_comm();
    tcbound_mat_compare_more = {&other};
    OK(PetscOptionsSetValue(nullptr, "-mat_tcbound_compare", "true"));
    OK(PetscOptionsSetValue(nullptr, "-mat_tcbound_backend", "host"));
    OK(PetscOptionsSetValue(nullptr, "-mat_tcbound_format", "csr"));
    OK(PetscLogDefaultBegin());
  }
  void TearDown() override {
    tcbound_mat_compare_more.clear();
    for (const char *name : {"-mat_tcbound_compare", "-mat_tcbound_backend", "-mat_tcbound_format"})
      OK(PetscOptionsClearValue(nullptr, name));
  }

  // A tridiagonal matrix of this rank alone with `rows` rows and random entries.
  void make(const char *name, PetscInt rows = 50) {
    OK(MatCreate(PETSC_COMM_SELF, &A));
    OK(PetscObjectSetName(object(A), name));
    OK(MatSetSizes(A, rows, rows, rows, rows));
    OK(MatSetType(A, MATAIJTCBOUND));
    OK(MatSetFromOptions(A));
    fill(1);
    OK(MatCreateVecs(A, &x, &y));
    OK(VecDuplicate(x, &z));
    OK(VecSet(x, 1.0 / 3));
    OK(VecSet(y, 1.0 / 7));
  }
  void fill(std::uint64_t seed) {
    PetscInt rows;
    OK(MatGetSize(A, &rows, nullptr));
    for (PetscInt i = 0; i < rows; i++)
      for (PetscInt j = std::max<PetscInt>(i - 1, 0); j <= std::min(i + 1, rows - 1); j++)
        OK(MatSetValue(A, i, j, random_number(seed, static_cast<std::uint64_t>(i * rows + j)), INSERT_VALUES));
    OK(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    OK(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  }
  tcbound::ReportRow row_of(const char *event, const char *label, const char *kernel) const {
    tcbound::Report report;
    OK(TCBoundLogReduce(PETSC_COMM_SELF, &report));
    for (const auto &row : report.rows)
      if (row.event == event && row.label == label && row.kernel == kernel) return row;
    return {};
  }

  Backwards   other;
  Handle<Mat> A;
  Handle<Vec> x, y, z;
};

} // namespace

TEST_F(Compare, EveryProductRunsOnBothAndTheLogHasBoth) {
  make("both");
  for (int i = 0; i < 5; i++) OK(MatMult(A, x, y));
  EXPECT_EQ(other.built, 1);
  EXPECT_EQ(other.applied, 5);
  const auto own = row_of("MatMult", "both", "spmv/csr/host"), extra = row_of("MatMult", "both", "spmv/backwards/host");
  EXPECT_EQ(own.calls_max, 5);
  EXPECT_EQ(extra.calls_max, 5);
  EXPECT_EQ(own.bytes, extra.bytes);
  // The partner is the fastest of the other kernels; which one that is, the clock says.
  for (const auto &[row, other_csr] : {std::make_pair(own, "spmv/backwards/host"), std::make_pair(extra, "spmv/csr/host")}) {
    EXPECT_TRUE(row.verdict.partner == other_csr || row.verdict.partner == "spmv/compact/host" ||
                row.verdict.partner == "spmv/sell/host")
      << row.verdict.partner;
    const auto partner = row_of("MatMult", "both", row.verdict.partner.c_str());
    EXPECT_EQ(partner.calls_max, 5);
    EXPECT_DOUBLE_EQ(row.verdict.ratio_bytes, partner.bytes / row.bytes);
    if (row.verdict.partner == other_csr) {
      EXPECT_EQ(row.verdict.ratio_bytes, 1);
    }
    EXPECT_GT(row.verdict.ratio, 0);
  }
  tcbound::Report report;
  OK(TCBoundLogReduce(PETSC_COMM_SELF, &report));
  EXPECT_GE(report.compare.products, 5);
  EXPECT_GE(report.compare.checks, 3); // of the first, second and fourth
  EXPECT_GT(report.compare.seconds, 0);
}

// With a large error of the other kernel in products that are not compared, the results stay the matrix's own.
TEST_F(Compare, ResultsAreTheMatrixsOwn) {
  make("own");
  OK(MatMult(A, x, y));
  OK(MatMult(A, x, y));
  OK(VecCopy(y, z));
  other.error = 1e3;
  OK(MatMult(A, x, y)); // the third
  PetscBool same;
  OK(VecEqual(y, z, &same));
  EXPECT_TRUE(same);
}

TEST_F(Compare, AllKindsOfProductsAgree) {
  make("kinds");
  for (int i = 0; i < 4; i++) {
    OK(MatMult(A, x, z));
    OK(MatMultAdd(A, x, y, z));
    OK(MatMultAdd(A, x, z, z)); // in place
    OK(MatMultTranspose(A, x, z));
    OK(MatMultTransposeAdd(A, x, y, z));
    OK(MatMultTransposeAdd(A, x, z, z));
  }
  EXPECT_EQ(other.applied, 24);
  EXPECT_EQ(row_of("MatMultAdd", "kinds", "spmv/backwards/host").calls_max, 8);
  EXPECT_EQ(row_of("MatMultTrAdd", "kinds", "spmv/backwards/host").calls_max, 8);
}

TEST_F(Compare, FollowsTheMatrix) {
  make("follows");
  OK(MatMult(A, x, y));
  fill(2); // other values
  OK(MatMult(A, x, y));
  EXPECT_EQ(other.refilled, 1);
  OK(MatZeroRows(A, 0, nullptr, 1.0, nullptr, nullptr));
  OK(MatMult(A, x, y));
  OK(MatMult(A, x, y));
  other.runs = false;
  Handle<Mat> B;
  OK(MatDuplicate(A, MAT_COPY_VALUES, &B));
  OK(MatMult(B, x, y));
  EXPECT_EQ(other.applied, 4);
}

TEST_F(Compare, ADifferenceNamesKernelsAndRow) {
  make("differs");
  other.error = 1e-12;
  OK(PetscPushErrorHandler(keep_message, nullptr));
  EXPECT_EQ(MatMult(A, x, y), PETSC_ERR_PLIB);
  OK(PetscPopErrorHandler());
  EXPECT_EQ(message.find("-mat_tcbound_compare: spmv/csr/host and spmv/backwards/host differ in row 25 of A x: "), 0u)
    << message;
  EXPECT_NE(message.find("where rounding allows"), std::string::npos) << message;
}

TEST_F(Compare, ParallelMatricesCompareTheirBlocks) {
  const PetscInt rows = 20 * world_size();
  OK(MatCreate(PETSC_COMM_WORLD, &A));
  OK(MatSetSizes(A, 20, 20, rows, rows));
  OK(MatSetType(A, MATAIJTCBOUND));
  OK(MatSetFromOptions(A));
  for (PetscInt i = 20 * world_rank(); i < 20 * (world_rank() + 1); i++)
    for (const PetscInt j : {i, (i + 7) % rows})
      OK(MatSetValue(A, i, j, random_number(3, static_cast<std::uint64_t>(i + 100 * j)), INSERT_VALUES));
  OK(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  OK(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  OK(MatCreateVecs(A, &x, &y));
  OK(VecSet(x, 1.0 / 3));
  OK(MatMult(A, x, y));
  OK(MatMult(A, x, y));
  EXPECT_EQ(other.applied, world_size() > 1 ? 4 : 2);
}

namespace {

// One row (1, -1, 1e-3) and, transposed, three of one entry.
struct Results {
  std::int32_t     offsets[2] = {0, 3}, columns[3] = {0, 1, 2};
  double           values[3] = {1, -1, 1e-3}, x[3] = {1, 1, 1}, y[3] = {0, 0, 0};
  tcbound::Problem problem;
  tcbound::Product product;
  Results() {
    tcbound::CsrView &csr = problem.csr;
    csr.rows = 1;
    csr.columns_count = 3;
    csr.nonzeros = 3;
    csr.row_offsets = {offsets, 4};
    csr.columns = {columns, 4};
    csr.values = values;
    product.x = x;
  }
  PetscInt differing_row(std::vector<double> z, std::vector<double> other) const {
    PetscInt row = -2;
    double   allowed;
    EXPECT_EQ(TCBoundCompareResults(problem, product, z.data(), other.data(), &row, &allowed), PETSC_SUCCESS);
    return row;
  }
};

const double eps = std::numeric_limits<double>::epsilon();

} // namespace

// Rounding is of the terms, not of what is left of them: 2 (3 + 2) eps 2.001.
TEST(CompareResults, AllowsTheRoundingOfTheTerms) {
  const Results r;
  EXPECT_EQ(r.differing_row({1e-3}, {1e-3}), -1);
  EXPECT_EQ(r.differing_row({1e-3}, {1e-3 + 19 * eps}), -1);
  EXPECT_EQ(r.differing_row({1e-3}, {1e-3 - 21 * eps}), 0);
}

TEST(CompareResults, CountsTheVectorThatIsAdded) {
  Results r;
  r.product.y = r.y;
  r.product.beta = 1;
  r.y[0] = 100;
  EXPECT_EQ(r.differing_row({100}, {100 + 900 * eps}), -1);
  r.product.beta = 0; // then y is not read
  EXPECT_EQ(r.differing_row({100}, {100 + 900 * eps}), 0);
}

TEST(CompareResults, TransposedFindsTheWorstRow) {
  Results r;
  r.product.transpose = true;
  EXPECT_EQ(r.differing_row({1, -1, 1e-3}, {1 + 5 * eps, -1, 1e-3}), -1);
  EXPECT_EQ(r.differing_row({1, -1, 1e-3}, {1 + 7 * eps, -1, 2e-3}), 2);
}

TEST(CompareResults, ZerosAndWhatIsNoNumber) {
  Results r;
  for (double &v : r.x) v = 0;
  EXPECT_EQ(r.differing_row({0}, {-0.0}), -1);
  EXPECT_EQ(r.differing_row({0}, {1e-300}), 0);
  EXPECT_EQ(r.differing_row({0}, {NAN}), 0);
  r.x[1] = INFINITY; // inf times 0 elsewhere: anything may come out
  EXPECT_EQ(r.differing_row({NAN}, {INFINITY}), -1);
}

// Sums are FP32 there: 2 (2 3 + 8) 2^-23 2.001.
TEST(CompareResults, LossyArithmeticMayDifferByFP32Sums) {
  Results r;
  r.problem.arithmetic = tcbound::Arithmetic::bf16;
  EXPECT_EQ(r.differing_row({1e-3}, {1e-3 + 55 * 0x1p-23}), -1);
  EXPECT_EQ(r.differing_row({1e-3}, {1e-3 - 58 * 0x1p-23}), 0);
  EXPECT_EQ(r.differing_row({1e-3}, {NAN}), 0);
  EXPECT_EQ(r.differing_row({NAN}, {NAN}), -1);
}

// Products with a matrix of this name and 8 entries a row, and a few with its transpose.
void multiply_many_times(const char *name, PetscInt rows, int times) {
  Handle<Mat> A;
  Handle<Vec> x, y;
  OK(MatCreate(PETSC_COMM_SELF, &A));
  OK(PetscObjectSetName(object(A), name));
  OK(MatSetSizes(A, rows, rows, rows, rows));
  OK(MatSetType(A, MATAIJTCBOUND));
  OK(MatSetFromOptions(A));
  OK(MatSeqAIJSetPreallocation(A, 8, nullptr));
  for (PetscInt i = 0; i < rows; i++)
    for (PetscInt k = 0; k < 8; k++)
      OK(MatSetValue(A, i, (i + k * k * 37) % rows, random_number(5, static_cast<std::uint64_t>(8 * i + k)), INSERT_VALUES));
  OK(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  OK(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  OK(MatCreateVecs(A, &x, &y));
  OK(VecSetRandom(x, nullptr));
  for (int i = 0; i < times; i++) OK(MatMult(A, x, y));
  for (int i = 0; i < 3; i++) OK(MatMultTranspose(A, x, y));
}

// On a device cuSPARSE and the kernel on CUDA cores compare: same format, same cores, so that all is bandwidth.
TEST(GpuCompare, CudaCoresAndCusparseAgreeAndAreJudged) {
  const char *why_not = nullptr;
  (void)check_comm();
  if (!has_device(&why_not)) GTEST_SKIP() << why_not;
  for (const auto &[name, value] :
       {std::make_pair("-mat_tcbound_compare", "true"), std::make_pair("-mat_tcbound_backend", "cuda_core"),
        std::make_pair("-mat_tcbound_format", "csr")})
    OK(PetscOptionsSetValue(nullptr, name, value));
  OK(PetscLogDefaultBegin());
  multiply_many_times("device", 200000, 20);
  tcbound::Report report;
  OK(TCBoundLogReduce(PETSC_COMM_SELF, &report));
  int found = 0;
  for (const auto &row : report.rows) {
    if (row.label != "device" || row.event != "MatMult") continue;
    ++found;
    EXPECT_EQ(row.calls_max, 20) << row.kernel;
    EXPECT_FALSE(row.verdict.partner.empty()) << row.kernel;
    const double factors = row.verdict.ratio_bytes * row.verdict.ratio_bandwidth * row.verdict.ratio_arithmetic;
    EXPECT_NEAR(factors, row.verdict.ratio, 1e-9 * row.verdict.ratio) << row.verdict.words;
    EXPECT_GT(row.verdict.roof_share, 0) << row.verdict.words;
    if (world_size() == 1) { // else ranks measure on a busy device
      EXPECT_LT(row.verdict.roof_share, 1.5) << row.verdict.words;
    }
    EXPECT_GT(row.verdict.launch, 0);
  }
  EXPECT_GE(found, 2); // and other formats, once there are some
  for (const char *name : {"-mat_tcbound_compare", "-mat_tcbound_backend", "-mat_tcbound_format"})
    OK(PetscOptionsClearValue(nullptr, name));
}

// In lossy arithmetic the twins compare, and nothing else.
TEST(GpuCompare, LossyTwinsAgreeAndAreJudged) {
  const char *why_not = nullptr;
  (void)check_comm();
  if (!has_device(&why_not)) GTEST_SKIP() << why_not;
  for (const auto &[name, value] :
       {std::make_pair("-mat_tcbound_compare", "true"), std::make_pair("-mat_tcbound_backend", "tensor_core"),
        std::make_pair("-mat_tcbound_product_precision", "bf16")})
    OK(PetscOptionsSetValue(nullptr, name, value));
  OK(PetscLogDefaultBegin());
  multiply_many_times("lossy", 100000, 9);
  tcbound::Report report;
  OK(TCBoundLogReduce(PETSC_COMM_SELF, &report));
  std::set<std::string> found;
  for (const auto &row : report.rows) {
    if (row.label != "lossy" || row.event != "MatMult") continue;
    found.insert(row.kernel);
    EXPECT_EQ(row.calls_max, 9) << row.kernel;
    EXPECT_TRUE(row.verdict.is_twin) << row.kernel;
  }
  EXPECT_EQ(found, (std::set<std::string>{"spmv/fragments/cuda_core:bf16", "spmv/fragments/tensor_core:bf16"}));
  for (const char *name : {"-mat_tcbound_compare", "-mat_tcbound_backend", "-mat_tcbound_product_precision"})
    OK(PetscOptionsClearValue(nullptr, name));
}
