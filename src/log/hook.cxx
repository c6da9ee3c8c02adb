// The log's life: from TCBoundLogInitialize() over the log handlers' views to the end of PetscFinalize().
//
// PetscLogView() views only handlers of type "default" or "nested" (XML and flame graphs), so that the rows enter -log_view by
// wrapping the views of these. A handler that -log_view, PetscLogDefaultBegin() or PetscLogNestedBegin() makes later comes from
// the registered constructor, which is therefore replaced too. PetscFinalize() views after the finalizers (and after the
// device contexts are gone): the finalizer turns all that is pending into numbers, and the wrapped handlers' destroy frees them.
#include <petsc/private/loghandlerimpl.h>

#include "../model/machine.h"
#include "logimpl.h"

namespace {

// PETSc's own operations of a type of handler.
struct Wrapped {
  const char *type;
  PetscErrorCode (*create)(PetscLogHandler);
  PetscErrorCode (*view)(PetscLogHandler, PetscViewer);
  PetscErrorCode (*destroy)(PetscLogHandler);
};
enum { WRAPPED_DEFAULT, WRAPPED_NESTED, WRAPPED_TYPES };
Wrapped wrapped[WRAPPED_TYPES] = {{PETSCLOGHANDLERDEFAULT, NULL, NULL, NULL}, {PETSCLOGHANDLERNESTED, NULL, NULL, NULL}};

} // namespace

