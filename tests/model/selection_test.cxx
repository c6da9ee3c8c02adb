// Which kernels a matrix is offered.
#include "src/model/selection.h"

#include <gtest/gtest.h>

namespace {

using namespace tcbound;

Candidate candidate(const char *kernel, std::int64_t bytes) {
  Candidate one{find_kernel(kernel), nullptr, {}};
  one.work.bytes = bytes;
  return one;
}

std::vector<std::string> names_of(const std::vector<Candidate> &candidates) {
  std::vector<std::string> names;
  for (const Candidate &one : candidates) names.push_back(one.kernel->name());
  return names;
}

TEST(Selection, FewestBytesFirstAndDevicesBeforeHosts) {
  std::vector<Candidate> all = {candidate("spmv/csr/host", 1), candidate("spmv/csr/cuda_core", 30),
                                candidate("spmv/compact/cuda_core", 20)};
  rank(all);
  EXPECT_EQ(names_of(all), (std::vector<std::string>{"spmv/compact/cuda_core", "spmv/csr/cuda_core", "spmv/csr/host"}));
}

// The bytes are the same, so nothing can be gained; by name, or where there is no twin, they are taken.
TEST(Selection, TensorCoresOnlyWithoutTheirTwin) {
  std::vector<Candidate> both = {candidate("spmv/fragments/tensor_core", 10), candidate("spmv/fragments/cuda_core", 10),
                                 candidate("spmv/csr/cuda_core", 12)},
                         alone = {candidate("spmv/fragments/tensor_core", 10), candidate("spmv/csr/cuda_core", 12)};
  leave_out_tensor_twins(both);
  EXPECT_EQ(names_of(both), (std::vector<std::string>{"spmv/fragments/cuda_core", "spmv/csr/cuda_core"}));
  leave_out_tensor_twins(alone);
  EXPECT_EQ(alone.size(), 2U);
}

} // namespace
