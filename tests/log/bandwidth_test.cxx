// ranks: 1 2 3
#include <gtest/gtest.h>
#include <petscsys.h>
#include <string>
#include <tcbound.h>

namespace {

// Keeps the message of the last error.
std::string    message;
PetscErrorCode keep_message(MPI_Comm, int, const char *, const char *, PetscErrorCode code, PetscErrorType type,
                            const char *text, void *) {
  if (type == PETSC_ERROR_INITIAL) message = text;
  return code;
}

} // namespace

TEST(Bandwidth, HostIsMeasuredOnceAndIsTheSameOnAllRanks) {
  PetscLogDouble first = 0, again = 0;
  ASSERT_EQ(TCBoundGetBandwidth(PETSC_COMM_WORLD, PETSC_MEMTYPE_HOST, &first), PETSC_SUCCESS);
  ASSERT_EQ(TCBoundGetBandwidth(PETSC_COMM_WORLD, PETSC_MEMTYPE_HOST, &again), PETSC_SUCCESS);
  EXPECT_GT(first, 1e8); // any memory of this century
  EXPECT_LT(first, 1e13);
  EXPECT_EQ(first, again);
  double extremes[2] = {first, -first};
  ASSERT_EQ(MPI_Allreduce(MPI_IN_PLACE, extremes, 2, MPI_DOUBLE, MPI_MAX, PETSC_COMM_WORLD), MPI_SUCCESS);
  EXPECT_EQ(extremes[0], -extremes[1]);
}

TEST(Bandwidth, ADuplicateSharesTheMeasurement) {
  PetscLogDouble world = 0, duplicate = 0;
  MPI_Comm       comm;
  ASSERT_EQ(TCBoundGetBandwidth(PETSC_COMM_WORLD, PETSC_MEMTYPE_HOST, &world), PETSC_SUCCESS);
  ASSERT_EQ(MPI_Comm_dup(PETSC_COMM_WORLD, &comm), MPI_SUCCESS);
  ASSERT_EQ(TCBoundGetBandwidth(comm, PETSC_MEMTYPE_HOST, &duplicate), PETSC_SUCCESS);
  ASSERT_EQ(MPI_Comm_free(&comm), MPI_SUCCESS);
  EXPECT_EQ(world, duplicate);
}

TEST(Bandwidth, OneRankMeasuresForItself) {
  PetscLogDouble self = 0;
  ASSERT_EQ(TCBoundGetBandwidth(PETSC_COMM_SELF, PETSC_MEMTYPE_HOST, &self), PETSC_SUCCESS);
  EXPECT_GT(self, 1e8);
}

TEST(Bandwidth, WithoutADeviceTheErrorSaysWhatIsMissing) {
  PetscBool   has;
  const char *why_not;
  ASSERT_EQ(TCBoundHasDevice(&has, &why_not), PETSC_SUCCESS);
  if (has) GTEST_SKIP() << "this process has a device";
  PetscLogDouble sum = 0;
  ASSERT_EQ(PetscPushErrorHandler(keep_message, nullptr), PETSC_SUCCESS);
  EXPECT_EQ(TCBoundGetBandwidth(PETSC_COMM_WORLD, PETSC_MEMTYPE_CUDA, &sum), PETSC_ERR_SUP);
  ASSERT_EQ(PetscPopErrorHandler(), PETSC_SUCCESS);
  EXPECT_NE(message.find(why_not), std::string::npos) << message;
}

TEST(Bandwidth, OtherMemoriesAreRefused) {
  PetscLogDouble sum = 0;
  ASSERT_EQ(PetscPushErrorHandler(keep_message, nullptr), PETSC_SUCCESS);
  EXPECT_EQ(TCBoundGetBandwidth(PETSC_COMM_WORLD, PETSC_MEMTYPE_HIP, &sum), PETSC_ERR_SUP);
  ASSERT_EQ(PetscPopErrorHandler(), PETSC_SUCCESS);
}

TEST(GpuBandwidth, DeviceMemoryIsFasterThanTenGigabytesASecond) {
  PetscBool   has;
  const char *why_not;
  ASSERT_EQ(TCBoundHasDevice(&has, &why_not), PETSC_SUCCESS);
  if (!has) GTEST_SKIP() << why_not;
  PetscLogDouble sum = 0;
  ASSERT_EQ(TCBoundGetBandwidth(PETSC_COMM_WORLD, PETSC_MEMTYPE_CUDA, &sum), PETSC_SUCCESS);
  EXPECT_GT(sum, 1e10);
}
