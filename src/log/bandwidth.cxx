// Bandwidth ceilings, measured by all processes of a communicator: of a host at the same time, of a device in turns.
#include <tcbound.h>

#include <petsc/private/petscimpl.h>

#include "logimpl.h"

#include "../tcboundimpl.h"

namespace {

struct Ceiling {
  TCBoundCeilings sums;
  PetscMPIInt     without = -1; // the first rank without such a memory
  std::string     why_not;      // of that rank
};

std::map<TCBoundGroup, Ceiling> ceilings;

} // namespace

PetscErrorCode TCBoundLogForgetCeilings(void) {
  PetscFunctionBegin;
  ceilings.clear();
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundGetGroup(MPI_Comm comm, std::vector<int> *world_ranks) {
  MPI_Group   group, world;
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCallMPI(MPI_Comm_group(comm, &group));
  PetscCallMPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
  std::vector<int> ranks((std::size_t)size);
  for (PetscMPIInt r = 0; r < size; r++) ranks[(std::size_t)r] = r;
  world_ranks->resize((std::size_t)size);
  PetscCallMPI(MPI_Group_translate_ranks(group, size, ranks.data(), world, world_ranks->data()));
  PetscCallMPI(MPI_Group_free(&group));
  PetscCallMPI(MPI_Group_free(&world));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Which rank is the first without this memory, and its reason, the same on all ranks. executor is NULL where there is none.
static PetscErrorCode TCBoundFindWithout(MPI_Comm comm, tcbound::MemorySpace space, tcbound::Executor **executor,
                                         Ceiling *ceiling) {
  PetscMPIInt rank, size, first, length;
  const char *why_not = NULL;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  *executor = NULL;
  if (space == tcbound::MemorySpace::host)
    PetscCall(TCBoundGetHostExecutor(executor));
  else
    PetscCall(TCBoundGetCUDAExecutor(executor, &why_not));
  first = *executor ? size : rank;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm));
  if (first == size) PetscFunctionReturn(PETSC_SUCCESS);
  ceiling->without = first;
  ceiling->why_not = rank == first && why_not ? why_not : "";
  PetscCall(PetscMPIIntCast((MPIU_Count)ceiling->why_not.size(), &length));
  PetscCallMPI(MPI_Bcast(&length, 1, MPI_INT, first, comm));
  ceiling->why_not.resize((std::size_t)length);
  PetscCallMPI(MPI_Bcast(&ceiling->why_not[0], length, MPI_CHAR, first, comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundGetTurns(MPI_Comm comm, const tcbound::Executor *executor, TCBoundTurns *turns) {
  constexpr int length = 16; // of a device's UUID
  PetscMPIInt   rank, size;
  std::string   id = executor ? executor->device().id : "";

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  const bool shares = !id.empty();
  id.resize(length);
  std::string all((std::size_t)size * length, '\0');
  PetscCallMPI(MPI_Allgather(id.data(), length, MPI_CHAR, &all[0], length, MPI_CHAR, comm));
  if (shares) {
    turns->ranks = 0;
    for (PetscMPIInt r = 0; r < size; r++) {
      if (all.compare((std::size_t)r * length, length, id) != 0) continue;
      turns->ranks++;
      turns->mine += r < rank;
    }
  }
  PetscCallMPI(MPI_Allreduce(&turns->ranks, &turns->most, 1, MPI_INT, MPI_MAX, comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// An error on one rank becomes one on all, after the last collective call. A device counts once, whoever shares it.
static PetscErrorCode TCBoundMeasure(MPI_Comm comm, tcbound::Executor *executor, TCBoundCeilings *sums) {
  PetscLogDouble measured[4] = {0, 0, 0, 0}, launch = 0; // bandwidth, of the cache, peak; failures
  std::string    failure = "another rank failed";
  TCBoundTurns   turns;

  PetscFunctionBegin;
  PetscCall(TCBoundGetTurns(comm, executor, &turns));
  for (int turn = 0; turn < turns.most; turn++) {
    PetscCallMPI(MPI_Barrier(comm));
    if (!executor || turn != turns.mine) continue;
    try {
      measured[0] = executor->measure_bandwidth() / turns.ranks;
      measured[1] = executor->measure_cache_bandwidth() / turns.ranks;
      measured[2] = executor->measure_peak() / turns.ranks;
      launch = executor->measure_launch();
    } catch (const std::exception &e) {
      measured[3] = 1;
      failure = e.what();
    }
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, measured, 4, MPI_DOUBLE, MPI_SUM, comm));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &launch, 1, MPI_DOUBLE, MPI_MAX, comm));
  PetscCheck(measured[3] == 0, PETSC_COMM_SELF, PETSC_ERR_LIB, "Cannot measure the memory bandwidth: %s", failure.c_str());
  *sums = {measured[0], measured[1], measured[2], launch};
  PetscFunctionReturn(PETSC_SUCCESS);
}

// strict: measure only if every rank has the memory. The result is then kept only with a measurement.
static PetscErrorCode TCBoundGetCeiling(MPI_Comm comm, tcbound::MemorySpace space, PetscBool strict, Ceiling *ceiling) {
  TCBoundGroup       group{space, {}};
  tcbound::Executor *executor;

  PetscFunctionBegin;
  PetscCall(TCBoundGetGroup(comm, &group.second));
  const auto kept = ceilings.find(group);
  if (kept != ceilings.end()) {
    *ceiling = kept->second;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (tcbound_log && tcbound_log->closed) PetscFunctionReturn(PETSC_SUCCESS); // the executors are gone
  PetscCall(TCBoundFindWithout(comm, space, &executor, ceiling));
  if (strict && ceiling->without >= 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TCBoundMeasure(comm, executor, &ceiling->sums));
  ceilings[group] = *ceiling;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundLogCeilings(MPI_Comm comm, tcbound::MemorySpace space, TCBoundCeilings *sums) {
  Ceiling ceiling;

  PetscFunctionBegin;
  PetscCall(TCBoundGetCeiling(comm, space, PETSC_FALSE, &ceiling));
  *sums = ceiling.sums;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  TCBoundGetBandwidth - Gets the measured bandwidth ceiling of a memory, summed over the ranks of a communicator

  Collective

  Input Parameters:
+ comm    - the communicator whose ranks measure: those of a host at the same time, those that share a device in turns
- memtype - `PETSC_MEMTYPE_HOST` or `PETSC_MEMTYPE_CUDA`

  Output Parameter:
. bytes_per_second - the sum, where each rank runs y = q x on arrays several times its last-level cache

  Level: intermediate

  Note:
  Measured at the first call for a group of processes and kept until `PetscFinalize()`. It is an error if a rank has no such
  memory.

.seealso: `TCBoundHasDevice()`, `PetscMemType`
@*/
PetscErrorCode TCBoundGetBandwidth(MPI_Comm comm, PetscMemType memtype, PetscLogDouble *bytes_per_second) {
  Ceiling ceiling;

  PetscFunctionBegin;
  PetscAssertPointer(bytes_per_second, 3);
  PetscCheck(PetscMemTypeHost(memtype) || PetscMemTypeCUDA(memtype), comm, PETSC_ERR_SUP,
             "tcbound has no kernels for PetscMemType %d, only for host and CUDA memory", (int)memtype);
  const tcbound::MemorySpace space = PetscMemTypeHost(memtype) ? tcbound::MemorySpace::host : tcbound::MemorySpace::cuda;
  PetscCall(TCBoundGetCeiling(comm, space, PETSC_TRUE, &ceiling));
  PetscCheck(ceiling.without < 0, comm, PETSC_ERR_SUP, "Rank %d has no %s memory that tcbound can use: %s", ceiling.without,
             tcbound::space_name(space), ceiling.why_not.c_str());
  *bytes_per_second = ceiling.sums.bandwidth;
  PetscFunctionReturn(PETSC_SUCCESS);
}
