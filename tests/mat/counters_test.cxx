// ranks: 1 2
// -tcbound_counters: products are repeated for the device's hardware counters, and nothing else changes.
#include "mat/support.h"
#include "src/log/logimpl.h"

namespace {

// Repeats what it is told to and says nothing about it.
class Repeater final : public tcbound::Counters {
public:
  explicit Repeater(int *runs) : runs_(runs) {}
  tcbound::MemorySpace space() const override { return tcbound::MemorySpace::host; }
  tcbound::Counts      measure(const std::function<void()> &run) override {
    for (int pass = 0; pass < 3; ++pass) run();
    *runs_ += 3;
    return {};
  }
  std::vector<std::string> missing() const override { return {}; }

private:
  int *runs_;
};

// Products of a random rectangular matrix on each rank alone, whose right results PETSc's own AIJ gives.
class CountersOfProducts : public testing::Test {
protected:
  void SetUp() override {
    (void)check_comm();
    OK(PetscLogDefaultBegin());
    tcbound_log->count = PETSC_TRUE;
  }
  void TearDown() override {
    tcbound_log->count = PETSC_FALSE;
    tcbound_log->counters.reset();
    tcbound_log->counters_tried = PETSC_FALSE;
    tcbound_log->counter_notes.clear();
    for (const std::string &name : options_) OK(PetscOptionsClearValue(nullptr, name.c_str()));
  }
  void option(const char *name, const char *value) {
    OK(PetscOptionsSetValue(nullptr, name, value));
    options_.push_back(name);
  }

  void make(const char *name, PetscInt rows, PetscInt columns) {
    for (Mat *matrix : {&plain, &A}) {
      OK(MatCreate(PETSC_COMM_SELF, matrix));
      OK(MatSetSizes(*matrix, rows, columns, rows, columns));
      OK(MatSetType(*matrix, matrix == &plain ? MATSEQAIJ : MATSEQAIJTCBOUND));
      OK(MatSetFromOptions(*matrix));
      OK(MatSeqAIJSetPreallocation(*matrix, 9, nullptr));
      for (PetscInt i = 0; i < rows; i++)
        for (PetscInt k = 0; k < 9; k++)
          OK(MatSetValue(*matrix, i, (i + k * k * 37) % columns, random_number(5, static_cast<std::uint64_t>(9 * i + k)),
                         INSERT_VALUES));
      OK(MatAssemblyBegin(*matrix, MAT_FINAL_ASSEMBLY));
      OK(MatAssemblyEnd(*matrix, MAT_FINAL_ASSEMBLY));
    }
    OK(PetscObjectSetName(object(A), name));
  }
  void destroy_matrices() {
    OK(MatDestroy(&A));
    OK(MatDestroy(&plain));
  }

  // Every kind of product twice, those that add in place and elsewhere.
  void expect_right_products() {
    for (const bool transpose : {false, true})
      for (const bool in_place : {false, true})
        for (int call = 0; call < 2; ++call) expect_right_product(transpose, in_place);
  }
  void expect_right_product(bool transpose, bool in_place) {
    Handle<Vec> right, left, expected_right, expected_left;
    OK(MatCreateVecs(A, &right, &left));
    OK(MatCreateVecs(plain, &expected_right, &expected_left));
    fill(right, 1);
    fill(left, 2);
    OK(VecCopy(right, expected_right));
    OK(VecCopy(left, expected_left));
    const Vec   x = transpose ? left : right, y = transpose ? right : left;
    const Vec   px = transpose ? expected_left : expected_right, py = transpose ? expected_right : expected_left;
    Handle<Vec> z, pz;
    OK(VecDuplicate(y, &z));
    OK(VecDuplicate(py, &pz));
    OK(transpose ? MatMultTranspose(A, x, z) : MatMult(A, x, z));
    OK(transpose ? MatMultTranspose(plain, px, pz) : MatMult(plain, px, pz));
    expect_equal(z, pz);
    const Vec to = in_place ? y : Vec(z), pto = in_place ? py : Vec(pz);
    OK(transpose ? MatMultTransposeAdd(A, x, y, to) : MatMultAdd(A, x, y, to));
    OK(transpose ? MatMultTransposeAdd(plain, px, py, pto) : MatMultAdd(plain, px, py, pto));
    expect_equal(to, pto);
  }
  static void fill(Vec v, std::uint64_t seed) {
    on_host(v, [&](PetscScalar *array, PetscInt n) {
      for (PetscInt i = 0; i < n; i++) array[i] = random_number(seed, static_cast<std::uint64_t>(i));
    });
  }
  static void expect_equal(Vec ours, Vec expected) {
    on_host(ours, [&](PetscScalar *a, PetscInt n) {
      on_host(expected, [&](PetscScalar *b, PetscInt) {
        PetscReal worst = 0;
        for (PetscInt i = 0; i < n; i++) worst = std::max(worst, PetscAbsScalar(a[i] - b[i]));
        EXPECT_LT(worst, 1e-13);
      });
    });
  }

