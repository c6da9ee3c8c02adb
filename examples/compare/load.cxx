#include "load.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "matrix_market.h"
#include "petsc_binary.h"
#include "progress.h"

namespace compare {

namespace {

// Runs `work` on rank 0; a FileError there becomes the same PETSc error everywhere.
template <typename Work> PetscErrorCode OnRankZero(MPI_Comm comm, const std::string &file, Work work) {
  PetscMPIInt rank;
  struct {
    int          code;
    std::int64_t line;
    char         message[1024];
  } error = {0, 0, ""};

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  if (!rank) {
    FileError caught{PETSC_SUCCESS, 0, ""};
    try {
      work();
    } catch (const FileError &e) {
      caught = e;
    } catch (const std::exception &) { // bad_alloc, or length_error where the sizes defy any memory
      caught = {PETSC_ERR_MEM, 0, "needs more memory than there is"};
    }
    error.code = static_cast<int>(caught.code);
    error.line = caught.line;
    std::strncpy(error.message, caught.message.c_str(), sizeof(error.message) - 1);
  }
  PetscCallMPI(MPI_Bcast(&error, sizeof(error), MPI_BYTE, 0, comm));
  if (!error.code) PetscFunctionReturn(PETSC_SUCCESS);
  const auto code = static_cast<PetscErrorCode>(error.code);
  PetscCheck(!error.line, comm, code, "%s, line %lld: %s", file.c_str(), static_cast<long long>(error.line), error.message);
  SETERRQ(comm, code, "%s: %s", file.c_str(), error.message);
}

// A buffer of any length between rank 0 and another rank, in pieces that MPI's int counts can hold.
PetscErrorCode Transfer(MPI_Comm comm, void *data, std::int64_t count, MPI_Datatype type, std::size_t size, PetscMPIInt to) {
  const std::int64_t piece = 1 << 26;
  PetscMPIInt        rank;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  for (std::int64_t done = 0; done < count; done += piece) {
    char *const at = static_cast<char *>(data) + done * size;
    const auto  n = static_cast<PetscMPIInt>(std::min(piece, count - done));
    if (rank)
      PetscCallMPI(MPI_Recv(at, n, type, 0, 0, comm, MPI_STATUS_IGNORE));
    else
      PetscCallMPI(MPI_Send(at, n, type, to, 0, comm));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

// The rows [ranges[r], ranges[r + 1]) of rank 0's matrix go to rank r.
PetscErrorCode ScatterRows(MPI_Comm comm, Csr &all, const PetscInt ranges[], Csr *local) {
  PetscMPIInt rank, size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  local->rows = ranges[rank + 1] - ranges[rank];
  local->offset.assign(static_cast<std::size_t>(local->rows) + 1, 0);
  if (!rank) {
    for (PetscMPIInt r = size - 1; r > 0; r--) {
      const std::int64_t begin = all.offset[ranges[r]], n = all.offset[ranges[r + 1]] - begin;
      PetscCall(Transfer(comm, &all.offset[ranges[r]], ranges[r + 1] - ranges[r] + 1, MPI_INT64_T, sizeof(std::int64_t), r));
      PetscCall(Transfer(comm, all.column.data() + begin, n, MPIU_INT, sizeof(PetscInt), r));
      PetscCall(Transfer(comm, all.value.data() + begin, n, MPI_DOUBLE, sizeof(double), r));
    }
    local->offset.assign(all.offset.begin(), all.offset.begin() + local->rows + 1);
    local->column.swap(all.column);
    local->value.swap(all.value);
  } else {
    PetscCall(Transfer(comm, local->offset.data(), local->rows + 1, MPI_INT64_T, sizeof(std::int64_t), 0));
    const std::int64_t first = local->offset[0];
    for (std::int64_t &offset : local->offset) offset -= first;
    local->column.resize(local->offset[local->rows]);
    local->value.resize(local->offset[local->rows]);
    PetscCall(Transfer(comm, local->column.data(), local->offset[local->rows], MPIU_INT, sizeof(PetscInt), 0));
    PetscCall(Transfer(comm, local->value.data(), local->offset[local->rows], MPI_DOUBLE, sizeof(double), 0));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Distribute(MPI_Comm comm, Csr &all, Mat *A) {
  PetscInt              sizes[2] = {all.rows, all.columns};
  PetscLayout           rows;
  const PetscInt       *ranges;
  PetscInt64            most;
  Csr                   local;
  std::vector<PetscInt> offset;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Bcast(sizes, 2, MPIU_INT, 0, comm));
  PetscCall(PetscLayoutCreateFromSizes(comm, PETSC_DECIDE, sizes[0], 1, &rows));
  PetscCall(PetscLayoutGetRanges(rows, &ranges));
  PetscCall(ScatterRows(comm, all, ranges, &local));
  most = local.offset[local.rows];
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &most, 1, MPIU_INT64, MPI_MAX, comm));
  PetscCheck(most <= PETSC_INT_MAX, comm, PETSC_ERR_SUP,
             "one rank would hold %" PetscInt64_FMT " entries, more than its %d-bit PetscInt counts: use more ranks", most,
             (int)(8 * sizeof(PetscInt)));
  offset.assign(local.offset.begin(), local.offset.end());
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, local.rows, PETSC_DECIDE, sizes[0], sizes[1]));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(MatSeqAIJSetPreallocationCSR(*A, offset.data(), local.column.data(), local.value.data()));
  PetscCall(MatMPIAIJSetPreallocationCSR(*A, offset.data(), local.column.data(), local.value.data()));
  PetscCall(PetscLayoutDestroy(&rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode LoadMatrixMarket(MPI_Comm comm, const std::string &file, Mat *A) {
  Csr            csr;
  std::int64_t   rounded = 0;
  PetscLogDouble last = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscTime(&last));
  const ReadProgress progress = [&](std::int64_t done, std::int64_t total) {
    PetscLogDouble now;
    if (PetscTime(&now) || now - last < 5) return;
    last = now;
    (void)Progress(PETSC_COMM_SELF, "reading %s: %lld of %lld entries", file.c_str(), (long long)done, (long long)total);
  };
  PetscCall(OnRankZero(comm, file, [&] {
    MatrixMarket m = read_matrix_market(file, progress);
    rounded = m.rounded_integers;
    csr = to_csr(std::move(m));
  }));
  if (rounded) PetscCall(Progress(comm, "%lld integers beyond 2^53 were rounded to double", (long long)rounded));
  if (csr.duplicates) PetscCall(Progress(comm, "%lld duplicate entries were summed", (long long)csr.duplicates));
  PetscCall(Distribute(comm, csr, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode LoadPetscBinary(MPI_Comm comm, const std::string &file, Mat *A) {
  PetscViewer viewer;

  PetscFunctionBeginUser;
  PetscCall(OnRankZero(comm, file, [&] { check_petsc_binary(file); }));
  PetscCall(PetscViewerCreate(comm, &viewer));
  PetscCall(PetscViewerSetType(viewer, PETSCVIEWERBINARY));
  PetscCall(PetscViewerFileSetMode(viewer, FILE_MODE_READ));
  PetscCall(PetscViewerBinarySetSkipInfo(viewer, PETSC_TRUE)); // FILE.info could hold options
  PetscCall(PetscViewerFileSetName(viewer, file.c_str()));
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(MatLoad(*A, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

bool ends_with(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && !text.compare(text.size() - end.size(), end.size(), end);
}

} // namespace

PetscErrorCode LoadMatrix(MPI_Comm comm, const std::string &file, Mat *A) {
  PetscFunctionBeginUser;
  PetscCall(Progress(comm, "reading %s", file.c_str()));
  if (ends_with(file, ".mtx") || ends_with(file, ".mtx.gz"))
    PetscCall(LoadMatrixMarket(comm, file, A));
  else
    PetscCall(LoadPetscBinary(comm, file, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace compare
