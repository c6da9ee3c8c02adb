// The vector type tcbound: PETSc's own vectors, on a device VECCUDA, whose operations run on tcbound's kernels.
#include "vectcbound.h"

/*
  The type's name stays PETSc's (seqcuda, mpicuda, seq, mpi): PETSc compares names wherever it decides whether it may use a vector's
  device memory (AXPY and its kin, subvectors, MATAIJCUSPARSE, dense matrices, preconditioners), and a vector by another name would be
  copied to the host there, or refused. What makes a vector ours is its table of operations, which VecDuplicate() copies, and the
  state composed with it under this key, which VecDuplicate() shares.
*/
static const char StateKey[] = "TCBound";

// What each of PETSc's types has without us: on the host or on the device, not bound or bound to the CPU, sequential or parallel.
static struct _VecOps base_ops[2][2][2];
static bool           base_known[2][2];

static bool IsParallel(Vec v) { return ((PetscObject)v)->type_name[0] == 'm'; }
static bool IsCUDA(Vec v) { return ((PetscObject)v)->type_name[3] == 'c'; }

static PetscBool IsBound(Vec v) {
#if PetscDefined(HAVE_DEVICE)
  return v->boundtocpu;
#else
  (void)v;
  return PETSC_FALSE;
#endif
}

const struct _VecOps *VecTCBoundBaseOps(Vec v) { return &base_ops[IsCUDA(v)][IsCUDA(v) && IsBound(v)][IsParallel(v)]; }

