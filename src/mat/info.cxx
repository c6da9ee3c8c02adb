// What a matrix runs: the public queries and MatView().
#include "aijtcbound.h"
#include "stenciltcbound.h"

#include <petscviewer.h>

#include <cstring>

// The seqaijtcbound matrices of this rank that make up A: itself, or its diagonal and off-diagonal blocks.
static PetscErrorCode GetBlocks(Mat A, Mat blocks[2], PetscInt *n) {
  PetscBool seq, mpi;

  PetscFunctionBegin;
  PetscCall(MatIsSeqAIJTCBound(A, &seq));
  PetscCall(MatIsMPIAIJTCBound(A, &mpi));
  PetscCheck(seq || mpi, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONG, "Needs a matrix of type %s, not %s",
             MATAIJTCBOUND, ((PetscObject)A)->type_name);
  *n = mpi ? 2 : 1;
  blocks[0] = A;
  if (mpi) {
    PetscCall(MatMPIAIJTCBoundAdoptBlocks(A));
    PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MixString(char value[], size_t size, const std::string &other) {
  PetscFunctionBegin;
  if (other != value) PetscCall(PetscStrncpy(value, "mixed", size));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Replaces value by "mixed" on all ranks where it is not the same on all.
static PetscErrorCode AgreeOnString(MPI_Comm comm, char value[], size_t size) {
  char        first[64];
  PetscMPIInt length = static_cast<PetscMPIInt>(sizeof(first));
  int         same, all;

  PetscFunctionBegin;
  PetscCall(PetscStrncpy(first, value, sizeof(first)));
  PetscCallMPI(MPI_Bcast(first, length, MPI_CHAR, 0, comm));
  same = !strcmp(first, value);
  PetscCallMPI(MPI_Allreduce(&same, &all, 1, MPI_INT, MPI_MIN, comm));
  if (!all) PetscCall(PetscStrncpy(value, "mixed", size));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatTCBoundGetInfo - What a `MATAIJTCBOUND` matrix runs and what one product costs, summed over its ranks

  Collective

  Input Parameter:
. A - an assembled matrix

  Output Parameter:
. info - kernel, format, sizes, bytes, FLOPs and set-up time, see tcbound.h

  Level: intermediate

  Note:
  Builds the format if no product has done so yet.

.seealso: `MATAIJTCBOUND`, `MatTCBoundSetBackend()`
@*/
PetscErrorCode MatTCBoundGetInfo(Mat A, MatTCBoundInfo *info) {
  MPI_Comm       comm = PetscObjectComm((PetscObject)A);
  Mat            blocks[2];
  PetscInt       n = 0;
  PetscBool      stencil;
  PetscLogDouble sums[4] = {0, 0, 0, 0}, seconds = 0; // nonzeros, matrix bytes, all bytes, FLOPs

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscAssertPointer(info, 2);
  PetscCheck(A->assembled, comm, PETSC_ERR_ARG_WRONGSTATE, "Not for unassembled matrix");
  PetscCall(PetscMemzero(info, sizeof(*info)));
  info->rows = A->rmap->N;
  info->columns = A->cmap->N;
  PetscCall(MatIsStencilTCBound(A, &stencil));
  if (stencil)
    PetscCall(MatStencilTCBoundAddInfo(A, info, sums, &seconds));
  else
    PetscCall(GetBlocks(A, blocks, &n));
  for (PetscInt b = 0; b < n; b++) {
    PetscCall(MatSeqAIJTCBoundUpdate(blocks[b]));
    Mat_SeqAIJTCBound *t = static_cast<Mat_SeqAIJTCBound *>(blocks[b]->spptr);
    // The off-diagonal block adds to what the diagonal block wrote.
    const tcbound::Work plain = t->format->work(false, false), work = b > 0 ? t->format->work_in_place(false) : plain;
    const PetscInt      vectors = blocks[b]->rmap->n + blocks[b]->cmap->n;

    seconds += t->setup_seconds;
    if (b > 0 && !t->source.nonzeros) continue; // no product runs
    sums[0] += static_cast<PetscLogDouble>(t->source.nonzeros);
    sums[1] += static_cast<PetscLogDouble>(plain.bytes) - 8.0 * static_cast<PetscLogDouble>(vectors);
    sums[2] += static_cast<PetscLogDouble>(work.bytes);
    sums[3] += static_cast<PetscLogDouble>(work.useful_flops);
    if (b == 0) {
      PetscCall(PetscStrncpy(info->kernel, t->kernel->name().c_str(), sizeof(info->kernel)));
      PetscCall(PetscStrncpy(info->format, t->kernel->format().c_str(), sizeof(info->format)));
      PetscCall(PetscStrncpy(info->backend, t->kernel->backend().c_str(), sizeof(info->backend)));
    } else {
      PetscCall(MixString(info->kernel, sizeof(info->kernel), t->kernel->name()));
      PetscCall(MixString(info->format, sizeof(info->format), t->kernel->format()));
      PetscCall(MixString(info->backend, sizeof(info->backend), t->kernel->backend()));
    }
  }
  PetscCall(AgreeOnString(comm, info->kernel, sizeof(info->kernel)));
  PetscCall(AgreeOnString(comm, info->format, sizeof(info->format)));
  PetscCall(AgreeOnString(comm, info->backend, sizeof(info->backend)));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sums, 4, MPI_DOUBLE, MPI_SUM, comm));
  PetscCallMPI(MPI_Allreduce(&seconds, &info->setup_seconds, 1, MPI_DOUBLE, MPI_MAX, comm));
  info->nonzeros = static_cast<PetscInt64>(sums[0]);
  info->stored_bytes = sums[1];
  info->moved_bytes = sums[2];
  info->useful_flops = sums[3];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ApplySettings(Mat A, const TCBoundMatSettings &settings) {
  PetscBool mpi, stencil;

  PetscFunctionBegin;
  PetscCall(MatIsMPIAIJTCBound(A, &mpi));
  PetscCall(MatIsStencilTCBound(A, &stencil));
  if (stencil)
    PetscCall(MatStencilTCBoundApplySettings(A, settings));
  else if (mpi)
    PetscCall(MatMPIAIJTCBoundApplySettings(A, settings));
  else
    PetscCall(MatSeqAIJTCBoundApplySettings(A, settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetSettings(Mat A, TCBoundMatSettings *settings) {
  PetscBool seq, mpi, stencil;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscCall(MatIsStencilTCBound(A, &stencil));
  if (stencil) {
    *settings = StencilOf(A)->settings;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatIsSeqAIJTCBound(A, &seq));
  PetscCall(MatIsMPIAIJTCBound(A, &mpi));
  PetscCheck(seq || mpi, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONG, "Needs a matrix of type %s, not %s",
             MATAIJTCBOUND, ((PetscObject)A)->type_name);
  *settings = seq ? static_cast<Mat_SeqAIJTCBound *>(A->spptr)->settings : static_cast<Mat_MPIAIJTCBound *>(A->spptr)->settings;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatTCBoundSetBackend - Where the products of a `MATAIJTCBOUND` matrix run from now on

  Logically Collective

  Input Parameters:
+ A       - the matrix
- backend - auto, host, cuda_core, cusparse or tensor_core

  Options Database Key:
. -mat_tcbound_backend (auto|host|cuda_core|cusparse|tensor_core) - the same

  Level: intermediate

  Note:
  A backend that cannot run is an error at the next product; nothing falls back to another one.

.seealso: `MATAIJTCBOUND`, `MatTCBoundSetFormat()`, `MatTCBoundCheckKernel()`
@*/
PetscErrorCode MatTCBoundSetBackend(Mat A, const char backend[]) {
  TCBoundMatSettings settings;

  PetscFunctionBegin;
  PetscCall(GetSettings(A, &settings));
  PetscCall(TCBoundMatSettingsSetBackend(settings, PetscObjectComm((PetscObject)A), backend));
  PetscCall(ApplySettings(A, settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatTCBoundSetFormat - How a `MATAIJTCBOUND` matrix is stored for its products from now on

  Logically Collective

  Input Parameters:
+ A      - the matrix
- format - auto, csr, compact, diagonals, sell, tiles or fragments

  Options Database Key:
. -mat_tcbound_format (auto|csr|compact|diagonals|sell|tiles|fragments) - the same

  Level: intermediate

.seealso: `MATAIJTCBOUND`, `MatTCBoundSetBackend()`, `MatTCBoundCheckKernel()`
@*/
PetscErrorCode MatTCBoundSetFormat(Mat A, const char format[]) {
  TCBoundMatSettings settings;

  PetscFunctionBegin;
  PetscCall(GetSettings(A, &settings));
  PetscCall(TCBoundMatSettingsSetFormat(settings, PetscObjectComm((PetscObject)A), format));
  PetscCall(ApplySettings(A, settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatTCBoundCheckKernel - Whether a kernel can run a `MATAIJTCBOUND` matrix on every one of its ranks

  Collective

  Input Parameters:
+ A      - an assembled matrix
- kernel - a name from `TCBoundGetKernels()`

  Output Parameters:
+ can_run - `PETSC_TRUE` if it can
- why_not - a reason otherwise, valid until the next call on this process; else `NULL`

  Level: intermediate

.seealso: `TCBoundGetKernels()`, `MatTCBoundSetBackend()`
@*/
PetscErrorCode MatTCBoundCheckKernel(Mat A, const char kernel[], PetscBool *can_run, const char *why_not[]) {
  static std::string     reason;
  const tcbound::Kernel *k = tcbound::find_kernel(kernel);
  tcbound::Executor     *executor;
  const char            *missing = NULL;
  Mat                    blocks[2];
  PetscInt               n;
  PetscMPIInt            rank, size, mine, first;
  char                   text[512];

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  MPI_Comm comm = PetscObjectComm((PetscObject)A);
  PetscCheck(k, comm, PETSC_ERR_ARG_OUTOFRANGE, "There is no kernel %s", kernel);
  PetscCheck(A->assembled, comm, PETSC_ERR_ARG_WRONGSTATE, "Not for unassembled matrix");
  PetscCall(GetBlocks(A, blocks, &n));
  if (k->space() == tcbound::MemorySpace::cuda)
    PetscCall(TCBoundGetCUDAExecutor(&executor, &missing));
  else
    PetscCall(TCBoundGetHostExecutor(&executor));
  reason = missing ? missing : "";
  for (PetscInt b = 0; b < n && reason.empty(); b++) {
    tcbound::Problem problem;
    TCBoundMatSource source;

    PetscCall(MatSeqAIJTCBoundGetProblem(blocks[b], &problem, &source));
    TCBoundCallCXX(reason = k->check(executor->device(), problem));
  }
  // All ranks give the reason of the first rank that has one.
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  mine = reason.empty() ? size : rank;
  PetscCallMPI(MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, comm));
  if (first < size) {
    PetscCall(PetscStrncpy(text, reason.c_str(), sizeof(text)));
    PetscCallMPI(MPI_Bcast(text, sizeof(text), MPI_CHAR, first, comm));
    reason = text;
  }
  *can_run = reason.empty() ? PETSC_TRUE : PETSC_FALSE;
  if (why_not) *why_not = reason.empty() ? NULL : reason.c_str();
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Under the info formats, which -ksp_view uses too: what ran, without building anything.
// What each rank runs for each of its blocks and what the format found there.
static PetscErrorCode ViewBlocks(Mat A, Mat blocks[], PetscInt n, PetscViewer viewer) {
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PetscObjectComm((PetscObject)A), &rank));
  PetscCall(PetscViewerASCIIPushSynchronized(viewer));
  for (PetscInt b = 0; b < n; b++) {
    Mat_SeqAIJTCBound *t = static_cast<Mat_SeqAIJTCBound *>(blocks[b]->spptr);
    std::string        found;

    TCBoundCallCXX(found = t->format->describe());
    PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "  [%d] %s block: %s%s%s\n", rank,
                                                 b == 0 ? "diagonal" : "off-diagonal", t->kernel->name().c_str(),
                                                 found.empty() ? "" : ": ", found.c_str()));
  }
  PetscCall(PetscViewerFlush(viewer));
  PetscCall(PetscViewerASCIIPopSynchronized(viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ViewInfo(Mat A, PetscViewer viewer) {
  PetscBool          ascii, built = PETSC_TRUE;
  PetscViewerFormat  format;
  Mat                blocks[2];
  PetscInt           n;
  MatTCBoundInfo     info;
  TCBoundMatSettings settings;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (!ascii) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerGetFormat(viewer, &format));
  if (format != PETSC_VIEWER_ASCII_INFO && format != PETSC_VIEWER_ASCII_INFO_DETAIL) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GetSettings(A, &settings));
  if (settings.value_precision != "fp64")
    PetscCall(PetscViewerASCIIPrintf(viewer, "  lossy: values of products rounded to %s\n", settings.value_precision.c_str()));
  if (settings.product_precision != "fp64")
    PetscCall(PetscViewerASCIIPrintf(viewer, "  lossy: values and x of products rounded to %s, sums in fp32\n",
                                     settings.product_precision.c_str()));
  if (A->assembled) {
    PetscCall(GetBlocks(A, blocks, &n));
    for (PetscInt b = 0; b < n; b++)
      if (!static_cast<Mat_SeqAIJTCBound *>(blocks[b]->spptr)->format) built = PETSC_FALSE;
  } else
    built = PETSC_FALSE;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &built, 1, MPI_C_BOOL, MPI_LAND, PetscObjectComm((PetscObject)A)));
  if (!built) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "  tcbound kernel: chosen at the first product\n"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatTCBoundGetInfo(A, &info));
  PetscCall(PetscViewerASCIIPrintf(
    viewer, "  tcbound kernel: %s, format: %s, matrix bytes: %.0f (%.2f a nonzero), set-up: %.3g s\n", info.kernel, info.format,
    info.stored_bytes, info.nonzeros ? info.stored_bytes / (double)info.nonzeros : 0.0, info.setup_seconds));
  if (format == PETSC_VIEWER_ASCII_INFO_DETAIL) PetscCall(ViewBlocks(A, blocks, n, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatView_SeqAIJTCBound(Mat A, PetscViewer viewer) {
  PetscFunctionBegin;
  PetscCall((*MatSeqAIJTCBoundBaseOps()->view)(A, viewer));
  PetscCall(ViewInfo(A, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatView_MPIAIJTCBound(Mat A, PetscViewer viewer) {
  PetscFunctionBegin;
  PetscCall((*MatMPIAIJTCBoundBaseOps()->view)(A, viewer));
  PetscCall(ViewInfo(A, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}
