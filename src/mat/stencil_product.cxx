// Products of stenciltcbound matrices: the kernel and its format, the exchange of layers, and the transposed matrix.
#include "lease.h"
#include "stenciltcbound.h"

#include <algorithm>
#include <functional>

#include <petscdevice.h>
#include <petsctime.h>

using tcbound::grid::Extents;
using tcbound::grid::Part;

static const char *const EventNames[TCBOUND_STENCIL_OPS] = {"MatMult", "MatMultAdd", "MatMultTranspose", "MatMultTrAdd",
                                                            "MatRelax"};

static PetscErrorCode GetHalo(Mat A) {
  Mat_StencilTCBound *t = StencilOf(A);

  PetscFunctionBegin;
  if (!t->halo) PetscCall(TCBoundStencilGridMakeHalo(t->grid, A->rmap, &t->halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Whether any rank has layers: the exchange is collective.
static bool AnyLayers(const TCBoundStencilGrid &grid) {
  for (int d = 0; d < 3; d++)
    if (grid.width > 0 && (grid.periodic[d] || grid.split[d].size() > 2)) return true;
  return false;
}

static PetscErrorCode Choose(Mat A) {
  Mat_StencilTCBound             *t = StencilOf(A);
  PetscLogDouble                  start, end;
  tcbound::Problem                problem;
  std::vector<tcbound::Candidate> candidates;

  PetscFunctionBegin;
  PetscCall(PetscTime(&start));
  problem.stencil = &t->stencil;
  PetscCall(TCBoundMatSettingsRank(t->settings, t->bound, problem, &candidates));
  t->kernel = candidates[0].kernel;
  t->executor = candidates[0].executor;
  PetscCall(TCBoundUsePetscStream(*t->executor));
  TCBoundCallCXX({
    t->format.reset(static_cast<tcbound::grid::GridFormat *>(t->kernel->build(*t->executor, problem).release()));
    t->ghosts = tcbound::Array<double>();
    if (t->grid.extents.layered())
      t->ghosts = tcbound::Array<double>(*t->executor, t->grid.extents.ghosted_cells() * t->grid.extents.dof);
    for (tcbound::Array<double> &staged : t->staged) staged = tcbound::Array<double>();
  });
  if (t->executor->space() == tcbound::MemorySpace::cuda)
    PetscCall(PetscLogCpuToGpu(static_cast<PetscLogDouble>(t->format->stored_bytes())));
  PetscCall(PetscTime(&end));
  t->setup_seconds = end - start;
  PetscCall(PetscInfo(A, "Built %s in %g s\n", t->kernel->name().c_str(), (double)t->setup_seconds));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Brings kernel and format up to date. With nothing changed it costs a few comparisons.
PetscErrorCode MatStencilTCBoundUpdate(Mat A) {
  Mat_StencilTCBound *t = StencilOf(A);
  PetscBool           bound = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundCompress(A));
#if PetscDefined(HAVE_DEVICE)
  bound = A->boundtocpu; // without devices it is always true, whatever was asked for
#endif
  if (t->format && bound == t->bound) {
    PetscCall(TCBoundUsePetscStream(*t->executor));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatStencilTCBoundDropFormat(A));
  t->bound = bound;
  PetscCall(Choose(A));
  if (AnyLayers(t->grid)) PetscCall(GetHalo(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatStencilTCBoundGetLayers(Mat A, const PetscScalar values[], PetscScalar ghosts[]) {
  Mat_StencilTCBound *t = StencilOf(A);
  const Extents      &e = t->grid.extents;

  PetscFunctionBegin;
  for (std::int64_t k = 0; k < e.n[2]; k++)
    for (std::int64_t j = 0; j < e.n[1]; j++)
      std::copy_n(values + (k * e.n[1] + j) * e.n[0] * e.dof, e.n[0] * e.dof, ghosts + TCBoundStencilGridLayered(e, 0, j, k));
  if (!AnyLayers(t->grid)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GetHalo(A));
  PetscCall(
    PetscSFBcastWithMemTypeBegin(t->halo, MPIU_SCALAR, PETSC_MEMTYPE_HOST, values, PETSC_MEMTYPE_HOST, ghosts, MPI_REPLACE));
  PetscCall(PetscSFBcastEnd(t->halo, MPIU_SCALAR, values, ghosts, MPI_REPLACE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetLogRow(Mat A, int op, Part part, TCBoundLogRow *row) {
  Mat_StencilTCBound *t = StencilOf(A);
  PetscBool           active;

  PetscFunctionBegin;
  *row = NULL;
  PetscCall(TCBoundLogActive(&active));
  if (!active) PetscFunctionReturn(PETSC_SUCCESS);
  TCBoundLogRow &kept = t->rows[op][static_cast<int>(part)];
  if (!kept) {
    const char *name = ((PetscObject)A)->name ? ((PetscObject)A)->name : ((PetscObject)A)->prefix;
    std::string label = !t->label.empty() ? t->label : name ? name : "";
    if (part != Part::all) label += std::string(label.empty() ? "" : " ") + (part == Part::interior ? "interior" : "shell");
    PetscCall(TCBoundLogGetRow(EventNames[op], label.c_str(), *t->kernel, &kept));
  }
  *row = kept;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(Mat A, TCBoundMatOp op, const tcbound::Product &product, Part part) {
  Mat_StencilTCBound  *t = StencilOf(A);
  const tcbound::Work &work = t->format->work(product.beta != 0.0, part);
  TCBoundLogRow        row;

  PetscFunctionBegin;
  if (work.bytes == 0) PetscFunctionReturn(PETSC_SUCCESS); // a part without cells
  PetscCall(GetLogRow(A, op, part, &row));
  if (TCBoundLogWantsCount(row))
    PetscCall(TCBoundLogCountProduct(row, *t->executor, work, product, A->rmap->n, [&](const tcbound::Product &repeated) {
      t->format->multiply(*t->executor, repeated, t->ghosts.data(), part);
    }));
  PetscCall(
    TCBoundLogRun(row, *t->executor, work, [&] { t->format->multiply(*t->executor, product, t->ghosts.data(), part); }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Runs all parts of what reads x with its layers. These travel while the interior, which needs none, is computed.
static PetscErrorCode RunInParts(Mat A, const double *x, const std::function<PetscErrorCode(Part)> &run) {
  Mat_StencilTCBound *t = StencilOf(A);
  const PetscMemType  memory = t->executor->space() == tcbound::MemorySpace::cuda ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST;

  PetscFunctionBegin;
  if (!AnyLayers(t->grid)) {
    PetscCall(run(Part::all));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscSFBcastWithMemTypeBegin(t->halo, MPIU_SCALAR, memory, x, memory, t->ghosts.data(), MPI_REPLACE));
  PetscCall(run(Part::interior));
  PetscCall(PetscSFBcastEnd(t->halo, MPIU_SCALAR, x, t->ghosts.data(), MPI_REPLACE));
  PetscCall(run(Part::shell));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// z = A x + y; y is NULL for a plain product.
static PetscErrorCode Apply(Mat A, TCBoundMatOp op, Vec x, Vec y, Vec z) {
  Mat_StencilTCBound *t = StencilOf(A);
  TCBoundLease        lx, ly, lz;
  tcbound::Product    product;

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundUpdate(A));
  PetscCall(TCBoundLeaseBegin(*t->executor, &t->staged[0], x, TCBOUND_READ, &lx));
  if (y && y != z) PetscCall(TCBoundLeaseBegin(*t->executor, &t->staged[1], y, TCBOUND_READ, &ly));
  PetscCall(TCBoundLeaseBegin(*t->executor, &t->staged[2], z, y == z ? TCBOUND_UPDATE : TCBOUND_WRITE, &lz));
  product.beta = y ? 1.0 : 0.0;
  product.x = lx.data;
  product.y = y == z ? lz.data : ly.data;
  product.z = lz.data;
  PetscCall(RunInParts(A, lx.data, [&](Part part) { return Run(A, op, product, part); }));
  PetscCall(TCBoundLeaseEnd(*t->executor, &lz));
  if (ly.vec) PetscCall(TCBoundLeaseEnd(*t->executor, &ly));
  PetscCall(TCBoundLeaseEnd(*t->executor, &lx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunRelaxation(Mat A, const tcbound::grid::Relaxation &relaxation, Part part) {
  Mat_StencilTCBound *t = StencilOf(A);
  const tcbound::Work work = t->format->work_of_relaxation(relaxation, part);
  const auto          run = [&] { t->format->relax(*t->executor, relaxation, t->ghosts.data(), part); };
  TCBoundLogRow       row;

  PetscFunctionBegin;
  if (work.bytes == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GetLogRow(A, TCBOUND_STENCIL_RELAX, part, &row));
  if (TCBoundLogWantsCount(row)) PetscCall(TCBoundLogCount(row, *t->executor, work, run));
  PetscCall(TCBoundLogRun(row, *t->executor, work, run));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatStencilTCBoundMostSweeps(Mat A, PetscInt *sweeps) {
  Mat_StencilTCBound *t = StencilOf(A);

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundUpdate(A));
  *sweeps = t->settings.steps == 1 ? 1 : t->format->most_sweeps();
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatStencilTCBoundSweep(Mat A, PetscInt sweeps, const PetscReal factors[], Vec inverse, Vec b, Vec x, Vec z) {
  Mat_StencilTCBound       *t = StencilOf(A);
  TCBoundLease              lx, lb, lz, li;
  tcbound::grid::Relaxation relaxation;

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundUpdate(A));
  if (x) PetscCall(TCBoundLeaseBegin(*t->executor, &t->staged[0], x, TCBOUND_READ, &lx));
  PetscCall(TCBoundLeaseBegin(*t->executor, &t->staged[1], b, TCBOUND_READ, &lb));
  PetscCall(TCBoundLeaseBegin(*t->executor, &t->staged[2], z, TCBOUND_WRITE, &lz));
  if (inverse) PetscCall(TCBoundLeaseBegin(*t->executor, &t->staged[3], inverse, TCBOUND_READ, &li));
  relaxation.sweeps = static_cast<int>(sweeps);
  std::copy_n(factors, sweeps, relaxation.factors);
  relaxation.inverse = li.data;
  relaxation.x = lx.data;
  relaxation.b = lb.data;
  relaxation.z = lz.data;
  PetscCall(RunInParts(A, lx.data, [&](Part part) { return RunRelaxation(A, relaxation, part); }));
  if (li.vec) PetscCall(TCBoundLeaseEnd(*t->executor, &li));
  PetscCall(TCBoundLeaseEnd(*t->executor, &lz));
  PetscCall(TCBoundLeaseEnd(*t->executor, &lb));
  if (x) PetscCall(TCBoundLeaseEnd(*t->executor, &lx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The entry of the transposed matrix in row (p, i) for (p + o, j) is that of the matrix in row (p + o, j) for (p, i): the slot at -o,
// seen from p + o. So each slot's coefficients move by its own offset, which takes those of the layers too.
static PetscErrorCode FillTranspose(Mat A, Mat B) {
  Mat_StencilTCBound              *a = StencilOf(A), *b = StencilOf(B);
  const TCBoundStencilGrid        &g = a->grid;
  const Extents                   &e = g.extents;
  std::vector<std::vector<double>> stored;
  std::vector<double>              own, around;
  tcbound::grid::Stencil           shape;

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundCompress(A));
  PetscCall(MatStencilTCBoundExpand(B));
  TCBoundCallCXX({
    stored = a->stencil.expand();
    own.resize(static_cast<std::size_t>(e.rows()));
    around.resize(static_cast<std::size_t>(e.ghosted_cells() * e.dof));
  });
  shape.extents = e;
  for (std::size_t s = 0; s < g.slots.size(); s++) {
    tcbound::grid::Slot slot = g.slots[s];
    PetscInt            back[3];

    // Other ranks may have the slot, so all exchange it.
    if (a->active.empty() || a->active[s] < 0)
      std::fill(own.begin(), own.end(), 0.0);
    else
      own = stored[static_cast<std::size_t>(a->active[s])];
    PetscCall(MatStencilTCBoundGetLayers(A, own.data(), around.data()));
    for (int d = 0; d < 3; d++) {
      back[d] = -slot.offset[d];
      slot.offset[d] = -slot.offset[d];
    }
    std::int64_t cell = 0;
    for (std::int64_t k = 0; k < e.n[2]; k++)
      for (std::int64_t j = 0; j < e.n[1]; j++)
        for (std::int64_t i = 0; i < e.n[0]; i++, cell++) {
          if (!shape.exists(slot, i, j, k)) continue;
          const std::int64_t from = TCBoundStencilGridLayered(e, i + back[0], j + back[1], k + back[2]);
          for (PetscInt c = 0; c < g.dof; c++) {
            const int to = TCBoundStencilGridSlot(g, back, c);
            b->arrays[static_cast<std::size_t>(to)][static_cast<std::size_t>(cell * e.dof + slot.component)] =
              around[static_cast<std::size_t>(from + c)];
          }
        }
  }
  PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTranspose_StencilTCBound(Mat A, MatReuse reuse, Mat *B) {
  Mat result = NULL;

  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX)
    result = *B;
  else
    PetscCall(MatStencilTCBoundCreateLike(A, &result));
  PetscCall(FillTranspose(A, result));
  if (reuse == MAT_INPLACE_MATRIX)
    PetscCall(MatHeaderMerge(A, &result));
  else
    *B = result;
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Transposed products are products with the transposed matrix, made when the first one is asked for.
PetscErrorCode MatStencilTCBoundGetTranspose(Mat A, Mat *transpose) {
  Mat_StencilTCBound *t = StencilOf(A);
  const char         *name = ((PetscObject)A)->name ? ((PetscObject)A)->name : ((PetscObject)A)->prefix;

  PetscObjectState state;

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundUpdate(A)); // which drops an old one where values were set;
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  if (t->transpose_state != state) PetscCall(MatDestroy(&t->transpose)); // the state changes on all ranks at once
  if (!t->transpose) {
    t->transpose_state = state;
    PetscCall(MatTranspose_StencilTCBound(A, MAT_INITIAL_MATRIX, &t->transpose));
    StencilOf(t->transpose)->label = !t->label.empty() ? t->label : name ? name : "";
#if PetscDefined(HAVE_DEVICE)
    t->transpose->boundtocpu = A->boundtocpu;
#endif
  }
  *transpose = t->transpose;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMult_StencilTCBound(Mat A, Vec x, Vec y) {
  PetscFunctionBegin;
  PetscCall(Apply(A, TCBOUND_MULT, x, NULL, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultAdd_StencilTCBound(Mat A, Vec x, Vec y, Vec z) {
  PetscFunctionBegin;
  PetscCall(Apply(A, TCBOUND_MULT_ADD, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultTranspose_StencilTCBound(Mat A, Vec x, Vec y) {
  Mat transpose = NULL;

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundGetTranspose(A, &transpose));
  PetscCall(Apply(transpose, TCBOUND_MULT_TRANSPOSE, x, NULL, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultTransposeAdd_StencilTCBound(Mat A, Vec x, Vec y, Vec z) {
  Mat transpose = NULL;

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundGetTranspose(A, &transpose));
  PetscCall(Apply(transpose, TCBOUND_MULT_TRANSPOSE_ADD, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGetDiagonal_StencilTCBound(Mat A, Vec d) {
  Mat_StencilTCBound *t = StencilOf(A);
  TCBoundLease        lease;

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundUpdate(A));
  PetscCall(TCBoundLeaseBegin(*t->executor, &t->staged[2], d, TCBOUND_WRITE, &lease));
  TCBoundCallCXX(t->format->diagonal(*t->executor, lease.data));
  PetscCall(TCBoundLeaseEnd(*t->executor, &lease));
  PetscFunctionReturn(PETSC_SUCCESS);
}
