#include "reference.h"

#include <petscksp.h>

#include <cfloat>
#include <cmath>
#include <limits>

namespace compare {

namespace {

// Applies f to every stored value of an AIJ matrix.
template <typename F> PetscErrorCode EachValue(Mat A, F f) {
  PetscBool mpi;
  Mat       blocks[2] = {A, nullptr};

  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATMPIAIJ, &mpi));
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], nullptr));
  for (Mat block : blocks) {
    MatInfo      info;
    PetscScalar *values;
    if (!block) continue;
    PetscCall(MatGetInfo(block, MAT_LOCAL, &info));
    PetscCall(MatSeqAIJGetArray(block, &values));
    for (PetscInt k = 0; k < (PetscInt)info.nz_used; k++) values[k] = f(values[k]);
    PetscCall(MatSeqAIJRestoreArray(block, &values));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Multiply(Mat A, bool transpose, Vec x, Vec y) {
  PetscFunctionBeginUser;
  if (transpose)
    PetscCall(MatMultTranspose(A, x, y));
  else
    PetscCall(MatMult(A, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// y and the bound; `work` has A's pattern and the values |a_ij| when absolute, else 1.
PetscErrorCode FillProduct(Mat A, Mat work, bool transpose, bool absolute, Product *p) {
  Vec positive, length;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(p->x, &positive));
  if (absolute) {
    PetscCall(Multiply(A, transpose, p->x, p->y));
    PetscCall(VecCopy(p->x, positive));
    PetscCall(VecAbs(positive));
    PetscCall(Multiply(work, transpose, positive, p->bound));
  } else {
    PetscCall(VecDuplicate(p->y, &length));
    PetscCall(VecSet(positive, 1.0));
    PetscCall(Multiply(work, transpose, positive, length));
    PetscCall(VecShift(length, 2.0));
    PetscCall(VecScale(length, 2.0 * PETSC_MACHINE_EPSILON));
    PetscCall(VecPointwiseMult(p->bound, p->bound, length));
    PetscCall(VecDestroy(&length));
  }
  PetscCall(VecDestroy(&positive));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CreateProducts(Reference *r) {
  PetscRandom random;
  Mat         work;

  PetscFunctionBeginUser;
  PetscCall(PetscRandomCreate(PetscObjectComm((PetscObject)r->A), &random));
  PetscCall(PetscRandomSetType(random, PETSCRAND48));
  PetscCall(PetscRandomSetInterval(random, -1.0, 1.0));
  PetscCall(MatCreateVecs(r->A, &r->forward.x, &r->forward.y));
  PetscCall(MatCreateVecs(r->A, &r->transposed.y, &r->transposed.x));
  PetscCall(VecDuplicate(r->forward.y, &r->forward.bound));
  PetscCall(VecDuplicate(r->transposed.y, &r->transposed.bound));
  PetscCall(VecSetRandom(r->forward.x, random));
  PetscCall(VecSetRandom(r->transposed.x, random));
  if (r->solution) {
    PetscCall(VecSetRandom(r->solution, random));
    PetscCall(MatMult(r->A, r->solution, r->rhs));
  }
  PetscCall(PetscRandomDestroy(&random));

  PetscCall(MatDuplicate(r->A, MAT_COPY_VALUES, &work));
  PetscCall(EachValue(work, [](PetscScalar v) { return PetscAbsScalar(v); }));
  PetscCall(FillProduct(r->A, work, false, true, &r->forward));
  PetscCall(FillProduct(r->A, work, true, true, &r->transposed));
  PetscCall(EachValue(work, [](PetscScalar) { return 1.0; }));
  PetscCall(FillProduct(r->A, work, false, false, &r->forward));
  PetscCall(FillProduct(r->A, work, true, false, &r->transposed));
  PetscCall(MatDestroy(&work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// ILU inside bjacobi stops at a zero on the diagonal; jacobi takes 1 for it.
PetscErrorCode HasWholeDiagonal(Mat A, bool *whole) {
  Vec       diagonal;
  PetscReal least;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, nullptr, &diagonal));
  PetscCall(MatGetDiagonal(A, diagonal));
  PetscCall(VecAbs(diagonal));
  PetscCall(VecMin(diagonal, nullptr, &least));
  PetscCall(VecDestroy(&diagonal));
  *whole = least > 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ChooseSolver(const Options &o, Reference *r) {
  PetscBool symmetric = PETSC_TRUE;
  PetscReal norm;
  bool      whole = true;

  PetscFunctionBeginUser;
  if (o.problem == Problem::none) {
    PetscCall(MatNorm(r->A, NORM_INFINITY, &norm));
    PetscCall(MatIsSymmetric(r->A, std::isfinite(norm) ? 1e-12 * norm : 0.0, &symmetric));
    // MATMPIAIJ's answer for its off-diagonal blocks is each rank's own (PETSc 3.26); the ranks must choose the same solver.
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &symmetric, 1, MPI_C_BOOL, MPI_LAND, PetscObjectComm((PetscObject)r->A)));
    PetscCall(HasWholeDiagonal(r->A, &whole));
    r->pc = symmetric || !whole ? PCJACOBI : PCBJACOBI;
  } else {
    symmetric = o.problem == Problem::convection ? PETSC_FALSE : PETSC_TRUE;
    r->pc = PCJACOBI;
  }
  r->ksp = symmetric ? KSPCG : KSPGMRES;
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

PetscErrorCode CreateReference(const Options &o, Mat A, Reference *r) {
  const MPI_Comm comm = PetscObjectComm((PetscObject)A);
  MatInfo        info;

  PetscFunctionBeginUser;
  r->A = A;
  PetscCall(MatGetSize(A, &r->rows, &r->columns));
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
  r->nonzeros = (PetscInt64)info.nz_used;
  if (!o.spmv_only) {
    PetscCheck(r->rows == r->columns, comm, PETSC_ERR_USER_INPUT,
               "%s is %" PetscInt_FMT " by %" PetscInt_FMT
               ": a solver needs a square matrix; -spmv_only compares products of any",
               o.mat.c_str(), r->rows, r->columns);
    PetscCall(MatCreateVecs(A, &r->solution, &r->rhs));
    PetscCall(ChooseSolver(o, r));
  }
  PetscCall(CreateProducts(r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode DestroyReference(Reference *r) {
  PetscFunctionBeginUser;
  for (Product *p : {&r->forward, &r->transposed}) {
    PetscCall(VecDestroy(&p->x));
    PetscCall(VecDestroy(&p->y));
    PetscCall(VecDestroy(&p->bound));
  }
  PetscCall(VecDestroy(&r->solution));
  PetscCall(VecDestroy(&r->rhs));
  PetscCall(MatDestroy(&r->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CompareProduct(const Product &product, Mat C, bool transpose, PetscReal *ratio, bool *ok) {
  Vec                x, y;
  PetscInt           n;
  const PetscScalar *mine, *expected, *bound;
  PetscReal          worst = 0.0;

  PetscFunctionBeginUser;
  if (transpose)
    PetscCall(MatCreateVecs(C, &y, &x));
  else
    PetscCall(MatCreateVecs(C, &x, &y));
  PetscCall(VecCopy(product.x, x));
  PetscCall(VecSet(y, std::numeric_limits<PetscReal>::quiet_NaN())); // a row that is not written shows
  PetscCall(Multiply(C, transpose, x, y));
  PetscCall(VecGetLocalSize(y, &n));
  PetscCall(VecGetArrayRead(y, &mine));
  PetscCall(VecGetArrayRead(product.y, &expected));
  PetscCall(VecGetArrayRead(product.bound, &bound));
  for (PetscInt i = 0; i < n; i++) {
    const bool same = mine[i] == expected[i] || (std::isnan(mine[i]) && std::isnan(expected[i]));
    // Products may underflow one by one: a least bound well below any number that matters.
    if (!same) {
      const PetscReal r = PetscAbsReal(mine[i] - expected[i]) / (bound[i] + DBL_MIN);
      worst = std::isfinite(r) ? PetscMax(worst, r) : std::numeric_limits<PetscReal>::infinity();
    }
    if (std::isinf(worst)) break;
  }
  PetscCall(VecRestoreArrayRead(y, &mine));
  PetscCall(VecRestoreArrayRead(product.y, &expected));
  PetscCall(VecRestoreArrayRead(product.bound, &bound));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &worst, 1, MPIU_REAL, MPIU_MAX, PetscObjectComm((PetscObject)C)));
  *ratio = worst;
  *ok = worst <= 1.0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace compare
