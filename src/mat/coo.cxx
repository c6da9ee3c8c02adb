// COO assembly: PETSc's own, which wants its arrays on the host, for arrays on the host and on a device.
#include "aijtcbound.h"

#include <petscdevice.h>

typedef PetscErrorCode (*PreallocationCOO)(Mat, PetscCount, PetscInt[], PetscInt[]);
typedef PetscErrorCode (*ValuesCOO)(Mat, const PetscScalar[], InsertMode);

static PreallocationCOO base_preallocation[2]; // MATSEQAIJ's, MATMPIAIJ's
static ValuesCOO        base_values[2];

static PetscErrorCode GetEntries(Mat A, PetscBool *parallel, PetscCount **entries) {
  PetscFunctionBegin;
  PetscCall(MatIsMPIAIJTCBound(A, parallel));
  *entries = *parallel ? &static_cast<Mat_MPIAIJTCBound *>(A->spptr)->coo_entries
                       : &static_cast<Mat_SeqAIJTCBound *>(A->spptr)->coo_entries;
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Host memory with the same n elements: the array itself, or a copy of a device array that *copy owns.
template <class T> static PetscErrorCode ToHost(const T *array, PetscCount n, const T **host, T **copy) {
  PetscMemType       memtype = PETSC_MEMTYPE_HOST;
  tcbound::Executor *executor;
  const char        *why_not;

  PetscFunctionBegin;
  *copy = NULL;
  *host = array;
  if (n) PetscCall(PetscGetMemType(array, &memtype));
  if (PetscMemTypeHost(memtype)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TCBoundGetCUDAExecutor(&executor, &why_not));
  PetscCheck(executor && PetscMemTypeCUDA(memtype), PETSC_COMM_SELF, PETSC_ERR_SUP,
             "COO array in device memory that tcbound cannot read: %s", why_not ? why_not : "it is not CUDA memory");
  PetscCall(PetscMalloc1(n, copy));
  PetscCall(TCBoundUsePetscStream(*executor));
  TCBoundCallCXX(executor->copy(*copy, tcbound::MemorySpace::host, array, tcbound::MemorySpace::cuda, n * sizeof(T)));
  PetscCall(PetscLogGpuToCpu(static_cast<PetscLogDouble>(n) * sizeof(T)));
  *host = *copy;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetPreallocationCOO_TCBound(Mat A, PetscCount n, PetscInt i[], PetscInt j[]) {
  PetscBool       parallel;
  PetscCount     *entries = NULL;
  const PetscInt *host_i, *host_j;
  PetscInt       *copy_i, *copy_j;

  PetscFunctionBegin;
  PetscCall(ToHost(i, n, &host_i, &copy_i));
  PetscCall(ToHost(j, n, &host_j, &copy_j));
  PetscCall(GetEntries(A, &parallel, &entries));
  // The base function may change the arrays, as its manual page says.
  PetscCall((*base_preallocation[parallel])(A, n, const_cast<PetscInt *>(host_i), const_cast<PetscInt *>(host_j)));
  PetscCall(PetscFree(copy_i));
  PetscCall(PetscFree(copy_j));
  PetscCall(GetEntries(A, &parallel, &entries));
  *entries = n;
  if (parallel) PetscCall(MatMPIAIJTCBoundAdoptBlocks(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetValuesCOO_TCBound(Mat A, const PetscScalar v[], InsertMode mode) {
  PetscBool          parallel;
  PetscCount        *entries = NULL;
  const PetscScalar *host;
  PetscScalar       *copy;

  PetscFunctionBegin;
  PetscCall(GetEntries(A, &parallel, &entries));
  PetscCall(ToHost(v, *entries, &host, &copy));
  PetscCall((*base_values[parallel])(A, host, mode));
  PetscCall(PetscFree(copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCBoundComposeCOO(Mat A, PetscBool parallel, PetscBool compose) {
  PetscObject obj = (PetscObject)A;

  PetscFunctionBegin;
  if (!compose) { // back to the base type's
    PetscCall(PetscObjectComposeFunction(obj, "MatSetPreallocationCOO_C", base_preallocation[parallel]));
    PetscCall(PetscObjectComposeFunction(obj, "MatSetValuesCOO_C", base_values[parallel]));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!base_values[parallel]) {
    PetscCall(PetscObjectQueryFunction(obj, "MatSetPreallocationCOO_C", &base_preallocation[parallel]));
    PetscCall(PetscObjectQueryFunction(obj, "MatSetValuesCOO_C", &base_values[parallel]));
  }
  PetscCall(PetscObjectComposeFunction(obj, "MatSetPreallocationCOO_C", MatSetPreallocationCOO_TCBound));
  PetscCall(PetscObjectComposeFunction(obj, "MatSetValuesCOO_C", MatSetValuesCOO_TCBound));
  PetscFunctionReturn(PETSC_SUCCESS);
}
