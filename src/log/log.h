#pragma once

#include <petscsys.h>

#include <functional>

#include "../../kernels/kernel.h"
#include "../tcboundimpl.h"

// Collects what each kernel did and prints it at the end of -log_view and into -tcbound_log_json. One row per (event,
// object, kernel). All of it is a no-op unless a log is wanted.

typedef struct _n_TCBoundLogRow *TCBoundLogRow; // owned by the log; valid until PetscFinalize()

// PETSC_TRUE while a log handler runs whose views we extend (-log_view, PetscLogDefaultBegin(), PetscLogNestedBegin()) or
// -tcbound_log_json was given.
PETSC_INTERN PetscErrorCode TCBoundLogActive(PetscBool *active);

// The row of that key, made at first use. `label` is the object's name or options prefix. *row is NULL before
// TCBoundLogInitialize() and in PetscFinalize().
PETSC_INTERN PetscErrorCode TCBoundLogGetRow(const char event[], const char label[], const tcbound::Kernel &kernel,
                                             TCBoundLogRow *row);
// The same of what is no Kernel, as sweeps of stencils.
PETSC_INTERN PetscErrorCode TCBoundLogGetNamedRow(const char event[], const char label[], const char kernel[],
                                                  tcbound::MemorySpace space, TCBoundLogRow *row);

// The shape of the MMA instruction that the row's kernel runs on (Format::mma()). Not needed without tensor cores.
PETSC_INTERN PetscErrorCode TCBoundLogSetMMA(TCBoundLogRow row, const char mma[]);

// Around one application of the row's kernel, in stream order; neither waits for the device. All calls are counted, those on a
// device timed by samples (samples.h). A NULL row is not logged. An End
// without an active Begin does nothing, and a Begin whose End never came (an error in between) is forgotten.
PETSC_INTERN PetscErrorCode TCBoundLogBegin(TCBoundLogRow row, tcbound::Executor &executor);
PETSC_INTERN PetscErrorCode TCBoundLogEnd(TCBoundLogRow row, tcbound::Executor &executor, const tcbound::Work &work);

// Whether the row's hardware counters are yet to be read (-tcbound_counters; once for each row).
PETSC_INTERN bool TCBoundLogWantsCount(TCBoundLogRow row);
// Reads them while `run` does what one call of the row's kernel does, a few times over. That they are missing or forbidden is no
// error: the log says so.
PETSC_INTERN PetscErrorCode TCBoundLogCount(TCBoundLogRow row, tcbound::Executor &executor, const tcbound::Work &work,
                                            const std::function<void()> &run);
// The same of a product with so many outputs, into scratch memory: one that adds to its own output would add again and again.
PETSC_INTERN PetscErrorCode TCBoundLogCountProduct(TCBoundLogRow row, tcbound::Executor &executor, const tcbound::Work &work,
                                                   const tcbound::Product &product, PetscInt outputs,
                                                   const std::function<void(const tcbound::Product &)> &run);

// PETSc's energy log ("-log_view_gpu_energy" or "..._meter") around one application of the row's kernel: brackets
// TCBoundLogBegin/End, and nothing where PETSc logs no energy. Its meter waits for the device.
PETSC_INTERN PetscErrorCode TCBoundLogEnergyBegin(TCBoundLogRow row);
PETSC_INTERN PetscErrorCode TCBoundLogEnergyEnd(TCBoundLogRow row);

// Does run(), one application of the row's kernel, with all that PETSc's log and ours have of it.
template <class F>
PetscErrorCode TCBoundLogRun(TCBoundLogRow row, tcbound::Executor &executor, const tcbound::Work &work, const F &run) {
  const bool           on_device = executor.space() == tcbound::MemorySpace::cuda;
  const PetscLogDouble flops = static_cast<PetscLogDouble>(work.useful_flops);

  PetscFunctionBegin;
  if (on_device) PetscCall(PetscLogGpuTimeBegin());
  if (on_device) PetscCall(TCBoundLogEnergyBegin(row));
  if (row) PetscCall(TCBoundLogBegin(row, executor));
  TCBoundCallCXX(run());
  if (row) PetscCall(TCBoundLogEnd(row, executor, work));
  if (on_device) PetscCall(PetscLogGpuTimeEnd());
  if (on_device) PetscCall(TCBoundLogEnergyEnd(row));
  PetscCall(on_device ? PetscLogGpuFlops(flops) : PetscLogFlops(flops));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// What -mat_tcbound_compare costs: calls of this row are extra ones; seconds that this rank spent on set-up and on comparing
// results, and how many it compared; and that a matrix was met that no other kernel can run.
PETSC_INTERN PetscErrorCode TCBoundLogSetExtra(TCBoundLogRow row);
PETSC_INTERN PetscErrorCode TCBoundLogAddCompare(PetscLogDouble checks, PetscLogDouble seconds);
PETSC_INTERN PetscErrorCode TCBoundLogAddAlone(void);

// Hooks PETSc's log handlers, reads the options and registers the finalizer, which uses the executors: finalizers run in
// the reverse order of PetscRegisterFinalize(), so register the executors' one before this call. Collective on
// PETSC_COMM_WORLD, once per PetscInitialize().
PETSC_INTERN PetscErrorCode TCBoundLogInitialize(void);
