// Options of the vector type and the kernels that they stand for.
#include "vectcbound.h"

#include <algorithm>
#include <vector>

#include "../model/names.h"

static const std::vector<std::string> Backends = {"auto", "host", "cuda_core", "tensor_core"};

static std::vector<std::string> MMAShapes() {
  std::vector<std::string> names{"auto"};
  for (const tcbound::MmaShapeFacts &facts : tcbound::mma_shapes) names.push_back(facts.name);
  return names;
}

static PetscErrorCode CheckName(MPI_Comm comm, const char option[], const char value[], const std::vector<std::string> &valid) {
  PetscFunctionBegin;
  PetscCheck(std::find(valid.begin(), valid.end(), value) != valid.end(), comm, PETSC_ERR_ARG_OUTOFRANGE,
             "%s %s: there is no such choice; did you mean %s? Valid: %s", option, value,
             tcbound::nearest_name(value, valid).c_str(), tcbound::join_names(valid, ", ").c_str());
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundVecSettingsSetBackend(TCBoundVecSettings &settings, MPI_Comm comm, const char backend[]) {
  PetscFunctionBegin;
  PetscCall(CheckName(comm, "-vec_tcbound_backend", backend, Backends));
  settings.backend = backend;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundVecSettingsSetMMA(TCBoundVecSettings &settings, MPI_Comm comm, const char mma[]) {
  PetscFunctionBegin;
  PetscCall(CheckName(comm, "-vec_tcbound_mma", mma, MMAShapes()));
  settings.mma = tcbound::MmaShape::automatic;
  for (const tcbound::MmaShapeFacts &facts : tcbound::mma_shapes)
    if (std::string(facts.name) == mma) settings.mma = facts.shape;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundVecSettingsFromOptions(TCBoundVecSettings &settings, Vec v) {
  MPI_Comm          comm = PetscObjectComm((PetscObject)v);
  const std::string backends = "Where VecScale() runs (" + tcbound::join_names(Backends, "|") + ")";
  const std::string shapes = "The matrix instruction of tensor_core (" + tcbound::join_names(MMAShapes(), "|") + ")";
  const char       *mma = settings.mma == tcbound::MmaShape::automatic ? "auto" : tcbound::facts_of(settings.mma).name;
  char              value[64];
  PetscBool         set;

  PetscFunctionBegin;
  PetscOptionsBegin(comm, ((PetscObject)v)->prefix, "TCBound vector options", "Vec");
  PetscCall(PetscOptionsString("-vec_tcbound_backend", backends.c_str(), "VecTCBoundSetBackend", settings.backend.c_str(),
                               value, sizeof(value), &set));
  if (set) PetscCall(TCBoundVecSettingsSetBackend(settings, comm, value));
  PetscCall(PetscOptionsString("-vec_tcbound_mma", shapes.c_str(), "VecTCBoundSetMMA", mma, value, sizeof(value), &set));
  if (set) PetscCall(TCBoundVecSettingsSetMMA(settings, comm, value));
  PetscOptionsEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundVecSettingsUseDevice(const TCBoundVecSettings &settings, PetscBool *device) {
  tcbound::Executor *cuda = NULL;
  const char        *why_not = NULL;

  PetscFunctionBegin;
  *device = PETSC_FALSE;
  PetscCheck(settings.mma == tcbound::MmaShape::automatic || settings.backend == "tensor_core", PETSC_COMM_SELF, PETSC_ERR_SUP,
             "-vec_tcbound_mma %s chooses the instruction of -vec_tcbound_backend tensor_core, and the backend is %s",
             tcbound::facts_of(settings.mma).name, settings.backend.c_str());
  if (settings.backend == "host") PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TCBoundGetCUDAExecutor(&cuda, &why_not));
  PetscCheck(cuda || settings.backend == "auto", PETSC_COMM_SELF, PETSC_ERR_SUP,
             "-vec_tcbound_backend %s cannot run here: %s. -vec_tcbound_backend auto or host works everywhere",
             settings.backend.c_str(), why_not);
  if (cuda && settings.backend == "tensor_core") {
    const auto *kernel = dynamic_cast<const tcbound::VectorKernel *>(tcbound::find_kernel("scale/array/tensor_core"));
    std::string reason;
    TCBoundCallCXX(reason = kernel->check_vectors(cuda->device(), 0, settings.mma));
    PetscCheck(reason.empty(), PETSC_COMM_SELF, PETSC_ERR_SUP,
               "-vec_tcbound_backend tensor_core cannot run here: %s. -vec_tcbound_backend auto or cuda_core can",
               reason.c_str());
  }
  *device = cuda ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundVecChooseKernels(Vec_TCBound *t) {
  const char *device = t->settings.backend == "tensor_core" ? "scale/array/tensor_core" : "scale/array/cuda_core";

  PetscFunctionBegin;
  t->scale[0] = dynamic_cast<const tcbound::ElementwiseKernel *>(tcbound::find_kernel("scale/array/host"));
  t->scale[1] = dynamic_cast<const tcbound::ElementwiseKernel *>(tcbound::find_kernel(device)); // NULL without CUDA
  PetscFunctionReturn(PETSC_SUCCESS);
}
