#pragma once

#include <petscviewer.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "log.h"
#include "report.h"
#include "samples.h"

struct _n_TCBoundLogRow {
  std::string          event, label, kernel;
  tcbound::MemorySpace space = tcbound::MemorySpace::host;
  // Of all calls ended, where samples lack those still pending.
  double           bytes = 0, compulsory_bytes = 0, useful_flops = 0, issued_flops = 0;
  tcbound::Samples samples;

  std::unique_ptr<tcbound::Interval> open; // between Begin and End
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
  std::string                                      json_file;            // of -tcbound_log_json, else empty
  PetscBool                                        closed = PETSC_FALSE; // the finalizer ran: numbers only, no executors
};

// NULL before TCBoundLogInitialize() and after the last view of PetscFinalize().
PETSC_INTERN TCBoundLogState *tcbound_log;

// Takes the times of all finished calls, waiting for those still running. Not collective.
PETSC_INTERN PetscErrorCode TCBoundLogDrain(void);

// The union over ranks, sorted and without duplicates; the strings hold no NUL. Collective.
PETSC_INTERN PetscErrorCode TCBoundLogUnion(MPI_Comm comm, std::vector<std::string> *strings);

// Reduces the rows over ranks, and measures the ceilings that they need at first use. Collective.
PETSC_INTERN PetscErrorCode TCBoundLogReduce(MPI_Comm comm, tcbound::Report *report);

// The sum over ranks of the bandwidth of a memory, where ranks without such a memory (no device) count as 0. Measured at first
// use, kept per group of processes; 0 if it was not measured before the finalizer. Collective.
PETSC_INTERN PetscErrorCode TCBoundLogCeiling(MPI_Comm comm, tcbound::MemorySpace space, PetscLogDouble *sum);
PETSC_INTERN PetscErrorCode TCBoundLogForgetCeilings(void);

// Collective; the first process of `comm` writes. Fails on all ranks alike.
PETSC_INTERN PetscErrorCode TCBoundLogCheckJSON(MPI_Comm comm, const char file[]);
PETSC_INTERN PetscErrorCode TCBoundLogWriteJSON(MPI_Comm comm, const char file[]);

// Appends the rows to a view of the default handler in that viewer's format; nothing where the format has no place for them.
PETSC_INTERN PetscErrorCode TCBoundLogPrint(PetscViewer viewer);

// The view of a hooked default handler: how TCBoundLogActive() knows one.
PETSC_INTERN PetscErrorCode PetscLogHandlerView_TCBound(PetscLogHandler handler, PetscViewer viewer);