static PetscErrorCode TCBoundLogFree(void) {
  PetscFunctionBegin;
  delete tcbound_log;
  tcbound_log = NULL;
  PetscCall(TCBoundLogForgetCeilings());
  PetscCall(TCBoundLogForgetMachines());
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int type> static PetscErrorCode PetscLogHandlerView_TCBound(PetscLogHandler handler, PetscViewer viewer) {
  PetscFunctionBegin;
  PetscCall((*wrapped[type].view)(handler, viewer));
  PetscCall(TCBoundLogPrint(viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int type> static PetscErrorCode PetscLogHandlerDestroy_TCBound(PetscLogHandler handler) {
  PetscFunctionBegin;
  PetscCall((*wrapped[type].destroy)(handler));
  if (tcbound_log && tcbound_log->closed) PetscCall(TCBoundLogFree());
  PetscFunctionReturn(PETSC_SUCCESS);
}

bool TCBoundLogIsHooked(PetscLogHandler handler) {
  return handler->ops->view == PetscLogHandlerView_TCBound<WRAPPED_DEFAULT> ||
         handler->ops->view == PetscLogHandlerView_TCBound<WRAPPED_NESTED>;
}

template <int type> static PetscErrorCode TCBoundLogHookHandler(PetscLogHandler handler) {
  PetscFunctionBegin;
  if (TCBoundLogIsHooked(handler)) PetscFunctionReturn(PETSC_SUCCESS);
  wrapped[type].view = handler->ops->view;
  wrapped[type].destroy = handler->ops->destroy;
  handler->ops->view = PetscLogHandlerView_TCBound<type>;
  handler->ops->destroy = PetscLogHandlerDestroy_TCBound<type>;
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int type> static PetscErrorCode PetscLogHandlerCreate_TCBound(PetscLogHandler handler) {
  PetscFunctionBegin;
  PetscCall((*wrapped[type].create)(handler));
  PetscCall(TCBoundLogHookHandler<type>(handler));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int type> static PetscErrorCode TCBoundLogHookType(void) {
  PetscFunctionBegin;
  PetscCall(PetscFunctionListFind(PetscLogHandlerList, wrapped[type].type, &wrapped[type].create));
  PetscCheck(wrapped[type].create, PETSC_COMM_SELF, PETSC_ERR_PLIB, "PETSc has no log handler of type %s", wrapped[type].type);
  PetscCall(PetscLogHandlerRegister(wrapped[type].type, PetscLogHandlerCreate_TCBound<type>));
  for (int i = 0; i < PETSC_LOG_HANDLER_MAX; i++) {
    const PetscLogHandler h = PetscLogHandlers[i].handler;
    PetscBool             is = PETSC_FALSE;

    if (h) PetscCall(PetscObjectTypeCompare((PetscObject)h, wrapped[type].type, &is));
    if (is) PetscCall(TCBoundLogHookHandler<type>(h));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCBoundLogHook(void) {
  PetscLogHandler handler;

  PetscFunctionBegin;
  // PETSc fills its list of constructors when the first handler is made, which need not have happened yet.
  PetscCall(PetscLogHandlerCreate(PETSC_COMM_WORLD, &handler));
  PetscCall(PetscLogHandlerDestroy(&handler));
  PetscCall(TCBoundLogHookType<WRAPPED_DEFAULT>());
  PetscCall(TCBoundLogHookType<WRAPPED_NESTED>());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static bool TCBoundLogHasHandler(void) {
  for (int i = 0; i < PETSC_LOG_HANDLER_MAX; i++)
    if (PetscLogHandlers[i].handler && TCBoundLogIsHooked(PetscLogHandlers[i].handler)) return true;
  return false;
}

static PetscErrorCode TCBoundLogFinalize(void) {
  const bool viewed = TCBoundLogHasHandler();

  PetscFunctionBegin;
  if (!tcbound_log->json_file.empty()) PetscCall(TCBoundLogWriteJSON(PETSC_COMM_WORLD, tcbound_log->json_file.c_str()));
  if (viewed) { // measures the ceilings that its views will show
    tcbound::Report report;

    PetscCall(TCBoundLogReduce(PETSC_COMM_WORLD, &report));
  }
  PetscCall(TCBoundLogDrain());
  tcbound_log->queues.clear();
  tcbound_log->counters.reset();
  for (auto &[key, row] : tcbound_log->rows) {
    (void)key;
    row->open.reset();
  }
  tcbound_log->closed = PETSC_TRUE;
  if (!viewed) PetscCall(TCBoundLogFree());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCBoundLogGetOptions(TCBoundLogState *state) {
  char      json[PETSC_MAX_PATH_LEN] = "", machine[PETSC_MAX_PATH_LEN] = "";
  PetscBool set_json, set_machine;

  PetscFunctionBegin;
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "tcbound log options", "TCBoundInitialize");
  PetscCall(PetscOptionsBool("-tcbound_log", "Time kernels where PETSc logs, and judge them at the end of -log_view",
                             "TCBoundSetLog", state->enabled, &state->enabled, NULL));
  PetscCall(PetscOptionsString("-tcbound_log_json", "File for the roofline rows as JSON", "TCBoundInitialize", "", json,
                               sizeof(json), &set_json));
  PetscCall(PetscOptionsBool("-tcbound_log_detail", "All columns in the roofline table, which is then wide",
                             "TCBoundInitialize", state->detail, &state->detail, NULL));
  PetscCall(PetscOptionsBool("-tcbound_counters", "Read the device's hardware counters during one call of each kernel",
                             "TCBoundInitialize", state->count, &state->count, NULL));
  PetscCall(PetscOptionsString("-tcbound_machine", "File of ceilings that override measured and built-in ones",
                               "TCBoundInitialize", "", machine, sizeof(machine), &set_machine));
  PetscOptionsEnd();
  PetscCheck(!set_json || json[0], PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-tcbound_log_json needs the name of a file");
  PetscCheck(!set_machine || machine[0], PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-tcbound_machine needs the name of a file");
  PetscCheck(state->enabled || !set_json, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-tcbound_log_json needs -tcbound_log true");
  PetscCheck(state->enabled || !state->count, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT,
             "-tcbound_counters needs -tcbound_log true");
  // Wrong files fail now rather than after the run.
  if (set_machine) {
    try {
      tcbound::model::load_machines(machine, {});
    } catch (const std::exception &e) {
      SETERRQ(PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "-tcbound_machine: %s", e.what());
    }
  }
  if (set_json) PetscCall(TCBoundLogCheckJSON(PETSC_COMM_WORLD, json));
  state->json_file = json;
  state->machine_file = machine;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundLogInitialize(void) {
  auto   state = std::make_unique<TCBoundLogState>();
  int    argc = 0;
  char **argv = NULL;

  PetscFunctionBegin;
  PetscCall(TCBoundLogGetOptions(state.get()));
  PetscCall(TCBoundLogFree());
  tcbound_log = state.release();
  PetscCall(PetscGetArgs(&argc, &argv)); // gone in PetscFinalize()
  if (argv) tcbound_log->command_line.assign(argv, argv + argc);
  PetscCall(TCBoundLogHook());
  PetscCall(PetscRegisterFinalize(TCBoundLogFinalize));
  PetscFunctionReturn(PETSC_SUCCESS);
}
