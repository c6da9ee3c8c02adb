// Rows, and the time stamps around calls.
#include "logimpl.h"

#include <petsc/private/loghandlerimpl.h>
#include <tcbound.h>

#include "../tcboundimpl.h"

TCBoundLogState *tcbound_log = NULL;

// Calls whose time is not yet read: enough that the device is rarely behind by as many, few enough to bound the events alive.
static const std::size_t TCBOUND_LOG_PENDING = 256;

PetscErrorCode TCBoundLogActive(PetscBool *active) {
  PetscFunctionBegin;
  *active = PETSC_FALSE;
  if (!tcbound_log || tcbound_log->closed || !tcbound_log->enabled) PetscFunctionReturn(PETSC_SUCCESS);
  if (!tcbound_log->json_file.empty()) *active = PETSC_TRUE;
  for (int i = 0; i < PETSC_LOG_HANDLER_MAX; i++) {
    const PetscLogHandler h = PetscLogHandlers[i].handler;
    if (h && TCBoundLogIsHooked(h)) *active = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  TCBoundSetLog - Switches tcbound's part of the log off and on again

  Logically Collective on `PETSC_COMM_WORLD`

  Input Parameter:
. log - `PETSC_FALSE` for calls that the log is not to have, such as those of a warm-up

  Options Database Key:
. -tcbound_log (true|false) - whether there is such a log at all

  Level: intermediate

.seealso: `TCBoundInitialize()`, `PetscLogView()`
@*/
PetscErrorCode TCBoundSetLog(PetscBool log) {
  PetscFunctionBegin;
  PetscCheck(tcbound_log, PETSC_COMM_SELF, PETSC_ERR_ORDER, "Call TCBoundInitialize() first");
  tcbound_log->enabled = log;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundLogGetNamedRow(const char event[], const char label[], const char kernel[], tcbound::MemorySpace space,
                                     TCBoundLogRow *row) {
  PetscFunctionBegin;
  PetscAssertPointer(event, 1);
  PetscAssertPointer(label, 2);
  PetscAssertPointer(kernel, 3);
  PetscAssertPointer(row, 5);
  *row = NULL;
  if (!tcbound_log || tcbound_log->closed) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TCBoundLogReadCalibration(space));
  auto &slot = tcbound_log->rows[{event, label, kernel}];
  if (!slot) {
    slot = std::make_unique<_n_TCBoundLogRow>();
    slot->event = event;
    slot->label = label;
    slot->kernel = kernel;
    slot->space = space;
  }
  *row = slot.get();
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundLogGetRow(const char event[], const char label[], const tcbound::Kernel &kernel, TCBoundLogRow *row) {
  PetscFunctionBegin;
  PetscCall(TCBoundLogGetNamedRow(event, label, kernel.name().c_str(), kernel.space(), row));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundLogSetMMA(TCBoundLogRow row, const char mma[]) {
  PetscFunctionBegin;
  if (row) row->mma = mma;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundLogSetExtra(TCBoundLogRow row) {
  PetscFunctionBegin;
  if (row) row->extra = true;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundLogAddCompare(PetscLogDouble checks, PetscLogDouble seconds) {
  PetscFunctionBegin;
  if (!tcbound_log || tcbound_log->closed) PetscFunctionReturn(PETSC_SUCCESS);
  tcbound_log->compare.checks += checks;
  tcbound_log->compare.seconds += seconds;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundLogAddAlone(void) {
  PetscFunctionBegin;
  if (tcbound_log && !tcbound_log->closed) tcbound_log->compare.alone++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The oldest call's time, which waits for the device if that call has not finished.
static PetscErrorCode TCBoundLogTakeOldest(TCBoundLogQueue &queue) {
  PetscFunctionBegin;
  TCBoundLogQueue::Pending &oldest = queue.pending.front();
  TCBoundCallCXX(oldest.row->samples.add(oldest.interval->seconds()));
  queue.idle.push_back(std::move(oldest.interval));
  queue.pending.pop_front();
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The times of finished calls, without waiting for any.
static PetscErrorCode TCBoundLogTakeReady(TCBoundLogQueue &queue) {
  PetscFunctionBegin;
  while (!queue.pending.empty()) {
    bool ready = false;
    TCBoundCallCXX(ready = queue.pending.front().interval->ready());
    if (!ready) break;
    PetscCall(TCBoundLogTakeOldest(queue));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundLogDrain(void) {
  PetscFunctionBegin;
  for (auto &[executor, queue] : tcbound_log->queues) {
    (void)executor;
    while (!queue.pending.empty()) PetscCall(TCBoundLogTakeOldest(queue));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundLogBegin(TCBoundLogRow row, tcbound::Executor &executor) {
  PetscBool active;

  PetscFunctionBegin;
  if (!row) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TCBoundLogActive(&active));
  row->begun = active;
  // A clock costs nothing, events on a device do.
  if (!active || (executor.space() == tcbound::MemorySpace::cuda && !tcbound::CallSample::takes(row->calls))) {
    row->open.reset();
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!row->open) {
    TCBoundLogQueue &queue = tcbound_log->queues[&executor];
    if (queue.idle.empty()) {
      TCBoundCallCXX(row->open = executor.interval());
    } else {
      row->open = std::move(queue.idle.back());
      queue.idle.pop_back();
    }
  }
  TCBoundCallCXX(row->open->begin());
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundLogEnd(TCBoundLogRow row, tcbound::Executor &executor, const tcbound::Work &work) {
  PetscFunctionBegin;
  if (!row || !row->begun) PetscFunctionReturn(PETSC_SUCCESS);
  row->begun = false;
  row->calls++;
  row->bytes += static_cast<double>(work.bytes);
  row->compulsory_bytes += static_cast<double>(work.compulsory_bytes);
  row->useful_flops += static_cast<double>(work.useful_flops);
  row->issued_flops += static_cast<double>(work.issued_flops);
  row->padded_flops += static_cast<double>(work.padded_flops ? work.padded_flops : work.useful_flops);
  if (!row->open) PetscFunctionReturn(PETSC_SUCCESS);
  TCBoundCallCXX(row->open->end());
  TCBoundLogQueue &queue = tcbound_log->queues[&executor];
  queue.pending.push_back({row, std::move(row->open)});
  if (queue.pending.size() > TCBOUND_LOG_PENDING) PetscCall(TCBoundLogTakeReady(queue));
  PetscFunctionReturn(PETSC_SUCCESS);
}
