// Starts PETSc and tcbound around GoogleTest. Every rank runs every test; the exit status is non-zero on all ranks when a test
// failed on any. Ranks other than 0 print only failures.
#include <gtest/gtest.h>
#include <petscsys.h>
#include <tcbound.h>

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  if (PetscInitialize(&argc, &argv, nullptr, nullptr)) return 2;
  if (TCBoundInitialize()) return 2;
  PetscMPIInt rank;
  if (MPI_Comm_rank(PETSC_COMM_WORLD, &rank)) return 2;
  auto &listeners = testing::UnitTest::GetInstance()->listeners();
  if (rank) delete listeners.Release(listeners.default_result_printer());
  class Failures : public testing::EmptyTestEventListener {
    void OnTestPartResult(const testing::TestPartResult &r) override {
      if (r.failed()) fprintf(stderr, "%s:%d: %s\n", r.file_name() ? r.file_name() : "?", r.line_number(), r.message());
    }
  };
  if (rank) listeners.Append(new Failures);
  int failed = RUN_ALL_TESTS(), any = 0;
  if (MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD)) return 2;
  if (PetscFinalize()) return 2;
  return any;
}
