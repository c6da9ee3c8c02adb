#include "user_matrix.h"

#include <petscmat.h>

#include <limits>
#include <stdexcept>

#ifdef TCBOUND_HAVE_FILES
#include "compare/load.h"
#endif

namespace tcbound::bench {

#ifdef TCBOUND_HAVE_FILES
namespace {

PetscErrorCode CopyMatrix(Mat A, Matrix *a) {
  PetscInt           rows, columns;
  const PetscInt    *i, *j;
  const PetscScalar *values;
  PetscBool          done;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, nullptr, &columns));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &rows, &i, &j, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_SUP, "this matrix has no CSR");
  PetscCheck(i[rows] <= std::numeric_limits<std::int32_t>::max(), PETSC_COMM_SELF, PETSC_ERR_SUP,
             "%" PetscInt_FMT " entries are too many for the benchmark's 32-bit offsets", i[rows]);
  a->rows = rows;
  a->columns_count = columns;
  a->offsets.assign(i, i + rows + 1);
  a->columns.assign(j, j + i[rows]);
  PetscCall(MatSeqAIJGetArrayRead(A, &values));
  a->values.assign(values, values + i[rows]);
  PetscCall(MatSeqAIJRestoreArrayRead(A, &values));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &rows, &i, &j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Load(const std::string &file, Matrix *a) {
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(compare::LoadMatrix(PETSC_COMM_SELF, file, &A));
  PetscCall(CopyMatrix(A, a));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

Matrix load_user_matrix(const std::string &file) {
  Matrix a;
  if (Load(file, &a)) throw std::runtime_error("cannot use -mat " + file);
  a.name = file.substr(file.rfind('/') + 1);
  return a;
}
#else
Matrix load_user_matrix(const std::string &file) {
  throw std::runtime_error("cannot read -mat " + file + ": the readers were left out of this build (TCBOUND_EXAMPLES is OFF)");
}
#endif

} // namespace tcbound::bench
