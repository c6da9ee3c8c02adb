// ranks: 1 2 3 5
// Off-diagonal blocks, whose products add to what the diagonal blocks' products wrote and of which few rows have entries.
#include <cstring>

#include "mat/matrices.h"

namespace {

using OffDiagonal = OnBackend;

// Lines of a grid: of each rank's rows the first and the last line have columns of other ranks.
Case lines() {
  return make_case("lines", 900, 900, [](PetscInt i, std::set<PetscInt> &chosen) {
    for (PetscInt j : {i - 10, i - 1, i, i + 1, i + 10})
      if (j >= 0 && j < 900) chosen.insert(j);
  });
}

Mat off_diagonal(Mat A) {
  Mat block = nullptr;
  if (world_size() > 1) OK(MatMPIAIJGetSeqAIJ(A, nullptr, &block, nullptr));
  return block;
}

// Products of this rank's off-diagonal block alone, z elsewhere and in place, against PETSc's.
void expect_same_blocks(Mat ours, Mat aij) {
  for (const bool transpose : {false, true})
    for (const int way : {0, 1, 2}) {
      Handle<Vec> x, y, z, expected;
      OK(transpose ? MatCreateVecs(aij, nullptr, &x) : MatCreateVecs(aij, &x, nullptr));
      OK(transpose ? MatCreateVecs(aij, &y, nullptr) : MatCreateVecs(aij, nullptr, &y));
      OK(VecDuplicate(y, &z));
      OK(VecDuplicate(y, &expected));
      randomize(x, 1);
      randomize(y, 2);
      poison(z);
      poison(expected);
      if (way == 2) {
        OK(VecCopy(y, z));
        OK(VecCopy(y, expected));
      }
      for (Mat A : {ours, aij}) {
        const Vec to = A == ours ? z : expected;
        if (way == 0)
          OK((transpose ? MatMultTranspose : MatMult)(A, x, to));
        else
          OK((transpose ? MatMultTransposeAdd : MatMultAdd)(A, x, way == 1 ? Vec(y) : to, to));
      }
      on_host(z, [&](PetscScalar *a, PetscInt n) {
        on_host(expected, [&](PetscScalar *b, PetscInt) {
          for (PetscInt i = 0; i < n; i++)
            EXPECT_LE(std::abs(a[i] - b[i]), 1e-13) << "element " << i << " transpose " << transpose << " way " << way;
        });
      });
    }
}

TEST_P(OffDiagonal, BlocksMultiplyInEveryWay) {
  for (const char *format : {"auto", "csr", "compact"}) {
    if (backend() == "cusparse" && !std::strcmp(format, "compact")) continue;
    SCOPED_TRACE(format);
    option("-mat_tcbound_format", format);
    for (const Case &c : {lines(), random_case()}) {
      SCOPED_TRACE(c.name);
      const Pair m(c);
      for (VecType type : vec_types()) expect_same_products(m.ours, m.aij, type);
      if (world_size() > 1) expect_same_blocks(off_diagonal(m.ours), off_diagonal(m.aij));
      for (Mat A : {Mat(m.ours), Mat(m.aij)}) OK(MatScale(A, -1.75));
      for (VecType type : vec_types()) expect_same_products(m.ours, m.aij, type);
      if (world_size() > 1) expect_same_blocks(off_diagonal(m.ours), off_diagonal(m.aij));
    }
  }
}

// auto takes csr with the rows that have entries: of 900 rows on two ranks 10 each.
TEST_P(OffDiagonal, AutoStoresFewRows) {
  const Pair  m(lines());
  std::string text;
  Handle<Vec> x, y;
  if (world_size() == 1 || backend() == "cusparse") return;
  OK(MatCreateVecs(m.ours, &x, &y));
  OK(VecSet(x, 1.0));
  OK(MatMult(m.ours, x, y));
  text = text_of([&](PetscViewer viewer) {
    OK(PetscViewerPushFormat(viewer, PETSC_VIEWER_ASCII_INFO_DETAIL));
    OK(MatView(m.ours, viewer));
    OK(PetscViewerPopFormat(viewer));
  });
  const int neighbours = world_size() > 2 ? 2 : 1;
  EXPECT_TRUE(contains(text, "off-diagonal block: spmv/csr/" + backend() + ": " + std::to_string(10 * neighbours) + " of " +
                               std::to_string(900 / world_size()) + " rows have entries and are stored"))
    << text;
}

// Where no row has entries, no product runs: z keeps even the sign of its zeros.
TEST_P(OffDiagonal, NothingRunsWithoutEntries) {
  const Case     c = make_case("diagonal", 130, 130, [](PetscInt i, std::set<PetscInt> &chosen) { chosen.insert(i); });
  const Pair     m(c);
  MatTCBoundInfo info, of_block;
  for (VecType type : vec_types()) expect_same_products(m.ours, m.aij, type);
  OK(MatTCBoundGetInfo(m.ours, &info));
  EXPECT_EQ(info.useful_flops, 260.0);
  if (world_size() == 1) return;
  Mat diagonal, block = off_diagonal(m.ours);
  OK(MatMPIAIJGetSeqAIJ(m.ours, &diagonal, nullptr, nullptr));
  OK(MatTCBoundGetInfo(diagonal, &of_block));
  double moved = of_block.moved_bytes;
  MPI_OK(MPI_Allreduce(MPI_IN_PLACE, &moved, 1, MPI_DOUBLE, MPI_SUM, PETSC_COMM_WORLD));
  EXPECT_EQ(info.moved_bytes, moved);
  for (VecType type : vec_types()) {
    Handle<Vec> x, z;
    PetscInt    rows;
    OK(MatGetLocalSize(block, &rows, nullptr));
    for (Vec *v : {&x, &z}) {
      OK(VecCreate(PETSC_COMM_SELF, v));
      OK(VecSetSizes(*v, v == &x ? 0 : rows, PETSC_DETERMINE));
      OK(VecSetType(*v, type));
      on_host(*v, [](PetscScalar *array, PetscInt n) { std::fill(array, array + n, -0.0); }); // VecSet() would lose the sign
      move_to_memory_of_type(*v);
    }
    OK(MatMultAdd(block, x, z, z));
    on_host(z, [](PetscScalar *array, PetscInt n) {
      for (PetscInt i = 0; i < n; i++) EXPECT_TRUE(std::signbit(array[i]));
    });
  }
}

// Rows that had no entries get some, and those that had lose theirs.
TEST_P(OffDiagonal, PatternsChange) {
  const Case before = lines();
  const Case after = make_case("others", 900, 900, [](PetscInt i, std::set<PetscInt> &chosen) {
    chosen.insert({i, (i + 450) % 900});
    if (i % 7 == 0) chosen.insert((i * 13) % 900);
  });
  const Pair m(before);
  for (const Case *c : {&after, &before, &after}) {
    for (Mat A : {Mat(m.ours), Mat(m.aij)}) {
      OK(MatResetPreallocation(A));
      OK(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_TRUE));
      OK(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
      insert(*c, A);
    }
    for (VecType type : vec_types()) expect_same_products(m.ours, m.aij, type);
    if (world_size() > 1) expect_same_blocks(off_diagonal(m.ours), off_diagonal(m.aij));
  }
}

TEST_P(OffDiagonal, ChoosesByTimeAndComparesToo) {
  option("-mat_tcbound_tune", "measure");
  option("-mat_tcbound_compare", "true");
  const Pair m(lines());
  for (VecType type : vec_types()) expect_same_products(m.ours, m.aij, type);
}

INSTANTIATE_TEST_SUITE_P(Cpu, OffDiagonal, testing::Values("host"), backend_name<testing::TestParamInfo<const char *>>);
INSTANTIATE_TEST_SUITE_P(Gpu, OffDiagonal, testing::Values("cuda_core", "cusparse"),
                         backend_name<testing::TestParamInfo<const char *>>);

} // namespace
