// What hardware counters say of each kernel (-tcbound_counters).
#include "logimpl.h"

#include <petsctime.h>

#include "../tcboundimpl.h"

// The counters that count this executor's kernels; *counters is NULL where there are none, and the log then says why.
static PetscErrorCode TCBoundLogGetCounters(tcbound::Executor &executor, tcbound::Counters **counters) {
  PetscFunctionBegin;
  *counters = NULL;
  if (!tcbound_log->counters && !tcbound_log->counters_tried && executor.space() == tcbound::MemorySpace::cuda) {
    tcbound_log->counters_tried = PETSC_TRUE;
    try {
      tcbound_log->counters = tcbound::make_cuda_counters(executor);
    } catch (const tcbound::Error &e) {
      if (e.code() != tcbound::ErrorCode::unsupported) SETERRQ(PETSC_COMM_SELF, TCBoundErrorCode(e), "%s", e.what());
      tcbound_log->counter_notes.insert(std::string("nothing is measured: ") + e.what());
    }
  }
  if (tcbound_log->counters && tcbound_log->counters->space() == executor.space())
    *counters = tcbound_log->counters.get();
  else if (executor.space() == tcbound::MemorySpace::host)
    tcbound_log->counter_notes.insert("kernels on the host are not measured");
  PetscFunctionReturn(PETSC_SUCCESS);
}

bool TCBoundLogWantsCount(TCBoundLogRow row) { return row && !row->count_tried && tcbound_log && tcbound_log->count; }

PetscErrorCode TCBoundLogCount(TCBoundLogRow row, tcbound::Executor &executor, const tcbound::Work &work,
                               const std::function<void()> &run) {
  tcbound::Counters *counters;
  PetscLogDouble     start, end;

  PetscFunctionBegin;
  if (!TCBoundLogWantsCount(row)) PetscFunctionReturn(PETSC_SUCCESS);
  row->count_tried = true;
  PetscCall(PetscTime(&start));
  PetscCall(TCBoundLogGetCounters(executor, &counters));
  if (!counters) PetscFunctionReturn(PETSC_SUCCESS);
  try {
    row->counts = counters->measure(run);
    row->counted_work = work;
    row->counted = true;
    for (const std::string &missing : counters->missing()) tcbound_log->counter_notes.insert(missing);
  } catch (const tcbound::Error &e) {
    if (e.code() != tcbound::ErrorCode::unsupported) SETERRQ(PETSC_COMM_SELF, TCBoundErrorCode(e), "%s", e.what());
    tcbound_log->counter_notes.insert(row->kernel + " is not measured: " + e.what());
  }
  PetscCall(PetscTime(&end));
  tcbound_log->counter_seconds += end - start;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundLogCountProduct(TCBoundLogRow row, tcbound::Executor &executor, const tcbound::Work &work,
                                      const tcbound::Product &product, PetscInt outputs,
                                      const std::function<void(const tcbound::Product &)> &run) {
  tcbound::Product       repeated = product;
  tcbound::Array<double> z;

  PetscFunctionBegin;
  if (!TCBoundLogWantsCount(row)) PetscFunctionReturn(PETSC_SUCCESS);
  TCBoundCallCXX(z = tcbound::Array<double>(executor, outputs));
  repeated.z = z.data();
  if (product.in_place()) repeated.y = repeated.z;
  PetscCall(TCBoundLogCount(row, executor, work, [&] { run(repeated); }));
  PetscFunctionReturn(PETSC_SUCCESS);
}
