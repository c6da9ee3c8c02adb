// The log's texts into PETSc's viewers and into the JSON file.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "logimpl.h"

#include "../tcboundimpl.h"

static PetscErrorCode TCBoundLogPrintLines(PetscViewer viewer, const std::string &text) {
  PetscFunctionBegin;
  for (std::size_t at = 0, end; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    PetscCall(PetscViewerASCIIPrintf(viewer, "%s\n", text.substr(at, end - at).c_str()));
  }
  PetscCall(PetscViewerFlush(viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCBoundLogGetContext(tcbound::ReportContext *context) {
  PetscInt     major, minor, subminor;
  char         date[32];
  const time_t now = time(NULL);

  PetscFunctionBegin;
  PetscCall(PetscGetVersionNumber(&major, &minor, &subminor, NULL));
  context->petsc_version = std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(subminor);
  strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
  context->date = date;
  context->command_line = tcbound_log->command_line;
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Appends or replaces; the outcome on all ranks is rank 0's errno.
static PetscErrorCode TCBoundLogWriteFile(MPI_Comm comm, const char file[], const char mode[], const std::string &text) {
  PetscMPIInt rank;
  int         error = 0;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  if (rank == 0) {
    FILE *f = fopen(file, mode);
    if (!f) {
      error = errno;
    } else {
      if (fwrite(text.data(), 1, text.size(), f) != text.size()) error = errno;
      if (fclose(f) && !error) error = errno; // a full disk may show only here
    }
  }
  PetscCallMPI(MPI_Bcast(&error, 1, MPI_INT, 0, comm));
  PetscCheck(!error, comm, PETSC_ERR_FILE_OPEN, "tcbound's log cannot write to %s: %s", file, strerror(error));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundLogCheckJSON(MPI_Comm comm, const char file[]) {
  PetscFunctionBegin;
  PetscCall(TCBoundLogWriteFile(comm, file, "a", ""));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCBoundLogWriteReport(MPI_Comm comm, const tcbound::Report &report, const char file[]) {
  tcbound::ReportContext context;

  PetscFunctionBegin;
  PetscCall(TCBoundLogGetContext(&context));
  PetscCall(TCBoundLogWriteFile(comm, file, "w", report_json(report, context)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundLogWriteJSON(MPI_Comm comm, const char file[]) {
  tcbound::Report report;

  PetscFunctionBegin;
  PetscCall(TCBoundLogReduce(comm, &report));
  PetscCall(TCBoundLogWriteReport(comm, report, file));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// XML and flame graphs have no place for a table. A viewer on the terminal has no name, and nothing is written.
static PetscErrorCode TCBoundLogWriteBeside(PetscViewer viewer, const tcbound::Report &report) {
  const char *name;

  PetscFunctionBegin;
  PetscCall(PetscViewerFileGetName(viewer, &name));
  if (!name || !name[0] || !strcmp(name, "stdout") || !strcmp(name, "stderr")) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TCBoundLogWriteReport(PetscObjectComm((PetscObject)viewer), report, (std::string(name) + ".tcbound.json").c_str()));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundLogPrint(PetscViewer viewer) {
  PetscViewerFormat format;
  tcbound::Report   report;

  PetscFunctionBegin;
  if (!tcbound_log) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerGetFormat(viewer, &format));
  const bool table = format == PETSC_VIEWER_DEFAULT || format == PETSC_VIEWER_ASCII_INFO;
  const bool python = format == PETSC_VIEWER_ASCII_INFO_DETAIL, csv = format == PETSC_VIEWER_ASCII_CSV;
  const bool nested = format == PETSC_VIEWER_ASCII_XML || format == PETSC_VIEWER_ASCII_FLAMEGRAPH;
  if (!table && !python && !csv && !nested) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TCBoundLogReduce(PetscObjectComm((PetscObject)viewer), &report));
  if (report.rows.empty()) PetscFunctionReturn(PETSC_SUCCESS);
  if (table)
    PetscCall(TCBoundLogPrintLines(viewer, report_table(report)));
  else if (csv)
    PetscCall(TCBoundLogPrintLines(viewer, report_csv(report)));
  else if (python)
    PetscCall(TCBoundLogPrintLines(viewer, report_python(report)));
  else
    PetscCall(TCBoundLogWriteBeside(viewer, report));
  PetscFunctionReturn(PETSC_SUCCESS);
}
