// The log's life: from TCBoundLogInitialize() over the default log handler's views to the end of PetscFinalize().
//
// PetscLogView() views only handlers of type "default" or "nested", so that the rows enter -log_view by wrapping the default
// handler's view. A handler that -log_view or PetscLogDefaultBegin() makes later comes from the registered constructor, which
// is therefore replaced too. PetscFinalize() views after the finalizers (and after the device contexts are gone): the finalizer
// turns all that is pending into numbers, and the wrapped handler's destroy frees them.
#include <petsc/private/loghandlerimpl.h>

#include "logimpl.h"

static PetscErrorCode (*petsc_create)(PetscLogHandler) = NULL;
static PetscErrorCode (*petsc_view)(PetscLogHandler, PetscViewer) = NULL;
static PetscErrorCode (*petsc_destroy)(PetscLogHandler) = NULL;

static PetscErrorCode TCBoundLogFree(void) {
  PetscFunctionBegin;
  delete tcbound_log;
  tcbound_log = NULL;
  PetscCall(TCBoundLogForgetCeilings());
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscLogHandlerView_TCBound(PetscLogHandler handler, PetscViewer viewer) {
  PetscFunctionBegin;
  PetscCall((*petsc_view)(handler, viewer));
  PetscCall(TCBoundLogPrint(viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PetscLogHandlerDestroy_TCBound(PetscLogHandler handler) {
  PetscFunctionBegin;
  PetscCall((*petsc_destroy)(handler));
  if (tcbound_log && tcbound_log->closed) PetscCall(TCBoundLogFree());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCBoundLogHookHandler(PetscLogHandler handler) {
  PetscFunctionBegin;
  if (handler->ops->view == PetscLogHandlerView_TCBound) PetscFunctionReturn(PETSC_SUCCESS);
  petsc_view = handler->ops->view;
  petsc_destroy = handler->ops->destroy;
  handler->ops->view = PetscLogHandlerView_TCBound;
  handler->ops->destroy = PetscLogHandlerDestroy_TCBound;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PetscLogHandlerCreate_TCBound(PetscLogHandler handler) {
  PetscFunctionBegin;
  PetscCall((*petsc_create)(handler));
  PetscCall(TCBoundLogHookHandler(handler));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCBoundLogHook(void) {
  PetscLogHandler handler;

  PetscFunctionBegin;
  // PETSc fills its list of constructors when the first handler is made, which need not have happened yet.
  PetscCall(PetscLogHandlerCreate(PETSC_COMM_WORLD, &handler));
  PetscCall(PetscLogHandlerDestroy(&handler));
  PetscCall(PetscFunctionListFind(PetscLogHandlerList, PETSCLOGHANDLERDEFAULT, &petsc_create));
  PetscCheck(petsc_create, PETSC_COMM_SELF, PETSC_ERR_PLIB, "PETSc has no default log handler");
  PetscCall(PetscLogHandlerRegister(PETSCLOGHANDLERDEFAULT, PetscLogHandlerCreate_TCBound));
  PetscCall(PetscLogGetDefaultHandler(&handler));
  if (handler) PetscCall(TCBoundLogHookHandler(handler));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCBoundLogFinalize(void) {
  PetscLogHandler handler;

  PetscFunctionBegin;
  PetscCall(PetscLogGetDefaultHandler(&handler));
  if (!tcbound_log->json_file.empty()) PetscCall(TCBoundLogWriteJSON(PETSC_COMM_WORLD, tcbound_log->json_file.c_str()));
  if (handler) { // measures the ceilings that its views will show
    tcbound::Report report;

    PetscCall(TCBoundLogReduce(PETSC_COMM_WORLD, &report));
  }
  PetscCall(TCBoundLogDrain());
  tcbound_log->queues.clear();
  for (auto &[key, row] : tcbound_log->rows) {
    (void)key;
    row->open.reset();
  }
  tcbound_log->closed = PETSC_TRUE;
  if (!handler) PetscCall(TCBoundLogFree());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCBoundLogGetOptions(char file[], size_t length, PetscBool *set) {
  PetscFunctionBegin;
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "tcbound log options", "TCBoundInitialize");
  PetscCall(
    PetscOptionsString("-tcbound_log_json", "File for the roofline rows as JSON", "TCBoundInitialize", "", file, length, set));
  PetscOptionsEnd();
  PetscCheck(!*set || file[0], PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-tcbound_log_json needs the name of a file");
  // Fails now rather than after the run.
  if (*set) PetscCall(TCBoundLogCheckJSON(PETSC_COMM_WORLD, file));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundLogInitialize(void) {
  char      file[PETSC_MAX_PATH_LEN] = "";
  PetscBool json;
  int       argc = 0;
  char    **argv = NULL;

  PetscFunctionBegin;
  PetscCall(TCBoundLogGetOptions(file, sizeof(file), &json));
  PetscCall(TCBoundLogFree());
  tcbound_log = new TCBoundLogState;
  if (json) tcbound_log->json_file = file;
  PetscCall(PetscGetArgs(&argc, &argv)); // gone in PetscFinalize()
  if (argv) tcbound_log->command_line.assign(argv, argv + argc);
  PetscCall(TCBoundLogHook());
  PetscCall(PetscRegisterFinalize(TCBoundLogFinalize));
  PetscFunctionReturn(PETSC_SUCCESS);
}