  std::vector<tcbound::ReportRow> rows_of(const char *name, std::vector<std::string> *notes = nullptr) const {
    tcbound::Report                 report;
    std::vector<tcbound::ReportRow> rows;
    OK(TCBoundLogReduce(PETSC_COMM_SELF, &report));
    for (const auto &row : report.rows)
      if (row.label == name) rows.push_back(row);
    if (notes) *notes = report.counter_notes;
    return rows;
  }

  Mat                      A = nullptr, plain = nullptr;
  std::vector<std::string> options_;
};

} // namespace

TEST_F(CountersOfProducts, RepeatsLeaveResultsAlone) {
  int runs = 0;
  tcbound_log->counters = std::make_unique<Repeater>(&runs);
  option("-mat_tcbound_backend", "host");
  option("-mat_tcbound_compare", "true"); // every kernel of the host has a row
  make("repeated", 613, 500);
  expect_right_products();
  const auto rows = rows_of("repeated");
  EXPECT_GE(rows.size(), 8U); // four kinds of product by two kernels or more
  EXPECT_EQ(runs, 3 * static_cast<int>(rows.size()));
  for (const auto &row : rows) {
    EXPECT_EQ(row.counted_ranks, 1) << row.event << " " << row.kernel;
    EXPECT_EQ(row.calls_max, 4) << row.event;
    EXPECT_EQ(row.counted_bytes * row.calls_max, row.bytes) << row.event;
  }
  destroy_matrices();
}

class GpuCountersOfProducts : public CountersOfProducts, public testing::WithParamInterface<const char *> {
protected:
  void SetUp() override {
    const char *why_not = nullptr;
    CountersOfProducts::SetUp();
    if (!has_device(&why_not)) GTEST_SKIP() << why_not;
  }
};

TEST_P(GpuCountersOfProducts, AreReadOncePerRowAndLeaveResultsAlone) {
  option("-mat_tcbound_backend", GetParam());
  option("-mat_tcbound_compare", "true");
  const std::string name = std::string("counted beside ") + GetParam(); // rows stay from test to test
  make(name.c_str(), 20011, 15013);
  expect_right_products();
  std::vector<std::string> notes;
  const auto               rows = rows_of(name.c_str(), &notes);
  EXPECT_GE(rows.size(), 8U);
  destroy_matrices();
  for (const auto &note : notes)
    if (note.rfind("nothing is measured: ", 0) == 0) GTEST_SKIP() << note;
  if (world_size() > 1) return; // ranks that share a device may find its counters in use, and say so
  EXPECT_TRUE(notes.empty()) << notes[0];
  for (const auto &row : rows) {
    EXPECT_EQ(row.counted_ranks, 1) << row.kernel;
    EXPECT_EQ(row.calls_max, 4) << row.kernel;
    EXPECT_GT(row.counts.l2_bytes, 0.5 * row.counted_bytes) << row.event << " " << row.kernel;
    EXPECT_GE(tcbound::measured_flops_ratio(row), 0.49) << row.event << " " << row.kernel; // products alone are half
    EXPECT_LE(tcbound::measured_flops_ratio(row), 4.0) << row.event << " " << row.kernel;
    EXPECT_EQ(row.counts.mma_instructions > 0, !row.mma.empty()) << row.kernel;
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuCountersOfProducts, testing::Values("cuda_core", "cusparse"),
                         backend_name<testing::TestParamInfo<const char *>>);
