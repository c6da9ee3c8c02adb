#include <gtest/gtest.h>

#include <set>

#include "kernel.h"

namespace {

using namespace tcbound;

// list.def once more, as text.
const std::vector<std::string> listed = {
#define TCBOUND_KERNEL(op, format, backend) #op "/" #format "/" #backend,
#include "list.def"
#undef TCBOUND_KERNEL
};

TEST(Registry, ListsEveryRowInOrder) {
  std::vector<std::string> names;
  for (const Kernel *kernel : all_kernels()) names.push_back(kernel->name());
  EXPECT_EQ(names, listed);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size()) << "a name occurs twice";
}

TEST(Registry, FindsKernelsByName) {
  for (const std::string &name : listed) {
    const Kernel *kernel = find_kernel(name);
    ASSERT_NE(kernel, nullptr) << name;
    EXPECT_EQ(kernel->name(), name);
    EXPECT_EQ(kernel->op() + "/" + kernel->format() + "/" + kernel->backend(), name);
  }
  EXPECT_EQ(find_kernel("spmv/csr/abacus"), nullptr);
  EXPECT_EQ(find_kernel(""), nullptr);
}

TEST(Registry, HostKernelsAreThoseOfTheHostBackend) {
  for (const Kernel *kernel : all_kernels())
    EXPECT_EQ(kernel->space() == MemorySpace::host, kernel->backend() == "host") << kernel->name();
}

#ifndef TCBOUND_HAVE_CUDA
TEST(Registry, KernelsLeftOutSaySo) {
  const auto executor = make_host_executor();
  for (const Kernel *kernel : all_kernels()) {
    if (kernel->space() == MemorySpace::host) continue;
    EXPECT_EQ(kernel->check(executor->device(), Problem()), "this library was built without CUDA");
    EXPECT_THROW(kernel->build(*executor, Problem()), Error);
    EXPECT_THROW(kernel->predict(Problem(), false, false), Error);
  }
}
#endif

} // namespace
