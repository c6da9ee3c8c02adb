// Which format -mat_tcbound_format auto takes on a device for matrices that are told apart by samples only.
#include "mat/matrices.h"

namespace {

using Choice = OnBackend;

// Each row's columns are spread over x, in no order that the rows share.
Case spread(const char *name, PetscInt rows, PetscInt columns, PetscInt length) {
  Case c;
  c.name = name;
  c.rows = rows;
  c.columns = columns;
  for (PetscInt i = 0; i < rows; i++)
    for (PetscInt k = 0; k < length; k++) { // one in each stretch of columns
      const PetscInt from = k * columns / length, to = (k + 1) * columns / length;
      c.entries.push_back({i, from + random_index(3, i * length + k, to - from), random_number(1, i * length + k)});
    }
  return c;
}

std::string view_of(Mat A) {
  return text_of([&](PetscViewer viewer) {
    OK(PetscViewerPushFormat(viewer, PETSC_VIEWER_ASCII_INFO_DETAIL));
    OK(MatView(A, viewer));
    OK(PetscViewerPopFormat(viewer));
  });
}

void expect_kernel(const Case &c, const std::string &kernel, bool taken) {
  const Pair  m(c);
  Handle<Vec> x, y;
  for (VecType type : {VECSTANDARD, VECCUDA}) expect_same_products(m.ours, m.aij, type);
  OK(MatCreateVecs(m.ours, &x, &y));
  OK(VecSet(x, 1.0));
  OK(MatMult(m.ours, x, y));
  const std::string text = view_of(m.ours);
  EXPECT_EQ(contains(text, kernel), taken) << c.name << ": " << text;
}

TEST_P(Choice, TilesWhereFewSumsAreNeeded) {
  expect_kernel(spread("wide", 300, 300000, 1500), "spmv/tiles/cuda_core", true);
  expect_kernel(spread("a sum an entry", 200000, 200000, 4), "spmv/tiles/cuda_core", false);
  expect_kernel(spread("x in a cache", 3000, 10000, 150), "spmv/tiles/cuda_core", false);
  expect_kernel(laplacian_case(300, 300), "spmv/tiles/cuda_core", false);
}

INSTANTIATE_TEST_SUITE_P(Gpu, Choice, testing::Values("auto"), backend_name<testing::TestParamInfo<const char *>>);

} // namespace
