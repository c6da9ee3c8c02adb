#pragma once

// What ranks say of rows of other ranks.

#include <algorithm>
#include <utility>

#include "stenciltcbound.h"

// Sends each item to the rank that `owner` tells, and gives those for this rank, by rising rank of the sender and in its order.
template <class T>
static PetscErrorCode SendToOwners(Mat A, const std::vector<T> &items, const std::vector<PetscMPIInt> &owners,
                                   std::vector<T> *received) {
  MPI_Comm                                 comm = PetscObjectComm((PetscObject)A);
  std::vector<PetscMPIInt>                 to;
  std::vector<std::vector<T>>              outgoing;
  std::vector<int>                         counts;
  std::vector<std::pair<PetscMPIInt, int>> from; // rank, bytes
  std::vector<MPI_Request>                 requests;
  PetscMPIInt                              senders, *sender_ranks, tag;
  int                                     *sender_counts;

  PetscFunctionBegin;
  TCBoundCallCXX({
    for (std::size_t i = 0; i < items.size(); i++) {
      auto found = std::find(to.begin(), to.end(), owners[i]); // a rank has few neighbours
      if (found == to.end()) {
        found = to.insert(to.end(), owners[i]);
        outgoing.emplace_back();
      }
      outgoing[static_cast<std::size_t>(found - to.begin())].push_back(items[i]);
    }
    for (const auto &list : outgoing) counts.push_back(static_cast<int>(list.size() * sizeof(T)));
  });
  PetscCall(PetscCommBuildTwoSided(comm, 1, MPI_INT, static_cast<PetscMPIInt>(to.size()), to.data(), counts.data(), &senders,
                                   &sender_ranks, &sender_counts));
  std::size_t total = 0;
  TCBoundCallCXX({
    for (PetscMPIInt s = 0; s < senders; s++) {
      from.emplace_back(sender_ranks[s], sender_counts[s]);
      total += static_cast<std::size_t>(sender_counts[s]) / sizeof(T);
    }
    received->resize(total);
    requests.resize(from.size() + to.size());
  });
  std::sort(from.begin(), from.end());
  PetscCall(PetscFree(sender_ranks));
  PetscCall(PetscFree(sender_counts));
  PetscCall(PetscObjectGetNewTag((PetscObject)A, &tag));
  total = 0;
  for (std::size_t s = 0; s < from.size(); s++) {
    PetscCallMPI(MPI_Irecv(received->data() + total, from[s].second, MPI_BYTE, from[s].first, tag, comm, &requests[s]));
    total += static_cast<std::size_t>(from[s].second) / sizeof(T);
  }
  for (std::size_t s = 0; s < to.size(); s++)
    PetscCallMPI(MPI_Isend(outgoing[s].data(), counts[s], MPI_BYTE, to[s], tag, comm, &requests[from.size() + s]));
  PetscCallMPI(MPI_Waitall(static_cast<PetscMPIInt>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
  PetscFunctionReturn(PETSC_SUCCESS);
}
