// What a stenciltcbound matrix says of itself.
#include "stenciltcbound.h"

#include <petscviewer.h>

static const char *const Shapes[] = {"box", "star"};

static PetscErrorCode ViewInfo(Mat A, PetscViewer viewer) {
  Mat_StencilTCBound       *t = StencilOf(A);
  const TCBoundStencilGrid &g = t->grid;
  MPI_Comm                  comm = PetscObjectComm((PetscObject)A);
  PetscMPIInt               rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCall(PetscViewerASCIIPrintf(viewer,
                                   "  stencil: %s of width %" PetscInt_FMT " in %" PetscInt_FMT "D, dof %" PetscInt_FMT
                                   ", grid %" PetscInt_FMT " x %" PetscInt_FMT " x %" PetscInt_FMT "\n",
                                   Shapes[g.star], g.width, g.dim, g.dof, g.size[0], g.size[1], g.size[2]));
  PetscCall(PetscViewerASCIIPushSynchronized(viewer));
  if (!A->assembled)
    PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "  [%d] not assembled\n", rank));
  else
    PetscCall(PetscViewerASCIISynchronizedPrintf(
      viewer, "  [%d] coefficients: %s, %" PetscInt64_FMT " bytes; kernel: %s\n", rank,
      t->format ? t->format->describe().c_str() : t->stencil.describe().c_str(),
      static_cast<PetscInt64>(t->format ? t->format->coefficient_bytes() : t->stencil.coefficient_bytes()),
      t->format ? t->kernel->name().c_str() : "chosen at the first product"));
  PetscCall(PetscViewerFlush(viewer));
  PetscCall(PetscViewerASCIIPopSynchronized(viewer));
  if (A->assembled && t->sweeps) // the same on all ranks
    PetscCall(PetscViewerASCIIPrintf(
      viewer, "  several steps a pass: powers %s; relaxations %s\n", t->sweeps->describe(t->sweeps->why_not).c_str(),
      t->format && t->format->most_sweeps() > 1 ? ("by " + t->kernel->name()).c_str()
                                                : t->sweeps->describe(t->sweeps->why_not_relaxing).c_str()));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatView_StencilTCBound(Mat A, PetscViewer viewer) {
  Mat_StencilTCBound *t = StencilOf(A);
  PetscBool           ascii;
  PetscViewerFormat   format;
  Mat                 aij;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  PetscCall(PetscViewerGetFormat(viewer, &format));
  if (ascii && (format == PETSC_VIEWER_ASCII_INFO || format == PETSC_VIEWER_ASCII_INFO_DETAIL)) {
    PetscCall(ViewInfo(A, viewer));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (t->natural_view) {
    PetscCall((*t->natural_view)(A, viewer));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &aij));
  PetscCall(PetscObjectSetName((PetscObject)aij, ((PetscObject)A)->name));
  PetscCall(MatView(aij, viewer));
  PetscCall(MatDestroy(&aij));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Nonzeros are the points that the cells' rows have, zeros as well; memory is that of the coefficients.
PetscErrorCode MatGetInfo_StencilTCBound(Mat A, MatInfoType type, MatInfo *info) {
  Mat_StencilTCBound *t = StencilOf(A);
  PetscLogDouble      values[2] = {0, 0};

  PetscFunctionBegin;
  PetscCall(PetscMemzero(info, sizeof(*info)));
  ForEachNeighbour(t->grid, [&](std::int64_t, std::int64_t, std::int64_t, std::int64_t, int) {
    values[0] += static_cast<PetscLogDouble>(t->grid.dof);
  });
  values[1] = t->expanded ? 8.0 * static_cast<PetscLogDouble>(t->arrays.size()) * static_cast<PetscLogDouble>(A->rmap->n)
                          : static_cast<PetscLogDouble>(t->stencil.coefficient_bytes());
  if (type != MAT_LOCAL)
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, values, 2, MPI_DOUBLE, type == MAT_GLOBAL_MAX ? MPI_MAX : MPI_SUM,
                               PetscObjectComm((PetscObject)A)));
  info->block_size = static_cast<PetscLogDouble>(t->grid.dof);
  info->nz_used = info->nz_allocated = values[0];
  info->memory = values[1];
  info->assemblies = static_cast<PetscLogDouble>(A->num_ass);
  PetscFunctionReturn(PETSC_SUCCESS);
}

// This rank's part of what MatTCBoundGetInfo() tells: to sums nonzeros, matrix bytes, all bytes and FLOPs of a product.
PetscErrorCode MatStencilTCBoundAddInfo(Mat A, MatTCBoundInfo *info, PetscLogDouble sums[4], PetscLogDouble *seconds) {
  Mat_StencilTCBound *t = StencilOf(A);

  PetscFunctionBegin;
  PetscCall(MatStencilTCBoundUpdate(A));
  const tcbound::Work &work = t->format->work(false, tcbound::grid::Part::all);
  sums[0] += 0.5 * static_cast<PetscLogDouble>(work.useful_flops);
  sums[1] += static_cast<PetscLogDouble>(t->format->coefficient_bytes());
  sums[2] += static_cast<PetscLogDouble>(work.bytes);
  sums[3] += static_cast<PetscLogDouble>(work.useful_flops);
  *seconds += t->setup_seconds;
  PetscCall(PetscStrncpy(info->kernel, t->kernel->name().c_str(), sizeof(info->kernel)));
  PetscCall(PetscStrncpy(info->format, t->kernel->format().c_str(), sizeof(info->format)));
  PetscCall(PetscStrncpy(info->backend, t->kernel->backend().c_str(), sizeof(info->backend)));
  PetscFunctionReturn(PETSC_SUCCESS);
}
