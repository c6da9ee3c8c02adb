// ranks: 1 2
// -tcbound_counters: products are repeated for the device's hardware counters, and nothing else changes.
#include <petscdmda.h>

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

// Operations on vectors, most of which change one that they read.
static void change_vectors(Vec u, Vec v, Vec w, PetscScalar results[6]) {
  Vec               many[] = {v, w};
  const PetscScalar factors[] = {0.5, -0.25};
  OK(VecScale(u, -0.75));
  OK(VecAXPY(u, 1.5, v));
  OK(VecAYPX(u, 0.5, w));
  OK(VecAXPBY(u, 0.25, 0.5, v));
  OK(VecWAXPY(w, 0.5, u, v));
  OK(VecAXPBYPCZ(w, 0.5, 0.25, 0.125, u, v));
  OK(VecMAXPY(u, 2, factors, many));
  OK(VecPointwiseMult(v, u, v));
  OK(VecDot(u, v, &results[0]));
  OK(VecMDot(u, 2, many, &results[1]));
  OK(VecNorm(w, NORM_2, &results[3]));
  OK(VecDotNorm2(u, w, &results[4], &results[5]));
}

// The same to vectors of the type and to PETSc's own.
static void expect_right_vectors(VecType type, PetscInt n, const char *name) {
  Handle<Vec> ours[3], plain[3];
  PetscScalar results[6], expected[6];
  for (int i = 0; i < 3; ++i) {
    for (Vec *v : {&ours[i], &plain[i]}) {
      OK(VecCreate(PETSC_COMM_SELF, v));
      OK(VecSetSizes(*v, n, n));
      OK(VecSetType(*v, v == &plain[i] ? VECSTANDARD : type));
      on_host(*v, [&](PetscScalar *array, PetscInt size) {
        for (PetscInt k = 0; k < size; k++)
          array[k] = random_number(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(k));
      });
    }
    OK(PetscObjectSetName(object(ours[i]), name));
  }
  change_vectors(ours[0], ours[1], ours[2], results);
  change_vectors(plain[0], plain[1], plain[2], expected);
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(results[i], expected[i], 1e-12 * static_cast<double>(n)) << i;
  for (int i = 0; i < 3; ++i)
    on_host(ours[i], [&](PetscScalar *a, PetscInt size) {
      on_host(plain[i], [&](PetscScalar *b, PetscInt) {
        for (PetscInt k = 0; k < size; k++) ASSERT_NEAR(a[k], b[k], 1e-14) << "vector " << i << ", element " << k;
      });
    });
}

TEST_F(CountersOfProducts, RepeatsLeaveVectorsAlone) {
  int runs = 0;
  tcbound_log->counters = std::make_unique<Repeater>(&runs);
  option("-vec_tcbound_backend", "host");
  expect_right_vectors(VECTCBOUND, 1001, "repeated vectors");
  tcbound::Report report;
  OK(TCBoundLogReduce(PETSC_COMM_SELF, &report));
  int counted = 0;
  for (const auto &row : report.rows) counted += row.event.rfind("Vec", 0) == 0 && row.counted_ranks == 1;
  EXPECT_GE(counted, 11);
  EXPECT_GE(runs, 3 * 11);
}

// A 7-point operator of random coefficients as a stenciltcbound matrix and as AIJ.
static void make_stencils(PetscInt n, const char *name, Mat *ours, Mat *plain) {
  DM da;
  OK(DMDACreate3d(PETSC_COMM_SELF, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, n, n, n, 1, 1, 1, 1,
                  1, nullptr, nullptr, nullptr, &da));
  OK(DMSetUp(da));
  for (Mat *matrix : {ours, plain}) {
    OK(DMSetMatType(da, matrix == ours ? MATSTENCILTCBOUND : MATAIJ));
    OK(DMCreateMatrix(da, matrix));
    std::uint64_t place = 0;
    for (PetscInt k = 0; k < n; k++)
      for (PetscInt j = 0; j < n; j++)
        for (PetscInt i = 0; i < n; i++) {
          MatStencil row = {k, j, i, 0};
          MatStencil columns[7] = {
            row, {k - 1, j, i, 0}, {k + 1, j, i, 0}, {k, j - 1, i, 0}, {k, j + 1, i, 0}, {k, j, i - 1, 0}, {k, j, i + 1, 0}};
          PetscScalar values[7];
          PetscInt    used = 0;
          for (MatStencil &c : columns) {
            const bool inside = c.i >= 0 && c.i < n && c.j >= 0 && c.j < n && c.k >= 0 && c.k < n;
            if (!inside) continue;
            values[used] = random_number(7, place++);
            columns[used++] = c;
          }
          OK(MatSetValuesStencil(*matrix, 1, &row, used, columns, values, INSERT_VALUES));
        }
    OK(MatAssemblyBegin(*matrix, MAT_FINAL_ASSEMBLY));
    OK(MatAssemblyEnd(*matrix, MAT_FINAL_ASSEMBLY));
  }
  OK(PetscObjectSetName(object(*ours), name));
  OK(DMDestroy(&da));
}

