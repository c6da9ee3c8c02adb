// Registration, the process's executors, and the way from C++ exceptions to PETSc errors.
#include "tcboundimpl.h"

#include <petscdevice.h>
#include <tcbound.h>

#include <memory>
#include <string>
#include <vector>

#include "log/log.h"
#include "mat/aijtcbound.h"
#include "pc/tcboundsweep.h"
#include "vec/vectcbound.h"

#if PetscDefined(USE_COMPLEX) || !PetscDefined(USE_REAL_DOUBLE)
#error "tcbound needs a PETSc with real double scalars"
#endif

// Kept for the life of the process: matrices that an application forgot to destroy may still hold their memory, and CUDA
// frees everything at exit anyway.
static tcbound::Executor *host_executor = nullptr;
static tcbound::Executor *cuda_executor = nullptr;
static PetscBool          cuda_probed = PETSC_FALSE;
static std::string        cuda_why_not;
static PetscBool          initialized = PETSC_FALSE;

PetscErrorCode TCBoundErrorCode(const tcbound::Error &error) {
  switch (error.code()) {
  case tcbound::ErrorCode::out_of_memory:
    return PETSC_ERR_MEM;
  case tcbound::ErrorCode::unsupported:
    return PETSC_ERR_SUP;
  case tcbound::ErrorCode::invalid:
    return PETSC_ERR_ARG_WRONG;
  case tcbound::ErrorCode::device:
    return PETSC_ERR_GPU;
  }
  return PETSC_ERR_PLIB;
}

PetscErrorCode TCBoundGetHostExecutor(tcbound::Executor **executor) {
  PetscFunctionBegin;
  if (!host_executor) TCBoundCallCXX(host_executor = tcbound::make_host_executor().release());
  *executor = host_executor;
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Finds out once per process whether a device can be used, and makes its executor on the device PETSc gave this rank.
static PetscErrorCode ProbeCUDA(void) {
  PetscFunctionBegin;
  if (cuda_probed) PetscFunctionReturn(PETSC_SUCCESS);
  int devices = 0;
  TCBoundCallCXX(devices = tcbound::cuda_device_count(&cuda_why_not));
#if PetscDefined(HAVE_CUDA)
  if (devices > 0) {
    PetscDevice device;
    PetscInt    id;

    PetscCall(PetscDeviceInitialize(PETSC_DEVICE_CUDA));
    PetscCall(PetscDeviceCreate(PETSC_DEVICE_CUDA, PETSC_DECIDE, &device));
    PetscCall(PetscDeviceGetDeviceId(device, &id));
    TCBoundCallCXX(cuda_executor = tcbound::make_cuda_executor(static_cast<int>(id)).release());
    PetscCall(PetscDeviceDestroy(&device));
  }
#else
  (void)devices;
  cuda_why_not = "PETSc was configured without CUDA";
#endif
  cuda_probed = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundGetCUDAExecutor(tcbound::Executor **executor, const char **why_not) {
  PetscFunctionBegin;
  PetscCall(ProbeCUDA());
  if (executor) *executor = cuda_executor;
  if (why_not) *why_not = cuda_executor ? nullptr : cuda_why_not.c_str();
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundUsePetscStream(tcbound::Executor &executor) {
  PetscFunctionBegin;
#if PetscDefined(HAVE_CUDA)
  if (executor.space() == tcbound::MemorySpace::cuda) {
    PetscDeviceContext context;
    void              *handle;

    PetscCall(PetscDeviceContextGetCurrentContext(&context));
    PetscCall(PetscDeviceContextGetStreamHandle(context, &handle));
    executor.set_stream(*static_cast<void **>(handle)); // the handle is a cudaStream_t *
  }
#else
  (void)executor;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  TCBoundHasDevice - Whether this process can use a CUDA device with tcbound

  Not Collective

  Output Parameters:
+ has     - `PETSC_TRUE` if a device can be used
- why_not - what is missing, or `NULL` if a device can be used; pass `NULL` if not needed

  Level: intermediate

.seealso: `TCBoundInitialize()`, `MATAIJTCBOUND`
@*/
PetscErrorCode TCBoundHasDevice(PetscBool *has, const char *why_not[]) {
  tcbound::Executor *executor;

  PetscFunctionBegin;
  PetscCall(TCBoundGetCUDAExecutor(&executor, why_not));
  *has = executor ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  TCBoundGetDeviceName - The name of the CUDA device that this process uses

  Not Collective

  Output Parameter:
. name - as the driver spells it; an error where there is no device

  Level: intermediate

.seealso: `TCBoundHasDevice()`
@*/
PetscErrorCode TCBoundGetDeviceName(const char *name[]) {
  tcbound::Executor *executor;
  const char        *why_not;

  PetscFunctionBegin;
  PetscCall(TCBoundGetCUDAExecutor(&executor, &why_not));
  PetscCheck(executor, PETSC_COMM_SELF, PETSC_ERR_SUP, "No device: %s", why_not);
  *name = executor->device().name.c_str();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  TCBoundGetKernels - Names of all kernels of an operation that this build lists

  Not Collective

  Input Parameter:
. op - the operation, such as "spmv"

  Output Parameters:
+ n     - how many there are
- names - their names, such as spmv/csr/cuda_core, in a fixed order; do not free

  Level: intermediate

.seealso: `MatTCBoundCheckKernel()`, `MATAIJTCBOUND`
@*/
PetscErrorCode TCBoundGetKernels(const char op[], PetscInt *n, const char *const *names[]) {
  static std::vector<const char *> list;

  PetscFunctionBegin;
  PetscAssertPointer(op, 1);
  list.clear();
  for (const tcbound::Kernel *kernel : tcbound::all_kernels())
    if (kernel->op() == op) list.push_back(kernel->name().c_str());
  *n = static_cast<PetscInt>(list.size());
  *names = list.data();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCBoundFinalize(void) {
  PetscFunctionBegin;
  if (cuda_executor) cuda_executor->set_stream(nullptr); // PETSc's stream ends with PETSc
  initialized = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  TCBoundInitialize - Registers tcbound's matrix and vector types, its preconditioner, its solver types and its log

  Collective on `PETSC_COMM_WORLD`

  Level: beginner

  Notes:
  For applications that link libtcbound: call it after `PetscInitialize()`. With `-dll_append libtcbound.so` PETSc does the
  same by itself. More calls do nothing.

.seealso: `MATAIJTCBOUND`, `PetscDLLibraryAppend()`
@*/
PetscErrorCode TCBoundInitialize(void) {
  PetscFunctionBegin;
  if (initialized) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscRegisterFinalize(TCBoundFinalize)); // finalizers run last in, first out: the log's before this one
  PetscCall(TCBoundLogInitialize());
  PetscCall(MatTCBoundRegisterAll());
  PetscCall(VecTCBoundRegisterAll());
  PetscCall(PCTCBoundRegisterAll());
  initialized = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The entry point of -dll_append: its name is PetscDLLibraryRegister_ and the library's name without lib and .so.
PETSC_EXTERN PetscErrorCode PetscDLLibraryRegister_tcbound(void);
PetscErrorCode              PetscDLLibraryRegister_tcbound(void) {
               PetscFunctionBegin;
               PetscCall(TCBoundInitialize());
               PetscFunctionReturn(PETSC_SUCCESS);
}
