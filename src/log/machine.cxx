// The machine whose ceilings the rows of a report are held against, over all ranks of a communicator.
#include <algorithm>

#include "../model/present.h"
#include "logimpl.h"

#include "../tcboundimpl.h"

using tcbound::model::DataType;
using tcbound::model::DeviceName;
using tcbound::model::Figure;
using tcbound::model::Level;
using tcbound::model::Machine;
using tcbound::model::Unit;

static std::map<TCBoundGroup, tcbound::ReportMachine> machines;

PetscErrorCode TCBoundLogForgetMachines(void) {
  PetscFunctionBegin;
  machines.clear();
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The figures that sum over ranks and that kernels are held against.
static std::vector<Figure *> TCBoundMachineFigures(Machine *machine) {
  std::vector<Figure *> figures{&machine->sm_count};
  for (auto &level : machine->levels) {
    figures.push_back(&level.bandwidth);
    figures.push_back(&level.capacity);
  }
  for (const Unit unit : {Unit::cuda_core, Unit::tensor_core, Unit::host})
    figures.push_back(&machine->at(unit, DataType::fp64));
  figures.push_back(&machine->at(Unit::cuda_core, DataType::fp32)); // beside TF32 and BF16
  for (const DataType type : {DataType::tf32, DataType::bf16}) figures.push_back(&machine->at(Unit::tensor_core, type));
  for (const DataType type : {DataType::fp64, DataType::tf32, DataType::bf16})
    for (const auto &shape : tcbound::model::mma_shapes()) figures.push_back(&machine->mma_peaks[{shape.name, type}]);
  return figures;
}

// Sums `share` of each figure over the ranks where `here`; known if all of those know it. The launch is the slowest one's.
static PetscErrorCode TCBoundSumMachine(MPI_Comm comm, bool here, double share, Machine *machine) {
  const auto          figures = TCBoundMachineFigures(machine);
  const std::size_t   n = figures.size();
  std::vector<double> sums(2 * n + 2, 0.);
  double              launch = machine->launch.value();
  PetscMPIInt         count;

  PetscFunctionBegin;
  for (std::size_t i = 0; here && i < n; i++) {
    sums[i] = share * figures[i]->value();
    sums[n + i] = figures[i]->known();
  }
  sums[2 * n] = here;
  sums[2 * n + 1] = here && machine->launch.known();
  PetscCall(PetscMPIIntCast((MPIU_Count)sums.size(), &count));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sums.data(), count, MPI_DOUBLE, MPI_SUM, comm));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &launch, 1, MPI_DOUBLE, MPI_MAX, comm));
  const double ranks = sums[2 * n];
  for (std::size_t i = 0; i < n; i++) {
    const bool known = ranks > 0 && sums[n + i] == ranks;
    *figures[i] = known ? Figure{0, sums[i], "", "the sum over ranks"} : Figure{};
  }
  machine->launch = ranks > 0 && sums[2 * n + 1] == ranks ? Figure{0, launch, "", "the slowest rank's"} : Figure{};
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Whose figures files may give: this rank's device, or its host with so many processes.
static PetscErrorCode TCBoundGetDeviceName(tcbound::MemorySpace space, int processes, DeviceName *name, bool *here) {
  tcbound::Executor *executor;
  char               host[256];

  PetscFunctionBegin;
  if (space == tcbound::MemorySpace::host)
    PetscCall(TCBoundGetHostExecutor(&executor));
  else
    PetscCall(TCBoundGetCUDAExecutor(&executor, NULL));
  *here = executor != NULL;
  if (!executor) PetscFunctionReturn(PETSC_SUCCESS);
  name->name = executor->device().name;
  name->driver = executor->device().driver;
  if (space == tcbound::MemorySpace::cuda) {
    name->id = tcbound::model::calibration_id(executor->device().id);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscGetHostName(host, sizeof(host)));
  name->id = tcbound::model::host_calibration_id(host);
  name->processes = processes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCBoundReadGiven(const DeviceName &name, tcbound::model::Given *given) {
  PetscFunctionBegin;
  try {
    *given = tcbound::model::given_machine(name, tcbound_log ? tcbound_log->machine_file : std::string());
  } catch (const std::exception &e) {
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s", e.what());
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundLogReadCalibration(tcbound::MemorySpace space) {
  DeviceName            name;
  tcbound::model::Given given;
  bool                  here;

  PetscFunctionBegin;
  bool &read = tcbound_log->calibration_read[space == tcbound::MemorySpace::cuda];
  if (read) PetscFunctionReturn(PETSC_SUCCESS);
  read = true;
  PetscCall(TCBoundGetDeviceName(space, 1, &name, &here));
  if (here) PetscCall(TCBoundReadGiven(name, &given));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// How many ranks use this one's device or host.
static PetscErrorCode TCBoundGetSharers(MPI_Comm comm, tcbound::MemorySpace space, PetscMPIInt *sharers) {
  PetscFunctionBegin;
  if (space == tcbound::MemorySpace::cuda) {
    tcbound::Executor *executor;
    TCBoundTurns       turns;

    PetscCall(TCBoundGetCUDAExecutor(&executor, NULL));
    PetscCall(TCBoundGetTurns(comm, executor, &turns));
    *sharers = turns.ranks;
  } else {
    MPI_Comm node;

    PetscCallMPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    PetscCallMPI(MPI_Comm_size(node, sharers));
    PetscCallMPI(MPI_Comm_free(&node));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The distinct non-empty texts of all ranks, one after the other.
static PetscErrorCode TCBoundJoinTexts(MPI_Comm comm, const std::string &mine, std::string *all) {
  std::vector<std::string> texts;

  PetscFunctionBegin;
  if (!mine.empty()) texts.push_back(mine);
  PetscCall(TCBoundLogUnion(comm, &texts));
  all->clear();
  for (const std::string &text : texts) *all += (all->empty() ? "" : " | ") + text;
  PetscFunctionReturn(PETSC_SUCCESS);
}

// What files do not give and the run can measure.
static bool TCBoundLacks(const Machine &given, tcbound::MemorySpace space) {
  if (!given.at(Level::dram).bandwidth.known()) return true;
  if (space == tcbound::MemorySpace::host) return !given.at(Unit::host, DataType::fp64).known();
  return !given.at(Level::l2).bandwidth.known() || !given.launch.known();
}

static Machine TCBoundMeasuredMachine(const TCBoundCeilings &ceilings) {
  Machine    machine;
  const auto set = [](Figure &figure, double value) {
    if (value > 0) figure = Figure{0, value, "", "measured in this run"};
  };
  set(machine.at(Level::dram).bandwidth, ceilings.bandwidth);
  set(machine.at(Level::l2).bandwidth, ceilings.cache_bandwidth);
  set(machine.at(Unit::host, DataType::fp64), ceilings.peak);
  set(machine.launch, ceilings.launch);
  return machine;
}

PetscErrorCode TCBoundLogGetMachine(MPI_Comm comm, tcbound::MemorySpace space, tcbound::ReportMachine *machine) {
  TCBoundGroup          group{space, {}};
  DeviceName            name;
  tcbound::model::Given given;
  TCBoundCeilings       ceilings;
  PetscMPIInt           sharers;
  bool                  here;

  PetscFunctionBegin;
  PetscCall(TCBoundGetGroup(comm, &group.second));
  const auto kept = machines.find(group);
  if (kept != machines.end()) {
    *machine = kept->second;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(TCBoundGetSharers(comm, space, &sharers));
  PetscCall(TCBoundGetDeviceName(space, sharers, &name, &here));
  if (here) PetscCall(TCBoundReadGiven(name, &given));
  const bool  device = space == tcbound::MemorySpace::cuda;
  Machine     built_in = here ? tcbound::model::present_machine(name, {}, {}) : Machine{};
  std::string built_in_name = here && device ? tcbound::model::built_in_name_of(name.name) : std::string();
  if (device && here && !built_in.at(Level::l2).capacity.known()) {
    tcbound::Executor *executor;

    PetscCall(TCBoundGetCUDAExecutor(&executor, NULL));
    built_in.at(Level::l2).capacity = Figure{0, (double)executor->device().l2_bytes, "", "reported by the device"};
  }
  PetscCall(TCBoundSumMachine(comm, here, 1.0 / sharers, &built_in));
  PetscCall(TCBoundSumMachine(comm, here, 1.0 / sharers, &given.machine));
  if (TCBoundLacks(given.machine, space)) PetscCall(TCBoundLogCeilings(comm, space, &ceilings));
  machine->machine = built_in;
  overlay(machine->machine, TCBoundMeasuredMachine(ceilings));
  overlay(machine->machine, given.machine);
  PetscCall(TCBoundJoinTexts(comm, here ? name.name : "", &machine->device));
  PetscCall(TCBoundJoinTexts(comm, given.origin, &machine->files));
  PetscCall(TCBoundJoinTexts(comm, built_in_name, &machine->built_in));
  machine->measured = ceilings.bandwidth > 0;
  if (tcbound_log && !tcbound_log->closed) machines[group] = *machine;
  PetscFunctionReturn(PETSC_SUCCESS);
}
