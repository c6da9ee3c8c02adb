// The preconditioner tcboundsweep: damped Jacobi sweeps with a right-hand side, several in a pass where the matrix allows that.
#include "tcboundsweep.h"

#include <algorithm>
#include <cmath>

#include "../vec/vectcbound.h"

PetscErrorCode PCTCBoundSweepIsFused(PC pc, Mat A, TCBoundStencilSweeps **sweeps, const char **why_not) {
  const PC_TCBoundSweep *s = SweepOf(pc);
  PetscBool              stencil;
  PetscObjectId          id;
  PetscObjectState       state;

  PetscFunctionBegin;
  *sweeps = NULL;
  *why_not = "the matrix is no " MATSTENCILTCBOUND;
  PetscCall(MatIsStencilTCBound(A, &stencil));
  if (!stencil) PetscFunctionReturn(PETSC_SUCCESS);
  *why_not = pc->reusepreconditioner ? "the preconditioner is that of earlier values (PCSetReusePreconditioner())"
                                     : "the preconditioner is not set up for the present values";
  PetscCall(PetscObjectGetId((PetscObject)pc->pmat, &id));
  PetscCall(PetscObjectStateGet((PetscObject)pc->pmat, &state));
  if (id != s->id || state != s->state) PetscFunctionReturn(PETSC_SUCCESS); // fused sweeps would divide by the new diagonal
  PetscCall(MatStencilTCBoundGetSweeps(A, sweeps));
  *why_not = (*sweeps)->why_not_relaxing.empty() ? NULL : (*sweeps)->why_not_relaxing.c_str();
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The kernel for two sweeps wants the inverse of a diagonal that varies.
PetscErrorCode PCTCBoundSweepGetMost(PC pc, Mat A, PetscInt *most) {
  PetscFunctionBegin;
  *most = 1;
  if (!SweepOf(pc)->constant) PetscCall(MatStencilTCBoundMostSweeps(A, most));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// An error on all ranks that names the first row without a diagonal entry to divide by; else its inverse.
static PetscErrorCode InvertDiagonal(PC pc) {
  PC_TCBoundSweep *s = SweepOf(pc);
  PetscScalar     *d;
  PetscInt         begin, n, bad = PETSC_INT_MAX;
  PetscReal        bounds[2] = {PETSC_MAX_REAL, PETSC_MAX_REAL}; // the least, and of the negative ones

  PetscFunctionBegin;
  PetscCall(MatGetDiagonal(pc->pmat, s->inverse));
  PetscCall(VecGetOwnershipRange(s->inverse, &begin, NULL));
  PetscCall(VecGetLocalSize(s->inverse, &n));
  PetscCall(VecGetArray(s->inverse, &d));
  for (PetscInt i = 0; i < n; i++) {
    const PetscScalar entry = d[i];
    d[i] = 1.0 / entry;
    if ((entry == 0.0 || !std::isfinite(entry) || !std::isfinite(d[i])) && bad == PETSC_INT_MAX) bad = begin + i;
    bounds[0] = std::min(bounds[0], entry);
    bounds[1] = std::min(bounds[1], -entry);
  }
  PetscCall(VecRestoreArray(s->inverse, &d));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPIU_INT, MPI_MIN, PetscObjectComm((PetscObject)pc)));
  PetscCheck(bad == PETSC_INT_MAX, PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_WRONGSTATE,
             "Row %" PetscInt_FMT
             " of the matrix has no diagonal entry that a %s preconditioner can divide by: it is missing, 0 or not "
             "finite",
             bad, PCTCBOUNDSWEEP);
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, bounds, 2, MPIU_REAL, MPI_MIN, PetscObjectComm((PetscObject)pc)));
  s->constant = bounds[0] == -bounds[1];
  s->diagonal = bounds[0];
  PetscFunctionReturn(PETSC_SUCCESS);
}

