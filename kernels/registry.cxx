// The registry: one row per line of list.def. No static self-registration, because a linker drops unreferenced objects of a
// static archive.
#include <string_view>

#include "kernel.h"

namespace tcbound {

#define TCBOUND_KERNEL(op, format, backend) const Kernel &op##_##format##_##backend();
#include "list.def"
#undef TCBOUND_KERNEL

namespace {

// Stands for a kernel whose source this build does not have. It is listed so that a user who asks for it reads why.
class LeftOut final : public Kernel {
public:
  using Kernel::Kernel;
  MemorySpace space() const override { return MemorySpace::cuda; }
  std::string check(const Device &, const Problem &) const override { return reason; }
  Work predict(const Problem &, bool, bool) const override { throw Error(ErrorCode::unsupported, name() + ": " + reason); }
  std::unique_ptr<Format> build(Executor &, const Problem &) const override {
    throw Error(ErrorCode::unsupported, name() + ": " + reason);
  }
  void apply(Executor &, Format &, const Product &) const override {
    throw Error(ErrorCode::unsupported, name() + ": " + reason);
  }

private:
  static constexpr const char *reason = "this library was built without CUDA";
};

// Of the backends, only "host" is compiled without a CUDA toolkit.
constexpr bool built([[maybe_unused]] std::string_view backend) {
#ifdef TCBOUND_HAVE_CUDA
  return true;
#else
  return backend == "host";
#endif
}

// A template, so that the branch not taken is discarded and does not refer to a function that was never compiled.
#define TCBOUND_KERNEL(op, format, backend) \
  template <bool present> const Kernel *row_##op##_##format##_##backend() { \
    if constexpr (present) { \
      return &op##_##format##_##backend(); \
    } else { \
      static const LeftOut kernel(#op, #format, #backend); \
      return &kernel; \
    } \
  }
#include "list.def"
#undef TCBOUND_KERNEL

} // namespace

void Kernel::apply_columns(Executor &executor, Format &format, const Product &product, const Columns &columns) const {
  for (std::int64_t k = 0; k < columns.count; ++k) apply(executor, format, from_column(product, columns, k));
}

const std::vector<const Kernel *> &all_kernels() {
  static const std::vector<const Kernel *> kernels = {
#define TCBOUND_KERNEL(op, format, backend) row_##op##_##format##_##backend<built(#backend)>(),
#include "list.def"
#undef TCBOUND_KERNEL
  };
  return kernels;
}

const Kernel *find_kernel(const std::string &name) {
  for (const Kernel *kernel : all_kernels())
    if (kernel->name() == name) return kernel;
  return nullptr;
}

} // namespace tcbound