static PetscErrorCode ComposeState(Vec v, const TCBoundVecSettings &settings) {
  const char    *name = ((PetscObject)v)->name ? ((PetscObject)v)->name : ((PetscObject)v)->prefix;
  Vec_TCBound   *t = NULL;
  PetscContainer container;

  PetscFunctionBegin;
  TCBoundCallCXX(t = new Vec_TCBound; t->settings = settings; t->label = name ? name : "Vec");
  PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &container));
  PetscCall(PetscContainerSetPointer(container, t));
  // What PETSc hands over is a void **, called void * from 3.26 on.
  PetscCall(PetscContainerSetCtxDestroy(container, [](auto state) -> PetscErrorCode {
    delete static_cast<Vec_TCBound *>(*static_cast<void **>(state));
    return PETSC_SUCCESS;
  }));
  PetscCall(PetscObjectCompose((PetscObject)v, StateKey, (PetscObject)container));
  PetscCall(PetscContainerDestroy(&container));
  PetscCall(TCBoundVecChooseKernels(t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// A vector to which someone has copied the table of operations alone gets the settings that are the default.
PetscErrorCode VecTCBoundGetState(Vec v, Vec_TCBound **t) {
  PetscContainer container;

  PetscFunctionBegin;
  PetscCall(PetscObjectQuery((PetscObject)v, StateKey, (PetscObject *)&container));
  if (!container) {
    PetscCall(ComposeState(v, TCBoundVecSettings()));
    PetscCall(PetscObjectQuery((PetscObject)v, StateKey, (PetscObject *)&container));
  }
  PetscCall(PetscContainerGetPointer(container, t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecBindToCPU_TCBound(Vec, PetscBool);
static PetscErrorCode VecSetFromOptions_TCBound(Vec, PetscOptionItems);
static PetscErrorCode VecGetSubVector_TCBound(Vec, IS, Vec *);

// Asks vectors without elements: v may be bound to the CPU or not, and have operations that others have replaced.
static PetscErrorCode FindBaseOps(Vec v) {
  const bool cuda = IsCUDA(v), parallel = IsParallel(v);
  Vec        empty;

  PetscFunctionBegin;
  if (base_known[cuda][parallel]) PetscFunctionReturn(PETSC_SUCCESS);
  for (const bool bound : {false, true}) {
    if (bound && !cuda) continue;
    PetscCall(VecCreate(PETSC_COMM_SELF, &empty));
    PetscCall(VecSetSizes(empty, 0, 0));
    PetscCall(VecSetType(empty, ((PetscObject)v)->type_name));
    if (cuda) PetscCall(VecBindToCPU(empty, bound ? PETSC_TRUE : PETSC_FALSE));
    base_ops[cuda][bound][parallel] = empty->ops[0];
    PetscCall(VecDestroy(&empty));
  }
  base_known[cuda][parallel] = true;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode InstallOps(Vec v) {
  const bool parallel = IsParallel(v);

  PetscFunctionBegin;
  PetscCall(FindBaseOps(v));
  VecTCBoundSetElementwise(v->ops);
  VecTCBoundSetReductions(v->ops, parallel);
  v->ops->setfromoptions = VecSetFromOptions_TCBound;
  v->ops->getsubvector = VecGetSubVector_TCBound;
  if (IsCUDA(v)) v->ops->bindtocpu = VecBindToCPU_TCBound;
  PetscFunctionReturn(PETSC_SUCCESS);
}

// PETSc's function puts its own operations back in place.
static PetscErrorCode VecBindToCPU_TCBound(Vec v, PetscBool bind) {
  PetscFunctionBegin;
  PetscCall((*VecTCBoundBaseOps(v)->bindtocpu)(v, bind));
  PetscCall(InstallOps(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// PETSc's own, whose result then becomes one of ours.
static PetscErrorCode VecGetSubVector_TCBound(Vec x, IS is, Vec *y) {
  PetscErrorCode ierr;

  PetscFunctionBegin;
  x->ops->getsubvector = NULL;
  ierr = VecGetSubVector(x, is, y);
  x->ops->getsubvector = VecGetSubVector_TCBound;
  PetscCall(ierr);
  PetscCall(VecTCBoundAdopt(*y, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecTCBoundAdopt(Vec v, Vec like) {
  PetscObject        state = NULL;
  TCBoundVecSettings settings;
  PetscBool          device;

  PetscFunctionBegin;
  if (like) PetscCall(PetscObjectQuery((PetscObject)like, StateKey, &state));
  if (state) {
    PetscCall(PetscObjectCompose((PetscObject)v, StateKey, state));
  } else {
    PetscCall(TCBoundVecSettingsFromOptions(settings, v));
    // An error if they contradict themselves or the machine. The default never does, and need not wake a device.
    if (!(settings == TCBoundVecSettings())) PetscCall(TCBoundVecSettingsUseDevice(settings, &device));
    PetscCall(ComposeState(v, settings));
  }
  PetscCall(InstallOps(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The local form of a vector with ghost points is an array on the host, which PETSc keeps in step with nothing: such a vector stays
// there.
static PetscErrorCode UseDevice(Vec v, const TCBoundVecSettings &settings, PetscBool *device) {
  PetscBool ghosted = PETSC_FALSE;
  Vec       local;

  PetscFunctionBegin;
  PetscCall(TCBoundVecSettingsUseDevice(settings, device));
  if (!*device || IsCUDA(v) || !IsParallel(v)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGhostGetLocalForm(v, &local));
  ghosted = local ? PETSC_TRUE : PETSC_FALSE;
  PetscCall(VecGhostRestoreLocalForm(v, &local));
  PetscCheck(!ghosted || settings.backend == "auto", PetscObjectComm((PetscObject)v), PETSC_ERR_SUP,
             "-vec_tcbound_backend %s: a vector with ghost points lives on the host; auto and host leave it there",
             settings.backend.c_str());
  if (ghosted) *device = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Takes other settings, and with them to the memory that they ask for.
static PetscErrorCode ApplySettings(Vec v, const TCBoundVecSettings &settings) {
  Vec_TCBound *t;
  PetscBool    device;

  PetscFunctionBegin;
  PetscCall(VecTCBoundGetState(v, &t));
  if (t->settings == settings) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(UseDevice(v, settings, &device));
  PetscCall(ComposeState(v, settings)); // duplicates keep theirs
  if (IsCUDA(v)) {
    PetscCall(VecBindToCPU(v, device ? PETSC_FALSE : PETSC_TRUE));
  } else if (device) {
    PetscCall(VecSetType(v, VECCUDA)); // keeps the values
    PetscCall(InstallOps(v));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecSetFromOptions_TCBound(Vec v, PetscOptionItems items) {
  PetscErrorCode (*base)(Vec, PetscOptionItems) = VecTCBoundBaseOps(v)->setfromoptions;
  Vec_TCBound       *t;
  TCBoundVecSettings settings;

  PetscFunctionBegin;
  if (base) PetscCall((*base)(v, items));
  PetscCall(VecTCBoundGetState(v, &t));
  TCBoundCallCXX(settings = t->settings);
  PetscCall(TCBoundVecSettingsFromOptions(settings, v));
  PetscCall(ApplySettings(v, settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(Vec v, bool parallel) {
  TCBoundVecSettings settings;
  PetscBool          device;

  PetscFunctionBegin;
  PetscCall(TCBoundVecSettingsFromOptions(settings, v));
  PetscCall(TCBoundVecSettingsUseDevice(settings, &device));
  if (device)
    PetscCall(VecSetType(v, parallel ? VECMPICUDA : VECSEQCUDA));
  else
    PetscCall(VecSetType(v, parallel ? VECMPI : VECSEQ));
  PetscCall(ComposeState(v, settings));
  PetscCall(InstallOps(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   VECSEQTCBOUND - "seqtcbound" - A `VECSEQCUDA`, or a `VECSEQ` where there is no device, whose operations run on tcbound's kernels.

   Options Database Keys:
+  -vec_type tcbound                                              - this type on one rank, `VECMPITCBOUND` on several
.  -vec_tcbound_backend (auto|host|cuda_core|tensor_core)         - where operations run; auto takes a device if there is one.
                                                                    tensor_core: `VecScale()` runs on tensor cores, and operations
                                                                    that have no such kernel on CUDA cores
-  -vec_tcbound_mma (auto|m8n8k4|m16n8k4|m16n8k8|m16n8k16)        - the matrix instruction of tensor_core

   Level: beginner

   Notes:
   Ours are `VecScale()`, `VecAXPY()`, `VecAYPX()`, `VecAXPBY()`, `VecWAXPY()`, `VecAXPBYPCZ()`, `VecMAXPY()`, `VecMAXPBY()`, `VecPointwiseMult()`,
   `VecDot()`, `VecTDot()`, `VecMDot()`, `VecMTDot()`, `VecDotNorm2()` and `VecNorm()`, each a single pass over the vectors that it needs;
   all else is PETSc's. Dot products and norms are the same, bit for bit, in every run on the same kind of device.

   `VecGetType()` gives PETSc's name (`VECSEQCUDA`, `VECSEQ`), because PETSc finds device memory by that name; `VecIsTCBound()` tells the
   difference. Operations with a vector whose data are on the other side (bound to the CPU, say) are PETSc's.

.seealso: `VECTCBOUND`, `VECMPITCBOUND`, `VecTCBoundSetBackend()`, `VecIsTCBound()`, `MATAIJTCBOUND`
M*/
static PetscErrorCode VecCreate_SeqTCBound(Vec v) {
  PetscFunctionBegin;
  PetscCall(Create(v, false));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   VECMPITCBOUND - "mpitcbound" - A `VECMPICUDA`, or a `VECMPI` where there is no device, whose operations run on tcbound's kernels.

   Level: beginner

.seealso: `VECTCBOUND`, `VECSEQTCBOUND`
M*/
static PetscErrorCode VecCreate_MPITCBound(Vec v) {
  PetscFunctionBegin;
  PetscCall(Create(v, true));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   VECTCBOUND - "tcbound" - `VECSEQTCBOUND` on one rank, `VECMPITCBOUND` on several.

   Level: beginner

.seealso: `VECSEQTCBOUND`, `VECMPITCBOUND`
M*/
static PetscErrorCode VecCreate_TCBound(Vec v) {
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)v), &size));
  PetscCall(Create(v, size > 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecTCBoundRegisterAll(void) {
  PetscFunctionBegin;
  PetscCall(VecRegister(VECTCBOUND, VecCreate_TCBound));
  PetscCall(VecRegister(VECSEQTCBOUND, VecCreate_SeqTCBound));
  PetscCall(VecRegister(VECMPITCBOUND, VecCreate_MPITCBound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  VecIsTCBound - Whether a vector's operations are tcbound's

  Not Collective

  Input Parameter:
. v - the vector

  Output Parameter:
. is - `PETSC_TRUE` for a vector of type `VECTCBOUND`, its duplicates and subvectors

  Level: intermediate

.seealso: `VECTCBOUND`
@*/
PetscErrorCode VecIsTCBound(Vec v, PetscBool *is) {
  PetscFunctionBegin;
  PetscValidHeaderSpecific(v, VEC_CLASSID, 1);
  PetscAssertPointer(is, 2);
  *is = v->ops->scale == VecScale_TCBound ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  VecTCBoundConvert - Gives a vector of PETSc's standard or CUDA type tcbound's operations, in place

  Collective

  Input Parameter:
. v - a `VECSEQ`, `VECMPI`, `VECSEQCUDA` or `VECMPICUDA`; its options decide about the backend

  Level: intermediate

  Note:
  The vector keeps its values and all that belongs to it, such as the ghost points of `VecCreateGhost()`, which `VecSetType()` would
  throw away. A vector with ghost points stays on the host, where its local form is.

.seealso: `VECTCBOUND`, `VecIsTCBound()`
@*/
PetscErrorCode VecTCBoundConvert(Vec v) {
  TCBoundVecSettings settings;
  PetscBool          ours, known, device;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(v, VEC_CLASSID, 1);
  PetscCall(VecIsTCBound(v, &ours));
  if (ours) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompareAny((PetscObject)v, &known, VECSEQ, VECMPI, VECSEQCUDA, VECMPICUDA, ""));
  PetscCheck(known, PetscObjectComm((PetscObject)v), PETSC_ERR_SUP, "A vector of type %s cannot become one of tcbound's",
             ((PetscObject)v)->type_name ? ((PetscObject)v)->type_name : "(none)");
  PetscCall(TCBoundVecSettingsFromOptions(settings, v));
  PetscCall(UseDevice(v, settings, &device));
  if (device && !IsCUDA(v)) PetscCall(VecSetType(v, VECCUDA)); // in place
  PetscCall(ComposeState(v, settings));
  PetscCall(InstallOps(v));
  if (!device && IsCUDA(v)) PetscCall(VecBindToCPU(v, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetSettings(Vec v, TCBoundVecSettings *settings) {
  Vec_TCBound *t;
  PetscBool    ours;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(v, VEC_CLASSID, 1);
  PetscCall(VecIsTCBound(v, &ours));
  PetscCheck(ours, PetscObjectComm((PetscObject)v), PETSC_ERR_ARG_WRONG, "The vector's type is not " VECTCBOUND);
  PetscCall(VecTCBoundGetState(v, &t));
  TCBoundCallCXX(*settings = t->settings);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  VecTCBoundSetBackend - Where a vector's operations run

  Logically Collective

  Input Parameters:
+ v       - a vector of type `VECTCBOUND`
. backend - auto, host, cuda_core or tensor_core (`-vec_tcbound_backend`)
- mma     - the matrix instruction of tensor_core: auto, m8n8k4, m16n8k4, m16n8k8 or m16n8k16 (`-vec_tcbound_mma`)

  Level: intermediate

  Note:
  Of this vector and of those duplicated from it later; vectors duplicated before keep theirs.

.seealso: `VECTCBOUND`, `VecTCBoundGetBackend()`
@*/
PetscErrorCode VecTCBoundSetBackend(Vec v, const char backend[], const char mma[]) {
  TCBoundVecSettings settings;

  PetscFunctionBegin;
  PetscAssertPointer(backend, 2);
  PetscAssertPointer(mma, 3);
  PetscCall(GetSettings(v, &settings));
  PetscCall(TCBoundVecSettingsSetBackend(settings, PetscObjectComm((PetscObject)v), backend));
  PetscCall(TCBoundVecSettingsSetMMA(settings, PetscObjectComm((PetscObject)v), mma));
  PetscCall(ApplySettings(v, settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  VecTCBoundGetBackend - Where `VecScale()` of a vector runs

  Not Collective

  Input Parameter:
. v - a vector of type `VECTCBOUND`

  Output Parameter:
. kernel - the kernel's name, such as scale/array/cuda_core

  Level: intermediate

.seealso: `VECTCBOUND`, `VecTCBoundSetBackend()`
@*/
PetscErrorCode VecTCBoundGetBackend(Vec v, const char *kernel[]) {
  TCBoundVecSettings settings;
  Vec_TCBound       *t;

  PetscFunctionBegin;
  PetscAssertPointer(kernel, 2);
  PetscCall(GetSettings(v, &settings));
  PetscCall(VecTCBoundGetState(v, &t));
  *kernel = t->scale[VecTCBoundOnDevice(v)]->name().c_str();
  PetscFunctionReturn(PETSC_SUCCESS);
}