// As the matrix makes them, where it can with our operations.
static PetscErrorCode CreateVector(Mat A, Vec *v) {
  PetscBool ours, known;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, v, NULL));
  PetscCall(VecIsTCBound(*v, &ours));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)*v, &known, VECSEQ, VECMPI, VECSEQCUDA, VECMPICUDA, ""));
  if (known && !ours) PetscCall(VecTCBoundAdopt(*v, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCSetUp_TCBoundSweep(PC pc) {
  PC_TCBoundSweep      *s = SweepOf(pc);
  TCBoundStencilSweeps *sweeps;
  const char           *why_not;
  PetscInt              most = 1;

  PetscFunctionBegin;
  PetscCheck(pc->pmat->rmap->n == pc->pmat->cmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ,
             "Sweeps need a square matrix, not one of %" PetscInt_FMT " by %" PetscInt_FMT " rows and columns here",
             pc->pmat->rmap->n, pc->pmat->cmap->n);
  if (!s->inverse) PetscCall(CreateVector(pc->pmat, &s->inverse));
  PetscCall(InvertDiagonal(pc));
  PetscCall(PCTCBoundSweepFindFactors(pc));
  PetscCall(PetscObjectGetId((PetscObject)pc->pmat, &s->id));
  PetscCall(PetscObjectStateGet((PetscObject)pc->pmat, &s->state));
  PetscCall(PCTCBoundSweepIsFused(pc, pc->pmat, &sweeps, &why_not));
  if (why_not && sweeps) PetscCall(PCTCBoundSweepGetMost(pc, pc->pmat, &most));
  PetscCall(PetscInfo(pc, "Sweeps %s%s\n",
                      !why_not   ? "are fused by "
                      : most > 1 ? "take a pass for two: "
                      : sweeps   ? "take a pass each: "
                                 : "take several passes each: ",
                      why_not ? why_not : sweeps->sweeper->name().c_str()));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// x = x + factor D^-1 (b - A x), sweep by sweep; A^T if transpose. Besides the product one operation of vectors that have it, and one
// more where the diagonal varies.
static PetscErrorCode SweepOneByOne(PC pc, bool transpose, PetscInt its, bool from_zero, Vec b, Vec x) {
  PC_TCBoundSweep *s = SweepOf(pc);
  const auto       multiply = transpose ? MatMultTranspose : MatMult;
  const PetscInt   n = static_cast<PetscInt>(s->factors.size());
  Vec              scaled = b;

  PetscFunctionBegin;
  if (!s->work) PetscCall(VecDuplicate(s->inverse, &s->work));
  if (!s->constant) {
    if (!s->scaled) PetscCall(VecDuplicate(s->inverse, &s->scaled));
    scaled = s->scaled;
    PetscCall(VecPointwiseMult(scaled, b, s->inverse));
  }
  for (PetscInt k = 0; k < its * n; k++) {
    const PetscReal factor = s->factors[static_cast<std::size_t>(k % n)] / (s->constant ? s->diagonal : 1.0);
    if (k == 0 && from_zero) {
      PetscCall(VecAXPBY(x, factor, 0.0, scaled));
      continue;
    }
    PetscCall((*multiply)(pc->pmat, x, s->work));
    if (!s->constant) PetscCall(VecPointwiseMult(s->work, s->work, s->inverse));
    PetscCall(VecAXPBYPCZ(x, factor, -factor, 1.0, scaled, s->work));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The same by a stencil's kernels: products with their updates in one pass over memory, for two sweeps where there is a kernel. Passes go to
// and fro between x and another vector, so that the last one ends in x.
static PetscErrorCode SweepByStencil(PC pc, Mat A, PetscInt its, bool from_zero, Vec b, Vec x) {
  PC_TCBoundSweep       *s = SweepOf(pc);
  const PetscInt         sweeps = its * static_cast<PetscInt>(s->factors.size());
  const Vec              inverse = s->constant ? NULL : s->inverse;
  std::vector<PetscReal> factors;
  PetscInt               most;

  PetscFunctionBegin;
  if (!s->work) PetscCall(VecDuplicate(s->inverse, &s->work));
  PetscCall(PCTCBoundSweepGetMost(pc, A, &most));
  for (PetscInt i = 0; i < its; i++) TCBoundCallCXX(factors.insert(factors.end(), s->factors.begin(), s->factors.end()));
  if (!inverse)
    for (PetscReal &factor : factors) factor /= s->diagonal;
  const PetscInt passes = (sweeps + most - 1) / most;
  const Vec      places[2] = {x, s->work};
  if (!from_zero && passes % 2) PetscCall(VecCopy(x, s->work));
  for (PetscInt k = 0, pass = passes; k < sweeps; k += most, pass--) {
    const PetscInt   count = PetscMin(most, sweeps - k);
    const PetscReal *factor = factors.data() + k;
    const bool       starts = k == 0 && from_zero;
    const Vec        from = places[pass % 2], to = places[(pass - 1) % 2];
    if (!starts || count > 1) {
      PetscCall(MatStencilTCBoundSweep(A, count, factor, inverse, b, starts ? NULL : from, to));
    } else if (inverse) {
      PetscCall(VecPointwiseMult(to, b, inverse));
      PetscCall(VecScale(to, *factor));
    } else {
      PetscCall(VecAXPBY(to, *factor, 0.0, b));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ApplySweeps(PC pc, bool transpose, PetscInt its, bool from_zero, Vec b, Vec x) {
  PC_TCBoundSweep       *s = SweepOf(pc);
  Mat                    A = pc->pmat;
  TCBoundStencilSweeps  *sweeps;
  const char            *why_not;
  PetscBool              known, symmetric, stencil;
  std::vector<PetscReal> factors;

  PetscFunctionBegin;
  if (transpose) {
    PetscCall(MatIsSymmetricKnown(A, &known, &symmetric));
    if (known && symmetric) transpose = false;
  }
  PetscCall(MatIsStencilTCBound(A, &stencil));
  if (transpose && stencil) PetscCall(MatStencilTCBoundGetTranspose(A, &A));
  PetscCall(PCTCBoundSweepIsFused(pc, A, &sweeps, &why_not));
  if (why_not && sweeps) {
    PetscCall(SweepByStencil(pc, A, its, from_zero, b, x));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (why_not) {
    PetscCall(SweepOneByOne(pc, transpose, its, from_zero, b, x));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt i = 0; i < its; i++) TCBoundCallCXX(factors.insert(factors.end(), s->factors.begin(), s->factors.end()));
  PetscCall(MatStencilTCBoundRelax(A, static_cast<PetscInt>(factors.size()), factors.data(), from_zero, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCApply_TCBoundSweep(PC pc, Vec b, Vec x) {
  PetscFunctionBegin;
  PetscCall(ApplySweeps(pc, false, 1, true, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The preconditioner is p(D^-1 A) D^-1 with a polynomial p; its transpose p(D^-1 A^T) D^-1.
static PetscErrorCode PCApplyTranspose_TCBoundSweep(PC pc, Vec b, Vec x) {
  PetscFunctionBegin;
  PetscCall(ApplySweeps(pc, true, 1, true, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// x = x + B (b - A x) with another matrix A than the one that preconditions. r: scratch.
static PetscErrorCode IterateWithOperator(PC pc, PetscInt its, bool from_zero, Vec b, Vec x, Vec r) {
  Vec correction;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(x, &correction));
  if (from_zero) PetscCall(VecSet(x, 0.0));
  for (PetscInt i = 0; i < its; i++) {
    PetscCall(MatMult(pc->mat, x, r));
    PetscCall(VecAYPX(r, -1.0, b));
    PetscCall(ApplySweeps(pc, false, 1, true, r, correction));
    PetscCall(VecAXPY(x, 1.0, correction));
  }
  PetscCall(VecDestroy(&correction));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Without tests of convergence, as PCSOR has it.
static PetscErrorCode PCApplyRichardson_TCBoundSweep(PC pc, Vec b, Vec x, Vec r, PetscReal, PetscReal, PetscReal, PetscInt its,
                                                     PetscBool guesszero, PetscInt *outits,
                                                     PCRichardsonConvergedReason *reason) {
  const PetscInt at_once = 1024; // iterations whose sweeps are planned together

  PetscFunctionBegin;
  if (pc->mat != pc->pmat)
    PetscCall(IterateWithOperator(pc, its, guesszero, b, x, r));
  else
    for (PetscInt i = 0; i < its; i += at_once)
      PetscCall(ApplySweeps(pc, false, PetscMin(at_once, its - i), guesszero && i == 0, b, x));
  *outits = its;
  *reason = PCRICHARDSON_CONVERGED_ITS;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCReset_TCBoundSweep(PC pc) {
  PC_TCBoundSweep *s = SweepOf(pc);

  PetscFunctionBegin;
  PetscCall(VecDestroy(&s->inverse));
  PetscCall(VecDestroy(&s->work));
  PetscCall(VecDestroy(&s->scaled));
  s->factors.clear();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCDestroy_TCBoundSweep(PC pc) {
  PetscFunctionBegin;
  PetscCall(PCReset_TCBoundSweep(pc));
  PetscCall(PCTCBoundSweepCompose(pc, PETSC_FALSE));
  delete SweepOf(pc);
  pc->data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   PCTCBOUNDSWEEP - "tcboundsweep" - Damped Jacobi sweeps or Chebyshev smoothing, fused in time where the matrix allows it

   Options Database Keys:
+  -pc_tcboundsweep_its <2>                     - sweeps in one application; the degree of Chebyshev's polynomial
.  -pc_tcboundsweep_type (jacobi|chebyshev)     - damping by a constant, or by the roots of Chebyshev's polynomial
.  -pc_tcboundsweep_omega <2/3>                 - the constant of jacobi
.  -pc_tcboundsweep_emin <0>, -pc_tcboundsweep_emax <0> - chebyshev's interval among the eigenvalues of D^-1 A; 0: of the estimate
.  -pc_tcboundsweep_esteig <0.1,1.1>            - that as multiples of the largest eigenvalue, estimated
-  -mat_tcbound_steps (0|1|2|...)               - of the matrix: sweeps that a pass over memory fuses (0: by the model)

   Level: intermediate

   Notes:
   A sweep is $x = x + f D^{-1} (b - A x)$ with the diagonal $D$ of the matrix that preconditions. `jacobi` takes f = omega in each.
   `chebyshev` takes the inverses of the roots of Chebyshev's polynomial on the interval, which after all sweeps gives the polynomial of
   `KSPCHEBYSHEV`, in an order in which no sum of few of them grows (Leja's).

   With a `MATSTENCILTCBOUND` of one component and constant coefficients, on a grid that is not periodic, a pass over memory does several
   sweeps, and on several ranks there is one exchange of values for all of these; in two and three dimensions a ring around the grid, as
   wide as the stencil's radius, may have rows of one multiple of the identity (Dirichlet's conditions). The host takes stencils of up to
   49 points, CUDA cores those within 5 or 9 points in two dimensions and 7 or 27 in three. With any other `MATSTENCILTCBOUND` each sweep is
   one pass over memory, and on one rank of a GPU so are two sweeps where 7 points in three dimensions vary. Other matrices take a product
   and vector operations for each sweep, and so does a preconditioner that is kept while the matrix changes
   (`PCSetReusePreconditioner()`): its sweeps are with the new matrix, its diagonal and factors those of the old one. `-ksp_view` and
   `-info` say which it is, and why.

   With `KSPRICHARDSON`, whose matrix preconditions itself, all iterations are done at once and without tests of convergence, as by
   `PCSOR`: as smoother by -mg_levels_ksp_type richardson -mg_levels_ksp_max_it 2 -mg_levels_pc_type tcboundsweep. With a monitor, a
   null space attached to the matrix, a scale other than 1, a test of convergence of one's own, or in transposed solves
   `KSPRICHARDSON` applies the preconditioner iteration by iteration.

   For a symmetric matrix the preconditioner is symmetric. For a positive definite one, it is so too, as `KSPCG` needs, with an odd number
   of sweeps of jacobi or if omega is less than 2 over the largest eigenvalue of D^-1 A; with chebyshev if the interval reaches as far as
   that eigenvalue.

   The estimate comes from 10 iterations of GMRES (CG, if the matrix is known to be symmetric and positive definite) with `PCJACOBI` and
   random numbers on the right, as `KSPCHEBYSHEV`'s.

.seealso: `PCTCBoundSweepSetType()`, `PCTCBoundSweepSetIterations()`, `PCTCBoundSweepSetOmega()`, `PCTCBoundSweepSetEigenvalues()`,
          `MATSTENCILTCBOUND`, `MatTCBoundMultPowers()`, `KSPCHEBYSHEV`, `PCJACOBI`
M*/
static PetscErrorCode PCCreate_TCBoundSweep(PC pc) {
  PetscFunctionBegin;
  TCBoundCallCXX(pc->data = new PC_TCBoundSweep);
  pc->ops->setup = PCSetUp_TCBoundSweep;
  pc->ops->apply = PCApply_TCBoundSweep;
  pc->ops->applytranspose = PCApplyTranspose_TCBoundSweep;
  pc->ops->applyrichardson = PCApplyRichardson_TCBoundSweep;
  pc->ops->setfromoptions = PCSetFromOptions_TCBoundSweep;
  pc->ops->view = PCView_TCBoundSweep;
  pc->ops->reset = PCReset_TCBoundSweep;
  pc->ops->destroy = PCDestroy_TCBoundSweep;
  PetscCall(PCTCBoundSweepCompose(pc, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCTCBoundRegisterAll(void) {
  PetscFunctionBegin;
  PetscCall(PCRegister(PCTCBOUNDSWEEP, PCCreate_TCBoundSweep));
  PetscFunctionReturn(PETSC_SUCCESS);
}
