// Powers and relaxations of stenciltcbound matrices by fused steps.
#include "lease.h"
#include "stenciltcbound.h"

#include <functional>

#include <petscdevice.h>

static const char *const EventNames[2] = {"MatMultPowers", "MatRelax"};

// One call of the sweep, with its row of the log and PETSc's.
static PetscErrorCode Run(Mat A, int what, const tcbound::Work &work, const std::function<void(tcbound::Executor &)> &run) {
  Mat_StencilTCBound   *t = StencilOf(A);
  TCBoundStencilSweeps *s = t->sweeps.get();
  tcbound::Executor    &executor = *s->executor;
  PetscBool             active;

  PetscFunctionBegin;
  PetscCall(TCBoundLogActive(&active));
  if (active && !s->rows[what]) {
    const char *name = ((PetscObject)A)->name ? ((PetscObject)A)->name : ((PetscObject)A)->prefix;
    PetscCall(TCBoundLogGetNamedRow(EventNames[what],
                                    !t->label.empty() ? t->label.c_str()
                                    : name            ? name
                                                      : "",
                                    s->sweeper->name().c_str(), executor.space(), &s->rows[what]));
  }
  const TCBoundLogRow row = active ? s->rows[what] : NULL;
  if (TCBoundLogWantsCount(row)) PetscCall(TCBoundLogCount(row, executor, work, [&] { run(executor); }));
  PetscCall(TCBoundLogRun(row, executor, work, [&] { run(executor); }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Reserve(tcbound::Executor &executor, std::int64_t size, tcbound::Array<double> *array) {
  PetscFunctionBegin;
  if (array->size() != size) TCBoundCallCXX(*array = tcbound::Array<double>(executor, size));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Broadcast(PetscSF sf, const tcbound::Executor &executor, const double *from, double *to) {
  const PetscMemType memory = executor.space() == tcbound::MemorySpace::cuda ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST;

  PetscFunctionBegin;
  PetscCall(PetscSFBcastWithMemTypeBegin(sf, MPIU_SCALAR, memory, from, memory, to, MPI_REPLACE));
  PetscCall(PetscSFBcastEnd(sf, MPIU_SCALAR, from, to, MPI_REPLACE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// advance(in, out, first, count): `count` steps from step `first` on.
using Advance = std::function<PetscErrorCode(const double *, double *, PetscInt, PetscInt)>;

// The steps in parts, before each of which the layers of the rows are brought up to date. in: null for a start from 0, else it may be
// out.
static PetscErrorCode AdvanceWithExchanges(Mat A, PetscInt steps, const double *in, double *out, const Advance &advance) {
  Mat_StencilTCBound           *t = StencilOf(A);
  TCBoundStencilSweeps         *s = t->sweeps.get();
  const TCBoundStencilExchange &e = t->exchange;
  const std::int64_t            cells = static_cast<std::int64_t>(e.size[0]) * e.size[1] * e.size[2];

  PetscFunctionBegin;
  PetscCall(Reserve(*s->executor, cells, &s->in));
  PetscCall(Reserve(*s->executor, cells, &s->out));
  for (PetscInt first = 0, count; first < steps; first += count) {
    // A step from 0 needs no neighbours; but at cut sides the kernel takes cells for a ring's.
    count = PetscMin(s->steps + (in || s->ring ? 0 : 1), steps - first);
    if (in) PetscCall(Broadcast(e.gather, *s->executor, in, s->in.data()));
    PetscCall(advance(in ? s->in.data() : NULL, s->out.data(), first, count));
    PetscCall(Broadcast(e.extract, *s->executor, s->out.data(), out));
    in = out;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The same without other ranks. Kernels do not work in place: if in is out, as it is of relaxations, the first pass of several goes to
// scratch memory; for a single one the rows are copied.
static PetscErrorCode AdvanceAlone(Mat A, PetscInt steps, const double *in, double *out, const Advance &advance) {
  TCBoundStencilSweeps *s = StencilOf(A)->sweeps.get();
  tcbound::Executor    &executor = *s->executor;

  PetscFunctionBegin;
  if (in != out) {
    PetscCall(advance(in, out, 0, steps));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Reserve(executor, A->rmap->n, &s->in));
  const PetscInt passes = (steps + s->relaxation_depth - 1) / s->relaxation_depth, first = (steps + passes - 1) / passes;
  if (passes > 1) {
    PetscCall(advance(in, s->in.data(), 0, first));
    PetscCall(advance(s->in.data(), out, first, steps - first));
  } else {
    TCBoundCallCXX(executor.copy(s->in.data(), executor.space(), in, executor.space(),
                                 static_cast<std::size_t>(A->rmap->n) * sizeof(double)));
    PetscCall(advance(s->in.data(), out, 0, steps));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatStencilTCBoundPowers(Mat A, PetscInt steps, Vec x, Vec y) {
  Mat_StencilTCBound   *t = StencilOf(A);
  TCBoundStencilSweeps *s;
  TCBoundLease          lx, ly;

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundGetSweeps(A, &s));
  PetscCall(TCBoundLeaseBegin(*s->executor, &t->staged[0], x, TCBOUND_READ, &lx));
  PetscCall(TCBoundLeaseBegin(*s->executor, &t->staged[2], y, TCBOUND_WRITE, &ly));
  const Advance advance = [&](const double *in, double *out, PetscInt, PetscInt count) -> PetscErrorCode {
    PetscFunctionBegin;
    PetscCall(Run(A, 0, s->sweep->work(static_cast<int>(count)),
                  [&](tcbound::Executor &executor) { s->sweep->run(executor, in, out, static_cast<int>(count)); }));
    PetscFunctionReturn(PETSC_SUCCESS);
  };
  PetscCall((s->exchanges ? AdvanceWithExchanges : AdvanceAlone)(A, steps, lx.data, ly.data, advance));
  PetscCall(TCBoundLeaseEnd(*s->executor, &ly));
  PetscCall(TCBoundLeaseEnd(*s->executor, &lx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatStencilTCBoundRelax(Mat A, PetscInt steps, const PetscReal factors[], bool from_zero, Vec b, Vec x) {
  Mat_StencilTCBound          *t = StencilOf(A);
  TCBoundStencilSweeps        *s;
  tcbound::stencil::Relaxation relaxation;
  TCBoundLease                 lx, lb;

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundGetSweeps(A, &s));
  PetscCall(TCBoundLeaseBegin(*s->executor, &t->staged[1], b, TCBOUND_READ, &lb));
  PetscCall(TCBoundLeaseBegin(*s->executor, &t->staged[2], x, from_zero ? TCBOUND_WRITE : TCBOUND_UPDATE, &lx));
  relaxation.ring_diagonal = s->ring_diagonal;
  relaxation.ring_scale = s->diagonal / s->ring_diagonal;
  const double *source = lb.data;
  if (s->exchanges) { // for all parts once
    const PetscInt *size = t->exchange.size;
    PetscCall(Reserve(*s->executor, static_cast<std::int64_t>(size[0]) * size[1] * size[2], &s->b));
    PetscCall(Broadcast(t->exchange.gather, *s->executor, lb.data, s->b.data()));
    source = s->b.data();
  }
  const Advance advance = [&](const double *in, double *out, PetscInt first, PetscInt count) -> PetscErrorCode {
    PetscFunctionBegin;
    TCBoundCallCXX(relaxation.factors.assign(factors + first, factors + first + count));
    for (double &factor : relaxation.factors) factor /= s->diagonal;
    PetscCall(Run(A, 1, s->sweep->work_of_relaxation(static_cast<int>(count), !in),
                  [&](tcbound::Executor &executor) { s->sweep->relax(executor, in, source, out, relaxation); }));
    PetscFunctionReturn(PETSC_SUCCESS);
  };
  PetscCall((s->exchanges ? AdvanceWithExchanges : AdvanceAlone)(A, steps, from_zero ? NULL : lx.data, lx.data, advance));
  PetscCall(TCBoundLeaseEnd(*s->executor, &lx));
  PetscCall(TCBoundLeaseEnd(*s->executor, &lb));
  PetscFunctionReturn(PETSC_SUCCESS);
}
