static char help[] =
  "Solves -div(k grad u) = f on the unit cube, u = 0 on its faces, with 7 points on a DMDA and checks the residual. It is a "
  "plain\n"
  "PETSc program that knows nothing of tcbound:\n"
  "  poisson -n 160 -ksp_type cg -pc_type jacobi -dll_append libtcbound.so -dm_mat_type aijtcbound -dm_vec_type tcbound "
  "-log_view\n\n"
  "  -n N          points in each direction (64)\n"
  "  -variable     k varies from point to point (without, k = 1)\n\n";

#include <petscdmda.h>
#include <petscksp.h>

// Between points i and i + 1 of a direction; a smooth k that no two points share.
static PetscReal Coefficient(PetscBool variable, PetscReal x, PetscReal y, PetscReal z) {
  return variable ? 1.0 + 0.5 * PetscSinReal(7.0 * x + 11.0 * y + 13.0 * z) : 1.0;
}

static PetscErrorCode Assemble(DM da, PetscBool variable, Mat A) {
  DMDALocalInfo info;

  PetscFunctionBeginUser;
  PetscCall(DMDAGetLocalInfo(da, &info));
  const PetscReal h = 1.0 / (PetscReal)(info.mx + 1);
  for (PetscInt k = info.zs; k < info.zs + info.zm; k++) {
    for (PetscInt j = info.ys; j < info.ys + info.ym; j++) {
      for (PetscInt i = info.xs; i < info.xs + info.xm; i++) {
        MatStencil  row{}, columns[7] = {};
        PetscScalar values[7], diagonal = 0.0;
        PetscInt    n = 0;

        row.i = i;
        row.j = j;
        row.k = k;
        for (int face = 0; face < 6; face++) {
          const PetscInt  step = face % 2 ? 1 : -1, direction = face / 2;
          MatStencil      to = row;
          const PetscReal half = 0.5 * (PetscReal)step;
          PetscReal       at[3] = {(PetscReal)(i + 1), (PetscReal)(j + 1), (PetscReal)(k + 1)};

          (direction == 0 ? to.i : direction == 1 ? to.j : to.k) += step;
          at[direction] += half;
          const PetscScalar value = Coefficient(variable, at[0] * h, at[1] * h, at[2] * h);
          diagonal += value;
          if (to.i < 0 || to.i >= info.mx || to.j < 0 || to.j >= info.my || to.k < 0 || to.k >= info.mz) continue;
          columns[n] = to;
          values[n++] = -value;
        }
        columns[n] = row;
        values[n++] = diagonal;
        PetscCall(MatSetValuesStencil(A, 1, &row, n, columns, values, INSERT_VALUES));
      }
    }
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv) {
  DM                 da;
  Mat                A;
  Vec                x, b, r;
  KSP                ksp;
  KSPConvergedReason reason;
  PetscInt           n = 64, iterations;
  PetscReal          norm, residual;
  PetscBool          variable = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-variable", &variable, NULL));
  PetscCall(DMDACreate3d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, n, n, n,
                         PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, NULL, &da));
  PetscCall(DMSetFromOptions(da));
  PetscCall(DMSetUp(da));
  PetscCall(DMCreateMatrix(da, &A));
  PetscCall(PetscObjectSetName((PetscObject)A, "A"));
  PetscCall(Assemble(da, variable, A));
  PetscCall(DMCreateGlobalVector(da, &x));
  PetscCall(VecDuplicate(x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecSet(b, 1.0 / (PetscReal)((n + 1) * (n + 1))));

  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(KSPGetIterationNumber(ksp, &iterations));
  PetscCall(MatResidual(A, b, x, r));
  PetscCall(VecNorm(r, NORM_2, &residual));
  PetscCall(VecNorm(b, NORM_2, &norm));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                        "%" PetscInt_FMT "^3 points: %" PetscInt_FMT " iterations (%s), |b - A x| / |b| = %.2g\n", n,
                        iterations, KSPConvergedReasons[reason], (double)(residual / norm)));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&r));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&A));
  PetscCall(DMDestroy(&da));
  PetscCall(PetscFinalize());
  return reason > 0 ? 0 : 1;
}