TEST_F(CountersOfProducts, RepeatsLeaveStencilsAlone) {
  int runs = 0;
  tcbound_log->counters = std::make_unique<Repeater>(&runs);
  option("-mat_tcbound_backend", "host");
  make_stencils(9, "repeated stencil", &A, &plain);
  for (const bool in_place : {false, true}) expect_right_product(false, in_place);
  const auto rows = rows_of("repeated stencil");
  EXPECT_GE(rows.size(), 2U);
  EXPECT_EQ(runs, 3 * static_cast<int>(rows.size()));
  for (const auto &row : rows) EXPECT_EQ(row.counted_ranks, 1) << row.event;
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

class GpuCountersOfVectors : public CountersOfProducts {
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
    const double rho = row.mma.empty() ? 1.0 : 8.0; // of a matrix instruction's 8 results in a row one is kept
    EXPECT_LE(tcbound::measured_flops_ratio(row), rho * 4.0) << row.event << " " << row.kernel;
    EXPECT_EQ(row.counts.mma_instructions > 0, !row.mma.empty()) << row.kernel;
  }
}

TEST_F(GpuCountersOfVectors, AreReadOfStencilsToo) {
  make_stencils(40, "counted stencil", &A, &plain);
  for (const bool in_place : {false, true}) expect_right_product(false, in_place);
  std::vector<std::string> notes;
  const auto               rows = rows_of("counted stencil", &notes);
  destroy_matrices();
  for (const auto &note : notes)
    if (note.rfind("nothing is measured: ", 0) == 0) GTEST_SKIP() << note;
  if (world_size() > 1) return;
  EXPECT_GE(rows.size(), 2U);
  for (const auto &row : rows) {
    EXPECT_EQ(row.counted_ranks, 1) << row.event;
    EXPECT_GT(row.counts.l2_bytes, 0.9 * row.counted_bytes) << row.event;
    EXPECT_GE(tcbound::measured_flops_ratio(row), 0.49) << row.event;
    EXPECT_LE(tcbound::measured_flops_ratio(row), 3.0) << row.event;
  }
}

TEST_F(GpuCountersOfVectors, AreReadAndLeaveVectorsAlone) {
  expect_right_vectors(VECTCBOUND, 3000001, "counted vectors");
  tcbound::Report report;
  OK(TCBoundLogReduce(PETSC_COMM_SELF, &report));
  for (const auto &note : report.counter_notes)
    if (note.rfind("nothing is measured: ", 0) == 0) GTEST_SKIP() << note;
  if (world_size() > 1) return;
  int counted = 0;
  for (const auto &row : report.rows) {
    if (row.event.rfind("Vec", 0) != 0 || row.space != tcbound::MemorySpace::cuda || row.counted_ranks == 0) continue;
    ++counted;
    EXPECT_NEAR(tcbound::measured_flops_ratio(row), 1.0, 1.01) << row.event; // scaling may be free, and a product twice counted
    EXPECT_GT(row.counts.l2_bytes, 0.9 * row.counted_bytes) << row.event;
    EXPECT_LT(row.counts.dram_bytes(), 1.1 * row.counted_bytes + 1e6) << row.event;
  }
  EXPECT_GE(counted, 11);
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuCountersOfProducts, testing::Values("cuda_core", "cusparse"),
                         backend_name<testing::TestParamInfo<const char *>>);
