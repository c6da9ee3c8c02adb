#pragma once

#include <petscviewer.h>

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "../../kernels/counters.h"
#include "log.h"
#include "report.h"
#include "samples.h"

struct _n_TCBoundLogRow {
  std::string          event, label, kernel, mma;
  tcbound::MemorySpace space = tcbound::MemorySpace::host;
  // Of all calls ended, where samples lack those still pending.
  double       bytes = 0, compulsory_bytes = 0, useful_flops = 0, issued_flops = 0, padded_flops = 0;
  double       joules = 0, joules_calls = 0, joules_before = 0; // as PETSc logs energy, of how many calls; at the last Begin
  std::int64_t calls = 0; // ended; samples has those that were timed and whose time is known
  tcbound::Samples samples;

  bool                               extra = false; // calls that only -mat_tcbound_compare makes
  bool                               begun = false; // between Begin and End,
  std::unique_ptr<tcbound::Interval> open;          // and what times that call if it is timed

  // Of one call (-tcbound_counters).
  bool            count_tried = false, counted = false;
  tcbound::Counts counts;
  tcbound::Work   counted_work;
};

// An executor's intervals: in the order of End those that the device may still work on, and those to use again.
struct TCBoundLogQueue {
  struct Pending {
    TCBoundLogRow                      row;
    std::unique_ptr<tcbound::Interval> interval;
  };
  std::deque<Pending>                             pending;
  std::vector<std::unique_ptr<tcbound::Interval>> idle;
};

// One PetscInitialize() ... PetscFinalize().
struct TCBoundLogState {
  using Key = std::tuple<std::string, std::string, std::string>; // event, label, kernel
  std::map<Key, std::unique_ptr<_n_TCBoundLogRow>> rows;
  std::map<tcbound::Executor *, TCBoundLogQueue>   queues;
  std::vector<std::string>                         command_line;
  std::string                                      json_file;                            // of -tcbound_log_json, else empty
  std::string                                      machine_file;                         // of -tcbound_machine, else empty
  PetscBool                                        enabled = PETSC_TRUE;                 // -tcbound_log, TCBoundSetLog()
  PetscBool                                        detail = PETSC_FALSE;                 // -tcbound_log_detail
  PetscBool                                        count = PETSC_FALSE;                  // -tcbound_counters
  bool                                             calibration_read[2] = {false, false}; // by MemorySpace
  tcbound::ReportCompare                           compare;
  std::unique_ptr<tcbound::Counters>               counters; // of the device, made at first use
  PetscBool                                        counters_tried = PETSC_FALSE;
  std::set<std::string>                            counter_notes; // what they could not do
  PetscLogDouble                                   counter_seconds = 0;
  PetscBool                                        closed = PETSC_FALSE; // the finalizer ran: numbers only, no executors
};

// NULL before TCBoundLogInitialize() and after the last view of PetscFinalize().
PETSC_INTERN TCBoundLogState *tcbound_log;

// Takes the times of all finished calls, waiting for those still running. Not collective.
PETSC_INTERN PetscErrorCode TCBoundLogDrain(void);

// The union over ranks, sorted and without duplicates; the strings hold no NUL. Collective.
PETSC_INTERN PetscErrorCode TCBoundLogUnion(MPI_Comm comm, std::vector<std::string> *strings);

// Reads what files say of this rank's device or host, so that a malformed file is an error at the first product rather than
// after the run. Not collective.
PETSC_INTERN PetscErrorCode TCBoundLogReadCalibration(tcbound::MemorySpace space);

// Reduces the rows over ranks, and measures the ceilings that they need at first use. Collective.
PETSC_INTERN PetscErrorCode TCBoundLogReduce(MPI_Comm comm, tcbound::Report *report);

// What the run itself measures of a memory, over the ranks that have it: a host's all at once, those of a device in turns.
struct TCBoundCeilings {
  PetscLogDouble bandwidth = 0, cache_bandwidth = 0, peak = 0; // sums; 0 where not measured
  PetscLogDouble launch = 0;                                   // the largest
};
// Measured at first use, kept per group of processes; all 0 if it was not measured before the finalizer. Collective.
PETSC_INTERN PetscErrorCode TCBoundLogCeilings(MPI_Comm comm, tcbound::MemorySpace space, TCBoundCeilings *sums);

// The machine that the ranks of comm have in that memory together, where ranks without such a memory (no device) add nothing:
// from files, from what the run measures (only if files do not give it) and from the built-in machines. Kept per group of
// processes. Collective.
PETSC_INTERN PetscErrorCode TCBoundLogGetMachine(MPI_Comm comm, tcbound::MemorySpace space, tcbound::ReportMachine *machine);

// The memory and the members' ranks in MPI_COMM_WORLD: communicators of the same processes share one measurement, and all
// members agree whether there is one.
using TCBoundGroup = std::pair<tcbound::MemorySpace, std::vector<int>>;
PETSC_INTERN PetscErrorCode TCBoundGetGroup(MPI_Comm comm, std::vector<int> *world_ranks);

// Ranks that use the same device: their kernels would run in time slices, of which a rank sees only its own.
struct TCBoundTurns {
  int mine = 0, ranks = 1, most = 1; // this rank's turn, the ranks on its device, the most on any device
};
PETSC_INTERN PetscErrorCode TCBoundGetTurns(MPI_Comm comm, const tcbound::Executor *executor, TCBoundTurns *turns);

PETSC_INTERN PetscErrorCode TCBoundLogForgetMachines(void);
PETSC_INTERN PetscErrorCode TCBoundLogForgetCeilings(void);

// Collective; the first process of `comm` writes. Fails on all ranks alike.
PETSC_INTERN PetscErrorCode TCBoundLogCheckJSON(MPI_Comm comm, const char file[]);
PETSC_INTERN PetscErrorCode TCBoundLogWriteJSON(MPI_Comm comm, const char file[]);

// Appends the rows to a view in that viewer's format; beside a file whose format has no place for them (XML, flame graph)
// writes them into a file of the same name and .tcbound.json; nothing for other viewers.
PETSC_INTERN PetscErrorCode TCBoundLogPrint(PetscViewer viewer);

// Whether that handler's views show our rows.
PETSC_INTERN bool TCBoundLogIsHooked(PetscLogHandler handler);
